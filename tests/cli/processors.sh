#!/bin/sh
# processors.sh MSIM - fits are the same to the bit whichever processor OpenBLAS takes this one for. Its kernels sum in an order
# of their own on each; GSL has to call its own BLAS (CMakeLists.txt). Without OpenBLAS the runs are alike anyway.
set -eu

msim=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for processor in Prescott Haswell SkylakeX; do
    OPENBLAS_CORETYPE=$processor "$msim" faults fit llama3-54d --nodes 2048 --format json -q -o "$processor.json"
    cmp Prescott.json "$processor.json"
done
