#!/bin/sh
# same_results.sh [OPTION...] OLD NEW             two binaries give the same results
# same_results.sh [OPTION...] --record DIR OLD    keep the results of one in DIR
# same_results.sh [OPTION...] --against DIR NEW   compare another with them
#
#   --only COMMAND,...   only results of these commands, such as plan,step
#   --tables DIR         compare the measured tables (*.csv, *.csv.gz) in this folder too
#                        (default: $MSIM_SHARED/measured, or shared/measured beside OLD's source tree)
#   --jobs N             transcripts replayed at a time (default: 2)
#
# The set: every command of the transcripts of OLD's source tree, as JSON and as CSV where a transcript shows text; the results that
# .ci/run compares between compilers; predictions for the rows of all tables. Each binary finds the catalog of its own tree. Versions,
# wall times, the order of echoed options and sentences may differ; without_sentences.awk removes them. Nothing else may.
# A line for each result that differs, with the begin of the difference; exit 1 if there are any.
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
only=all
jobs=2
record=
against=
tables=

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

absolute() {
    echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}

while [ $# -gt 0 ]; do
    case $1 in
    --only) only=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --tables) tables=$2 && shift ;;
    --record) record=$2 && shift ;;
    --against) against=$2 && shift ;;
    --replay) break ;; # this script's call of itself
    -*) usage ;;
    *) break ;;
    esac
    shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

wanted() { # wanted COMMAND
    case ,$only, in ,all, | *,"$1",*) return 0 ;; esac
    return 1
}

# What the first line of a wanted result begins with.
begins() {
    [ "$only" != all ] && echo "^msim ($(echo "$only" | tr , '|'))( |\$)" || echo '^msim'
}

# Whether a transcript has a command whose results are wanted.
mentions() { # mentions FILE
    [ "$only" = all ] || grep -qwE "$(echo "$only" | tr , '|')" "$1"
}

