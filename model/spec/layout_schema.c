/* layout_schema.c - the rows of a layout, one per dimension, and the long names of their keys. */
#include <string.h>

#include "model/spec/cp_comm.h"
#include "model/spec/layout_request.h"
#include "model/spec/layout_request_internal.h"
#include "model/spec/schemas.h"

static const char *const flags[] = {"0", "1", "false", "true", NULL};

static void read_cp_comm(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    char why[CP_COMM_WHY];
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "%s: %s, but a word is expected, such as ring", row->key, yaml_kind_name(value->kind));
        return;
    }
    int found = cp_comm_parse(value->text, why, sizeof why);
    if (found < 0)
        diag_error(diags, value->at, "%s: %s", row->key, why);
    else
        memcpy(at, &found, sizeof found);
}

static void read_recompute(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    char why[RECOMPUTE_WHY];
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "%s: %s, but words joined by '+' are expected", row->key, yaml_kind_name(value->kind));
        return;
    }
    struct recompute found;
    if (recompute_parse(value->text, &found, why, sizeof why))
        memcpy(at, &found, sizeof found);
    else
        diag_error(diags, value->at, "%s: %s", row->key, why);
}

/* What is offloaded, or "auto" or "auto:25%": what a search finds best. */
static void read_offload(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    struct offload sets[OFFLOAD_SETS];
    char why[OFFLOAD_WHY];
    int n;
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "%s: %s, but a word is expected, such as optimizer", row->key, yaml_kind_name(value->kind));
        return;
    }
    struct offload found = {.of = {{0}}};
    if (offload_sets_of(value->text, sets, &n) || offload_parse(value->text, &found, why, sizeof why))
        memcpy(at, &found, sizeof found);
    else
        diag_error(diags, value->at, "%s: %s", row->key, why);
}

#define ROW_NUMBER(key, member, least, most, help)    INTEGER(key, struct layout_keys, member, least, most, UNSET, help),
#define ROW_FLAG(key, member, least, most, help)      CHOICE(key, struct layout_keys, member, flags, UNSET, help),
#define ROW_CP_COMM(key, member, least, most, help)   CUSTOM(key, struct layout_keys, member, read_cp_comm, NULL, UNSET, help),
#define ROW_RECOMPUTE(key, member, least, most, help) CUSTOM(key, struct layout_keys, member, read_recompute, NULL, UNSET, help),
#define ROW_OFFLOAD(key, member, least, most, help)   CUSTOM(key, struct layout_keys, member, read_offload, NULL, UNSET, help),
#define ROW_SCHEDULE(key, member, least, most, help)  CHOICE(key, struct layout_keys, member, schedule_names, UNSET, help),
static const struct field rows[] = {
#define X(id, type, member, key, word, brief, long_name, least, most, usual, rare, in_tables, help, values)                      \
    ROW_##type(key, member, least, most, help)
    LAYOUT_DIMENSIONS(X)
#undef X
        CHOICE(LAYOUT_AUTO, struct layout_keys, search, flags, UNSET, "what is not given is what msim plan finds best"),
};
const struct schema layout_schema = SCHEMA("layout", rows);

const char *layout_request_key(const char *key)
{
    int dimension = layout_dimension_of(key);
    return dimension < 0 ? key : layout_dimensions[dimension].key;
}
