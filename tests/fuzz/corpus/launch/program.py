from megatron.bridge.recipes.llama.llama3_8b import pretrain_config
import torch
NODES, TP = 2, (4)
def main(args, gbs=8):
    cfg = pretrain_config(seq_length=8192, precision_config=bf16_mixed(), dir=args.dir); m, t = cfg.model, cfg.train
    m.tensor_model_parallel_size: int = TP
    m.context_parallel_size = m.expert_model_parallel_size = -(-7 // 4) % 2 + 2 ** 0 - 1
    t.global_batch_size, t["micro_batch_size"] = 8 * NODES, 1
    setattr(cfg.optimizer, "exp_avg_dtype", torch.bfloat16)
    cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16
    if args.slow: t.micro_batch_size = gbs
    for k in args: setattr(t, k, 1)
    cfg.ddp = DistributedDataParallelConfig(**{"use_distributed_optimizer": True}, grad_reduce_in_fp32=False)
    return cfg
c = main(1); c.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
