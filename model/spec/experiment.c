#include "model/spec/experiment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/spec/entry.h"
#include "model/spec/experiment_flags.h"
#include "model/spec/layout_request.h"
#include "model/spec/schemas.h"

/* The parts of an experiment file, found but not yet read. */
struct parts {
    const struct yaml_node *model, *cluster, *job, *layout, *faults;
    int64_t seed;
};

static void keep_part(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    (void)row, (void)diags;
    memcpy(at, &value, sizeof value);
}

static const struct field part_rows[] = {
    CUSTOM("model", struct parts, model, keep_part, NULL, REQUIRED, "set with --model NAME or `model:` in the file"),
    CUSTOM("cluster", struct parts, cluster, keep_part, NULL, REQUIRED,
           "set with --cluster NAME, --gpu NAME or `cluster:` in the file"),
    CUSTOM("job", struct parts, job, keep_part, NULL, UNSET, "how much is trained"),
    CUSTOM("layout", struct parts, layout, keep_part, NULL, UNSET, "how the work is divided"),
    CUSTOM("faults", struct parts, faults, keep_part, NULL, UNSET, "what goes wrong"),
    INTEGER("seed", struct parts, seed, 0, 9007199254740992.0, "1", "of everything random"),
};
const struct schema experiment_schema = SCHEMA("experiment", part_rows);

static const struct field gpus_row[] = {
    {.key = "gpus", .type = FIELD_INT, .min = 1, .max = 16e6, .fallback = UNSET, .help = "GPUs that the job uses"}};

/* One load: the arena and the list that every step needs. */
struct loader {
    struct arena arena;
    struct diags *diags;
    size_t errors_before;
    bool grows;
};

static void check_gpus(struct place at, struct experiment *e, struct diags *diags)
{
    int all = cluster_gpus(&e->cluster), gpn = e->cluster.gpus_per_node, below = e->gpus / gpn * gpn;
    int nodes = e->gpus / gpn + (e->gpus % gpn != 0);
    if (e->gpus > all)
        diag_error(diags, at,
                   "gpus: %d exceed the %d of the cluster (%d node%s of %d); --gpus %d uses all of it, --set cluster.nodes=%d%s "
                   "makes it large enough",
                   e->gpus, all, e->cluster.nodes, e->cluster.nodes == 1 ? "" : "s", gpn, all, nodes,
                   cluster_groups_remedy(&e->cluster, nodes));
    else if (e->gpus > gpn && e->gpus % gpn != 0)
        diag_error(diags, at, "gpus: %d do not fill nodes of %d; use %d or %d", e->gpus, gpn, below, below + gpn);
    else if (e->gpus < gpn && gpn % e->gpus != 0)
        diag_error(diags, at, "gpus: a node of %d GPUs cannot be shared evenly by jobs of %d; use a divisor of %d", gpn, e->gpus,
                   gpn);
}

/* Does a cluster name its GPU only? Then it is as many usual nodes of it as the job needs. */
static bool is_gpu_alone(const struct yaml_node *part)
{
    return yaml_find(part, "gpu") && !yaml_find(part, "base") && !yaml_find(part, "nodes");
}

static struct yaml_node *with_nodes(const struct yaml_node *part, int nodes, struct arena *arena)
{
    char number[16];
    snprintf(number, sizeof number, "%d", nodes);
    return yaml_replace(part, "nodes", yaml_scalar("gpus", number, arena), arena);
}

static struct yaml_node *usual_node(const struct yaml_node *part, struct arena *arena)
{
    struct yaml_node *tree = with_nodes(part, 1, arena);
    if (yaml_find(tree, "source"))
        return tree;
    return yaml_with(tree, "source", yaml_scalar("gpus", "usual nodes of this GPU", arena), arena);
}

/* As many nodes of the same kind as hold the job, where they may be: usual ones that a GPU alone stands for, or others of a
 * cluster that grows. What there is to say of their entry was said when it was read first. */
