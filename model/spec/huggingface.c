/*
 * A Hugging Face config.json, as downloaded, as a model entry.
 *
 * A family is a table that renames its keys, and what its code has fixed without a key. The renamed values keep the place and the
 * name that they have in the file, so that msim's own schema finds and reports their mistakes. Keys that no table has are
 * ignored: most of a configuration is about inference. Names and meanings: the configuration classes of the transformers library.
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
static const struct rename deepseek_keys[] = {
    {"q_lora_rank", "latent.q_lora_rank", false},
    {"kv_lora_rank", "latent.kv_lora_rank", true},
    {"qk_nope_head_dim", "latent.qk_nope_dim", true},
    {"qk_rope_head_dim", "latent.qk_rope_dim", true},
    {"v_head_dim", "latent.v_dim", true},
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

#define MODERN "norm: rms, position: rotary, gated_mlp: true"
static const struct family {
    const char *model_type;
    const char *fixed; /* what the code decides, in msim's keys */
    const struct rename *tables[6];
} families[] = {
    {"gpt2", "{norm: layer, position: learned, linear_bias: true, tied_embeddings: true}", {gpt2_keys}},
    {"gpt_neox", "{norm: layer, position: rotary, linear_bias: true}", {common_keys, dense_keys}},
    {"llama", "{" MODERN "}", {common_keys, dense_keys, grouped_keys, bias_keys}},
    {"mistral", "{" MODERN "}", {common_keys, dense_keys, grouped_keys, window_keys}},
    {"mixtral", "{" MODERN "}", {common_keys, local_expert_keys, grouped_keys, window_keys}},
    {"qwen2", "{" MODERN ", qkv_bias: true}", {common_keys, dense_keys, grouped_keys}},
    {"qwen3", "{" MODERN ", qk_norm: true}", {common_keys, dense_keys, grouped_keys, bias_keys}},
    {"qwen2_moe", "{" MODERN ", qkv_bias: true}", {common_keys, dense_keys, grouped_keys, qwen_moe_keys}},
    {"qwen3_moe", "{" MODERN ", qk_norm: true}", {common_keys, dense_keys, grouped_keys, bias_keys, qwen_moe_keys}},
    {"deepseek_v2", "{" MODERN ", attention: latent}", {common_keys, dense_keys, deepseek_keys}},
    {"deepseek_v3", "{" MODERN ", attention: latent}", {common_keys, dense_keys, deepseek_keys}},
    {"gpt_oss",
     "{" MODERN ", linear_bias: true, window_every: 2}",
     {common_keys, local_expert_keys, grouped_keys, window_keys, limit_keys}},
    {"llama4_text", "{" MODERN ", moe: {shared_experts: 1}}", {common_keys, llama4_keys, grouped_keys}},
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

bool huggingface_is(const struct yaml_node *mapping)
{
    return yaml_find(mapping, "model_type") || yaml_find(mapping, "architectures");
}

/* The family by name. Configurations of models that see and read keep the reader's in `text_config`. */
static const struct family *find_family(const struct yaml_node **config, struct diags *diags)
{
    const struct yaml_node *text = yaml_find(*config, "text_config");
    if (text && yaml_find(text, "model_type"))
        *config = text;
    const struct yaml_node *type = yaml_find(*config, "model_type");
    if (!type || type->kind != YAML_SCALAR) {
        diag_error(diags, type ? type->at : (*config)->at, "a Hugging Face configuration needs a model_type, such as llama");
        return NULL;
    }
    const char *names[N_FAMILIES];
    for (int i = 0; i < N_FAMILIES; i++) {
        names[i] = families[i].model_type;
        if (strcmp(type->text, names[i]) == 0)
            return &families[i];
    }
    const char *near = nearest_name(type->text, names, N_FAMILIES);
    diag_error(diags, type->at,
               "model_type: '%.40s' is not a family that msim reads%s%s%s; describe its shape in an msim model file", type->text,
               near ? " (the nearest is '" : "", near ? near : "", near ? "')" : "");
    return NULL;
}

static struct yaml_node *rename_keys(struct yaml_node *entry, const struct yaml_node *config, const struct rename *table,
                                     struct arena *arena, struct diags *diags)
{
    for (const struct rename *r = table; r->theirs; r++) {
        const struct yaml_node *value = yaml_find(config, r->theirs);
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
        diag_warning(diags, types->at, "layer_types: not one full layer in n; taken as one in %d", every);
    char text[16];
    snprintf(text, sizeof text, "%d", every);
    return yaml_with(entry, every == 1 ? "window" : "window_every", yaml_scalar(types->at.file, every == 1 ? "0" : text, arena),
                     arena);
}

static bool is_true(const struct yaml_node *config, const char *key)
{
    const struct yaml_node *value = yaml_find(config, key);
    return value && value->kind == YAML_SCALAR && strcmp(value->text, "true") == 0;
}

static void note_left_out(const struct yaml_node *config, struct diags *diags)
{
    const struct yaml_node *dense = yaml_find(config, "mlp_only_layers");
    if (dense && dense->first)
        diag_warning(diags, dense->at, "mlp_only_layers: taken as mixtures like the others");
    if (is_true(config, "use_sliding_window"))
        diag_warning(diags, entry_place(config, "use_sliding_window"),
                     "use_sliding_window: the window is left out, attention is full");
}

/* The folder's name where the file is called config.json, the file's otherwise. */
static const char *model_name(const char *path, struct arena *arena)
{
    char *name = arena_copy_text(arena, path);
    char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    if (slash && strcmp(base, "config.json") == 0) {
        *slash = '\0';
        base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    } else if (strrchr(base, '.') && strrchr(base, '.') != base) {
        *strrchr(base, '.') = '\0';
    }
    if (strlen(base) >= NAME_SIZE)
        base[NAME_SIZE - 1] = '\0';
    return base;
}

struct yaml_node *huggingface_entry(const struct yaml_node *config, const char *path, struct arena *arena, struct diags *diags)
{
    const struct family *family = find_family(&config, diags);
    if (!family)
        return NULL;
    size_t before = diags->n_errors;
    char source[96];
    snprintf(source, sizeof source, "Hugging Face configuration, model_type %s", family->model_type);
    struct yaml_node *entry = yaml_value(path, family->fixed, arena, diags);
    entry->at = config->at;
    entry = yaml_with(entry, "name", yaml_scalar(path, model_name(path, arena), arena), arena);
    entry = yaml_with(entry, "source", yaml_scalar(path, source, arena), arena);
    for (int i = 0; i < 6 && family->tables[i]; i++)
        entry = rename_keys(entry, config, family->tables[i], arena, diags);
    if (yaml_find(entry, "window"))
        entry = with_layer_types(entry, config, arena, diags);
    note_left_out(config, diags);
    return diags->n_errors > before ? NULL : entry;
}
