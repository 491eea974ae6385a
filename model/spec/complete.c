/* complete.c - derive missing values and check whether values agree. */
#include <stdio.h>
#include <string.h>

#include "model/base/units.h"
#include "model/spec/entry.h"

static void complete_name(char *name, const char *kind)
{
    if (!*name)
        snprintf(name, NAME_SIZE, "%s", kind);
}

/* Whether whoever wrote the mapping wrote this key, in its file or as a flag; not what the mapping is laid over. */
static bool is_written_here(const struct yaml_node *mapping, const struct yaml_node *child)
{
    return child->at.line == 0 || (mapping->at.file && strcmp(child->at.file, mapping->at.file) == 0);
}

/* Where to look for what is wrong between two keys: at the first, unless that is of a `base` which the second was laid over. */
static struct place place_of_pair(const struct yaml_node *mapping, const char *key, const char *other)
{
    const struct yaml_node *first = yaml_find(mapping, key), *second = yaml_find(mapping, other);
    bool laid_over = first && second && !is_written_here(mapping, first) && is_written_here(mapping, second);
    return yaml_place(mapping, laid_over ? other : key);
}

/* Reports an error where no layer has experts, at the key that leaves none, by the name that its file uses. */
static void check_some_mixture(const struct transformer *m, const struct yaml_node *moe, struct diags *diags)
{
    const struct yaml_node *key = yaml_find(moe, m->moe.first_dense_layers >= m->layers ? "first_dense_layers" : "every");
    for (int layer = 0; layer < m->layers; layer++)
        if (layer_is_mixture(m, layer))
            return;
    const char *name = !key ? "" : key->alias ? key->alias : key->key;
    diag_error(diags, key ? key->at : moe->at,
               "%s%sno layer is a mixture: the model has %d layers%s%s, the first %d stay dense, then one in %d", name,
               *name ? ": " : "", m->layers, transformer_is_hybrid(m) ? " by the pattern " : "", m->layer_pattern,
               m->moe.first_dense_layers, m->moe.every);
}

static void check_mixture(const struct transformer *m, const struct yaml_node *tree, struct diags *diags)
{
    const struct yaml_node *moe = yaml_find(tree, "moe");
    if (m->moe.experts == 0 || !moe)
        return;
    if (m->moe.top_k > m->moe.experts)
        diag_error(diags, place_of_pair(moe, "top_k", "experts"), "top_k: %d experts per token exceed the %d experts",
                   m->moe.top_k, m->moe.experts);
    if (m->moe.top_groups > m->moe.groups && m->moe.groups == 0)
        diag_error(diags, place_of_pair(moe, "top_groups", "groups"),
                   "top_groups: %d without groups; without groups of experts, set both to 0: `moe: {groups: 0, top_groups: 0}`",
                   m->moe.top_groups);
    else if (m->moe.top_groups > m->moe.groups)
        diag_error(diags, place_of_pair(moe, "top_groups", "groups"), "top_groups: %d exceeds the %d groups", m->moe.top_groups,
                   m->moe.groups);
    if (m->moe.groups > 0 && m->moe.experts % m->moe.groups != 0)
        diag_error(diags, place_of_pair(moe, "groups", "experts"), "groups: %d experts cannot be divided into %d equal groups",
                   m->moe.experts, m->moe.groups);
    check_some_mixture(m, moe, diags);
}

/* What all letters of a pattern ask for is there. */
static bool pattern_is_known(const struct transformer *m, const struct place at, struct diags *diags)
{
    for (const char *letter = m->layer_pattern; *letter; letter++) {
        if (!strchr(layer_letters, *letter)) {
            diag_error(diags, at,
                       "layer_pattern: letter %d is '%c'; it must be a, m, p (a mixer and a feed-forward part), or *, M, -, E "
                       "(one of them alone)",
                       (int)(letter - m->layer_pattern) + 1, *letter);
            return false;
        }
        const bool mixes = strchr("mMp", *letter) != NULL;
        if ((mixes && !m->mixer.heads) || (*letter == 'E' && !m->moe.experts)) {
            diag_error(diags, at, "layer_pattern: letter %d is '%c', which needs the group '%s'",
                       (int)(letter - m->layer_pattern) + 1, *letter, mixes ? "mixer" : "moe");
            return false;
        }
    }
    return true;
}

static void check_pattern(const struct transformer *m, const struct yaml_node *tree, struct diags *diags)
{
    const struct place at = yaml_place(tree, "layer_pattern");
    int period = (int)strlen(m->layer_pattern);
    if (m->mixer.heads && !strpbrk(m->layer_pattern, "mMp"))
        diag_error(diags, yaml_place(tree, "mixer"), "mixer: no layer uses it; add `layer_pattern`, such as mmma");
    if (!period || !pattern_is_known(m, at, diags))
        return;
    if (m->layers % period)
        diag_error(diags, at, "layer_pattern: %d letters, repeated, do not add up to %d layers", period, m->layers);
}

