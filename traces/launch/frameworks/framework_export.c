/* framework_export.c - a job as a configuration of another framework. */
#include "traces/launch/frameworks/framework_export.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/frameworks/framework_export_internal.h"

/* Those that say a part in words of their own. */
static const struct exporter exporters[] = {
    {"torchtitan", titan_plain, titan_complete, titan_open, NULL, {0}},
    {FRAMEWORK_BRIDGE, NULL, bridge_complete, bridge_open, bridge_close, BRIDGE_OBJECT},
    {FRAMEWORK_NEMO2, NULL, nemo2_complete, nemo2_open, nemo2_close, NEMO2_OBJECT},
};
static const struct exporter plainly = {0};

static const struct exporter *exporter_of(const struct framework *framework)
{
    for (size_t i = 0; i < sizeof exporters / sizeof exporters[0]; i++)
        if (strcmp(exporters[i].framework, framework->name) == 0)
            return &exporters[i];
    return &plainly;
}

/* What an argument is in effect, as a log would say; "None" where it is nothing. */
static const char *effective(const struct config *c, int argument)
{
    const char *text = megatron_text(&c->exported.arguments, (enum argument)argument);
    if (!text)
        return "None";
    return strcmp(text, "true") == 0 ? "True" : strcmp(text, "false") == 0 ? "False" : text;
}

static bool applies(const struct config *c, int argument)
{
    enum argument_when when = megatron_rows[argument].when;
    if (argument >= ARGUMENT_ADAPTER && argument <= ARGUMENT_ADAPTER_SHARING && !job_adapts(&c->job->job))
        return false;
    if (argument == (c->job->model.gated_mlp ? ARGUMENT_NO_GELU_FUSION : ARGUMENT_NO_SWIGLU_FUSION))
        return false;
    return when == WHEN_ALWAYS || (when == WHEN_MIXTURE && c->job->model.moe.experts) ||
           (when == WHEN_CONTEXT && c->job->layout.cp > 1) ||
           (when == WHEN_LATENT && c->job->model.attention == ATTENTION_LATENT) ||
           (when == WHEN_ROTARY && c->job->model.rope_theta > 0);
}

/* --- keys --- */

/* Has an argument a key that takes its value as it is? */
static bool has_own_key(const struct config *c, int argument)
{
    for (const struct framework_key *key = c->framework->keys; key->path; key++)
        if (key->name && megatron_find(key->name, true) == argument)
            return true;
    return false;
}

static bool is_said(const struct config *c, const struct framework_word *w)
{
    int argument = w->name ? megatron_find(w->name, true) : -1;
    return argument >= 0 && strcmp(effective(c, argument), w->value) == 0;
}

/* How many arguments a word says as they are; 0 where one of them is something else, unless a key of its own says so. */
static int says(const struct config *c, const struct framework_key *key, const char *word)
{
    int n = 0;
    for (const struct framework_word *w = key->words; w->word; w++) {
        if (strcmp(w->word, word) != 0 || !w->name)
            continue;
        if (is_said(c, w))
            n++;
        else if (!has_own_key(c, megatron_find(w->name, true)))
            return 0;
    }
    return n;
}

/* The word that says most of what arguments are, the first of several. */
static void write_word(struct config *c, const struct framework_key *key)
{
    const char *best = NULL;
    int most = 0;
    for (const struct framework_word *w = key->words; w->word; w++) {
        int n = is_said(c, w) ? says(c, key, w->word) : 0;
        if (n > most) {
            most = n;
            best = w->word;
        }
    }
    if (!best)
        return;
    if (!framework_lines_have(&c->lines, key->path))
        framework_lines_add(&c->lines, key->path, best);
    for (const struct framework_word *w = key->words; w->word; w++)
        if (strcmp(w->word, best) == 0 && is_said(c, w))
            c->covered[megatron_find(w->name, true)] = true;
}

/* A key that has others inside, such as peft.peft_scheme, beside what it may be by itself. */
static bool is_mapping(const struct config *c, const char *path)
{
    size_t n = strlen(path);
    for (const struct framework_key *key = c->framework->keys; key->path; key++)
        if (strncmp(key->path, path, n) == 0 && key->path[n] == '.')
            return true;
    return false;
}

