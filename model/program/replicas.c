/*
 * replicas.c - exchanges among data-parallel replicas, and the end of the step.
 *
 *     ZeRO-0    gradients are all-reduced
 *     ZeRO-1    gradients are reduce-scattered; each rank updates its share of the parameters; parameters are all-gathered
 *     ZeRO-2    a rank also keeps only its share of the gradients: those of each layer are reduce-scattered after every backward
 *               pass (DeepSpeed's stage 2, PyTorch FSDP's SHARD_GRAD_OP). With a pipeline gradients accumulate whole, as in
 * ZeRO-1 ZeRO-3    weights are sharded too: the parameters of each layer are gathered before its forward and again before its
 *               backward pass and dropped afterwards; its gradients are reduce-scattered after every backward pass
 *
 * Without overlap gradients are exchanged after the last pass, and parameters after the optimizer. With overlap (dp_overlap;
 * MegaScale, section 3.2; Megatron-LM's overlap_grad_reduce and overlap_param_gather) the gradients of a model chunk leave
 * after its last backward pass. Its parameters are gathered at the beginning of the next step, before its first forward pass.
 * Of several chunks only the first gather and the last reduction are exposed. A stage with one chunk exchanges it in buckets of
 * layers.
 *
 * ZeRO-3 gathers a layer while the one before it is computed. With overlap (PyTorch FSDP) the weights gathered for the backward
 * pass of a layer also serve its recomputation, and reductions overlap with passes. Without (DeepSpeed's hooks around modules,
 * as of 2021) recomputation is one more forward pass with a gather of its own, and the passes wait for each reduction.
 *
 * Hybrid sharding: gradients are reduce-scattered among the ranks that together hold a stage, after every backward pass as in
 * ZeRO-3. Once per step each rank all-reduces its share with the other ranks that hold the same share (FSDP2's
 * set_requires_all_reduce; Megatron-LM's instances of the distributed optimizer).
 *
 * Gradients are exchanged in job.gradient_precision, parameters in 2 bytes. Expert weights have fewer replicas and use their
 * own groups. Gradients that the host keeps leave with every backward pass (host.h), so they are reduced then, layer by layer;
 * without overlap the passes wait for that. DualPipe holds every weight in two stages: after the exchange among replicas the
 * two add up their gradients, and each updates its copy.
 *
 * Where adapters are trained, only their gradients and parameters are exchanged, and those of tables trained with them. ZeRO-3
 * also gathers frozen weights.
 *
 * Muon's step is three computations; between them matrices of updates go to their owners and back. Where owners have whole
 * parameters, gradients are all-reduced as under ZeRO-0, and all weights are gathered at the end of the step (muon.h).
 */
#include "model/base/memory.h"
#include "model/cost/work/adapter.h"
#include "model/cost/work/muon.h"
#include "model/program/host.h"

static const double PARAMETER_BYTES = 2, NORM_BYTES = 4;

static bool is_sharded(const struct stage *stage)
{
    return stage->build->layout->zero == 3 && (stage->build->replicas || stage->build->expert_replicas);
}

/* A pass whose gradients go to the host as it makes them. */
static bool gives_gradients(const struct stage *stage, const struct slot *slot)
{
    return layout_offloads_gradients(stage->build->layout) && slot->pass != PASS_FORWARD;
}

/* A pass behind which a layer's gradients are reduced although others add to them: of each a rank keeps its share. */
static bool scatters_gradients(const struct stage *stage, const struct slot *slot)
{
    bool reduces = stage->build->replicas || stage->build->expert_replicas;
    return reduces && slot->pass != PASS_FORWARD && layout_scatters_gradients(stage->build->layout);
}

/* There is room for a unit's gradients when those of an earlier one have gone. Weights that are gathered wait for them anyway, on
 * their stream; and the host's part has its own room. */
static bool awaits_scatters(const struct stage *stage, const struct slot *slot)
{
    return scatters_gradients(stage, slot) && !is_sharded(stage) && !gives_gradients(stage, slot);
}

