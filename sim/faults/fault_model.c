#include "sim/faults/fault_model.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/schema.h"

const struct shipped fault_models = {.folder = "sim/fault_models", .endings = {".yaml"}, .also = "files"};

/* --- the keys --- */

static const char *const components[] = {
#define X(id, name) name,
    COMPONENTS(X)
#undef X
        NULL};
static const char *const repairs[] = {"none", "hardware", "network", "software", "facility", "reboot", NULL};
static const char *const slow_kinds[] = {[SLOW_STRAGGLER] = "straggler", [SLOW_LINK] = "link", NULL};

const char *component_name(enum component component)
{
    return components[component];
}

/* A century in days; ln hours between a second and a millennium. */
#define DAYS_MAX 36600.0
#define LN_MIN   (-10.0)
#define LN_MAX   20.0

static const struct field repair_rows[] = {
    QUANTITY("mu", struct repair_time, mu, DIM_COUNT, LN_MIN, LN_MAX, REQUIRED, "mean of ln hours"),
    QUANTITY("sigma", struct repair_time, sigma, DIM_COUNT, 0, 5, REQUIRED, "standard deviation of ln hours"),
};
static const struct schema repair_schema = SCHEMA("repair time", repair_rows);

static const struct field cause_rows[] = {
    TEXT("name", struct fault_cause, name, REQUIRED, "as in traces"),
    CHOICE("component", struct fault_cause, component, components, "unknown", "what failed (default: by the name)"),
    CHOICE("repair", struct fault_cause, repair, repairs, "hardware",
           "how it is repaired (default: by the name); none: the node stays"),
    QUANTITY("count", struct fault_cause, weight, DIM_COUNT, 0, 1e12, UNSET, "observed number: the weight"),
};
static const struct schema cause_schema = SCHEMA("cause", cause_rows);

static const struct field group_rows[] = {
    TEXT("name", struct fault_group, name, REQUIRED, "the cause of its faults"),
    INTEGER("nodes", struct fault_group, nodes, 1, 1e6, REQUIRED, "nodes of one group"),
    QUANTITY("rate", struct fault_group, rate, DIM_COUNT, 0, 100, REQUIRED, "events per group and day"),
    QUANTITY("share", struct fault_group, share, DIM_FRACTION, 0, 1, "1", "of the group's nodes that are hit"),
    BOOLEAN("planned", struct fault_group, planned, "false", "announced: maintenance, preemption"),
    GROUP("repair", struct fault_group, repair, repair_schema, REQUIRED, "how long"),
};
static const struct schema group_schema = SCHEMA("group", group_rows);

static const struct field slow_rows[] = {
    TEXT("name", struct fault_slow, name, REQUIRED, "the cause of its faults"),
    CHOICE("kind", struct fault_slow, kind, slow_kinds, "straggler", "what is slow"),
    QUANTITY("share", struct fault_slow, share, DIM_FRACTION, 0, 1, UNSET, "of the nodes, all the time"),
    QUANTITY("rate", struct fault_slow, rate, DIM_COUNT, 0, 1000, UNSET, "per node and day"),
    QUANTITY("factor", struct fault_slow, factor, DIM_FRACTION, 1e-6, 1, REQUIRED, "remaining speed"),
    QUANTITY("median", struct fault_slow, median_s, DIM_TIME, 1e-3, TIME_LONGEST_S, UNSET, "of its duration"),
    QUANTITY("sigma", struct fault_slow, sigma, DIM_COUNT, 0, 5, UNSET, "of ln duration"),
};
static const struct schema slow_schema = SCHEMA("slow", slow_rows);

/* --- lists of mappings --- */

/* The name of a cause gives its component and repair, as in fits of traces, unless the model has them. */
static void complete_cause(const struct yaml_node *mapping, struct fault_cause *cause)
{
    const struct yaml_node *component = yaml_find(mapping, "component"), *repair = yaml_find(mapping, "repair");
    if (!component || yaml_is_null(component))
        cause->component = (int)component_of_text(cause->name);
    if (!repair || yaml_is_null(repair))
        cause->repair = (int)repair_of_text(cause->name);
}

