colossalai run --nproc_per_node 8 benchmark.py --plugin 3d --config 7b --batch_size 4 --max_length 4096 --tp 2 --pp 2 --mbs 1 --zero 1 --sp 2 --sp_mode all_to_all --lora_rank 8 --mixed_precision bf16
