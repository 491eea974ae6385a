#!/bin/sh
# check.sh CHECK ROOT [BUILD] - one architectural rule over the sources below ROOT; a line for every violation, exit 1 if there are any.
# check.sh --shrink CHECK ROOT [BUILD] - the same, and removes the exceptions that are none any more from exceptions/CHECK.txt.
#
# BUILD is a folder with object files; only the check "circles" needs it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
shrink=
[ "$1" != --shrink ] || { shrink=yes && shift; }
check=$1
build=${3:+$(cd "$3" && pwd)}
cd "$2"

skip() {
    echo "skipped: $*"
    exit 77
}

# Every file of the project that matches the find expression, as ./path; build trees and dot folders left out.
files() {
    find . \( -name 'build*' -o -name '.?*' \) -type d -prune -o -type f \( "$@" \) -print | sort
}

sources() {
    files -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'
}

libraries() {
    sources | grep -v -e '^\./cli/' -e '^\./tests/'
}

# Violations come on stdin.
report() {
    awk '{ print } END { exit NR > 0 }'
}

# Violations "FILE:LINE: WHAT" or "NAME: WHAT" that exceptions/CHECK.txt does not list. An exception without a violation is one itself:
# lists only shrink.
except() { # except CHECK
    list=tests/architecture/exceptions/$1.txt
    awk -v list="$list" '
        BEGIN {
            while ((getline line <list) > 0)
                if (line !~ /^#/ && line != "") listed[line] = 1
        }
        {
            name = $0
            sub(/: .*$/, "", name)
            sub(/:[0-9]+$/, "", name)
            if (name in listed) found[name] = 1
            else print
        }
        END {
            for (line in listed)
                if (!(line in found)) print list ": " line ": no exception any more; remove the line"
        }' | if [ -n "$shrink" ] && [ -f "$list" ]; then
        shrink_list "$list"
    else
        cat
    fi
}

# Removes the exceptions from LIST that the violations on stdin call stale; the other violations pass.
shrink_list() { # shrink_list LIST
    awk -v list="$1" '
        index($0, list ": ") == 1 && sub(/: no exception any more; remove the line$/, "") {
            stale[substr($0, length(list) + 3)] = 1
            next
        }
        { print }
        END {
            while ((getline line <list) > 0)
                if (!(line in stale)) kept = kept line "\n"
            close(list)
            printf "%s", kept >list
        }'
}

rooms=tests/architecture/rooms.txt
[ -f "$rooms" ] || rooms=$here/rooms.txt
. "$here/checks/rooms.sh"
. "$here/checks/sources.sh"
. "$here/checks/texts.sh"

case $check in
includes | rooms | computes | private | circles) "$check" ;;
calls | lines | binaries | functions | names | readmes | headers | format) "$check" ;;
catalog | paths | prose | phrases | links | commits) "$check" ;;
*)
    echo "unknown check '$check'" >&2
    exit 2
    ;;
esac
