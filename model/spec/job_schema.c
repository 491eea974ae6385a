/* job_schema.c - the rows of the job and the faults. */
#include "model/spec/experiment.h"
#include "model/spec/key_words.h"
#include "model/spec/schemas.h"

#include <string.h>

/* Names of which several may be given: bit i is the i-th. */
struct name_set {
    const char *const *names;
    int n;
    const char *example;
};
static const struct name_set features_set = {feature_names, N_FEATURES, "for example flash_attention2, tp_overlap, dp_overlap"};
static const struct name_set targets_set = {adapter_target_names, N_ADAPTER_TARGETS, "qkv, projection, mlp_up or mlp_down"};
static const struct name_set wholes_set = {adapter_whole_names, N_ADAPTER_WHOLES, "embedding or head"};

/* The target of adapters to which a framework's module belongs: "qkv" for "q_proj"; NULL: none is known. */
static const char *target_of_module(const char *module)
{
    static const struct {
        const char *module, *target;
    } modules[] = {
        {"q_proj", "qkv"},          {"k_proj", "qkv"},
        {"v_proj", "qkv"},          {"qkv_proj", "qkv"},
        {"query_key_value", "qkv"}, {"linear_qkv", "qkv"},
        {"c_attn", "qkv"},          {"o_proj", "projection"},
        {"out_proj", "projection"}, {"linear_proj", "projection"},
        {"gate_proj", "mlp_up"},    {"up_proj", "mlp_up"},
        {"gate_up_proj", "mlp_up"}, {"linear_fc1", "mlp_up"},
        {"down_proj", "mlp_down"},  {"linear_fc2", "mlp_down"},
    };
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (key_word_is(module, modules[i].module))
            return modules[i].target;
    return NULL;
}

static void read_member(const struct field *row, const struct yaml_node *value, const struct name_set *set, uint32_t *members,
                        struct diags *diags)
{
    if (strcmp(value->text, "none") == 0)
        return;
    for (int i = 0; i < set->n; i++)
        if (strcmp(value->text, set->names[i]) == 0) {
            *members |= (uint32_t)1 << i;
            return;
        }
    char hint[96];
    const char *target = set == &targets_set ? target_of_module(value->text) : NULL;
    if (target) {
        diag_error(diags, value->at, "%s: unknown '%.40s'; write '%s', which has one adapter", row->key, value->text, target);
        return;
    }
    diag_error(diags, value->at, "%s: unknown '%.40s'; %s", row->key, value->text,
               name_hint(value->text, set->names, (size_t)set->n, set->example, hint, sizeof hint));
}

/* What reads the words of a value, one after the other. */
typedef void read_word(void *reader, const struct yaml_node *word);

/* Those of a text, between commas or semicolons (as measurement tables write them). */
static void text_words(const struct yaml_node *text, read_word *read, void *reader)
{
    const char *rest = text->text;
    while (*(rest += strspn(rest, ",; "))) {
        char name[64];
        size_t n = strcspn(rest, ",; ");
        struct yaml_node word = {.kind = YAML_SCALAR, .text = name, .at = text->at};
        snprintf(name, sizeof name, "%.*s", (int)n, rest);
        read(reader, &word);
        rest += n;
    }
}

/* Those of a sequence of texts, or of one text. A mapping has none. */
static void each_word(const struct field *row, const struct yaml_node *value, read_word *read, void *reader, struct diags *diags)
{
    if (value->kind == YAML_MAPPING)
        diag_error(diags, value->at, "%s is a mapping; it must be a list of names", row->key);
    if (value->kind == YAML_SCALAR)
        text_words(value, read, reader);
    for (const struct yaml_node *child = value->kind == YAML_SEQUENCE ? value->first : NULL; child; child = child->next)
        if (child->kind == YAML_SCALAR)
            text_words(child, read, reader);
        else
            diag_error(diags, child->at, "%s: %s, but a name is expected", row->key, yaml_kind_name(child->kind));
}

struct set_reader {
    const struct field *row;
    const struct name_set *set;
    struct diags *diags;
    uint32_t members;
};

static void read_set_word(void *reader, const struct yaml_node *word)
{
    struct set_reader *r = reader;
    read_member(r->row, word, r->set, &r->members, r->diags);
}

/* A set of names. The word none stands for no name. */
static void read_set(const struct field *row, const struct yaml_node *value, const struct name_set *set, void *at,
                     struct diags *diags)
{
    struct set_reader reader = {row, set, diags, 0};
    each_word(row, value, read_set_word, &reader, diags);
    if (value->kind != YAML_MAPPING)
        memcpy(at, &reader.members, sizeof reader.members);
}

static json_t *write_set(const struct name_set *set, const void *at)
{
    uint32_t members;
    memcpy(&members, at, sizeof members);
    json_t *names = json_array();
    for (int i = 0; i < set->n; i++)
        if (members >> i & 1)
            json_array_append_new(names, json_string(set->names[i]));
    return names;
}

/*
 * Features are a set of names, or changes of one: "+ep_overlap" adds a feature, "-tp_overlap" takes one away. Changes alone are
 * of the usual features; behind names they are of those.
 */
