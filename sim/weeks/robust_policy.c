#include "sim/weeks/robust_policy.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/schema.h"
#include "model/spec/shipped.h"

const struct shipped robust_policies = {.folder = "sim/policies", .endings = {".yaml"}, .also = "replay and files"};

/* --- the diagnostic suite --- */

/* {gpu: 90%, nvlink: 80%}. A test never finds faults of components that it does not list. */
static void read_finds(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    double *finds = at;
    const char *names[N_COMPONENTS];
    for (int i = 0; i < N_COMPONENTS; i++)
        names[i] = component_name((enum component)i);
    for (const struct yaml_node *child = value->kind == YAML_MAPPING ? value->first : NULL; child; child = child->next) {
        int i = 0;
        while (i < N_COMPONENTS && strcmp(names[i], child->key) != 0)
            i++;
        char hint[96];
        struct field probability = {.key = child->key, .type = FIELD_QUANTITY, .dimension = DIM_FRACTION, .max = 1};
        if (i < N_COMPONENTS)
            field_read(&probability, child, &finds[i], diags);
        else
            diag_error(diags, child->key_at, "unknown component '%s'; %s", child->key,
                       name_hint(child->key, names, N_COMPONENTS, "it is left out", hint, sizeof hint));
    }
    if (value->kind != YAML_MAPPING)
        diag_error(diags, value->at, "%s: a mapping of components to probabilities is expected", row->key);
}

static json_t *write_finds(const struct field *row, const void *at)
{
    const double *finds = at;
    json_t *mapping = json_object();
    (void)row;
    for (int i = 0; i < N_COMPONENTS; i++)
        if (finds[i] > 0)
            json_object_set_new(mapping, component_name((enum component)i), json_real(finds[i]));
    return mapping;
}

static const struct field test_rows[] = {
    TEXT("name", struct diagnostic_test, name, REQUIRED, "name of the test"),
    QUANTITY("time", struct diagnostic_test, seconds, DIM_TIME, 0, 1e6, REQUIRED, "duration of the test"),
    QUANTITY("false_positive", struct diagnostic_test, false_positive, DIM_FRACTION, 0, 0.5, UNSET,
             "probability to condemn a healthy node"),
    CUSTOM("finds", struct diagnostic_test, finds, read_finds, write_finds, REQUIRED, "probability by component"),
};
static const struct schema test_schema = SCHEMA("diagnostic test", test_rows);

static void read_tests(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    struct diagnostic_suite *suite = at;
    suite->n = 0;
    if (value->kind != YAML_SEQUENCE)
        diag_error(diags, value->at, "%s: a list of tests is expected; this is %s", row->key, yaml_kind_name(value->kind));
    for (const struct yaml_node *child = value->kind == YAML_SEQUENCE ? value->first : NULL; child; child = child->next)
        if (suite->n == MAX_TESTS)
            diag_error(diags, child->at, "%s: at most %d tests", row->key, MAX_TESTS);
        else
            schema_read(&test_schema, child, &suite->items[suite->n++], diags);
}

static json_t *write_tests(const struct field *row, const void *at)
{
    const struct diagnostic_suite *suite = at;
    json_t *list = json_array();
    (void)row;
    for (int i = 0; i < suite->n; i++)
        json_array_append_new(list, schema_write(&test_schema, &suite->items[i]));
    return list;
}

/* --- the policy --- */

