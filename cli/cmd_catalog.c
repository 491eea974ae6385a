/* msim catalog - what is known about models, GPUs and clusters. */
#include <stdlib.h>
#include <string.h>

#include "cli/catalog_table.h"
#include "cli/catalog_template.h"
#include "cli/command.h"
#include "cli/experiment_template.h"
#include "cli/result.h"
#include "model/spec/schemas.h"

static const char *const kind_names[N_CATALOG_KINDS] = {"models", "gpus", "clusters"};
static const char *const kind_titles[N_CATALOG_KINDS] = {"Models", "GPUs", "Clusters"};
static const char *const one_of_kind[N_CATALOG_KINDS] = {"model", "gpu", "cluster"};

/* --- one entry ------------------------------------------------------------------------------------------------------------ */

static const struct schema *schema_of(const struct catalog_entry *entry)
{
    static const struct schema *const schemas[N_CATALOG_KINDS] = {&transformer_schema, &gpu_schema, &cluster_schema};
    return schemas[entry->kind];
}

static const char *name_of(const struct catalog_entry *entry)
{
    return entry->kind == CATALOG_MODELS ? entry->model.name
           : entry->kind == CATALOG_GPUS ? entry->gpu.name
                                         : entry->cluster.name;
}

static json_t *counts_json(const struct parameter_count *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "embedding", (json_int_t)c->embedding, "head",
                     (json_int_t)c->head, "attention", (json_int_t)c->attention, "dense_ffn", (json_int_t)c->dense_ffn, "experts",
                     (json_int_t)c->experts, "router", (json_int_t)c->router, "norms", (json_int_t)c->norms, "mtp",
                     (json_int_t)c->mtp);
}

static json_t *also_json(const struct alias_table *aliases, const struct catalog_entry *entry)
{
    enum { SPELLINGS_MAX = 32 };
    const char *spellings[SPELLINGS_MAX];
    size_t n = alias_table_of(aliases, entry->kind, name_of(entry), spellings, SPELLINGS_MAX);
    json_t *list = json_array();
    for (size_t i = 0; i < n && i < SPELLINGS_MAX; i++)
        json_array_append_new(list, json_string(spellings[i]));
    return list;
}

static json_t *keys_json(const struct catalog_entry *entry)
{
    return entry->kind == CATALOG_CLUSTERS ? cluster_write(&entry->cluster, true) : schema_write(schema_of(entry), &entry->model);
}

static json_t *entry_json(const struct catalog_entry *entry, const struct alias_table *aliases)
{
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(one_of_kind[entry->kind]));
    json_object_set_new(object, "name", json_string(name_of(entry)));
    json_object_set_new(object, "also", also_json(aliases, entry));
    if (entry->kind == CATALOG_MODELS) {
        struct parameter_count count;
        transformer_parameters(&entry->model, &count);
        json_object_set_new(object, "parameters", json_integer((json_int_t)count.total));
        json_object_set_new(object, "active_parameters", json_integer((json_int_t)count.active));
        json_object_set_new(object, "parameter_counts", counts_json(&count));
    }
    json_object_set_new(object, "entry", keys_json(entry));
    return object;
}

/* A scalar as the table shows it. */
static void value_text(const json_t *value, char *text, size_t size)
{
    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    else
        snprintf(text, size, "%.12g", json_number_value(value));
}

/* The sources stand above the table: they are sentences. Recursion follows the schema's nesting. */
static void source_lines(const struct schema *schema, const json_t *mapping, const char *group, FILE *out)
{
    for (size_t i = 0; i < schema->n_rows; i++) {
        const json_t *value = json_object_get(mapping, schema->rows[i].key);
        if (json_is_object(value))
            source_lines(schema->rows[i].group, value, schema->rows[i].key, out);
        else if (value && strcmp(schema->rows[i].key, "source") == 0)
            fprintf(out, "%s: %s\n", group, json_string_value(value));
    }
}

/* One row per key, groups as "gemm.bf16.peak_fraction". Recursion follows the schema's nesting. */
static void key_rows(struct table *t, const struct schema *schema, const json_t *mapping, const char *prefix, bool table_is_text)
{
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct field *row = &schema->rows[i];
        const json_t *value = json_object_get(mapping, row->key);
        char key[128], text[SOURCE_SIZE + 8];
        snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "." : "", row->key);
        bool heading = table_is_text && (strcmp(row->key, "source") == 0 || strcmp(row->key, "name") == 0);
        if (json_is_object(value)) {
            key_rows(t, row->group, value, key, table_is_text);
        } else if (value && !heading) {
            value_text(value, text, sizeof text);
            table_cell(t, "%s", key);
            table_cell(t, "%s", text);
            table_cell(t, "%s", row->help);
        }
    }
}

static void count_row(struct table *t, const char *key, double count, const char *what)
{
    if (count <= 0)
        return;
    table_cell(t, "%s", key);
    table_cell(t, "%.0f", count);
    table_cell(t, "%s", what);
}

