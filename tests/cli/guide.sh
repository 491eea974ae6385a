#!/bin/sh
# guide.sh MSIM FILE.md [--update] - run the commands that a page shows and compare their output with what the page shows.
#
#         $ msim plan ... \
#               --top 5             a command, run by sh in the root of the sources; a backslash continues it
#         text                      its standard output, up to the next command or the end of the indented block
#
# Wall times ("in 0.05 s") are not compared. With --update the page is rewritten; review the difference before keeping it.
# Commands that a page shows without output, such as those for a GPU, stand in a block that begins with "# not run here".
set -eu
msim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
page=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$msim" "$scratch/bin/msim"
PATH=$scratch/bin:$PATH
LC_ALL=C.UTF-8
TERM=dumb
export PATH LC_ALL TERM
unset NO_COLOR MSIM_CHECK COLUMNS
cd "$(dirname "$0")/../.."

# One command with its continuation lines, run; its output indented as the page has it.
run_command() {
    status=0
    sh -c "$1" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    sed -e 's/^/    /' -e 's/ *$//' "$scratch/out"
    if [ $status != 0 ]; then
        printf '%s: exit status %d of: %s\n' "${page##*/}" $status "$1" >&2
        cat "$scratch/err" >&2
        return 1
    fi
}

copied=no # a block that is not run
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '    # not run here'*)
        copied=yes
        printf '%s\n' "$line"
        ;;
    '    $ '*)
        printf '%s\n' "$line"
        [ $copied = no ] || continue
        command=${line#??????}
        while [ "${command%\\}" != "$command" ] && IFS= read -r line; do
            printf '%s\n' "$line"
            command=${command%\\}$line
        done
        run_command "$command"
        output=yes
        ;;
    '    '*)
        [ "${output:-no}" = yes ] && [ $copied = no ] || printf '%s\n' "$line"
        ;;
    '')
        # Outputs bring their own blank lines; squeeze removes what is doubled.
        printf '\n'
        ;;
    *)
        output=no
        copied=no
        printf '%s\n' "$line"
        ;;
    esac
done <"$page" >"$scratch/happened"

# Blank lines: one where the page has several in a row, as outputs bring their own.
squeeze() {
    cat -s "$1"
}
plain() {
    squeeze "$1" | sed -E 's/ in [0-9.]+ m?s:/ in ... s:/'
}
if [ "${3:-}" = --update ]; then
    squeeze "$scratch/happened" >"$page"
else
    plain "$page" >"$scratch/shown"
    plain "$scratch/happened" >"$scratch/now"
    diff -u "$scratch/shown" "$scratch/now"
fi
