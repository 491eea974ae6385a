#include "model/cost/memory/footprint.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/memory/footprint_layer.h"
#include "model/cost/work/adapter.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"
#include "model/cost/work/work.h"

/* Bytes of the CUDA context, of handles and workspaces of cuBLAS and cuDNN, and of PyTorch itself: what nvidia-smi shows of a
 * process before its first tensor and after its first GEMM (assumption, 1.0-1.5 GiB on A100 and H100). */
#define FRAMEWORK_BYTES (1.25 * GIB)
/* NCCL: per communicator about 16 channels of buffers (4 MiB Simple + LL + LL128) and both directions (NCCL 2.28 sources). */
#define COMMUNICATOR_BYTES (0.1 * GIB)
/* The caching allocator cannot use all of what is free (assumption). */
#define FRAGMENTATION 0.03

struct upkeep {
    double recomputing; /* times the activations of the layer being recomputed: its gradients live beside them */
    double logit;       /* bytes per logit of the rank's share of the vocabulary: bf16 and its gradient, or fp32 copies of both */
    double allocator;   /* activations and temporaries against what the caching allocator holds for them */
};
static const struct upkeep FUSED_STACK = {.recomputing = 1, .logit = 4, .allocator = 1};
static const struct upkeep EAGER_STACK = {.recomputing = 2, .logit = 14, .allocator = 1.15};
/* Of logits gathered for the loss: bf16 (2), an fp32 copy and its log-softmax (4 + 4), and behind them the gradients of the loss
 * by the log-softmax and by the logits (4 + 4); the share in bf16 beside them. */
static const double GATHERED_LOGIT = 18, GATHERED_SHARE = 2;

static struct upkeep upkeep_of(const struct layout *layout)
{
    return stack_is_eager(layout) ? EAGER_STACK : FUSED_STACK;
}

/* Interleaved 1F1B holds the forward passes it fills the pipeline with (in pairs: one more) and one more. They come in rounds of
 * p micro-batches per chunk; the last round has what is left of them, so some of those passes do not exist. */
static double interleaved_in_flight(int64_t m, int64_t p, int64_t v, int stage, bool paired)
{
    int64_t begun = m <= p ? p * v : 2 * (p - stage - 1) + (v - 1) * p + 1 + paired;
    int64_t whole = m / p * p * v, left = m % p, rest = begun - whole;
    if (rest <= 0)
        return (double)begun;
    if (rest >= p * v)
        return (double)(m * v);
    return (double)(whole + rest / p * left + (rest % p < left ? rest % p : left));
}

/* Micro-batches whose activations a stage holds at its peak, counted in passes over one chunk. */
static double chunks_in_flight(const struct layout *layout, const struct setting *setting, int stage)
{
    double m = (double)layout_micro_batches(layout, setting->job), p = layout->pp, v = layout->vpp;
    switch (layout->schedule) {
    case SCHEDULE_GPIPE: return m * v;
    case SCHEDULE_INTERLEAVED:
        return interleaved_in_flight((int64_t)m, layout->pp, layout->vpp, stage, has_any(layout, FEATURE_BIT(EP_OVERLAP)));
    case SCHEDULE_ZB2P: return fmin(m, 2 * p - 1); /* ZB-H2: up to twice 1F1B */
    case SCHEDULE_ZB1P: return fmin(m, p);         /* weight gradients wait: every stage holds the number of the first */
    case SCHEDULE_ZBV: return fmin(m * v, 2 * p);
    case SCHEDULE_DUALPIPE: return p + 1; /* of chunks that are 1/p of the model; m is at least 2p */
    case SCHEDULE_DUALPIPEV: return 2 * p + 1;
    case SCHEDULE_1F1B: return fmin(m, p - stage);
    default: return 1;
    }
}

/* Passes over a chunk whose gradients for the input are made and those for the weights not, the one under way among them, at the
 * most: zero-bubble schedules fill the end of a step with weight gradients. 0: the two come together. */
static double chunks_awaiting_weights(const struct layout *layout, const struct setting *setting, int stage)
{
    double m = (double)layout_micro_batches(layout, setting->job);
    switch (layout->schedule) {
    case SCHEDULE_ZB1P: return fmin(m, stage + 1);
    case SCHEDULE_ZB2P: return fmin(m, 2 * stage + 1);
    case SCHEDULE_ZBV: return fmin(m * layout->vpp, 2 * stage + 1);
    default: return 0;
    }
}

