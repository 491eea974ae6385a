/* msim calibrate - fit a hardware entry to measurement tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/calibrate/calibrate_report.h"
#include "cli/options/shared_options.h"
#include "cli/output/notes.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "model/base/memory.h"
#include "model/spec/schemas.h"

/* --- the base ------------------------------------------------------------------------------------------------------ */

/* One usual host of a GPU that may be in no catalog: enough for collectives inside it. */
static struct cluster host_of(const struct gpu *gpu)
{
    return (struct cluster){
        .gpu = *gpu,
        .nodes = 1,
        .gpus_per_node = gpu->gpus_per_node,
        .nvlink_domain = gpu->nvlink_domain > gpu->gpus_per_node ? gpu->nvlink_domain : gpu->gpus_per_node,
        .nics_per_node = gpu->gpus_per_node,
        .nic_rate = gpu->nic_rate,
        .net_fraction = 1,
        .net_fill_bytes = 0x1p24,
        .fabric_layers = 1,
        .leaf_nodes = 1,
        .leaf_oversubscription = 1,
        .pod_oversubscription = 1,
        .nic_split = 1,
    };
}

static enum status load_base(struct calibration *c, const char *name, struct diags *diags)
{
    struct catalog_entry entry;
    enum status status = catalog_entry(name, &entry, diags);
    if (status != STATUS_OK)
        return status;
    if (entry.kind == CATALOG_MODELS) {
        diag_error(diags, PLACE_NONE, "--base: %.60s is a model; specify a GPU or cluster entry", name);
        return STATUS_BAD_INPUT;
    }
    c->base = name;
    c->kind = entry.kind;
    c->schema = entry.kind == CATALOG_CLUSTERS ? &cluster_schema : &gpu_schema;
    c->cluster = entry.kind == CATALOG_CLUSTERS ? entry.cluster : host_of(&entry.gpu);
    return STATUS_OK;
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

static enum status no_rows(const struct calibration *c, struct diags *diags)
{
    const char *other = NULL;
    for (size_t t = 0; t < c->n_tables && !other; t++) {
        if (c->tables[t].kernels.n_items)
            other = c->tables[t].kernels.items[0].gpu;
        else if (c->tables[t].runs.n_items)
            other = c->tables[t].runs.items[0].cluster.gpu.name;
    }
    if (other && c->n_other_gpus)
        diag_error(diags, PLACE_NONE,
                   "no row is from the GPU '%s'; the tables have '%.60s'; specify their name of the entry's GPU with --gpu",
                   c->gpu, other);
    else
        diag_error(diags, PLACE_NONE, "no usable row");
    return STATUS_BAD_INPUT;
}

static void note_rows(const struct calibration *c, struct diags *diags)
{
    if (c->n_other_gpus)
        diag_note(diags, PLACE_NONE, "rows from other GPUs than %s are not used: %zu", c->gpu, c->n_other_gpus);
    if (c->n_unusable)
        diag_note(diags, PLACE_NONE,
                  "%zu rows are not used: an illegal layout, a precision that the entry does not have, or an exchange between "
                  "nodes, which needs a cluster as --base",
                  c->n_unusable);
    size_t runs[N_PRECISIONS] = {0};
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].run)
            runs[c->rows[i].run->job.gradient_precision]++;
    narrow_gradients_note(runs, diags);
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static enum status write_all(const struct calibration *c, struct invocation *call)
{
    const char *path = option_text(call, "output");
    FILE *residuals;
    enum status status = output_option(call, "residuals", &residuals);
    if (status != STATUS_OK)
        return status;
    if (residuals)
        calibration_write_residuals(c, residuals);
    FILE *entry = option_given(call, "output") ? call->out : NULL;
    if (entry) {
        calibration_write_entry(c, path, entry);
        if (strcmp(path, "-") == 0)
            return STATUS_OK;
        call->out = output_open(call, "-");
        call->colour = false;
        if (!call->out)
            return STATUS_FAILED;
    }
    if (call->format == FORMAT_JSON)
        return calibration_write_json(c, call);
    calibration_write_report(c, call);
    return STATUS_OK;
}

