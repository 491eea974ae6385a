#!/bin/sh
# selftest.sh - every check of check.sh finds a violation that is planted for it, and is content without.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

plant() { # plant FILE < content
    mkdir -p "$tree/$(dirname "$1")"
    cat >"$tree/$1"
}

expect() { # expect STATUS CHECK WHAT
    got=0
    "$here/check.sh" "$2" "$tree" >"$tree/.output" 2>&1 || got=$?
    if [ "$got" != "$1" ]; then
        echo "$2: $3: status $got, expected $1"
        cat "$tree/.output"
        failures=$((failures + 1))
    fi
}

reset() {
    rm -rf "$tree"
    mkdir -p "$tree"
    printf '#ifndef G\n#define G\n#include <stddef.h>\nsize_t good(void);\n#endif\n' | plant model/base/good.h
    printf '#include "model/base/good.h"\n/* printf( strcpy( */\nconst char *const text = "exit(1)";\n' | plant sim/step/fine.c
    echo 'good.h' | plant model/base/README.md
    echo 'fine.c' | plant sim/step/README.md
    printf 'name: x\nsource: a data sheet\n' | plant model/spec/catalog/gpus/x.yaml
}

reset
for check in includes calls lines functions names readmes catalog paths headers; do
    expect 0 $check "a good tree"
done

echo '#include "cli/c.h"' | plant sim/step/up.c
: | plant cli/c.h
expect 1 includes "sim sees cli"
reset
echo '#include "sim/step/s.h"' | plant plots/sideways.c
: | plant sim/step/s.h
expect 1 includes "plots sees sim"
reset
echo '#include "model/cost/work/c.h"' | plant model/spec/up.c
: | plant model/cost/work/c.h
expect 1 includes "spec sees cost"
reset
echo '#include "good.h"' | plant model/base/relative.c
expect 1 includes "a name not from the root"
reset
: | plant elsewhere/x.c
echo '#include "model/base/good.h"' | plant elsewhere/x.c
expect 1 includes "a folder without a room"
reset
echo 'int f(char *a) { return atoi(a); }' | plant cli/unsafe.c
expect 1 calls "atoi"
reset
echo 'void f(void) { printf("x"); }' | plant traces/table/loud.c
expect 1 calls "printf in a library"
reset
echo 'void f(void) { fprintf(stderr, "x"); }' | plant traces/table/loud.c
expect 1 calls "stderr in a library"
reset
echo 'void f(void) { exit(1); }' | plant cli/may.c
expect 0 calls "exit in cli"
reset
printf '%0131d\n' 0 | plant sim/step/long.c
expect 1 lines "131 columns"
reset
printf 'int a; \n' | plant sim/step/blank.c
expect 1 lines "a blank at the end"
reset
{ echo 'void f(void)'; echo '{'; seq 59 | sed 's/.*/    f();/'; echo '}'; } | plant sim/step/long.c
expect 0 functions "59 lines"
{ echo 'void f(void)'; echo '{'; seq 60 | sed 's/.*/    f();/'; echo '}'; } | plant sim/step/long.c
expect 1 functions "60 lines"
reset
: | plant cli/fine.c
expect 1 names "two files of one name"
reset
: | plant sim/step/new.c
expect 1 readmes "a source that the README does not name"
reset
rm "$tree/sim/step/README.md"
expect 1 readmes "no README"
reset
echo 'name: y' | plant model/spec/catalog/gpus/y.yaml
expect 1 catalog "an entry without source"
reset
# In two pieces, because this file is looked at too.
printf '/%s\n' 'home/someone/x' | plant sim/step/notes.md
expect 1 paths "a path of one machine"
reset
echo 'size_t f(void);' | plant sim/step/needs.h
expect 1 headers "a header that needs another"
reset
printf '#include <%s>\n' mpi_that_is_absent.h | plant sim/optional.h
expect 0 headers "a header of MPI, which is not installed"
reset
printf '#include <%s>\n' absent.h | plant sim/required.h
expect 1 headers "a header that is not installed"

[ $failures = 0 ]
