#!/bin/sh
# transcript.sh MSIM FILE [--update] - run the commands of a transcript and compare what they do with what it says.
#
#     # comment
#     $ msim stpe                  a command, run by sh in an empty folder with msim first in PATH
#     > text                       what it writes to standard output
#     ! text                       what it writes to standard error
#     = 2                          its exit status, when it is not 0
#
# With --update the file is rewritten with what happened; review the difference before keeping it.
set -eu
msim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
file=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/work"
ln -s "$msim" "$scratch/bin/msim"
cd "$scratch/work"
PATH=$scratch/bin:$PATH
LC_ALL=C
TERM=dumb
export PATH LC_ALL TERM
unset NO_COLOR MSIM_CHECK COLUMNS

: >"$scratch/happened"
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '$ '*)
        status=0
        printf '%s\n' "$line" >>"$scratch/happened"
        sh -c "${line#??}" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
        sed -e 's/^/> /' -e 's/^> $/>/' "$scratch/out" >>"$scratch/happened"
        sed -e 's/^/! /' -e 's/^! $/!/' "$scratch/err" >>"$scratch/happened"
        [ "$status" = 0 ] || echo "= $status" >>"$scratch/happened"
        ;;
    '>'* | '!'* | '= '*) ;;
    *) printf '%s\n' "$line" >>"$scratch/happened" ;;
    esac
done <"$file"

if [ "${3:-}" = --update ]; then
    cp "$scratch/happened" "$file"
else
    diff -u "$file" "$scratch/happened"
fi