/* Gathered weights of the layers in use (ZeRO-3: this one and the prefetched one, and the gradient being reduced of what is
 * trained), exchange buffers. */
static double buffer_bytes(const struct layout *layout, const struct setting *setting)
{
    const struct transformer *m = setting->model;
    double communicators = (layout->tp > 1) + (layout->dp * layout->cp > 1) + (layout->shard > 0) + (layout->pp > 1) * 2 +
                           (layout->ep > 1) * 2 + (layout_cp_keys(layout) > 1) + (layout_cp_heads(layout) > 1);
    double bytes = communicators * COMMUNICATOR_BYTES;
    if (layout->zero == 3) {
        struct layer_range largest = {transformer_largest_layer(m), 1};
        struct stage_parameters p = work_stage_parameters(layout, setting, largest, false, false);
        struct stage_parameters trained = work_trained_parameters(layout, setting, largest, false, false);
        bytes += (p.dense + p.experts) * 2 * 2 + (trained.dense + trained.experts) * 2;
        bytes += (double)m->vocab * (double)m->hidden / layout->tp * 2;
    }
    if (layout->tp > 1 && layout->sequence_parallel) /* gathered inputs of a linear layer, shared between layers */
        bytes += 2 * tokens_per_micro_batch(layout, setting) * (double)m->hidden * 2;
    return bytes + footprint_context_bytes(layout, setting) + footprint_states_bytes(layout, setting);
}

/* What is the same on all stages. */
struct common_bytes {
    double kept[N_KEPT_KINDS], repeated[N_KEPT_KINDS], missing[N_KEPT_KINDS]; /* of a layer, of the kinds that stages have */
    double whole[N_KEPT_KINDS]; /* of one that keeps everything, where others do not */
    struct recompute recompute;
};

static void common_bytes_add(struct common_bytes *common, const struct layout *layout, const struct setting *setting,
                             const struct stage_load *load)
{
    bool alone = layout_recomputed_modules(layout) != 0; /* without what is kept beside them */
    for (size_t i = 0; i < load->n_runs; i++)
        for (int j = 0; j < load->runs[i].n_kinds; j++) {
            int k = load->runs[i].of[j].kind;
            if (common->kept[k] > 0)
                continue;
            struct layer_kind kind = layer_kind_at(2 * k);
            common->kept[k] = footprint_layer_bytes(layout, setting, kind);
            common->repeated[k] = footprint_layer_repeated(layout, setting, kind);
            if (layout->recompute.of != RECOMPUTE_ALL)
                common->whole[k] = footprint_layer_whole(layout, setting, kind);
            common->missing[k] = fmax(0, common->repeated[k] - (alone ? 0 : common->kept[k]));
        }
}

/* How the layers of a chunk are repeated. */
struct repetition {
    int layers, checkpoints; /* those that are, and the inputs that are kept of them */
    int whole;               /* those that keep everything */
    int together;            /* the most at a time */
    int behind;              /* of the whole ones those whose backward passes come before any repetition */
};

static struct repetition repetition_of(struct recompute r, const struct chunk_run *run)
{
    int n = run->layers;
    if (r.of == RECOMPUTE_ALL)
        return (struct repetition){.layers = n, .checkpoints = n, .together = 1};
    int layers = run->prediction ? 0 : recompute_layers(r, n);
    return (struct repetition){.layers = layers,
                               .checkpoints = run->prediction ? 0 : recompute_checkpoints(r, n),
                               .whole = n - layers,
                               .together = r.of == RECOMPUTE_GROUPS && r.layers < n ? r.layers
                                           : r.of == RECOMPUTE_GROUPS               ? n
                                                                                    : 1,
                               .behind = recompute_kept_behind(r, n)};
}

/* What layers keep, and what repeating them takes. */
struct layers_bytes {
    double kept;     /* of a chunk, on average over the stage's */
    double repeated; /* beside that, while layers are: their activations, `recomputing` times those of the one under way, where
                      * what the layers behind them had kept is gone */
    double waiting; /* of all layers of the passes that await their weights' gradients, what had not been kept and was repeated */
};