static bool is_adapters(int argument)
{
    return argument == ARGUMENT_ADAPTER || argument == ARGUMENT_ADAPTER_RANK || argument == ARGUMENT_ADAPTER_TARGETS;
}

/* How an export has a key: not at all, with its value, also where that is nothing, or only where it is not as usual. */
enum writing { NOT_WRITTEN, WRITTEN, WRITTEN_WHOLLY, WRITTEN_SELDOM };

/* The path in a list of those that are written, behind what says how. */
static const char *path_of(const char *written, enum writing *how)
{
    *how = *written == '?' ? WRITTEN_WHOLLY : *written == '!' ? WRITTEN_SELDOM : WRITTEN;
    return written + (*how != WRITTEN);
}

static enum writing writing_of(const struct config *c, const char *path)
{
    enum writing how;
    for (const char *const *written = c->framework->written; written && *written; written++)
        if (strcmp(path_of(*written, &how), path) == 0)
            return how;
    return c->framework->written ? NOT_WRITTEN : WRITTEN;
}

static bool is_usual(const struct config *c, int argument)
{
    const char *text = c->exported.arguments.of[argument].text, *fallback = megatron_rows[argument].fallback;
    return !text || (fallback && strcmp(text, fallback) == 0);
}

/* A key whose value is the argument's. */
static void write_value(struct config *c, const char *path, int argument, bool opposite)
{
    if (!applies(c, argument) || is_mapping(c, path))
        return;
    const char *value = effective(c, argument);
    bool spelling = c->covered[argument] && is_adapters(argument); /* by the first of several keys */
    bool nothing = strcmp(value, "None") == 0;
    enum writing how = writing_of(c, path);
    c->covered[argument] = true;
    if (spelling || framework_lines_have(&c->lines, path) || (nothing && how != WRITTEN_WHOLLY) ||
        (how == WRITTEN_SELDOM && is_usual(c, argument)))
        return;
    bool truth = strcmp(value, "True") == 0;
    struct framework_line *line = framework_lines_add(&c->lines, path, !opposite ? value : truth ? "False" : "True");
    line->is_list |= !nothing && (argument == ARGUMENT_ADAPTER_TARGETS ||
                                  (argument == ARGUMENT_RECOMPUTE_MODULES && c->framework->form == FORM_PYTHON));
    line->is_text = argument == ARGUMENT_LAYERS_BETWEEN;
}

static void write_key(struct config *c, const struct framework_key *key)
{
    int argument = key->name ? megatron_find(key->name, true) : -1;
    if (!writing_of(c, key->path))
        return;
    if (key->words)
        write_word(c, key);
    else if (argument >= 0 && !key->inside)
        write_value(c, key->path, argument, key->opposite);
}

/* Keys that are called as arguments are, in mappings of such. */
static void write_dests(struct config *c)
{
    for (const char *const *written = c->framework->groups ? c->framework->written : NULL; written && *written; written++) {
        enum writing how;
        const char *path = path_of(*written, &how);
        int argument = megatron_find(strrchr(path, '.') + 1, true);
        bool key = false;
        for (const struct framework_key *k = c->framework->keys; k->path; k++)
            key |= strcmp(k->path, path) == 0;
        if (!key && argument >= 0)
            write_value(c, path, argument, false);
    }
}

/* --- what is said in other words --- */

static void set_number(struct config *c, enum argument argument, int64_t value)
{
    config_set(c, argument, "%lld", (long long)value);
}

