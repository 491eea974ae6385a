#!/bin/sh
# ranks.sh MSIM MPIRUN - plans, replicas, a search and a sweep give the same bytes on one process, two ranks and three; a killed run
# goes on.
set -eu
msim=$1 mpirun=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# Root in a container may run ranks, and more of them than there are cores.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
weeks="--model gpt-175b-megascale --cluster megascale-a100 --global-batch 6144 --layout tp=8,pp=8,vpp=6 --step-time 6.34s
       --fault-model llama3 --policy megascale --threads 1 --format json"
check() {
    "$msim" run $weeks "$@" -o one.json
    for ranks in 2 3; do
        "$mpirun" -n $ranks "$msim" run $weeks "$@" -o ranks.json
        cmp one.json ranks.json
    done
}
check --replicas 16
check --replicas 8 --checkpoint-block 30s --optimise checkpoint-interval
check --replicas 4 --sweep spares=0:8:3
# Layouts, with threads inside each rank; wall times differ.
plans="--model gpt-175b-megascale --cluster megascale-a100 --gpus 1024 --global-batch 1024 --format json --rerank 7"
untimed() { sed -E '/"([a-z]+_)?seconds": /d' "$1"; }
"$msim" plan $plans -o one.json
untimed one.json >one.txt
for ranks in 2 3; do
    "$mpirun" -n $ranks "$msim" plan $plans --threads 2 -o ranks.json
    untimed ranks.json | cmp one.txt -
done
# The experiment from standard input, which one rank has.
printf 'model: llama3-8b\ncluster: dgx-h100\njob: {global_batch: 64}\n' >experiment.yaml
for axis in --gpus=8 --sweep=gpus=8,16; do
    "$msim" plan experiment.yaml $axis --format csv -o one.csv
    "$mpirun" -n 2 "$msim" plan - $axis --format csv -o ranks.csv <experiment.yaml
    cmp one.csv ranks.csv
done
# What ranks write is the same bytes, too: the terminals that mpirun gives them take no colours.
"$msim" catalog clusters >one.txt
"$mpirun" -n 2 "$msim" catalog clusters >ranks.txt
cmp one.txt ranks.txt
# One rank's command fails: all end, with its status.
if "$mpirun" -n 2 "$msim" run $weeks --replicas 4 --resume /dev/full 2>/dev/null; then exit 1; fi
# Killed in the middle, gone on with by another number of ranks.
"$msim" run $weeks --replicas 40 -o whole.json
"$mpirun" -n 2 "$msim" run $weeks --replicas 20 --resume kept -o part.json
head -c 5000 kept >torn
"$mpirun" -n 3 "$msim" run $weeks --replicas 40 --resume torn -o again.json
cmp whole.json again.json
"$msim" run $weeks --replicas 8 --sweep restart=5min:25min:3 -o whole.json
"$mpirun" -n 2 "$msim" run $weeks --replicas 8 --sweep restart=5min:25min:3 --resume swept -o part.json
cmp whole.json part.json
test "$(wc -l <swept)" -eq 24
head -c 3000 swept >torn
"$mpirun" -n 3 "$msim" run $weeks --replicas 8 --sweep restart=5min:25min:3 --resume torn -o again.json
cmp whole.json again.json
