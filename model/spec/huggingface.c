/*
 * huggingface.c - read a Hugging Face config.json, as downloaded, as a model entry.
 *
 * A family is a table that renames its keys and adds the values that its code has fixed. Renamed values keep their place and
 * their name in the file, so that the schema finds and reports mistakes in them. Keys that no table has are ignored, because
 * most of a configuration is about inference. Names and meanings: the configuration classes of the transformers library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/units.h"
#include "model/spec/entry.h"

struct rename {
    const char *theirs, *ours;
    bool required;
};

static const struct rename gpt2_keys[] = {
    {"n_layer", "layers", true},
    {"n_embd", "hidden", true},
    {"n_head", "heads", true},
    {"n_inner", "ffn_hidden", false},
    {"n_positions", "max_seq_len", true},
    {"vocab_size", "vocab", true},
    {"tie_word_embeddings", "tied_embeddings", false},
    {0},
};

/* Every family since LLaMA. */
static const struct rename common_keys[] = {
    {"num_hidden_layers", "layers", true},
    {"hidden_size", "hidden", true},
    {"num_attention_heads", "heads", true},
    {"vocab_size", "vocab", true},
    {"max_sequence_length", "max_seq_len", false}, /* what the first LLaMA's files called it */
    {"max_position_embeddings", "max_seq_len", true},
    {"rope_theta", "rope_theta", false},
    {"rope_parameters.rope_theta", "rope_theta", false}, /* since transformers 5 */
    {"tie_word_embeddings", "tied_embeddings", false},
    {0},
};
static const struct rename dense_keys[] = {{"intermediate_size", "ffn_hidden", true}, {0}};
static const struct rename grouped_keys[] = {{"num_key_value_heads", "kv_heads", false}, {"head_dim", "head_dim", false}, {0}};
static const struct rename bias_keys[] = {{"attention_bias", "qkv_bias", false}, {0}};
static const struct rename window_keys[] = {{"sliding_window", "window", false}, {0}};
static const struct rename limit_keys[] = {{"swiglu_limit", "mlp_limit", false}, {0}};
/* Mixtral and gpt-oss: intermediate_size is that of an expert. */
static const struct rename local_expert_keys[] = {
    {"intermediate_size", "moe.expert_ffn", true},
    {"num_local_experts", "moe.experts", true},
    {"num_experts_per_tok", "moe.top_k", true},
    {0},
};
static const struct rename qwen_moe_keys[] = {
    {"num_experts", "moe.experts", true},
    {"num_experts_per_tok", "moe.top_k", true},
    {"moe_intermediate_size", "moe.expert_ffn", true},
    {"shared_expert_intermediate_size", "moe.shared_ffn", false},
    {"decoder_sparse_step", "moe.every", false},
    {0},
};
/* DeepSeek's attention, as Kimi has it too. */
static const struct rename latent_keys[] = {
    {"q_lora_rank", "latent.q_lora_rank", false},
    {"kv_lora_rank", "latent.kv_lora_rank", true},
    {"qk_nope_head_dim", "latent.qk_nope_dim", true},
    {"qk_rope_head_dim", "latent.qk_rope_dim", true},
    {"v_head_dim", "latent.v_dim", true},
    {0},
};
static const struct rename deepseek_keys[] = {
    {"n_routed_experts", "moe.experts", true},
    {"num_experts_per_tok", "moe.top_k", true},
    {"moe_intermediate_size", "moe.expert_ffn", true},
    {"n_shared_experts", "moe.shared_experts", false},
    {"n_group", "moe.groups", false},
    {"topk_group", "moe.top_groups", false},
    {"first_k_dense_replace", "moe.first_dense_layers", false},
    {"moe_layer_freq", "moe.every", false},
    {"num_nextn_predict_layers", "mtp_layers", false},
    {0},
};
static const struct rename llama4_keys[] = {
    {"intermediate_size", "moe.expert_ffn", true},     {"intermediate_size_mlp", "ffn_hidden", true},
    {"num_local_experts", "moe.experts", true},        {"num_experts_per_tok", "moe.top_k", true},
    {"interleave_moe_layer_step", "moe.every", false}, {0},
};

