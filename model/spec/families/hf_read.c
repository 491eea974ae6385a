/*
 * A Hugging Face config.json, as downloaded, as a model entry.
 *
 * A family is a row of a table (*.yaml in this folder) that renames its keys, and says what its code has fixed without a key. The
 * renamed values keep the place and the name that they have in the file, so that msim's own schema finds and reports their
 * mistakes. Names, meanings and defaults: the configuration classes of the transformers library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/spec/families/hf_internal.h"

bool huggingface_is(const struct yaml_node *mapping)
{
    return (yaml_find(mapping, "model_type") || yaml_find(mapping, "architectures")) && !yaml_find(mapping, "base");
}

#define SOURCE "Hugging Face configuration"

bool huggingface_wrote(const struct transformer *model)
{
    return strncmp(model->source, SOURCE, strlen(SOURCE)) == 0;
}

/* --- the family */

static void report_foreign(const struct yaml_node *type, const struct yaml_node *row, struct diags *diags)
{
    const struct yaml_node *why = yaml_find(row, "why");
    diag_error(diags, type->at, "model_type: '%.40s' is not modelled%s%s", type->text, why ? ": " : "", why ? why->text : "");
}

/* Read as another family, a configuration must not lose what its layers are made of. */
static bool keeps_structure(const struct hf_reading *r)
{
    char lost[200];
    if (!r->as || hf_lost(r->rows, r->row, r->config, lost, sizeof lost) == 0)
        return true;
    diag_error(
        r->diags, r->as->at,
        "model_type: read as '%.40s' this configuration becomes another model, without %s; specify a family that has these keys, "
        "a name of the catalog, or a file of its own (msim catalog template model)",
        r->as->text, lost);
    return false;
}

static bool find_family(struct hf_reading *r)
{
    const char *by_wrapper;
    r->config = hf_text_part(r->rows, r->file, &by_wrapper, r->arena);
    const struct yaml_node *type = r->as ? r->as : yaml_find(r->config, "model_type");
    if (!r->as && by_wrapper)
        type = yaml_scalar(r->file->at.file, by_wrapper, r->arena);
    if (!type || type->kind != YAML_SCALAR) {
        diag_error(r->diags, type ? type->at : r->config->at, "a Hugging Face configuration needs a model_type, such as llama");
        return false;
    }
    r->family = type->text;
    r->row = hf_family(r->rows, type->text, r->arena);
    if (hf_family_reads(r->row))
        return keeps_structure(r);
    if (r->row)
        report_foreign(type, r->row, r->diags);
    else
        hf_advise(r->rows, r->config, type, r->as != NULL, r->arena, r->diags);
    return false;
}

/* --- keys */

/* The one value of a list with the same for each layer; of numbers that differ the average, which is as many products. */
static const struct yaml_node *value_of_list(struct hf_reading *r, const struct yaml_node *list, const char *theirs)
{
    double sum = 0;
    int n = 0;
    bool same = true;
    for (const struct yaml_node *item = list->first; item; item = item->next, n++) {
        if (item->kind != YAML_SCALAR)
            return list;
        same = same && strcmp(item->text, list->first->text) == 0;
        sum += strtod(item->text, NULL);
    }
    if (n < 2 || same) /* a list of one is a mistake where a number is expected, unless there is one layer */
        return same && n > 1 ? list->first : list;
    char text[32];
    snprintf(text, sizeof text, "%.0f", sum / n);
    diag_warning(r->diags, list->at, "%s: differs between layers; msim takes the average, %s", theirs, text);
    struct yaml_node *average = yaml_scalar(list->at.file, text, r->arena);
    average->at = list->at;
    return average;
}

static void set_one(struct hf_reading *r, const char *ours, const struct yaml_node *value, const char *theirs)
{
    if (strcmp(ours, "-") == 0)
        return;
    if (*ours != '@' && value->kind == YAML_SEQUENCE && strcmp(ours, "rope_theta") == 0)
        return; /* angles of each layer, which take no time */
    if (*ours != '@' && value->kind == YAML_SEQUENCE)
        value = value_of_list(r, value, theirs);
    hf_set(r, ours, value, theirs);
}

/* A key of the row may set several of msim's. `missing`: only those that are not set yet. */
static void set_all(struct hf_reading *r, const struct yaml_node *key, const struct yaml_node *value, bool missing)
{
    for (const struct yaml_node *ours = key->kind == YAML_SCALAR ? key : key->first; ours;
         ours = key->kind == YAML_SCALAR ? NULL : ours->next) {
        if (missing && hf_find(r->entry, ours->text))
            continue;
        set_one(r, ours->text, value, key->key);
    }
}

/* What the configuration says, then what the library takes where it says nothing; null says that there is none. A tie of tables
 * may stand outside the language model's part. */
