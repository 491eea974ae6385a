#!/bin/sh
# draw.sh MSIM - draw the README's figures again, into this folder. Run it from the repository's root: plots/examples/draw.sh build/msim
set -eu
msim=$1
to=$(dirname "$0")
job="--model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144"
features="--features flash_attention2,parallel_block,sliding_window,tp_overlap,pp_overlap,dp_overlap,fused_ops,async_data"
layout="--layout tp=8,pp=8,vpp=6,mb=1,zero=2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086 # words, on purpose
{
    "$msim" step $job $features $layout -q --timeline "$work/step.csv" --format json -o "$work/step.json"
    "$msim" run $job $features $layout -q --faults llama3-54d --checkpoint-interval 30min --checkpoint-block 5s --detect 5min \
        --format json -o "$work/run.json"
    "$msim" run $job $features $layout -q --fault-model megascale --policy megascale --checkpoint two-stage --replicas 100 \
        --sweep gpus=1024:131072:8:log --format json -o "$work/sweep.json"
    "$msim" plan --model llama3.1-405b --cluster llama3-h100 --global-batch 2048 --memory-margin 10% -q \
        --sweep gpus=1024..16384 --sweep precision=bf16,fp8 --format json -o "$work/scaling.json"
}
"$msim" plot "$work/step.csv" -o "$to/timeline.png"
"$msim" plot "$work/run.json" -o "$to/run.png"
"$msim" plot "$work/sweep.json" -o "$to/sweep.png"
"$msim" plot "$work/scaling.json" -o "$to/scaling.png"
if [ -d ../shared/measured ]; then
    "$msim" compare ../shared/measured/*.csv -q --format json -o "$work/compare.json"
    "$msim" plot "$work/compare.json" --kind scatter -o "$to/scatter.png"
fi
gnuplot -e "rows='sim/network/placement.csv'; picture='$to/placement.png'" plots/placement.gp