/* In NeMo's words; in nobody's where the framework has no key for them. */
static void complete_adapter(struct config *c)
{
    static const char *const names[] = {[ADAPT_QKV] = "attention_qkv",
                                        [ADAPT_PROJECTION] = "attention_dense",
                                        [ADAPT_MLP_UP] = "mlp_fc1",
                                        [ADAPT_MLP_DOWN] = "mlp_fc2"};
    const struct adapter *adapter = &c->job->job.adapter;
    struct megatron_arguments *a = &c->exported.arguments;
    enum { TARGETS_SIZE = 128 };
    char *targets = arena_new(&c->exported.arena, TARGETS_SIZE, 1);
    if (!job_adapts(&c->job->job))
        return;
    if (has_own_key(c, ARGUMENT_ADAPTER) && c->framework->form == FORM_PYTHON) {
        megatron_export_lose(&c->exported, "adapters of rank %lld: a recipe that pretrains has none", (long long)adapter->rank);
        for (int i = ARGUMENT_ADAPTER; i <= ARGUMENT_ADAPTER_SHARING; i++)
            c->covered[i] = true;
        return;
    }
    if (!has_own_key(c, ARGUMENT_ADAPTER)) {
        megatron_export_lose(&c->exported, "adapters of rank %lld: %s trains all weights", (long long)adapter->rank,
                             c->framework->name);
        return;
    }
    for (int i = 0; i < N_ADAPTER_TARGETS; i++)
        if (adapter->targets >> i & 1)
            text_append(targets, TARGETS_SIZE, "%s%s", *targets ? " " : "", names[i]);
    a->of[ARGUMENT_ADAPTER].text = "lora";
    a->of[ARGUMENT_ADAPTER_TARGETS].text = targets;
    set_number(c, ARGUMENT_ADAPTER_RANK, adapter->rank);
    if (adapter->whole)
        megatron_export_lose(&c->exported, "embedding or head trained together with adapters: %s freezes them",
                             c->framework->name);
}

/* Arguments that Megatron-LM works out itself and other frameworks want to be told. */
static void complete(struct config *c)
{
    const struct layout *l = &c->job->layout;
    struct megatron_arguments *a = &c->exported.arguments;
    if (l->vpp > 1 && a->of[ARGUMENT_CHUNK_LAYERS].text) {
        set_number(c, ARGUMENT_CHUNKS_LOGGED, l->vpp);
        a->of[ARGUMENT_CHUNK_LAYERS].text = NULL;
    }
    set_number(c, ARGUMENT_DP_LOGGED, l->dp);
    set_number(c, ARGUMENT_QUERY_GROUPS, c->job->model.kv_heads);
    set_number(c, ARGUMENT_ZERO_STAGE, l->zero);
    if (c->job->job.features & FEATURES_FLASH)
        a->of[ARGUMENT_FLASH].text = "true";
    if (a->of[ARGUMENT_OFFLOAD_LAYERS].text)
        a->of[ARGUMENT_OFFLOAD_ACTIVATIONS].text = "true"; /* which switches, and Megatron-LM's number does, too */
}

/* nanotron counts micro-batches. */
static void write_batches(struct config *c)
{
    char text[24];
    if (strcmp(c->framework->name, "nanotron") != 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)layout_micro_batches(&c->job->layout, &c->job->job));
    framework_lines_add(&c->lines, "tokens.batch_accumulation_per_replica", text);
    c->covered[ARGUMENT_GLOBAL_BATCH] = true;
}

/* --- what is lost --- */

static const struct framework_word *fixed_word(const struct config *c, int argument)
{
    for (const struct framework_word *w = c->framework->fixed; w && w->name; w++)
        if (megatron_find(w->name, true) == argument)
            return w;
    return NULL;
}

