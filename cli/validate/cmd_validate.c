#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/validate/validate_internal.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "plots/figure.h"

enum { TEXT_BYTES_MAX = 1 << 28 };

/* ---- --inject */

/* "kill:RANK", "hang:RANK", "slow:RANK:FACTOR"; with @STEP the step on which it begins. */
static bool injection_parse(const char *text, struct injection *injection)
{
    static const char *const names[] = {[TROUBLE_KILLED] = "kill", [TROUBLE_HANGS] = "hang", [TROUBLE_SLOW] = "slow"};
    size_t n = strcspn(text, ":");
    char *end;
    *injection = (struct injection){.step = 1, .factor = 2};
    for (int t = TROUBLE_KILLED; t <= TROUBLE_SLOW; t++)
        if (strlen(names[t]) == n && strncmp(text, names[t], n) == 0)
            injection->trouble = (enum trouble)t;
    if (!injection->trouble || text[n] != ':')
        return false;
    long rank = strtol(text + n + 1, &end, 10);
    if (end == text + n + 1 || rank < 0 || rank > INT16_MAX)
        return false;
    injection->rank = (int)rank;
    if (*end == ':' && injection->trouble == TROUBLE_SLOW)
        injection->factor = strtod(end + 1, &end);
    if (*end == '@')
        injection->step = strtol(end + 1, &end, 10);
    return *end == '\0' && injection->factor >= 1 && injection->factor <= 1000 && injection->step >= 0;
}

static enum status check_injection(const char *text, char *why, size_t size)
{
    struct injection injection;
    if (injection_parse(text, &injection))
        return STATUS_OK;
    snprintf(why, size,
             "'%.40s' is not a fault; write kill:1, hang:1@2 (from the third step on) or slow:1:3 (three times slower)", text);
    return STATUS_BAD_INPUT;
}

static const struct option_row options[] = {
    {.name = "steps",
     COUNT_FIELDS,
     .low = 1,
     .high = 10000,
     .initial = "4",
     .help = "execute N training steps; the first is a warm-up",
     .group = "Execution"},
    {.name = "tolerance",
     QUANTITY_FIELDS("PERCENT", DIM_FRACTION),
     .low = 0,
     .high = 100,
     .fallback = "only the numbers are checked",
     .help = "exit with 5 if the error of the step time is larger",
     .group = "Execution"},
    {.name = "rate",
     TEXT_FIELDS("X"),
     .initial = "0.001",
     .help = "set the learning rate of the optimizer",
     .group = "Execution"},
    {.name = "clip",
     QUANTITY_FIELDS("X", DIM_COUNT),
     .low = 0,
     .high = 1e9,
     .fallback = "no clipping",
     .help = "scale gradients with a larger norm down to X",
     .key = "job.clip",
     .group = "Execution"},
    {.name = "dropout",
     QUANTITY_FIELDS("SHARE", DIM_FRACTION),
     .low = 0,
     .high = 0.99,
     .fallback = "0",
     .help = "drop this share of elements before each residual sum, such as 0.1",
     .key = "job.dropout",
     .group = "Execution"},
    {.name = "text",
     TEXT_FIELDS("FILE"),
     .fallback = "random tokens",
     .help = "train on the bytes of this file",
     .group = "Execution"},
    {.name = "timeout",
     TIME_FIELDS,
     .low = 0.01,
     .high = 86400,
     .initial = "30s",
     .help = "report a rank that others wait for longer than this",
     .group = "Execution"},
    {.name = "memory",
     QUANTITY_FIELDS("BYTES", DIM_BYTES),
     .low = 1,
     .fallback = "no limit",
     .help = "limit the device memory of a rank; a larger job is refused",
     .group = "Execution"},
    {.name = "inject",
     TEXT_FIELDS("FAULT"),
     .check = check_injection,
     .help = "inject a fault: kill:RANK, hang:RANK or slow:RANK:FACTOR; @STEP sets the step at which it starts, from 0",
     .group = "Execution"},
    {.name = "alone",
     .argument = "RANK",
     .type = OPTION_COUNT,
     .low = 0,
     .high = 1e9,
     .help = "execute only this rank, at full shape, on one device; messages of the others become copies of the same size",
     .group = "Execution"},
    DEVICE_OPTION_ROWS,
    FILE_ROW("trace", "Files", "write both timelines as a Chrome trace (opens in ui.perfetto.dev)"),
    FILE_ROW("timeline", "Files", "write both timelines as CSV; msim plot draws it"),
    FILE_ROW("figure", "Files", "draw both timelines, measured below predicted, as .png, .svg, .pdf or .txt"),
    {0}};

