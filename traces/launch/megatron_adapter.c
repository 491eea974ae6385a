/* Adapters, in the words of those who train them: Hugging Face's peft, LLaMA-Factory, Axolotl, NeMo and Megatron-Bridge. */
#include <ctype.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/megatron_reading.h"

/* Matrices as they are apart. */
enum { Q = 1, K = 2, V = 4, O = 8, GATE = 16, UP = 32, DOWN = 64 };
enum { QKV = Q | K | V, MLP_UP = GATE | UP };

/* Names of modules, or what they end in behind a dot. Where two rows have a name, the first whose family begins the model's name
 * in the catalog is meant: GPT-2's layers call two matrices c_proj, StarCoder2's one. Not checked. */
static const struct {
    const char *name;
    unsigned parts;
    const char *family; /* NULL: any */
} modules[] = {
    {"q_proj", Q, NULL},
    {"k_proj", K, NULL},
    {"v_proj", V, NULL},
    {"o_proj", O, NULL},
    {"gate_proj", GATE, NULL},
    {"up_proj", UP, NULL},
    {"down_proj", DOWN, NULL},
    {"q_a_proj", Q, NULL},
    {"q_b_proj", Q, NULL},
    {"kv_a_proj_with_mqa", K | V, NULL},
    {"kv_b_proj", K | V, NULL},
    {"qkv_proj", QKV, NULL},
    {"gate_up_proj", MLP_UP, NULL},
    {"query_key_value", QKV, NULL}, /* GPT-NeoX, Falcon, BLOOM, ChatGLM */
    {"dense", O, NULL},             /* theirs, and Phi's */
    {"dense_h_to_4h", MLP_UP, NULL},
    {"dense_4h_to_h", DOWN, NULL},
    {"Wqkv", QKV, NULL}, /* MPT, DBRX */
    {"out_proj", O, NULL},
    {"v1", UP, NULL},
    {"fc1", MLP_UP, NULL}, /* OPT, Phi */
    {"fc2", DOWN, NULL},
    {"fc_in", MLP_UP, NULL}, /* GPT-J */
    {"fc_out", DOWN, NULL},
    {"c_attn", QKV, NULL}, /* GPT-2, Qwen */
    {"c_fc", MLP_UP, NULL},
    {"attn.c_proj", O, NULL},
    {"mlp.c_proj", DOWN, NULL},
    {"c_proj", DOWN, "starcoder2"},
    {"c_proj", O | DOWN, NULL},
    {"w1", GATE, NULL}, /* Meta's own names, InternLM2 */
    {"w2", DOWN, NULL},
    {"w3", UP, NULL},
    {"wq", Q, NULL},
    {"wk", K, NULL},
    {"wv", V, NULL},
    {"wo", O, NULL},
    {"wqkv", QKV, NULL},
    {"W_pack", QKV, NULL}, /* Baichuan */
    {"linear_qkv", QKV, NULL},
    {"linear_q", Q, NULL},
    {"linear_k", K, NULL},
    {"linear_v", V, NULL},
    {"linear_q_proj", Q, NULL},
    {"linear_q_down_proj", Q, NULL},
    {"linear_q_up_proj", Q, NULL},
    {"linear_kv_down_proj", K | V, NULL},
    {"linear_kv_up_proj", K | V, NULL},
    {"linear_proj", O, NULL},
    {"linear_fc1", MLP_UP, NULL},
    {"linear_fc1_gate", GATE, NULL},
    {"linear_fc1_up", UP, NULL},
    {"linear_fc2", DOWN, NULL},
    {"attention_qkv", QKV, NULL},
    {"attention_dense", O, NULL},
    {"mlp_fc1", MLP_UP, NULL},
    {"mlp_fc2", DOWN, NULL},
    {"attention", QKV | O, NULL},
    {"mlp", MLP_UP | DOWN, NULL},
    {"all", QKV | O | MLP_UP | DOWN, NULL},
    {"all-linear", QKV | O | MLP_UP | DOWN, NULL},
};

