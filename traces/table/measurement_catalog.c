/* measurement_catalog.c - finds a row's model by name and shape, and its cluster, in the catalog. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "traces/table/measurement_internal.h"

/* --- the model --- */

/* The catalog's model of the row's name, NULL when it has no name or one nobody knows. */
static const struct transformer *catalog_model_of_row(struct measurement_parser *parser)
{
    const char *name = parser_text(parser, COLUMN_MODEL);
    if (*name == '\0')
        return NULL;
    for (size_t i = 0; i < parser->n_models; i++)
        if (strcmp(parser->models[i].name, name) == 0)
            return parser->models[i].found ? &parser->models[i].model : NULL;
    struct known_model known = {.name = name};
    struct diags why = {0};
    known.found = catalog_model(name, &known.model, &why) == STATUS_OK;
    parser_pass_notes(parser, COLUMN_MODEL, &why);
    diags_free(&why);
    parser->models = memory_grow(parser->models, &parser->models_capacity, parser->n_models + 1, sizeof *parser->models);
    parser->models[parser->n_models++] = known;
    return known.found ? &parser->models[parser->n_models - 1].model : NULL;
}

struct measurement_shape parser_shape(struct measurement_parser *parser)
{
    return (struct measurement_shape){
        .layers = (int)parser_whole(parser, COLUMN_LAYERS, 1, 100000, 0),
        .heads = (int)parser_whole(parser, COLUMN_HEADS, 1, MAX_WIDTH, 0),
        .kv_heads = (int)parser_whole(parser, COLUMN_KV_HEADS, 1, MAX_WIDTH, 0),
        .gated = (int)parser_whole(parser, COLUMN_GATED_MLP, 0, 1, -1),
        .hidden = parser_whole(parser, COLUMN_HIDDEN, 1, MAX_WIDTH, 0),
        .ffn_hidden = parser_whole(parser, COLUMN_FFN_HIDDEN, 1, MAX_WIDTH, 0),
        .seq_len = parser_whole(parser, COLUMN_SEQ_LEN, 1, INT_MAX, 0),
        .vocab = parser_whole(parser, COLUMN_VOCAB, 1, INT_MAX, 0),
    };
}

/* What the columns say wins over the catalog. The widths of a mixture of experts are more than one number: they stay. */
static void model_override(struct transformer *model, const struct measurement_shape *shape)
{
    if (shape->layers)
        model->layers = shape->layers;
    if (shape->vocab)
        model->vocab = shape->vocab;
    if (model->moe.experts)
        return;
    bool same_heads = (!shape->hidden || shape->hidden == model->hidden) && (!shape->heads || shape->heads == model->heads);
    if (shape->hidden)
        model->hidden = shape->hidden;
    if (shape->ffn_hidden)
        model->ffn_hidden = shape->ffn_hidden;
    if (shape->gated >= 0)
        model->gated_mlp = shape->gated;
    if (shape->heads)
        model->heads = shape->heads;
    if (shape->kv_heads)
        model->kv_heads = shape->kv_heads;
    if (!same_heads)
        model->head_dim = (int)(model->hidden / model->heads);
}

static int64_t default_ffn(int64_t hidden, bool gated)
{
    enum { STEP = 256 };
    return gated ? (8 * hidden / 3 + STEP - 1) / STEP * STEP : 4 * hidden;
}

/* A dense model from its shape alone. */
static struct transformer model_of_shape(const struct measurement_shape *shape)
{
    enum { LEARNED_POSITIONS = 4096, VOCAB_LLAMA = 32000, VOCAB_GPT = 51200 };
    bool llama = shape->gated == 1 || (shape->kv_heads && shape->kv_heads < shape->heads);
    return (struct transformer){
        .layers = shape->layers,
        .hidden = shape->hidden,
        .ffn_hidden = shape->ffn_hidden ? shape->ffn_hidden : default_ffn(shape->hidden, shape->gated == 1),
        .gated_mlp = shape->gated == 1,
        .heads = shape->heads,
        .kv_heads = shape->kv_heads ? shape->kv_heads : shape->heads,
        .head_dim = (int)(shape->hidden / shape->heads),
        .vocab = shape->vocab ? shape->vocab
                 : llama      ? VOCAB_LLAMA
                              : VOCAB_GPT,
        .max_seq_len = shape->seq_len,
        .tied_embeddings = !llama,
        .linear_bias = !llama,
        .qkv_bias = !llama,
        .norm = llama ? NORM_RMS : NORM_LAYER,
        .position = llama                                ? POSITION_ROTARY
                    : shape->seq_len > LEARNED_POSITIONS ? POSITION_ALIBI
                                                         : POSITION_LEARNED,
        .attention = ATTENTION_GROUPED,
        .moe = {.every = 1},
    };
}

