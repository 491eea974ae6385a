#include "model/spec/experiment.h"
#include "model/spec/schemas.h"

#include <string.h>

/* How the job and the faults are written. */

static void read_feature(const struct yaml_node *value, feature_set *features, struct diags *diags)
{
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "features: %s where a name is wanted", yaml_kind_name(value->kind));
        return;
    }
    int feature = feature_parse(value->text);
    if (strcmp(value->text, "none") == 0)
        return;
    if (feature >= 0) {
        *features |= (feature_set)1 << feature;
        return;
    }
    char hint[96];
    diag_error(diags, value->at, "features: unknown '%.40s'; %s", value->text,
               name_hint(value->text, feature_names, N_FEATURES, "for example flash_attention2, tp_overlap, dp_overlap", hint,
                         sizeof hint));
}

/* A sequence of names, or one text with commas or semicolons between them (as measurement tables write it). The word none stands
 * for no feature. */
static void read_features(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    feature_set features = 0;
    if (value->kind == YAML_MAPPING) {
        diag_error(diags, value->at, "%s is a mapping; it must be a sequence of names", row->key);
        return;
    }
    for (const struct yaml_node *child = value->kind == YAML_SEQUENCE ? value->first : NULL; child; child = child->next)
        read_feature(child, &features, diags);
    const char *rest = value->kind == YAML_SCALAR ? value->text : "";
    while (*(rest += strspn(rest, ",; "))) {
        char name[64];
        size_t n = strcspn(rest, ",; ");
        struct yaml_node word = {.kind = YAML_SCALAR, .text = name, .at = value->at};
        snprintf(name, sizeof name, "%.*s", (int)n, rest);
        read_feature(&word, &features, diags);
        rest += n;
    }
    memcpy(at, &features, sizeof features);
}

static json_t *write_features(const struct field *row, const void *at)
{
    (void)row;
    feature_set features;
    memcpy(&features, at, sizeof features);
    json_t *names = json_array();
    for (int i = 0; i < N_FEATURES; i++)
        if (features & (feature_set)1 << i)
            json_array_append_new(names, json_string(feature_name((enum feature)i)));
    return names;
}

static const struct field job_rows[] = {
    INTEGER("global_batch", struct job, global_batch, 1, 1e9, UNSET, "sequences per step, all replicas together"),
    LENGTH("seq_len", struct job, seq_len, 1, 1e9, UNSET, "tokens per sequence; the model's own when left out"),
    CHOICE("precision", struct job, precision, precision_names, "bf16", "of the matrix multiplications"),
    CHOICE("gradient_precision", struct job, gradient_precision, precision_names, "fp32", "of the reduction between replicas"),
    CHOICE("optimizer", struct job, optimizer, optimizer_names, "adam", "decides the optimizer's state and work"),
    CHOICE("muon_tp", struct job, muon_tp, muon_tp_names, UNSET,
           "muon on matrices that tp divides: blockwise, each block by itself, unless told duplicated, the whole on every rank"),
    CUSTOM("features", struct job, features, read_features, write_features, UNSET, "software features"),
    INTEGER("window", struct job, window, 0, 1e9, UNSET, "width for the feature sliding_window; the model's own when left out"),
    QUANTITY("memory_margin", struct job, memory_margin, DIM_FRACTION, 0, 0.9, UNSET,
             "share of a GPU's memory that a search for layouts leaves free"),
    QUANTITY("tokens", struct job, tokens, DIM_COUNT, 1, 1e18, UNSET, "training budget"),
    QUANTITY("clip", struct job, clip, DIM_COUNT, 0, 1e9, UNSET,
             "largest norm of the gradients, executed by validate; any when left out"),
    QUANTITY("dropout", struct job, dropout, DIM_FRACTION, 0, 0.99, UNSET,
             "share of each branch's elements dropped before the residual sum, executed by validate"),
};
const struct schema job_schema = SCHEMA("job", job_rows);

static const struct field faults_rows[] = {
    TEXT("trace", struct faults_request, trace, UNSET, "a shipped trace or a file"),
    TEXT("model", struct faults_request, model, UNSET, "a fault model to draw from instead: a shipped one or a file"),
    TEXT("policy", struct faults_request, policy, UNSET, "how faults are found and repaired: a shipped one or a file"),
    TEXT("checkpoint", struct faults_request, checkpoint, UNSET, "blocking, two-stage, memory or step"),
    QUANTITY("horizon", struct faults_request, horizon_s, DIM_TIME, 1, 3e9, UNSET,
             "how long to look; the trace's length when left out"),
    QUANTITY("checkpoint_interval", struct faults_request, checkpoint_interval_s, DIM_TIME, 1e-3, 3e9, UNSET,
             "useful work between checkpoints"),
    INTEGER("checkpoint_steps", struct faults_request, checkpoint_steps, 1, 1e12, UNSET, "the same in steps"),
    QUANTITY("checkpoint_block", struct faults_request, checkpoint_block_s, DIM_TIME, 0, 3e9, UNSET,
             "how long a checkpoint stops training"),
    QUANTITY("detect", struct faults_request, detect_s, DIM_TIME, 0, 3e9, UNSET, "until a failure is noticed"),
    QUANTITY("restart", struct faults_request, restart_s, DIM_TIME, 0, 3e9, UNSET, "until training runs again"),
    INTEGER("spares", struct faults_request, spares, 0, 1e6, UNSET, "nodes that stand by"),
};
const struct schema faults_schema = SCHEMA("faults", faults_rows);
