#include "model/cost/kernel/machine.h"

#include <math.h>

#include <gsl/gsl_cdf.h>

#include "model/cost/kernel/attention.h"
#include "model/cost/kernel/collective.h"
#include "model/cost/kernel/data_loading.h"
#include "model/cost/kernel/gemm.h"
#include "model/cost/kernel/gemm_memo.h"
#include "model/cost/kernel/memory_bound.h"
#include "model/cost/kernel/oversubscription.h"
#include "model/cost/work/host_memory.h"

/* SMs that an exchange inside a layer occupies while it overlaps with its product. Hand-tuned kernels (user buffers) and copy
 * engines leave most SMs to the product (assumption: 16 CTAs). */
#define PIPELINED_SMS 16.0
/* NCCL's own kernels: a channel is a CTA that has an SM for itself; it makes 24 on nodes of A100 and H100, 16 where those have
 * eight NICs. */
#define NCCL_CHANNELS  24.0
#define CHANNELS_A_NIC 2.0

double slowest_of(int n, double spread)
{
    return n < 2 || spread <= 0 ? 1 : 1 + spread * gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25));
}

/* The share of a layer's forward and backward time in which tensor cores work, on a machine that does not slow down. The last
 * layer's: of a mixture it has experts. By a pattern, of all layers. */
static double tensor_duty(const struct machine *machine, const struct setting *setting)
{
    const struct transformer *model = setting->model;
    bool hybrid = transformer_is_hybrid(model);
    struct layer_kinds kinds = layer_kinds_of(model, hybrid ? 0 : model->layers - 1, hybrid ? model->layers : 1);
    struct work_table table = {0};
    struct layout layout = *machine->layout;
    layout.recompute = (struct recompute){.what = layout.recompute.what}; /* of layers that are repeated, where some are */
    struct cost sum = {0};
    for (int kind = 0; kind < N_LAYER_KINDS; kind++)
        for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD && kinds.count[kind] > 0; pass++) {
            struct layer_range one = {kinds.one[kind], 1};
            int32_t id = work_add_pass(&table, &layout, setting, (enum pass)pass, one, false, false);
            sum = cost_add(sum, cost_scale(work_cost(machine, &table, id), kinds.count[kind]));
        }
    work_table_free(&table);
    return sum.compute_s / cost_seconds(sum);
}

void machine_set_pace(struct machine *machine, const struct setting *setting, int gpus)
{
    const struct gpu *gpu = &machine->cluster->gpu;
    machine->pace = 1;
    double clock = 1 - (1 - gpu->sustained_clock) * tensor_duty(machine, setting);
    machine->pace = slowest_of(gpus, gpu->clock_spread) / clock;
}

int replica_turns(const struct layout *layout, const struct cluster *cluster, enum group_kind group, struct group_span span)
{
    bool replicas = group == GROUP_DP || group == GROUP_EXPERT_DP || group == GROUP_REPLICA;
    int nics = cluster_domain_nics(cluster);
    if (!replicas || layout->zero != 3 || layout->features & FEATURE_BIT(DP_OVERLAP))
        return 1;
    return span.ranks_per_domain < nics ? span.ranks_per_domain : nics;
}

struct group_span replica_span(const struct layout *layout, const struct cluster *cluster, enum group_kind group)
{
    struct group_span span = layout_span(layout, cluster, group);
    span.sharing *= replica_turns(layout, cluster, group, span);
    return span;
}

struct machine machine_of(const struct layout *layout, const struct setting *setting)
{
    struct machine machine = {.cluster = setting->cluster, .layout = layout, .job = setting->job};
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        machine.spans[kind] = layout_span(layout, setting->cluster, (enum group_kind)kind);
    machine.spans[GROUP_DP] = replica_span(layout, setting->cluster, GROUP_DP);
    machine.spans[GROUP_EXPERT_DP] = replica_span(layout, setting->cluster, GROUP_EXPERT_DP);
    machine.spans[GROUP_REPLICA] = replica_span(layout, setting->cluster, GROUP_REPLICA);
    machine.hosts = layout->tp * layout->cp * layout->pp;
    machine_set_pace(&machine, setting, machine.hosts * layout->dp);
    return machine;
}