static void complete_mixer(struct state_mixer *mixer, const struct yaml_node *tree, struct diags *diags)
{
    bool delta = mixer->kind == MIXER_GATED_DELTA || mixer->kind == MIXER_KIMI_DELTA;
    if (!mixer->heads)
        return;
    if (!mixer->groups)
        mixer->groups = mixer->heads;
    if (!mixer->chunk) /* mamba_ssm's and Lightning Attention's block; flash-linear-attention's */
        mixer->chunk = delta ? 64 : 256;
    if (mixer->heads % mixer->groups)
        diag_error(diags, yaml_place(yaml_find(tree, "mixer"), "groups"),
                   "groups: %d heads cannot be divided into %d equal groups", mixer->heads, mixer->groups);
}

void transformer_complete(struct transformer *model, const struct yaml_node *tree, struct diags *diags)
{
    complete_name(model->name, "model");
    if (!*model->source)
        snprintf(model->source, SOURCE_SIZE, "given in place");
    if (!model->kv_heads)
        model->kv_heads = model->heads;
    if (!model->ffn_hidden) /* where every layer is a mixture nothing has this width */
        model->ffn_hidden = model->moe.experts ? model->moe.expert_ffn : 4 * model->hidden;
    if (!model->head_dim && model->attention == ATTENTION_LATENT)
        model->head_dim = model->latent.v_dim;
    if (!model->head_dim && model->hidden % model->heads == 0)
        model->head_dim = (int)(model->hidden / model->heads);
    if (!model->head_dim)
        diag_error(diags, place_of_pair(tree, "heads", "hidden"),
                   "heads: hidden %lld is not a multiple of %d heads; change one, or specify head_dim", (long long)model->hidden,
                   model->heads);
    if (model->heads % model->kv_heads != 0)
        diag_error(diags, place_of_pair(tree, "kv_heads", "heads"), "kv_heads: %d heads cannot share %d key/value heads evenly",
                   model->heads, model->kv_heads);
    if (model->attention == ATTENTION_LATENT && !model->latent.kv_lora_rank)
        diag_error(diags, yaml_place(tree, "attention"), "attention: latent attention needs the group 'latent'");
    if (model->attention != ATTENTION_LATENT && model->latent.kv_lora_rank)
        diag_error(diags, yaml_place(tree, "latent"), "latent: this group needs `attention: latent`");
    check_mixture(model, tree, diags);
    complete_mixer(&model->mixer, tree, diags);
    check_pattern(model, tree, diags);
}

/* A precision with a peak but no fit of its own borrows that of its nearest kin. */
static void complete_gemm(struct gpu *gpu)
{
    static const enum precision kin[N_PRECISIONS][2] = {
        [PRECISION_FP32] = {PRECISION_BF16, PRECISION_FP16}, [PRECISION_BF16] = {PRECISION_FP16, PRECISION_FP16},
        [PRECISION_FP16] = {PRECISION_BF16, PRECISION_BF16}, [PRECISION_FP8] = {PRECISION_BF16, PRECISION_FP16},
        [PRECISION_MXFP8] = {PRECISION_FP8, PRECISION_BF16}, [PRECISION_NVFP4] = {PRECISION_FP8, PRECISION_BF16},
    };
    struct gemm_parameters given[N_PRECISIONS];
    memcpy(given, gpu->gemm, sizeof given);
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 2 && gpu->peak_flops[p] > 0 && gpu->gemm[p].peak_fraction <= 0; k++)
            gpu->gemm[p] = given[kin[p][k]];
}

void gpu_complete(struct gpu *gpu, const struct yaml_node *tree, struct diags *diags)
{
    complete_name(gpu->name, "gpu");
    if (!*gpu->source)
        snprintf(gpu->source, SOURCE_SIZE, "given in place");
    complete_gemm(gpu);
    bool any = false;
    for (int p = 0; p < N_PRECISIONS; p++) {
        any = any || (p != PRECISION_FP32 && gpu->peak_flops[p] > 0);
        if (gpu->peak_flops[p] > 0 && gpu->gemm[p].peak_fraction <= 0)
            diag_error(diags, yaml_place(tree, "gemm"), "gemm: no entry for %s, which has a peak", precision_name(p));
    }
    if (!any)
        diag_error(diags, yaml_place(tree, "peak"), "peak: no training precision is given; add one, such as bf16, fp16 or fp8");
}

