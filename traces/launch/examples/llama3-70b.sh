#!/bin/bash
#SBATCH --nodes=8
#SBATCH --gpus-per-node=8
# Llama 3 70B in fp8 on 64 GPUs: Megatron-LM's arguments for the layout that NeMo's recipe uses.
TP=${TP:-4}
PP=${PP:-8}
MODEL=(
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear
    --position-embedding-type rope --max-position-embeddings 8192 --untie-embeddings-and-output-weights
    --vocab-size 128256 --attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion
)
PARALLEL=(
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --num-layers-per-virtual-pipeline-stage 2
    --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --tp-comm-overlap
)
srun python pretrain_gpt.py "${MODEL[@]}" "${PARALLEL[@]}" \
    --seq-length 8192 --micro-batch-size 1 --global-batch-size 128 \
    --bf16 --fp8-format hybrid --train-samples 1000000 --lr 3e-4 --data-path "$DATA" --log-interval 1
