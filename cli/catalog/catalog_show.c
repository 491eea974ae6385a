#include "cli/catalog/catalog_show.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/catalog/catalog_table.h"
#include "cli/output/result.h"
#include "model/base/append.h"
#include "model/spec/json_text.h"
#include "model/spec/schemas.h"
#include "sim/faults/fault_model.h"

const struct catalog_listed catalog_kinds[N_LISTED_KINDS] = {
    [CATALOG_MODELS] = {"model", "models", "models", "Models", "model"},
    [CATALOG_GPUS] = {"gpu", "gpus", "gpus", "GPUs", "GPU"},
    [CATALOG_CLUSTERS] = {"cluster", "clusters", "clusters", "Clusters", "cluster"},
    [KIND_FAULT_MODELS] = {"fault-model", "fault-models", "fault_models", "Fault models", "fault model"},
    [KIND_POLICIES] = {"policy", "policies", "policies", "Policies", "policy"},
};

/* --- one entry ------------------------------------------------------------------------------------------------------------ */

/* An entry of any kind as its keys. */
struct shown {
    int kind;
    const char *name;
    const struct schema *schema;
    struct catalog_entry entry; /* of the catalog's own kinds */
    json_t *keys;
};

static const char *name_of(const struct catalog_entry *entry)
{
    return entry->kind == CATALOG_MODELS ? entry->model.name
           : entry->kind == CATALOG_GPUS ? entry->gpu.name
                                         : entry->cluster.name;
}

static json_t *keys_json(const struct catalog_entry *entry, const struct schema *schema)
{
    return entry->kind == CATALOG_CLUSTERS ? cluster_write(&entry->cluster, true) : schema_write(schema, &entry->model);
}

/* `kind` -1: of the catalog's own kinds, whichever has it. What is loaded is released with json_decref(shown->keys). */
static enum status load(int kind, const char *name, struct shown *shown, struct diags *diags)
{
    static const struct schema *const schemas[N_CATALOG_KINDS] = {&transformer_schema, &gpu_schema, &cluster_schema};
    struct catalog_entry *entry = &shown->entry;
    enum status status = STATUS_OK;
    shown->keys = NULL;
    shown->kind = kind;
    shown->name = name;
    if (kind >= N_CATALOG_KINDS) {
        shown->schema = catalog_recovery_schema(kind);
        shown->keys = catalog_recovery_keys(kind, name, diags);
        return shown->keys ? STATUS_OK : STATUS_BAD_INPUT;
    }
    switch (kind) {
    case CATALOG_MODELS: status = catalog_model(name, &entry->model, diags); break;
    case CATALOG_GPUS: status = catalog_gpu(name, &entry->gpu, diags); break;
    case CATALOG_CLUSTERS: status = catalog_cluster(name, &entry->cluster, diags); break;
    default: status = catalog_entry(name, entry, diags); break;
    }
    if (status != STATUS_OK)
        return status;
    if (kind >= 0)
        entry->kind = (enum catalog_kind)kind;
    shown->kind = (int)entry->kind;
    shown->name = name_of(entry);
    shown->schema = schemas[entry->kind];
    shown->keys = keys_json(entry, shown->schema);
    return STATUS_OK;
}

static json_t *counts_json(const struct parameter_count *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "embedding", (json_int_t)c->embedding, "head",
                     (json_int_t)c->head, "attention", (json_int_t)c->attention, "dense_ffn", (json_int_t)c->dense_ffn, "experts",
                     (json_int_t)c->experts, "router", (json_int_t)c->router, "norms", (json_int_t)c->norms, "mtp",
                     (json_int_t)c->mtp);
}

static json_t *also_json(const struct alias_table *aliases, const struct shown *shown)
{
    enum { SPELLINGS_MAX = 32 };
    const char *spellings[SPELLINGS_MAX];
    size_t n = 0;
    if (shown->kind < N_CATALOG_KINDS)
        n = alias_table_of(aliases, (enum catalog_kind)shown->kind, shown->name, spellings, SPELLINGS_MAX);
    json_t *list = json_array();
    for (size_t i = 0; i < n && i < SPELLINGS_MAX; i++)
        json_array_append_new(list, json_string(spellings[i]));
    return list;
}

