# Rules about each source by itself. check.sh reads this file.

# Calls that no source may make, and those that only cli and tests may make. Two files are the documented exceptions: running out of
# memory ends the process (memory.c), and "-" means a standard stream (file.c).
calls() {
    unsafe='strcpy|strcat|sprintf|vsprintf|atoi|atol|atoll|atof|strtok|rand|srand|system|alloca|gets'
    loud='printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort'
    streams='stdin|stdout|stderr'
    search() { # search NAMES CALL FILE
        grep -qE "($1)$2" "$3" || return 0
        awk -f "$here/strip.awk" "$3" | grep -nE "(^|[^A-Za-z0-9_>.])($1)$2" | sed "s|^\([0-9]*\):|$3:\1: not here: |" || :
    }
    {
        sources | while read -r file; do
            search "$unsafe" '[ ]*\(' "$file"
        done
        libraries | grep -v -e '^\./model/base/memory\.c$' | while read -r file; do
            search "$loud" '[ ]*\(' "$file"
            [ "$file" = ./model/base/file.c ] || search "$streams" '[^A-Za-z0-9_]' "$file"
        done
    } | report
}

# Lines fit 130 columns (characters, not bytes), no tabs, no blanks at the end.
lines() {
    sources | while read -r file; do
        LC_ALL=C awk -v file="$file" '
            { text = $0; gsub(/[\200-\277]/, "", text) }
            length(text) > 130 { print file ":" FNR ": " length(text) " columns; at most 130" }
            /\t/ { print file ":" FNR ": a tab" }
            /[ \t\r]$/ { print file ":" FNR ": blanks at the end" }' "$file"
    done | report
}

# Programs and objects are built, not kept. Of a work tree of git, only the files that git keeps.
binaries() {
    { git ls-files 2>/dev/null || files -name '*'; } |
        LC_ALL=C xargs -r -d '\n' grep -lsa "^$(printf '\177')ELF" | sed 's|$|: a program or an object; remove it|' | report
}

# A function, or a test, does one thing: its body has less than 60 lines.
functions() {
    sources | while read -r file; do
        awk -v file="$file" '
            /^\{$/ { begin = FNR }
            /^\}$/ && begin {
                if (FNR - begin > 60) print file ":" begin ": a function of " FNR - begin - 1 " lines; at most 59"
                begin = 0
            }' "$file"
    done | report
}

# A file name says which file: no two sources share one.
names() {
    sources | awk -F/ '{ if (seen[$NF]) print $0 ": same name as " seen[$NF]; else seen[$NF] = $0 }' | report
}

# Whether a README names a file: by its name, or by a pattern such as name.{h,c} or *_schema.c.
named_in() { # named_in README FILE
    stem=${2##*/}
    stem=${stem%.*}
    set -f
    # shellcheck disable=SC2013 # words, on purpose
    for word in $(grep -oE '[A-Za-z0-9_*]+\.[chu{]' "$1" | sort -u); do
        # shellcheck disable=SC2254 # a pattern, on purpose
        case $stem in ${word%.*}) set +f; return 0 ;; esac
    done
    set +f
    return 1
}

# A folder with sources has a README.md that names each of them. Suites are described in tests/README.md by their folders.
readmes() {
    sources | sed 's|/[^/]*$||' | sort -u | while read -r folder; do
        case $folder in
        ./tests/*)
            name=${folder#./tests/}
            grep -qsF "${name%%/*}" tests/README.md || echo "tests/README.md: says nothing about $folder"
            ;;
        *)
            [ -f "$folder/README.md" ] || { echo "$folder: no README.md"; continue; }
            for file in "$folder"/*.[ch] "$folder"/*.cu; do
                [ ! -f "$file" ] || named_in "$folder/README.md" "$file" || echo "$folder/README.md: does not name ${file##*/}"
            done
            ;;
        esac
    done | report
}

# Every header compiles by itself, as C and as C++ (CUDA sources are C++). Some have members named "class"; a C++ source that needs one
# of those renames the word around the include, as this check does for all. CUDA, NCCL and MPI are optional: a header that includes
# theirs is checked only where the compiler finds them.
headers() {
    compiler=${CC:-cc}
    cxx=yes
    echo 'int x;' | $compiler -x c++ -fsyntax-only - 2>/dev/null || cxx=no
    [ $cxx = yes ] || echo "this compiler knows no C++: only C is checked" >&2
    flags="-I. -D_GNU_SOURCE -Wall -Wextra -Werror"
    cxx_flags="-std=gnu++17 $flags -Wno-c99-designator"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    alone() { # alone NAME LANGUAGE compiler options...: a violation when the include on standard input does not compile
        name=$1 language=$2
        shift 2
        $compiler "$@" -fsyntax-only - >"$work/output" 2>&1 && return
        if grep -qE "fatal error: ['\"]?(cuda|cublas|nccl|mpi)[A-Za-z_]*\.h['\"]?(:| file)" "$work/output"; then
            echo "$name: not checked in $language: $(sed -n 's/.*fatal error: //p' "$work/output")" >&2
        else
            cat "$work/output"
            echo "$name: not alone in $language"
        fi
    }
    printf '#include <%s>\n' cmath cstdio cstdlib cstring pthread.h >"$work/standard.h"
    # shellcheck disable=SC2086 # words, on purpose
    [ $cxx = no ] || $compiler -x c++-header $cxx_flags "$work/standard.h" -o "$work/standard.h.gch" # once, not for every header
    # shellcheck disable=SC2086
    files -name '*.h' | while read -r file; do
        file=${file#./}
        echo "#include \"$file\"" | alone "$file" C -x c -std=c17 -Wpedantic $flags
        [ $cxx = no ] || printf '#define class class_\nextern "C" {\n#include "%s"\n}\n' "$file" |
            alone "$file" C++ -x c++ $cxx_flags -include "$work/standard.h"
    done | report
}

# Layout of the text is clang-format's business, with the version the project uses.
format() {
    for tool in clang-format-14 clang-format; do
        if command -v $tool >/dev/null && $tool --version | grep -q 'version 14\.'; then
            sources | xargs $tool --dry-run -Werror
            return
        fi
    done
    skip "no clang-format 14"
}