static struct layers_bytes layers_bytes_of(const struct stage_load *load, const struct common_bytes *common, int chunks,
                                           double awaiting, double recomputing)
{
    struct layers_bytes out = {0};
    for (size_t i = 0; i < load->n_runs; i++) {
        const struct chunk_run *run = &load->runs[i];
        const struct repetition r = repetition_of(common->recompute, run);
        double kept = 0, whole = 0, missing = 0, repeated = 0, largest = 0;
        for (int j = 0; j < run->n_kinds; j++) {
            int kind = run->of[j].kind;
            kept += run->of[j].layers * common->kept[kind];
            whole += run->of[j].layers * common->whole[kind];
            missing += run->of[j].layers * common->missing[kind];
            repeated += run->of[j].layers * common->repeated[kind];
            largest = fmax(largest, common->repeated[kind]);
        }
        double each = 1.0 / run->layers, gone = awaiting > 0 ? 0 : r.behind * each * whole;
        double chunk = r.checkpoints < run->layers ? (r.checkpoints * kept + r.whole * whole) * each : kept;
        double again =
            r.checkpoints < run->layers ? (r.checkpoints * missing + (r.layers - r.checkpoints) * repeated) * each : missing;
        out.kept += run->chunks * chunk;
        if (r.layers > 0)
            out.repeated = fmax(out.repeated, largest * (r.together + recomputing - 1) - gone);
        out.waiting = fmax(out.waiting, again * awaiting);
    }
    out.kept /= chunks;
    return out;
}

static bool holds_head(const struct layout *layout, int stage)
{
    bool folded = schedule_is_folded(layout->schedule), copies = layout->schedule == SCHEDULE_DUALPIPE;
    return (stage == 0 && folded) || (stage == layout->pp - 1 && (!folded || copies));
}

/* Of all predictions of a micro-batch. Where the projection makes the gradients with the loss, the logits of a chunk (2) and the
 * weights' gradient of each (2), unless they are frozen; where no logit is kept, what their rows are normalised by. */
static double logits_bytes(const struct layout *layout, const struct setting *setting)
{
    const struct transformer *m = setting->model;
    double words = (double)m->vocab, share = words / layout->tp, predictions = 1 + m->mtp_layers;
    double rows = tokens_per_micro_batch(layout, setting) * predictions;
    double gradients = adapter_trains(setting->job, m, WHOLE_HEAD) ? predictions * (double)m->hidden : 0;
    bool gathers = stack_is_eager(layout) && head_gathers(layout, m);
    if (has_any(layout, FEATURE_BIT(CUT_LOSS)))
        return rows * 4;
    if (has_any(layout, FEATURE_BIT(FUSED_LINEAR_LOSS)))
        return 2 * share * ((double)head_chunk_tokens(layout, setting) + gradients);
    if (has_any(layout, FEATURE_BIT(FUSED_LOSS)))
        return rows * (gathers ? words : share) * FUSED_STACK.logit;
    if (gathers)
        return rows * (words * GATHERED_LOGIT + share * GATHERED_SHARE);
    return rows * share * (has_any(layout, FEATURE_BIT(EAGER_LOSS)) ? EAGER_STACK : upkeep_of(layout)).logit;
}

/* Logits and their gradient, what the last norm reads and what it gives the head, which a frozen one does not need. Predictions
 * of further tokens have logits of their own, and the two vectors that their projection joins. */
static double ends_bytes(const struct layout *layout, const struct setting *setting, int stage)
{
    const struct transformer *m = setting->model;
    double rows = tokens_per_micro_batch(layout, setting) * (1 + m->mtp_layers);
    double kept = adapter_trains(setting->job, m, WHOLE_HEAD) ? 4 : 2;
    return holds_head(layout, stage) ? logits_bytes(layout, setting) + rows * kept * (double)m->hidden : 0;
}

static int layers_of(const struct stage_load *load)
{
    int layers = 0;
    for (size_t i = 0; i < load->n_runs; i++)
        layers += load->runs[i].chunks * load->runs[i].layers;
    return layers;
}

