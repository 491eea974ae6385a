#include "traces/launch/framework_export.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/framework_tables.h"
#include "traces/launch/megatron_export.h"

enum { KEYS_MAX = 96, TEXT_SIZE = 128 };

struct config_line {
    const char *path;
    char value[TEXT_SIZE];
    bool is_list; /* of one, perhaps */
};

struct config {
    const struct framework *framework;
    const struct launch_job *job;
    struct megatron_export exported;
    struct config_line lines[KEYS_MAX];
    int n;
    bool covered[N_ARGUMENTS]; /* a key says it */
};

/* What an argument is in effect, as a log would say; "None" where it is nothing. */
static const char *effective(const struct config *c, int argument)
{
    const char *text = megatron_text(&c->exported.arguments, (enum argument)argument);
    if (!text)
        return "None";
    return strcmp(text, "true") == 0 ? "True" : strcmp(text, "false") == 0 ? "False" : text;
}

static bool is_written(const struct config *c, const char *path)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->lines[i].path, path) == 0)
            return true;
    return false;
}

static void add_line(struct config *c, const char *path, const char *value)
{
    assert(c->n < KEYS_MAX);
    c->lines[c->n].path = path;
    snprintf(c->lines[c->n++].value, TEXT_SIZE, "%s", value);
}

static bool applies(const struct config *c, int argument)
{
    enum argument_when when = megatron_rows[argument].when;
    if (argument >= ARGUMENT_ADAPTER && argument <= ARGUMENT_ADAPTER_SHARING && !job_adapts(&c->job->job))
        return false;
    if (argument == (c->job->model.gated_mlp ? ARGUMENT_NO_GELU_FUSION : ARGUMENT_NO_SWIGLU_FUSION))
        return false;
    return when == WHEN_ALWAYS || (when == WHEN_MIXTURE && c->job->model.moe.experts) ||
           (when == WHEN_CONTEXT && c->job->layout.cp > 1) || (when == WHEN_ROTARY && c->job->model.rope_theta > 0);
}

/* --- keys --- */

/* The word that says what an argument is. */
static void write_word(struct config *c, const struct framework_key *key)
{
    for (const struct framework_word *w = key->words; w->word; w++) {
        int argument = w->name ? megatron_find(w->name, true) : -1;
        if (argument < 0 || strcmp(effective(c, argument), w->value) != 0)
            continue;
        if (!is_written(c, key->path))
            add_line(c, key->path, w->word);
        c->covered[argument] = true;
        return;
    }
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

static void write_key(struct config *c, const struct framework_key *key)
{
    if (key->words) {
        write_word(c, key);
        return;
    }
    int argument = megatron_find(key->name, true);
    if (argument < 0 || !applies(c, argument) || is_mapping(c, key->path))
        return;
    const char *value = effective(c, argument);
    bool said = c->covered[argument] && is_adapters(argument); /* by the first of several keys */
    c->covered[argument] = true;
    if (said || is_written(c, key->path) || strcmp(value, "None") == 0)
        return;
    bool truth = strcmp(value, "True") == 0;
    add_line(c, key->path, !key->opposite ? value : truth ? "False" : "True");
    c->lines[c->n - 1].is_list = argument == ARGUMENT_ADAPTER_TARGETS;
}

/* --- what is said in other words --- */

static void set_number(struct config *c, enum argument argument, int64_t value)
{
    char *text = arena_new(&c->exported.arena, 24, 1);
    snprintf(text, 24, "%lld", (long long)value);
    c->exported.arguments.of[argument].text = text;
}

static bool has_key(const struct config *c, enum argument argument)
{
    for (const struct framework_key *key = c->framework->keys; key->path; key++)
        if (key->name && megatron_find(key->name, true) == (int)argument)
            return true;
    return false;
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
    char *targets = arena_new(&c->exported.arena, TEXT_SIZE, 1);
    if (!job_adapts(&c->job->job))
        return;
    if (!has_key(c, ARGUMENT_ADAPTER)) {
        megatron_export_lose(&c->exported, "adapters of rank %lld: %s trains all weights", (long long)adapter->rank,
                             c->framework->name);
        return;
    }
    for (int i = 0; i < N_ADAPTER_TARGETS; i++)
        if (adapter->targets >> i & 1)
            text_append(targets, TEXT_SIZE, "%s%s", *targets ? " " : "", names[i]);
    a->of[ARGUMENT_ADAPTER].text = "lora";
    a->of[ARGUMENT_ADAPTER_TARGETS].text = targets;
    set_number(c, ARGUMENT_ADAPTER_RANK, adapter->rank);
    if (adapter->whole)
        megatron_export_lose(&c->exported, "embedding or head trained whole beside adapters: %s freezes them",
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
    complete_adapter(c);
}

/* nanotron counts micro-batches. */
static void write_batches(struct config *c)
{
    char text[24];
    if (strcmp(c->framework->name, "nanotron") != 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)layout_micro_batches(&c->job->layout, &c->job->job));
    add_line(c, "tokens.batch_accumulation_per_replica", text);
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
    case ARGUMENT_SHARDING: return c->job->layout.zero == 3 && is_written(c, "model.fsdp");
    case ARGUMENT_ZERO_STAGE: return c->covered[ARGUMENT_DISTRIBUTED_OPTIMIZER] && c->job->layout.zero < 2;
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
        if (fixed && applies(c, i) && strcmp(fixed->value, effective(c, i)) != 0)
            lose(c, row->dest ? row->dest : row->flag, effective(c, i), why);
        else if (!fixed && c->exported.arguments.of[i].text)
            lose(c, row->dest ? row->dest : row->flag, effective(c, i), why);
    }
}

