N=4; A=(--num-layers 8 --bf16)
srun -N $N bash -lc "export M=\$N; torchrun --nproc_per_node gpu p.py ${A[*]} --seq-length \$((M * 2)) $X"
