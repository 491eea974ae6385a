/* megatron_adapter.c - adapters as Hugging Face's peft, LLaMA-Factory, Axolotl, NeMo and Megatron-Bridge describe them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "traces/launch/megatron/adapter_modules.h"
#include "traces/launch/megatron/megatron_translate_internal.h"

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

/* peft's own names of lists; of one text, unless it is a plain name, it makes a pattern. NeMo's stars are others. */
static bool is_pattern(struct translation *m, enum argument list)
{
    static const char *const keys[] = {"target_modules", "lora_target_modules", "exclude_modules", "lora_exclude_modules"};
    const char *text = translate_has(m, list) ? translate_text(m, list) : "", *spelling = m->arguments->of[list].spelling;
    spelling += spelling ? strspn(spelling, "-") : 0;
    bool marks = strpbrk(text, "\\(|^$+?{") || strstr(text, ".*") || (*text && strchr(text + 1, '['));
    for (size_t i = 0; spelling && marks && !strchr(text, ' ') && i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(spelling, keys[i]) == 0)
            return true;
    return false;
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
        if (adapter_is_called(name, tables[i].name))
            return (uint32_t)1 << tables[i].whole;
    return 0;
}

/* Modules trained whole beside adapters. */
static uint32_t read_whole(struct translation *m)
{
    const char *text = translate_has(m, ARGUMENT_ADAPTER_WHOLE) ? translate_text(m, ARGUMENT_ADAPTER_WHOLE) : "";
    uint32_t whole = 0;
    char name[64];
    for (const char *p = text; (p = next_name(p, name, sizeof name)) != NULL;) {
        uint32_t table = table_of(name);
        whole |= table;
        if (!table && strcmp(name, "None") != 0 && strcmp(name, "null") != 0)
            translate_not_modelled(m, ARGUMENT_ADAPTER_WHOLE,
                                   "'%s' is fully trained; msim models that for embedding and head only", name);
    }
    if (whole)
        translate_from(m, "job.adapter.whole", ARGUMENT_ADAPTER_WHOLE);
    return whole;
}

/* peft trains a copy of each module that modules_to_save names (ModulesToSaveWrapper; from memory). Where embedding and head
 * share one table, the other end keeps the original: from then on they are two matrices, unless peft is to keep them tied. */
static void part_tables(struct translation *m)
{
    struct launch_job *job = &m->description->job;
    if (!job->model.tied_embeddings || !job->job.adapter.whole || translate_true(m, ARGUMENT_ADAPTER_TIES))
        return;
    job->model.tied_embeddings = false;
    translate_from(m, "model.tied_embeddings", ARGUMENT_ADAPTER_WHOLE);
    diag_note(m->diags, m->arguments->of[ARGUMENT_ADAPTER_WHOLE].at,
              "embedding and head were one table; peft trains a copy of each named one, so they are two tables");
}

/* The target where the arguments name at least one of its parts. msim models a target only as a whole: it reports where they do
 * not name all parts. */
static uint32_t target_of(struct translation *m, unsigned parts, unsigned whole, enum adapter_target target)
{
    if (parts & whole && (parts & whole) != whole)
        translate_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "adapters for parts of %s; msim assumes all of it",
                               adapter_target_names[target]);
    return parts & whole ? (uint32_t)1 << target : 0;
}

/* Parts of the matrices that match a pattern. */
static unsigned parts_of_pattern(struct translation *m, enum argument list)
{
    bool excluded = list == ARGUMENT_ADAPTER_EXCLUDED;
    struct adapter_match match;
    char why[160];
    if (!adapter_match(&m->description->job.model, translate_text(m, list), &match, why, sizeof why)) {
        translate_not_modelled(m, list, "the pattern cannot be read: %s; msim assumes no adapters for it", why);
        return 0;
    }
    if (match.table && !excluded)
        translate_not_modelled(m, list, "adapters of embedding or head; msim assumes those of layers only");
    if (!match.somewhere && !match.table)
        translate_not_modelled(m, list, "the pattern matches none of the model's modules, such as %s", match.example);
    if (match.somewhere != match.everywhere)
        translate_not_modelled(m, list,
                               "matrices of some layers; msim assumes all layers, with weights and time of their adapters");
    return excluded ? match.everywhere : match.somewhere;
}

