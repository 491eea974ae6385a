/* launch_machine.c - finds the cluster that a job runs on, and the catalog's model that it trains. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "model/spec/schemas.h"
#include "traces/launch/job/launch_write.h"

static int nodes_of(int gpus, int per_node)
{
    return gpus > per_node ? (gpus + per_node - 1) / per_node : 1;
}

static enum status find_by_gpu(const char *gpu, int gpus, int per_node, struct launch_machine *machine, struct diags *diags)
{
    struct cluster_kind kind;
    enum status status = cluster_kind_of_gpu(gpu, per_node, 0, &kind, diags);
    if (status != STATUS_OK)
        return status;
    machine->by_gpu = true;
    int usual = kind.like.gpus_per_node ? kind.like.gpus_per_node : kind.like.gpu.gpus_per_node;
    status = cluster_of_kind(&kind, nodes_of(gpus, usual), &machine->cluster, diags);
    if (kind.named) {
        snprintf(machine->base, sizeof machine->base, "%s", kind.like.name);
        machine->resized = machine->cluster.nodes != kind.like.nodes;
    }
    return status;
}

enum status launch_machine_find(const char *cluster, const char *gpu, int gpus, int per_node, struct launch_machine *machine,
                                struct diags *diags)
{
    *machine = (struct launch_machine){0};
    if (!cluster)
        return find_by_gpu(gpu, gpus, per_node, machine, diags);
    struct cluster *c = &machine->cluster;
    enum status status = catalog_cluster(cluster, c, diags);
    if (status == STATUS_OK && gpu)
        status = catalog_gpu(gpu, &c->gpu, diags);
    if (status != STATUS_OK)
        return status;
    snprintf(machine->base, sizeof machine->base, "%s", cluster);
    if (gpu)
        snprintf(machine->gpu, sizeof machine->gpu, "%s", gpu);
    if (gpus > cluster_gpus(c)) {
        c->nodes = nodes_of(gpus, c->gpus_per_node);
        machine->resized = true;
        diag_note(diags, PLACE_NONE, "%s has fewer GPUs than the job's %d; msim assumes %d nodes of its kind", cluster, gpus,
                  c->nodes);
    }
    if (per_node && per_node != c->gpus_per_node)
        diag_warning(diags, PLACE_NONE, "the job has %d GPUs per node, %s has %d; msim assumes those of %s", per_node, cluster,
                     c->gpus_per_node, cluster);
    return STATUS_OK;
}

/* The shape as it is written, without what frameworks change and what only describes, and with one way to say each thing. */
static json_t *shape_of(const struct transformer *model)
{
    static const char *const left_out[] = {
        "name", "source", "vocab", "max_seq_len", "rope_theta", "published_parameters", "published_active"};
    struct transformer m = *model;
    if (m.moe.experts && m.moe.first_dense_layers == 0 && m.moe.every <= 1)
        m.ffn_hidden = 0;
    if (m.moe.shared_experts && !m.moe.shared_ffn)
        m.moe.shared_ffn = m.moe.shared_experts * m.moe.expert_ffn;
    m.moe.shared_experts = 0;
    m.qkv_bias = m.qkv_bias || m.linear_bias;
    m.kv_heads = m.attention == ATTENTION_LATENT ? m.heads : m.kv_heads;
    if (!m.moe.experts)
        m.moe = (struct mixture){0};
    json_t *shape = schema_write(&transformer_schema, &m);
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        json_object_del(shape, left_out[i]);
    return shape;
}

bool launch_same_shape(const struct transformer *a, const struct transformer *b)
{
    json_t *x = shape_of(a), *y = shape_of(b);
    bool same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* How far the vocabulary and the longest sequence of a model of this shape are from those wanted. */
static double distance(const struct transformer *known, const struct transformer *model)
{
    return fabs((double)(known->vocab - model->vocab)) + (known->max_seq_len == model->max_seq_len ? 0 : 0.5);
}

void launch_catalog_name(const struct transformer *model, char *name, size_t size)
{
    char **names;
    size_t n;
    double nearest = HUGE_VAL;
    struct diags quiet = {0};
    json_t *wanted = shape_of(model);
    name[0] = '\0';
    if (catalog_names(CATALOG_MODELS, &names, &n, &quiet) == STATUS_OK) {
        for (size_t i = 0; i < n; i++) {
            struct transformer known;
            bool read = catalog_model(names[i], &known, &quiet) == STATUS_OK;
            if (!read || known.layers != model->layers || known.hidden != model->hidden || distance(&known, model) >= nearest)
                continue;
            json_t *shape = shape_of(&known);
            if (json_equal(shape, wanted)) {
                nearest = distance(&known, model);
                snprintf(name, size, "%s", names[i]);
            }
            json_decref(shape);
        }
        names_free(names);
    }
    json_decref(wanted);
    diags_free(&quiet);
}
