/*
 * msim import - read launch scripts, configurations and logs, and write experiments or measurement tables.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/output/result.h"
#include "model/base/memory.h"
#include "model/base/utf8.h"
#include "model/spec/catalog.h"
#include "model/spec/experiment.h"
#include "model/spec/json_text.h"
#include "traces/launch/job/launch_write.h"
#include "traces/launch/launch_read.h"

/* A job of the files: what it is, what it runs on, what it is as an experiment. */
struct imported {
    const struct launch_source *source;
    struct launch_log log; /* the source's, its times those of steps */
    struct launch_description description;
    struct launch_machine machine;
    struct experiment experiment;
    char catalog[NAME_SIZE];
    char *text; /* the experiment as YAML */
    size_t n_text;
};

/* --- one job --- */

/* What nobody says, in one sentence. */
static enum status report_missing(const struct imported *job, bool machine, struct diags *diags)
{
    const struct launch_description *d = &job->description;
    if (d->n_missing == 0 && machine)
        return STATUS_OK;
    char list[1024] = "";
    size_t used = 0;
    for (int i = 0; i < d->n_missing + !machine && used < sizeof list; i++) {
        const char *what = i < d->n_missing ? d->missing[i] : "the cluster (--cluster NAME or --gpu NAME)";
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", what);
    }
    diag_error(diags, (struct place){.file = job->source->path}, "the job does not specify %s", list);
    return STATUS_BAD_INPUT;
}

static void measured_text(const struct launch_log *log, char *text, size_t size)
{
    if (log->oom)
        snprintf(text, size, "measured: out of memory (line %d)", log->failed_at.line);
    else if (log->n_taken == 1)
        snprintf(text, size, "measured: %.4g s per step, from one line after %zu of warm-up", log->step_s, log->n_warm_up);
    else if (log->n_taken)
        snprintf(text, size,
                 "measured: %.4g s per step, the median of %zu lines after %zu of warm-up; half of them %.4g to %.4g s",
                 log->step_s, log->n_taken, log->n_warm_up, log->low_s, log->high_s);
    else
        snprintf(text, size, "the log has no iterations");
}

/* The script whose command names the job's configuration, where that was not given itself; NULL: it was. */
static const char *namer_of(const struct imported *job, const struct invocation *call)
{
    for (int i = 0; i < call->n_operands; i++)
        if (strcmp(call->operands[i], job->source->path) == 0)
            return NULL;
    return call->n_operands == 1 ? call->operands[0] : NULL;
}

static void write_text(struct imported *job, const struct invocation *call)
{
    FILE *out = open_memstream(&job->text, &job->n_text);
    char first[512], second[192];
    const char *const heading[] = {first, second};
    const char *namer = namer_of(job, call);
    snprintf(first, sizeof first, "The job of %s%s%s (msim import %s). A comment after each value names its origin.",
             namer ? namer : "", namer ? " and " : "", job->source->path, MSIM_VERSION);
    measured_text(&job->log, second, sizeof second);
    launch_write_experiment(&job->description, &job->machine, job->catalog, heading, job->source->is_log ? 2 : 1, out);
    fclose(out);
    char *written = job->text; /* what files are called, and what is said in them, need not be UTF-8 */
    job->text = utf8_copy(written);
    job->n_text = strlen(job->text);
    free(written);
}

/* What was written must read back, and should be something that can be predicted. What is assumed is said to whom it matters, who
 * reads it then. */
static enum status read_back(struct imported *job, struct diags *diags)
{
    char name[300], why[256];
    snprintf(name, sizeof name, "the experiment of %s", job->source->path);
    struct diags quiet = {0};
    enum status status = experiment_parse_text(name, job->text, job->n_text, &job->experiment, &quiet);
    diags_free(&quiet);
    if (status != STATUS_OK)
        return experiment_parse_text(name, job->text, job->n_text, &job->experiment, diags);
    struct setting setting = experiment_setting(&job->experiment);
    struct layout layout = job->description.job.layout;
    layout.features = job->experiment.job.features;
    if (layout_check(&layout, &setting, why, sizeof why) != LAYOUT_LEGAL)
        diag_warning(diags, (struct place){.file = job->source->path}, "msim cannot predict this layout: %s", why);
    return STATUS_OK;
}

/* The GPU that a log names, where nobody names another and the catalog knows it. */
static const char *gpu_of_log(struct imported *job)
{
    const struct launch_log *log = &job->log;
    struct gpu gpu;
    struct diags quiet = {0};
    bool known = log->gpu[0] && catalog_gpu(log->gpu, &gpu, &quiet) == STATUS_OK;
    diags_free(&quiet);
    if (known)
        launch_originate(&job->description, "cluster.gpu", "\"%s\" in line %d of the log", log->gpu, log->gpu_line);
    return known ? log->gpu : NULL;
}

