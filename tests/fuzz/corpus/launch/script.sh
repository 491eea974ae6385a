#SBATCH --nodes=2
N=${SLURM_NNODES:-1}
A=(--num-layers 8 --hidden-size $((64*2)) # width
 --num-attention-heads 4 --seq-length 16 --micro-batch-size 1)
B="--vocab-size 32 --bf16 \
 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|(t)*4L'"
if [ "$N" -gt 1 ]; then A+=(--num-experts 4 --moe-layer-freq '([0]*2+[1]*6)'); fi
case $N in 1) X=1;; *) X=`date`;; esac
cat <<E
x
E
torchrun --nproc_per_node 8 --nnodes $N p.py "${A[@]}" $B