/* Arguments that others say as well, or that no training step depends on. */
static bool is_implied(const struct config *c, int argument)
{
    switch (argument) {
    case ARGUMENT_GROUPED_QUERIES: return c->covered[ARGUMENT_QUERY_GROUPS];
    case ARGUMENT_DISTRIBUTED_OPTIMIZER: return c->covered[ARGUMENT_ZERO_STAGE];
    case ARGUMENT_MEGATRON_FSDP:
    case ARGUMENT_SHARDING: return c->job->layout.zero == 3 && framework_lines_have(&c->lines, "model.fsdp");
    case ARGUMENT_ZERO_STAGE:
        return c->covered[ARGUMENT_SHARDING] || (c->covered[ARGUMENT_DISTRIBUTED_OPTIMIZER] && c->job->layout.zero < 2);
    case ARGUMENT_NODE_GPUS:
    case ARGUMENT_NODES: return c->covered[ARGUMENT_DP_LOGGED];
    case ARGUMENT_DP_LOGGED: return c->covered[ARGUMENT_NODES];
    case ARGUMENT_TRAIN_SAMPLES:
    case ARGUMENT_VOCAB_DIVISOR:
    case ARGUMENT_ATTENTION_DROPOUT: return true;
    case ARGUMENT_FLASH: return fixed_word(c, argument) == NULL;
    case ARGUMENT_IMPLEMENTATION: return c->exported.arguments.of[ARGUMENT_FLASH].text && fixed_word(c, ARGUMENT_FLASH);
    case ARGUMENT_STAGE_LAYOUT:
    case ARGUMENT_EMBEDDING_COUNTS:
    case ARGUMENT_LOSS_COUNTS: /* eager stacks weigh layers and divide them themselves */
        return fixed_word(c, ARGUMENT_NO_SWIGLU_FUSION) && layout_follows_llama(&c->job->layout, &c->job->model);
    case ARGUMENT_GRADIENT_OVERLAP: return c->job->layout.dp * c->job->layout.cp == 1; /* nothing is exchanged */
    case ARGUMENT_PARAMETER_OVERLAP: return c->job->layout.zero == 0;
    case ARGUMENT_RECOMPUTE_METHOD:
    case ARGUMENT_RECOMPUTE_LAYERS: return c->covered[ARGUMENT_RECOMPUTE] && c->job->layout.recompute.of == RECOMPUTE_ALL;
    case ARGUMENT_NO_PP_OVERLAP: return c->job->layout.schedule != SCHEDULE_INTERLEAVED;
    case ARGUMENT_NO_SCATTER_GATHER: return c->job->layout.sequence_parallel || c->job->layout.tp == 1 || c->job->layout.pp == 1;
    default: return false;
    }
}

static void lose(struct config *c, const char *what, const char *value, const char *why)
{
    if (c->exported.n_lost < EXPORT_LOST)
        snprintf(c->exported.lost[c->exported.n_lost++], EXPORT_TEXT, "%.48s %.48s (%s %.40s)", what, value, c->framework->name,
                 why);
}

static void find_lost(struct config *c)
{
    char why[64];
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        const struct framework_word *fixed = fixed_word(c, i);
        if (c->covered[i] || is_implied(c, i))
            continue;
        snprintf(why, sizeof why, "has %.40s", fixed ? fixed->value : "no key for it");
        bool lost =
            fixed ? applies(c, i) && strcmp(fixed->value, effective(c, i)) != 0 : c->exported.arguments.of[i].text != NULL;
        if (lost)
            lose(c, row->dest ? row->dest : row->flag, effective(c, i), why);
    }
}

/* --- the file --- */

static void config_fill(struct config *c, const struct frameworks *fs, const char *framework, const struct launch_job *job)
{
    *c = (struct config){.job = job};
    c->framework = frameworks_find(fs, framework);
    assert(c->framework);
    const struct exporter *exporter = exporter_of(c->framework);
    struct launch_job plain = exporter->plain ? exporter->plain(job) : *job;
    bool narrow = job->job.moment_precision != PRECISION_FP32 && c->framework->form != FORM_PYTHON;
    if (narrow) /* recipes that are programs alone have fields for it */
        plain.job.moment_precision = PRECISION_FP32;
    megatron_export(&plain, &c->exported);
    if (narrow)
        megatron_export_lose(&c->exported, "the optimizer's moments in %s", precision_name(job->job.moment_precision));
    if (!exporter->plain)
        complete(c);
    if (exporter->complete)
        exporter->complete(c);
    complete_adapter(c);
    for (const struct framework_key *key = c->framework->keys; key->path; key++)
        write_key(c, key);
    write_dests(c);
    write_batches(c);
    find_lost(c);
}

