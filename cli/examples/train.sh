#!/bin/bash
# Made for this page: a script that takes its numbers from a file beside it.
source "$(dirname "$0")/env.sh"
eval torchrun --nproc_per_node 8 --nnodes $NODES $CODE/pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
    --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu --group-query-attention --num-query-groups 8 \
    --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --micro-batch-size 1 --global-batch-size 64 \
    --tensor-model-parallel-size ${TP:-1} --sequence-parallel --use-distributed-optimizer --bf16
