#include "cli/catalog/catalog_template.h"

#include <stdlib.h>
#include <string.h>

#include "cli/catalog/catalog_recovery.h"
#include "model/base/append.h"
#include "model/spec/schemas.h"
#include "sim/faults/fault_model.h"
#include "sim/weeks/robust_policy.h"

enum { SAID_MAX = 10, HELP_COLUMN = 40 }; /* the last of `said` is NULL */

/* What a template is made of: the kind's keys, entries with examples of their values, the first that has one, and what is no
 * comment. */
static const struct template
{
    const char *title;
    const struct schema *schema;
    const char *examples[TEMPLATE_EXAMPLES];
    const char *said[SAID_MAX];
}
templates[N_LISTED_KINDS] = {
    [CATALOG_MODELS] = {"A model: its shape",
                        &transformer_schema,
                        {"llama3-8b", "mixtral-8x7b", "deepseek-v3", "qwen3-next-80b-a3b"},
                        {"source", "layers", "hidden", "ffn_hidden", "gated_mlp", "heads", "kv_heads", "vocab", "max_seq_len"}},
    [CATALOG_GPUS] = {"A GPU: its differences from a known one; `msim calibrate` fits its parameters to tables of kernels",
                      &gpu_schema,
                      {"h100-sxm"},
                      {"base", "source"}},
    [CATALOG_CLUSTERS] = {"A cluster: its nodes and the network between them",
                          &cluster_schema,
                          {"dgx-h100", "frontier"},
                          {"source", "gpu", "nodes", "gpus_per_node", "nics_per_node", "nic_rate"}},
    [KIND_FAULT_MODELS] = {"A fault model: how a fleet fails; `msim faults fit --model` writes one from a trace",
                           &fault_model_schema,
                           {"llama3", "lanl", "titan", "megascale"},
                           {"name", "source", "failures", "nodes", "gpus_per_node", "days", "shape", "causes"}},
    [KIND_POLICIES] = {"A recovery policy: how faults are detected, diagnosed and repaired",
                       &robust_policy_schema,
                       {"megascale", "byterobust"},
                       {"name", "source", "heartbeat", "heartbeat_timeout", "traffic_window", "automatic", "tests"}},
};

static bool is_said(const char *const *said, const char *key)
{
    for (int i = 0; said && said[i]; i++)
        if (strcmp(said[i], key) == 0)
            return true;
    return false;
}

/* Names, all of them. */
static void write_names(const json_t *names, char *text, size_t size)
{
    snprintf(text, size, "[");
    for (size_t i = 0; i < json_array_size(names); i++)
        text_append(text, size, "%s%s", i ? ", " : "", json_string_value(json_array_get(names, i)));
    text_append(text, size, "]");
}

/* A list as its first elements, in one line. */
static void write_elements(const json_t *list, char *text, size_t size)
{
    enum { ELEMENTS_MAX = 2 };
    json_t *few = json_array();
    for (size_t i = 0; i < json_array_size(list) && i < ELEMENTS_MAX; i++)
        json_array_append(few, json_array_get(list, i));
    char *line = json_dumps(few, JSON_REAL_PRECISION(12));
    snprintf(text, size, "%s", line ? line : "[]");
    free(line);
    json_decref(few);
}

static void write_value(const json_t *value, const struct field *row, char *text, size_t size)
{
    if (json_is_array(value)) {
        (json_is_string(json_array_get(value, 0)) ? write_names : write_elements)(value, text, size);
        return;
    }
    if (strcmp(row->key, "name") == 0) {
        snprintf(text, size, "ours");
        return;
    }
    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_number(value))
        snprintf(text, size, "%.12g", json_number_value(value));
    else
        snprintf(text, size, "%s", row->fallback ? row->fallback : "");
    double rate;
    char why[128];
    if (row->port && quantity_parse(text, DIM_RATE, &rate, why, sizeof why) == STATUS_OK) /* as people say it of ports */
        snprintf(text, size, "%.12gGbps", rate * 8e-9);
    if (strcmp(row->key, "source") == 0)
        snprintf(text, size, "where these numbers are from");
    if (text[strcspn(text, ",: ")]) {
        char bare[SOURCE_SIZE];
        snprintf(bare, sizeof bare, "%s", text);
        snprintf(text, size, "\"%s\"", bare);
    }
}