/* Is a module called so, perhaps by a path that ends in it? */
static bool is_called(const char *name, const char *ending)
{
    size_t n = strlen(name), end = strlen(ending);
    return n >= end && strcmp(name + n - end, ending) == 0 && (n == end || name[n - end - 1] == '.');
}

static unsigned parts_of(struct meaning *m, const char *name)
{
    const char *model = m->description->job.model.name;
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        const char *family = modules[i].family;
        if (is_called(name, modules[i].name) && (!family || strncmp(model, family, strlen(family)) == 0))
            return modules[i].parts;
    }
    meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "'%s' is none of the matrices that have adapters in msim", name);
    return 0;
}

/* The next of the names of a list, from p; NULL behind the last. */
static const char *next_name(const char *p, char *name, size_t size)
{
    static const char between[] = " ,;'\"[]";
    p += strspn(p, between);
    size_t n = strcspn(p, between);
    snprintf(name, size, "%.*s", (int)n, p);
    return n ? p + n : NULL;
}

/* Modules trained whole beside adapters. */
static uint32_t read_whole(struct meaning *m)
{
    static const struct {
        const char *name;
        enum adapter_whole whole;
    } known[] = {{"embed_tokens", WHOLE_EMBEDDING},   {"wte", WHOLE_EMBEDDING},        {"word_embeddings", WHOLE_EMBEDDING},
                 {"embed_in", WHOLE_EMBEDDING},       {"embeddings", WHOLE_EMBEDDING}, {"embedding", WHOLE_EMBEDDING},
                 {"tok_embeddings", WHOLE_EMBEDDING}, {"lm_head", WHOLE_HEAD},         {"embed_out", WHOLE_HEAD},
                 {"output_layer", WHOLE_HEAD},        {"output", WHOLE_HEAD}};
    enum { N_KNOWN = sizeof known / sizeof known[0] };
    const char *text = meaning_has(m, ARGUMENT_ADAPTER_WHOLE) ? meaning_text(m, ARGUMENT_ADAPTER_WHOLE) : "";
    uint32_t whole = 0;
    char name[64];
    for (const char *p = text; (p = next_name(p, name, sizeof name)) != NULL;) {
        int i = 0;
        while (i < N_KNOWN && !is_called(name, known[i].name))
            i++;
        if (i < N_KNOWN)
            whole |= (uint32_t)1 << known[i].whole;
        else if (strcmp(name, "None") != 0 && strcmp(name, "null") != 0)
            meaning_not_modelled(m, ARGUMENT_ADAPTER_WHOLE, "'%s' is trained whole; msim has that of embedding and head alone",
                                 name);
    }
    if (whole)
        meaning_from(m, "job.adapter.whole", ARGUMENT_ADAPTER_WHOLE);
    return whole;
}

/* All that a target is made of, or, where that is more than what was said, all of it, which is told. */
static uint32_t target_of(struct meaning *m, unsigned parts, unsigned whole, enum adapter_target target)
{
    if (parts & whole && (parts & whole) != whole)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "beside some of what %s is made of; beside all of it is taken",
                             adapter_target_names[target]);
    return parts & whole ? (uint32_t)1 << target : 0;
}

static uint32_t read_targets(struct meaning *m)
{
    const struct transformer *model = &m->description->job.model;
    const char *text = meaning_text(m, ARGUMENT_ADAPTER_TARGETS);
    unsigned parts = 0;
    char name[64];
    for (const char *p = text ? text : ""; (p = next_name(p, name, sizeof name)) != NULL;)
        parts |= parts_of(m, name);
    uint32_t targets = target_of(m, parts, QKV, ADAPT_QKV) | target_of(m, parts, O, ADAPT_PROJECTION);
    uint32_t feed = target_of(m, parts, model->gated_mlp ? MLP_UP : UP, ADAPT_MLP_UP) | target_of(m, parts, DOWN, ADAPT_MLP_DOWN);
    if (feed && model->moe.experts)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "adapters of experts; those of attention are taken");
    return targets | (model->moe.experts ? 0 : feed);
}

