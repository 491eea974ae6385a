/*
 * closed_form_exposed.c - the exposed part of the exchanges among replicas, stage by stage, for the closed form.
 */
#include <math.h>
#include <stdlib.h>

#include "model/cost/step/closed_form_replicas.h"
#include "model/cost/step/closed_form_schedule.h"

/* Without overlap chunks follow one another, too. */
static double all_pieces(const struct stage_exchanges *x, double first, double middle, double last)
{
    return first + (x->pieces > 1 ? last : 0) + fmax(0, x->pieces - 2) * middle;
}

static double reduced_apart(const struct stage_exchanges *x, const struct layout *l)
{
    return l->vpp > 1 ? all_pieces(x, x->first.reduce_s, x->middle.reduce_s, x->last.reduce_s) : x->whole.reduce_s;
}

static double gathered_apart(const struct stage_exchanges *x, const struct layout *l)
{
    return l->vpp > 1 ? all_pieces(x, x->first.gather_s, x->middle.gather_s, x->last.gather_s) : x->whole.gather_s;
}

/* A pass of a stage, and of its first, middle and last piece; the last's is of no matter where chunks follow one another. */
struct piece_passes {
    double all, first, middle, last;
};

/* A pass of a stage: the first, that with the head, or as many layers of the fullest. */
static double pass_of_stage(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                            enum pass pass)
{
    if (l->pp == 1)
        return stages->inner.s[pass];
    if (x->stage == 0)
        return stages->first.s[pass];
    return x->head ? stages->head.s[pass] : stages->inner.s[pass] * x->layers / stages->fullest;
}

/* Buckets are passed one after the other. */
static struct piece_passes bucket_passes(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                                         const struct stage_times *stages, const struct transformer *model, enum pass pass)
{
    double all = pass_of_stage(x, l, stages, pass);
    double embedding = x->embedding ? c->parts[pass][PART_EMBEDDING].device_s : 0;
    double head = x->head ? c->parts[pass][PART_HEAD].device_s : 0;
    if (l->pp == 1 && !c->kinds && !c->whole) {
        pass_ends(c, l, model, pass, &embedding, &head);
        double apart = x->layers * pass_seconds(c, pass, PART_MEAN_LAYER, (struct layer_count){1, 0}, false, false);
        double part = all / (apart + embedding + head);
        embedding *= part;
        head *= part;
    }
    double layers = fmax(0, all - embedding - head);
    struct piece_passes p = {.all = all, .first = embedding + layers * x->first_share, .last = head + layers * x->last_share};
    p.middle = x->pieces > 2 ? (all - p.first - p.last) / (x->pieces - 2) : 0;
    return p;
}

/*
 * ZB-V's stage r, of p and a pattern of n = max(m, 2 p - 1) micro-batches, puts off the last r of either chunk's weights'
 * gradients to its end, those of chunk 0 last. Where none of these micro-batches exist, it has p - r backward passes of chunk 0
 * left; and the last one's gradient is on its way down the stages and back.
 */
static double drained_v_seconds(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                                double m, double message)
{
    const double *chunk = stages->chunk.s;
    double n = fmax(m, 2 * l->pp - 1), put_off = m - (n - x->stage), beyond = l->pp - 1 - x->stage;
    if (put_off > 0)
        return put_off * chunk[PASS_BACKWARD_WEIGHT];
    double left = fmin(m, beyond + 1) * (chunk[PASS_BACKWARD_INPUT] + chunk[PASS_BACKWARD_WEIGHT]);
    return fmax(left, 2 * beyond * (chunk[PASS_BACKWARD_INPUT] + message) + chunk[PASS_BACKWARD_INPUT]);
}

/*
 * Of schedules that end with weights' gradients, what a stage has left to do when its other chunk's gradients are complete
 * (drain() of schedule_zero_bubble_v.c and schedule_dualpipe.c). Both ways: a backward pass for each place beyond it, and at the
 * outermost its own.
 */
