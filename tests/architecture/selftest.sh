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
    "$here/check.sh" "$2" "$tree" "$tree/build" >"$tree/.output" 2>&1 || got=$?
    if [ "$got" != "$1" ]; then
        echo "$2: $3: status $got, expected $1"
        cat "$tree/.output"
        failures=$((failures + 1))
    fi
}

reset() {
    rm -rf "$tree"
    mkdir -p "$tree/build"
    printf '#ifndef G\n#define G\n#include <stddef.h>\nsize_t good(void);\n#endif\n' | plant model/base/good.h
    printf '#include "model/base/good.h"\n/* printf( strcpy( */\nconst char *const text = "exit(1)";\n' | plant sim/step/fine.c
    echo 'good.h' | plant model/base/README.md
    echo 'fine.c' | plant sim/step/README.md
    printf 'name: x\nsource: a data sheet\n' | plant model/spec/catalog/gpus/x.yaml
}

reset
for check in includes rooms computes private calls lines binaries functions names readmes catalog paths headers prose phrases links; do
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
printf '\177ELF\2\1' | plant f_fuzzer
expect 1 binaries "a program"
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

reset
grep -v '^model/layout ' "$here/rooms.txt" | plant tests/architecture/rooms.txt
expect 1 rooms "a room sees one that is not listed above it"
reset
echo 'int x;' | plant plots/examples/x.c
expect 1 rooms "a folder with sources that is no room"
reset
for n in $(seq 25); do : | plant "plots/p$n.c"; done
expect 0 rooms "25 sources"
: | plant plots/p26.cu
expect 1 rooms "26 sources"
echo plots | plant tests/architecture/exceptions/rooms.txt
expect 0 rooms "26 sources, listed"
reset
echo '#include <gsl/gsl_min.h>' | plant cli/run/search.c
expect 1 computes "GSL in cli"
echo cli/run/search.c | plant tests/architecture/exceptions/computes.txt
expect 0 computes "GSL in cli, listed"
: | plant cli/run/search.c
expect 1 computes "an exception that is none any more"
"$here/check.sh" --shrink computes "$tree" >"$tree/.output" 2>&1 || :
expect 0 computes "an exception that was removed"
reset
echo '#include "sim/step/step_costs.h"' | plant cli/step/costs.c
expect 1 computes "internals of the simulator in cli"
reset
echo '#include "model/base/random.h"' | plant cli/run/draw.c
expect 1 computes "random numbers in cli"
reset
: | plant sim/step/x_parts.h
expect 1 private "another suffix"
reset
echo '#include "sim/step/x_internal.h"' | plant sim/step/x.c
echo '#include "sim/step/x_internal.h"' | plant tests/sim/step/test_x.c
expect 0 private "its own folder and its tests"
echo '#include "sim/step/x_internal.h"' | plant sim/weeks/y.c
expect 1 private "a private header of another folder"
reset
echo '#include "sim/step/x_internal.h"' | plant tests/cost/test_y.c
expect 1 private "tests of another part"
reset
printf 'int g(void);\nint f(void) { return g(); }\n' | plant sim/step/a.c
printf 'int f(void);\nint g(void) { return f(); }\n' | plant sim/step/b.c
mkdir -p "$tree/build/sim/CMakeFiles/msim_sim.dir/step"
for file in a b; do
    ${CC:-cc} -c "$tree/sim/step/$file.c" -o "$tree/build/sim/CMakeFiles/msim_sim.dir/step/$file.c.o"
done
expect 1 circles "two files that call each other"
echo 'a.c b.c' | plant tests/architecture/exceptions/circles.txt
expect 0 circles "two files that call each other, listed"
mkdir -p "$tree/build/sim/CMakeFiles/msim_sim.dir/fabric" "$tree/sim/fabric"
mv "$tree/sim/step/b.c" "$tree/sim/fabric"
mv "$tree/build/sim/CMakeFiles/msim_sim.dir/step/b.c.o" "$tree/build/sim/CMakeFiles/msim_sim.dir/fabric"
expect 1 circles "an exception that is none any more"
rm "$tree/tests/architecture/exceptions/circles.txt"
expect 0 circles "files of two rooms"
reset
expect 77 circles "no object files"
printf 'a %0120d\n' 0 | plant sim/step/README.md
expect 1 prose "a line of 122 columns"
printf '| %0201d | b |\n' 0 | plant sim/step/README.md
expect 1 prose "a cell of 203 characters"
printf '| %0150d | %0150d |\n\n    %0150d\n' 0 0 0 | plant sim/step/README.md
expect 0 prose "short cells and a block of code"
printf 'a %099d\n' 0 | plant README.md
expect 1 prose "a first screen of 101 columns"
seq 151 | plant README.md
expect 1 prose "a first screen of 151 lines"
reset
# In two pieces, because this file is looked at too.
echo "/* it keeps so"" many of them */" | plant sim/step/words.c
expect 1 phrases "a phrase in a comment"
reset
printf '[a](good.h) [b](../../sim/step/fine.c) [c](https://example.org/none) [d](#part)\n' | plant model/base/README.md
expect 0 links "links to files that exist"
echo '[a](gone.md#part)' | plant model/base/README.md
expect 1 links "a link to nowhere"
reset
printf '/* sim/step/fine.c and build/sim/step/gone.c */\n' | plant sim/step/fine.c
expect 0 links "a path that exists"
printf '/* sim/step/gone.c */\n' | plant sim/step/fine.c
expect 1 links "a path to nowhere"
reset
expect 77 commits "no history"
commit() { # commit SUBJECT
    git -C "$tree" -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m "$1"
}
if git init -q "$tree" 2>/dev/null; then
    commit 'before the rule'
    git -C "$tree" rev-parse HEAD | plant tests/architecture/exceptions/commits.txt
    commit 'sim/step, cli: count once'
    expect 0 commits "a good subject"
    commit 'count twice'
    expect 1 commits "a subject that does not say where"
    git -C "$tree" reset -q --soft HEAD~1
    commit "sim: $(printf '%068d' 0)"
    expect 1 commits "a subject of 73 characters"
fi

[ $failures = 0 ]
