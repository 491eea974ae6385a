#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/validate/validating.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "plots/figure.h"

static const struct place NOWHERE;

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
             "'%.40s' is not TROUBLE:RANK; write kill:1, hang:1@2 (from the third step on) or slow:1:3 (three times as slow)",
             text);
    return STATUS_BAD_INPUT;
}

static const struct option_row options[] = {
    {.name = "steps",
     COUNT_FIELDS,
     .low = 1,
     .high = 10000,
     .initial = "4",
     .help = "training steps to execute; the first warms up"},
    {.name = "tolerance",
     QUANTITY_FIELDS("PERCENT", DIM_FRACTION),
     .low = 0,
     .high = 100,
     .help = "exit code 5 when the step's error is larger; without it only the numbers must hold"},
    {.name = "rate", TEXT_FIELDS("X"), .initial = "0.001", .help = "learning rate of the optimizer"},
    {.name = "clip",
     QUANTITY_FIELDS("X", DIM_COUNT),
     .low = 0,
     .high = 1e9,
     .help = "gradients of a larger norm are scaled down to it; any otherwise",
     .key = "job.clip"},
    {.name = "dropout",
     QUANTITY_FIELDS("SHARE", DIM_FRACTION),
     .low = 0,
     .high = 0.99,
     .help = "of each branch's elements that are dropped before the residual sum, such as 0.1",
     .key = "job.dropout"},
    {.name = "text", TEXT_FIELDS("FILE"), .help = "train on the bytes of this file; made-up tokens otherwise"},
    {.name = "timeout",
     TIME_FIELDS,
     .low = 0.01,
     .high = 86400,
     .initial = "30s",
     .help = "how long a rank waits for another one"},
    {.name = "memory", QUANTITY_FIELDS("BYTES", DIM_BYTES), .low = 1, .help = "device memory of a rank; more is refused"},
    {.name = "inject",
     TEXT_FIELDS("TROUBLE"),
     .check = check_injection,
     .help = "kill:RANK, hang:RANK or slow:RANK:FACTOR, with @STEP the step (from 0) it begins on"},
    {.name = "alone",
     .argument = "RANK",
     .type = OPTION_COUNT,
     .low = 0,
     .high = 1e9,
     .help = "execute this rank only, at full shape, on one device; the messages of the others become copies of the same size"},
    DEVICE_OPTION_ROWS,
    FILE_ROW("trace", "Files", "write both timelines as a Chrome trace (opens in ui.perfetto.dev)"),
    FILE_ROW("timeline", "Files", "write both timelines as CSV; msim plot draws it"),
    FILE_ROW("figure", "Files", "draw both timelines, measured below predicted: .png, .svg, .pdf or .txt"),
    {0}};

/* ---- options */

/* `needed`: bytes of a sample, with the tokens that are only predicted. */
static enum status read_text(struct invocation *call, int64_t vocab, int64_t needed, char **text, struct thread_run_options *how)
{
    const char *path = option_text(call, "text");
    if (!path)
        return STATUS_OK;
    if (vocab < 256) {
        diag_error(&call->diags, NOWHERE, "--text: bytes need a vocabulary of 256, the model has %lld", (long long)vocab);
        return STATUS_BAD_INPUT;
    }
    enum status status = file_read(path, TEXT_BYTES_MAX, text, &how->n_text, &call->diags);
    if (status == STATUS_OK && how->n_text < (size_t)needed) {
        diag_error(&call->diags, NOWHERE, "--text: %s has %zu bytes; a sequence needs %lld", path, how->n_text,
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
        diag_error(&call->diags, NOWHERE, "--rate: '%.40s' is not a learning rate between 0 and 10", rate);
        return STATUS_USAGE;
    }
    how->rate = (float)value;
    if (trouble && injection_parse(trouble, injection))
        how->injection = injection;
    if (how->injection && injection->rank >= setup->experiment.gpus) {
        diag_error(&call->diags, NOWHERE, "--inject: rank %d is not one of the %d ranks", injection->rank,
                   setup->experiment.gpus);
        return STATUS_USAGE;
    }
    if (how->injection && injection->step >= how->steps) {
        diag_error(&call->diags, NOWHERE, "--inject: step %lld is not one of the %d steps, which are counted from 0 (--steps)",
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
        diag_error(&call->diags, NOWHERE, "numerics: %s differs by %.3g from one rank's", v->numerics.worst,
                   v->numerics.max_rel_error);
        return STATUS_CHECK;
    }
    if (!option_given(call, "tolerance") || fabs(v->error_pct) <= tolerance)
        return STATUS_OK;
    diag_error(&call->diags, NOWHERE, "the step's error of %+.1f %% is beyond the tolerance of %g %%", v->error_pct, tolerance);
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
    {"msim validate", "a toy model on four CPU ranks, tp=2 and pp=2"},
    {"msim validate --layout tp=2,pp=2,vpp=2,schedule=interleaved --steps 20 --trace both.json", "both timelines for Perfetto"},
    {"msim validate --layout dp=4,zero=3 --tolerance 15%", "exit code 5 when the prediction is further off"},
    {"msim validate --alone 8 --model gpt-175b-megascale --layout tp=8,pp=8,mb=1 --gpus 64 --global-batch 8",
     "a rank of the second stage at full shape, on one GPU"},
    {"msim validate --inject hang:2 --timeout 2s", "what the others say when a rank falls silent"},
    {0}};

const struct command command_validate = {
    .name = "validate",
    .summary = "run the program on real devices and compare with the prediction, operation by operation",
    .description =
        "Builds the program of a training step as `msim step` does, predicts it, and executes that very program: real tensors, "
        "real kernels, real exchanges, several steps with Adam. Where there are GPUs each process executes one rank on one of "
        "them, in bf16 and exchanging through NCCL: start as many as the layout has ranks with mpirun or srun. On a CPU, in "
        "single precision, ranks are threads, or the processes that mpirun started. With job.precision fp8 or mxfp8 operands of "
        "products are rounded to 8 bits; a CPU multiplies what they mean in single precision, which says what they do to "
        "numbers, not to time.\n"
        "\n"
        "Three things are compared. Numbers: loss and every gradient against one rank that does everything alone. Times: by "
        "class of operation, by rank and in total, of the step with the median duration; on CPUs, whose cores ranks share, as "
        "long as operations had a core, with what they waited for one beside the table. Memory: of the fullest rank.\n"
        "\n"
        "The machine is measured first with the kernels of this job (as `msim probe` does), all ranks at the same time, unless "
        "--cluster or --gpu gives an entry. Without a model it is tiny-gpt, without a layout four ranks with tp=2 and pp=2; with "
        "--gpus alone msim chooses the layout.\n"
        "\n"
        "--alone executes one rank of any layout on one device: a stage of a 175B model at its real shape. Its exchanges become "
        "copies on the device, in the prediction too, so only computing is compared, and no numbers.",
    .experiment = true,
    .options = options,
    .examples = examples,
    .run = run,
};
