/* framework_torchtitan_export.c - a job as torchtitan's job_config.
 *
 * The keys are those of framework_torchtitan.c. Features without an argument of Megatron-LM become torch's here: degrees of
 * replication and sharding, schedules and stages, recomputed layers, compiled parts.
 *
 * From memory, as are the keys: fully_shard keeps weights or frees them again (ZeRO 2 or 3) over all ranks of cp and some of dp.
 * Replicating without sharding requires that no other dimension is used. Experts use all ranks of cp and tp, or are split like
 * the rest. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "traces/launch/frameworks/framework_export_internal.h"
#include "traces/launch/job/launch_write.h"

static void lose(struct config *c, const char *format, ...) PRINTF_LIKE(2, 3);
static void lose(struct config *c, const char *format, ...)
{
    char text[EXPORT_TEXT];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    megatron_export_lose(&c->exported, "%s", text);
}

static void cover(struct config *c, enum argument argument)
{
    c->covered[argument] = true;
}

static void leave_out(struct config *c, enum argument argument)
{
    c->exported.arguments.of[argument].text = NULL;
    cover(c, argument);
}

struct launch_job titan_plain(const struct launch_job *job)
{
    struct launch_job plain = *job;
    struct layout *l = &plain.layout;
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->schedule == SCHEDULE_INTERLEAVED ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    l->zero = l->shard = 0;
    l->cp_comm = CP_RING;
    l->offload = (struct offload){.of = {{0}}};
    l->recompute = (struct recompute){.what = RECOMPUTE_NONE};
    l->sequence_parallel |= l->tp > 1 && plain.model.moe.experts;
    plain.job.features &= ~(FEATURE_BIT(COMPILE) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(EAGER_LOSS));
    plain.job.optimizer = OPTIMIZER_ADAM;
    plain.job.muon_tp = MUON_BLOCKWISE;
    return plain;
}

/* --- the model --- */

static bool same_model(const struct transformer *model, const char *name)
{
    struct transformer known, wanted = *model;
    struct diags quiet = {0};
    bool there = catalog_model(name, &known, &quiet) == STATUS_OK;
    diags_free(&quiet);
    return there && known.vocab == wanted.vocab && launch_same_shape(&known, &wanted);
}

/* By the parts of its name that torchtitan has for it. */
static void write_model(struct config *c)
{
    const struct framework *f = c->framework;
    const struct framework_word *w = f->models;
    while (w->word && !same_model(&c->job->model, w->value))
        w++;
    for (int i = 0; i < N_ARGUMENTS; i++)
        if (megatron_rows[i].key && strncmp(megatron_rows[i].key, "model", 5) == 0)
            leave_out(c, (enum argument)i);
    if (!w->word) {
        lose(c, "model %.40s: it is none of torchtitan's flavors", c->job->model.name);
        return;
    }
    const char *dash = strchr(w->word, '-');
    char family[32];
    snprintf(family, sizeof family, "%.*s", (int)(dash - w->word), w->word);
    framework_lines_add(&c->lines, "model.name", family);
    framework_lines_add(&c->lines, "model.flavor", dash + 1);
    if (c->job->model.mtp_layers)
        lose(c, "modules that predict further tokens: torchtitan has none");
}

/* --- replicas, shards, experts --- */

static void write_degrees(struct config *c)
{
    const struct layout *l = &c->job->layout;
    int ranks = l->dp * l->cp, groups = l->shard && ranks % l->shard == 0 ? ranks / l->shard : 1;
    int replicas = l->zero ? groups : l->dp;
    bool divides = l->dp % replicas == 0 && (!l->shard || ranks % l->shard == 0);
    if (l->zero == 1)
        lose(c, "zero 1: torchtitan shards gradients with the optimizer's states, or nothing");
    if (l->zero == 0 && l->dp > 1 && (l->tp > 1 || l->pp > 1))
        lose(c, "zero 0 with tensor or pipeline parallelism: torchtitan replicates without them only");
    if (l->zero == 0 && l->cp > 1)
        lose(c, "zero 0 with context parallelism: torchtitan shards over its ranks");
    if (!divides)
        lose(c, "shard %d: torchtitan shards over all %d ranks of cp", l->shard, l->cp);
    config_set(c, ARGUMENT_REPLICATE_DEGREE, "%d", divides ? replicas : 1);
    config_set(c, ARGUMENT_SHARD_DEGREE, "%d", divides ? l->dp / replicas : l->dp);
    if (l->zero == 2 && l->pp == 1)
        config_set(c, ARGUMENT_RESHARD, "never");
    cover(c, ARGUMENT_NODES);
    cover(c, ARGUMENT_NODE_GPUS);
}

