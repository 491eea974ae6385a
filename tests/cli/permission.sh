#!/bin/sh
# permission.sh MSIM - a folder that may not be written to: exit status 1, a sentence, nothing left behind. Root may write everywhere.
set -eu
msim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ "$(id -u)" != 0 ] || { echo "skipped: root may write everywhere"; exit 77; }
work=$(mktemp -d)
trap 'chmod 755 "$work/locked" && rm -rf "$work"' EXIT
mkdir "$work/locked"
chmod 555 "$work/locked"
status=0
"$msim" catalog -o "$work/locked/result" 2>"$work/messages" || status=$?
[ "$status" = 1 ]
grep -q 'result: error: cannot write: Permission denied' "$work/messages"
[ -z "$(ls "$work/locked")" ]
