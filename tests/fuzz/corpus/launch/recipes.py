a = llm.llama3_8b.finetune_recipe(num_nodes=2, num_gpus_per_node=8, peft_scheme="lora", tensor_parallelism=2)
a.trainer.callbacks.append(run.Config(C, x=[1, 2 * 2], y={"z": (3, 0)})); a.data.seq_length = 2048
a.data.micro_batch_size = a.data.global_batch_size = 16
b, q = llm.mixtral_8x7b.pretrain_recipe(8), run.Partial(f, model=run.Config(M, config=run.Config(m.Llama3Config8B)), trainer=T(d=1))
q.trainer.strategy = s = S(tp=4)
s.pp = 2