/* Parameters, a step. */
static bool gathers_once(const struct stage *stage)
{
    int zero = stage->build->layout->zero;
    return (zero == 1 || zero == 2) && !work_reduces_whole(stage->build->layout, stage->build->setting->job);
}

static bool overlaps(const struct stage *stage)
{
    const struct build *build = stage->build;
    bool exchanges = build->replicas || build->expert_replicas || build->hybrid || build->mirrored;
    return stage_has(stage, FEATURE_BIT(DP_OVERLAP)) && exchanges;
}

static uint32_t emit_collective(struct stage *stage, enum collective collective, enum group_kind group, enum work_class class,
                                double bytes, const struct waits *waits)
{
    struct op op = step_op(OP_COLLECTIVE, STREAM_DP, class);
    op.collective = (uint8_t)collective;
    op.role = (uint8_t)group;
    op.bytes = bytes;
    return stage_add(stage, op, waits);
}

static struct op segment_op(enum collective collective, int chunk, struct segment segment)
{
    struct op op = step_op(OP_COLLECTIVE, STREAM_DP, CLASS_DP_COMM);
    op.collective = (uint8_t)collective;
    op.chunk = (int16_t)chunk;
    op.layer = segment.range.count ? segment.range.first : -1;
    return op;
}

/* Exchange of a segment's parameters or gradients between replicas: the last operation, NO_OP when there is nothing. */
static uint32_t emit_exchange(struct stage *stage, enum collective collective, int chunk, struct segment segment,
                              struct stage_parameters parameters, double element_bytes, const struct waits *waits)
{
    struct op op = segment_op(collective, chunk, segment);
    uint32_t last = NO_OP;
    if (stage->build->replicas && parameters.dense > 0) {
        op.role = GROUP_DP;
        op.bytes = parameters.dense * element_bytes;
        last = stage_add(stage, op, waits);
    }
    if (stage->build->expert_replicas && parameters.experts > 0) {
        op.role = GROUP_EXPERT_DP;
        op.bytes = parameters.experts * element_bytes;
        last = stage_add(stage, op, waits);
    }
    return last;
}

/* What is left of gradients after they were scattered, added up with those who hold the same. */
static uint32_t add_up_own(struct stage *stage, enum group_kind group, int chunk, struct segment segment,
                           struct stage_parameters parameters)
{
    struct op op = segment_op(COLLECTIVE_ALL_REDUCE, chunk, segment);
    op.role = (uint8_t)group;
    const struct build *build = stage->build;
    op.bytes = work_reduced_parameters(build->layout, build->setting->job, parameters) * stage_gradient_bytes(stage);
    if (op.bytes <= 0)
        return NO_OP;
    return stage_add(stage, op, &stage->waits);
}

/* `complete`: no later pass adds to them. The last operation, NO_OP when there is none. */
static uint32_t reduce_gradients(struct stage *stage, int chunk, struct segment segment, struct stage_parameters parameters,
                                 bool complete)
{
    const struct build *build = stage->build;
    bool whole = work_reduces_whole(build->layout, build->setting->job);
    enum collective collective = whole ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER;
    uint32_t last = emit_exchange(stage, collective, chunk, segment, parameters, stage_gradient_bytes(stage), &stage->waits);
    if (build->hybrid && complete)
        last = add_up_own(stage, GROUP_REPLICA, chunk, segment, parameters);
    if (build->mirrored && complete)
        last = add_up_own(stage, GROUP_MIRROR, chunk, segment, parameters);
    return last;
}

static uint32_t gather_parameters(struct stage *stage, int chunk, struct segment segment, struct stage_parameters parameters,
                                  const struct waits *waits)
{
    return emit_exchange(stage, COLLECTIVE_ALL_GATHER, chunk, segment, parameters, PARAMETER_BYTES, waits);
}

/* --- the beginning */