static void write_experts(struct config *c)
{
    const struct layout *l = &c->job->layout;
    int etp = layout_expert_tp(l), all = l->cp * (etp == 1 ? l->tp : 1);
    leave_out(c, ARGUMENT_ETP);
    cover(c, ARGUMENT_GROUPED_GEMM);
    cover(c, ARGUMENT_DISPATCHER);
    if (!c->job->model.moe.experts)
        return;
    config_set(c, ARGUMENT_ETP, "%d", etp);
    c->covered[ARGUMENT_ETP] = false;
    if (l->ep == 1 && etp != l->tp)
        lose(c, "etp 1 without expert parallelism: torchtitan splits experts like the rest of a layer then");
    if (l->ep > 1 && l->ep % all != 0)
        lose(c, "ep %d: torchtitan's experts take all ranks of cp%s, a multiple of %d", l->ep, etp == 1 ? " and tp" : "", all);
}

/* --- the pipeline --- */

static const char *schedule_word(enum schedule schedule)
{
    switch (schedule) {
    case SCHEDULE_GPIPE: return "GPipe";
    case SCHEDULE_1F1B: return "1F1B";
    case SCHEDULE_INTERLEAVED: return "Interleaved1F1B";
    case SCHEDULE_ZBV: return "ZBVZeroBubble";
    case SCHEDULE_DUALPIPEV: return "DualPipeV";
    default: return NULL;
    }
}

/* Whether torchtitan divides the layers among the stages as msim does. It counts the embedding as a layer of the first stage and
 * the head as one of the last, and gives the layers that do not divide evenly to the first stages. */
static bool divides_alike(const struct launch_job *job)
{
    int n = layout_virtual_stages(&job->layout), places = job->model.layers + 2;
    for (int v = 0; v < n; v++)
        if (layout_layers(&job->layout, &job->model, v).count != places / n + (v < places % n) - (v == 0) - (v == n - 1))
            return false;
    return true;
}

/* The layers per stage that make this number of stages; 0: no number does. */
static int layers_per_stage(const struct launch_job *job)
{
    int n = layout_virtual_stages(&job->layout), places = job->model.layers + 2;
    for (int each = 1; each <= places; each++)
        if ((places + each - 1) / each == n)
            return each;
    return 0;
}

/* The modules of each stage by their names. */
static void write_modules(struct config *c)
{
    const struct launch_job *job = c->job;
    int n = layout_virtual_stages(&job->layout);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("[\n", out);
    for (int v = 0; v < n; v++) {
        struct layer_range stage = layout_layers(&job->layout, &job->model, v);
        const char *comma = v ? "" : ", ";
        fprintf(out, "    [%s", v ? "" : "\"tok_embeddings\"");
        for (int i = 0; i < stage.count; i++, comma = ", ")
            fprintf(out, "%s\"layers.%d\"", comma, stage.first + i);
        fprintf(out, "%s],\n", v < n - 1 ? "" : stage.count ? ", \"norm\", \"output\"" : "\"norm\", \"output\"");
    }
    fputs("]", out);
    fclose(out);
    framework_lines_add(&c->lines, "parallelism.module_fqns_per_model_part", "")->verbatim =
        arena_copy_text(&c->exported.arena, text);
    free(text);
}

