/* Adapters, in the words of those who train them: Hugging Face's peft, LLaMA-Factory, Axolotl, NeMo and Megatron-Bridge. */
#include <ctype.h>
#include <stdlib.h>
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

/* Is a module called so, perhaps by a path, or a pattern, that ends in it? */
static bool is_called(const char *name, const char *ending)
{
    size_t n = strlen(name), end = strlen(ending);
    return n >= end && strcmp(name + n - end, ending) == 0 && (n == end || name[n - end - 1] == '.' || name[n - end - 1] == '*');
}

/* 0: none of them. */
static unsigned parts_of(struct meaning *m, const char *name)
{
    const char *model = m->description->job.model.name;
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        const char *family = modules[i].family;
        if (is_called(name, modules[i].name) && (!family || strncmp(model, family, strlen(family)) == 0))
            return modules[i].parts;
    }
    return 0;
}

/* Is a path that of a layer by its number: model.layers.3.self_attn.q_proj? */
static bool is_of_a_layer(const char *name)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t n = strspn(dot + 1, "0123456789");
        if (n > 0 && dot[n + 1] == '.')
            return true;
    }
    return false;
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

/* Names of the token table and of the output matrix. */
static const struct {
    const char *name;
    enum adapter_whole whole;
} tables[] = {{"embed_tokens", WHOLE_EMBEDDING},   {"wte", WHOLE_EMBEDDING},        {"word_embeddings", WHOLE_EMBEDDING},
              {"embed_in", WHOLE_EMBEDDING},       {"embeddings", WHOLE_EMBEDDING}, {"embedding", WHOLE_EMBEDDING},
              {"tok_embeddings", WHOLE_EMBEDDING}, {"lm_head", WHOLE_HEAD},         {"embed_out", WHOLE_HEAD},
              {"output_layer", WHOLE_HEAD},        {"output", WHOLE_HEAD}};

/* The bit of a table; 0: it is called otherwise. */
static uint32_t table_of(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (is_called(name, tables[i].name))
            return (uint32_t)1 << tables[i].whole;
    return 0;
}

/* Modules trained whole beside adapters. */
static uint32_t read_whole(struct meaning *m)
{
    const char *text = meaning_has(m, ARGUMENT_ADAPTER_WHOLE) ? meaning_text(m, ARGUMENT_ADAPTER_WHOLE) : "";
    uint32_t whole = 0;
    char name[64];
    for (const char *p = text; (p = next_name(p, name, sizeof name)) != NULL;) {
        uint32_t table = table_of(name);
        whole |= table;
        if (!table && strcmp(name, "None") != 0 && strcmp(name, "null") != 0)
            meaning_not_modelled(m, ARGUMENT_ADAPTER_WHOLE, "'%s' is trained whole; msim has that of embedding and head alone",
                                 name);
    }
    if (whole)
        meaning_from(m, "job.adapter.whole", ARGUMENT_ADAPTER_WHOLE);
    return whole;
}

/* peft trains a copy of each module that it is told of (ModulesToSaveWrapper; from memory), and the other end of a table that was
 * both stays as it is: two matrices from then on, unless they are to stay one. */
static void part_tables(struct meaning *m)
{
    struct launch_job *job = &m->description->job;
    if (!job->model.tied_embeddings || !job->job.adapter.whole || meaning_true(m, ARGUMENT_ADAPTER_TIES))
        return;
    job->model.tied_embeddings = false;
    meaning_from(m, "model.tied_embeddings", ARGUMENT_ADAPTER_WHOLE);
    diag_note(
        m->diags, m->arguments->of[ARGUMENT_ADAPTER_WHOLE].at,
        "of embedding and head, which were one table, peft trains a copy of each that is named: they are apart from then on");
}

/* All that a target is made of, or, where that is more than what was said, all of it, which is told. */
static uint32_t target_of(struct meaning *m, unsigned parts, unsigned whole, enum adapter_target target)
{
    if (parts & whole && (parts & whole) != whole)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "beside some of what %s is made of; beside all of it is taken",
                             adapter_target_names[target]);
    return parts & whole ? (uint32_t)1 << target : 0;
}

/* Parts of the matrices of a list, those that are named alike in all layers. */
static unsigned parts_of_list(struct meaning *m, enum argument list)
{
    const char *text = meaning_text(m, list);
    bool excluded = list == ARGUMENT_ADAPTER_EXCLUDED, some = false;
    unsigned parts = 0;
    char name[96];
    for (const char *p = text ? text : ""; (p = next_name(p, name, sizeof name)) != NULL;) {
        unsigned more = parts_of(m, name);
        if (!more && !(excluded && table_of(name)))
            meaning_not_modelled(m, list, "'%s' is none of the matrices that have adapters in msim", name);
        bool of_layer = is_of_a_layer(name);
        some |= of_layer;
        parts |= excluded && of_layer ? 0 : more;
    }
    if (some)
        meaning_not_modelled(m, list, "matrices of some layers; all layers are taken, with their adapters' weights and time");
    return parts;
}

