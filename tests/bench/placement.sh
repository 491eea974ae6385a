#!/bin/sh
# The placement experiment of sim/network/PLACEMENT.md: MegaScale's step of 12,288 ranks, uplinks hashed, as CSV.
#
#     tests/bench/placement.sh build > sim/network/placement.csv
#
# What the uplinks of the 192 ToRs are (64 NICs of 200 Gbps each below), whether the first and the last stage share an embedding
# table, which hosts the ranks sit on, and the seed of the hash; then the step and what it is without contention, in seconds.
set -u
msim=${1:?usage: placement.sh BUILD_FOLDER}/msim
job="--model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144 --layout tp=8,pp=8,vpp=6,mb=1,zero=2
     --features flash_attention2,parallel_block,sliding_window,tp_overlap,pp_overlap,dp_overlap,fused_ops,async_data"
hosts="clos hosts:1536 gpus:8 nics:8x200G tors:8 nvlink:8x245.6GB/s tor:64x200G"

step() { # options...: seconds of the step
    # shellcheck disable=SC2086
    "$msim" step $job -q --format json "$@" | sed -n 's/.*"step_time_s": \([0-9.]*\).*/\1/p'
}

row() { # name, uplinks and the tiers above, tied, placement, seed
    alone=$(step --set "model.tied_embeddings=$3")
    on=$(step --set "model.tied_embeddings=$3" --network flow --queue-pairs 1 --fabric "$hosts/$2" --placement "$4" --seed "$5")
    echo "$1,$3,$4,$5,$on,$alone"
}

split="32x400G agg:32x400G/32x400G core:64x400G"
whole="64x200G agg:32x200G/32x200G core:64x200G"
half="16x400G agg:32x400G/32x400G core:64x400G"
quarter="8x400G agg:32x400G/32x400G core:64x400G"

echo uplinks,tied_embeddings,placement,seed,step_s,alone_s
for tied in true false; do
    for seed in 1 2 3; do
        for placement in data_first pipeline_first; do
            row "1:1 as 32 of 400G" "$split" $tied $placement $seed
            row "1:1 as 64 of 200G" "$whole" $tied $placement $seed
            row "2:1 as 16 of 400G" "$half" $tied $placement $seed
            row "4:1 as 8 of 400G" "$quarter" $tied $placement $seed
        done
    done
    for placement in fragmented random; do
        row "1:1 as 32 of 400G" "$split" $tied $placement 1
    done
done