#define TIME(k, member, def, what) QUANTITY(k, struct robust_policy, member, DIM_TIME, 0, TIME_LONGEST_S, def, what)
#define PART(k, member, def, what) QUANTITY(k, struct robust_policy, member, DIM_FRACTION, 0, 1, def, what)
static const struct field policy_rows[] = {
    TEXT("name", struct robust_policy, name, REQUIRED, "of the policy"),
    TEXT("source", struct robust_policy, source, REQUIRED, "where the numbers come from"),
    TIME("heartbeat", heartbeat_s, REQUIRED, "from one heartbeat to the next"),
    TIME("heartbeat_timeout", heartbeat_timeout_s, REQUIRED, "without a heartbeat, until the node counts as lost"),
    TIME("log_delay", log_delay_s, "0s", "to filter the output of processes"),
    TIME("traffic_window", traffic_window_s, "0s", "without RDMA traffic, until it counts as a hang; 0s: not watched"),
    TIME("collective_timeout", collective_timeout_s, "10min", "of the collective library"),
    TIME("silent_detect", silent_detect_s, "1h", "mean time until silent corruption is noticed"),
    PART("automatic", automatic, "1", "share of faults handled without a person"),
    TIME("human_median", human_median_s, "1h", "median time until a person has fixed the fault"),
    QUANTITY("human_sigma", struct robust_policy, human_sigma, DIM_COUNT, 0, 5, "1", "standard deviation of its logarithm"),
    INTEGER("attempts", struct robust_policy, attempts, 1, 100, "3", "restarts before a person is called"),
    TIME("relapse", relapse_s, "10min", "mean time until a fault that was not found comes back"),
    PART("hang_recurs", hang_recurs, UNSET, "probability that a hang without a broken node comes back"),
    QUANTITY("pause_rate", struct robust_policy, pause_rate, DIM_COUNT, 0, 1e6, UNSET, "pauses of a healthy node per day"),
    TIME("pause", pause_s, "1s", "mean length of such a pause"),
    QUANTITY("stall_rate", struct robust_policy, stall_rate, DIM_COUNT, 0, 1e6, UNSET, "stalls of a healthy job per day"),
    TIME("stall", stall_s, "1s", "mean length of such a stall"),
    TIME("straggler_find", straggler_find_s, "0s", "until a slow node is found; 0s: never"),
    TIME("recheck", recheck_s, "2h", "how long a condemned healthy node is away"),
    INTEGER("blocklist_failures", struct robust_policy, blocklist_failures, 0, 1000, UNSET,
            "failures of a node until it is listed"),
    TIME("blocklist_window", blocklist_window_s, "30d", "window in which failures count; 0s: all of its life"),
    TIME("blocklist", blocklist_s, "7d", "how long a listed node is away"),
    INTEGER("hot_spares", struct robust_policy, hot_spares, 0, 1e6, UNSET, "spares that are ready at once"),
    PART("drift_per_day", drift_per_day, UNSET, "share of the speed lost per day since the last restart"),
    PART("drift_limit", drift_limit, "10%", "largest share of the speed that is lost so"),
    BOOLEAN("elastic", struct robust_policy, elastic, "false", "go on with fewer replicas instead of waiting"),
    CUSTOM("tests", struct robust_policy, tests, read_tests, write_tests, REQUIRED, "the diagnostic suite, in order"),
};
const struct schema robust_policy_schema = SCHEMA("recovery policy", policy_rows);

static enum status read_tree(struct yaml_node *root, void *policy, struct diags *diags)
{
    size_t before = diags->n_errors;
    struct robust_policy read = {0};
    if (root->kind == YAML_MAPPING)
        schema_read(&robust_policy_schema, root, &read, diags);
    else
        diag_error(diags, root->at, "a recovery policy is a mapping; this is %s", yaml_kind_name(root->kind));
    if (diags->n_errors == before && read.heartbeat_timeout_s < read.heartbeat_s)
        diag_error(diags, root->at, "heartbeat_timeout is shorter than heartbeat: every healthy node would count as lost");
    if (diags->n_errors > before)
        return STATUS_BAD_INPUT;
    *(struct robust_policy *)policy = read;
    return STATUS_OK;
}

enum status robust_policy_parse(const char *name, const char *bytes, size_t n, struct robust_policy *policy, struct diags *diags)
{
    return shipped_parse(name, bytes, n, read_tree, policy, diags);
}

enum status robust_policy_load(const char *name, struct robust_policy *policy, struct diags *diags)
{
    return shipped_load(&robust_policies, "policy", name, read_tree, policy, diags);
}

char *robust_policy_to_json(const struct robust_policy *policy)
{
    json_t *root = schema_write(&robust_policy_schema, policy);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(root);
    return text ? text : memory_copy_text("{}");
}

static double longer_than(double rate, double mean_s, double limit_s)
{
    return rate > 0 && mean_s > 0 ? rate * exp(-limit_s / mean_s) : 0;
}

void robust_policy_alarms(const struct robust_policy *policy, int32_t nodes, double *heartbeat, double *hang)
{
    bool watched = robust_policy_watches_traffic(policy);
    *heartbeat = longer_than(nodes * policy->pause_rate, policy->pause_s, policy->heartbeat_timeout_s);
    *hang = longer_than(policy->stall_rate, policy->stall_s, watched ? policy->traffic_window_s : policy->collective_timeout_s);
}

bool robust_policy_watches_traffic(const struct robust_policy *policy)
{
    return policy->traffic_window_s > 0 &&
           (policy->collective_timeout_s <= 0 || policy->traffic_window_s < policy->collective_timeout_s);
}