static uint32_t read_targets(struct meaning *m)
{
    const struct transformer *model = &m->description->job.model;
    unsigned parts = parts_of_list(m, ARGUMENT_ADAPTER_TARGETS);
    if (meaning_has(m, ARGUMENT_ADAPTER_EXCLUDED))
        parts &= ~parts_of_list(m, ARGUMENT_ADAPTER_EXCLUDED);
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

/* Numbers of a list, from 0 on or, as NeMo 1 has them, from 1; 0 where they are others than layers. */
static int count_layers(struct meaning *m, enum argument list)
{
    const char *text = meaning_text(m, list);
    int n = 0, layers = m->description->job.model.layers;
    char name[24];
    for (const char *p = text ? text : ""; (p = next_name(p, name, sizeof name)) != NULL; n++) {
        char *end;
        long layer = strtol(name, &end, 10);
        if (*end || layer < 0 || layer > layers)
            return 0;
    }
    return n;
}

static void tell_layers(struct meaning *m)
{
    int n = count_layers(m, ARGUMENT_ADAPTER_LAYERS), layers = m->description->job.model.layers;
    if (!meaning_has(m, ARGUMENT_ADAPTER_LAYERS) || n >= layers)
        return;
    if (n > 0)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_LAYERS,
                             "adapters of %d of %d layers; all layers are taken, with their adapters' weights and time", n,
                             layers);
    else
        meaning_not_modelled(m, ARGUMENT_ADAPTER_LAYERS,
                             "adapters of some layers; all layers are taken, with their adapters' weights and time");
}

/* Biases of a layer's matrices of these parts. */
static double biases_of(const struct transformer *model, unsigned parts)
{
    double heads = (double)model->heads * model->head_dim, pairs = (double)model->kv_heads * model->head_dim;
    bool qkv = model->linear_bias || model->qkv_bias, rest = model->linear_bias;
    const struct {
        unsigned part;
        double width;
    } biases[] = {{Q, qkv ? heads : 0},
                  {K, qkv ? pairs : 0},
                  {V, qkv ? pairs : 0},
                  {O, rest ? (double)model->hidden : 0},
                  {GATE, rest && model->gated_mlp ? (double)model->ffn_hidden : 0},
                  {UP, rest ? (double)model->ffn_hidden : 0},
                  {DOWN, rest ? (double)model->hidden : 0}};
    double sum = 0;
    for (size_t i = 0; i < sizeof biases / sizeof biases[0]; i++)
        sum += parts & biases[i].part ? biases[i].width : 0;
    return sum;
}

/* bias: all of the model's, or those of matrices that have adapters. */
static void tell_biases(struct meaning *m)
{
    const struct transformer *model = &m->description->job.model;
    if (meaning_is(m, ARGUMENT_ADAPTER_BIAS, "none") || !meaning_has(m, ARGUMENT_ADAPTER_BIAS))
        return;
    bool all = meaning_is(m, ARGUMENT_ADAPTER_BIAS, "all");
    unsigned parts = 0;
    char name[96];
    const char *text = meaning_text(m, ARGUMENT_ADAPTER_TARGETS);
    for (const char *p = text ? text : ""; (p = next_name(p, name, sizeof name)) != NULL;)
        parts |= parts_of(m, name);
    double norms = all && model->norm == NORM_LAYER ? 2 * (double)model->hidden : 0;
    double biases = model->layers * (biases_of(model, all ? ~0u : parts) + norms);
    if (biases > 0)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_BIAS,
                             "%.3g M biases are trained, too: sums over all tokens, gradients and optimizer states of them",
                             biases / 1e6);
}

/* Its TrainableTokensLayer, from memory: index_copy of the rows into the table, which embeds then. */
static void tell_tokens(struct meaning *m)
{
    const struct transformer *model = &m->description->job.model;
    if (meaning_has(m, ARGUMENT_ADAPTER_TOKENS))
        meaning_not_modelled(
            m, ARGUMENT_ADAPTER_TOKENS,
            "rows of the embedding are trained, for which each pass copies all of it and has its whole gradient: "
            "%.3g GiB each",
            2.0 * (double)model->vocab * (double)model->hidden / 1073741824.0);
}

/* What of a kind of LoRA msim leaves out. */
static void tell_method(struct meaning *m, enum method method)
{
    bool magnitudes = meaning_true(m, ARGUMENT_ADAPTER_DORA);
    const char *dropout = meaning_text(m, ARGUMENT_ADAPTER_DROPOUT);
    if (method == QUANTIZED_LORA && !meaning_has(m, ARGUMENT_TOLD_QUANTIZED))
        meaning_not_modelled(m, ARGUMENT_ADAPTER, "the frozen weights are kept in 4 bits; 16 are taken");
    if (method == MAGNITUDE_LORA || magnitudes)
        meaning_not_modelled(m, magnitudes ? ARGUMENT_ADAPTER_DORA : ARGUMENT_ADAPTER,
                             "every pass takes norms of the weights with their adapters (DoRA); LoRA is taken");
    if (meaning_has(m, ARGUMENT_ADAPTER_RANKS))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_RANKS, "ranks that differ by module; one for all is taken");
    if (dropout && strtod(dropout, NULL) > 0)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_DROPOUT,
                             "each adapter reads, and keeps, its own copy of its input with a mask: 3 bytes a value");
    if (meaning_has(m, ARGUMENT_ADAPTER_PARAMETERS))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_PARAMETERS, "adapters of parameters by name, such as experts'; none are taken");
    if (meaning_has(m, ARGUMENT_ADAPTER_REPLICATION))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_REPLICATION, "layers stand there several times; once is taken");
    if (meaning_true(m, ARGUMENT_ADAPTER_SHARING))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_SHARING, "layers share their adapters' weights; each is taken to have its own");
    if (meaning_true(m, ARGUMENT_ADAPTER_OWN_BIAS))
        meaning_not_modelled(m, ARGUMENT_ADAPTER_OWN_BIAS, "adapters with biases; none are taken");
    tell_layers(m);
    tell_biases(m);
    tell_tokens(m);
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
    part_tables(m);
    meaning_from(m, "job.adapter.rank", ARGUMENT_ADAPTER_RANK);
    meaning_from(m, "job.adapter.targets", ARGUMENT_ADAPTER_TARGETS);
}