static int count_segments(const struct stage *stage, const struct chunk_plan *chunk)
{
    if (layout_gradients_leave_rank(stage->build->layout))
        return chunk->whole.range.count > 0 ? chunk->whole.range.count : 1;
    if (overlaps(stage) && stage->build->layout->vpp == 1)
        return work_gradient_buckets(stage->build->layout, stage_trained_of(stage, chunk->whole), chunk->whole.range.count);
    return 1;
}

void replicas_begin(struct stage *stage)
{
    static const struct waits nothing = {.n = 0};
    ops_clear(stage->scattered, SCATTERED_UNITS);
    const struct layout *layout = stage->build->layout;
    for (int c = 0; c < layout->vpp; c++) {
        struct chunk_plan *chunk = &stage->chunks[c];
        chunk->n_segments = count_segments(stage, chunk);
        chunk->gathered = memory_new((size_t)chunk->n_segments, sizeof *chunk->gathered);
        for (int i = 0; i < chunk->n_segments; i++) {
            struct segment segment = segment_cut(&chunk->whole, i, chunk->n_segments);
            bool gathers = overlaps(stage) && gathers_once(stage);
            chunk->gathered[i] =
                gathers ? gather_parameters(stage, c, segment, stage_trained_of(stage, segment), &nothing) : NO_OP;
        }
    }
}

int replicas_segments(const struct stage *stage, size_t slot)
{
    const struct chunk_plan *chunk = &stage->chunks[stage->slots.items[slot].chunk];
    bool gathers = slot == chunk->first_forward && chunk->gathered[0] != NO_OP;
    const struct slot *at = &stage->slots.items[slot];
    bool reduces =
        (slot == chunk->last_gradient && overlaps(stage)) || gives_gradients(stage, at) || scatters_gradients(stage, at);
    return is_sharded(stage) || gathers || reduces ? chunk->n_segments : 1;
}

/* --- ZeRO-3: units are layers; the embedding and the head are one more, kept from the first layer's forward to its backward pass
 */

static const struct segment ENDS = {.embedding = true, .head = true};

static uint32_t gather_part(struct stage *stage, const struct slot *slot, struct segment part, const struct waits *waits)
{
    struct waits ready = *waits;
    waits_add(&ready, host_fetch(stage, slot, part));
    uint32_t gathered = gather_parameters(stage, slot->chunk, part, stage_parameters_of(stage, part), &ready);
    host_gathered(stage, gathered);
    return gathered;
}

static uint32_t gather_unit(struct stage *stage, const struct slot *slot, int i, const struct waits *waits)
{
    const struct chunk_plan *chunk = &stage->chunks[slot->chunk];
    struct segment unit = segment_cut(&chunk->whole, i, chunk->n_segments);
    unit.embedding = unit.head = false;
    bool recomputes = slot->pass != PASS_FORWARD &&
                      work_gathers_to_recompute(stage->build->layout, stage->build->setting->model, unit.range.first);
    uint32_t ends = NO_OP, layer;
    if (slot->pass == PASS_FORWARD && i == 0)
        ends = gather_part(stage, slot, ENDS, waits);
    if (recomputes)
        gather_part(stage, slot, unit, waits);
    layer = gather_part(stage, slot, unit, waits);
    return layer != NO_OP ? layer : ends;
}

/* The unit after the i-th of a slot: of the same slot, or of the next one. */
static bool next_unit(const struct stage *stage, size_t *slot, int *i)
{
    int n = stage->chunks[0].n_segments;
    *i += stage->slots.items[*slot].pass == PASS_FORWARD ? 1 : -1;
    if (*i >= 0 && *i < n)
        return true;
    if (++*slot == stage->slots.n_items)
        return false;
    *i = stage->slots.items[*slot].pass == PASS_FORWARD ? 0 : n - 1;
    return true;
}