/* ---- options */

/* `needed`: bytes of a sample, with the tokens that are only predicted. */
static enum status read_text(struct invocation *call, int64_t vocab, int64_t needed, char **text, struct thread_run_options *how)
{
    const char *path = option_text(call, "text");
    if (!path)
        return STATUS_OK;
    if (vocab < 256) {
        diag_error(&call->diags, PLACE_NONE, "--text: the model's vocabulary of %lld is too small for bytes; it needs 256",
                   (long long)vocab);
        return STATUS_BAD_INPUT;
    }
    enum status status = file_read(path, TEXT_BYTES_MAX, text, &how->n_text, &call->diags);
    if (status == STATUS_OK && how->n_text < (size_t)needed) {
        diag_error(&call->diags, PLACE_NONE, "--text: %s has only %zu bytes; one sequence needs %lld", path, how->n_text,
                   (long long)needed);
        return STATUS_BAD_INPUT;
    }
    how->text = (const unsigned char *)*text;
    return status;
}

static enum status read_options(struct invocation *call, const struct job_setup *setup, struct injection *injection, char **text,
                                struct thread_run_options *how)
{
    const char *rate = option_text(call, "rate"), *trouble = option_text(call, "inject");
    char *end;
    *how = (struct thread_run_options){.steps = (int)option_count(call, "steps"),
                                       .seed = call->seed,
                                       .timeout = nanos_from_seconds(option_quantity(call, "timeout")),
                                       .memory_limit = (size_t)option_quantity(call, "memory")};
    double value = strtod(rate, &end);
    if (end == rate || *end || !(value >= 0 && value <= 10)) {
        diag_error(&call->diags, PLACE_NONE, "--rate: '%.40s' is not a learning rate between 0 and 10", rate);
        return STATUS_USAGE;
    }
    how->rate = (float)value;
    if (trouble && injection_parse(trouble, injection))
        how->injection = injection;
    if (how->injection && injection->rank >= setup->experiment.gpus) {
        diag_error(&call->diags, PLACE_NONE, "--inject: there is no rank %d; the job has %d ranks, numbered from 0",
                   injection->rank, setup->experiment.gpus);
        return STATUS_USAGE;
    }
    if (how->injection && injection->step >= how->steps) {
        diag_error(&call->diags, PLACE_NONE,
                   "--inject: there is no step %lld; the run has %d steps, numbered from 0 (--steps sets their number)",
                   (long long)injection->step, how->steps);
        return STATUS_USAGE;
    }
    const struct transformer *model = &setup->experiment.model;
    return read_text(call, model->vocab, setup->experiment.job.seq_len + 1 + model->mtp_layers, text, how);
}

/* ---- the command */

struct validate_files {
    FILE *trace, *timeline, *figure;
};

static enum status files_open(struct invocation *call, struct validate_files *files)
{
    const char *figure = option_text(call, "figure");
    enum figure_terminal terminal;
    if (figure && figure_terminal_of(figure, &terminal, &call->diags) != STATUS_OK)
        return STATUS_USAGE;
    enum status status = output_option(call, "trace", &files->trace);
    if (status == STATUS_OK)
        status = output_option(call, "timeline", &files->timeline);
    return status == STATUS_OK ? output_option(call, "figure", &files->figure) : status;
}

static enum status judge(struct invocation *call, const struct validation *v, bool injected)
{
    double tolerance = 100 * option_quantity(call, "tolerance");
    if (!injected && v->numerics.compared && !v->numerics.held) {
        diag_error(&call->diags, PLACE_NONE, "numerics: %s differs by %.3g from the result of one rank", v->numerics.worst,
                   v->numerics.max_rel_error);
        return STATUS_CHECK;
    }
    if (!option_given(call, "tolerance") || fabs(v->error_pct) <= tolerance)
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "the error of the step time, %+.1f %%, exceeds the tolerance of %g %%", v->error_pct,
               tolerance);
    return STATUS_CHECK;
}