/* Of what layers keep that part which leaves and is not in the buffers. */
static double absent_bytes(const struct layout *layout, const struct stage_load *load, const struct common_bytes *common,
                           double kept)
{
    int layers = layers_of(load);
    if (!layout_offloads(layout, OFFLOAD_ACTIVATIONS) || layers == 0)
        return 0;
    double leaving = kept * offload_layers(&layout->offload, layers) / layers, largest = 0;
    for (int i = 0; i < N_KEPT_KINDS; i++)
        largest = fmax(largest, common->kept[i]);
    return fmax(0, leaving - OFFLOADED_LAYERS_STAGED * largest);
}

/* The logits are gone by the time the last layer is repeated. *host: what layers keep in the host's memory. */
static double activation_bytes(const struct layout *layout, const struct setting *setting, const struct stage_load *load,
                               const struct common_bytes *common, double *host)
{
    double awaiting = chunks_awaiting_weights(layout, setting, load->stage);
    struct layers_bytes layers = layers_bytes_of(load, common, layout->vpp, awaiting, upkeep_of(layout).recomputing);
    double kept = layers.kept * chunks_in_flight(layout, setting, load->stage);
    *host = absent_bytes(layout, load, common, kept);
    double repeated = fmax(layers.repeated, layers.waiting);
    return (kept - *host + fmax(repeated, ends_bytes(layout, setting, load->stage))) * upkeep_of(layout).allocator;
}

/* The largest unit in which parameters and their gradients travel: a layer, with the table at an end. */
static struct stage_parameters largest_unit(const struct layout *layout, const struct setting *setting)
{
    struct layer_range largest = {transformer_largest_layer(setting->model), 1};
    return work_stage_parameters(layout, setting, largest, true, false);
}

/* Gradients of the largest layer, and with the table of an end. */
static double unit_gradient_bytes(const struct layout *layout, const struct setting *setting, bool table)
{
    struct layer_range largest = {transformer_largest_layer(setting->model), 1};
    struct stage_parameters p = work_trained_parameters(layout, setting, largest, table, false);
    return (p.dense + p.experts) * precision_bytes(setting->job->gradient_precision);
}

/* What of `kept` bytes stays where a share leaves that needs `staged` bytes for it to come and go if it were all. */
static double bytes_left(double kept, double share, double staged)
{
    return (1 - share) * kept + share * fmin(kept, staged);
}

/* Of `updated` parameters the host has states, a gradient, and the weights that come up: after the update, or for a gather. */
static void offload_states(const struct layout *layout, const struct setting *setting, double updated, struct footprint *out)
{
    double states = offload_share(&layout->offload, OFFLOAD_OPTIMIZER);
    double parameters = offload_share(&layout->offload, OFFLOAD_PARAMETERS);
    struct stage_parameters unit = largest_unit(layout, setting);
    double fetched = work_own_parameters(layout, unit) * offloaded_weight_bytes(setting->job);
    out->host += updated * states * host_parameter_bytes(setting->job);
    out->optimizer *= 1 - states;
    out->weights = bytes_left(out->weights, parameters, FETCHED_UNITS * fetched);
    if (layout_offloads_gradients(layout))
        out->gradients =
            bytes_left(out->gradients, states, OFFLOADED_GRADIENT_BUCKETS * unit_gradient_bytes(layout, setting, true));
}

/* Of a matrix Muon keeps the master and one momentum; of the rest, and every other optimizer of all, Adam's. */
static double optimizer_bytes(const struct layout *layout, const struct setting *setting, const struct stage_load *load,
                              double updated)
{
    if (!load->matrices.n)
        return optimizer_state_bytes(setting->job) * updated;
    return muon_state_bytes(setting, muon_updated_of(&load->matrices, layout, setting, load->parameters));
}

/* ZeRO-2's gradients: a rank's share, and those of layers that are whole until they are scattered, one of which is at an end. */
static double scattered_bytes(const struct layout *layout, const struct setting *setting, double share, double whole)
{
    bool made_whole = layout->zero == 2 && share < whole && !layout_offloads_gradients(layout);
    double element = precision_bytes(setting->job->gradient_precision);
    double units =
        (SCATTERED_UNITS - 1) * unit_gradient_bytes(layout, setting, false) + unit_gradient_bytes(layout, setting, true);
    return share * element + (made_whole ? fmin(units, whole * element) : 0);
}

