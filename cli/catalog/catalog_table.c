#include "cli/catalog/catalog_table.h"

#include "model/base/append.h"

/* A number in units of `unit`; an empty cell for 0, which means that there is none. */
static void number_cell(struct table *table, const char *format, double value, double unit)
{
    char text[40];
    snprintf(text, sizeof text, format, value / unit);
    table_cell(table, "%s", value > 0 ? text : "");
}

static void model_columns(struct table *t)
{
    table_column(t, "model", NULL, ALIGN_LEFT);
    table_column(t, "parameters", "billion", ALIGN_RIGHT);
    table_column(t, "active", "billion", ALIGN_RIGHT);
    table_column(t, "layers", NULL, ALIGN_RIGHT);
    table_column(t, "hidden", NULL, ALIGN_RIGHT);
    table_column(t, "ffn", NULL, ALIGN_RIGHT);
    table_column(t, "heads", NULL, ALIGN_RIGHT);
    table_column(t, "kv heads", NULL, ALIGN_RIGHT);
    table_column(t, "vocab", NULL, ALIGN_RIGHT);
    table_column(t, "seq len", "tokens", ALIGN_RIGHT);
    table_column(t, "experts", NULL, ALIGN_RIGHT);
    table_column(t, "top k", NULL, ALIGN_RIGHT);
}

static void model_row(struct table *t, const struct transformer *m)
{
    struct parameter_count count;
    transformer_parameters(m, &count);
    bool mixture = m->moe.experts > 0;
    table_cell(t, "%s", m->name);
    number_cell(t, "%.3f", count.total, 1e9);
    number_cell(t, "%.3f", mixture ? count.active : 0, 1e9);
    table_cell(t, "%d", m->layers);
    table_cell(t, "%lld", (long long)m->hidden);
    table_cell(t, "%lld", (long long)(mixture ? m->moe.expert_ffn : m->ffn_hidden));
    table_cell(t, "%d", m->heads);
    table_cell(t, "%d", m->kv_heads);
    table_cell(t, "%lld", (long long)m->vocab);
    table_cell(t, "%lld", (long long)m->max_seq_len);
    number_cell(t, "%.0f", m->moe.experts, 1);
    number_cell(t, "%.0f", m->moe.top_k, 1);
}

static void gpu_columns(struct table *t)
{
    table_column(t, "gpu", NULL, ALIGN_LEFT);
    table_column(t, "bf16", "TFLOPS", ALIGN_RIGHT);
    table_column(t, "fp16", "TFLOPS", ALIGN_RIGHT);
    table_column(t, "fp8", "TFLOPS", ALIGN_RIGHT);
    table_column(t, "nvfp4", "TFLOPS", ALIGN_RIGHT);
    table_column(t, "memory", "GiB", ALIGN_RIGHT);
    table_column(t, "memory rate", "GB/s", ALIGN_RIGHT);
    table_column(t, "nvlink", "GB/s", ALIGN_RIGHT);
    table_column(t, "nvlink domain", NULL, ALIGN_RIGHT);
    table_column(t, "sms", NULL, ALIGN_RIGHT);
    table_column(t, "power", "W", ALIGN_RIGHT);
}

static void gpu_row(struct table *t, const struct gpu *g)
{
    table_cell(t, "%s", g->name);
    number_cell(t, "%.0f", g->peak_flops[PRECISION_BF16], 1e12);
    number_cell(t, "%.0f", g->peak_flops[PRECISION_FP16], 1e12);
    number_cell(t, "%.0f", g->peak_flops[PRECISION_FP8], 1e12);
    number_cell(t, "%.0f", g->peak_flops[PRECISION_NVFP4], 1e12);
    number_cell(t, "%.1f", g->hbm_bytes, 0x1p30);
    number_cell(t, "%.0f", g->hbm_rate, 1e9);
    number_cell(t, "%.0f", g->nvlink_rate, 1e9);
    table_cell(t, "%d", g->nvlink_domain);
    table_cell(t, "%d", g->sms);
    number_cell(t, "%.0f", g->power_w, 1);
}