/* Hybrids. A mixer's keys are a family's own. */
static const struct rename nemotron_keys[] = {
    {"hybrid_override_pattern", "layer_pattern", true},
    {"mamba_num_heads", "mixer.heads", true},
    {"n_groups", "mixer.groups", true},
    {"ssm_state_size", "mixer.state", true},
    {"mamba_head_dim", "mixer.head_dim", true},
    {"conv_kernel", "mixer.conv", true},
    {"chunk_size", "mixer.chunk", false},
    {"attention_head_dim", "head_dim", false}, /* what the first ones' files called it */
    {"n_routed_experts", "moe.experts", false},
    {"num_experts_per_tok", "moe.top_k", false},
    {"moe_intermediate_size", "moe.expert_ffn", false},
    {"n_shared_experts", "moe.shared_experts", false},
    {"moe_shared_expert_intermediate_size", "moe.shared_ffn", false},
    {0},
};
static const struct rename mamba_keys[] = {
    {"mamba_n_heads", "mixer.heads", true},  {"mamba_n_groups", "mixer.groups", true},
    {"mamba_d_state", "mixer.state", true},  {"mamba_d_head", "mixer.head_dim", true},
    {"mamba_d_conv", "mixer.conv", true},    {"mamba_chunk_size", "mixer.chunk", false},
    {"mamba_rms_norm", "mixer.norm", false}, {0},
};
static const struct rename granite_expert_keys[] = {
    {"intermediate_size", "moe.expert_ffn", true},
    {"num_local_experts", "moe.experts", true},
    {"num_experts_per_tok", "moe.top_k", true},
    {"shared_intermediate_size", "moe.shared_ffn", false},
    {0},
};
static const struct rename granite_dense_keys[] = {{"shared_intermediate_size", "ffn_hidden", true}, {0}};
static const struct rename gated_delta_keys[] = {
    {"linear_num_value_heads", "mixer.heads", true}, {"linear_num_key_heads", "mixer.groups", true},
    {"linear_key_head_dim", "mixer.state", true},    {"linear_value_head_dim", "mixer.head_dim", true},
    {"linear_conv_kernel_dim", "mixer.conv", true},  {0},
};
static const struct rename kimi_keys[] = {
    {"num_hidden_layers", "layers", true},
    {"hidden_size", "hidden", true},
    {"num_attention_heads", "heads", true},
    {"vocab_size", "vocab", true},
    {"model_max_length", "max_seq_len", true},
    {"tie_word_embeddings", "tied_embeddings", false},
    {"linear_attn_config.num_heads", "mixer.heads", true},
    {"linear_attn_config.head_dim", "mixer.state", true},
    {"linear_attn_config.head_dim", "mixer.head_dim", true},
    {"linear_attn_config.short_conv_kernel_size", "mixer.conv", true},
    {0},
};
static const struct rename kimi_expert_keys[] = {
    {"num_experts", "moe.experts", true},
    {"num_experts_per_token", "moe.top_k", true},
    {"moe_intermediate_size", "moe.expert_ffn", true},
    {"num_shared_experts", "moe.shared_experts", false},
    {"first_k_dense_replace", "moe.first_dense_layers", false},
    {"moe_layer_freq", "moe.every", false},
    {0},
};
static const struct rename lightning_keys[] = {
    {"num_attention_heads", "mixer.heads", true}, {"head_dim", "mixer.state", true}, {"head_dim", "mixer.head_dim", true}, {0}};