static void write_pipeline(struct config *c)
{
    static const enum argument others[] = {ARGUMENT_CHUNK_LAYERS, ARGUMENT_STAGE_LAYOUT, ARGUMENT_EMBEDDING_COUNTS,
                                           ARGUMENT_LOSS_COUNTS};
    const struct layout *l = &c->job->layout;
    const char *word = schedule_word(l->schedule);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        leave_out(c, others[i]);
    cover(c, ARGUMENT_PP_SCHEDULE);
    cover(c, ARGUMENT_STAGE_LAYERS);
    if (l->pp == 1)
        return;
    if (!word) {
        lose(c, "schedule %s: torchtitan has no such schedule", schedule_name(l->schedule));
        return;
    }
    config_set(c, ARGUMENT_PP_SCHEDULE, "%s", word);
    if (layout_virtual_stages(l) > 1 && !divides_alike(c->job))
        write_modules(c);
    else if (l->schedule == SCHEDULE_INTERLEAVED && l->vpp != 2) {
        if (layers_per_stage(c->job))
            config_set(c, ARGUMENT_STAGE_LAYERS, "%d", layers_per_stage(c->job));
        else
            write_modules(c);
    }
}

/* --- what else a layout is --- */

static void write_recompute(struct config *c)
{
    struct recompute r = c->job->layout.recompute;
    char text[RECOMPUTE_TEXT];
    cover(c, ARGUMENT_LAYERS_BETWEEN);
    config_set(c, ARGUMENT_RECOMPUTE, "selective");
    if (r.what == RECOMPUTE_SELECTIVE) {
        config_set(c, ARGUMENT_LAYERS_BETWEEN, "op");
        return;
    }
    if (r.what == RECOMPUTE_FULL && r.of == RECOMPUTE_EVERY) {
        config_set(c, ARGUMENT_LAYERS_BETWEEN, "%d", r.layers);
        return;
    }
    bool full = r.what == RECOMPUTE_FULL;
    if ((full && r.of != RECOMPUTE_ALL) || (!full && r.what != RECOMPUTE_NONE))
        lose(c, "recompute %s: torchtitan recomputes every N-th layer, or the operations that its list does not keep",
             recompute_format(r, text, sizeof text));
    if (full)
        config_set(c, ARGUMENT_RECOMPUTE, "full");
    else
        leave_out(c, ARGUMENT_RECOMPUTE);
}

/* Weights, gradients and states go to the host together. */
static void write_offload(struct config *c)
{
    const struct layout *l = &c->job->layout;
    struct offload all = offload_join(offload_all(OFFLOAD_OPTIMIZER), offload_all(OFFLOAD_PARAMETERS));
    char text[OFFLOAD_TEXT], wanted[OFFLOAD_TEXT];
    if (offload_is_none(&l->offload))
        return;
    offload_format(&l->offload, text, sizeof text);
    if (strcmp(text, offload_format(&all, wanted, sizeof wanted)) == 0) {
        config_set(c, ARGUMENT_OFFLOAD_OPTIMIZER_TO, "cpu");
        config_set(c, ARGUMENT_OFFLOAD_PARAMETERS_TO, "cpu");
    } else {
        lose(c, "offload %s: torchtitan offloads all weights and states, or none", text);
    }
}

/* The model and the loss are compiled, each or both; a loss that is not is of an fp32 copy of the logits. What a job has of fused
 * operators is the compiler's here: without it layers would keep far more than the layout was chosen for. */
static void write_compiled(struct config *c)
{
    feature_set used = c->job->job.features;
    bool model = used & (FEATURE_BIT(COMPILE) | FEATURE_BIT(FUSED_OPS)), loss = !(used & FEATURE_BIT(EAGER_LOSS));
    cover(c, ARGUMENT_LOSS_EAGER);
    cover(c, ARGUMENT_LOSS_COMPILED);
    cover(c, ARGUMENT_COMPILE);
    framework_lines_add(&c->lines, "compile.enable", model || loss ? "true" : "false");
    if (model != loss)
        framework_lines_add(&c->lines, "compile.components", model ? "model" : "loss")->is_list = true;
    if (used & FEATURE_BIT(ASYNC_TP))
        framework_lines_add(&c->lines, "parallelism.enable_async_tensor_parallel", "true");
    if ((used & FEATURE_BIT(ASYNC_TP)) && !model)
        lose(c, "async_tp without compile: torchtitan's is the compiler's");
}