static json_t *shown_json(const struct shown *shown, const struct alias_table *aliases)
{
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(catalog_kinds[shown->kind].one));
    json_object_set_new(object, "name", json_text(shown->name));
    json_object_set_new(object, "also", also_json(aliases, shown));
    if (shown->kind == CATALOG_MODELS) {
        struct parameter_count count;
        transformer_parameters(&shown->entry.model, &count);
        json_object_set_new(object, "parameters", json_integer((json_int_t)count.total));
        json_object_set_new(object, "active_parameters", json_integer((json_int_t)count.active));
        json_object_set_new(object, "parameter_counts", counts_json(&count));
    }
    json_object_set(object, "entry", shown->keys);
    return object;
}

json_t *catalog_entry_json(int kind, const char *name, const struct alias_table *aliases, struct diags *diags)
{
    struct shown shown;
    if (load(kind, name, &shown, diags) != STATUS_OK)
        return NULL;
    json_t *object = shown_json(&shown, aliases);
    json_decref(shown.keys);
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

/* An element of a list: its name, then its other keys, "Faulty GPU: component gpu, count 148"; mappings in it in brackets.
 * Recursion follows the nesting of the JSON. */
static void element_text(const json_t *element, char *text, size_t size)
{
    const char *name = json_string_value(json_object_get(element, "name")), *key, *between = "";
    json_t *value;
    if (name)
        text_append(text, size, "%s: ", name);
    json_object_foreach((json_t *)element, key, value)
    {
        char scalar[128];
        if (strcmp(key, "name") == 0)
            continue;
        text_append(text, size, "%s%s ", between, key);
        between = ", ";
        if (json_is_object(value)) {
            text_append(text, size, "(");
            element_text(value, text, size);
            text_append(text, size, ")");
        } else {
            value_text(value, scalar, sizeof scalar);
            text_append(text, size, "%s", scalar);
        }
    }
}

/* The elements of a list, as "causes[0]". */
static void element_rows(struct table *t, const char *key, const json_t *list, const char *help)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char text[SOURCE_SIZE] = "";
        element_text(json_array_get(list, i), text, sizeof text);
        table_cell(t, "%s[%zu]", key, i);
        table_cell(t, "%s", text);
        table_cell(t, "%s", i == 0 ? help : "");
    }
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

/* Lists stand below the table for people: one element a line. Recursion follows the schema's nesting. */
static void list_lines(const struct schema *schema, const json_t *mapping, const char *prefix, FILE *out)
{
    for (size_t i = 0; i < schema->n_rows; i++) {
        const json_t *value = json_object_get(mapping, schema->rows[i].key);
        char key[128];
        snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "." : "", schema->rows[i].key);
        if (json_is_object(value))
            list_lines(schema->rows[i].group, value, key, out);
        if (json_array_size(value) > 0)
            fprintf(out, "\n%s: %s\n", key, schema->rows[i].help);
        for (size_t k = 0; k < json_array_size(value); k++) {
            char text[SOURCE_SIZE] = "";
            element_text(json_array_get(value, k), text, sizeof text);
            fprintf(out, "  %s\n", text);
        }
    }
}