static void count_rows(struct table *t, const struct transformer *model)
{
    struct parameter_count c;
    transformer_parameters(model, &c);
    count_row(t, "parameters", c.total, "counted from the shape");
    count_row(t, "active_parameters", c.active, "used for one token");
    count_row(t, "parameters.embedding", c.embedding, "token and position tables");
    count_row(t, "parameters.head", c.head, "output projection, where it is not the embedding's");
    count_row(t, "parameters.attention", c.attention, "all layers");
    count_row(t, "parameters.mixers", c.mixers, "mixers with a state, all layers");
    count_row(t, "parameters.dense_ffn", c.dense_ffn, "dense feed-forward parts and shared experts");
    count_row(t, "parameters.experts", c.experts, "routed experts");
    count_row(t, "parameters.router", c.router, "of the mixtures");
    count_row(t, "parameters.norms", c.norms, "all layers and the last");
    count_row(t, "parameters.mtp", c.mtp, "multi-token prediction, outside the total");
}

static void show_text(const struct catalog_entry *entry, const struct alias_table *aliases, const struct invocation *call)
{
    struct table table = {0};
    json_t *keys = keys_json(entry);
    bool text = call->format == FORMAT_TEXT;
    if (text) {
        fprintf(call->out, "%s%s %s%s\n", tint_start(TINT_STRONG, call->colour), one_of_kind[entry->kind], name_of(entry),
                tint_end(TINT_STRONG, call->colour));
        char also[512];
        catalog_also_text(aliases, entry->kind, name_of(entry), also, sizeof also);
        if (*also)
            fprintf(call->out, "also: %s\n", also);
        source_lines(schema_of(entry), keys, "source", call->out);
        fputc('\n', call->out);
    }
    table_column(&table, "key", NULL, ALIGN_LEFT);
    table_column(&table, "value", NULL, ALIGN_LEFT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    if (entry->kind == CATALOG_MODELS)
        count_rows(&table, &entry->model);
    key_rows(&table, schema_of(entry), keys, "", text);
    table_write(&table, call);
    table_free(&table);
    json_decref(keys);
}

static enum status show(struct invocation *call, const struct alias_table *aliases)
{
    json_t *result = result_create(call, NULL), *entries = json_array();
    enum status status = STATUS_OK;
    for (int i = 1; i < call->n_operands; i++) {
        struct catalog_entry entry;
        enum status one = catalog_entry(call->operands[i], &entry, &call->diags);
        status = one == STATUS_OK ? status : one;
        if (one == STATUS_OK && call->format == FORMAT_JSON)
            json_array_append_new(entries, entry_json(&entry, aliases));
        else if (one == STATUS_OK) {
            fputs(i > 1 ? "\n" : "", call->out);
            show_text(&entry, aliases, call);
        }
    }
    if (call->format != FORMAT_JSON || status != STATUS_OK) {
        json_decref(entries);
        json_decref(result);
        return status;
    }
    if (json_array_size(entries) == 1)
        json_object_update(result, json_array_get(entries, 0));
    else
        json_object_set(result, "entries", entries);
    json_decref(entries);
    return result_write(call, result);
}

/* --- the command ---------------------------------------------------------------------------------------------------------- */

static enum status list_json(struct invocation *call, const struct alias_table *aliases, const bool *wanted)
{
    json_t *result = result_create(call, NULL);
    enum status status = STATUS_OK;
    for (int kind = 0; kind < N_CATALOG_KINDS && status == STATUS_OK; kind++) {
        char **names;
        size_t n;
        if (!wanted[kind])
            continue;
        status = catalog_names((enum catalog_kind)kind, &names, &n, &call->diags);
        json_t *list = json_array();
        for (size_t i = 0; status == STATUS_OK && i < n; i++) {
            struct catalog_entry entry;
            status = catalog_entry(names[i], &entry, &call->diags);
            if (status == STATUS_OK)
                json_array_append_new(list, entry_json(&entry, aliases));
        }
        json_object_set_new(result, kind_names[kind], list);
        if (status == STATUS_OK)
            names_free(names);
    }
    if (status == STATUS_OK)
        return result_write(call, result);
    json_decref(result);
    return status;
}

static enum status list_tables(struct invocation *call, const struct alias_table *aliases, const bool *wanted)
{
    enum status status = STATUS_OK;
    bool first = true;
    for (int kind = 0; kind < N_CATALOG_KINDS; kind++) {
        struct table table = {0};
        if (!wanted[kind])
            continue;
        enum status one = catalog_table_fill(&table, (enum catalog_kind)kind, aliases, &call->diags);
        status = one == STATUS_OK ? status : one;
        if (call->format == FORMAT_TEXT)
            fprintf(call->out, "%s%s%s%s\n", first ? "" : "\n", tint_start(TINT_STRONG, call->colour), kind_titles[kind],
                    tint_end(TINT_STRONG, call->colour));
        table_write(&table, call);
        table_free(&table);
        first = false;
    }
    return status;
}

static enum status usage(struct invocation *call, const char *word)
{
    static const char *const words[] = {"models", "gpus", "clusters", "list", "show", "template"};
    const char *near = nearest_name(word, words, sizeof words / sizeof *words);
    if (near)
        diag_error(&call->diags, (struct place){0},
                   "'%.60s' is not something to list; did you mean '%s', or 'msim catalog show %.60s'?", word, near, word);
    else
        diag_error(&call->diags, (struct place){0},
                   "'%.60s' is not something to list (models, gpus, clusters); did you mean 'msim catalog show %.60s'?", word,
                   word);
    return STATUS_USAGE;
}

static enum status write_template(struct invocation *call)
{
    const char *word = call->n_operands == 2 ? call->operands[1] : "";
    bool experiment = strcmp(word, "experiment") == 0;
    int kind = 0;
    while (kind < N_CATALOG_KINDS && strcmp(word, one_of_kind[kind]) != 0 && strcmp(word, kind_names[kind]) != 0)
        kind++;
    if (!experiment && kind == N_CATALOG_KINDS)
        diag_error(&call->diags, (struct place){0},
                   "a template of what? 'msim catalog template experiment', model, gpu or cluster");
    else if (call->format != FORMAT_TEXT)
        diag_error(&call->diags, (struct place){0}, "a template is YAML; 'msim catalog show NAME' knows other formats");
    else
        return experiment ? experiment_template_write(call->out, &call->diags)
                          : catalog_template_write((enum catalog_kind)kind, call->out, &call->diags);
    return STATUS_USAGE;
}

static enum status list_or_show(struct invocation *call, const struct alias_table *aliases)
{
    bool wanted[N_CATALOG_KINDS] = {false}, any = false;
    int first = call->n_operands && strcmp(call->operands[0], "list") == 0;
    if (call->n_operands && strcmp(call->operands[0], "show") == 0) {
        if (call->n_operands > 1)
            return show(call, aliases);
        diag_error(&call->diags, (struct place){0}, "show what? For example: msim catalog show gpt-175b-megascale");
        return STATUS_USAGE;
    }
    if (call->n_operands && strcmp(call->operands[0], "template") == 0)
        return write_template(call);
    for (int i = first; i < call->n_operands; i++) {
        int kind = 0;
        while (kind < N_CATALOG_KINDS && strcmp(call->operands[i], kind_names[kind]) != 0)
            kind++;
        if (kind == N_CATALOG_KINDS)
            return usage(call, call->operands[i]);
        wanted[kind] = any = true;
    }
    for (int kind = 0; kind < N_CATALOG_KINDS && !any; kind++)
        wanted[kind] = true;
    if (call->format == FORMAT_CSV && wanted[0] + wanted[1] + wanted[2] > 1) {
        diag_error(&call->diags, (struct place){0}, "one table makes one CSV file: add models, gpus or clusters");
        return STATUS_USAGE;
    }
    return call->format == FORMAT_JSON ? list_json(call, aliases, wanted) : list_tables(call, aliases, wanted);
}

static enum status run(struct invocation *call)
{
    struct alias_table aliases;
    enum status status = alias_table_load(&aliases, &call->diags);
    if (status == STATUS_OK)
        status = list_or_show(call, &aliases);
    alias_table_free(&aliases);
    return status;
}

static const struct example examples[] = {
    {"msim catalog", "everything that has a name"},
    {"msim catalog gpus --format csv", "one table, for a program"},
    {"msim catalog show gpt-175b-megascale", "a model with its parameter count and its source"},
    {"msim catalog show h100-sxm --format json", "a GPU with the fitted parameters of its kernels"},
    {"msim catalog show 'NVIDIA H100 80GB HBM3'", "another spelling of the same"},
    {"msim catalog show ./config.json", "a Hugging Face model, as downloaded"},
    {"msim catalog template experiment -o job.yaml", "an experiment with every key; msim step job.yaml runs it"},
    {"msim catalog template cluster -o ours.yaml", "a cluster to fill in; --cluster ours.yaml runs on it"},
    {0},
};

const struct command command_catalog = {
    .name = "catalog",
    .summary = "list the known models, GPUs and clusters; show one, or a file",
    .description =
        "Without operands, or with 'list', prints the catalog: models with their parameter counts, GPUs with their data-sheet "
        "numbers, clusters with their networks. 'models', 'gpus' and 'clusters' choose.\n"
        "\n"
        "'show' prints an entry completely, with the meaning of every key and the source of its numbers, and for a model the "
        "parameters counted from its shape. It takes catalog names, msim files (.yaml, .json) and Hugging Face configurations. "
        "Case and punctuation of a name do not matter, and what drivers, hubs and tables call an entry (the column 'also') means "
        "it too.\n"
        "\n"
        "'template' writes a file to start from, an entry (a model, a GPU or a cluster) or a whole experiment, with every key "
        "and "
        "its meaning; what is no comment in it is what most of them say.\n"
        "\n"
        "'<gpu>-node' is a cluster as well: one usual host of that GPU. Entries are YAML files in the program's catalog folder; "
        "MSIM_DATA names another place.",
    .operands = "[list] [models|gpus|clusters]... | show NAME|FILE... | template experiment|model|gpu|cluster",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