bool footprint_shards_gradients_in_turn(const struct layout *layout, const struct setting *setting)
{
    bool reduces = has_any(layout, FEATURE_BIT(DP_OVERLAP)); /* behind a chunk's last pass; otherwise when the step ends */
    return reduces && layout->zero == 2 && layout->schedule == SCHEDULE_INTERLEAVED &&
           !work_reduces_whole(layout, setting->job) && layout_micro_batches(layout, setting->job) <= layout->pp;
}

static double gradient_bytes(const struct layout *layout, const struct setting *setting, const struct stage_load *load,
                             double share)
{
    double whole = load->trained.dense + load->trained.experts, element = precision_bytes(setting->job->gradient_precision);
    if (layout_scatters_gradients(layout))
        return scattered_bytes(layout, setting, share, whole);
    if (footprint_shards_gradients_in_turn(layout, setting))
        return element * fmin(whole, load->trained_pair.dense + load->trained_pair.experts + share);
    return element * whole;
}

/* Weights 2 bytes (fp8 recipes keep the bf16 copy and add a byte or two for cast weights); of those that are trained gradients at
 * the reduction's precision, Adam master and moments 12 where they are fp32. */
static void state_bytes(const struct layout *layout, const struct setting *setting, const struct stage_load *load,
                        struct footprint *out)
{
    struct stage_parameters p = load->parameters, trained = load->trained;
    double replicas = layout_group_size(layout, GROUP_DP), expert_replicas = layout_group_size(layout, GROUP_EXPERT_DP);
    double whole = p.dense + p.experts;
    double share = p.dense / replicas + p.experts / expert_replicas;
    double trained_whole = trained.dense + trained.experts;
    double trained_share = trained.dense / replicas + trained.experts / expert_replicas;
    enum precision precision = setting->job->precision;
    double weight = precision_is_narrow(precision) ? 3 : precision == PRECISION_FP32 ? 4 : 2;
    double updated = layout->zero >= 1 ? trained_share : trained_whole;
    out->weights = weight * (layout->zero >= 3 ? share : whole);
    out->frozen = weight * (layout->zero >= 3 ? share - trained_share : whole - trained_whole);
    out->gradients = gradient_bytes(layout, setting, load, trained_share);
    out->optimizer = optimizer_bytes(layout, setting, load, updated);
    if (layout_offloads(layout, OFFLOAD_OPTIMIZER))
        offload_states(layout, setting, updated, out);
}

/* Of a stage, what depends on how states are sharded: all fields but activations; `buffers` is what the optimizer's step needs
 * when activations are gone. */
static struct footprint states_of(const struct layout *layout, const struct setting *setting, const struct stage_load *load)
{
    struct footprint f = {.framework = FRAMEWORK_BYTES};
    state_bytes(layout, setting, load, &f);
    if (load->matrices.n)
        f.buffers = muon_scratch_bytes(&load->matrices, layout, setting, load->parameters);
    return f;
}

static struct footprint joined(const struct footprint *states, const struct kept_of_stage *kept, double buffers)
{
    struct footprint f = *states;
    f.activations = kept->activations;
    f.host += kept->host;
    f.buffers = buffers + fmax(0, states->buffers - f.activations);
    f.total = f.weights + f.gradients + f.optimizer + f.activations + f.buffers + f.framework;
    return f;
}

void footprint_of_stage(const struct layout *layout, const struct setting *setting, int stage, struct footprint *out)
{
    struct common_bytes common = {.recompute = layout->recompute};
    struct stage_load load = {0};
    struct kept_of_stage kept;
    stage_load_fill(&load, layout, setting, stage);
    common_bytes_add(&common, layout, setting, &load);
    kept.activations = activation_bytes(layout, setting, &load, &common, &kept.host);
    struct footprint states = states_of(layout, setting, &load);
    *out = joined(&states, &kept, buffer_bytes(layout, setting));
    stage_load_free(&load);
}

/* --- of one layout after another */

/* Of stages that are still those of `whose`, do its states hold? */
static bool states_hold(const struct layout *whose, const struct layout *l, const struct setting *setting)
{
    if (whose->tp > 0 && l->zero == 2 && l->vpp > 1 &&
        footprint_shards_gradients_in_turn(whose, setting) != footprint_shards_gradients_in_turn(l, setting))
        return false;
    return whose->tp > 0 && whose->dp == l->dp && whose->cp == l->cp && whose->shard == l->shard &&
           offload_equal(&whose->offload, &l->offload);
}

