#include "cli/catalog/catalog_recovery.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/shipped.h"
#include "sim/faults/fault_model.h"
#include "sim/weeks/robust_policy.h"

static const struct shipped *files_of(int kind)
{
    return kind == KIND_POLICIES ? &robust_policies : &fault_models;
}

const struct schema *catalog_recovery_schema(int kind)
{
    return kind == KIND_POLICIES ? &robust_policy_schema : &fault_model_schema;
}

char **catalog_recovery_names(int kind, size_t *n_names)
{
    return shipped_names(files_of(kind), n_names);
}

bool catalog_recovery_has(int kind, const char *name)
{
    size_t n;
    bool found = false;
    char **names = catalog_recovery_names(kind, &n);
    for (size_t i = 0; i < n; i++)
        found |= strcmp(names[i], name) == 0;
    names_free(names);
    return found;
}

const char *catalog_recovery_nearest(const char *name, char *buffer, size_t size)
{
    const char *best = NULL;
    for (int kind = KIND_FAULT_MODELS; kind < N_LISTED_KINDS && !best; kind++) {
        size_t n;
        char **names = catalog_recovery_names(kind, &n);
        const char *near = nearest_name(name, (const char *const *)names, n);
        if (near) {
            snprintf(buffer, size, "%s", near);
            best = buffer;
        }
        names_free(names);
    }
    return best;
}

int catalog_recovery_kind_of_file(const char *path)
{
    static const struct {
        const char *key;
        int kind;
    } tells[] = {{"causes", KIND_FAULT_MODELS}, {"failures", KIND_FAULT_MODELS},  {"repairs", KIND_FAULT_MODELS},
                 {"lemons", KIND_FAULT_MODELS}, {"heartbeat", KIND_POLICIES},     {"heartbeat_timeout", KIND_POLICIES},
                 {"tests", KIND_POLICIES},      {"traffic_window", KIND_POLICIES}};
    struct arena arena = {0};
    struct diags unread = {0}; /* who reads the file as what it is taken for will tell */
    const struct yaml_node *tree = yaml_read(path, &arena, &unread);
    int kind = -1;
    for (size_t i = 0; tree && kind < 0 && i < sizeof tells / sizeof *tells; i++)
        kind = yaml_find(tree, tells[i].key) ? tells[i].kind : -1;
    arena_free(&arena);
    diags_free(&unread);
    return kind;
}

json_t *catalog_recovery_keys(int kind, const char *name, struct diags *diags)
{
    char *text = NULL;
    if (kind == KIND_POLICIES) {
        struct robust_policy *policy = memory_new(1, sizeof *policy);
        if (robust_policy_load(name, policy, diags) == STATUS_OK)
            text = robust_policy_to_json(policy);
        free(policy);
    } else {
        struct fault_model *model = memory_new(1, sizeof *model);
        if (fault_model_load(name, model, diags) == STATUS_OK)
            text = fault_model_to_json(model);
        free(model);
    }
    json_t *keys = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return keys;
}

/* --- lists ---------------------------------------------------------------------------------------------------------------- */

static void fault_model_columns(struct table *t)
{
    table_column(t, "fault model", NULL, ALIGN_LEFT);
    table_column(t, "failures", "per node and day", ALIGN_RIGHT);
    table_column(t, "nodes", NULL, ALIGN_RIGHT);
    table_column(t, "gpus per node", NULL, ALIGN_RIGHT);
    table_column(t, "observed", "d", ALIGN_RIGHT);
    table_column(t, "causes", NULL, ALIGN_RIGHT);
    table_column(t, "shape", NULL, ALIGN_RIGHT);
    table_column(t, "slow things", NULL, ALIGN_RIGHT);
}

static enum status fault_model_row(struct table *t, const char *name, struct diags *diags)
{
    struct fault_model *m = memory_new(1, sizeof *m);
    enum status status = fault_model_load(name, m, diags);
    if (status == STATUS_OK) {
        table_cell(t, "%s", name);
        table_cell(t, "%.3g", m->rate);
        table_cell(t, "%d", m->nodes);
        table_cell(t, "%d", m->gpus_per_node);
        table_cell(t, "%.4g", m->days);
        table_cell(t, "%d", m->causes.n);
        table_cell(t, "%.3g", m->shape);
        table_cell(t, "%d", m->slow.n);
    }
    free(m);
    return status;
}

static void policy_columns(struct table *t)
{
    table_column(t, "policy", NULL, ALIGN_LEFT);
    table_column(t, "heartbeat timeout", "s", ALIGN_RIGHT);
    table_column(t, "hang noticed", "s", ALIGN_RIGHT);
    table_column(t, "automatic", "%", ALIGN_RIGHT);
    table_column(t, "tests", NULL, ALIGN_RIGHT);
    table_column(t, "hot spares", NULL, ALIGN_RIGHT);
    table_column(t, "somebody comes", "s", ALIGN_RIGHT);
}

static enum status policy_row(struct table *t, const char *name, struct diags *diags)
{
    struct robust_policy *p = memory_new(1, sizeof *p);
    enum status status = robust_policy_load(name, p, diags);
    if (status == STATUS_OK) {
        table_cell(t, "%s", name);
        table_cell(t, "%.4g", p->heartbeat_timeout_s);
        table_cell(t, "%.4g", robust_policy_watches_traffic(p) ? p->traffic_window_s : p->collective_timeout_s);
        table_cell(t, "%.3g", 100 * p->automatic);
        table_cell(t, "%d", p->tests.n);
        table_cell(t, "%d", p->hot_spares);
        table_cell(t, "%.4g", p->human_median_s);
    }
    free(p);
    return status;
}

enum status catalog_recovery_table(struct table *table, int kind, struct diags *diags)
{
    enum status status = STATUS_OK;
    size_t n;
    char **names = catalog_recovery_names(kind, &n);
    (kind == KIND_POLICIES ? policy_columns : fault_model_columns)(table);
    for (size_t i = 0; i < n; i++) {
        enum status one = (kind == KIND_POLICIES ? policy_row : fault_model_row)(table, names[i], diags);
        status = one == STATUS_OK ? status : one;
    }
    names_free(names);
    return status;
}