static double drained_seconds(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages, double m,
                              double message)
{
    const double *chunk = stages->chunk.s;
    double divided = chunk[PASS_BACKWARD_INPUT] + chunk[PASS_BACKWARD_WEIGHT];
    if (l->schedule == SCHEDULE_ZBV)
        return drained_v_seconds(x, l, stages, m, message);
    int half = l->schedule == SCHEDULE_DUALPIPE ? l->pp / 2 : l->pp;
    int place = l->schedule == SCHEDULE_DUALPIPE && x->stage >= half ? l->pp - 1 - x->stage : x->stage;
    return fmax((half - 1 - place + (place == 0)) * divided, chunk[PASS_BACKWARD_WEIGHT]);
}

/* From a chunk to the next a micro-batch, or a gradient, goes once around the stages; in a V to its end and back. Of DualPipe's
 * two directions one comes across all stages. */
static struct piece_passes chunk_passes(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                                        enum pass pass, double m, double message)
{
    const double *chunk = stages->chunk.s;
    double way = l->pp * (chunk[pass] + message);
    if (pass == PASS_BACKWARD_WEIGHT)
        way = drained_seconds(x, l, stages, m, message);
    else if (l->schedule == SCHEDULE_DUALPIPE)
        way = abs(l->pp - 1 - 2 * x->stage) * chunk[pass];
    else if (schedule_is_folded(l->schedule))
        way = (2 * (l->pp - 1 - x->stage) + 1) * chunk[pass];
    return (struct piece_passes){.all = way * x->pieces, .first = way, .middle = way, .last = way};
}

/* One number of each piece: the first, those between, the last. */
struct of_pieces {
    double first, middle, last;
};

/*
 * How long passes are held up by pieces that follow one another beside them: whichever piece they wait for last. Linear between
 * the first and the last, so that its neighbours tell all. Gradients wait for their pass, behind which are the passes of the
 * pieces before; what exchanges of pieces behind take from computations beside them (`interference`) makes it later. Forward
 * passes wait for their piece: the same in reverse.
 */
static double held_up(const struct stage_exchanges *x, const struct piece_passes *p, struct of_pieces exchange,
                      struct of_pieces interference)
{
    int n = x->pieces;
    double all = all_pieces(x, exchange.first, exchange.middle, exchange.last);
    double longest = exchange.first + (n > 1 ? all_pieces(x, 0, interference.middle, interference.last) : 0);
    if (n > 1)
        longest = fmax(longest, all - (p->all - p->last));
    if (n > 2) {
        double behind = interference.last + (n - 3) * interference.middle;
        longest = fmax(longest, exchange.first + exchange.middle - p->first + behind);
        longest = fmax(longest, all - exchange.last - (p->all - p->last - p->middle) + interference.last);
    }
    return longest;
}

/* Passes of one direction from the first stage to this one. */
static double way_to(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages, enum pass pass,
                     double message)
{
    double one = l->vpp > 1 ? stages->chunk.s[pass] : stages->inner.s[pass];
    int stage = l->schedule == SCHEDULE_DUALPIPE && 2 * x->stage >= l->pp ? l->pp - 1 - x->stage : x->stage;
    if (stage == 0)
        return 0;
    return (l->vpp > 1 ? one : stages->first.s[pass]) + (stage - 1) * one + stage * message;
}

/* A pass of bucket i of a model in one stage. */
static double bucket_seconds(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                             const struct transformer *model, enum pass pass, int i)
{
    int begin = (int)((int64_t)x->layers * i / x->pieces), end = (int)((int64_t)x->layers * (i + 1) / x->pieces);
    struct layer_count layers = {end - begin, 0};
    for (int layer = begin; c->whole && layer < end; layer++)
        layers.whole += layout_repeated_with(l, model, layer).count == 0;
    return pass_seconds(c, pass, PART_MEAN_LAYER, layers, i == 0, i == x->pieces - 1);
}

/* What a pass takes longer in buckets than in one piece: the host, which is ahead of the device in a part of the pass, does not
 * make up for others where each is waited for. Of a pipeline the passes behind it do. */