struct cost collective_cost(const struct machine *machine, enum collective collective, struct group_span span, double bytes)
{
    return collective_time(machine->cluster, collective, span, bytes);
}

static struct group_span span_of_full_fabric(struct group_span span)
{
    span.leaf_exits.to_next = span.leaf_exits.to_all = span.pod_exits.to_next = span.pod_exits.to_all = 0;
    return span;
}

static double times_as_long(struct cost cost, struct cost full)
{
    return full.bandwidth_s > 0 ? cost.bandwidth_s / full.bandwidth_s : 1;
}

double collective_over(const struct machine *machine, enum collective collective, struct group_span span, double bytes)
{
    return times_as_long(collective_cost(machine, collective, span, bytes),
                         collective_cost(machine, collective, span_of_full_fabric(span), bytes));
}

/* Neighbouring stages are tp * cp * dp ranks apart. */
bool stages_share_domain(const struct machine *machine)
{
    const struct layout *l = machine->layout;
    return l->tp * l->cp * l->dp * l->pp <= machine->cluster->nvlink_domain;
}

double p2p_over(const struct machine *machine)
{
    return stages_share_domain(machine) ? 1 : oversubscription_of_messages(machine->cluster, machine->layout);
}

/* Calls the host makes for one blocking exchange before the device has work again: buffers, the pair of calls, wait, synchronise.
 */
#define MESSAGE_LAUNCHES 8

struct cost p2p_cost(const struct machine *machine, double bytes)
{
    const struct layout *l = machine->layout;
    struct cost cost = message_time(machine->cluster, bytes, stages_share_domain(machine));
    cost.bandwidth_s *= p2p_over(machine);
    if (!(l->features &
          FEATURE_BIT(PP_OVERLAP))) /* a blocking exchange drains the queue: the host starts to fill it again behind it */
        cost.launch_s += MESSAGE_LAUNCHES * machine->cluster->gpu.host_launch_s;
    return cost;
}

double p2p_bytes(const struct layout *layout, const struct setting *setting)
{
    double tokens = (double)layout->micro_batch * (double)setting->job->seq_len / layout->cp;
    double bytes = tokens * (double)setting->model->hidden * 2;
    bool split = layout->sequence_parallel || (layout->features & FEATURE_BIT(SCATTER_GATHER_P2P));
    return split ? bytes / layout->tp : bytes;
}

/* --- one work */

static const struct work *work_at(const struct work_table *table, int32_t work)
{
    return &table->items[work];
}

static int32_t child_of(const struct work_table *table, const struct work *work, int32_t i)
{
    return table->children[work->sequence.first_child + i];
}

static struct cost paced(const struct machine *machine, struct cost cost)
{
    cost.compute_s *= machine->pace;
    return cost;
}

static struct cost exchange_on(const struct machine *machine, const struct work_collective *c, struct group_span span)
{
    if (c->tokens.copies)
        return dispatch_time(machine->cluster, span, c->bytes, c->tokens);
    return collective_time(machine->cluster, c->collective, span, c->bytes);
}

static struct cost exchange_cost(const struct machine *machine, const struct work_collective *c)
{
    return exchange_on(machine, c, machine->spans[c->group]);
}

double work_over(const struct machine *machine, const struct work_table *table, int32_t id)
{
    const struct work *work = work_at(table, id);
    if (work->kind == WORK_OVERLAPPED)
        work = work_at(table, child_of(table, work, 1));
    const struct work_collective *c = &work->collective;
    if (work->kind != WORK_COLLECTIVE)
        return 1;
    return times_as_long(exchange_cost(machine, c), exchange_on(machine, c, span_of_full_fabric(machine->spans[c->group])));
}

static struct cost product_cost(const struct machine *machine, const struct work_gemm *gemm)
{
    const struct gpu *gpu = &machine->cluster->gpu;
    return paced(machine, machine->gemms ? gemm_memo_cost(machine->gemms, gpu, gemm) : gemm_cost(gpu, gemm));
}

static struct cost attention_time(const struct machine *machine, const struct work_attention *attention, bool backward)
{
    struct work_attention drawn = *attention;
    if (drawn.documents.lengths.mean > 0)
        drawn.pairs *= 1 + machine->documents;
    return paced(machine, attention_cost_kept(&machine->cluster->gpu, &drawn, backward, machine->walks));
}