/* And what its layers keep, and its buffers? That weights are sharded tells how a stack recomputes, and that shards have copies
 * needs a communicator. */
static bool activations_hold(const struct layout *whose, const struct layout *l)
{
    const struct offload_amount a = whose->offload.of[OFFLOAD_ACTIVATIONS], b = l->offload.of[OFFLOAD_ACTIVATIONS];
    return whose->tp > 0 && ((whose->features ^ l->features) & ~FOOTPRINT_IGNORES) == 0 &&
           whose->sequence_parallel == l->sequence_parallel && (whose->zero == 3) == (l->zero == 3) &&
           (whose->shard > 0) == (l->shard > 0) && a.percent == b.percent && a.layers == b.layers &&
           recompute_equal(whose->recompute, l->recompute) && whose->schedule == l->schedule &&
           whose->micro_batch == l->micro_batch && whose->cp == l->cp && whose->cp_comm == l->cp_comm && whose->dp == l->dp;
}

static void stages_renew(struct footprint_memo *memo)
{
    if ((size_t)memo->full.n > memo->capacity) {
        memo->capacity = memo->full.capacity;
        free(memo->stages);
        memo->stages = memory_new(memo->capacity, sizeof *memo->stages);
    }
    for (int zero = 0; zero < FOOTPRINT_ZEROS; zero++)
        memo->states[zero].tp = 0;
    memo->activations.tp = 0;
}

static void states_renew(struct footprint_memo *memo, const struct layout *layout, const struct setting *setting)
{
    for (int i = 0; i < memo->full.n; i++)
        memo->stages[i].states[layout->zero] = states_of(layout, setting, &memo->full.stages[i]);
    memo->states[layout->zero] = *layout;
}

static void activations_renew(struct footprint_memo *memo, const struct layout *layout, const struct setting *setting)
{
    struct common_bytes common = {.recompute = layout->recompute};
    for (int i = 0; i < memo->full.n; i++)
        common_bytes_add(&common, layout, setting, &memo->full.stages[i]);
    for (int i = 0; i < memo->full.n; i++) {
        struct kept_of_stage *kept = &memo->stages[i].kept;
        kept->activations = activation_bytes(layout, setting, &memo->full.stages[i], &common, &kept->host);
    }
    memo->buffers = buffer_bytes(layout, setting);
    memo->activations = *layout;
}

static void peak_renew(struct footprint_memo *memo, int zero)
{
    double host = 0;
    memo->peak = (struct footprint){0};
    memo->peak_stage = 0;
    for (int i = 0; i < memo->full.n; i++) {
        struct footprint f = joined(&memo->stages[i].states[zero], &memo->stages[i].kept, memo->buffers);
        host = fmax(host, f.host);
        if (f.total > memo->peak.total) {
            memo->peak = f;
            memo->peak_stage = memo->full.stages[i].stage;
        }
    }
    memo->peak.host = host;
    memo->peak_zero = zero;
}

const struct footprint *footprint_peak_of(struct footprint_memo *memo, const struct layout *layout, const struct setting *setting)
{
    bool held = layout->zero == memo->peak_zero;
    if (full_stages_of(&memo->full, layout, setting))
        stages_renew(memo);
    if (!states_hold(&memo->states[layout->zero], layout, setting)) {
        states_renew(memo, layout, setting);
        held = false;
    }
    if (!activations_hold(&memo->activations, layout)) {
        activations_renew(memo, layout, setting);
        held = false;
    }
    if (!held)
        peak_renew(memo, layout->zero);
    return &memo->peak;
}

void footprint_memo_free(struct footprint_memo *memo)
{
    full_stages_free(&memo->full);
    free(memo->stages);
    *memo = (struct footprint_memo){0};
}

void footprint_peak(const struct layout *layout, const struct setting *setting, struct footprint *out, int *stage)
{
    struct footprint_memo memo = {0};
    *out = *footprint_peak_of(&memo, layout, setting);
    if (stage)
        *stage = memo.peak_stage;
    footprint_memo_free(&memo);
}

double footprint_capacity(const struct cluster *cluster)
{
    return cluster->gpu.hbm_bytes * (1 - FRAGMENTATION);
}
