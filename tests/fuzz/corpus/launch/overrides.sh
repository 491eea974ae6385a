torchrun --nproc_per_node=8 --nnodes=2 -m torchtitan.train --job.config_file ./llama3_70b.toml --parallelism.tensor_parallel_degree 2 --training.local_batch_size=1