/* What a key means, with the words that it may have. Returns buffer. */
static char *help_of(const struct field *row, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", row->help);
    for (size_t i = 0; row->type == FIELD_CHOICE && row->choices[i]; i++)
        text_append(buffer, size, "%s%s%s", i ? ", " : " (", row->choices[i], row->choices[i + 1] ? "" : ")");
    return buffer;
}

void template_line(const char *key, const char *value, const char *help, bool said, int depth, FILE *out)
{
    int n = fprintf(out, "%s%*s%s:%s%s", said ? "" : "# ", 2 * depth, "", key, *value ? " " : "", value);
    fprintf(out, "%*s# %s\n", n < HELP_COLUMN ? HELP_COLUMN - n : 1, "", help);
}

/* Recursion follows the schema's nesting. */
void template_rows(const struct schema *schema, const char *const *said_keys, json_t *const trees[TEMPLATE_EXAMPLES], int depth,
                   FILE *out)
{
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct field *row = &schema->rows[i];
        json_t *below[TEMPLATE_EXAMPLES], *value = NULL;
        char text[SOURCE_SIZE + 4] = "", help[512];
        bool said = is_said(said_keys, row->key), by_name = strcmp(row->key, "gpu") == 0;
        if (strcmp(row->key, "name") == 0 && !said) /* the file's */
            continue;
        for (int k = 0; k < TEMPLATE_EXAMPLES; k++) {
            below[k] = trees[k] ? json_object_get(trees[k], row->key) : NULL;
            value = value ? value : below[k];
        }
        if (row->type == FIELD_GROUP && !value && !is_said(said_keys, "name")) /* no entry here has one */
            continue;
        if (row->type == FIELD_GROUP && by_name)
            snprintf(text, sizeof text, "%s", json_string_value(json_object_get(value, "name")));
        else if (row->type != FIELD_GROUP)
            write_value(value, row, text, sizeof text);
        template_line(row->key, text, help_of(row, help, sizeof help), said, depth, out);
        if (row->type == FIELD_GROUP && !by_name)
            template_rows(row->group, NULL, below, depth + 1, out);
    }
}

static json_t *tree_of(int kind, const char *name, struct diags *diags)
{
    struct catalog_entry entry;
    if (name && kind >= N_CATALOG_KINDS)
        return catalog_recovery_keys(kind, name, diags);
    if (!name || catalog_entry(name, &entry, diags) != STATUS_OK)
        return NULL;
    if (entry.kind == CATALOG_CLUSTERS)
        return cluster_write(&entry.cluster, true);
    return schema_write(templates[entry.kind].schema, &entry.model);
}

enum status catalog_template_write(int kind, FILE *out, struct diags *diags)
{
    const struct template *t = &templates[kind];
    size_t before = diags->n_errors;
    json_t *trees[TEMPLATE_EXAMPLES];
    for (int k = 0; k < TEMPLATE_EXAMPLES; k++)
        trees[k] = tree_of(kind, t->examples[k], diags);
    if (diags->n_errors == before) {
        fprintf(out, "# %s.\n# The values are examples from %s", t->title, t->examples[0]);
        for (int k = 1; k < TEMPLATE_EXAMPLES && t->examples[k]; k++)
            fprintf(out, "%s%s", k == 1 ? "; keys that it lacks\n# have values from " : " or ", t->examples[k]);
        fputs(".\n# A key that you leave out takes its default; the comment states a default that depends on other keys.\n", out);
        if (is_said(t->said, "base"))
            template_line("base", t->examples[0], "keys that are left out have the values of this entry", true, 0, out);
        template_rows(t->schema, t->said, trees, 0, out);
    }
    for (int k = 0; k < TEMPLATE_EXAMPLES; k++)
        json_decref(trees[k]);
    return diags->n_errors == before ? STATUS_OK : STATUS_BAD_INPUT;
}
