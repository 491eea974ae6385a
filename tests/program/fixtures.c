#include "fixtures.h"

#include <stdio.h>
#include <stdlib.h>

struct fixture fixture_of(int layers, bool mixture)
{
    struct fixture f = {
        .model = {.name = "small",
                  .layers = layers,
                  .hidden = 512,
                  .ffn_hidden = 2048,
                  .heads = 8,
                  .kv_heads = 8,
                  .head_dim = 64,
                  .vocab = 4096,
                  .max_seq_len = 1024},
        .cluster =
            {.name = "small",
             .gpu = {.name = "gpu", .hbm_bytes = 80e9, .hbm_rate = 2e12, .sms = 108, .nvlink_rate = 300e9, .nvlink_domain = 8},
             .nodes = 512,
             .gpus_per_node = 8,
             .nvlink_domain = 8,
             .nics_per_node = 8,
             .nic_rate = 25e9,
             .net_fraction = 0.9},
        .job = {.global_batch = 1,
                .seq_len = 1024,
                .precision = PRECISION_BF16,
                .gradient_precision = PRECISION_FP32,
                .features = ~(feature_set)0},
        .layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1, .features = FEATURE_BIT(ASYNC_DATA)},
    };
    for (int i = 0; i < N_PRECISIONS; i++)
        f.cluster.gpu.peak_flops[i] = 312e12;
    if (mixture)
        f.model.moe = (struct mixture){.experts = 8, .top_k = 2, .expert_ffn = 1024, .every = 1};
    return f;
}

struct fixture fixture_pipeline(enum schedule schedule, int p, int v, int m)
{
    struct fixture f = fixture_of(2 * p * v, false);
    f.layout.pp = p;
    f.layout.vpp = v;
    f.layout.schedule = schedule;
    f.job.global_batch = m;
    return f;
}

struct setting fixture_setting(const struct fixture *f)
{
    const struct layout *l = &f->layout;
    return (struct setting){&f->model, &f->cluster, &f->job, l->tp * l->cp * l->pp * l->dp};
}

struct program fixture_build(const struct fixture *f, enum detail detail, bool folded)
{
    struct setting setting = fixture_setting(f);
    struct diags diags = {0};
    struct program program = {0};
    if (program_build(&f->layout, &setting, detail, folded, &program, &diags) != STATUS_OK) {
        char text[160];
        printf("%s\n", layout_format(&f->layout, text, sizeof text));
        diags_print(&diags, stdout, false);
        fflush(stdout);
        abort();
    }
    diags_free(&diags);
    return program;
}

const struct op *rank_ops(const struct program *program, int rank, uint32_t *n_ops)
{
    const struct script *script = &program->scripts[program->ranks[rank].script];
    *n_ops = script->n_ops;
    return program->ops + script->first_op;
}

double collective_bytes(const struct program *program, int rank, enum collective collective, enum group_kind kind)
{
    uint32_t n;
    const struct op *ops = rank_ops(program, rank, &n);
    double bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        if (ops[i].kind == OP_COLLECTIVE && ops[i].collective == (uint8_t)collective && ops[i].role == (uint8_t)kind)
            bytes += ops[i].bytes;
    return bytes;
}