enum method { NO_LORA, LORA, QUANTIZED_LORA, MAGNITUDE_LORA };

/* lora, qlora, or a class: nemo.collections.llm.peft.lora.LoRA. */
static enum method method_of(const char *text)
{
    static const struct {
        const char *word;
        enum method method;
    } known[] = {{"lora", LORA}, {"canonicallora", LORA}, {"qlora", QUANTIZED_LORA}, {"dora", MAGNITUDE_LORA}};
    const char *dot = strrchr(text, '.');
    char word[16];
    snprintf(word, sizeof word, "%s", dot ? dot + 1 : text);
    for (char *p = word; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(word, known[i].word) == 0)
            return known[i].method;
    return NO_LORA;
}

/* What of a kind of LoRA msim leaves out. */
static void tell_method(struct meaning *m, enum method method)
{
    bool magnitudes = meaning_true(m, ARGUMENT_ADAPTER_DORA);
    if (method == QUANTIZED_LORA && !meaning_has(m, ARGUMENT_TOLD_QUANTIZED))
        meaning_not_modelled(m, ARGUMENT_ADAPTER, "the frozen weights are kept in 4 bits; 16 are taken");
    if (method == MAGNITUDE_LORA || magnitudes)
        meaning_not_modelled(m, magnitudes ? ARGUMENT_ADAPTER_DORA : ARGUMENT_ADAPTER,
                             "every pass takes norms of the weights with their adapters (DoRA); LoRA is taken");
    if (meaning_has(m, ARGUMENT_ADAPTER_LAYERS))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_LAYERS, "adapters of some layers; all layers are taken");
    if (meaning_has(m, ARGUMENT_ADAPTER_RANKS))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_RANKS, "ranks that differ by module; one for all is taken");
}

/* Why msim cannot have adapters in this job; NULL: it can. */
static const char *obstacle_of(const struct launch_job *job, const struct adapter *adapter)
{
    if (adapter->rank == 0 || adapter->targets == 0)
        return "its rank, or beside which matrices, is not said";
    if (job->model.mtp_layers)
        return "it is not modelled beside prediction modules";
    if (transformer_is_hybrid(&job->model))
        return "it is not modelled for models with a pattern of layers";
    if (precision_is_narrow(job->job.precision))
        return "it is not modelled beside weights in so few bits";
    if (job->job.optimizer == OPTIMIZER_MUON)
        return "it is not modelled with Muon";
    if (!offload_is_none(&job->layout.offload))
        return "it is not modelled with offloading";
    return adapter->rank % job->layout.tp ? "tp does not divide its rank" : NULL;
}

void meaning_adapter(struct meaning *m)
{
    const char *text = meaning_has(m, ARGUMENT_ADAPTER) ? meaning_text(m, ARGUMENT_ADAPTER) : NULL;
    if (!text || !*text || strcmp(text, "None") == 0 || strcmp(text, "none") == 0 || strcmp(text, "null") == 0)
        return;
    enum method method = method_of(text);
    if (method == NO_LORA) {
        meaning_not_modelled(m, ARGUMENT_ADAPTER, "only an adapter's weights are trained");
        return;
    }
    const struct adapter adapter = {
        .rank = meaning_int(m, ARGUMENT_ADAPTER_RANK, 1, 0), .targets = read_targets(m), .whole = read_whole(m)};
    tell_method(m, method);
    const char *obstacle = obstacle_of(&m->description->job, &adapter);
    if (obstacle) {
        meaning_not_modelled(m, ARGUMENT_ADAPTER, "only an adapter's weights are trained; %s, so all are taken for trained",
                             obstacle);
        return;
    }
    m->description->job.job.adapter = adapter;
    meaning_from(m, "job.adapter.rank", ARGUMENT_ADAPTER_RANK);
    meaning_from(m, "job.adapter.targets", ARGUMENT_ADAPTER_TARGETS);
}