static int read_list(const struct field *row, const struct yaml_node *value, const struct schema *schema, char *items,
                     size_t size, int max, struct diags *diags)
{
    int n = 0;
    if (value->kind != YAML_SEQUENCE) {
        diag_error(diags, value->at, "%s: a list of mappings is expected; this is %s", row->key, yaml_kind_name(value->kind));
        return 0;
    }
    for (const struct yaml_node *child = value->first; child; child = child->next) {
        if (n == max) {
            diag_error(diags, child->at, "%s: at most %d entries", row->key, max);
            break;
        }
        if (child->kind == YAML_MAPPING) {
            schema_read(schema, child, items + (size_t)n * size, diags);
            if (schema == &cause_schema)
                complete_cause(child, (struct fault_cause *)(void *)(items + (size_t)n * size));
            n++;
        } else {
            diag_error(diags, child->at, "%s: an entry is a mapping; this is %s", row->key, yaml_kind_name(child->kind));
        }
    }
    return n;
}

static json_t *write_list(const struct schema *schema, const char *items, size_t size, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, schema_write(schema, items + (size_t)i * size));
    return list;
}

#define LIST(what, MAX)                                                                                                          \
    static void read_##what##s(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)            \
    {                                                                                                                            \
        struct fault_##what##s *list = at;                                                                                       \
        list->n = read_list(row, value, &what##_schema, (char *)list->items, sizeof list->items[0], MAX, diags);                 \
    }                                                                                                                            \
    static json_t *write_##what##s(const struct field *row, const void *at)                                                      \
    {                                                                                                                            \
        const struct fault_##what##s *list = at;                                                                                 \
        (void)row;                                                                                                               \
        return write_list(&what##_schema, (const char *)list->items, sizeof list->items[0], list->n);                            \
    }
LIST(cause, MAX_CAUSES)
LIST(group, MAX_GROUPS)
LIST(slow, MAX_SLOW)

/* LANL's outages by cause (LA-UR-05-7318, 1996-2005): the default of a model without repair times. */
#define REPAIR_AT(k, id)                                                                                                         \
    GROUP(k, struct fault_model, repairs[id], repair_schema, UNSET, "of repairs of this kind (default: LANL's)")
static const struct field repairs_rows[] = {
    REPAIR_AT("hardware", REPAIR_HARDWARE), REPAIR_AT("network", REPAIR_NETWORK), REPAIR_AT("software", REPAIR_SOFTWARE),
    REPAIR_AT("facility", REPAIR_FACILITY), REPAIR_AT("reboot", REPAIR_REBOOT),
};
static const struct schema repairs_schema = SCHEMA("repairs", repairs_rows);

#define NUMBER(k, member, lo, hi, def, what) QUANTITY(k, struct fault_model, member, DIM_COUNT, lo, hi, def, what)
static const struct field lemon_rows[] = {
    QUANTITY("share", struct fault_model, lemon_share, DIM_FRACTION, 0, 0.5, REQUIRED, "of the nodes"),
    NUMBER("factor", lemon_factor, 1, 1e4, REQUIRED, "times the failures of the others"),
};
static const struct schema lemon_schema = SCHEMA("lemons", lemon_rows);
static const struct field early_rows[] = {
    QUANTITY("share", struct fault_model, early_share, DIM_FRACTION, 0, 1, REQUIRED, "of the nodes"),
    NUMBER("days", early_days, 1e-3, DAYS_MAX, REQUIRED, "mean time to their failure"),
};
static const struct schema early_schema = SCHEMA("early", early_rows);
static const struct field burst_rows[] = {
    QUANTITY("probability", struct fault_model, burst_probability, DIM_FRACTION, 0, 0.9, REQUIRED, "of a failure to follow"),
    NUMBER("hours", burst_hours, 1e-3, 1e4, REQUIRED, "mean gap"),
};
static const struct schema burst_schema = SCHEMA("burst", burst_rows);

static const struct field model_rows[] = {
    TEXT("name", struct fault_model, name, REQUIRED, "of the model"),
    TEXT("source", struct fault_model, source, REQUIRED, "where the numbers come from"),
    NUMBER("rate", rate, 1e-9, 100, UNSET, "failures per node and day"),
    NUMBER("failures", failures, 1, 1e12, UNSET, "observed on `nodes` in `days`; replaces `rate`"),
    INTEGER("nodes", struct fault_model, nodes, 1, 1e7, REQUIRED, "of the fleet"),
    INTEGER("gpus_per_node", struct fault_model, gpus_per_node, 1, 128, "8", "of the fleet"),
    NUMBER("days", days, 1e-3, DAYS_MAX, REQUIRED, "observed"),
    NUMBER("shape", shape, 0.1, 10, "1", "Weibull shape of a node's time to failure"),
    SECTION("lemons", lemon_schema, UNSET, "nodes that fail more often"),
    SECTION("early", early_schema, UNSET, "nodes that are defective from the start"),
    SECTION("burst", burst_schema, UNSET, "failures that follow others"),
    SECTION("repairs", repairs_schema, UNSET, "lognormal hours by kind of repair"),
    CUSTOM("causes", struct fault_model, causes, read_causes, write_causes, REQUIRED, "causes of failures"),
    CUSTOM("groups", struct fault_model, groups, read_groups, write_groups, UNSET, "events that hit many nodes"),
    CUSTOM("slow", struct fault_model, slow, read_slows, write_slows, UNSET, "slow nodes and links"),
};
const struct schema fault_model_schema = SCHEMA("fault model", model_rows);

/* --- reading --- */

/* Reboots are an assumption: a median of 8 min. */
static const struct repair_time lanl[N_REPAIR_KINDS] = {
    [REPAIR_HARDWARE] = {0.224, 1.253}, [REPAIR_NETWORK] = {0.032, 1.595}, [REPAIR_SOFTWARE] = {-0.217, 1.467},
    [REPAIR_FACILITY] = {1.556, 1.217}, [REPAIR_REBOOT] = {-2.0, 0.5},
};

bool fault_model_repairs_are_lanls(const struct fault_model *model)
{
    int repaired = 0;
    for (int i = 0; i < model->causes.n; i++) {
        int kind = model->causes.items[i].repair;
        if (kind != REPAIR_NONE && memcmp(&model->repairs[kind], &lanl[kind], sizeof lanl[kind]) != 0)
            return false;
        repaired += kind != REPAIR_NONE;
    }
    return repaired > 0;
}

static void fill_repairs(struct fault_model *model)
{
    for (int i = 0; i < N_REPAIR_KINDS; i++)
        if (model->repairs[i].sigma <= 0 && model->repairs[i].mu >= 0 && model->repairs[i].mu <= 0)
            model->repairs[i] = lanl[i];
}

static void complete(struct fault_model *model, struct place at, struct diags *diags)
{
    double weight = 0;
    for (int i = 0; i < model->causes.n; i++)
        weight += model->causes.items[i].weight;
    fill_repairs(model);
    if (model->lemon_factor < 1)
        model->lemon_factor = 1;
    if (model->rate > 0 && model->failures > 0)
        diag_error(diags, at, "rate and failures say the same thing; keep one");
    else if (model->rate <= 0 && model->failures > 0)
        model->rate = model->failures / (model->nodes * model->days);
    else if (model->rate <= 0)
        diag_error(diags, at, "a rate of 0: nothing would ever fail; give rate (failures per node and day), or failures");
    if (weight <= 0)
        diag_error(diags, at, "no cause has a count; give one at least");
}

static enum status read_tree(struct yaml_node *root, void *model, struct diags *diags)
{
    size_t before = diags->n_errors;
    struct fault_model *read = memory_new(1, sizeof *read);
    if (root->kind != YAML_MAPPING)
        diag_error(diags, root->at, "a fault model is a mapping with the keys name, source, rate, causes; this is %s",
                   yaml_kind_name(root->kind));
    else
        schema_read(&fault_model_schema, root, read, diags);
    if (diags->n_errors == before)
        complete(read, root->at, diags);
    bool good = diags->n_errors == before;
    if (good)
        *(struct fault_model *)model = *read;
    free(read);
    return good ? STATUS_OK : STATUS_BAD_INPUT;
}

enum status fault_model_parse(const char *name, const char *bytes, size_t n, struct fault_model *model, struct diags *diags)
{
    return shipped_parse(name, bytes, n, read_tree, model, diags);
}

enum status fault_model_load(const char *name, struct fault_model *model, struct diags *diags)
{
    return shipped_load(&fault_models, "fault model", name, read_tree, model, diags);
}

char *fault_model_to_json(const struct fault_model *model)
{
    json_t *root = schema_write(&fault_model_schema, model);
    if (model->failures > 0)
        json_object_del(root, "rate");
    if (model->lemon_share <= 0)
        json_object_del(root, "lemons");
    if (model->early_share <= 0)
        json_object_del(root, "early");
    if (model->burst_probability <= 0)
        json_object_del(root, "burst");
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(root);
    return text ? text : memory_copy_text("{}");
}

double fault_model_total_rate(const struct fault_model *model)
{
    double rate = model->rate / (1 - model->burst_probability);
    if (model->days > 0)
        rate += model->early_share / model->days;
    for (int i = 0; i < model->groups.n; i++)
        rate += model->groups.items[i].rate * model->groups.items[i].share;
    return rate;
}