#define MODERN    "norm: rms, position: rotary, gated_mlp: true"
#define GRANITE   "{norm: rms, position: none, gated_mlp: true, mixer: {kind: mamba2}}"
#define LIGHTNING "{" MODERN ", mixer: {kind: lightning}}"
enum { TABLES_MAX = 6 };
static const struct family {
    const char *model_type;
    const char *fixed; /* what the code decides, in msim's keys */
    const char *where; /* a number: a configuration without it, or with 0, is of the next row; NULL: none */
    const struct rename *tables[TABLES_MAX];
} families[] = {
    {"gpt2", "{norm: layer, position: learned, linear_bias: true, tied_embeddings: true}", NULL, {gpt2_keys}},
    {"gpt_neox", "{norm: layer, position: rotary, linear_bias: true}", NULL, {common_keys, dense_keys}},
    {"llama", "{" MODERN "}", NULL, {common_keys, dense_keys, grouped_keys, bias_keys}},
    {"mistral", "{" MODERN "}", NULL, {common_keys, dense_keys, grouped_keys, window_keys}},
    {"mixtral", "{" MODERN "}", NULL, {common_keys, local_expert_keys, grouped_keys, window_keys}},
    {"qwen2", "{" MODERN ", qkv_bias: true}", NULL, {common_keys, dense_keys, grouped_keys}},
    {"qwen3", "{" MODERN ", qk_norm: true}", NULL, {common_keys, dense_keys, grouped_keys, bias_keys}},
    {"qwen2_moe", "{" MODERN ", qkv_bias: true}", NULL, {common_keys, dense_keys, grouped_keys, qwen_moe_keys}},
    {"qwen3_moe", "{" MODERN ", qk_norm: true}", NULL, {common_keys, dense_keys, grouped_keys, bias_keys, qwen_moe_keys}},
    {"deepseek_v2", "{" MODERN ", attention: latent}", NULL, {common_keys, dense_keys, latent_keys, deepseek_keys}},
    {"deepseek_v3", "{" MODERN ", attention: latent}", NULL, {common_keys, dense_keys, latent_keys, deepseek_keys}},
    {"gpt_oss",
     "{" MODERN ", linear_bias: true, window_every: 2}",
     NULL,
     {common_keys, local_expert_keys, grouped_keys, window_keys, limit_keys}},
    {"llama4_text", "{" MODERN ", moe: {shared_experts: 1}}", NULL, {common_keys, llama4_keys, grouped_keys}},
    {"nemotron_h",
     "{norm: rms, position: none, mixer: {kind: mamba2}}",
     NULL,
     {common_keys, dense_keys, grouped_keys, nemotron_keys}},
    {"bamba", "{" MODERN ", mixer: {kind: mamba2}}", NULL, {common_keys, dense_keys, grouped_keys, mamba_keys}},
    {"granitemoehybrid", GRANITE, "num_local_experts", {common_keys, granite_expert_keys, grouped_keys, mamba_keys}},
    {"granitemoehybrid", GRANITE, NULL, {common_keys, granite_dense_keys, grouped_keys, mamba_keys}},
    {"falcon_h1",
     "{" MODERN ", layer_pattern: p, mixer: {kind: mamba2}}",
     NULL,
     {common_keys, dense_keys, grouped_keys, mamba_keys}},
    {"qwen3_next",
     "{" MODERN ", qk_norm: true, output_gate: true, mixer: {kind: gated_delta}}",
     NULL,
     {common_keys, dense_keys, grouped_keys, qwen_moe_keys, gated_delta_keys}},
    {"kimi_linear",
     "{norm: rms, position: none, gated_mlp: true, attention: latent, mixer: {kind: kimi_delta}}",
     NULL,
     {kimi_keys, dense_keys, latent_keys, kimi_expert_keys}},
    {"minimax", LIGHTNING, NULL, {common_keys, local_expert_keys, grouped_keys, lightning_keys}},
    {"minimax_text_01", LIGHTNING, NULL, {common_keys, local_expert_keys, grouped_keys, lightning_keys}},
    {"minimax_m1", LIGHTNING, NULL, {common_keys, local_expert_keys, grouped_keys, lightning_keys}},
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

/* Hybrids whose layers are of no kind that msim has. */
static const struct {
    const char *model_type, *why;
} foreign[] = {
    {"jamba", "its Mamba-1 layers scan element by element, without products"},
    {"mamba", "its Mamba-1 layers scan element by element, without products"},
    {"zamba", "its layers share one attention block"},
    {"zamba2", "its layers share one attention block"},
};

bool huggingface_is(const struct yaml_node *mapping)
{
    return (yaml_find(mapping, "model_type") || yaml_find(mapping, "architectures")) && !yaml_find(mapping, "base");
}

static int int_of(const struct yaml_node *config, const char *key)
{
    const struct yaml_node *value = yaml_find(config, key);
    return value && value->kind == YAML_SCALAR ? (int)strtol(value->text, NULL, 10) : 0;
}

/* A family that nobody here knows is as good as one that is, where its code is the same but for what costs no time. */
static void report_unknown_family(const struct yaml_node *type, const char *const *names, bool asked, struct diags *diags)
{
    const char *near = nearest_name(type->text, names, N_FAMILIES);
    char nearest[80] = "";
    if (near)
        snprintf(nearest, sizeof nearest, " (the nearest is '%s')", near);
    if (asked)
        diag_error(diags, type->at, "model_type: '%.40s' is not a family that msim reads%s; examples are llama and qwen3_moe",
                   type->text, nearest);
    else
        diag_error(diags, type->at,
                   "model_type: '%.40s' is not a family that msim reads%s; if its layers are those of a known family, such as "
                   "llama, use --set model.model_type=llama, or `{base: config.json, model_type: llama}`; else describe its "
                   "shape in a file (msim catalog template model)",
                   type->text, nearest);
}

/* The family by name, its own or that of `as`. Configurations of models that see and read keep the reader's in `text_config`. */
static const struct family *find_family(const struct yaml_node **config, const struct yaml_node *as, struct diags *diags)
{
    const struct yaml_node *text = yaml_find(*config, "text_config");
    if (text && yaml_find(text, "model_type"))
        *config = text;
    const struct yaml_node *type = as ? as : yaml_find(*config, "model_type");
    if (!type || type->kind != YAML_SCALAR) {
        diag_error(diags, type ? type->at : (*config)->at, "a Hugging Face configuration needs a model_type, such as llama");
        return NULL;
    }
    const char *names[N_FAMILIES];
    for (int i = 0; i < N_FAMILIES; i++) {
        const struct family *family = &families[i];
        names[i] = family->model_type;
        if (strcmp(type->text, names[i]) == 0 && (!family->where || int_of(*config, family->where) != 0))
            return family;
    }
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (strcmp(type->text, foreign[i].model_type) == 0) {
            diag_error(diags, type->at, "model_type: '%s' is not modelled: %s", type->text, foreign[i].why);
            return NULL;
        }
    report_unknown_family(type, names, as != NULL, diags);
    return NULL;
}

/* "a.b": of a mapping inside. */
static const struct yaml_node *find_key(const struct yaml_node *config, const char *path)
{
    const char *dot = strchr(path, '.');
    char outer[64];
    if (!dot)
        return yaml_find(config, path);
    snprintf(outer, sizeof outer, "%.*s", (int)(dot - path), path);
    const struct yaml_node *inner = yaml_find(config, outer);
    return inner && inner->kind == YAML_MAPPING ? yaml_find(inner, dot + 1) : NULL;
}

static struct yaml_node *rename_keys(struct yaml_node *entry, const struct yaml_node *config, const struct rename *table,
                                     struct arena *arena, struct diags *diags)
{
    for (const struct rename *r = table; r->theirs; r++) {
        const struct yaml_node *value = find_key(config, r->theirs);
        if (value && !yaml_is_null(value)) {
            struct yaml_node named = *value;
            named.alias = r->theirs;
            entry = yaml_with(entry, r->ours, &named, arena);
        } else if (r->required && !yaml_find(entry, r->ours)) {
            diag_error(diags, value ? value->at : config->at, "'%s' is missing; this model_type needs it", r->theirs);
        }
    }
    return entry;
}

/* layer_types lists what each layer attends to: msim knows the pattern "one in n is full". */
static struct yaml_node *with_layer_types(struct yaml_node *entry, const struct yaml_node *config, struct arena *arena,
                                          struct diags *diags)
{
    const struct yaml_node *types = yaml_find(config, "layer_types");
    int layer = 0, every = 0;
    bool regular = true;
    for (const struct yaml_node *t = types ? types->first : NULL; t; t = t->next, layer++) {
        bool full = t->kind == YAML_SCALAR && strcmp(t->text, "full_attention") == 0;
        if (full && !every)
            every = layer + 1;
        regular = regular && (!every || full == ((layer + 1) % every == 0));
    }
    if (!layer)
        return entry;
    if (!regular)
        diag_warning(diags, types->at, "layer_types: the full layers are not one in n; msim assumes one in %d", every);
    char text[16];
    snprintf(text, sizeof text, "%d", every);
    return yaml_with(entry, every == 1 ? "window" : "window_every", yaml_scalar(types->at.file, every == 1 ? "0" : text, arena),
                     arena);
}

/* --- which layers of a hybrid attend */

/* The letter of an item of a list that has one for each layer: layer_types, or MiniMax's attn_type_list. '?': of no kind here. */
static char letter_of_type(const char *type)
{
    static const struct {
        const char *type;
        char letter;
    } letters[] = {{"full_attention", 'a'},   {"attention", 'a'}, {"1", 'a'},
                   {"linear_attention", 'm'}, {"mamba", 'm'},     {"0", 'm'}};
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (strcmp(type, letters[i].type) == 0)
            return letters[i].letter;
    return '?';
}

/* From a list with an item for each layer; how many. */
static int letters_of_types(const struct yaml_node *types, char *letters, struct diags *diags)
{
    int n = 0;
    for (const struct yaml_node *t = types->first; t && n < PATTERN_SIZE - 1; t = t->next, n++) {
        letters[n] = letter_of_type(t->kind == YAML_SCALAR ? t->text : "");
        if (letters[n] == '?')
            diag_error(
                diags, t->at,
                "%s: layer %d has an unknown kind; msim reads attention and mamba, full_attention and linear_attention, 1 and 0",
                types->key, n);
    }
    return n;
}

/* From the layers that attend, the first of all being number `base`. */
static void letters_of_layers(const struct yaml_node *attending, int base, char *letters, int n, struct diags *diags)
{
    for (const struct yaml_node *t = attending->first; t; t = t->next) {
        long layer = t->kind == YAML_SCALAR ? strtol(t->text, NULL, 10) - base : -1;
        if (layer >= 0 && layer < n)
            letters[layer] = 'a';
        else
            diag_error(diags, t->at, "%s: there is no such layer; the model has %d", attending->key, n);
    }
}

/* The pattern of a family that has a mixer and says in its own way which layers attend. */
static struct yaml_node *with_pattern(struct yaml_node *entry, const struct yaml_node *config, struct arena *arena,
                                      struct diags *diags)
{
    const struct yaml_node *types = yaml_find(config, yaml_find(config, "layer_types") ? "layer_types" : "attn_type_list");
    const struct yaml_node *indices = find_key(config, "attn_layer_indices");
    const struct yaml_node *counted = find_key(config, "linear_attn_config.full_attn_layers");
    int n = int_of(config, "num_hidden_layers"), every = int_of(config, "full_attention_interval");
    char letters[PATTERN_SIZE] = "";
    if (n < 1 || n >= PATTERN_SIZE) {
        diag_error(diags, config->at, "num_hidden_layers: a hybrid model has 1 to %d", PATTERN_SIZE - 1);
        return entry;
    }
    memset(letters, 'm', (size_t)n);
    if (types && types->first)
        n = letters_of_types(types, letters, diags);
    else if (indices || counted)
        letters_of_layers(indices ? indices : counted, indices ? 0 : 1, letters, n, diags);
    else if (every > 0)
        for (int i = every - 1; i < n; i += every)
            letters[i] = 'a';
    else
        diag_error(diags, config->at, "'layer_types' is missing; this model_type needs it");
    letters[n] = '\0';
    layer_pattern_shorten(letters);
    return yaml_with(entry, "layer_pattern", yaml_scalar(config->at.file, letters, arena), arena);
}

static bool is_true(const struct yaml_node *config, const char *key)
{
    const struct yaml_node *value = yaml_find(config, key);
    return value && value->kind == YAML_SCALAR && strcmp(value->text, "true") == 0;
}

/* mlp_only_layers names layers without experts: those that lead are msim's too, where all others have some, or where none has. */
static struct yaml_node *with_dense_layers(struct yaml_node *entry, const struct yaml_node *config, struct arena *arena,
                                           struct diags *diags)
{
    const struct yaml_node *dense = yaml_find(config, "mlp_only_layers");
    bool there[PATTERN_SIZE] = {false}, leading = true;
    int n = 0, layers = int_of(config, "num_hidden_layers");
    char text[16];
    if (!dense || !dense->first)
        return entry;
    for (const struct yaml_node *layer = dense->first; layer && n < PATTERN_SIZE; layer = layer->next, n++) {
        char *end = NULL;
        long at = layer->kind == YAML_SCALAR ? strtol(layer->text, &end, 10) : -1;
        if (at >= 0 && at < PATTERN_SIZE && end != layer->text && !*end)
            there[at] = true;
    }
    for (int i = 0; i < n; i++)
        leading = leading && there[i];
    if (!leading || (n < layers && int_of(config, "decoder_sparse_step") > 1)) {
        diag_warning(diags, dense->at,
                     "mlp_only_layers: treated as mixtures like the others, because they are not only the first layers");
        return entry;
    }
    snprintf(text, sizeof text, "%d", n);
    struct yaml_node value = *yaml_scalar(dense->at.file, text, arena);
    value.at = dense->at;
    value.alias = "mlp_only_layers";
    return yaml_with(entry, "moe.first_dense_layers", &value, arena);
}

/* A mixture whose layers are all without experts is a dense model, where their size is known. */
static struct yaml_node *without_experts(struct yaml_node *entry, struct arena *arena, struct diags *diags)
{
    const struct yaml_node *leading = find_key(entry, "moe.first_dense_layers");
    int layers = int_of(entry, "layers");
    if (!leading || layers < 1 || int_of(yaml_find(entry, "moe"), "first_dense_layers") < layers ||
        !yaml_find(entry, "ffn_hidden"))
        return entry;
    diag_note(diags, leading->at, "%s: no layer has experts; treated as a dense model",
              leading->alias ? leading->alias : "first_dense_layers");
    return yaml_without(entry, "moe", arena);
}

static void note_left_out(const struct yaml_node *config, struct diags *diags)
{
    if (is_true(config, "use_sliding_window"))
        diag_warning(diags, entry_place(config, "use_sliding_window"),
                     "use_sliding_window: the window is ignored, attention is full");
}

/* The folder's name where the file is called config.json, the file's otherwise. */
static const char *model_name(const char *path, struct arena *arena)
{
    char *name = arena_copy_text(arena, path);
    char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    if (slash && strcmp(base, "config.json") == 0) {
        *slash = '\0';
        base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
        if (strcmp(base, ".") == 0 || strcmp(base, "..") == 0) /* as where no folder is said */
            return "config";
    } else if (strrchr(base, '.') && strrchr(base, '.') != base) {
        *strrchr(base, '.') = '\0';
    }
    return entry_name(base, arena);
}

#define SOURCE "Hugging Face configuration"

bool huggingface_wrote(const struct transformer *model)
{
    return strncmp(model->source, SOURCE, strlen(SOURCE)) == 0;
}

struct yaml_node *huggingface_entry(const struct yaml_node *config, const struct yaml_node *as, const char *path,
                                    struct arena *arena, struct diags *diags)
{
    const struct family *family = find_family(&config, as, diags);
    if (!family)
        return NULL;
    size_t before = diags->n_errors;
    char source[96];
    snprintf(source, sizeof source, SOURCE ", %smodel_type %s", as ? "read as " : "", family->model_type);
    struct yaml_node *entry = yaml_value(path, family->fixed, arena, diags);
    entry->at = config->at;
    entry = yaml_with(entry, "name", yaml_scalar(path, model_name(path, arena), arena), arena);
    entry = yaml_with(entry, "source", yaml_scalar(path, source, arena), arena);
    for (int i = 0; i < TABLES_MAX && family->tables[i]; i++)
        entry = rename_keys(entry, config, family->tables[i], arena, diags);
    if (yaml_find(entry, "mixer") && !yaml_find(entry, "layer_pattern"))
        entry = with_pattern(entry, config, arena, diags);
    if (yaml_find(entry, "window"))
        entry = with_layer_types(entry, config, arena, diags);
    if (yaml_find(entry, "moe"))
        entry = without_experts(with_dense_layers(entry, config, arena, diags), arena, diags);
    note_left_out(config, diags);
    return diags->n_errors > before ? NULL : entry;
}