static bool grow_cluster(const struct yaml_node *part, bool usual, struct experiment *e, struct loader *l)
{
    int gpn = e->cluster.gpus_per_node, nodes = e->gpus / gpn + (e->gpus % gpn != 0);
    if ((!usual && !l->grows) || nodes <= e->cluster.nodes)
        return true;
    struct diags again = {0}, *first = l->diags;
    l->diags = &again;
    bool holds = entry_load(CATALOG_CLUSTERS, with_nodes(part, nodes, &l->arena), &e->cluster, &l->arena, l->diags) == STATUS_OK;
    l->diags = first;
    diags_free(&again);
    int nics = e->cluster.nics_per_node;
    e->grown = !usual;
    if (!holds)
        diag_error(first, part->at, "gpus: msim cannot make a cluster of %d nodes for %d GPUs", nodes, e->gpus);
    else if (usual)
        diag_note(first, yaml_place(part, "gpu"),
                  "assuming %d usual nodes of %d GPUs, each with %d NIC%s of %.0f Gbps, on a non-blocking fabric", nodes, gpn,
                  nics, nics == 1 ? "" : "s", e->cluster.nic_rate * 8e-9);
    return holds;
}

/* The cluster without `gpus`, which is the experiment's. */
static bool read_cluster(const struct yaml_node *part, struct experiment *e, struct loader *l)
{
    const struct yaml_node *gpus = part ? yaml_find(part, "gpus") : NULL;
    size_t before = l->diags->n_errors;
    if (gpus && !yaml_is_null(gpus))
        field_read(gpus_row, gpus, &e->gpus, l->diags);
    const struct yaml_node *rest = gpus ? yaml_without(part, "gpus", &l->arena) : part;
    if (rest && rest->kind == YAML_MAPPING && !rest->first) {
        diag_error(
            l->diags, rest->at,
            "the cluster is missing; specify --cluster NAME, --gpu NAME, or `base: NAME` in the cluster of the experiment");
        return false;
    }
    bool usual = is_gpu_alone(rest);
    rest = usual ? usual_node(rest, &l->arena) : rest;
    if (entry_load(CATALOG_CLUSTERS, rest, &e->cluster, &l->arena, l->diags) != STATUS_OK)
        return false;
    if (!e->gpus)
        e->gpus = cluster_gpus(&e->cluster);
    if (!grow_cluster(rest, usual, e, l))
        return false;
    e->cluster.as_needed = usual;
    if (l->diags->n_errors == before)
        check_gpus(gpus ? gpus->at : part->at, e, l->diags);
    return l->diags->n_errors == before;
}

static const struct yaml_node *part_or_empty(const struct yaml_node *part, struct place at, struct loader *l)
{
    if (part)
        return part;
    struct yaml_node *empty = arena_new(&l->arena, 1, sizeof *empty);
    *empty = (struct yaml_node){.kind = YAML_MAPPING, .at = at};
    return empty;
}

/* A trace, model or policy named in a file is looked for beside that file first, as the other files are. */
static void find_beside(const struct yaml_node *part, const char *key, char *name, size_t size)
{
    const struct yaml_node *value = yaml_find(part, key);
    const char *slash = value && value->at.line > 0 ? strrchr(value->at.file, '/') : NULL;
    char path[256];
    if (!slash || name[0] == '/' || !*name)
        return;
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)(slash - value->at.file), value->at.file, name);
    if (n > 0 && (size_t)n < sizeof path && (size_t)n < size && access(path, F_OK) == 0)
        memcpy(name, path, (size_t)n + 1);
}

