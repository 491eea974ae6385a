/*
 * megatron_table.h - the table of Megatron-LM's arguments: X(id, flag, type, default, further fields of struct argument_row).
 *
 * Example:
 *
 *     X(TP, "tensor-model-parallel-size", INT, "1", NUMBER(layout.tp), .since = "2020")
 *
 * is --tensor-model-parallel-size N: a whole number, 1 by default, that sets layout.tp, and that Megatron-LM has had since 2020.
 *
 * The order of rows is that of an export. NUMBER, BOOL, NOT and CHOICE name the member of struct launch_job that an argument
 * sets.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TABLE_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TABLE_H

#include "traces/launch/job/launch.h"

/* An axis of a mesh of devices, within slices (hosts that a fast fabric joins) and between them, as MaxText has it; -1: as many
 * as are left. */
#define MESH_AXIS(X, id, name)                                                                                                   \
    X(ICI_##id, "mesh-ici-" name, INT, NULL, .key = "layout.dp")                                                                 \
    X(DCN_##id, "mesh-dcn-" name, INT, NULL, .key = "layout.dp")

#define MEGATRON_ARGUMENTS(X)                                                                                                    \
    /* --- how the work is divided --- */                                                                                        \
    X(TP, "tensor-model-parallel-size", INT, "1", NUMBER(layout.tp), .since = "2020")                                            \
    X(PP, "pipeline-model-parallel-size", INT, "1", NUMBER(layout.pp), .since = "2021")                                          \
    X(CHUNK_LAYERS, "num-layers-per-virtual-pipeline-stage", INT, NULL, .key = "layout.vpp", .since = "2021")                    \
    X(CHUNKS, "num-virtual-stages-per-pipeline-rank", INT, NULL, .key = "layout.vpp", .since = "0.11")                           \
    X(CHUNKS_LOGGED, "virtual-pipeline-model-parallel-size", INT, NULL, .key = "layout.vpp", .since = "2021")                    \
    X(STAGE_LAYOUT, "pipeline-model-parallel-layout", TEXT, NULL, .key = "layout.vpp", .since = "0.13")                          \
    X(EMBEDDING_COUNTS, "account-for-embedding-in-pipeline-split", TRUE, "false", .since = "0.11")                               \
    X(LOSS_COUNTS, "account-for-loss-in-pipeline-split", TRUE, "false", .since = "0.11")                                         \
    X(PARTITION, "pp-partition-method", TEXT, NULL, .since = "Megatron-DeepSpeed")                                               \
    X(FIRST_LAYERS, "decoder-first-pipeline-num-layers", INT, NULL, .since = "0.9")                                              \
    X(LAST_LAYERS, "decoder-last-pipeline-num-layers", INT, NULL, .since = "0.9")                                                \
    X(CP, "context-parallel-size", INT, "1", NUMBER(layout.cp), .since = "0.5")                                                  \
    X(CP_COMM, "cp-comm-type", LIST, "p2p", .key = "layout.cp_comm", .when = WHEN_CONTEXT, .since = "0.9")                       \
    X(CP_LEVELS, "hierarchical-context-parallel-sizes", LIST, NULL, .key = "layout.cp_comm", .when = WHEN_CONTEXT,               \
      .since = "0.9")                                                                                                            \
    X(ULYSSES, "ds-sequence-parallel-size", INT, "1", .key = "layout.cp", .since = "Megatron-DeepSpeed")                         \
    X(EP, "expert-model-parallel-size", INT, "1", NUMBER(layout.ep), .since = "0.5")                                             \
    X(ETP, "expert-tensor-parallel-size", INT, NULL, .key = "layout.etp", .when = WHEN_MIXTURE, .since = "0.9")                  \
    X(SP, "sequence-parallel", TRUE, "false", BOOL(layout.sequence_parallel), .since = "2022")                                   \
    X(DISTRIBUTED_OPTIMIZER, "use-distributed-optimizer", TRUE, "false", .key = "layout.zero", .since = "2022")                  \
    X(OPTIMIZER_INSTANCES, "num-distributed-optimizer-instances", INT, "1", .key = "layout.shard", .since = "0.11")              \
    X(FSDP2, "use-torch-fsdp2", TRUE, "false", .key = "layout.zero", .since = "0.10")                                            \
    X(FSDP2_KEEPS, "torch-fsdp2-no-reshard-after-forward", FALSE, "true", .dest = "torch_fsdp2_reshard_after_forward",           \
      .key = "layout.zero", .since = "0.12")                                                                                     \
    X(MEGATRON_FSDP, "use-megatron-fsdp", TRUE, "false", .key = "layout.zero", .since = "0.14")                                  \
    X(CUSTOM_FSDP, "use-custom-fsdp", TRUE, "false", .key = "layout.zero", .since = "0.11")                                      \
    X(SHARDING, "data-parallel-sharding-strategy", TEXT, "no_shard",                                                             \
      ONE_OF("no_shard", "optim", "optim_grads", "optim_grads_params"), .key = "layout.zero", .since = "0.11")                   \
    X(ZERO_STAGE, "zero-stage", INT, "0", .key = "layout.zero", .since = "Megatron-DeepSpeed")                                   \
    X(ZERO_BUBBLE, "enable-zero-bubble", TRUE, "false", .key = "layout.schedule", .since = "zero-bubble fork")                   \
    X(ZERO_BUBBLE_V, "zero-bubble-v-schedule", TRUE, "false", .key = "layout.schedule", .since = "zero-bubble fork")             \
    X(ZERO_BUBBLE_PENDING, "zero-bubble-max-pending-backward", TEXT, NULL, .key = "layout.schedule",                             \
      .since = "zero-bubble fork")                                                                                               \
    X(MICRO_BATCH, "micro-batch-size", INT, NULL, NUMBER(layout.micro_batch), .since = "2020")                                   \
    X(GLOBAL_BATCH, "global-batch-size", INT, NULL, NUMBER(job.global_batch), .since = "2020")                                   \
    X(SEQ_LEN, "seq-length", INT, NULL, NUMBER(job.seq_len), .since = "2019")                                                    \
    X(ENCODER_SEQ_LEN, "encoder-seq-length", INT, NULL, .key = "job.seq_len", .since = "2021")                                   \
    X(TRAIN_SAMPLES, "train-samples", INT, NULL, .key = "job.tokens", .since = "2020")                                           \
    X(TRAIN_TOKENS, "train-tokens", INT, NULL, .key = "job.tokens", .since = "Megatron-DeepSpeed")                               \
    X(TRAIN_ITERS, "train-iters", INT, NULL, .key = "job.tokens", .since = "2019")                                               \
    /* --- what is trained --- */                                                                                                \
    X(LAYERS, "num-layers", INT, NULL, NUMBER(model.layers), .since = "2019")                                                    \
    X(HIDDEN, "hidden-size", INT, NULL, NUMBER(model.hidden), .since = "2019")                                                   \
    X(FFN_HIDDEN, "ffn-hidden-size", INT, NULL, NUMBER(model.ffn_hidden), .since = "2020")                                       \
    X(HEADS, "num-attention-heads", INT, NULL, NUMBER(model.heads), .since = "2019")                                             \
    X(GROUPED_QUERIES, "group-query-attention", TRUE, "false", .key = "model.kv_heads", .since = "0.3")                          \
    X(QUERY_GROUPS, "num-query-groups", INT, "1", .key = "model.kv_heads", .since = "0.3")                                       \
    X(HEAD_DIM, "kv-channels", INT, NULL, NUMBER(model.head_dim), .since = "2020")                                               \
    X(VOCAB, "vocab-size", INT, NULL, .key = "model.vocab", .since = "2022")                                                     \
    X(VOCAB_DIVISOR, "make-vocab-size-divisible-by", INT, "128", .key = "model.vocab", .since = "2019")                          \
    X(PADDED_VOCAB, "padded-vocab-size", INT, NULL, .key = "model.vocab", .since = "2020")                                       \
    X(PAD_VOCAB_TO, "pad-vocab-size-to", INT, NULL, .key = "model.vocab", .since = "Megatron-DeepSpeed")                         \
    X(TOKENIZER, "tokenizer-type", TEXT, NULL, .key = "model.vocab", .since = "2019")                                            \
    X(MERGE_FILE, "merge-file", TEXT, NULL, .since = "2019")                                                                     \
    X(TOKENIZER_MODEL, "tokenizer-model", TEXT, NULL, .key = "model.vocab", .since = "2022")                                     \
    X(MAX_POSITIONS, "max-position-embeddings", INT, NULL, NUMBER(model.max_seq_len), .since = "2019")                           \
    X(POSITION, "position-embedding-type", TEXT, "learned_absolute",                                                             \
      ONE_OF("learned_absolute", "rope", "mrope", "yarn", "relative", "none", "alibi", "rotary", "absolute"),                    \
      CHOICE(model.position, megatron_positions), .since = "0.3")                                                                \
    X(ROTARY, "use-rotary-position-embeddings", TRUE, "false", .key = "model.position", .since = "0.2")                          \
    X(NO_POSITION, "no-position-embedding", FALSE, "true", .dest = "add_position_embedding", .key = "model.position",            \
      .since = "0.2")                                                                                                            \
    X(ROTARY_BASE, "rotary-base", REAL, "10000", NUMBER(model.rope_theta), .when = WHEN_ROTARY, .since = "0.5")                  \
    X(NORM, "normalization", TEXT, "LayerNorm", ONE_OF("LayerNorm", "RMSNorm", "layernorm", "rmsnorm"),                          \
      CHOICE(model.norm, megatron_norms), .since = "0.4")                                                                        \
    X(GATED, "swiglu", TRUE, "false", BOOL(model.gated_mlp), .since = "0.2")                                                     \
    X(NO_BIAS, "disable-bias-linear", FALSE, "true", .dest = "add_bias_linear", BOOL(model.linear_bias), .since = "0.2")         \
    X(QKV_BIAS, "add-qkv-bias", TRUE, "false", BOOL(model.qkv_bias), .since = "0.5")                                             \
    X(QK_NORM, "qk-layernorm", TRUE, "false", BOOL(model.qk_norm), .since = "0.5")                                               \
    X(UNTIE, "untie-embeddings-and-output-weights", TRUE, "false", NOT(model.tied_embeddings), .since = "0.2")                   \
    X(LATENT, "multi-latent-attention", TRUE, "false", .key = "model.attention", .since = "0.10")                                \
    X(Q_RANK, "q-lora-rank", INT, NULL, NUMBER(model.latent.q_lora_rank), .or_zero = true, .when = WHEN_LATENT, .since = "0.10") \
    X(KV_RANK, "kv-lora-rank", INT, "32", NUMBER(model.latent.kv_lora_rank), .when = WHEN_LATENT, .since = "0.10")               \
    X(QK_NOPE, "qk-head-dim", INT, "128", NUMBER(model.latent.qk_nope_dim), .when = WHEN_LATENT, .since = "0.10")                \
    X(QK_ROPE, "qk-pos-emb-head-dim", INT, "64", NUMBER(model.latent.qk_rope_dim), .when = WHEN_LATENT, .since = "0.10")         \
    X(V_DIM, "v-head-dim", INT, "128", NUMBER(model.latent.v_dim), .when = WHEN_LATENT, .since = "0.10")                         \
    X(WINDOW, "window-size", TEXT, NULL, .key = "model.window", .since = "0.6")                                                  \
    X(WINDOW_EVERY, "window-attn-skip-freq", INT, NULL, .key = "model.window_every", .since = "0.13")                            \
    X(EXPERTS, "num-experts", INT, NULL, .key = "model.moe.experts", .since = "0.3")                                             \
    X(TOP_K, "moe-router-topk", INT, "2", NUMBER(model.moe.top_k), .when = WHEN_MIXTURE, .since = "0.5")                         \
    X(EXPERT_GROUPS, "moe-router-num-groups", INT, NULL, NUMBER(model.moe.groups), .or_zero = true, .when = WHEN_MIXTURE,        \
      .since = "0.11")                                                                                                           \
    X(EXPERT_TOP_GROUPS, "moe-router-group-topk", INT, NULL, NUMBER(model.moe.top_groups), .or_zero = true,                      \
      .when = WHEN_MIXTURE, .since = "0.11")                                                                                     \
    X(CAPACITY, "moe-expert-capacity-factor", REAL, NULL, .key = "job.capacity_factor", .when = WHEN_MIXTURE, .since = "0.7")    \
    X(PAD_TO_CAPACITY, "moe-pad-expert-input-to-capacity", TRUE, "false", .key = "job.pad_to_capacity", .when = WHEN_MIXTURE,    \
      .since = "0.7")                                                                                                            \
    X(FORCE_BALANCE, "moe-router-force-load-balancing", TRUE, "false", .key = "job.expert_load", .when = WHEN_MIXTURE,           \
      .since = "0.13")                                                                                                           \
    X(EXPERT_FFN, "moe-ffn-hidden-size", INT, NULL, NUMBER(model.moe.expert_ffn), .when = WHEN_MIXTURE, .since = "0.9")          \
    X(SHARED_FFN, "moe-shared-expert-intermediate-size", INT, NULL, NUMBER(model.moe.shared_ffn), .or_zero = true,               \
      .when = WHEN_MIXTURE, .since = "0.9")                                                                                      \
    X(MIXTURE_FREQ, "moe-layer-freq", TEXT, "1", .key = "model.moe.every", .when = WHEN_MIXTURE, .since = "0.9")                 \
    X(HYBRID, "is-hybrid-model", TRUE, "false", .key = "model.layer_pattern")                                                    \
    X(PATTERN, "hybrid-override-pattern", TEXT, NULL, .key = "model.layer_pattern")                                              \
    X(HYBRID_ATTENTION, "hybrid-attention-ratio", REAL, "0",                                                                     \
      .unmodelled = "layers by shares; --hybrid-override-pattern names them")                                                    \
    X(HYBRID_MLP, "hybrid-mlp-ratio", REAL, "0", .unmodelled = "layers by shares; --hybrid-override-pattern names them")         \
    X(MIXER_HEADS, "mamba-num-heads", INT, NULL, NUMBER(model.mixer.heads), .when = WHEN_HYBRID)                                 \
    X(MIXER_STATE, "mamba-state-dim", INT, "128", NUMBER(model.mixer.state), .when = WHEN_HYBRID)                                \
    X(MIXER_HEAD_DIM, "mamba-head-dim", INT, "64", NUMBER(model.mixer.head_dim), .when = WHEN_HYBRID)                            \
    X(MIXER_GROUPS, "mamba-num-groups", INT, "8", NUMBER(model.mixer.groups), .when = WHEN_HYBRID)                               \
    X(MTP, "mtp-num-layers", INT, NULL, NUMBER(model.mtp_layers), .or_zero = true, .since = "0.11")                              \
    /* --- how it is computed --- */                                                                                             \
    X(BF16, "bf16", TRUE, "false", .key = "job.precision", .since = "2021")                                                      \
    X(FP16, "fp16", TRUE, "false", .key = "job.precision", .since = "2019")                                                      \
    X(FP8, "fp8-format", TEXT, NULL, ONE_OF("e4m3", "hybrid"), .dest = "fp8", .key = "job.precision", .since = "0.4")            \
    X(FP8_HYBRID, "fp8-hybrid", TRUE, "false", .key = "job.precision", .since = "2022")                                          \
    X(FP8_E4M3, "fp8-e4m3", TRUE, "false", .key = "job.precision", .since = "2022")                                              \
    X(FP8_RECIPE, "fp8-recipe", TEXT, "delayed",                                                                                 \
      ONE_OF("delayed", "tensorwise", "mxfp8", "blockwise", "custom", "rowwise", "rowwise_with_gw_hp"), .key = "job.precision",  \
      .since = "0.11")                                                                                                           \
    X(FP4, "fp4-format", TEXT, NULL, ONE_OF("e2m1"), .dest = "fp4", .key = "job.precision", .since = "0.14")                     \
    X(GRADIENTS_FP32, "accumulate-allreduce-grads-in-fp32", TRUE, "false", .key = "job.gradient_precision", .since = "2021")     \
    X(GRADIENTS_BF16, "grad-reduce-in-bf16", TRUE, "false", .key = "job.gradient_precision", .since = "0.11")                    \
    X(OPTIMIZER, "optimizer", TEXT, "adam", ONE_OF("adam", "sgd", "lamb", "lion", "muon", "dist_muon"),                          \
      CHOICE(job.optimizer, megatron_optimizers), .since = "2020")                                                               \
    X(MUON_TP, "muon-tp-mode", TEXT, "blockwise", ONE_OF("blockwise", "duplicated", "distributed"),                              \
      CHOICE(job.muon_tp, muon_tp_names), .since = "0.15")                                                                       \
    X(DROPOUT, "hidden-dropout", REAL, "0.1", NUMBER(job.dropout), .or_zero = true, .since = "2019")                             \
    X(ATTENTION_DROPOUT, "attention-dropout", REAL, "0.1", .since = "2019")                                                      \
    X(DDP_IMPLEMENTATION, "DDP-impl", TEXT, NULL, .since = "2020")                                                               \
    X(DATA_IMPLEMENTATION, "data-impl", TEXT, NULL, .since = "2019")                                                             \
    X(IMPLEMENTATION, "transformer-impl", TEXT, "transformer_engine",                                                            \
      ONE_OF("local", "transformer_engine", "inference_optimized"), .key = "job.features", .since = "2022")                      \
    X(DEEPSPEED, "deepspeed", TRUE, "false", .key = "job.features", .since = "Megatron-DeepSpeed")                               \
    X(BY_DEEPSPEED, "run-by-deepspeed", TRUE, "false", .since = "DeepSpeed")                                                     \
    X(FLASH, "use-flash-attn", TRUE, "false", .key = "job.features", .since = "2022")                                            \
    X(ATTENTION, "attention-backend", TEXT, "auto", ONE_OF("flash", "fused", "unfused", "local", "auto"), .key = "job.features", \
      .since = "0.10")                                                                                                           \
    X(NO_GELU_FUSION, "no-bias-gelu-fusion", FALSE, "true", .dest = "bias_gelu_fusion", .key = "job.features", .since = "2020")  \
    X(NO_SWIGLU_FUSION, "no-bias-swiglu-fusion", FALSE, "true", .dest = "bias_swiglu_fusion", .key = "job.features",             \
      .since = "0.5")                                                                                                            \
    X(NO_DROPOUT_FUSION, "no-bias-dropout-fusion", FALSE, "true", .dest = "bias_dropout_fusion", .key = "job.features",          \
      .since = "2020")                                                                                                           \
    X(NO_SOFTMAX_FUSION, "no-masked-softmax-fusion", FALSE, "true", .dest = "masked_softmax_fusion", .key = "job.features",      \
      .since = "2021")                                                                                                           \
    X(TP_OVERLAP, "tp-comm-overlap", TRUE, "false", .key = "job.features", .since = "0.5")                                       \
    X(GRADIENT_OVERLAP, "overlap-grad-reduce", TRUE, "false", .key = "job.features", .since = "0.3")                             \
    X(PARAMETER_OVERLAP, "overlap-param-gather", TRUE, "false", .key = "job.features", .since = "0.4")                           \
    X(NO_PP_OVERLAP, "no-overlap-p2p-communication", FALSE, "true", .dest = "overlap_p2p_comm", .key = "job.features",           \
      .since = "0.3")                                                                                                            \
    X(NO_SCATTER_GATHER, "no-scatter-gather-tensors-in-pipeline", FALSE, "true", .dest = "scatter_gather_tensors_in_pipeline",   \
      .key = "job.features", .since = "2021")                                                                                    \
    X(EP_OVERLAP, "overlap-moe-expert-parallel-comm", TRUE, "false", .key = "job.features", .since = "0.14")                     \
    X(FP8_INPUT_STORE, "activation-func-fp8-input-store", TRUE, "false", .key = "job.features")                                  \
    X(GRAPHS, "cuda-graph-impl", TEXT, "none", ONE_OF("none", "local", "transformer_engine"), .key = "job.features",             \
      .since = "0.15")                                                                                                           \
    X(GRAPHS_LOCAL, "enable-cuda-graph", TRUE, "false", .key = "job.features", .since = "0.10")                                  \
    X(GRAPHS_OUTSIDE, "external-cuda-graph", TRUE, "false", .key = "job.features", .since = "0.12")                              \
    X(LOSS_FUSION, "cross-entropy-loss-fusion", TRUE, "false", .key = "job.features")                                            \
    X(LOSS_FUSION_BY, "cross-entropy-fusion-impl", TEXT, "native", ONE_OF("native", "te", "linear"), .key = "job.features")      \
    X(WORKERS, "num-workers", INT, "2", .key = "job.features", .since = "2019")                                                  \
    X(RECOMPUTE, "recompute-granularity", TEXT, NULL, ONE_OF("full", "selective"), .key = "layout.recompute", .since = "2022")   \
    X(RECOMPUTE_METHOD, "recompute-method", TEXT, NULL, ONE_OF("uniform", "block"), .key = "layout.recompute", .since = "2022")  \
    X(RECOMPUTE_LAYERS, "recompute-num-layers", INT, NULL, .key = "layout.recompute", .since = "2022")                           \
    X(RECOMPUTE_MODULES, "recompute-modules", LIST, NULL, .key = "layout.recompute", .since = "0.12")                            \
    X(RECOMPUTE_SELECTIVE, "recompute-activations", TRUE, "false", .key = "layout.recompute", .since = "2022")                   \
    X(CHECKPOINT_ACTIVATIONS, "checkpoint-activations", TRUE, "false", .key = "layout.recompute", .since = "2019")               \
    X(CHECKPOINT_METHOD, "activations-checkpoint-method", TEXT, NULL, ONE_OF("uniform", "block"), .key = "layout.recompute",     \
      .since = "2021")                                                                                                           \
    X(OFFLOAD_OPTIMIZER, "optimizer-cpu-offload", TRUE, "false", .key = "layout.offload", .since = "0.12")                       \
    X(PRECISE_OPTIMIZER, "use-precision-aware-optimizer", TRUE, "false", .since = "0.11")                                        \
    X(MOMENT, "exp-avg-dtype", TEXT, "fp32", .key = "job.moment_precision", .since = "0.11")                                     \
    X(MOMENT2, "exp-avg-sq-dtype", TEXT, "fp32", .key = "job.moment_precision", .since = "0.11")                                 \
    X(OFFLOAD_FRACTION, "optimizer-offload-fraction", REAL, "1", .key = "layout.offload", .since = "0.12")                       \
    X(OFFLOAD_OPTIMIZER_OLD, "cpu-optimizer", TRUE, "false", .key = "layout.offload", .since = "Megatron-DeepSpeed")             \
    X(OFFLOAD_OPTIMIZER_TO, "offload-optimizer", TEXT, "none", ONE_OF("none", "cpu", "nvme"), .key = "layout.offload",           \
      .since = "DeepSpeed")                                                                                                      \
    X(OFFLOAD_PARAMETERS_TO, "offload-param", TEXT, "none", ONE_OF("none", "cpu", "nvme"), .key = "layout.offload",              \
      .since = "DeepSpeed")                                                                                                      \
    X(OFFLOAD_ACTIVATIONS, "cpu-offloading", TRUE, "false", .key = "layout.offload", .since = "0.5")                             \
    X(OFFLOAD_LAYERS, "cpu-offloading-num-layers", INT, "0", .key = "layout.offload", .since = "0.5")                            \
    X(GROUPED_GEMM, "moe-grouped-gemm", TRUE, "false", .when = WHEN_MIXTURE, .since = "0.5")                                     \
    X(DISPATCHER, "moe-token-dispatcher-type", TEXT, "allgather", .when = WHEN_MIXTURE, .since = "0.5")                          \
    /* --- what it runs on: launchers', and what logs say --- */                                                                 \
    X(WORLD, "world-size", INT, NULL, .key = "cluster.gpus", .since = "2019")                                                    \
    X(NODE_GPUS, "nproc-per-node", INT, NULL, .key = "cluster.gpus_per_node", .since = "torchrun")                               \
    X(NODES, "nnodes", INT, NULL, .key = "cluster.gpus", .since = "torchrun")                                                    \
    X(TASKS, "ntasks", INT, NULL, .key = "cluster.gpus", .since = "Slurm")                                                       \
    X(ALLOCATED, "allocated-gpus", INT, NULL, .since = "Slurm") /* to the script, of which the command may take a part */        \
    X(LAUNCHER, "launched-by", TEXT, NULL, .since = "torchrun")                                                                  \
    X(LAUNCHED_NODES, "launched-nodes", INT, NULL, .since = "torchrun") /* its default */                                        \
    X(LAUNCHED_GPUS, "launched-gpus", INT, NULL, .since = "torchrun")                                                            \
    X(DP_LOGGED, "data-parallel-size", INT, NULL, .key = "layout.dp", .since = "2020")                                           \
    /* --- other frameworks' words, for which Megatron-LM has none --- */                                                        \
    X(MODEL, "catalog-model", TEXT, NULL, .key = "model")                                                                        \
    X(LOCAL_BATCH, "local-batch-size", INT, NULL, .key = "job.global_batch")                                                     \
    X(ACCUMULATION, "gradient-accumulation-steps", INT, NULL, .key = "job.global_batch")                                         \
    X(PP_MICRO_BATCHES, "pipeline-parallel-microbatches", INT, NULL, .key = "layout.micro_batch")                                \
    X(PP_SCHEDULE, "pipeline-parallel-schedule", TEXT, NULL, .key = "layout.schedule")                                           \
    X(STAGE_LAYERS, "pipeline-parallel-layers-per-stage", INT, NULL, .key = "layout.vpp")                                        \
    X(PP_CHUNKS, "pipeline-chunks", INT, NULL, .key = "layout.vpp")                                                              \
    X(SHARD_DEGREE, "data-parallel-shard-degree", TEXT, NULL, .key = "layout.zero")                                              \
    X(REPLICATE_DEGREE, "data-parallel-replicate-degree", INT, "1", .key = "layout.shard")                                       \
    X(SHARDS_WITHIN, "mics-shard-size", TEXT, "-1", .key = "layout.shard")                                                       \
    X(RESHARD, "fsdp-reshard-after-forward", TEXT, "default", .key = "layout.zero")                                              \
    X(MODEL_WINS, "model-wins", TRUE, "false", .key = "model")                                                                   \
    X(SHARED_EXPERTS, "shared-experts", INT, NULL, .key = "model.moe.shared_experts", .when = WHEN_MIXTURE)                      \
    X(DENSE_FIRST, "first-dense-layers", INT, NULL, .key = "model.moe.first_dense_layers", .when = WHEN_MIXTURE)                 \
    X(DEVICE_BATCH, "device-batch-size", REAL, NULL, .key = "job.global_batch")                                                  \
    MESH_AXIS(X, DATA, "data")                                                                                                   \
    MESH_AXIS(X, FSDP, "fsdp")                                                                                                   \
    MESH_AXIS(X, FSDP_TRANSPOSE, "fsdp-transpose")                                                                               \
    MESH_AXIS(X, TENSOR, "tensor")                                                                                               \
    MESH_AXIS(X, TENSOR_TRANSPOSE, "tensor-transpose")                                                                           \
    MESH_AXIS(X, TENSOR_SEQUENCE, "tensor-sequence")                                                                             \
    MESH_AXIS(X, SEQUENCE, "sequence")                                                                                           \
    MESH_AXIS(X, CONTEXT, "context")                                                                                             \
    MESH_AXIS(X, PIPELINE, "pipeline")                                                                                           \
    MESH_AXIS(X, EXPERT, "expert")                                                                                               \
    X(COMPILE, "torch-compile", TRUE, "false", .key = "job.features")                                                            \
    X(ASYNC_TP, "async-tensor-parallel", TRUE, "false", .key = "job.features")                                                   \
    X(LOSS_BY_CHUNKS, "fused-linear-cross-entropy", TRUE, "false", .key = "job.features")                                        \
    X(LOSS_CUT, "cut-cross-entropy", TRUE, "false", .key = "job.features")                                                       \
    X(LOSS_EAGER, "eager-cross-entropy", TRUE, "false", .key = "job.features")                                                   \
    X(LOSS_COMPILED, "compiled-cross-entropy", TRUE, "false", .key = "job.features")                                             \
    X(LAYERS_BETWEEN, "recompute-every-layers", TEXT, NULL, .key = "layout.recompute")                                           \
    X(ADAPTER, "adapter", TEXT, NULL, .key = "job.adapter")                                                                      \
    X(ADAPTER_RANK, "adapter-rank", INT, NULL, .key = "job.adapter.rank")                                                        \
    X(ADAPTER_TARGETS, "adapter-targets", LIST, NULL, .key = "job.adapter.targets")                                              \
    X(ADAPTER_WHOLE, "adapter-whole", LIST, NULL, .key = "job.adapter.whole")                                                    \
    X(ADAPTER_DORA, "adapter-dora", TRUE, "false", .key = "job.adapter")                                                         \
    X(ADAPTER_LAYERS, "adapter-layers", LIST, NULL, .key = "job.adapter")                                                        \
    X(ADAPTER_RANKS, "adapter-ranks", LIST, NULL, .key = "job.adapter")                                                          \
    X(ADAPTER_EXCLUDED, "adapter-excluded", LIST, NULL, .key = "job.adapter.targets")                                            \
    X(ADAPTER_TIES, "adapter-ties", TRUE, "false", .key = "job.adapter.whole")                                                   \
    X(ADAPTER_BIAS, "adapter-bias", TEXT, "none", .since = "peft")                                                               \
    X(ADAPTER_OWN_BIAS, "adapter-own-bias", TRUE, "false", .since = "peft")                                                      \
    X(ADAPTER_TOKENS, "adapter-tokens", LIST, NULL, .since = "peft")                                                             \
    X(ADAPTER_DROPOUT, "adapter-dropout", REAL, "0", .since = "peft")                                                            \
    X(ADAPTER_PARAMETERS, "adapter-parameters", LIST, NULL, .since = "peft")                                                     \
    X(ADAPTER_REPLICATION, "adapter-replication", LIST, NULL, .since = "peft")                                                   \
    X(ADAPTER_SHARING, "adapter-sharing", TRUE, "false", .since = "peft")                                                        \
    /* --- not modelled, and told --- */                                                                                         \
    X(TOLD_RAMPUP, "rampup-batch-size", LIST, NULL, .unmodelled = "the batch grows in steps; msim assumes the last one")         \
    X(TOLD_DOCUMENTS, "reset-attention-mask", TRUE, "false",                                                                     \
      .unmodelled = "attention is masked between documents; msim assumes whole sequences; set their length with job.documents")  \
    X(TOLD_POSITIONS, "reset-position-ids", TRUE, "false",                                                                       \
      .unmodelled = "positions restart with documents; if attention does, too, set their length with job.documents")             \
    X(TOLD_ORDER, "use-tp-pp-dp-mapping", TRUE, "false", .unmodelled = "pipeline stages are placed nearer than replicas")        \
    X(TOLD_SHARED_OVERLAP, "moe-shared-expert-overlap", TRUE, "false", .when = WHEN_MIXTURE,                                     \
      .unmodelled = "shared experts overlap with the dispatch")                                                                  \
    X(TOLD_DEEPEP, "moe-enable-deepep", TRUE, "false", .when = WHEN_MIXTURE,                                                     \
      .unmodelled = "dispatch sends a token once per node (DeepEP)")                                                             \
    X(TOLD_FP8_DISPATCH, "moe-fp8-dispatch", TRUE, "false", .when = WHEN_MIXTURE, .unmodelled = "tokens travel in 8 bits")       \
    X(TOLD_FP8_PARAMETERS, "fp8-param-gather", TRUE, "false", .unmodelled = "parameters are gathered in 8 bits")                 \
    X(TOLD_MASTER, "main-params-dtype", TEXT, "fp32", .unmodelled = "master weights in fewer bits")                              \
    X(TOLD_MAIN_GRADIENTS, "main-grads-dtype", TEXT, "fp32", .unmodelled = "gradients that the optimizer sees in fewer bits")    \
    X(TOLD_MUON_STEPS, "muon-num-ns-steps", INT, "5", .unmodelled = "iterations of Newton-Schulz; msim assumes five")            \
    X(TOLD_GRADIENT_FUSION, "no-gradient-accumulation-fusion", FALSE, "true", .dest = "gradient_accumulation_fusion",            \
      .unmodelled = "weights' gradients are summed by kernels of their own")                                                     \
    X(TOLD_DELAYED_WEIGHTS, "delay-wgrad-compute", TRUE, "false", .unmodelled = "weights' gradients are computed later")         \
    X(TOLD_DISTRIBUTED_ACTIVATIONS, "distribute-saved-activations", TRUE, "false",                                               \
      .unmodelled = "kept activations are divided over tp")                                                                      \
    X(TOLD_FINE_OFFLOAD, "fine-grained-activation-offloading", TRUE, "false",                                                    \
      .unmodelled = "the host keeps activations of some modules")                                                                \
    X(TOLD_HPZ, "zero-hpz-partition-size", INT, "1",                                                                             \
      .unmodelled = "the backward pass gathers weights within a group of ranks (hpZ)")                                           \
    X(TOLD_LATE_SUMS, "late-gradient-sums", TRUE, "false",                                                                       \
      .unmodelled = "bf16 gradients are kept together with their sums until the end of the backward pass: 2 bytes per weight")   \
    X(TOLD_QUANTIZED_WEIGHTS, "zero-quantized-weights", TRUE, "false", .unmodelled = "weights are gathered in 8 bits (ZeRO++)")  \
    X(TOLD_QUANTIZED_GRADIENTS, "zero-quantized-gradients", TRUE, "false", .unmodelled = "gradients travel in 4 bits (ZeRO++)")  \
    X(TOLD_CHECKPOINTS, "cpu-checkpointing", TRUE, "false", .unmodelled = "the host keeps the inputs of recomputed layers")      \
    X(TOLD_QUANTIZED, "quantization-bit", TEXT, NULL, .unmodelled = "weights are kept in 8 or 4 bits, and not trained")          \
    X(TOLD_BUDGET, "activation-memory-budget", TEXT, NULL,                                                                       \
      .unmodelled = "a compiler chooses what is kept; msim assumes every second product")                                        \
    X(TOLD_POLICY, "rematerialization-policy", TEXT, NULL,                                                                       \
      .unmodelled = "a policy between keeping all products and keeping only inputs; msim assumes the nearer one")                \
    X(TOLD_SCALED, "global-parameter-scale", INT, "1",                                                                           \
      .unmodelled = "widths are multiplied; msim assumes the widths as written")                                                 \
    X(TOLD_OVER_DATA, "shard-optimizer-over-data", TRUE, "false",                                                                \
      .unmodelled = "replicas divide the optimizer's states; msim assumes whole states")                                         \
    X(TOLD_INT8, "eight-bit-integers", TEXT, NULL, .unmodelled = "products of 8-bit integers; msim assumes bf16")                \
    X(TOLD_OVERRIDES, "block-overrides", LIST, NULL,                                                                             \
      .unmodelled = "layers that differ from the others; msim assumes that all are alike")                                       \
    X(TOLD_WINDOWS, "sliding-windows", LIST, NULL, .unmodelled = "attention in windows; msim assumes the whole sequence")        \
    X(TOLD_NODE, "shards-of-a-node", TEXT, NULL,                                                                                 \
      .unmodelled = "the number of ranks that share weights is not specified; msim assumes 8, a node")                           \
    X(TOLD_PLACEMENT, "placement-by-need", TEXT, NULL,                                                                           \
      .unmodelled = "states move to the host when needed; msim assumes the GPU")                                                 \
    X(TOLD_SHARD_SHARE, "gemini-shard-share", REAL, "1", .unmodelled = "a part of the weights is sharded; msim assumes all")     \
    X(TOLD_OPTIMIZER_SHARE, "gemini-optimizer-share", REAL, "0",                                                                 \
      .unmodelled = "a part of the states is on the host; msim assumes none")                                                    \
    X(TOLD_PARAMETER_SHARE, "gemini-parameter-share", REAL, "0",                                                                 \
      .unmodelled = "a part of the weights is on the host; msim assumes none")                                                   \
    X(TOLD_OWN, "own-sharding", TEXT, NULL, .unmodelled = "a custom policy divides the model; msim assumes the usual one")       \
    X(TOLD_STEP, "step-in-backward", TRUE, "false",                                                                              \
      .unmodelled = "each gradient is used and freed at once; msim assumes that all are kept until the step")                    \
    X(TOLD_LOGITS, "logits-on-every-rank", TRUE, "false",                                                                        \
      .unmodelled = "every rank of tp has all logits; msim assumes its share")                                                   \
    X(TOLD_SPLIT, "pipeline-split-points", LIST, NULL, .unmodelled = "stages divided by hand; msim assumes even ones")           \
    X(TOLD_SCHEDULE, "pipeline-schedule-file", TEXT, NULL, .unmodelled = "a schedule from a file")                               \
    X(TOLD_FIRST, "first-stage-less-layers", INT, "1", .unmodelled = "layers that the embedding counts as; msim assumes one")    \
    X(TOLD_LAST, "last-stage-less-layers", INT, "1", .unmodelled = "layers that the head counts as; msim assumes one")           \
    X(TOLD_RECIPE, "recipe-layout", TEXT, NULL,                                                                                  \
      .unmodelled = "the recipe's own layout and batch are not known; msim assumes the defaults without it")                     \
    X(TOLD_OBJECTIVE, "training-objective", TEXT, "sft",                                                                         \
      .unmodelled = "a step with more than one model, such as a reference; msim assumes one model over its sequences")           \
    X(TOLD_PROJECTED, "projected-gradients", TRUE, "false",                                                                      \
      .unmodelled = "the optimizer's states are those of a projection, or of some layers at a time; msim assumes all")           \
    X(TOLD_FROZEN, "unfrozen-parameters", LIST, NULL, .unmodelled = "only some parameters are trained; msim assumes all")        \
    X(TOLD_SHIFTED, "shifted-attention", TRUE, "false",                                                                          \
      .unmodelled = "attention within groups of tokens; msim assumes all tokens")                                                \
    X(TOLD_OUTER, "outer-dp-sharding-strategy", TEXT, "no_shard",                                                                \
      .unmodelled = "replicas of shards shard among themselves, too")                                                            \
    X(TOLD_SINKHORN, "first-last-layers-bf16", TRUE, "false", .unmodelled = "the first and last layers stay in bf16")

#endif