void parser_model(struct measurement_parser *parser, const struct measurement_shape *shape, struct transformer *model)
{
    const struct transformer *known = catalog_model_of_row(parser);
    const char *name = parser_text(parser, COLUMN_MODEL);
    if (known) {
        *model = *known;
        model_override(model, shape);
    } else if (shape->layers && shape->hidden && shape->heads) {
        *model = model_of_shape(shape);
        if (*name && (strcasestr(name, "moe") || parser_whole(parser, COLUMN_EP, 1, MAX_GPUS, 1) > 1))
            parser_warn_once(parser, COLUMN_MODEL, name,
                             "the catalog has no model '%.40s', and columns cannot say experts: without them it is a dense one",
                             name);
        snprintf(model->name, sizeof model->name, "%s", *name ? name : parser_text(parser, COLUMN_CASE));
        snprintf(model->source, sizeof model->source, "%s", parser_text(parser, COLUMN_SOURCE));
    } else if (*name) {
        parser_skip(parser, COLUMN_MODEL, "the catalog has no model '%.40s', and layers, hidden and heads do not say its shape",
                    name);
        return;
    } else {
        parser_skip(parser, COLUMN_LAYERS, "neither a model nor layers, hidden and heads");
        return;
    }
    if (model->heads <= 0 || (shape->hidden && shape->heads && !model->moe.experts && model->hidden % model->heads != 0))
        parser_skip(parser, COLUMN_HEADS, "hidden %lld is not divisible by %d heads", (long long)model->hidden, model->heads);
    else if (model->kv_heads <= 0 || model->heads % model->kv_heads != 0)
        parser_skip(parser, COLUMN_KV_HEADS, "%d heads are not divisible by %d key/value heads", model->heads, model->kv_heads);
}

/* --- the cluster --- */

/* What a name stands for where it is no GPU: a system of them that the catalog has (DGX-H100), itself where the row says neither
 * its nodes nor its network, else nodes of its GPU as they say. */
static enum status kind_of_system(const char *name, int per_node, double nic_rate, struct cluster_kind *kind, struct diags *diags)
{
    struct cluster system;
    struct diags quiet = {0};
    bool known = catalog_cluster(name, &system, &quiet) == STATUS_OK;
    diags_free(&quiet);
    if (!known)
        return cluster_kind_of_gpu(name, per_node, nic_rate, kind, diags); /* which says why not */
    if (!per_node && nic_rate <= 0 && system.topology == TOPOLOGY_CLOS) {
        *kind = (struct cluster_kind){.like = system, .named = true};
        return STATUS_OK;
    }
    diag_note(diags, PLACE_NONE, "%.40s: its GPU is taken, %s, in nodes and a network as the row says or as are usual", name,
              system.gpu.name);
    return cluster_kind_of_gpu(system.gpu.name, per_node ? per_node : system.gpus_per_node, nic_rate, kind, diags);
}

/* `per_node` 0: as the usual host has. */
static enum status kind_named(const char *name, int per_node, double nic_rate, struct cluster_kind *kind, struct diags *diags)
{
    struct diags quiet = {0};
    struct gpu gpu;
    bool is_gpu = catalog_gpu(name, &gpu, &quiet) == STATUS_OK;
    diags_free(&quiet);
    return is_gpu ? cluster_kind_of_gpu(name, per_node, nic_rate, kind, diags)
                  : kind_of_system(name, per_node, nic_rate, kind, diags);
}

/* The cluster of the row's GPU and network, built once for all rows that have the same. */
static struct known_cluster *known_cluster(struct measurement_parser *parser, const char *gpu, int per_node, double nic_rate)
{
    for (size_t i = 0; i < parser->n_clusters; i++) {
        struct known_cluster *k = &parser->clusters[i];
        bool same_network = !(k->nic_rate < nic_rate) && !(k->nic_rate > nic_rate);
        if (k->per_node == per_node && same_network && strcmp(k->gpu, gpu) == 0)
            return k;
    }
    parser->clusters =
        memory_grow(parser->clusters, &parser->clusters_capacity, parser->n_clusters + 1, sizeof *parser->clusters);
    struct known_cluster *k = &parser->clusters[parser->n_clusters++];
    *k = (struct known_cluster){.gpu = gpu, .per_node = per_node, .nic_rate = nic_rate};
    struct diags why = {0}; /* the catalog's error becomes the row's warning */
    k->found = kind_named(gpu, per_node, nic_rate, &k->kind, &why) == STATUS_OK;
    if (!k->found)
        snprintf(k->why, sizeof k->why, "%s", why.n_items ? why.items[0].text : "not in the catalog");
    bool seen = false;
    for (size_t i = 0; i + 1 < parser->n_clusters; i++)
        seen |= strcmp(parser->clusters[i].gpu, gpu) == 0;
    k->reported = seen && !k->found;
    if (!seen)
        parser_pass_notes(parser, COLUMN_GPU, &why);
    diags_free(&why);
    return k;
}

void parser_cluster(struct measurement_parser *parser, struct measurement *row)
{
    int per_node = (int)parser_whole(parser, COLUMN_GPUS_PER_NODE, 1, 1024, 0);
    double nic_gbps = parser_number(parser, COLUMN_NIC_GBPS, 0, 1e6);
    const char *gpu = parser_text(parser, COLUMN_GPU);
    if (*gpu == '\0') {
        parser_skip(parser, COLUMN_GPU, "no gpu is named");
    } else if (row->gpus) {
        struct known_cluster *known = known_cluster(parser, gpu, per_node, nic_gbps * 1e9 / 8);
        int node = known->found ? known->kind.like.gpus_per_node : 1;
        struct diags why = {0};
        if (known->found && cluster_of_kind(&known->kind, (row->gpus + node - 1) / node, &row->cluster, &why) != STATUS_OK)
            parser_skip(parser, COLUMN_GPU, "%s", why.n_items ? why.items[0].text : "no cluster of this size");
        diags_free(&why);
        if (!known->found && !known->reported)
            parser_skip(parser, COLUMN_GPU, "%s (all rows of this GPU)", known->why);
        known->reported = true;
        parser->unusable |= !known->found;
    }
}
