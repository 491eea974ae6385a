#!/bin/sh
# bench.sh [BUILD] - the numbers that the README states: processor time (user and system, start of the process included) on one
# core and largest resident memory of each command, with a release build. Processor time because machines are seldom idle; there
# it is wall time, as all run on one thread. Not a test: nothing here fails because a machine is slow.
set -eu
build=${1:-build}
msim=$build/msim
measure="$build/tests/bench/measure -c"
job="--model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144 --quiet"
layout="--layout tp=8,pp=8,vpp=6,mb=1,zero=2,sp=1"
tail="--model gpt-175b-megascale --cluster megascale-a100 --gpus 1024 --global-batch 512 --quiet"
year="--model gpt-175b-megascale --cluster megascale-a100 --set cluster.nodes=16384 --gpus 131072 --global-batch 65536 --quiet"
draws="--fault-model llama3 --policy megascale --step-time 6.3s --threads 1"
one="env"
command -v taskset >/dev/null && one="taskset -c 0"

"$msim" --version | head -1
printf '%-44s %10s %10s %10s\n' "" "best s" "median s" "MiB"
# shellcheck disable=SC2086 # words, on purpose
{
    $one $measure -n 50 "msim --help" "$msim" --help
    $one $measure -n 9 "plan, 12,288 GPUs, whole space" "$msim" plan $job --format json
    $one $measure -n 21 "step, 12,288 GPUs, folded" "$msim" step $job $layout --format json
    $one $measure -n 9 "step, 12,288 GPUs, --ranks all" "$msim" step $job $layout --ranks all --format json
    $one $measure -n 5 "step, 1,024 GPUs, --replicas 100" "$msim" step $tail $layout --replicas 100 --threads 1 --format json
    $one $measure -n 5 "flows, by destination, --ranks all" "$msim" step $job $layout --network flow --ranks all --routing static
    $one $measure -n 5 "flows, ECMP, --ranks all" "$msim" step $job $layout --network flow --ranks all
    $one $measure -n 5 "flows, by destination, folded" "$msim" step $job $layout --network flow --routing static
    $one $measure -n 5 "run, 30 days, 1,000 replicas" "$msim" run $job $draws --horizon 30d --replicas 1000
    $one $measure -n 9 "run, a year, 131,072 GPUs" "$msim" run $year $draws --horizon 365d
    $one $measure -n 9 "run, shipped trace" "$msim" run $job $layout --faults llama3-54d --checkpoint-interval 30min --spares 4
    if [ -n "${MSIM_SHARED:-}" ]; then
        $one $measure -n 9 "run, 974 days, 1,536 nodes" "$msim" run $job --faults "$MSIM_SHARED/traces/lanl_replay_1536.csv.gz" \
            --horizon 974d --checkpoint-interval 1800s --checkpoint-block 30s --restart 900s --spares 2
        $one $measure -n 5 "compare, all tables" "$msim" compare "$MSIM_SHARED"/measured/*.csv --quiet --format csv
        rows=$(mktemp)
        trap 'rm -f "$rows"' EXIT
        sed -n '1p; /a100-80g-sxm/p' "$MSIM_SHARED/measured/llm_foundry.csv" | head -32 >"$rows"
        $one $measure -n 3 "calibrate, 31 rows" "$msim" calibrate "$rows" --base a100-80g-sxm --holdout 0 --quiet
    fi
    echo
    "$msim" plan $job --format json | grep -E '"(layouts_[a-z_]*|seconds)":'
    "$msim" step $job $layout --ranks all --format json | grep -E '"(events|seconds)":'
    "$build/tests/bench/bench_fabric" permutation static
    "$build/tests/bench/bench_fabric" permutation ecmp
    if [ -n "${MSIM_SHARED:-}" ]; then
        "$build/tests/bench/bench_run" "$MSIM_SHARED/traces/lanl_replay_1536.csv.gz" 1536 974
    fi
}