static void read_faults(const struct yaml_node *part, struct experiment *e, struct diags *diags)
{
    e->faults.spares = -1;
    e->faults.checkpoint_block_s = e->faults.detect_s = e->faults.restart_s = -1;
    if (!part)
        return;
    schema_read(&faults_schema, part, &e->faults, diags);
    find_beside(part, "trace", e->faults.trace, sizeof e->faults.trace);
    find_beside(part, "model", e->faults.model, sizeof e->faults.model);
    find_beside(part, "policy", e->faults.policy, sizeof e->faults.policy);
    if (e->faults.trace[0] && e->faults.model[0])
        diag_error(diags, yaml_place(part, "model"), "model: a trace already defines the faults (trace); keep one");
    if (e->faults.checkpoint_interval_s > 0 && e->faults.checkpoint_steps > 0)
        diag_error(diags, yaml_place(part, "checkpoint_steps"),
                   "checkpoint_steps: checkpoint_interval already sets the interval; keep one");
}

/* No published run has more than a fifth of this per step. A larger batch probably means that its number counts tokens, not
 * sequences. */
#define STEP_TOKENS_MAX 1e9

/* What adapters are not modelled with. */
static void check_adapter(const struct yaml_node *part, const struct experiment *e, struct diags *diags)
{
    const struct yaml_node *adapter = yaml_find(part, "adapter");
    const struct transformer *m = &e->model;
    uint32_t feed = (uint32_t)1 << ADAPT_MLP_UP | (uint32_t)1 << ADAPT_MLP_DOWN;
    if (!job_adapts(&e->job))
        return;
    if (m->moe.experts && (e->job.adapter.targets & feed))
        diag_error(diags, yaml_place(adapter, "targets"),
                   "targets: adapters of experts are not modelled, and %s has experts; specify qkv, projection or both", m->name);
    if (m->mtp_layers)
        diag_error(diags, adapter->at,
                   "adapter: not modelled together with the %d prediction module%s of %s; set model.mtp_layers to 0",
                   m->mtp_layers, m->mtp_layers == 1 ? "" : "s", m->name);
    if (transformer_is_hybrid(m))
        diag_error(diags, adapter->at, "adapter: not modelled for models with a pattern of layers, such as %s", m->name);
    if (precision_is_narrow(e->job.precision))
        diag_error(diags, yaml_place(part, "precision"),
                   "precision: adapters with weights in %s are not modelled; set it to bf16", precision_name(e->job.precision));
    if (e->job.optimizer == OPTIMIZER_MUON)
        diag_error(diags, yaml_place(part, "optimizer"),
                   "optimizer: adapters trained by muon are not modelled; set it to adam, lamb or sgd");
}

/* Whether the job says something of a key. */
static bool says(const struct yaml_node *part, const char *key)
{
    const struct yaml_node *value = yaml_find(part, key);
    return value && !yaml_is_null(value);
}

/* How a router spreads tokens, where there is one; what follows from it. */
static void check_experts(const struct yaml_node *part, struct experiment *e, struct diags *diags)
{
    static const char *const keys[] = {"expert_load", "capacity_factor", "pad_to_capacity"};
    const struct mixture *moe = &e->model.moe;
    struct expert_load *load = &e->job.load;
    size_t before = diags->n_errors;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (says(part, keys[i]) && !moe->experts)
            diag_error(diags, yaml_place(part, keys[i]), "%s: %s has no experts; remove this key", keys[i], e->model.name);
    }
    if (!moe->experts)
        return;
    double most = (double)moe->experts / moe->top_k;
    if (load->busiest > most)
        diag_error(diags, yaml_place(part, "expert_load"),
                   "expert_load: at %g times the mean an expert already gets every token, because a token goes to %d of %d; %g "
                   "is impossible",
                   most, moe->top_k, moe->experts, load->busiest);
    if (load->padded && load->capacity <= 0)
        diag_error(diags, yaml_place(part, "pad_to_capacity"),
                   "pad_to_capacity: the capacity is missing; add capacity_factor, such as 1.25");
    if (diags->n_errors == before)
        expert_load_complete(load, moe->experts, moe->top_k);
}