static double cut_seconds(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                          const struct stage_times *stages, const struct transformer *model, enum pass pass)
{
    int n = x->pieces;
    if (n == 1 || l->pp > 1)
        return 0;
    double pieces = bucket_seconds(x, l, c, model, pass, 0) + bucket_seconds(x, l, c, model, pass, n - 1);
    double between = x->layers * (1 - x->first_share - x->last_share);
    if (!c->whole) /* layers are alike, so the buckets between take what their layers do */
        pieces += between * pass_seconds(c, pass, PART_MEAN_LAYER, (struct layer_count){1, 0}, false, false);
    for (int i = 1; c->whole && i < n - 1; i++)
        pieces += bucket_seconds(x, l, c, model, pass, i);
    return fmax(0, pieces - stages->inner.s[pass]);
}

/* What a stage's last pass takes longer beside the reductions of its buckets. */
static double last_pass_longer(const struct stage_exchanges *x, const struct piece_passes *pass)
{
    if (x->pieces == 1 || x->whole.reduce_s <= 0)
        return 0;
    double lost = x->whole.reduce_interference_s / x->whole.reduce_s, beside = pass->all - pass->last;
    double all = all_pieces(x, 0, x->middle.reduce_interference_s, x->last.reduce_interference_s);
    return fmin(all, lost < 1 ? beside * lost / (1 - lost) : all);
}

/* What of one stage's exchanges holds up the step. */
struct exposed {
    double begin, end, after;
    double host; /* of passes that are cut for them */
};

static struct exposed exposed_of(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                                 const struct stage_times *stages, const struct transformer *model, double m, double message)
{
    bool overlaps = l->features & FEATURE_BIT(DP_OVERLAP), drains = !schedule_ends_with_weights(l->schedule);
    double late = drains ? way_to(x, l, stages, PASS_BACKWARD, message) : 0;
    if (layout_gradients_leave_rank(l)) /* layer_waits_of follows them */
        return (struct exposed){.after = x->owners_s};
    if (!overlaps)
        return (struct exposed){.end = reduced_apart(x, l) - late, .after = gathered_apart(x, l) + x->owners_s};
    enum pass last = schedule_ends_with_weights(l->schedule) ? PASS_BACKWARD_WEIGHT : PASS_BACKWARD;
    double cut = (x->whole.gather_s > 0 ? cut_seconds(x, l, c, stages, model, PASS_FORWARD) : 0) +
                 cut_seconds(x, l, c, stages, model, last);
    if (exchanges_buckets(l))
        return (struct exposed){.after = x->owners_s, .host = cut};
    struct piece_passes f, b;
    f = l->vpp > 1 ? chunk_passes(x, l, stages, PASS_FORWARD, m, message) : bucket_passes(x, l, c, stages, model, PASS_FORWARD);
    b = l->vpp > 1 ? chunk_passes(x, l, stages, last, m, message) : bucket_passes(x, l, c, stages, model, last);
    const struct of_pieces gathers = {x->first.gather_s, x->middle.gather_s, x->last.gather_s}, none = {0, 0, 0};
    const struct of_pieces reductions = {x->first.reduce_s, x->middle.reduce_s, x->last.reduce_s};
    const struct of_pieces interference = {x->first.reduce_interference_s, x->middle.reduce_interference_s,
                                           x->last.reduce_interference_s};
    double begin = held_up(x, &f, gathers, none), end = held_up(x, &b, reductions, interference);
    begin = fmax(begin, x->first.gather_s + all_pieces(x, 0, x->middle.gather_interference_s, x->last.gather_interference_s));
    if (l->vpp == 1 && drains) /* the stages behind it have all ended so, one after the other */
        end += (l->pp - 1 - x->stage) * last_pass_longer(x, &b);
    return (struct exposed){
        .begin = begin - way_to(x, l, stages, PASS_FORWARD, message), .end = end - late, .after = x->owners_s, .host = cut};
}