/* Oversubscription above the last layer of switches is nobody's. */
static void warn_of_layers(const struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    bool leaf = c->leaf_oversubscription < 1 || c->leaf_oversubscription > 1;
    bool pod = c->pod_oversubscription < 1 || c->pod_oversubscription > 1;
    if (c->fabric_layers < 2 && leaf)
        diag_warning(diags, yaml_place(tree, "leaf_oversubscription"),
                     "leaf_oversubscription: no effect, because all nodes are under one layer of switches; for spines, set "
                     "`fabric_layers: 2`");
    if (c->fabric_layers < 3 && pod)
        diag_warning(diags, yaml_place(tree, "pod_oversubscription"),
                     "pod_oversubscription: no effect in a fabric of %d layer%s; use `leaf_oversubscription` between leaf and "
                     "spine, or set `fabric_layers: 3` for a core",
                     c->fabric_layers, c->fabric_layers == 1 ? "" : "s");
}

static void complete_fabric(struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    if (!c->nics_per_node)
        c->nics_per_node = c->gpus_per_node;
    if (c->nic_rate <= 0)
        c->nic_rate = c->gpu.nic_rate * c->gpus_per_node / c->nics_per_node;
    cluster_topology_complete(c, tree, diags);
    if (c->topology == TOPOLOGY_DRAGONFLY)
        return;
    if (!c->fabric_layers)
        c->fabric_layers = cluster_usual_layers(c->nodes);
    if (!c->leaf_nodes)
        c->leaf_nodes = c->fabric_layers == 1 || c->nodes < 32 ? c->nodes : 32;
    warn_of_layers(c, tree, diags);
}

static void complete_host(struct cluster *c)
{
    if (c->host_memory <= 0)
        c->host_memory = c->gpu.host_memory * c->gpus_per_node;
    if (c->host_memory_rate <= 0)
        c->host_memory_rate = c->gpu.host_memory_rate * c->gpus_per_node;
}

/* Nodes may be capped, but a slip of a unit is as likely. */
static void check_node_power(const struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    double boards = c->gpus_per_node * c->gpu.power_w;
    char node[32], all[32];
    if (c->node_power_w > 0 && c->node_power_w < boards)
        diag_warning(diags, yaml_place(tree, "node_power"),
                     "node_power: %s is less than the board power of its %d GPUs, %s; are the GPUs capped?",
                     quantity_format(c->node_power_w, DIM_POWER, node, sizeof node), c->gpus_per_node,
                     quantity_format(boards, DIM_POWER, all, sizeof all));
}

/* Where NVLink joins more GPUs than the usual host has, whole hosts, at least one, at most all; where it joins all of them, those
 * of this host, however many; where bridges join fewer, as many, or what divides the host. Of cards without any (1) PCIe, whose
 * rate they have in its place, joins the host. */
static int domain_of(const struct cluster *c)
{
    const int joined = c->gpu.nvlink_domain, gpn = c->gpus_per_node;
    if (joined > 1 && joined < c->gpu.gpus_per_node)
        return int_common_divisor(gpn, joined);
    int hosts = joined > c->gpu.gpus_per_node ? joined / gpn : 1;
    hosts = hosts < c->nodes ? hosts : c->nodes;
    return (hosts > 1 ? hosts : 1) * gpn;
}

void cluster_complete(struct cluster *cluster, const struct yaml_node *tree, struct diags *diags)
{
    if (!*cluster->name) /* after its nodes: one of them has this name in the catalog */
        snprintf(cluster->name, NAME_SIZE, "%.50s-node", cluster->gpu.name);
    if (!*cluster->source)
        snprintf(cluster->source, SOURCE_SIZE, "given in place");
    if (!cluster->gpus_per_node)
        cluster->gpus_per_node = cluster->gpu.gpus_per_node;
    int gpn = cluster->gpus_per_node;
    if (!cluster->nvlink_domain)
        cluster->nvlink_domain = domain_of(cluster);
    complete_fabric(cluster, tree, diags);
    complete_host(cluster);
    check_node_power(cluster, tree, diags);
    if (cluster->nvlink_domain % gpn != 0 && gpn % cluster->nvlink_domain != 0)
        diag_error(diags, yaml_place(tree, "nvlink_domain"),
                   "nvlink_domain: %d GPUs are neither a multiple nor a divisor of the %d GPUs per node", cluster->nvlink_domain,
                   gpn);
    if ((double)cluster->nodes * gpn > 16e6)
        diag_error(diags, yaml_place(tree, "nodes"), "nodes: %d nodes of %d GPUs are too many for msim", cluster->nodes, gpn);
    if (cluster->pod_nodes && cluster->pod_nodes < cluster->leaf_nodes)
        diag_error(diags, yaml_place(tree, "pod_nodes"), "pod_nodes: a pod of %d nodes is smaller than a leaf of %d",
                   cluster->pod_nodes, cluster->leaf_nodes);
    if (cluster->topology == TOPOLOGY_CLOS && cluster->fabric_layers < 3 && cluster->pod_nodes)
        diag_error(diags, yaml_place(tree, "pod_nodes"), "pod_nodes: pods need `fabric_layers: 3`");
}