struct feature_reader {
    const struct field *row;
    struct diags *diags;
    feature_set usual;
    struct job_features given;
    bool begun, changes; /* a word has been read; a change has */
};

static bool is_change(const char *word)
{
    return word[0] == '+' || word[0] == '-';
}

static void read_feature(void *reader, const struct yaml_node *word)
{
    struct feature_reader *r = reader;
    bool change = is_change(word->text), takes = word->text[0] == '-';
    struct yaml_node name = *word;
    feature_set found = 0;
    name.text += change;
    if (change && strcmp(name.text, "none") == 0)
        diag_error(r->diags, word->at, "%s: '%s' has no effect; write none alone, or a name after the sign", r->row->key,
                   word->text);
    else if (r->changes && !change)
        diag_error(r->diags, word->at, "%s: '%s' after a change; write +%s, or put names without a sign first", r->row->key,
                   word->text, word->text);
    else
        read_member(r->row, &name, &features_set, &found, r->diags);
    if (change && !r->begun)
        r->given.features = r->usual;
    if (!change)
        r->given.named |= found;
    if (takes)
        r->given.absent |= found & ~r->given.features;
    for (int i = 0; i < N_FEATURES; i++)
        if (found >> i & 1)
            r->given.features = takes    ? r->given.features & ~found
                                : change ? features_with(r->given.features, (enum feature)i)
                                         : r->given.features | found;
    r->begun = true;
    r->changes |= change;
}

struct job_features job_features(const struct yaml_node *value, feature_set usual)
{
    struct diags quiet = {0}; /* what is wrong with it has been said when the job was read */
    const struct field row = {.key = "features"};
    struct feature_reader reader = {.row = &row, .diags = &quiet, .usual = usual};
    if (!value || yaml_is_null(value))
        return (struct job_features){.features = usual};
    each_word(&row, value, read_feature, &reader, &quiet);
    diags_free(&quiet);
    return reader.given;
}

bool job_features_change(const struct yaml_node *value)
{
    const struct yaml_node *first = value && value->kind == YAML_SEQUENCE ? value->first : value;
    return first && first->kind == YAML_SCALAR && is_change(first->text + strspn(first->text, ",; "));
}

/* Names only: what changes are of is known when the GPU is. */
static void read_features(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    struct feature_reader reader = {.row = row, .diags = diags};
    each_word(row, value, read_feature, &reader, diags);
    if (value->kind == YAML_SCALAR && !reader.begun)
        diag_error(diags, value->at, "%s: names are expected; write none for no feature", row->key);
    memcpy(at, &reader.given.features, sizeof reader.given.features);
}

static json_t *write_features(const struct field *row, const void *at)
{
    (void)row;
    return write_set(&features_set, at);
}

static void read_targets(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    size_t before = diags->n_errors;
    uint32_t targets;
    read_set(row, value, &targets_set, at, diags);
    memcpy(&targets, at, sizeof targets);
    if (!targets && diags->n_errors == before)
        diag_error(diags, value->at, "%s: adapters without a matrix train nothing; specify some of %s", row->key,
                   targets_set.example);
}

static json_t *write_targets(const struct field *row, const void *at)
{
    (void)row;
    return write_set(&targets_set, at);
}

static void read_wholes(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    read_set(row, value, &wholes_set, at, diags);
}

static json_t *write_wholes(const struct field *row, const void *at)
{
    (void)row;
    return write_set(&wholes_set, at);
}

static const struct field adapter_rows[] = {
    INTEGER("rank", struct adapter, rank, 1, 65536, REQUIRED, "how many rows A has, and columns B (r, lora_rank)"),
    CUSTOM("targets", struct adapter, targets, read_targets, write_targets, REQUIRED,
           "beside which matrices: qkv, projection, mlp_up, mlp_down"),
    CUSTOM("whole", struct adapter, whole, read_wholes, write_wholes, UNSET,
           "what is trained whole beside them (modules_to_save): embedding, head"),
};
static const struct schema adapter_schema = SCHEMA("adapter", adapter_rows);

static const struct field documents_rows[] = {
    QUANTITY("mean", struct documents, mean, DIM_COUNT, 1, 1e9, REQUIRED, "tokens of a document on average"),
    QUANTITY("spread", struct documents, spread, DIM_COUNT, 0, 4, REQUIRED,
             "standard deviation of the logarithm of a length; 0: all are equally long"),
};
static const struct schema documents_schema = SCHEMA("documents", documents_rows);

/* By enum precision, as far as something is kept so. */
static const char *const gradient_names[] = {"fp32", "bf16", "fp16", NULL};
static const char *const moment_names[] = {"fp32", "bf16", "fp16", "fp8", NULL};