static void cluster_columns(struct table *t)
{
    table_column(t, "cluster", NULL, ALIGN_LEFT);
    table_column(t, "gpu", NULL, ALIGN_LEFT);
    table_column(t, "gpus", NULL, ALIGN_RIGHT);
    table_column(t, "nodes", NULL, ALIGN_RIGHT);
    table_column(t, "gpus per node", NULL, ALIGN_RIGHT);
    table_column(t, "nvlink domain", NULL, ALIGN_RIGHT);
    table_column(t, "nics per node", NULL, ALIGN_RIGHT);
    table_column(t, "nic", "Gbps", ALIGN_RIGHT);
    table_column(t, "topology", NULL, ALIGN_LEFT);
    table_column(t, "fabric layers", NULL, ALIGN_RIGHT);
    table_column(t, "leaf nodes", NULL, ALIGN_RIGHT);
    table_column(t, "oversubscription", NULL, ALIGN_RIGHT);
}

static void cluster_row(struct table *t, const struct cluster *c)
{
    bool dragonfly = c->topology == TOPOLOGY_DRAGONFLY;
    char ratio[32];

    table_cell(t, "%s", c->name);
    table_cell(t, "%s", c->gpu.name);
    table_cell(t, "%d", cluster_gpus(c));
    table_cell(t, "%d", c->nodes);
    table_cell(t, "%d", c->gpus_per_node);
    table_cell(t, "%d", c->nvlink_domain);
    table_cell(t, "%d", c->nics_per_node);
    number_cell(t, "%.0f", c->nic_rate, 125e6);
    table_cell(t, "%s", dragonfly ? "dragonfly" : "clos");
    table_cell(t, "%d", dragonfly ? 1 : c->fabric_layers);
    table_cell(t, "%d", cluster_leaf_nodes(c));
    table_cell(t, "%s",
               ratio_text(dragonfly ? cluster_pod_oversubscription(c) : c->leaf_oversubscription * c->pod_oversubscription, ratio,
                          sizeof ratio));
}

static enum status add_row(struct table *table, enum catalog_kind kind, const char *name, struct diags *diags)
{
    struct catalog_entry entry = {.kind = kind};
    enum status status = STATUS_OK;
    switch (kind) {
    case CATALOG_MODELS:
        status = catalog_model(name, &entry.model, diags);
        if (status == STATUS_OK)
            model_row(table, &entry.model);
        break;
    case CATALOG_GPUS:
        status = catalog_gpu(name, &entry.gpu, diags);
        if (status == STATUS_OK)
            gpu_row(table, &entry.gpu);
        break;
    default:
        status = catalog_cluster(name, &entry.cluster, diags);
        if (status == STATUS_OK)
            cluster_row(table, &entry.cluster);
        break;
    }
    return status;
}

void catalog_also_text(const struct alias_table *aliases, enum catalog_kind kind, const char *name, char *text, size_t size)
{
    enum { SPELLINGS_MAX = 32 };
    const char *spellings[SPELLINGS_MAX];
    size_t n = alias_table_of(aliases, kind, name, spellings, SPELLINGS_MAX);
    *text = '\0';
    for (size_t i = 0; i < n && i < SPELLINGS_MAX; i++)
        text_append(text, size, "%s%s", i ? ", " : "", spellings[i]);
}

enum status catalog_table_fill(struct table *table, enum catalog_kind kind, const struct alias_table *aliases,
                               struct diags *diags)
{
    static void (*const columns[N_CATALOG_KINDS])(struct table *) = {model_columns, gpu_columns, cluster_columns};
    char **names;
    size_t n;
    enum status status = catalog_names(kind, &names, &n, diags);
    if (status != STATUS_OK)
        return status;
    columns[kind](table);
    table_column(table, "also", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < n; i++) {
        char also[512];
        enum status row = add_row(table, kind, names[i], diags);
        catalog_also_text(aliases, kind, names[i], also, sizeof also);
        if (row == STATUS_OK)
            table_cell(table, "%s", also);
        else
            status = row;
    }
    names_free(names);
    return status;
}
