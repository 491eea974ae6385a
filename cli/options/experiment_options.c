#include "cli/options/experiment_options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/world/world.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/spec/catalog_alias.h"
#include "model/spec/yaml.h"

static enum status check_override(const char *text, char *why, size_t size)
{
    const char *equals = strchr(text, '=');
    if (equals && equals > text)
        return STATUS_OK;
    snprintf(why, size, "'%.60s' is not KEY=VALUE; write for example job.global_batch=6144", text);
    return STATUS_BAD_INPUT;
}

static enum status check_gpu(const char *text, char *why, size_t size)
{
    if (text[strspn(text, "0123456789")])
        return STATUS_OK;
    snprintf(why, size, "'%.20s' is not the name of a GPU; specify the number of GPUs with --gpus %.20s", text, text);
    return STATUS_BAD_INPUT;
}

static const char *const feature_choices[] = {
#define X(id, name, what) name,
    FEATURES(X)
#undef X
        "none",
    NULL,
};

/* The meaning of each feature, and which ones are the default. */
static const char *const feature_meanings[] = {
#define X(id, name, what) FEATURES_USUAL >> FEATURE_##id & 1 ? what " (default)" : what,
    FEATURES(X)
#undef X
        "disable all features",
    NULL,
};

#define JOB      "Job"
#define LAYOUT   "Layout"
#define SOFTWARE "Software and data"
const struct option_row experiment_options[] = {
    {.name = "model",
     TEXT_FIELDS("NAME|FILE"),
     .help = "train this model: a catalog name, an msim file, or a Hugging Face config.json or its folder",
     .group = JOB},
    {.name = "cluster",
     TEXT_FIELDS("NAME|FILE"),
     .help = "use this cluster: a catalog name or a file; --gpus changes the number of GPUs",
     .group = JOB},
    {.name = "gpu",
     TEXT_FIELDS("NAME|FILE"),
     .check = check_gpu,
     .help = "replace the cluster's GPU; without --cluster, build a cluster from usual nodes of this GPU",
     .group = JOB},
    {.name = "gpus",
     COUNT_FIELDS,
     .low = 1,
     .high = JOB_GPUS_MAX,
     .fallback = "all of the cluster, or what the file says",
     .help = "use N GPUs of the cluster",
     .group = JOB,
     .key = "cluster.gpus"},
    {.name = "global-batch",
     COUNT_FIELDS,
     .low = 1,
     .high = JOB_SEQUENCES_MAX,
     .help = "set the sequences per step, over all replicas",
     .group = JOB,
     .key = "job.global_batch"},
    {.name = "batch-tokens",
     COUNT_FIELDS,
     .low = 1,
     .high = JOB_TOKENS_MAX,
     .help = "set the batch in tokens instead, such as 4M; msim rounds it to whole sequences",
     .group = JOB,
     .key = "job.batch_tokens"},
    {.name = "seq-len",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e9,
     .fallback = "the model's",
     .help = "set the tokens per sequence",
     .group = JOB,
     .key = "job.seq_len"},
    {.name = "precision",
     TEXT_FIELDS("NAME"),
     .fallback = "bf16",
     .help = "set the precision of matrix multiplications, such as bf16 or fp8",
     .group = JOB,
     .key = "job.precision"},
    {.name = "tokens",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e18,
     .help = "set the training budget, such as 300B; adds days and GPU-hours to the result",
     .group = JOB,
     .key = "job.tokens"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .type = OPTION_REPEAT,
     .check = check_override,
     .help = "set any key of the experiment file, such as job.global_batch=6144; repeatable. --set wins over the file and over "
             "--model, --cluster, --gpu and --layout. `msim catalog template experiment` lists all keys",
     .group = JOB},
    {.name = "layout",
     .letter = 'l',
     TEXT_FIELDS("TEXT"),
     .help = "set the parallel layout: tp=8,pp=8,vpp=6,mb=1, or as tables print it, 'tp8 pp8 vpp6 mb1 z1'. It replaces the "
             "file's layout; keys that you leave out are derived (--set layout.tp=4 changes one key of the file's). auto: the "
             "best layout that msim plan finds; auto,pp=8: the best one with pp=8",
     .group = LAYOUT},
    {.name = "memory-margin",
     TEXT_FIELDS("SHARE"),
     .fallback = "10%",
     .help = "leave this share of the GPU's memory free; applies to msim plan and to layout auto; 0 ranks by time alone",
     .group = LAYOUT,
     .key = "job.memory_margin"},
    {.name = "features",
     .late = true,
     .argument = "NAME,...",
     .type = OPTION_LIST,
     .choices = feature_choices,
     .meanings = feature_meanings,
     .changes = true,
     .help = "set the software features, separated by commas; repeatable. +NAME adds a feature to those of the file or to the "
             "defaults, -NAME removes one. Unsigned names replace the whole set. The defaults are what current training stacks "
             "enable",
     .group = SOFTWARE,
     .key = "job.features"},
    {.name = "expert-load",
     .late = true,
     TEXT_FIELDS("NUMBER"),
     .fallback = "1, balanced",
     .help = "set the tokens of the busiest expert, relative to the mean, such as 1.3",
     .group = SOFTWARE,
     .key = "job.expert_load"},
    {.name = "capacity-factor",
     .late = true,
     TEXT_FIELDS("NUMBER"),
     .fallback = "no limit",
     .help = "limit the tokens of an expert, relative to the mean, such as 1.25; excess tokens are dropped",
     .group = SOFTWARE,
     .key = "job.capacity_factor"},
    {.name = "documents",
     .late = true,
     TEXT_FIELDS("{mean: N, spread: S}"),
     .fallback = "attention over whole sequences",
     .help = "mask attention between documents of N tokens on average; spread is the standard deviation of the logarithm of "
             "their length (0: equal lengths)",
     .group = SOFTWARE,
     .key = "job.documents"},
    {0},
};