/* Fused attention of the generation that the GPU has kernels for. */
static void settle_features(struct imported *job)
{
    feature_set *features = &job->description.job.job.features;
    if (*features & FEATURES_FLASH)
        *features = (*features & ~FEATURES_FLASH) | (features_usual(&job->machine.cluster.gpu) & FEATURES_FLASH);
    job->description.job.layout.features = *features;
}

static void tell_run(const struct imported *job, struct invocation *call)
{
    const struct launch_log *log = &job->log;
    struct place at = log->failed_at;
    char text[192];
    if (!job->source->is_log)
        return;
    measured_text(log, text, sizeof text);
    info(call, 0, "%s: %s", job->source->path, text);
    if (log->n_ramp_up)
        info(call, 0, "%s: %zu line%s with smaller batches ignored", job->source->path, log->n_ramp_up,
             log->n_ramp_up == 1 ? "" : "s");
    if (log->failed && log->oom && log->n_iterations)
        diag_warning(&call->diags, at, "the job ran out of memory after %zu logged iterations; the outcome is oom",
                     log->n_iterations);
    else if (log->failed && !log->oom)
        diag_warning(&call->diags, at, "the job ended with \"%s\"%s", log->failed,
                     log->n_iterations ? "; the iterations before that count" : "");
}

static enum status import_job(struct imported *job, const struct launch_sources *sources, size_t i,
                              const struct launch_options *how, struct invocation *call)
{
    const char *cluster = option_text(call, "cluster"), *gpu = option_text(call, "gpu");
    size_t before = call->diags.n_errors;
    job->source = &sources->items[i];
    job->log = job->source->log;
    launch_describe(sources, i, how, &job->description, &call->diags);
    if (!cluster && !gpu)
        gpu = gpu_of_log(job);
    if (report_missing(job, cluster || gpu, &call->diags) != STATUS_OK || call->diags.n_errors > before)
        return STATUS_BAD_INPUT;
    struct launch_job *said = &job->description.job;
    launch_log_settle(&job->log, (double)said->job.global_batch * (double)said->job.seq_len / said->gpus);
    enum status status = launch_machine_find(cluster, gpu, said->gpus, said->gpus_per_node, &job->machine, &call->diags);
    if (status != STATUS_OK)
        return status;
    launch_catalog_name(&said->model, job->catalog, sizeof job->catalog);
    snprintf(said->model.name, sizeof said->model.name, "%s", *job->catalog ? job->catalog : "imported");
    snprintf(said->model.source, sizeof said->model.source, "the job's arguments");
    if (!*job->catalog) /* it is no longer the one that was published, if it began as one */
        said->model.published_parameters = said->model.published_active = 0;
    settle_features(job);
    write_text(job, call);
    status = read_back(job, &call->diags);
    tell_run(job, call);
    return status;
}

/* --- results --- */

static const char *row_name(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".gz") == 0) {
        *dot = '\0';
        dot = strrchr(name, '.');
    }
    if (dot && dot != name)
        *dot = '\0';
    return name;
}

/* What the columns of a table cannot hold. */
static void tell_lost(const struct imported *job, struct diags *diags)
{
    const struct launch_job *said = &job->description.job;
    struct place at = {.file = job->source->path};
    char offload[OFFLOAD_TEXT];
    if (said->model.moe.experts && !*job->catalog)
        diag_warning(diags, at,
                     "the catalog has no such mixture of experts, and a table has no columns for one: msim cannot use the row");
    if (said->layout.etp)
        diag_warning(diags, at, "a table has no column for etp=%d; the row assumes whole experts", said->layout.etp);
    if (!offload_is_none(&said->layout.offload))
        diag_warning(diags, at, "a table has no column for offload=%s",
                     offload_format(&said->layout.offload, offload, sizeof offload));
    if (job_adapts(&said->job))
        diag_warning(diags, at, "a table has no column for adapters of rank %lld; the row assumes a run that trains all weights",
                     (long long)said->job.adapter.rank);
    if (said->job.dropout > 0)
        diag_note(diags, at, "a table has no column for dropout=%g; the row assumes no dropout", said->job.dropout);
    if (said->job.optimizer != OPTIMIZER_ADAM)
        diag_warning(diags, at, "a table has no column for optimizer=%s; the row assumes Adam",
                     optimizer_names[said->job.optimizer]);
    if (said->job.moment_precision != PRECISION_FP32)
        diag_warning(diags, at, "a table has no column for moment_precision=%s; the row assumes fp32",
                     precision_name(said->job.moment_precision));
}