static struct cost leaf_cost(const struct machine *machine, const struct work *work)
{
    const struct gpu *gpu = &machine->cluster->gpu;
    const struct work_collective *c = &work->collective;
    switch (work->kind) {
    case WORK_GEMM: return product_cost(machine, &work->gemm);
    case WORK_ATTENTION: return attention_time(machine, &work->attention, false);
    case WORK_ATTENTION_BACKWARD: return attention_time(machine, &work->attention, true);
    case WORK_MEMORY_BOUND: return memory_bound_cost(gpu, &work->memory);
    case WORK_COLLECTIVE: return exchange_cost(machine, c);
    case WORK_DATA: return data_loading_cost(machine->cluster, &work->data);
    case WORK_COPY: return copy_cost(machine->cluster, machine->layout, work->host.bytes);
    case WORK_HOST_UPDATE: return host_update_cost(machine->cluster, machine->layout, work->host.bytes);
    case WORK_SEQUENCE:
    case WORK_OVERLAPPED:
    case WORK_PART: break;
    }
    return (struct cost){0};
}

/* A step of a ring: its share of the keys, and that share of the pairs. */
static double ring_step(const struct machine *machine, const struct work *compute, int pieces, double pairs)
{
    struct work step = *compute;
    step.attention.key_tokens = (step.attention.key_tokens + pieces - 1) / pieces;
    step.attention.pairs = pairs;
    step.attention.steps = pieces;
    return cost_seconds(leaf_cost(machine, &step));
}

/* The first step of a ring of documents, which keep most of their pairs there; 0: its steps are alike, or it is none. */
static double first_step_pairs(const struct work *compute, int pieces)
{
    if (compute->kind == WORK_GEMM || compute->attention.documents.lengths.mean <= 0)
        return 0;
    return compute->attention.pairs * fmax(compute->attention.documents.own, 1.0 / pieces);
}

static double later_step_pairs(const struct work *compute, int pieces)
{
    double pairs = compute->attention.pairs, first = first_step_pairs(compute, pieces);
    return first > 0 ? (pairs - first) / (pieces - 1) : pairs / pieces;
}

/* The compute side cut into pieces, along its rows; of attention along the keys. */
static double piece_compute(const struct machine *machine, const struct work *compute, int pieces)
{
    if (compute->kind != WORK_GEMM)
        return ring_step(machine, compute, pieces, later_step_pairs(compute, pieces));
    struct work_gemm piece = compute->gemm;
    piece.m = (piece.m + pieces - 1) / pieces;
    return cost_seconds(product_cost(machine, &piece));
}

static double piece_exchange(const struct machine *machine, const struct work *exchange, int pieces)
{
    const struct work_collective *c = &exchange->collective;
    return cost_seconds(collective_time(machine->cluster, c->collective, machine->spans[c->group], c->bytes / pieces));
}

/* Bytes of memory traffic a byte on the bus: fitted to the FSDP runs of llm_foundry on A100; three without a cache. */
#define NCCL_TRAFFIC 1.7

static double channels_of(const struct cluster *cluster, struct group_span span)
{
    if (span.domains <= 1)
        return NCCL_CHANNELS;
    int nics = cluster_domain_nics(cluster);
    double used = fmin(span.ranks_per_domain, nics) / span.sharing;
    return fmin(NCCL_CHANNELS, CHANNELS_A_NIC * fmax(1, used));
}

/* So many SMs of a GPU; of a device that was measured as a whole (one SM) what an exchange takes of it. */
static double share_of(const struct gpu *gpu, double sms)
{
    return gpu->sms > 1 ? sms / gpu->sms : gpu->exchange_share;
}

double overlap_interference_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                              double seconds)
{
    const struct gpu *gpu = &cluster->gpu;
    double on_bus = collective_ring_bytes(collective, span, bytes);
    double occupied = share_of(gpu, channels_of(cluster, span));
    return fmin(seconds, occupied * seconds + NCCL_TRAFFIC * on_bus / gpu->hbm_rate);
}

/* Side by side the exchange takes SMs from the compute kernel while both run. */
static double side_by_side(double compute, double exchange, double share)
{
    double slowed = compute / (1 - share);
    return slowed <= exchange ? exchange : compute + share * exchange;
}