static enum status deliver(struct invocation *call, const struct validation *v, const struct validate_files *files, bool injected)
{
    enum status status = validate_report(call, v);
    if (status == STATUS_OK && files->timeline)
        validate_timeline(v, files->timeline);
    if (status == STATUS_OK && files->figure)
        status = validate_figure(call, v, option_text(call, "figure"), files->figure);
    if (status == STATUS_OK && files->trace)
        status = validate_trace(call, v, files->trace);
    return status == STATUS_OK ? judge(call, v, injected) : status;
}

static enum status run(struct invocation *call)
{
    struct job_setup setup;
    struct validation v = {.setup = &setup};
    struct injection injection;
    struct thread_run_options how;
    struct validate_files files;
    char *text = NULL;
    double begin = clock_seconds();
    enum status status = files_open(call, &files);
    if (status == STATUS_OK)
        status = validate_setup(call, &v);
    if (status == STATUS_OK)
        status = read_options(call, &setup, &injection, &text, &how);
    if (status == STATUS_OK)
        status = validate_measure(call, &v);
    if (status == STATUS_OK)
        status = validate_run(call, &how, &v);
    v.seconds = clock_seconds() - begin;
    if (status == STATUS_OK && v.devices.rank == 0)
        status = deliver(call, &v, &files, how.injection != NULL);
    validation_free(&v);
    free(text);
    return status;
}

static const struct example examples[] = {
    {"msim validate", "train a toy model on four CPU ranks, with tp=2 and pp=2"},
    {"msim validate --layout tp=2,pp=2,vpp=2,schedule=interleaved --steps 20 --trace both.json",
     "write both timelines for Perfetto"},
    {"msim validate --layout dp=4,zero=3 --tolerance 15%", "exit with 5 if the prediction is off by more than 15 %"},
    {"msim validate --alone 8 --model gpt-175b-megascale --layout tp=8,pp=8,mb=1 --gpus 64 --global-batch 8",
     "execute a rank of the second stage at full shape on one GPU"},
    {"msim validate --inject hang:2 --timeout 2s", "show how the other ranks report a hanging rank"},
    {0},
};

static const struct command_note notes[] = {
    {"What is compared",
     "Numbers: the loss and every gradient, against one rank that computes everything alone. Times: by class of "
     "operation, by rank and in total, of the step with the median duration. On a CPU, whose cores the ranks "
     "share, only the time on a core counts; waiting for a core is listed separately. Memory: of the fullest "
     "rank."},
    {"Defaults", "Without --cluster or --gpu, msim first measures the machine with the kernels of this job, as `msim probe` "
                 "does, on all ranks at the same time. Without a model it uses tiny-gpt; without a layout, four ranks with "
                 "tp=2 and pp=2. With --gpus alone msim chooses the layout."},
    {"fp8", "With job.precision fp8 or mxfp8 the operands of products are rounded to 8 bits. A CPU then multiplies the "
            "rounded values in single precision: this shows the effect on numbers, not on time."},
    {"One rank alone",
     "--alone executes one rank of any layout on one device, such as a stage of a 175B model at full shape. Its "
     "exchanges become copies on the device, in the prediction too. Only computing is compared, and no numbers."},
    {0},
};

const struct command command_validate = {
    .name = "validate",
    .summary = "execute a training step on real devices, and compare it with the prediction",
    .description = "Predicts a training step, executes the same program on real devices, and compares numbers, times and "
                   "memory, operation by operation.\n"
                   "\n"
                   "The program is that of `msim step`: real tensors, kernels and exchanges, for several steps with Adam. "
                   "Each process executes one rank on a GPU, in bf16 with NCCL; start as many processes as the layout has "
                   "ranks with mpirun or srun. Without GPUs, ranks run on the CPU in single precision, as threads or as the "
                   "processes that mpirun started.",
    .experiment = true,
    .options = options,
    .notes = notes,
    .examples = examples,
    .run = run,
};