/* Parts of the matrices of a list, those that are named alike in all layers. */
static unsigned parts_of_list(struct translation *m, enum argument list)
{
    const char *text = translate_text(m, list);
    bool excluded = list == ARGUMENT_ADAPTER_EXCLUDED, some = false;
    if (is_pattern(m, list))
        return parts_of_pattern(m, list);
    unsigned parts = 0;
    char name[96];
    for (const char *p = text ? text : ""; (p = next_name(p, name, sizeof name)) != NULL;) {
        unsigned more = adapter_parts(&m->description->job.model, name);
        if (!more && !(excluded && table_of(name)))
            translate_not_modelled(m, list, "'%s' is none of the matrices that have adapters in msim", name);
        bool of_layer = is_of_a_layer(name);
        some |= of_layer;
        parts |= excluded && of_layer ? 0 : more;
    }
    if (some)
        translate_not_modelled(m, list,
                               "matrices of some layers; msim assumes all layers, with weights and time of their adapters");
    return parts;
}

static uint32_t read_targets(struct translation *m)
{
    const struct transformer *model = &m->description->job.model;
    unsigned parts = parts_of_list(m, ARGUMENT_ADAPTER_TARGETS);
    if (translate_has(m, ARGUMENT_ADAPTER_EXCLUDED))
        parts &= ~parts_of_list(m, ARGUMENT_ADAPTER_EXCLUDED);
    uint32_t targets = target_of(m, parts, PART_QKV, ADAPT_QKV) | target_of(m, parts, PART_O, ADAPT_PROJECTION);
    uint32_t feed = target_of(m, parts, model->gated_mlp ? PART_MLP_UP : PART_UP, ADAPT_MLP_UP) |
                    target_of(m, parts, PART_DOWN, ADAPT_MLP_DOWN);
    if (feed && model->moe.experts)
        translate_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "adapters of experts; msim assumes those of attention only");
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
static int count_layers(struct translation *m, enum argument list)
{
    const char *text = translate_text(m, list);
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

static void tell_layers(struct translation *m)
{
    int n = count_layers(m, ARGUMENT_ADAPTER_LAYERS), layers = m->description->job.model.layers;
    if (!translate_has(m, ARGUMENT_ADAPTER_LAYERS) || n >= layers)
        return;
    if (n > 0)
        translate_not_modelled(m, ARGUMENT_ADAPTER_LAYERS,
                               "adapters of %d of %d layers; msim assumes all layers, with weights and time of their adapters", n,
                               layers);
    else
        translate_not_modelled(m, ARGUMENT_ADAPTER_LAYERS,
                               "adapters of some layers; msim assumes all layers, with weights and time of their adapters");
}

/* Biases of a layer's matrices of these parts. */
static double biases_of(const struct transformer *model, unsigned parts)
{
    double heads = (double)model->heads * model->head_dim, pairs = (double)model->kv_heads * model->head_dim;
    bool qkv = model->linear_bias || model->qkv_bias, rest = model->linear_bias;
    const struct {
        unsigned part;
        double width;
    } biases[] = {{PART_Q, qkv ? heads : 0},
                  {PART_K, qkv ? pairs : 0},
                  {PART_V, qkv ? pairs : 0},
                  {PART_O, rest ? (double)model->hidden : 0},
                  {PART_GATE, rest && model->gated_mlp ? (double)model->ffn_hidden : 0},
                  {PART_UP, rest ? (double)model->ffn_hidden : 0},
                  {PART_DOWN, rest ? (double)model->hidden : 0}};
    double sum = 0;
    for (size_t i = 0; i < sizeof biases / sizeof biases[0]; i++)
        sum += parts & biases[i].part ? biases[i].width : 0;
    return sum;
}

/* bias: all of the model's, or those of matrices that have adapters. */
static void tell_biases(struct translation *m)
{
    const struct transformer *model = &m->description->job.model;
    if (translate_is(m, ARGUMENT_ADAPTER_BIAS, "none") || !translate_has(m, ARGUMENT_ADAPTER_BIAS))
        return;
    bool all = translate_is(m, ARGUMENT_ADAPTER_BIAS, "all");
    unsigned parts = 0;
    char name[96];
    const char *text = translate_text(m, ARGUMENT_ADAPTER_TARGETS);
    struct adapter_match match;
    bool pattern = is_pattern(m, ARGUMENT_ADAPTER_TARGETS);
    if (pattern && adapter_match(model, text, &match, name, sizeof name))
        parts = match.somewhere;
    for (const char *p = text && !pattern ? text : ""; (p = next_name(p, name, sizeof name)) != NULL;)
        parts |= adapter_parts(model, name);
    double norms = all && model->norm == NORM_LAYER ? 2 * (double)model->hidden : 0;
    double biases = model->layers * (biases_of(model, all ? ~0u : parts) + norms);
    if (biases > 0)
        translate_not_modelled(m, ARGUMENT_ADAPTER_BIAS,
                               "%.3g M biases are trained, too: sums over all tokens, gradients and optimizer states of them",
                               biases / 1e6);
}

/* Its TrainableTokensLayer, from memory: index_copy of the rows into the table, which embeds then. */
static void tell_tokens(struct translation *m)
{
    const struct transformer *model = &m->description->job.model;
    if (translate_has(m, ARGUMENT_ADAPTER_TOKENS))
        translate_not_modelled(
            m, ARGUMENT_ADAPTER_TOKENS,
            "rows of the embedding are trained, for which each pass copies all of it and has its whole gradient: "
            "%.3g GiB each",
            2.0 * (double)model->vocab * (double)model->hidden / GIB);
}

/* What of a kind of LoRA msim leaves out. */
static void tell_method(struct translation *m, enum method method)
{
    bool magnitudes = translate_true(m, ARGUMENT_ADAPTER_DORA);
    const char *dropout = translate_text(m, ARGUMENT_ADAPTER_DROPOUT);
    if (method == QUANTIZED_LORA && !translate_has(m, ARGUMENT_TOLD_QUANTIZED))
        translate_not_modelled(m, ARGUMENT_ADAPTER, "the frozen weights are kept in 4 bits; msim assumes 16");
    if (method == MAGNITUDE_LORA || magnitudes)
        translate_not_modelled(m, magnitudes ? ARGUMENT_ADAPTER_DORA : ARGUMENT_ADAPTER,
                               "every pass computes norms of the weights with their adapters (DoRA); msim assumes LoRA");
    if (translate_has(m, ARGUMENT_ADAPTER_RANKS))
        translate_not_modelled(m, ARGUMENT_ADAPTER_RANKS, "ranks that differ by module; msim assumes one for all");
    if (dropout && strtod(dropout, NULL) > 0)
        translate_not_modelled(m, ARGUMENT_ADAPTER_DROPOUT,
                               "each adapter reads, and keeps, its own copy of its input with a mask: 3 bytes a value");
    if (translate_has(m, ARGUMENT_ADAPTER_PARAMETERS))
        translate_not_modelled(m, ARGUMENT_ADAPTER_PARAMETERS,
                               "adapters of parameters by name, such as experts'; msim assumes none");
    if (translate_has(m, ARGUMENT_ADAPTER_REPLICATION))
        translate_not_modelled(m, ARGUMENT_ADAPTER_REPLICATION, "layers appear several times; msim assumes once");
    if (translate_true(m, ARGUMENT_ADAPTER_SHARING))
        translate_not_modelled(m, ARGUMENT_ADAPTER_SHARING, "layers share their adapters' weights; msim assumes separate ones");
    if (translate_true(m, ARGUMENT_ADAPTER_OWN_BIAS))
        translate_not_modelled(m, ARGUMENT_ADAPTER_OWN_BIAS, "adapters with biases; msim assumes none");
    tell_layers(m);
    tell_biases(m);
    tell_tokens(m);
}

/* Why msim cannot have adapters in this job; NULL: it can. */
static const char *obstacle_of(const struct launch_job *job, const struct adapter *adapter)
{
    if (adapter->rank == 0 || adapter->targets == 0)
        return "its rank or its target matrices are not specified";
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

void translate_adapter(struct translation *m)
{
    const char *text = translate_has(m, ARGUMENT_ADAPTER) ? translate_text(m, ARGUMENT_ADAPTER) : NULL;
    if (!text || !*text || strcmp(text, "None") == 0 || strcmp(text, "none") == 0 || strcmp(text, "null") == 0)
        return;
    enum method method = method_of(text);
    if (method == NO_LORA) {
        translate_not_modelled(m, ARGUMENT_ADAPTER, "only an adapter's weights are trained");
        return;
    }
    const struct adapter adapter = {
        .rank = translate_int(m, ARGUMENT_ADAPTER_RANK, 1, 0), .targets = read_targets(m), .whole = read_whole(m)};
    tell_method(m, method);
    const char *obstacle = obstacle_of(&m->description->job, &adapter);
    if (obstacle) {
        translate_not_modelled(m, ARGUMENT_ADAPTER,
                               "only an adapter's weights are trained; %s, so msim assumes that all are trained", obstacle);
        return;
    }
    m->description->job.job.adapter = adapter;
    part_tables(m);
    translate_from(m, "job.adapter.rank", ARGUMENT_ADAPTER_RANK);
    translate_from(m, "job.adapter.targets", ARGUMENT_ADAPTER_TARGETS);
}
