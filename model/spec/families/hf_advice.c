/* A model_type that no row has: what msim can propose without making another model of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/units.h"
#include "model/spec/families/hf_internal.h"

/* What a proposal must find in the configuration itself, where the family has a key for it. */
static const char *const facts[] = {
    "layers",      "hidden",        "heads",     "vocab", "moe.experts", "moe.top_k", "latent.kv_lora_rank",
    "mixer.heads", "indexer.heads", "query_rank"};

static bool sets(const struct yaml_node *ours, const char *fact)
{
    if (ours->kind == YAML_SCALAR)
        return strcmp(ours->text, fact) == 0;
    for (const struct yaml_node *one = ours->first; one; one = one->next)
        if (one->kind == YAML_SCALAR && strcmp(one->text, fact) == 0)
            return true;
    return false;
}

/* Whether the configuration has a key of the family that gives this fact; *asks: the family has such a key. */
static const struct yaml_node *fact_of(const struct yaml_node *row, const struct yaml_node *config, const char *fact, bool *asks)
{
    const struct yaml_node *keys = yaml_find(row, "keys"), *found = NULL;
    *asks = false;
    for (const struct yaml_node *key = keys ? keys->first : NULL; key; key = key->next)
        if (sets(key, fact)) {
            const struct yaml_node *value = hf_find(config, key->key);
            *asks = true;
            found = value && !hf_is_neutral(value) ? value : found;
        }
    return found;
}

/* Whether the configuration says which layers have mixers, where the family has any. */
static bool tells_mixers(const struct yaml_node *row, const struct yaml_node *config)
{
    static const char *const layers[] = {"@layers", "layer_pattern", "@attend_every", "@attend_at", "@attend_at_1"};
    bool asks, any = !hf_find(row, "fixed.mixer");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        any = any || fact_of(row, config, layers[i], &asks);
    return any;
}

/* How many keys of the configuration the family reads; -1: the configuration lacks facts of the family, or would lose its own. */
static int fit_of(const struct yaml_node *rows, const struct yaml_node *row, const struct yaml_node *config)
{
    char words[16];
    int n = 0;
    if (!hf_family_reads(row) || hf_lost(rows, row, config, words, sizeof words) > 0 || !tells_mixers(row, config))
        return -1;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        bool asks;
        if (!fact_of(row, config, facts[i], &asks) && asks)
            return -1;
    }
    for (const struct yaml_node *value = config->first; value; value = value->next)
        n += !hf_is_neutral(value) && yaml_find(yaml_find(row, "keys"), value->key) != NULL;
    return n;
}

/* The family whose structure the configuration has: that which reads most of it, the first of equals. */
static const char *family_alike(const struct yaml_node *rows, const struct yaml_node *config, struct arena *arena)
{
    static const char *const first[] = {"llama", "mixtral", "qwen3_moe", "deepseek_v3"};
    const char *best = NULL;
    int most = 0;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        int fit = fit_of(rows, hf_family(rows, first[i], arena), config);
        if (fit > most)
            most = fit, best = first[i];
    }
    for (const struct yaml_node *row = rows->first; row; row = row->next) {
        const struct yaml_node *whole = hf_family(rows, row->key, arena);
        int fit = whole ? fit_of(rows, whole, config) : -1;
        if (fit > most)
            most = fit, best = row->key;
    }
    return best;
}

/* Whether two models have the same layers, and vocabularies that differ by padding at most. */
static bool same_shape(const struct transformer *a, const struct transformer *b)
{
    bool layers = a->layers == b->layers && a->hidden == b->hidden && a->heads == b->heads && a->kv_heads == b->kv_heads;
    bool experts = a->moe.experts == b->moe.experts && a->moe.top_k == b->moe.top_k && a->moe.expert_ffn == b->moe.expert_ffn;
    bool dense = a->moe.experts > 0 || a->ffn_hidden == b->ffn_hidden;
    double vocab = (double)a->vocab / (double)b->vocab;
    return layers && experts && dense && vocab > 0.98 && vocab < 1.02;
}

/* An entry of the catalog with the shape that the configuration has as this family; false: none. */
static bool entry_alike(const struct yaml_node *config, const char *family, char name[NAME_SIZE], struct arena *arena)
{
    struct diags quiet = {0};
    struct transformer wanted, m;
    const struct yaml_node *as = yaml_scalar("config", family, arena);
    struct yaml_node *tree = yaml_with(config, "model_type", as, arena);
    struct yaml_node *entry = entry_of_tree(CATALOG_MODELS, tree, "config", as, arena, &quiet);
    char **names = NULL;
    size_t n = 0;
    bool found = false;
    if (entry && entry_read(CATALOG_MODELS, entry, &wanted, &quiet) == STATUS_OK &&
        catalog_names(CATALOG_MODELS, &names, &n, &quiet) == STATUS_OK)
        for (size_t i = 0; i < n && !found; i++) {
            found = catalog_model(names[i], &m, &quiet) == STATUS_OK && same_shape(&wanted, &m);
            if (found)
                snprintf(name, NAME_SIZE, "%s", names[i]);
        }
    names_free(names);
    diags_free(&quiet);
    return found;
}

static const char *nearest(const struct yaml_node *rows, const char *type, struct arena *arena)
{
    const char *names[256];
    size_t n = 0;
    for (const struct yaml_node *row = rows->first; row && n < sizeof names / sizeof *names; row = row->next)
        if (*row->key != '_' && hf_family_reads(hf_family(rows, row->key, arena)))
            names[n++] = row->key;
    return nearest_name(type, names, n);
}

void hf_advise(const struct yaml_node *rows, const struct yaml_node *config, const struct yaml_node *type, bool asked,
               struct arena *arena, struct diags *diags)
{
    const char *near = nearest(rows, type->text, arena), *alike = asked ? NULL : family_alike(rows, config, arena);
    char close[96] = "", entry[NAME_SIZE] = "", lost[160] = "";
    bool known = alike && entry_alike(config, alike, entry, arena);
    if (near)
        snprintf(close, sizeof close, " (the nearest is '%.60s')", near);
    if (asked) {
        diag_error(diags, type->at, "model_type: '%.40s' is not a family that msim reads%s; examples are llama and qwen3_moe",
                   type->text, close);
        return;
    }
    diag_error(diags, type->at, "model_type: '%.40s' is not a family that msim reads%s", type->text, close);
    if (known)
        diag_note(diags, type->at, "the catalog has %s, with the same layers and vocabulary: specify that name instead", entry);
    if (alike)
        diag_note(diags, type->at,
                  "%s has all keys of this configuration that decide its layers; if they are the same, use --set "
                  "model.model_type=%s, or "
                  "`{base: config.json, model_type: %s}`",
                  alike, alike, alike);
    else if (hf_lost(rows, hf_family(rows, "llama", arena), config, lost, sizeof lost) > 0)
        diag_note(diags, type->at, "no family that msim reads has %s", lost);
    if (!known)
        diag_note(diags, type->at, "a file of its own can describe its shape (msim catalog template model)");
}