/* --- the file --- */

/* Closes and opens mappings between two paths. */
static void open_groups(const char *before, const char *path, FILE *out)
{
    int depth = 0;
    size_t at = 0;
    for (const char *dot; (dot = strchr(path + at, '.')); at = (size_t)(dot - path) + 1, depth++) {
        size_t n = (size_t)(dot - path) + 1;
        if (strncmp(before, path, n) != 0)
            fprintf(out, "%*s%.*s:\n", 2 * depth, "", (int)(n - 1 - at), path + at);
    }
}

static int compare_lines(const void *a, const void *b)
{
    const struct config_line *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static void write_value(const char *value, bool is_list, FILE *out)
{
    bool list = is_list || strchr(value, ' ') != NULL;
    fputs(list ? " [" : " ", out);
    for (const char *p = value; *p; p++)
        fputs(*p == ' ' ? ", " : (char[]){*p, '\0'}, out);
    fputs(list ? "]\n" : "\n", out);
}

static void write_lines(struct config *c, FILE *out)
{
    const char *before = "";
    qsort(c->lines, (size_t)c->n, sizeof *c->lines, compare_lines);
    for (int i = 0; i < c->n; i++) {
        const char *path = c->lines[i].path, *dot = strrchr(path, '.');
        int depth = 0;
        for (const char *p = path; *p; p++)
            depth += *p == '.';
        open_groups(before, path, out);
        fprintf(out, "%*s%s:", 2 * depth, "", dot ? dot + 1 : path);
        write_value(c->lines[i].value, c->lines[i].is_list, out);
        before = path;
    }
}

static void config_fill(struct config *c, const char *framework, const struct launch_job *job)
{
    *c = (struct config){.job = job};
    for (int i = 0; i < N_FRAMEWORKS; i++)
        if (strcmp(frameworks[i]->name, framework) == 0)
            c->framework = frameworks[i];
    assert(c->framework);
    megatron_export(job, &c->exported);
    complete(c);
    for (const struct framework_key *key = c->framework->keys; key->path; key++)
        write_key(c, key);
    write_batches(c);
    find_lost(c);
}

void framework_write_config(const char *framework, const struct launch_job *job, const char *const *heading, int n_heading,
                            FILE *out, struct diags *diags)
{
    struct config *c = memory_new(1, sizeof *c);
    config_fill(c, framework, job);
    for (int i = 0; i < n_heading; i++)
        fprintf(out, "# %s\n", heading[i]);
    for (int i = 0; i < c->exported.n_lost; i++) {
        fprintf(out, "# Not said by any key: %s.\n", c->exported.lost[i]);
        diag_warning(diags, (struct place){0}, "--export: no key says %s", c->exported.lost[i]);
    }
    write_lines(c, out);
    megatron_export_free(&c->exported);
    free(c);
}

/* --- what can be said --- */

struct framework_layouts framework_layouts_of(const char *framework, const struct transformer *model)
{
    static const char megatron_schedules[] = "schedule=none,1f1b,interleaved";
    const char *sequences = model->moe.experts ? "sp=1" : NULL; /* which Megatron-Core asks for beside tp */
    if (strcmp(framework, "nanotron") == 0)
        return (struct framework_layouts){{"schedule=none,1f1b", "zero=0,1", "recompute=none,full", "pp_overlap=0"},
                                          RECOMPUTE_NONE};
    if (strcmp(framework, "NeMo") == 0)
        return (struct framework_layouts){{megatron_schedules, "zero=0,1,3", sequences}, layout_modules_of(model)};
    return (struct framework_layouts){{megatron_schedules, sequences}, RECOMPUTE_MLP_ACT};
}

int framework_n_lost(const char *framework, const struct launch_job *job)
{
    struct config *c = memory_new(1, sizeof *c);
    if (strcmp(framework, "Megatron-LM") == 0)
        megatron_export(job, &c->exported);
    else
        config_fill(c, framework, job);
    int n = c->exported.n_lost;
    megatron_export_free(&c->exported);
    free(c);
    return n;
}
