#!/bin/sh
# bench.sh [BUILD] - the numbers that the README states, measured on one core with a release build. Not a test: nothing here fails
# because a machine is slow.
set -eu
build=${1:-build}
msim=$build/msim
measure=$build/tests/bench/measure
job="--model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144 --quiet"
layout="--layout tp=8,pp=8,vpp=6,mb=1,zero=2,sp=1"
one="env"
command -v taskset >/dev/null && one="taskset -c 0"

"$msim" --version | head -1
printf '%-44s %10s %10s %10s\n' "" "best ms" "median ms" "MiB"
"$measure" -n 50 "msim --help" "$msim" --help
# shellcheck disable=SC2086 # words, on purpose
{
    $one "$measure" -n 3 "plan, 12,288 GPUs, whole space" "$msim" plan $job --format json
    $one "$measure" -n 10 "step, 12,288 GPUs, folded" "$msim" step $job $layout --format json
    $one "$measure" -n 3 "step, 12,288 GPUs, --ranks all" "$msim" step $job $layout --ranks all --format json
    $one "$measure" -n 10 "run, shipped trace" "$msim" run $job $layout --faults llama3-54d --checkpoint-interval 30min --spares 4
    if [ -n "${MSIM_SHARED:-}" ]; then
        $one "$measure" -n 10 "run, 974 days, 1,536 nodes" "$msim" run $job --faults "$MSIM_SHARED/traces/lanl_replay_1536.csv.gz" \
            --horizon 974d --checkpoint-interval 1800s --checkpoint-block 30s --restart 900s --spares 2
    fi
    echo
    "$msim" plan $job --format json | grep -E '"(layouts_[a-z_]*|seconds)":'
    "$msim" step $job $layout --ranks all --format json | grep -E '"(events|seconds)":'
}