static const struct field job_rows[] = {
    INTEGER("global_batch", struct job, global_batch, 1, JOB_SEQUENCES_MAX, UNSET, "sequences per step, over all replicas"),
    INTEGER("batch_tokens", struct job, batch_tokens, 1, JOB_TOKENS_MAX, UNSET,
            "global batch in tokens, instead of global_batch; msim rounds it to whole sequences"),
    LENGTH("seq_len", struct job, seq_len, 1, 1e9, UNSET, "tokens per sequence (default: the model's)"),
    CHOICE("precision", struct job, precision, precision_names, "bf16", "of the matrix multiplications"),
    CHOICE("gradient_precision", struct job, gradient_precision, gradient_names, "fp32", "of the reduction between replicas"),
    CHOICE("moment_precision", struct job, moment_precision, moment_names, UNSET,
           "of the optimizer's stored moments; fp8 means any 8-bit format (default: fp32, like the master weights)"),
    CHOICE("optimizer", struct job, optimizer, optimizer_names, "adam", "decides the optimizer's state and work"),
    CHOICE(
        "muon_tp", struct job, muon_tp, muon_tp_names, UNSET,
        "muon on matrices that tp divides; blockwise: each block by itself; duplicated: the whole matrix on every rank (default: "
        "blockwise)"),
    CHOICE(
        "muon_shard", struct job, muon_shard, muon_shard_names, UNSET,
        "muon's states under ZeRO-1; elements: a part of every parameter on each replica; layer_wise: whole parameters on their "
        "owners (default: elements)"),
    {.key = "features",
     .type = FIELD_CUSTOM,
     FIELD_AT(struct job, features),
     .read = read_features,
     .write = write_features,
     .fallback = UNSET,
     .stated = true, /* the default is the set of current training stacks */
     .help = "software features; +NAME and -NAME change those of current training stacks, or those of a file"},
    INTEGER("window", struct job, window, 0, 1e9, UNSET, "width for the feature sliding_window (default: the model's)"),
    QUANTITY("memory_margin", struct job, memory_margin, DIM_FRACTION, 0, 0.9, "10%",
             "share of a GPU's memory that a search for layouts leaves free; 0 ranks by time alone"),
    QUANTITY("tokens", struct job, tokens, DIM_COUNT, 1, 1e18, UNSET, "training budget"),
    QUANTITY("clip", struct job, clip, DIM_COUNT, 0, 1e9, UNSET,
             "largest norm of the gradients; only validate executes it (default: no limit)"),
    QUANTITY("dropout", struct job, dropout, DIM_FRACTION, 0, 0.99, UNSET,
             "share of each branch's elements dropped before the residual sum, executed by validate"),
    QUANTITY("expert_load", struct job, load.busiest, DIM_COUNT, 1, 1e5, UNSET,
             "tokens of the busiest expert / mean of all experts, per layer and micro-batch (default: 1, balanced)"),
    QUANTITY("capacity_factor", struct job, load.capacity, DIM_COUNT, 1e-3, 1e5, UNSET,
             "most tokens of an expert / mean of all experts; tokens beyond it are dropped (default: no limit)"),
    BOOLEAN("pad_to_capacity", struct job, load.padded, UNSET, "pad each expert's tokens up to the capacity (default: no)"),
    GROUP("adapter", struct job, adapter, adapter_schema, UNSET, "low-rank adapters (LoRA) are trained, the model is frozen"),
    GROUP("documents", struct job, documents, documents_schema, UNSET,
          "sequences are packed from documents of these lengths, and attention is masked between them"),
};
const struct schema job_schema = SCHEMA("job", job_rows);

static const struct field faults_rows[] = {
    TEXT("trace", struct faults_request, trace, UNSET, "a shipped trace or a file"),
    TEXT("model", struct faults_request, model, UNSET, "a fault model to draw from instead: a shipped one or a file"),
    TEXT("policy", struct faults_request, policy, UNSET, "how faults are found and repaired: a shipped one or a file"),
    TEXT("checkpoint", struct faults_request, checkpoint, UNSET, "blocking, two-stage, memory or step"),
    QUANTITY("horizon", struct faults_request, horizon_s, DIM_TIME, 1, TIME_LONGEST_S, UNSET,
             "length of the simulated time (default: the trace's length)"),
    QUANTITY("checkpoint_interval", struct faults_request, checkpoint_interval_s, DIM_TIME, 1e-3, TIME_LONGEST_S, UNSET,
             "useful work between checkpoints"),
    INTEGER("checkpoint_steps", struct faults_request, checkpoint_steps, 1, 1e12, UNSET, "the same in steps"),
    QUANTITY("checkpoint_block", struct faults_request, checkpoint_block_s, DIM_TIME, 0, TIME_LONGEST_S, UNSET,
             "how long a checkpoint stops training"),
    QUANTITY("detect", struct faults_request, detect_s, DIM_TIME, 0, TIME_LONGEST_S, UNSET, "until a failure is noticed"),
    QUANTITY("restart", struct faults_request, restart_s, DIM_TIME, 0, TIME_LONGEST_S, UNSET, "until training runs again"),
    QUANTITY("repair", struct faults_request, repair_s, DIM_TIME, 1, TIME_LONGEST_S, UNSET,
             "mean time that a failed node is away; all repairs are scaled to it (default: as in the trace or model)"),
    INTEGER("spares", struct faults_request, spares, 0, 1e6, UNSET, "nodes that stand by"),
};
const struct schema faults_schema = SCHEMA("faults", faults_rows);