static enum status calibrate(struct calibration *c, struct invocation *call)
{
    int n_names = 0;
    const char *const *names = option_list(call, "parameters", &n_names);
    if (!option_text(call, "base")) {
        diag_error(&call->diags, PLACE_NONE, "--base is missing; specify the entry to start from, such as --base h100-sxm");
        return STATUS_USAGE;
    }
    enum status status = load_base(c, option_text(call, "base"), &call->diags);
    if (status != STATUS_OK)
        return status;
    c->gpu = option_text(call, "gpu") ? option_text(call, "gpu") : c->cluster.gpu.name;
    c->gpu_given = option_given(call, "gpu");
    operands_repeated(call);
    status = calibration_read(c, (const char *const *)call->operands, (size_t)call->n_operands, call->seed, &call->diags);
    if (status == STATUS_OK && c->n_rows == 0)
        status = no_rows(c, &call->diags);
    if (status == STATUS_OK)
        status = calibration_choose(c, names, n_names, &call->diags);
    if (status != STATUS_OK)
        return status;
    note_rows(c, &call->diags);
    c->threads = thread_option(call);
    struct progress progress = progress_begin(call, "fitting: predicting rows");
    c->watch = (struct watch){progress_update, &progress};
    bool any = calibration_fit(c);
    c->watch = (struct watch){0};
    progress_end(&progress);
    status = calibration_check_determined(c, any, &call->diags);
    if (status != STATUS_OK)
        return status;
    calibration_predict_after(c);
    calibration_warn_of_values(c, &call->diags);
    calibration_warn_of_misfit(c, &call->diags);
    status = calibration_check_better(c, option_given(call, "output"), &call->diags);
    return status == STATUS_OK ? write_all(c, call) : status;
}

static enum status run(struct invocation *call)
{
    struct calibration *c = memory_new(1, sizeof *c);
    c->holdout = option_quantity(call, "holdout");
    c->casts = option_flag(call, "with-cast");
    c->cache = option_flag(call, "with-cache");
    enum status status = calibrate(c, call);
    calibration_free(c);
    free(c);
    return status;
}

static const struct option_row options[] = {
    {.name = "base", TEXT_FIELDS("ENTRY"), .help = "start from this GPU or cluster entry: a name or a file"},
    {.name = "gpu",
     TEXT_FIELDS("NAME"),
     .fallback = "the entry's name",
     .help = "set the name of the GPU in the tables; any spelling of the catalog"},
    {.name = "parameters",
     .argument = "LIST",
     .type = OPTION_LIST,
     .fallback = "all that the rows can determine",
     .help = "fit these keys of the entry: gemm.bf16, nccl.rate, sustained_clock"},
    {.name = "holdout",
     QUANTITY_FIELDS("FRACTION", DIM_FRACTION),
     .low = 0,
     .high = 0.9,
     .initial = "0.5",
     .help = "keep this share of the cases of each kind out of the fit, to judge it; --seed chooses them"},
    THREADS_ROW(NULL),
    FILE_ROW("residuals", NULL, "write each row with its measured time and its prediction before and after the fit, as CSV"),
    {.name = "with-cast",
     .type = OPTION_FLAG,
     .help = "fit and remove the cast of the first operand, where fp8 and narrower GEMMs were timed with it"},
    {.name = "with-cache",
     .type = OPTION_FLAG,
     .help =
         "account separately for the copy of K and V into a cache, where attention was timed with it, as inference libraries do"},
    {0},
};

static const struct example examples[] = {
    {"msim calibrate gemm.csv.gz --base h100-sxm -o mine.yaml", "fit matrix multiplications of every precision in the table"},
    {"msim calibrate all_reduce.log --base mycluster.yaml -o measured.yaml",
     "fit the network of a cluster to a log of nccl-tests on several nodes"},
    {"msim calibrate runs.csv --base dgx-h100 --holdout 0 -o ours.yaml", "fit twenty steps of your own cluster"},
    {"msim calibrate runs.csv --base h100-sxm --parameters sustained_clock,host_launch",
     "fit two parameters, and write only the report"},
    {0},
};

static const struct command_note notes[] = {
    {"The fit", "Robust least squares of log(predicted / measured), within the bounds of the entry. Parameters that the "
                "data cannot identify are held fixed: those without an effect on the times, and those that cannot be "
                "separated from another. The report names them with the reason. A fit needs more different cases than "
                "parameters."},
    {"The report", "Each parameter with its old value, new value and 95 % interval, and the errors before and after, for "
                   "fitted rows and held-out rows, with the worst runs. A value fitted to steps produces a warning if no "
                   "catalog entry has a similar one, or if it differs from the old value by more than a tenth and three "
                   "standard errors."},
    {0},
};

const struct command command_calibrate = {
    .name = "calibrate",
    .summary = "fit a GPU or cluster entry to measurement tables",
    .description = "Fits parameters of a GPU or cluster entry to measured kernels and to measured training steps.\n"
                   "\n"
                   "Kernel tables have the columns gpu, op, dtype, time_us and the shape; op is gemm, attention_forward, "
                   "attention_backward, all_reduce and so on; logs of nccl-tests are read as they are. Step tables have the "
                   "columns of 'msim compare'. -o writes the "
                   "new entry with its changes and their origin; the report then goes to standard output. Without -o only the "
                   "report is written.",
    .operands = "TABLE.csv|NCCL.log...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .notes = notes,
    .examples = examples,
    .run = run,
};