/* What only one optimizer asks for. */
static void check_muon(const struct yaml_node *part, const struct job *job, struct diags *diags)
{
    static const char *const keys[] = {"muon_tp", "muon_shard"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && job->optimizer != OPTIMIZER_MUON; i++)
        if (yaml_find(part, keys[i]))
            diag_warning(diags, yaml_place(part, keys[i]), "%s: no effect with %s; it needs the optimizer muon", keys[i],
                         optimizer_names[job->optimizer]);
}

/* Tokens as whole sequences, the nearest number of them. Where they are none, a power of two that is near is named too: 4M is
 * mostly said of 4,194,304. */
static void count_sequences(const struct yaml_node *part, struct job *job, struct diags *diags)
{
    int64_t tokens = job->batch_tokens, sequences = (tokens + job->seq_len / 2) / job->seq_len, power = 1;
    if (tokens == 0)
        return;
    if (job->global_batch) {
        diag_error(diags, yaml_place(part, "batch_tokens"), "batch_tokens: global_batch already sets the batch; keep one");
        return;
    }
    if (sequences > JOB_SEQUENCES_MAX) {
        diag_error(diags, yaml_place(part, "batch_tokens"),
                   "batch_tokens: with %lld tokens per sequence, these are more than %d sequences", (long long)job->seq_len,
                   JOB_SEQUENCES_MAX);
        return;
    }
    job->batch_tokens = 0;
    job->global_batch = sequences > 0 ? sequences : 1;
    while (power * 3 / 2 <= job->global_batch)
        power *= 2;
    if (job->global_batch * job->seq_len == tokens)
        return;
    char near[96] = "";
    if (power != job->global_batch && llabs(power - job->global_batch) * 10 <= job->global_batch)
        snprintf(near, sizeof near, "; --global-batch %lld would be %lld tokens", (long long)power,
                 (long long)(power * job->seq_len));
    diag_note(diags, yaml_place(part, "batch_tokens"),
              "batch_tokens: %lld are not whole sequences of %lld tokens; msim uses %lld sequence%s, %lld tokens%s",
              (long long)tokens, (long long)job->seq_len, (long long)job->global_batch, job->global_batch == 1 ? "" : "s",
              (long long)(job->global_batch * job->seq_len), near);
}

/* Who names one feature mostly means it beside the usual ones, which names without a sign leave out; and who takes one away
 * thinks that it was there. */
static void check_features(const struct yaml_node *part, const struct experiment *e, struct job_features given,
                           struct diags *diags)
{
    feature_set features = e->job.features, usual = features_usual(&e->cluster.gpu);
    char names[FEATURES_TEXT], others[FEATURES_TEXT], plus[FEATURES_TEXT];
    if (given.absent)
        diag_warning(diags, yaml_place(part, "features"), "features: -%s has no effect; the job has %s",
                     features_text(given.absent, ", -", names, sizeof names),
                     features ? features_text(features, ", ", others, sizeof others) : "none");
    if (given.named && features && !(features & usual))
        diag_warning(diags, yaml_place(part, "features"),
                     "features: only %s, without the defaults of current training stacks (%s); +%s adds to these",
                     features_text(given.named, ", ", names, sizeof names), features_text(usual, ", ", others, sizeof others),
                     features_text(given.named, ",+", plus, sizeof plus));
}