static void rename_keys(struct hf_reading *r)
{
    const struct yaml_node *keys = yaml_find(r->row, "keys"), *defaults = yaml_find(r->row, "defaults");
    for (const struct yaml_node *key = keys->first; key; key = key->next) {
        const struct yaml_node *value = hf_find(r->config, key->key);
        if (!value && strcmp(key->key, "tie_word_embeddings") == 0)
            value = hf_find(r->file, key->key);
        if (value)
            set_all(r, key, value, false);
    }
    for (const struct yaml_node *value = defaults ? defaults->first : NULL; value; value = value->next) {
        const struct yaml_node *key = yaml_find(keys, value->key);
        if (!key || yaml_is_null(value) || yaml_find(r->config, value->key))
            continue;
        struct yaml_node at_config = *value;
        at_config.at = r->config->at;
        set_all(r, key, &at_config, true);
    }
}

/* Sizes that the file leaves out, where they still count behind all steps. */
static void report_defaults(const struct hf_reading *r)
{
    const struct yaml_node *keys = yaml_find(r->row, "keys"), *defaults = yaml_find(r->row, "defaults");
    char taken[256] = "";
    for (const struct yaml_node *value = defaults ? defaults->first : NULL; value; value = value->next) {
        const struct yaml_node *key = yaml_find(keys, value->key);
        const struct yaml_node *ours = key && key->kind == YAML_SEQUENCE ? key->first : key;
        const struct yaml_node *set = ours ? hf_find(r->entry, ours->text) : NULL;
        bool size = value->kind == YAML_SCALAR && strtod(value->text, NULL) > 1 && !strstr(value->key, "rope");
        if (size && set && set->alias && strcmp(set->alias, value->key) == 0 && !yaml_find(r->config, value->key))
            text_append(taken, sizeof taken, "%s%s %s", *taken ? ", " : "", value->key, value->text);
    }
    if (*taken)
        diag_note(r->diags, r->config->at, "left out, so the defaults of %s apply: %s", r->family, taken);
}

/* What every model needs, by the first name that the family has for it. */
static void require(const struct hf_reading *r)
{
    static const char *const needed[] = {"layers", "hidden", "heads", "vocab", "max_seq_len"};
    const struct yaml_node *keys = yaml_find(r->row, "keys");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const struct yaml_node *key = keys->first;
        while (key &&
               !(key->kind == YAML_SCALAR && (strcmp(key->text, needed[i]) == 0 || (i == 0 && strcmp(key->text, "@fives") == 0))))
            key = key->next;
        if (!key || hf_find(r->entry, needed[i]) || hf_find(r->entry, "@fives"))
            continue;
        const struct yaml_node *value = yaml_find(r->config, key->key);
        diag_error(r->diags, value ? value->at : r->config->at, "'%s' is missing; this model_type needs it", key->key);
    }
}

/* The folder's name where the file is called config.json, the file's otherwise. */
static const char *model_name(const char *path, struct arena *arena)
{
    if (strcmp(path, "-") == 0)
        return "model";
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

static void begin_entry(struct hf_reading *r, const char *path)
{
    const struct yaml_node *fixed = yaml_find(r->row, "fixed");
    struct yaml_node empty = {.kind = YAML_MAPPING, .at = r->config->at};
    char source[96];
    snprintf(source, sizeof source, SOURCE ", %smodel_type %.40s", r->as ? "read as " : "", r->family);
    r->entry = yaml_with(&empty, "name", yaml_scalar(path, model_name(path, r->arena), r->arena), r->arena);
    r->entry = yaml_overlay(r->entry, fixed ? fixed : &empty, r->arena);
    r->entry->at = r->config->at;
    r->entry = yaml_with(r->entry, "source", yaml_scalar(path, source, r->arena), r->arena);
}

/* Reports parts that are left out with their share of all parameters, for which the language model is counted. */
static void report_towers(const struct hf_reading *r)
{
    struct transformer model;
    struct parameter_count count;
    struct diags quiet = {0}; /* the final reading reports them */
    if (entry_read(CATALOG_MODELS, r->entry, &model, &quiet) == STATUS_OK) {
        transformer_parameters(&model, &count);
        hf_towers(r, count.total);
    }
    diags_free(&quiet);
}

struct yaml_node *huggingface_entry(const struct yaml_node *config, const struct yaml_node *as, const char *path,
                                    struct arena *arena, struct diags *diags)
{
    struct hf_reading r = {.file = config, .as = as, .arena = arena, .diags = diags};
    r.rows = hf_families(arena, diags);
    if (!r.rows || !find_family(&r))
        return NULL;
    size_t before = diags->n_errors;
    begin_entry(&r, path);
    rename_keys(&r);
    require(&r);
    hf_shape(&r);
    hf_layers(&r);
    hf_mixture(&r);
    report_defaults(&r);
    hf_unread(&r);
    if (diags->n_errors == before)
        report_towers(&r);
    return diags->n_errors > before ? NULL : r.entry;
}