/* How long an overlapped pair takes: independent ones side by side; dependent ones in pieces, the exchange of one beside the
 * compute of another, or one after the other. */
static double parts_seconds(const struct machine *machine, struct work_parts parts)
{
    double share = share_of(&machine->cluster->gpu, PIPELINED_SMS), c = parts.exchange_s;
    int n = parts.pieces;
    if (n == 0)
        return side_by_side(parts.compute_s, c, share);
    if (n == 1)
        return parts.compute_s + c;
    double longer = 0; /* by the first step instead of one like the others */
    if (parts.first_s > 0)
        longer = side_by_side(parts.first_s, c, share) - side_by_side(parts.compute_s, c, share);
    return c + side_by_side(n * parts.compute_s, (n - 1) * c, share) + longer;
}

struct work_parts work_parts_of(const struct machine *machine, const struct work_table *table, int32_t overlapped)
{
    const struct work *work = work_at(table, overlapped);
    const struct work *compute = work_at(table, child_of(table, work, 0)), *exchange = work_at(table, child_of(table, work, 1));
    struct work_parts best = {.pieces = work->sequence.pieces > 0,
                              .compute_s = cost_seconds(leaf_cost(machine, compute)),
                              .exchange_s = cost_seconds(leaf_cost(machine, exchange))};
    for (int n = 2; n <= work->sequence.pieces; n *= 2) {
        struct work_parts parts = {n, piece_compute(machine, compute, n), piece_exchange(machine, exchange, n), 0};
        double first = first_step_pairs(compute, n);
        if (first > 0)
            parts.first_s = ring_step(machine, compute, n, first);
        if (parts_seconds(machine, parts) < parts_seconds(machine, best))
            best = parts;
    }
    return best;
}

int work_slices(const struct machine *machine, const struct work_table *table)
{
    int most = 1;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct work *work = work_at(table, i);
        if (work->kind != WORK_OVERLAPPED || work_at(table, child_of(table, work, 1))->collective.group != GROUP_TP)
            continue;
        int pieces = work_parts_of(machine, table, i).pieces;
        most = pieces > most ? pieces : most;
    }
    return most;
}

static struct cost overlapped_cost(const struct machine *machine, const struct work_table *table, int32_t overlapped)
{
    struct cost cost = leaf_cost(machine, work_at(table, child_of(table, work_at(table, overlapped), 0)));
    /* what the pair takes beyond the compute alone is the exposed part of the exchange */
    cost.bandwidth_s += parts_seconds(machine, work_parts_of(machine, table, overlapped)) - cost_seconds(cost);
    return cost;
}

/* Python runs the forward pass and what is recomputed; the backward pass is driven by the framework's own engine, at half the
 * cost a kernel. */
#define PYTHON_FACTOR 2.0

/* A launch inside a loop of the framework's own code, beside a kernel that Python asks for: cudaLaunchKernel and the choice of an
 * algorithm, 5 us of 36 (assumption). */
#define LOOP_LAUNCH 0.15

/* Kernels of one work: launched apart, one for each expert or each piece, they take a loop. */
static double loop_launches(int32_t count)
{
    return 1 + (count > 1 ? LOOP_LAUNCH * (count - 1) : 0);
}

/* Kernels the host has to enqueue, in units of the engine's; of a product and its exchange in pieces one each for every piece. */
static double launches(const struct machine *machine, const struct work_table *table, int32_t id)
{
    const struct work *work = work_at(table, id);
    double weight = work->class == CLASS_RECOMPUTE ? PYTHON_FACTOR : 1;
    switch (work->kind) {
    case WORK_MEMORY_BOUND: return weight * (work->memory.apart ? loop_launches(work->memory.count) : work->memory.count);
    case WORK_ATTENTION_BACKWARD: return 3;
    case WORK_GEMM: return weight * (work->gemm.apart ? loop_launches(work->gemm.count) : 1);
    case WORK_ATTENTION: return weight;
    case WORK_COLLECTIVE: return 1;
    case WORK_OVERLAPPED: return (1 + weight) * loop_launches(work_parts_of(machine, table, id).pieces);
    case WORK_DATA:
    case WORK_COPY:
    case WORK_HOST_UPDATE: return 0;
    case WORK_PART: return launches(machine, table, child_of(table, work, 0));
    case WORK_SEQUENCE: break;
    }
    double sum = 0;
    for (int32_t i = 0; i < work->sequence.n_children; i++)
        sum += launches(machine, table, child_of(table, work, i));
    return sum * work->sequence.repeat;
}