static void sharded_before(struct stage *stage, size_t slot, int i)
{
    struct waits before = stage->waits;
    uint32_t gathered = stage->gathered;
    if (gathered == NO_OP)
        gathered = gather_unit(stage, &stage->slots.items[slot], i, &before);
    waits_add(&stage->waits, gathered);
    stage->gathered = NO_OP;
    if (next_unit(stage, &slot, &i))
        stage->gathered = gather_unit(stage, &stage->slots.items[slot], i, &before);
}

static uint32_t sharded_after(struct stage *stage, size_t slot, int i)
{
    const struct slot *at = &stage->slots.items[slot];
    if (at->pass == PASS_FORWARD)
        return NO_OP;
    const struct chunk_plan *chunk = &stage->chunks[at->chunk];
    bool complete = slot == chunk->last_gradient || gives_gradients(stage, at);
    struct segment unit = segment_cut(&chunk->whole, i, chunk->n_segments);
    unit.embedding = unit.head = false;
    uint32_t layer = reduce_gradients(stage, at->chunk, unit, stage_trained_of(stage, unit), complete), ends = NO_OP;
    if (i == 0)
        ends = reduce_gradients(stage, at->chunk, ENDS, stage_trained_of(stage, ENDS), complete);
    uint32_t last = ends != NO_OP ? ends : layer;
    if (!overlaps(stage))
        waits_add(&stage->waits, last);
    return last;
}

/* --- during the step */

/* Of the i-th segment, what a backward pass reduces when it is done with it. */
static struct stage_parameters reduced_parameters(const struct stage *stage, const struct slot *slot, int i)
{
    const struct chunk_plan *chunk = &stage->chunks[slot->chunk];
    struct segment segment = segment_cut(&chunk->whole, i, chunk->n_segments);
    if (!is_sharded(stage))
        return stage_trained_of(stage, segment);
    segment.embedding = segment.head = false;
    struct stage_parameters sum = stage_trained_of(stage, segment), ends = stage_trained_of(stage, ENDS);
    return i == 0 ? (struct stage_parameters){sum.dense + ends.dense, sum.experts + ends.experts} : sum;
}

/* The last exchange, NO_OP when there is none. */
static uint32_t unsharded_after(struct stage *stage, size_t slot, int i)
{
    const struct slot *at = &stage->slots.items[slot];
    const struct chunk_plan *chunk = &stage->chunks[at->chunk];
    bool last = slot == chunk->last_gradient, gives = gives_gradients(stage, at);
    if (!gives && !scatters_gradients(stage, at) && !(overlaps(stage) && last))
        return NO_OP;
    struct segment segment = segment_cut(&chunk->whole, i, chunk->n_segments);
    uint32_t reduced = reduce_gradients(stage, at->chunk, segment, stage_trained_of(stage, segment), last || gives);
    if (!overlaps(stage))
        waits_add(&stage->waits, reduced);
    return reduced;
}

void replicas_before(struct stage *stage, size_t slot, int i)
{
    const struct slot *at = &stage->slots.items[slot];
    const struct chunk_plan *chunk = &stage->chunks[at->chunk];
    if (is_sharded(stage))
        sharded_before(stage, slot, i);
    else if (slot == chunk->first_forward)
        waits_add(&stage->waits, chunk->gathered[i]);
    if (awaits_scatters(stage, at))
        waits_add(&stage->waits, stage->scattered[0]);
    if (gives_gradients(stage, at))
        host_before_gradients(stage, at, i, reduced_parameters(stage, at, i));
}

void replicas_after(struct stage *stage, size_t slot, int i)
{
    const struct slot *at = &stage->slots.items[slot];
    uint32_t reduced = is_sharded(stage) ? sharded_after(stage, slot, i) : unsharded_after(stage, slot, i);
    if (awaits_scatters(stage, at))
        ops_push(stage->scattered, SCATTERED_UNITS, reduced);
    if (gives_gradients(stage, at))
        host_after_gradients(stage, at, i, reduced_parameters(stage, at, i), reduced);
}

/* --- the end */