/* Where the job leaves something open, the model and the GPU decide; then what they make together must be possible. */
static void complete_job(const struct yaml_node *part, struct experiment *e, struct diags *diags)
{
    const struct gpu *gpu = &e->cluster.gpu;
    struct job *job = &e->job;
    if (!says(part, "precision") && gpu->peak_flops[PRECISION_BF16] <= 0)
        job->precision = PRECISION_FP16;
    if (gpu->peak_flops[job->precision] <= 0)
        diag_error(diags, yaml_place(part, "precision"), "precision: %s has no %s; `msim catalog show %s` lists its peaks",
                   gpu->name, precision_name(job->precision), gpu->name);
    struct job_features given = job_features(yaml_find(part, "features"), features_usual(gpu));
    job->features = given.features;
    check_features(part, e, given, diags);
    if (!job->seq_len) {
        job->seq_len = e->model.max_seq_len;
        if (huggingface_wrote(&e->model))
            diag_warning(diags, PLACE_NONE,
                         "job.seq_len is not given; assuming sequences of %lld tokens, the longest context of %s; --seq-len sets "
                         "their length",
                         (long long)job->seq_len, e->model.name);
    }
    if (job->seq_len > e->model.max_seq_len && e->model.position == POSITION_LEARNED)
        diag_warning(diags, yaml_place(part, "seq_len"), "seq_len: %lld exceeds the learned positions of the model (%lld)",
                     (long long)job->seq_len, (long long)e->model.max_seq_len);
    count_sequences(part, job, diags);
    if (!job->global_batch) {
        job->global_batch = e->gpus;
        diag_note(diags, PLACE_NONE, "job.global_batch is not given; assuming %d, one sequence per GPU", e->gpus);
    }
    check_adapter(part, e, diags);
    check_experts(part, e, diags);
    check_muon(part, job, diags);
    double tokens = (double)job->global_batch * (double)job->seq_len;
    char text[40];
    if (tokens > STEP_TOKENS_MAX)
        diag_warning(diags, yaml_place(part, "global_batch"),
                     "global_batch: %lld counts sequences; with %lld tokens each they are %s tokens per step; to set tokens, use "
                     "--batch-tokens, or batch_tokens",
                     (long long)job->global_batch, (long long)job->seq_len,
                     quantity_format(tokens, DIM_COUNT, text, sizeof text));
}

static void read_job(const struct yaml_node *part, bool machine_known, struct experiment *e, struct diags *diags)
{
    size_t before = diags->n_errors;
    schema_read(&job_schema, part, &e->job, diags);
    if (machine_known && diags->n_errors == before)
        complete_job(part, e, diags);
}

static enum status read_tree(const struct yaml_node *root, struct experiment *experiment, struct loader *l)
{
    struct parts parts = {0};
    struct experiment *e = arena_new(&l->arena, 1, sizeof *e);
    schema_read(&experiment_schema, root, &parts, l->diags);
    bool known = entry_load(CATALOG_MODELS, parts.model, &e->model, &l->arena, l->diags) == STATUS_OK;
    known = read_cluster(parts.cluster, e, l) && known;
    read_job(part_or_empty(parts.job, root->at, l), known, e, l->diags);
    if (parts.layout)
        layout_request_read(parts.layout, &e->layout, l->diags);
    read_faults(parts.faults, e, l->diags);
    e->seed = (uint64_t)parts.seed;
    if (l->diags->n_errors > l->errors_before)
        return STATUS_BAD_INPUT;
    *experiment = *e;
    return STATUS_OK;
}

/* A result of msim holds the effective experiment and can stand for it; NULL, with an error, where it holds none. */
static struct yaml_node *experiment_of(struct yaml_node *root, struct diags *diags)
{
    struct yaml_node *command = yaml_find(root, "command"), *config = yaml_find(root, "config");
    if (!yaml_find(root, "msim") || !command || command->kind != YAML_SCALAR)
        return root;
    if (config && config->kind == YAML_MAPPING && yaml_find(config, "model")) {
        diag_note(diags, root->at, "this is a result of msim %s; msim uses its experiment, but not its `options`", command->text);
        return config;
    }
    diag_error(diags, root->at, "this is a result of msim %s, and holds no experiment", command->text);
    return NULL;
}