void framework_write_config(const struct frameworks *fs, const char *framework, const struct launch_job *job,
                            const char *const *heading, int n_heading, FILE *out, struct diags *diags)
{
    struct config *c = memory_new(1, sizeof *c);
    config_fill(c, fs, framework, job);
    for (int i = 0; i < n_heading; i++)
        fprintf(out, "# %s\n", heading[i]);
    for (int i = 0; i < c->exported.n_lost; i++) {
        fprintf(out, "# Not exported: %s.\n", c->exported.lost[i]);
        diag_warning(diags, PLACE_NONE, "--export: no key expresses %s", c->exported.lost[i]);
    }
    const struct exporter *exporter = exporter_of(c->framework);
    if (exporter->open)
        exporter->open(c, out);
    framework_lines_write(&c->lines, c->framework->form, &exporter->object, out);
    if (exporter->close)
        exporter->close(c, out);
    framework_lines_free(&c->lines);
    megatron_export_free(&c->exported);
    free(c);
}

/* --- what can be said --- */

/* Its exchanges between replicas are beside the passes, where the job lets any be; of those within tp the compiler's alone are.
 */
static struct framework_layouts titan_layouts(feature_set features)
{
    struct framework_layouts can = {{"schedule=none,gpipe,1f1b,interleaved", "zero=2,3", "recompute=none,selective,full", "sp=1",
                                     "cp_comm=ring,all_gather", "pp_overlap=0"},
                                    RECOMPUTE_NONE,
                                    true};
    int n = 6;
    if (features & FEATURE_BIT(DP_OVERLAP))
        can.restrictions[n++] = "dp_overlap=1";
    if (!(features & FEATURE_BIT(ASYNC_TP)))
        can.restrictions[n++] = "tp_overlap=0";
    return can;
}

struct framework_layouts framework_layouts_of(const char *framework, const struct transformer *model, feature_set features)
{
    static const char megatron_schedules[] = "schedule=none,1f1b,interleaved";
    const char *sequences = model->moe.experts ? "sp=1" : NULL; /* which Megatron-Core asks for beside tp */
    if (strcmp(framework, "nanotron") == 0)
        return (struct framework_layouts){
            {"schedule=none,1f1b", "zero=0,1", "recompute=none,full", "pp_overlap=0"}, RECOMPUTE_NONE, false};
    if (strcmp(framework, "torchtitan") == 0)
        return titan_layouts(features);
    if (strcmp(framework, "NeMo 2") == 0)
        return (struct framework_layouts){{megatron_schedules, "zero=0,1", sequences}, RECOMPUTE_MLP_ACT, true};
    if (strcmp(framework, "NeMo") == 0)
        return (struct framework_layouts){{megatron_schedules, "zero=0,1,3", sequences}, layout_modules_of(model), true};
    return (struct framework_layouts){{megatron_schedules, sequences}, RECOMPUTE_MLP_ACT, true};
}

bool framework_refuses(const char *framework, const struct launch_job *job, char *why, size_t size)
{
    const struct layout *l = &job->layout;
    long long m = layout_micro_batches(l, &job->job), rounds = m > l->pp ? m / l->pp : 1;
    if (l->schedule != SCHEDULE_INTERLEAVED || strcmp(framework, "nanotron") == 0)
        return false;
    if (strcmp(framework, "torchtitan") == 0) {
        if (m % rounds == 0)
            return false;
        snprintf(why, size,
                 "the %lld micro-batches of a replica are not a multiple of the %lld rounds of at least pp=%d that PyTorch's "
                 "Interleaved1F1B makes of them",
                 m, rounds, l->pp);
        return true;
    }
    if (m % l->pp == 0)
        return false;
    snprintf(why, size, "Megatron-Core interleaves only a multiple of pp=%d micro-batches, and a replica has %lld", l->pp, m);
    return true;
}

int framework_n_lost(const struct frameworks *fs, const char *framework, const struct launch_job *job)
{
    struct config *c = memory_new(1, sizeof *c);
    if (strcmp(framework, "Megatron-LM") == 0)
        megatron_export(job, &c->exported);
    else
        config_fill(c, fs, framework, job);
    int n = c->exported.n_lost;
    framework_lines_free(&c->lines);
    megatron_export_free(&c->exported);
    free(c);
    return n;
}