static uint32_t reduce_all(struct stage *stage)
{
    uint32_t last = NO_OP;
    for (int c = 0; c < stage->build->layout->vpp; c++) {
        struct segment whole = stage->chunks[c].whole;
        uint32_t reduced = reduce_gradients(stage, c, whole, stage_trained_of(stage, whole), true);
        last = reduced != NO_OP ? reduced : last;
    }
    return last;
}

static void gather_all(struct stage *stage)
{
    for (int c = 0; c < stage->build->layout->vpp; c++) {
        struct segment whole = stage->chunks[c].whole;
        gather_parameters(stage, c, whole, stage_trained_of(stage, whole), &stage->waits);
    }
}

/* The first and the last stage hold the same embedding table and add up its gradients. */
static void reduce_embedding(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    const struct transformer *model = stage->build->setting->model;
    bool at_end = stage->index == 0 || stage->index == layout->pp - 1;
    if (!at_end || !work_shares_table(layout, model) || !adapter_trains(stage->build->setting->job, model, WHOLE_EMBEDDING))
        return;
    double parameters = (double)model->vocab * (double)model->hidden / layout->tp;
    emit_collective(stage, COLLECTIVE_ALL_REDUCE, GROUP_EMBEDDING, CLASS_DP_COMM, parameters * stage_gradient_bytes(stage),
                    &stage->waits);
}

/* The norm of all gradients: over what one model replica is divided into, and over shards (of optimizer states, and experts that
 * only some of the replicas hold). Stages that begin the next step without waiting for one another check it afterwards. */
static void reduce_norm(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    bool shards = layout->zero || (layout->ep > 1 && stage->build->setting->model->moe.experts);
    if (shards && stage->build->replicas)
        emit_collective(stage, COLLECTIVE_ALL_REDUCE, GROUP_DP, CLASS_OPTIMIZER, NORM_BYTES, &stage->waits);
    if (layout->tp * layout->pp > 1 && !stage->build->program->rolling)
        emit_collective(stage, COLLECTIVE_ALL_REDUCE, GROUP_MODEL, CLASS_OPTIMIZER, NORM_BYTES, &stage->waits);
}

static struct stage_parameters all_parameters(const struct stage *stage)
{
    struct stage_parameters sum = {0};
    for (int c = 0; c < stage->build->layout->vpp; c++) {
        struct stage_parameters p = stage_parameters_of(stage, stage->chunks[c].whole);
        sum = (struct stage_parameters){sum.dense + p.dense, sum.experts + p.experts};
    }
    return sum;
}

static double updated_parameters(const struct stage *stage)
{
    double sum = 0;
    for (int c = 0; c < stage->build->layout->vpp; c++)
        sum += work_own_parameters(stage->build->layout, stage_trained_of(stage, stage->chunks[c].whole));
    return sum;
}

static double cast_parameters(const struct stage *stage)
{
    double sum = 0;
    for (int c = 0; c < stage->build->layout->vpp; c++) {
        struct stage_parameters layers = stage_trained_of(stage, (struct segment){.range = stage->chunks[c].whole.range});
        sum += work_cast_parameters(stage->build->layout, layers);
    }
    return sum;
}

/* The last operation on a stream, NO_OP when there is none. */
static uint32_t last_on(const struct stage *stage, enum stream stream)
{
    const struct program *program = stage->build->program;
    for (uint32_t i = program->n_ops; i-- > stage->first_op;)
        if (program->ops[i].stream == stream)
            return i - stage->first_op;
    return NO_OP;
}

static struct muon_matrices matrices_of(const struct stage *stage)
{
    struct muon_matrices matrices = {.n = 0};
    for (int c = 0; c < stage->build->layout->vpp; c++) {
        const struct segment *whole = &stage->chunks[c].whole;
        muon_matrices_add(&matrices, stage->build->layout, stage->build->setting, whole->range, whole->head);
        muon_tables_add(&matrices, stage->build->layout, stage->build->setting, whole->embedding, whole->head);
    }
    return matrices;
}