# What to do, once for both binaries: the transcripts' commands, and the tables, in DIR.
prepare() { # prepare DIR BINARY
    rm -rf "$1"
    mkdir -p "$1/commands" "$1/tables" "$1/kernels"
    root=$(cd "$(dirname "$2")/.." && pwd)
    [ -d "$root/tests/cli/transcripts" ] || root=$(cd "$tools/../.." && pwd)
    for file in "$root"/tests/cli/transcripts/*.txt; do
        grep '^\$ ' "$file" | cut -c3- >"$1/commands/$(basename "$file" .txt)"
    done
    for file in "$root"/traces/published/*.csv; do
        cp "$file" "$1/tables/published_$(basename "$file")"
    done
    [ -n "$tables" ] || tables=${MSIM_SHARED:-$root/../shared}/measured
    [ ! -d "$tables" ] || find "$tables" -name '*.csv' -o -name '*.csv.gz' | while read -r file; do
        case $file in
        */kernels/gemm*) ;; # costs a minute
        */kernels/*) cp "$file" "$1/kernels" ;;
        *) cp "$file" "$1/tables/$(basename "$(dirname "$file")")_$(basename "$file")" ;;
        esac
    done
}

# The transcript NAME of SET: each command by a shell in a folder of the transcript's own, with a msim that keeps its results in TO.
replay() { # replay SET NAME BINARY TO
    place=$scratch/place.$2
    mkdir -p "$place/bin" "$place/work" "$4/$2"
    ln -s "$tools/recording_msim.sh" "$place/bin/msim"
    cd "$place/work"
    number=0
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        PATH=$place/bin:$PATH LC_ALL=C TERM=dumb MSIM_DATA='' RECORD_BINARY=$3 RECORD_TO=$4/$2 RECORD_LINE=$number RECORD_ONLY=$only \
            RECORD_TOOLS=$tools sh -c "$line" >/dev/null 2>&1 </dev/null || :
    done <"$1/commands/$2"
    cd "$tools"
    rm -rf "$place"
}

# One more command with its results as JSON and as CSV.
add() { # add NAME COMMAND ARGUMENT...
    wanted "$2" || return 0
    name=$1
    shift
    for format in json csv; do
        status=0
        "$msim" "$@" --format $format -q >"$scratch/out" 2>/dev/null || status=$?
        {
            echo "msim $*"
            echo "status $status"
            awk -v KIND=$format -f "$tools/without_sentences.awk" "$scratch/out"
        } >"$to/$name.$format"
    done
}

# The results of .ci/run, and the tables. Inside a folder with the tables, so that results name them alike.
more() { # more SET BINARY TO
    msim=$2
    to=$3/more
    mkdir -p "$to"
    cd "$1/tables"
    MSIM_DATA=
    export MSIM_DATA
    set -- --model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144
    layout=tp=8,pp=8,vpp=6,mb=1,zero=2,sp=1
    add plan plan "$@"
    add levers plan "$@" --levers
    add scaling plan "$@" --sweep gpus=3072..12288 --tokens 300B
    add step step "$@" --layout $layout
    add explained step "$@" --layout $layout --explain
    add flow step "$@" --layout $layout --network flow --global-batch 768 --gpus 1536
    add run run "$@" --layout $layout --faults llama3-54d --checkpoint-interval 30min --spares 4
    set -- "$@" --layout $layout --checkpoint two-stage --horizon 10d
    add weeks run "$@" --fault-model megascale --policy byterobust
    add replicas run "$@" --fault-model llama3 --policy megascale --replicas 40
    add until run "$@" --fault-model llama3 --policy megascale --tokens 1T --replicas 40
    add optimise run "$@" --fault-model megascale --policy megascale --replicas 8 --optimise all
    add sweep run "$@" --fault-model rsc-1 --replicas 8 --sweep gpus=1024:16384:4:log
    "$msim" faults generate --preset megascale -q >"$scratch/drawn.csv"
    add drawn faults summary "$scratch/drawn.csv"
    add fit faults fit "$scratch/drawn.csv" --nodes 1536 --horizon 30d
    for table in *.csv*; do
        add "table_$table" compare "$table" --rows
    done
    for by in table gpu kind all; do
        add "compare_$by" compare published_*.csv --by $by
    done
    for table in ../kernels/*; do
        [ ! -f "$table" ] || add "calibrate_$(basename "$table")" calibrate "$table" --base h100-sxm
    done
    add models catalog models
    add gpus catalog gpus
    add clusters catalog clusters
    add faults catalog fault-models
    add policies catalog policies
    for cluster in dgx-h100 megascale-a100 frontier; do
        add "fabric_$cluster" fabric show --cluster $cluster
    done
    [ -z "$(ls "$to")" ] || sed -i "s|$scratch|.|g" "$to"/*
    cd "$tools"
}

# Each transcript is a process of its own, the longest first.
results() { # results SET BINARY TO
    mkdir -p "$3"
    for name in calibrate validate plan experts $(ls "$1/commands"); do
        [ ! -f "$1/commands/$name" ] || ! mentions "$1/commands/$name" || echo "$name"
    done | awk '!seen[$0]++' | xargs -P "$jobs" -I{} sh "$tools/same_results.sh" --only "$only" --replay "$1" {} "$2" "$3"
    more "$1" "$2" "$3"
}

# A line for each result that differs.
compare() { # compare OLD NEW
    {
        (cd "$1" && grep -rlE "$(begins)" .)
        (cd "$2" && grep -rlE "$(begins)" .)
    } | sort -u | {
        same=0
        differ=0
        while read -r file; do
            if [ ! -f "$2/$file" ] || [ ! -f "$1/$file" ]; then
                differ=$((differ + 1))
                [ -f "$1/$file" ] && echo "$file: only with the old binary: $(head -1 "$1/$file")" ||
                    echo "$file: only with the new binary: $(head -1 "$2/$file")"
            elif cmp -s "$1/$file" "$2/$file"; then
                same=$((same + 1))
            else
                differ=$((differ + 1))
                echo "$file: differs: $(head -1 "$1/$file")"
                diff "$1/$file" "$2/$file" | cut -c1-160 | sed -e 's/^/    /' -e '9q'
            fi
        done
        echo "$same results identical, $differ differ"
        [ $differ = 0 ]
    }
}

if [ "${1:-}" = --replay ]; then
    replay "$2" "$3" "$4" "$5"
elif [ -n "$record" ]; then
    [ $# = 1 ] || usage
    mkdir -p "$record"
    record=$(absolute "$record")
    old=$(absolute "$1")
    prepare "$record/set" "$old"
    rm -rf "$record/results"
    results "$record/set" "$old" "$record/results"
    echo "$(find "$record/results" -type f | wc -l) results recorded"
elif [ -n "$against" ]; then
    [ $# = 1 ] || usage
    against=$(absolute "$against")
    results "$against/set" "$(absolute "$1")" "$scratch/new"
    compare "$against/results" "$scratch/new"
else
    [ $# = 2 ] || usage
    old=$(absolute "$1")
    prepare "$scratch/set" "$old"
    results "$scratch/set" "$old" "$scratch/old"
    results "$scratch/set" "$(absolute "$2")" "$scratch/new"
    compare "$scratch/old" "$scratch/new"
fi