double starved_seconds(double host_s, double device_s)
{
    return cbrt(device_s * device_s * device_s + host_s * host_s * host_s) - device_s;
}

/* 0 of what the host does not pace. */
static double host_seconds(const struct machine *machine, const struct work_table *table, int32_t id, bool forward)
{
    double weight = forward ? PYTHON_FACTOR : 1;
    bool paced_by_host = work_at(table, id)->sequence.host_paced;
    return paced_by_host ? weight * launches(machine, table, id) * machine->cluster->gpu.host_launch_s : 0;
}

double work_host_seconds(const struct machine *machine, const struct work_table *table, int32_t id)
{
    const struct work *work = work_at(table, id);
    return work->kind == WORK_SEQUENCE ? host_seconds(machine, table, id, work->sequence.host_forward) : 0;
}

double pause_seconds(const struct cluster *cluster, int hosts, double layers)
{
    return hosts * layers * cluster->gpu.host_pause_s;
}

/* Layers of a work that Python checkpoints. */
static double pausing_layers(const struct work_table *table, const struct work *work)
{
    if (work->kind != WORK_SEQUENCE)
        return 0;
    double layers = work->sequence.pauses;
    for (int32_t i = 0; i < work->sequence.n_children; i++)
        layers += pausing_layers(table, work_at(table, child_of(table, work, i)));
    return layers * work->sequence.repeat;
}

/* What the device does of a work whose exchanges are waited for in part: `exposed` of a second of theirs (1: nothing hides them).
 * The tree is at most four deep: pass, layer, overlapped pair, kernel. */
static struct cost device_cost(const struct machine *machine, const struct work_table *table, int32_t id, double exposed)
{
    const struct work *work = work_at(table, id);
    if (work->kind == WORK_OVERLAPPED)
        return overlapped_cost(machine, table, id);
    if (work->kind != WORK_SEQUENCE)
        return cost_scale(leaf_cost(machine, work), work->kind == WORK_COLLECTIVE ? exposed : 1);
    struct cost sum = {0};
    for (int32_t i = 0; i < work->sequence.n_children; i++)
        sum = cost_add(sum, device_cost(machine, table, child_of(table, work, i), exposed));
    return cost_scale(sum, work->sequence.repeat);
}

/*
 * A pair of passes, one forward and one backward, of different micro-batches: neither needs what the other makes, so while one
 * exchanges the other computes (DeepSeek-V3, arXiv:2412.19437, section 3.2.1). With c1, c2 the computing and e1, e2 the
 * exchanging of the two this is a job shop of two jobs on two machines, and in pieces as small as the parts of a layer it takes
 * what the fuller machine or the longer job does:
 *
 *     T = max(c1 + c2, e1 + e2, c1 + e1, c2 + e2)
 *
 * The last two are what cannot overlap: a pass never hides its own exchanges. Exchange kernels have SMs of their own while they
 * run (side_by_side), 20 of an H800's 132. What T leaves beyond c1 + c2 is shared by the exchanges in proportion to their time,
 * and what the host takes beyond T by the passes in proportion to their kernels.
 */
#define PAIR_SMS 20.0

struct pair {
    double exposed; /* of a second of exchange */
    double starved; /* waiting for the host, of a second it takes to enqueue */
};

static struct pair pair_of(const struct machine *machine, const struct work_table *table, const struct work *paired)
{
    double compute[2], exchange[2], host = 0;
    for (int i = 0; i < 2; i++) {
        int32_t id = child_of(table, paired, 1 + i);
        compute[i] = cost_seconds(device_cost(machine, table, id, 0));
        exchange[i] = cost_seconds(device_cost(machine, table, id, 1)) - compute[i];
        host += host_seconds(machine, table, id, work_at(table, id)->sequence.host_forward);
    }
    double c = compute[0] + compute[1], e = exchange[0] + exchange[1];
    double longer = fmax(compute[0] + exchange[0], compute[1] + exchange[1]);
    double t = fmax(side_by_side(c, e, share_of(&machine->cluster->gpu, PAIR_SMS)), longer);
    return (struct pair){.exposed = e > 0 ? (t - c) / e : 1, .starved = host > 0 ? starved_seconds(host, t) / host : 0};
}