static void add_optimizer_work(struct stage *stage, int32_t work)
{
    struct op op = step_op(OP_COMPUTE, STREAM_COMPUTE, CLASS_OPTIMIZER);
    op.work = work;
    uint32_t done = stage_add(stage, op, &stage->waits);
    stage->waits = (struct waits){.ops = {done}, .n = 1};
}

/* Updates of matrices to their owners, or what these made of them back. */
static void exchange_updates(struct stage *stage, const struct muon_matrices *matrices)
{
    static const enum group_kind groups[] = {GROUP_DP, GROUP_EXPERT_DP};
    struct waits before = stage->waits;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        double bytes = muon_exchange_bytes(matrices, stage->build->layout, stage->build->setting, groups[i]);
        if (bytes > 0)
            waits_add(&stage->waits, emit_collective(stage, COLLECTIVE_ALL_TO_ALL, groups[i], CLASS_OPTIMIZER, bytes, &before));
    }
}

/* Owners' weights to everybody. */
static void gather_from_owners(struct stage *stage, const struct muon_gather *gather)
{
    struct work_table *works = &stage->build->program->works;
    double all = gather->dense + gather->experts;
    if (all <= 0)
        return;
    add_optimizer_work(stage, work_add_muon_copy(works, "muon_flatten", gather->own));
    struct waits flat = stage->waits;
    if (gather->dense > 0)
        waits_add(&stage->waits, emit_collective(stage, COLLECTIVE_ALL_GATHER, GROUP_DP, CLASS_DP_COMM,
                                                 gather->dense * MUON_WEIGHT_BYTES, &flat));
    if (gather->experts > 0)
        waits_add(&stage->waits, emit_collective(stage, COLLECTIVE_ALL_GATHER, GROUP_EXPERT_DP, CLASS_DP_COMM,
                                                 gather->experts * MUON_WEIGHT_BYTES, &flat));
    add_optimizer_work(stage, work_add_muon_copy(works, "muon_unflatten", all - gather->own));
}

static void optimize_matrices(struct stage *stage)
{
    struct build *build = stage->build;
    struct work_table *works = &build->program->works;
    struct muon_matrices matrices = matrices_of(stage);
    struct stage_parameters all = all_parameters(stage);
    struct muon_updated updated = muon_updated_of(&matrices, build->layout, build->setting, all);
    struct muon_gather gather = muon_gather_of(&matrices, build->layout, build->setting, all);
    add_optimizer_work(stage, work_add_muon_update(works, build->setting, updated.all, updated.matrices));
    int32_t products = work_add_newton_schulz(works, build->layout, build->setting, &matrices);
    if (products >= 0) {
        exchange_updates(stage, &matrices);
        add_optimizer_work(stage, products);
        exchange_updates(stage, &matrices);
    }
    add_optimizer_work(stage, work_add_muon_apply(works, build->setting, updated.matrices, cast_parameters(stage)));
    gather_from_owners(stage, &gather);
}

static void optimize(struct stage *stage)
{
    struct build *build = stage->build;
    if (layout_offloads(build->layout, OFFLOAD_OPTIMIZER)) {
        host_optimize(stage, updated_parameters(stage), cast_parameters(stage), last_on(stage, STREAM_DP));
        return;
    }
    waits_add(&stage->waits, last_on(stage, STREAM_DP));
    if (build->setting->job->optimizer == OPTIMIZER_MUON)
        optimize_matrices(stage);
    else
        add_optimizer_work(
            stage, work_add_optimizer(&build->program->works, build->setting, updated_parameters(stage), cast_parameters(stage)));
}

void replicas_end(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    if (!overlaps(stage) && !layout_gradients_leave_rank(layout))
        reduce_all(stage);
    reduce_embedding(stage);
    host_await_gradients(stage);
    reduce_norm(stage);
    optimize(stage);
    if (!overlaps(stage) && gathers_once(stage))
        gather_all(stage);
}
