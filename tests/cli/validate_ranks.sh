#!/bin/sh
# validate_ranks.sh MSIM MPIRUN - ranks as processes train as ranks as threads do, to the last digit; a rank that is lost, or one
# too many, ends the job in time with a sentence.
set -eu
msim=$1 mpirun=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
toy="--device cpu -q --set model.layers=4 --set model.hidden=32 --set model.ffn_hidden=64 --set model.heads=4 --set model.vocab=64
     --seq-len 16"

losses() {
    grep -E '"(loss|gradient_norm|held|pieces)"' "$1"
}
check() { # check RANKS LAYOUT
    "$msim" validate $toy --layout "$2" --format json -o threads.json
    "$mpirun" -n "$1" "$msim" validate $toy --layout "$2" --format json -o processes.json
    losses threads.json >threads.txt
    losses processes.json >processes.txt
    cmp threads.txt processes.txt
    grep -q '"held": true' processes.txt
    grep -q '"exchanges": "mpi"' processes.json
}
check 4 tp=2,pp=2
check 4 dp=4,zero=3
check 2 pp=2,vpp=2,schedule=interleaved
dense=$toy
toy="--model mixtral-8x7b $toy --set model.kv_heads=2 --set model.moe.expert_ffn=64 --global-batch 2"
check 2 dp=2,ep=2,mb=1
toy=$dense
# A device as slow as its exchanges, which are worth cutting into pieces with the products beside them.
sliced="$toy --gpu h100-sxm --set cluster.gpu.sms=1 --set cluster.gpu.peak.fp32=10GFLOPS --set cluster.gpu.launch=0s
     --set cluster.gpu.nccl.base=0s --set cluster.gpu.nccl.hop=0s --set cluster.gpu.nccl.rate=200MB/s --set cluster.gpu.nccl.ramp=0B"
toy=$sliced
check 2 tp=2,sp=1
grep -q '"pieces": [24]' processes.json
toy=$dense

# Launchers bind processes to cores; ranks then have different ones.
if [ "$(nproc)" -ge 2 ]; then
    "$mpirun" --bind-to hwthread -n 2 "$msim" validate $toy --layout tp=2 >bound.txt
    grep -q "2 ranks at the same time on 2 cores" bound.txt
fi

fails() { # fails STATUS SENTENCE COMMAND...: in bounded time
    status=$1 sentence=$2 got=0
    shift 2
    timeout 600 "$@" >said.txt 2>&1 || got=$?
    if [ "$got" != "$status" ] || ! grep -q "$sentence" said.txt; then
        echo "$*: ended with $got and said:" >&2
        cat said.txt >&2
        exit 1
    fi
}
fails 4 "the layout has 2 ranks, but 3 processes were started" "$mpirun" -n 3 "$msim" validate $toy --layout tp=2
fails 1 "rank 1 was killed on request" "$mpirun" -n 2 "$msim" validate $toy --layout dp=2 --inject kill:1
fails 1 "rank 1 \(did not arrive within 1 s\|hung on request\)" "$mpirun" -n 2 "$msim" validate $toy --layout dp=2 --inject hang:1 --timeout 1s
fails 1 "rank 1 was killed on request" "$mpirun" -n 2 "$msim" validate $sliced --layout tp=2,sp=1 --inject kill:1
fails 1 "rank 1 \(did not arrive within 1 s\|hung on request\)" "$mpirun" -n 2 "$msim" validate $sliced --layout tp=2,sp=1 --inject hang:1 --timeout 1s
fails 1 "out of memory" "$mpirun" -n 2 "$msim" validate $toy --layout dp=2 --memory 10kB