static void write_batches(struct config *c)
{
    const struct launch_job *job = c->job;
    int64_t local = job->layout.pp > 1 ? job->job.global_batch / job->layout.dp : job->layout.micro_batch;
    config_set(c, ARGUMENT_LOCAL_BATCH, "%lld", (long long)local);
    if (job->layout.pp == 1)
        leave_out(c, ARGUMENT_MICRO_BATCH);
}

static void write_context(struct config *c)
{
    const struct layout *l = &c->job->layout;
    char text[CP_COMM_TEXT];
    if (l->cp == 1)
        return;
    cover(c, ARGUMENT_CP_COMM);
    framework_lines_add(&c->lines, "parallelism.context_parallel_rotate_method",
                        cp_comm_gathers(l->cp_comm) ? "allgather" : "alltoall");
    if (l->cp_comm != CP_RING && l->cp_comm != CP_ALL_GATHER)
        lose(c, "cp_comm %s: torchtitan gathers keys and values, or rotates them", cp_comm_format(l->cp_comm, text, sizeof text));
}

/* Products in fewer bits are what a converter of modules makes of them. */
static void write_converters(struct config *c)
{
    enum precision precision = c->job->job.precision;
    if (precision != PRECISION_FP8 && precision != PRECISION_MXFP8)
        return;
    framework_lines_add(&c->lines, "model.converters",
                        precision == PRECISION_FP8 ? "quantize.linear.float8" : "quantize.linear.mx")
        ->is_list = true;
    leave_out(c, ARGUMENT_FP8);
    leave_out(c, ARGUMENT_FP8_RECIPE);
}

static void write_optimizer(struct config *c)
{
    const struct job *job = &c->job->job;
    framework_lines_add(&c->lines, "optimizer.name", "AdamW");
    if (job->optimizer != OPTIMIZER_ADAM)
        lose(c, "optimizer %s: torchtitan has Adam and AdamW", optimizer_names[job->optimizer]);
    if (job->gradient_precision != PRECISION_FP32) {
        lose(c, "gradients in %s: torchtitan adds them up in fp32", precision_name(job->gradient_precision));
        leave_out(c, ARGUMENT_GRADIENTS_BF16);
    }
}

/* What there is to say only where it is not as usual. */
static void write_unusual(struct config *c)
{
    const struct layout *l = &c->job->layout;
    leave_out(c, ARGUMENT_SP);
    if (l->tp > 1 && !l->sequence_parallel)
        framework_lines_add(&c->lines, "parallelism.enable_sequence_parallel", "false");
    if (l->tp > 1 && l->pp > 1 && !l->sequence_parallel && !(c->job->job.features & FEATURE_BIT(SCATTER_GATHER_P2P)))
        config_set(c, ARGUMENT_NO_SCATTER_GATHER, "false");
    leave_out(c, ARGUMENT_TOLD_DOCUMENTS);
    leave_out(c, ARGUMENT_TOLD_POSITIONS);
    if (job_masks_documents(&c->job->job))
        framework_lines_add(&c->lines, "model.attn_mask_type", "block_causal");
    if (c->job->model.moe.experts && c->job->job.load.busiest > 0 && c->job->job.load.busiest <= 1)
        framework_lines_add(&c->lines, "debug.moe_force_load_balance", "true");
}

void titan_complete(struct config *c)
{
    write_model(c);
    write_degrees(c);
    write_experts(c);
    write_pipeline(c);
    write_recompute(c);
    write_offload(c);
    write_compiled(c);
    write_batches(c);
    write_context(c);
    write_optimizer(c);
    write_converters(c);
    write_unusual(c);
    if (c->job->job.features & FEATURES_FLASH)
        config_set(c, ARGUMENT_FLASH, "true");
    if (c->job->job.features & FEATURE_BIT(DP_OVERLAP))
        config_set(c, ARGUMENT_PARAMETER_OVERLAP, "true");
}

void titan_open(const struct config *c, FILE *out)
{
    config_write_command(c, "-m torchtitan.train --job.config_file THIS_FILE", out);
}