/* A pass by itself starves as a whole, and its parts in proportion to their kernels. */
static struct pair alone_of(const struct machine *machine, const struct work_table *table, int32_t pass)
{
    double host = work_host_seconds(machine, table, pass);
    double device = cost_seconds(device_cost(machine, table, pass, 1));
    return (struct pair){.exposed = 1, .starved = host > 0 ? starved_seconds(host, device) / host : 0};
}

/* A work as it is executed: as a whole, or as a part of a pass. */
struct execution {
    int32_t root;
    double exposed; /* see device_cost */
    bool is_part;
    double starved_s; /* of a part */
};

static struct execution execution_of(const struct machine *machine, const struct work_table *table, int32_t id)
{
    const struct work *work = work_at(table, id);
    if (work->kind != WORK_PART)
        return (struct execution){.root = id, .exposed = 1};
    bool beside = work->sequence.n_children == 3;
    struct pair pair = beside ? pair_of(machine, table, work) : alone_of(machine, table, child_of(table, work, 1));
    int32_t part = child_of(table, work, 0);
    bool forward = work_at(table, child_of(table, work, 1))->sequence.host_forward;
    double host = host_seconds(machine, table, part, forward);
    return (struct execution){part, pair.exposed, true, pair.starved * host};
}

/* What it takes beyond the device's own time. */
static double starvation(const struct machine *machine, const struct work_table *table, const struct execution *execution,
                         double device_s)
{
    const struct work *work = work_at(table, execution->root);
    bool pausing = machine->hosts > 0 && machine->cluster->gpu.host_pause_s > 0;
    double pauses = pausing ? pause_seconds(machine->cluster, machine->hosts, pausing_layers(table, work)) : 0;
    if (execution->is_part)
        return execution->starved_s + pauses;
    if (work->kind != WORK_SEQUENCE || !work->sequence.host_paced)
        return pauses;
    return starved_seconds(work_host_seconds(machine, table, execution->root), device_s) + pauses;
}

struct cost work_cost(const struct machine *machine, const struct work_table *table, int32_t id)
{
    struct execution execution = execution_of(machine, table, id);
    struct cost cost = device_cost(machine, table, execution.root, execution.exposed);
    cost.launch_s += starvation(machine, table, &execution, cost_seconds(cost));
    return cost;
}

static void by_class_add(const struct machine *machine, const struct work_table *table, int32_t id, double times, double exposed,
                         struct cost_by_class *by)
{
    const struct work *work = work_at(table, id);
    if (work->kind == WORK_OVERLAPPED) {
        const struct work *exchange = work_at(table, child_of(table, work, 1));
        double all = cost_seconds(overlapped_cost(machine, table, id));
        /* a product in pieces may take less than in one, by fewer tiles in its last wave: nothing is exposed then */
        double compute = fmin(all, cost_seconds(leaf_cost(machine, work_at(table, child_of(table, work, 0)))));
        by->s[work->class] += times * compute;
        by->s[exchange->class] += times * (all - compute);
    } else if (work->kind == WORK_SEQUENCE) {
        for (int32_t i = 0; i < work->sequence.n_children; i++)
            by_class_add(machine, table, child_of(table, work, i), times * work->sequence.repeat, exposed, by);
    } else {
        by->s[work->class] += times * cost_seconds(device_cost(machine, table, id, exposed));
    }
}

void work_cost_by_class(const struct machine *machine, const struct work_table *table, int32_t id, struct cost_by_class *by)
{
    struct execution execution = execution_of(machine, table, id);
    struct cost_by_class own = {0};
    by_class_add(machine, table, execution.root, 1, execution.exposed, &own);
    own.s[CLASS_HOST] += starvation(machine, table, &execution, cost_by_class_total(&own));
    cost_by_class_add(by, &own, 1);
}