/* One row per key, but for lists a text, groups as "gemm.bf16.peak_fraction". Recursion follows the schema's nesting. */
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
        } else if (json_is_array(value)) {
            if (!table_is_text)
                element_rows(t, key, value, row->help);
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

static void show_text(const struct shown *shown, const struct alias_table *aliases, const struct invocation *call)
{
    struct table table = {0};
    bool text = call->format == FORMAT_TEXT;
    if (text) {
        fprintf(call->out, "%s%s %s%s\n", tint_start(TINT_STRONG, call->colour), catalog_kinds[shown->kind].one, shown->name,
                tint_end(TINT_STRONG, call->colour));
        char also[512] = "";
        if (shown->kind < N_CATALOG_KINDS)
            catalog_also_text(aliases, (enum catalog_kind)shown->kind, shown->name, also, sizeof also);
        if (*also)
            fprintf(call->out, "also: %s\n", also);
        source_lines(shown->schema, shown->keys, "source", call->out);
        fputc('\n', call->out);
    }
    table_column(&table, "key", NULL, ALIGN_LEFT);
    table_column(&table, "value", NULL, ALIGN_LEFT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    if (shown->kind == CATALOG_MODELS)
        count_rows(&table, &shown->entry.model);
    key_rows(&table, shown->schema, shown->keys, "", text);
    table_write(&table, call);
    if (text)
        list_lines(shown->schema, shown->keys, "", call->out);
    table_free(&table);
}

/* --- by name -------------------------------------------------------------------------------------------------------------- */

int catalog_kind_of_word(const char *word)
{
    for (int kind = 0; kind < N_LISTED_KINDS; kind++)
        if (strcmp(word, catalog_kinds[kind].one) == 0 || strcmp(word, catalog_kinds[kind].many) == 0)
            return kind;
    return -1;
}

/* Other kinds that have an entry of this name. */
static void tell_others(const char *name, int shown, struct diags *diags)
{
    for (int kind = KIND_FAULT_MODELS; kind < N_LISTED_KINDS; kind++)
        if (kind != shown && catalog_recovery_has(kind, name))
            diag_note(diags, PLACE_NONE, "'%.60s' is also a %s; 'msim catalog show %s %.60s' shows it", name,
                      catalog_kinds[kind].title_of_one, catalog_kinds[kind].one, name);
}

static bool is_folder(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

/* Standard input or a pipe, which can be read only once. */
static bool is_stream(const char *path)
{
    struct stat what;
    return strcmp(path, "-") == 0 || (stat(path, &what) == 0 && !S_ISREG(what.st_mode) && !S_ISDIR(what.st_mode));
}

/* The first kind that has an entry of this name: the catalog's own, fault models, policies. What a file is shows in its keys. */
static enum status load_named(const char *name, struct shown *shown, struct diags *diags)
{
    if (is_stream(name)) /* a model, a GPU or a cluster */
        return load(-1, name, shown, diags);
    struct diags unknown = {0}; /* what is said when none has it is said again */
    bool file = strchr(name, '/') || strchr(name, '.');
    int kind = file ? catalog_recovery_kind_of_file(name) : -1;
    if (kind < 0 && catalog_entry(name, &shown->entry, &unknown) != STATUS_OK)
        for (int k = N_LISTED_KINDS - 1; k >= KIND_FAULT_MODELS; k--)
            kind = catalog_recovery_has(k, name) ? k : kind;
    if (kind < 0 && unknown.n_errors > 0 && is_folder(name)) /* of a model, as hubs keep it */
        kind = CATALOG_MODELS;
    bool known = kind >= 0 || unknown.n_errors == 0;
    diags_free(&unknown);
    char near[CAUSE_SIZE];
    if (!known && !file && catalog_recovery_nearest(name, near, sizeof near)) {
        diag_error(diags, PLACE_NONE, "the catalog has no '%.60s'; did you mean '%s'?", name, near);
        return STATUS_BAD_INPUT;
    }
    enum status status = load(kind, name, shown, diags);
    if (status == STATUS_OK)
        tell_others(name, shown->kind, diags);
    return status;
}

enum status catalog_show(struct invocation *call, const struct alias_table *aliases)
{
    json_t *result = result_create(call, NULL), *entries = json_array();
    enum status status = STATUS_OK;
    int wanted = call->n_operands > 2 ? catalog_kind_of_word(call->operands[1]) : -1, first = wanted >= 0 ? 2 : 1;
    for (int i = first; i < call->n_operands; i++) {
        struct shown shown;
        enum status one = wanted >= 0 ? load(wanted, call->operands[i], &shown, &call->diags)
                                      : load_named(call->operands[i], &shown, &call->diags);
        status = one == STATUS_OK ? status : one;
        if (one != STATUS_OK)
            continue;
        if (call->format == FORMAT_JSON) {
            json_array_append_new(entries, shown_json(&shown, aliases));
        } else {
            fputs(i > first ? "\n" : "", call->out);
            show_text(&shown, aliases, call);
        }
        json_decref(shown.keys);
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