/*
 * Where steps roll into one another a stage's step is from its first pass to its last update. In a full pipeline all stages' are
 * as long, begun one after the other. Where a V has too few micro-batches for that, the first stage's is the way there and back,
 * and stage r's is shorter by what is before and behind it; but what any of them waits for at the beginning holds up all.
 */
static double slack_of(const struct stage_exchanges *x, const struct stage_times *stages, double message)
{
    return x->stage * (stages->chunk.s[PASS_FORWARD] + stages->chunk.s[PASS_BACKWARD_INPUT] + 2 * message);
}

/* A message that goes beside an exchange: what it takes longer. `share`: of the NIC, that the exchange has. */
static double longer_by(const struct cost *message, double share)
{
    return message->bandwidth_s * share / (1 - share);
}

/*
 * Messages that are waited for while the pipeline fills, and while it drains, beside a stage's exchanges: gathers from the
 * beginning on, reductions behind the last passes. What they take longer than alone.
 */
static double messages_longer(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                              const struct cost *message)
{
    if (l->pp == 1 || !(l->features & FEATURE_BIT(DP_OVERLAP)) || message->bandwidth_s <= 0 || schedule_rolls(l->schedule))
        return 0;
    bool interleaved = l->schedule == SCHEDULE_INTERLEAVED;
    const double *pass = interleaved ? stages->chunk.s : stages->inner.s, alone = cost_seconds(*message);
    double hops = interleaved ? l->pp * l->vpp - 1 : l->pp - 1, longer = 0;
    double gather = gathered_apart(x, l), reduce = interleaved && x->pieces > 2 ? x->middle.reduce_s : x->first.reduce_s;
    if (gather > 0) {
        double each = longer_by(message, x->whole.gather_nic_s / x->whole.gather_s);
        longer += each * fmin(hops, fmax(0, gather - pass[PASS_FORWARD]) / (pass[PASS_FORWARD] + alone + each));
    }
    if (reduce > 0 && !schedule_ends_with_weights(l->schedule)) {
        double share = x->whole.reduce_nic_s / x->whole.reduce_s;
        longer += hops * fmin(longer_by(message, share), reduce * share);
    }
    return longer;
}

struct replica_time replicas_of_stages(const struct replica_costs *costs, const struct layout *l, const struct pass_costs *c,
                                       const struct stage_times *stages, const struct transformer *model, double m,
                                       const struct cost *sent)
{
    double message = cost_seconds(*sent), longer = 0;
    struct replica_time slowest = {0}, own = {0};
    struct exposed at[REPLICA_STAGES];
    double begin = 0, end = 0, host = 0;
    bool rolls = schedule_rolls(l->schedule), few = l->schedule == SCHEDULE_ZBV && m < 2 * l->pp - 1;
    for (int i = 0; i < costs->n; i++) {
        const struct stage_exchanges *x = &costs->at[i];
        at[i] = exposed_of(x, l, c, stages, model, m, message);
        begin = fmax(begin, at[i].begin);
        end = fmax(end, at[i].end);
        host += at[i].host;
        longer = fmax(longer, messages_longer(x, l, stages, sent));
    }
    for (int i = 0; i < costs->n; i++) {
        const struct stage_exchanges *x = &costs->at[i];
        double rolled = fmax(0, few ? begin : at[i].begin) + fmax(0, at[i].end) - (few ? slack_of(x, stages, message) : 0);
        own.optimizer_s = cost_seconds(x->update) + (c->pace - 1) * x->update.compute_s;
        own.exposed_s = at[i].after + (rolls ? rolled : 0);
        if (i == 0 || own.optimizer_s + own.exposed_s > slowest.optimizer_s + slowest.exposed_s)
            slowest = own;
    }
    slowest.optimizer_s += costs->shards_norm_s + (rolls ? 0 : costs->model_norm_s);
    slowest.exposed_s += longer + costs->table_s + (rolls ? 0 : begin + end);
    slowest.host_s = host;
    return slowest;
}