static void write_table(const struct imported *jobs, size_t n, struct invocation *call)
{
    launch_write_header(call->out);
    for (size_t i = 0; i < n; i++) {
        const struct imported *job = &jobs[i];
        char name[256];
        struct launch_run run = {.name = row_name(job->source->path, name, sizeof name),
                                 .catalog = job->catalog,
                                 .job = &job->description.job,
                                 .machine = &job->machine,
                                 .oom = job->log.oom,
                                 .step_s = job->log.step_s,
                                 .source = job->source->path};
        tell_lost(job, &call->diags);
        launch_write_row(&run, call->out);
    }
}

static json_t *run_json(const struct imported *job)
{
    const struct launch_log *log = &job->log;
    char *config = experiment_to_json(&job->experiment);
    json_t *run = json_object(), *origins = json_object(), *experiment = json_loads(config, 0, NULL);
    free(config);
    for (int i = 0; i < job->description.n_origins; i++)
        json_object_set_new(origins, job->description.origins[i].key, json_text(job->description.origins[i].text));
    json_object_set_new(run, "file", json_text(job->source->path));
    json_object_set_new(run, "experiment", experiment ? experiment : json_null());
    json_object_set_new(run, "origins", origins);
    if (!job->source->is_log)
        return run;
    json_object_set_new(run, "outcome", json_string(log->oom ? "oom" : log->failed ? "failed" : "ok"));
    if (log->n_taken) {
        json_object_set_new(run, "step_time_s", json_real(log->step_s));
        json_object_set_new(run, "step_time_low_s", json_real(log->low_s));
        json_object_set_new(run, "step_time_high_s", json_real(log->high_s));
    }
    json_object_set_new(run, "lines", json_integer((json_int_t)log->n_taken));
    json_object_set_new(run, "lines_left_out", json_integer((json_int_t)(log->n_warm_up + log->n_ramp_up)));
    return run;
}

static enum status write_results(const struct imported *jobs, size_t n, struct invocation *call)
{
    if (call->format == FORMAT_JSON) {
        json_t *result = result_create(call, NULL), *runs = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(runs, run_json(&jobs[i]));
        json_object_set_new(result, "runs", runs);
        return result_write(call, result);
    }
    if (call->format == FORMAT_CSV || n > 1)
        write_table(jobs, n, call);
    else
        fwrite(jobs[0].text, 1, jobs[0].n_text, call->out);
    return STATUS_OK;
}

/* --- the command --- */

static enum status import_all(const struct launch_sources *sources, const struct launch_options *how, struct invocation *call)
{
    struct imported *jobs = memory_new(sources->n, sizeof *jobs);
    size_t n = 0;
    enum status worst = STATUS_OK;
    for (size_t i = 0; i < sources->n; i++) {
        if (!launch_is_job(sources, i))
            continue;
        enum status status = import_job(&jobs[n++], sources, i, how, call);
        worst = status == STATUS_OK ? worst : status;
    }
    if (worst == STATUS_OK)
        worst = write_results(jobs, n, call);
    for (size_t i = 0; i < n; i++)
        free(jobs[i].text);
    free(jobs);
    return worst;
}

static enum status run(struct invocation *call)
{
    int n_settings, n_with;
    const char *const *settings = option_list(call, "env", &n_settings), *const *with = option_list(call, "with", &n_with);
    struct launch_environment environment = {settings, n_settings, option_flag(call, "follow")};
    struct frameworks frameworks;
    struct launch_options how = {.frameworks = &frameworks,
                                 .environment = &environment,
                                 .warm_up = option_given(call, "warm-up") ? (int)option_count(call, "warm-up") : -1,
                                 .with = with,
                                 .n_with = n_with,
                                 .all = call->verbosity > 0,
                                 .gpus = (int)option_count(call, "gpus")};
    struct launch_sources sources;
    enum status status = frameworks_load(&frameworks, &call->diags);
    if (status != STATUS_OK)
        return status;
    status = launch_sources_read((const char *const *)call->operands, (size_t)call->n_operands, &how, &sources, &call->diags);
    if (status == STATUS_OK) {
        status = import_all(&sources, &how, call);
        launch_sources_free(&sources);
    }
    frameworks_free(&frameworks);
    return status;
}

static enum status check_setting(const char *text, char *why, size_t size)
{
    const char *equals = strchr(text, '=');
    if (equals && equals > text)
        return STATUS_OK;
    snprintf(why, size, "'%.60s' is not NAME=VALUE; write for example NNODES=64", text);
    return STATUS_BAD_INPUT;
}

/* Arguments begin with dashes, keys of a configuration are set: a file's name is neither. */
static enum status check_arguments(const char *text, char *why, size_t size)
{
    if (strncmp(text + strspn(text, " \t\n"), "--", 2) == 0 || strchr(text, '='))
        return STATUS_OK;
    snprintf(why, size, "'%.60s' is not an argument; write for example \"--vocab-size 128256\"; name files without --with", text);
    return STATUS_BAD_INPUT;
}