static enum status load(struct yaml_node *root, const struct experiment_flags *flags, struct experiment *experiment,
                        struct loader *l)
{
    if (root->kind != YAML_MAPPING) {
        diag_error(l->diags, root->at, "an experiment must be a mapping with the keys model, cluster, job, layout; this is %s",
                   yaml_kind_name(root->kind));
        return STATUS_BAD_INPUT;
    }
    if (huggingface_is(root)) {
        diag_error(l->diags, root->at,
                   "this is a model (a Hugging Face config.json), not an experiment; specify it with --model");
        return STATUS_BAD_INPUT;
    }
    struct yaml_node *tree = experiment_of(root, l->diags);
    tree = tree ? experiment_with_flags(tree, flags, &l->arena, l->diags) : NULL;
    return tree ? read_tree(tree, experiment, l) : STATUS_BAD_INPUT;
}

enum status experiment_load(const struct experiment_flags *flags, struct experiment *experiment, struct diags *diags)
{
    struct loader l = {.diags = diags, .errors_before = diags->n_errors, .grows = flags->grows};
    struct yaml_node *root = arena_new(&l.arena, 1, sizeof *root);
    *root = (struct yaml_node){.kind = YAML_MAPPING};
    if (flags->text)
        root = yaml_parse(flags->name ? flags->name : "standard input", flags->text, flags->n_text, &l.arena, diags);
    else if (flags->file)
        root = yaml_read(flags->file, &l.arena, diags);
    enum status status = root ? load(root, flags, experiment, &l) : STATUS_BAD_INPUT;
    arena_free(&l.arena);
    return status;
}

enum status experiment_parse_text(const char *name, const char *bytes, size_t n, struct experiment *experiment,
                                  struct diags *diags)
{
    static const struct experiment_flags none = {0};
    struct loader l = {.diags = diags, .errors_before = diags->n_errors};
    struct yaml_node *root = yaml_parse(name, bytes, n, &l.arena, diags);
    enum status status = root ? load(root, &none, experiment, &l) : STATUS_BAD_INPUT;
    arena_free(&l.arena);
    return status;
}

/* Of a time, too, 0 is an answer; a negative one is none. */
static void write_time(json_t *mapping, const char *key, double seconds)
{
    if (seconds < 0)
        json_object_del(mapping, key);
    else if (seconds <= 0)
        json_object_set_new(mapping, key, json_string("0s"));
}

static json_t *write_faults(const struct faults_request *faults)
{
    json_t *mapping = schema_write(&faults_schema, faults);
    json_object_del(mapping, "spares");
    if (faults->spares >= 0) /* 0 is an answer here */
        json_object_set_new(mapping, "spares", json_integer(faults->spares));
    write_time(mapping, "checkpoint_block", faults->checkpoint_block_s);
    write_time(mapping, "detect", faults->detect_s);
    write_time(mapping, "restart", faults->restart_s);
    return mapping;
}

/* 15 digits where they give every number back, 17 where one needs them. */
static char *write_text(json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_t *back = text ? json_loads(text, 0, NULL) : NULL;
    if (!back || !json_equal(root, back)) {
        free(text);
        text = json_dumps(root, JSON_INDENT(2));
    }
    json_decref(back);
    return text;
}

char *experiment_to_json(const struct experiment *experiment)
{
    json_t *root = json_object();
    json_object_set_new(root, "model", schema_write(&transformer_schema, &experiment->model));
    json_t *cluster = cluster_write(&experiment->cluster, false);
    json_object_set_new(cluster, "gpus", json_integer(experiment->gpus));
    json_object_set_new(root, "cluster", cluster);
    json_object_set_new(root, "job", schema_write(&job_schema, &experiment->job));
    json_object_set_new(root, "layout", layout_request_write(&experiment->layout));
    json_object_set_new(root, "faults", write_faults(&experiment->faults));
    json_object_set_new(root, "seed", json_integer((json_int_t)experiment->seed));
    char *text = write_text(root);
    json_decref(root);
    return text ? text : memory_copy_text("{}");
}
