#include "cli/options/experiment_options.h"

#include <stdlib.h>
#include <string.h>
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
    snprintf(why, size, "'%.20s' is no GPU; how many are used says --gpus %.20s", text, text);
    return STATUS_BAD_INPUT;
}

static const char *const feature_choices[] = {
#define X(id, name, what) name,
    FEATURES(X)
#undef X
        "none",
    NULL,
};

/* What each means, and which are there unasked. */
static const char *const feature_meanings[] = {
#define X(id, name, what) FEATURES_USUAL >> FEATURE_##id & 1 ? what " [default]" : what,
    FEATURES(X)
#undef X
        "no feature",
    NULL,
};

#define GROUP "Experiment"
const struct option_row experiment_options[] = {
    {.name = "model",
     TEXT_FIELDS("NAME|FILE"),
     .help = "what is trained: a catalog name, an msim file, or a Hugging Face config.json or its folder",
     .group = GROUP},
    {.name = "cluster",
     TEXT_FIELDS("NAME|FILE"),
     .help = "what it runs on: a catalog name or a file; the job keeps the number of GPUs that its file says (--gpus)",
     .group = GROUP},
    {.name = "gpu",
     TEXT_FIELDS("NAME|FILE"),
     .check = check_gpu,
     .help = "this GPU in the place of the cluster's; when no cluster is given as many usual nodes of it as --gpus needs",
     .group = GROUP},
    {.name = "gpus",
     COUNT_FIELDS,
     .low = 1,
     .high = JOB_GPUS_MAX,
     .help = "GPUs of the cluster that the job uses",
     .group = GROUP,
     .key = "cluster.gpus"},
    {.name = "global-batch",
     COUNT_FIELDS,
     .low = 1,
     .high = JOB_SEQUENCES_MAX,
     .help = "sequences per step, all replicas together",
     .group = GROUP,
     .key = "job.global_batch"},
    {.name = "batch-tokens",
     COUNT_FIELDS,
     .low = 1,
     .high = JOB_TOKENS_MAX,
     .help = "the same in tokens, such as 4M, rounded to whole sequences",
     .group = GROUP,
     .key = "job.batch_tokens"},
    {.name = "seq-len",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e9,
     .help = "tokens per sequence; the model's own otherwise",
     .group = GROUP,
     .key = "job.seq_len"},
    {.name = "precision",
     TEXT_FIELDS("NAME"),
     .help = "of the matrix multiplications, such as bf16 or fp8",
     .group = GROUP,
     .key = "job.precision"},
    {.name = "features",
     .argument = "NAME,...",
     .type = OPTION_LIST,
     .choices = feature_choices,
     .meanings = feature_meanings,
     .changes = true,
     .help = "software features between commas, repeatable. +NAME adds one to those of the file or, without any there, to the "
             "defaults, which are those of current training stacks; -NAME takes one away. Names without a sign are all there are",
     .group = GROUP,
     .key = "job.features"},
    {.name = "expert-load",
     TEXT_FIELDS("NUMBER"),
     .help = "tokens of a mixture's busiest expert over the mean, such as 1.3; otherwise 1, balanced",
     .group = GROUP,
     .key = "job.expert_load"},
    {.name = "capacity-factor",
     TEXT_FIELDS("NUMBER"),
     .help = "most tokens of an expert over the mean, such as 1.25: the rest is dropped; otherwise any",
     .group = GROUP,
     .key = "job.capacity_factor"},
    {.name = "documents",
     TEXT_FIELDS("{mean: N, spread: S}"),
     .help = "attention is masked between documents of N tokens on average (spread: standard deviation of the logarithm of their "
             "length, 0: all alike); otherwise it sees whole sequences",
     .group = GROUP,
     .key = "job.documents"},
    {.name = "tokens",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e18,
     .help = "training budget, such as 300B: adds days and GPU-hours",
     .group = GROUP,
     .key = "job.tokens"},
    {.name = "layout",
     .letter = 'l',
     TEXT_FIELDS("TEXT"),
     .help = "how the work is divided: tp=8,pp=8,vpp=6,mb=1 ..., or as tables print it, 'tp8 pp8 vpp6 mb1 z1'; what is left out "
             "follows from the rest, not from the file's layout (--set layout.tp=4 changes one key of that); auto: as msim plan "
             "finds it best, auto,pp=8: best with pp=8",
     .group = GROUP},
    {.name = "memory-margin",
     TEXT_FIELDS("SHARE"),
     .help = "how much of a GPU's memory msim plan, or layout auto, leaves free, such as 10%; otherwise none",
     .group = GROUP,
     .key = "job.memory_margin"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .type = OPTION_REPEAT,
     .check = check_override,
     .help = "any key of the experiment file (`msim catalog template experiment` has them all), such as job.global_batch=6144; "
             "repeatable, wins over the file, --model, --cluster, --gpu and --layout; of it and another option of the same key "
             "the last counts; two keys that say the same thing, such as job.batch_tokens too, are refused",
     .group = GROUP},
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

enum status experiment_input(struct invocation *call, struct experiment_flags *flags, char **text)
{
    *text = NULL;
    if (!flags->file || strcmp(flags->file, "-") != 0 || flags->text)
        return STATUS_OK;
    size_t n = 0;
    char *bytes = NULL;
    bool has_read = world_rank() == 0 && file_read("-", YAML_BYTES_MAX, &bytes, &n, &call->diags) == STATUS_OK;
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
            diag_note(&call->diags, (struct place){.file = file}, "an experiment's file stands here; did you mean --%s %s?",
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