struct experiment_flags experiment_flags_of(const struct invocation *call)
{
    return (struct experiment_flags){
        .file = call->command->experiment && call->n_operands ? call->operands[0] : NULL,
        .model = option_text(call, "model"),
        .cluster = option_text(call, "cluster"),
        .gpu = option_text(call, "gpu"),
        .layout = option_text(call, "layout"),
        .overrides = call->overrides,
        .n_overrides = call->n_overrides,
    };
}

/* Standard input, which one rank has; or, of one rank, a pipe. */
static bool is_read_once(const char *file)
{
    struct stat what;
    bool pipe = stat(file, &what) == 0 && !S_ISREG(what.st_mode) && !S_ISDIR(what.st_mode);
    return strcmp(file, "-") == 0 || (pipe && world_size() == 1);
}

enum status experiment_input(struct invocation *call, struct experiment_flags *flags, char **text)
{
    *text = NULL;
    if (!flags->file || flags->text || !is_read_once(flags->file))
        return STATUS_OK;
    size_t n = 0;
    char *bytes = NULL;
    if (strcmp(flags->file, "-") != 0)
        flags->name = flags->file;
    bool has_read = world_rank() == 0 && file_read(flags->file, YAML_BYTES_MAX, &bytes, &n, &call->diags) == STATUS_OK;
    world_broadcast(&has_read, sizeof has_read);
    if (!has_read)
        return STATUS_BAD_INPUT;
    world_broadcast(&n, sizeof n);
    if (!bytes)
        bytes = memory_new(n + 1, 1);
    world_broadcast(bytes, n);
    *text = bytes;
    flags->text = bytes;
    flags->n_text = n;
    return STATUS_OK;
}

enum status experiment_model_input(struct invocation *call, struct experiment_flags *flags, char **text)
{
    *text = NULL;
    if (!flags->model || world_size() > 1 || !is_read_once(flags->model))
        return STATUS_OK;
    enum status status = file_read(flags->model, YAML_BYTES_MAX, text, &flags->n_model_text, &call->diags);
    flags->model_text = *text;
    return status;
}

/* An operand is a file; where there is none and the catalog has such a name, that is what was meant. */
static void explain_operand(struct invocation *call, const char *file)
{
    static const struct {
        enum catalog_kind kind;
        const char *option;
    } kinds[] = {{CATALOG_MODELS, "model"}, {CATALOG_CLUSTERS, "cluster"}, {CATALOG_GPUS, "gpu"}};
    struct alias_table table = {0};
    struct diags quiet = {0};
    const char *entry = NULL;
    bool loaded = access(file, F_OK) != 0 && !strchr(file, '/') && alias_table_load(&table, &quiet) == STATUS_OK;
    const size_t n = sizeof kinds / sizeof kinds[0];
    for (size_t i = 0; loaded && i < 2 * n; i++) { /* what it is called first, what is near then */
        enum catalog_kind kind = kinds[i % n].kind;
        bool meant = i < n ? alias_table_find(&table, kind, file, &entry) != ALIAS_NONE
                           : alias_table_nearest(&table, kind, file, &entry) != NULL;
        if (meant) {
            diag_note(&call->diags, (struct place){.file = file}, "an experiment file is expected here; did you mean --%s %s?",
                      kinds[i % n].option, entry);
            break;
        }
    }
    alias_table_free(&table);
    diags_free(&quiet);
}

enum status experiment_read(struct invocation *call, const struct experiment_flags *flags, struct experiment *experiment)
{
    struct experiment_flags whole = *flags;
    char *text;
    enum status status = experiment_input(call, &whole, &text);
    if (status == STATUS_OK)
        status = experiment_load(&whole, experiment, &call->diags);
    if (status != STATUS_OK && whole.file && !whole.text)
        explain_operand(call, whole.file);
    if (status == STATUS_OK)
        call->seed = experiment->seed;
    free(text);
    return status;
}