static const struct option_row options[] = {
    {.name = "cluster", TEXT_FIELDS("NAME|FILE"), .help = "assume this cluster: a catalog name or a file"},
    {.name = "gpu",
     TEXT_FIELDS("NAME|FILE"),
     .help = "replace the cluster's GPU; without --cluster, use as many usual nodes of this GPU as the job needs"},
    {.name = "gpus",
     COUNT_FIELDS,
     .low = 1,
     .high = 16e6,
     .fallback = "from the files",
     .help = "set the number of GPUs, if the files do not say it or it differs"},
    {.name = "env",
     .argument = "NAME=VALUE",
     .type = OPTION_REPEAT,
     .check = check_setting,
     .help = "set an environment variable that the script expects, such as SLURM_NNODES=64, or 1=70B for $1; repeatable"},
    {.name = "follow",
     .type = OPTION_FLAG,
     .help = "also read files outside the script's folder that the script sources or names"},
    {.name = "with",
     .argument = "ARGUMENTS",
     .type = OPTION_REPEAT,
     .check = check_arguments,
     .help = "add arguments, which win over those of the files: \"--vocab-size 128256\"; repeatable, the last one wins"},
    {.name = "warm-up",
     COUNT_FIELDS,
     .high = 1e6,
     .fallback = "a fifth of them, at most 10",
     .help = "skip the first N iterations of a log"},
    {0},
};

static const struct example examples[] = {
    {"msim import train.sh --cluster dgx-h100 -o job.yaml", "turn a launch script into an experiment for plan, step and run"},
    {"msim import train.sh --gpu h100-sxm --env NNODES=64 | msim step -", "predict the step time of a script"},
    {"msim import run*.log --gpu a100-80g-sxm --format csv -o mine.csv",
     "turn logs into a table for msim compare and msim calibrate"},
    {"msim import train.sh ds_config.json --gpu a100-80g-sxm", "read a script and its DeepSpeed configuration"},
    {"msim import train.sh slurm-4711.out --cluster dgx-h100", "read a log without arguments, and the script that has them"},
    {"msim import llama3_70b.toml --gpu h100-sxm --gpus 256 --with \"--training.seq_len 4096\"",
     "change one key of a torchtitan configuration"},
    {"msim import base.yml train.sh --gpu h100-sxm --gpus 64",
     "read a MaxText configuration, and the command that overrides its keys"},
    {"msim import axolotl.sh --gpu h100-sxm --gpus 8", "read a command, and the configuration that it names"},
    {0},
};

static const struct command_note notes[] = {
    {"Scripts", "msim reads assignments, arrays, ${NAME:-default}, $((1 + 1)), if and case with tests that it can "
                "evaluate, bash -c, and #SBATCH lines. It executes nothing. If nothing gives the number of nodes or "
                "processes, msim uses the default of the launcher, such as torchrun, and reports it."},
    {"Logs", "msim reads the argument block, the iterations and the end of the job. The step time is the median over "
             "the iterations after the warm-up and after smaller batches."},
    {"Frameworks", "Arguments: Megatron-LM and frameworks derived from it. YAML and JSON: NeMo (1 and 2), Megatron-Bridge, "
                   "nanotron, Axolotl, LLaMA-Factory, llm-foundry, OLMo, OLMo-core, MaxText, Colossal-AI, LitGPT, accelerate, "
                   "peft and DeepSpeed. TOML: torchtitan. Python: Hugging Face's TrainingArguments, and recipes of NeMo 2 and "
                   "Megatron-Bridge (values assigned to the fields of a recipe or passed to its function)."},
    {"Several files", "msim also reads files that a configuration names (deepspeed: ds.json), and those that a script names in a "
                      "command or writes (axolotl train run.yaml, --config run.yaml). A command that sets keys of a "
                      "configuration (--parallelism.tensor_parallel_degree 4 or per_device_batch_size=4) wins over it, and so "
                      "does --with."},
    {0},
};

const struct command command_import = {
    .name = "import",
    .summary = "import launch scripts, configurations and logs as experiments or measurement tables",
    .description = "Reads the launch script, configuration or log of a real job and writes an experiment, with the origin of "
                   "each value in a comment.\n"
                   "\n"
                   "Several logs, or --format csv, give a measurement table with the measured step times. A row without a "
                   "measured time has no outcome; msim compare predicts it. Settings that change time or memory but are not "
                   "modelled produce a warning (\"not modelled\"). Unknown arguments are counted, and -v lists them. One line "
                   "names each required value that is missing.",
    .operands = "FILE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .notes = notes,
    .examples = examples,
    .run = run,
};
