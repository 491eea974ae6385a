#!/bin/sh
# interrupt.sh MSIM - a command that is ended while it works leaves neither a result nor a half of one, and an old result stays.
set -eu
msim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkfifo input
failures=0

# The command opens its output, then waits for an experiment that never comes.
interrupted() { # interrupted SIGNAL STATUS
    "$msim" step - --output result.json <input >/dev/null 2>"messages" &
    child=$!
    exec 3>input
    tries=0
    until ls result.json.* >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || { echo "SIG$1: nothing was written aside"; exit 1; }
        sleep 0.05
    done
    kill -s "$1" "$child"
    status=0
    wait "$child" || status=$?
    exec 3>&-
    [ "$status" = "$2" ] || { echo "SIG$1: status $status, expected $2"; failures=1; }
    left=$(find . -name 'result.json.*')
    [ -z "$left" ] || { echo "SIG$1: left behind: $left"; failures=1; }
}

# A shell starts background commands with SIGINT ignored; msim takes it all the same.
interrupted TERM 143
interrupted HUP 129
interrupted INT 130
[ ! -e result.json ] || { echo "a result appeared"; failures=1; }

echo old >result.json
interrupted TERM 143
[ "$(cat result.json)" = old ] || { echo "the old result is gone"; failures=1; }
exit $failures
