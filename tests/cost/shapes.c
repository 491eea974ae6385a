#include "shapes.h"

#include <stdio.h>

#include "model/cost/memory/footprint.h"
#include "model/spec/catalog.h"

void shape_layer(struct shape *s)
{
    shape_megascale(s);
    s->layout.pp = s->layout.vpp = 1, s->layout.dp = 32, s->layout.schedule = SCHEDULE_NONE, s->layout.sequence_parallel = false;
    s->layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);
}

void shape_latent_mixture(struct shape *s)
{
    shape_layer(s);
    struct transformer *m = &s->model;
    s->layout.tp = 1, s->layout.dp = 256, s->layout.ep = 32;
    m->hidden = 7168, m->heads = m->kv_heads = 128, m->gated_mlp = true, m->norm = NORM_RMS, m->linear_bias = false;
    m->position = POSITION_ROTARY;
    m->attention = ATTENTION_LATENT;
    m->latent =
        (struct latent_attention){.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_dim = 128};
    m->moe = (struct mixture){.experts = 256, .top_k = 8, .expert_ffn = 2048, .shared_experts = 1, .every = 1};
}

double pass_flops(const struct shape *shape, enum pass pass, int layers)
{
    struct work_table table = {0};
    int32_t id = work_add_pass(&table, &shape->layout, &shape->setting, pass, (struct layer_range){0, layers}, false, false);
    double flops = work_flops(&table, id);
    work_table_free(&table);
    return flops;
}

double layer_bytes_a_token(struct shape *shape)
{
    struct footprint one, two;
    shape->model.layers = 1;
    footprint_of_stage(&shape->layout, &shape->setting, 0, &one);
    shape->model.layers = 2;
    footprint_of_stage(&shape->layout, &shape->setting, 0, &two);
    return (two.activations - one.activations) / ((double)shape->layout.micro_batch * (double)shape->job.seq_len);
}

static void load(struct shape *shape)
{
    struct diags diags = {0};
    enum status model = catalog_model("gpt-175b-megascale", &shape->model, &diags);
    enum status cluster = catalog_cluster("megascale-a100", &shape->cluster, &diags);
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    ck_assert_int_eq(model, STATUS_OK);
    ck_assert_int_eq(cluster, STATUS_OK);
    shape->setting = (struct setting){.model = &shape->model, .cluster = &shape->cluster, .job = &shape->job};
}

void shape_megascale(struct shape *shape)
{
    *shape = (struct shape){0};
    load(shape);
    shape->job = (struct job){.global_batch = 256,
                              .seq_len = 2048,
                              .precision = PRECISION_BF16,
                              .gradient_precision = PRECISION_FP32,
                              .optimizer = OPTIMIZER_ADAM};
    shape->layout =
        (struct layout){.tp = 8, .cp = 1, .pp = 8, .vpp = 6, .dp = 4, .ep = 1, .sequence_parallel = true, .micro_batch = 1};
    shape->layout.schedule = SCHEDULE_INTERLEAVED;
    shape->setting.gpus = 256;
}

void shape_gpt(struct shape *shape, int layers, int64_t hidden, int heads, int tp, int pp, int vpp, int micro_batch)
{
    shape_megascale(shape);
    struct transformer *m = &shape->model;
    m->layers = layers;
    m->hidden = hidden;
    m->ffn_hidden = 4 * hidden;
    m->heads = m->kv_heads = heads;
    m->head_dim = (int)(hidden / heads);
    m->vocab = 51200;
    struct layout *l = &shape->layout;
    l->tp = tp;
    l->pp = pp;
    l->vpp = vpp;
    l->dp = 1;
    l->micro_batch = micro_batch;
    l->sequence_parallel = false;
    l->schedule = pp == 1 ? SCHEDULE_NONE : vpp == 1 ? SCHEDULE_1F1B : SCHEDULE_INTERLEAVED;
    l->features = shape->job.features = FEATURE_BIT(FUSED_OPS);
    shape->job.global_batch = (int64_t)micro_batch * pp;
    shape->setting.gpus = tp * pp;
}
