/* closed_form_schedule.c - the schedules whose micro-batches go one way, and all of them asked and put together. */
#include "model/cost/step/closed_form_schedule.h"

#include <math.h>

#include "model/cost/step/closed_form_question.h"
#include "model/cost/work/adapter.h"

bool schedule_ends_with_weights(enum schedule schedule)
{
    return schedule >= SCHEDULE_ZB1P;
}

/*
 * What fills and drains the pipeline is not paired: p + 1 of DualPipe's (P + 1 of the 2 pp places of DualPipe-V, of the 2 m
 * chunks), one round of p of interleaved 1F1B, and the round that is not full.
 */
double schedule_paired(const struct layout *l, double m)
{
    switch (l->schedule) {
    case SCHEDULE_INTERLEAVED: return l->features & FEATURE_BIT(EP_OVERLAP) ? fmax(0, floor(m / l->pp) * l->pp - l->pp) : 0;
    case SCHEDULE_DUALPIPE: return fmax(0, m - l->pp - 1);
    case SCHEDULE_DUALPIPEV: return fmax(0, m - l->pp - 0.5);
    default: return 0;
    }
}

/* --- GPipe: all forward, then all backward; either way the slowest stage's passes follow one another, or the messages beside
 * them:    (m - 1)(max F + max B) + S(F) + S(B) */

static double slowest_pass(const struct question *q, enum pass pass)
{
    double pass_s = fmax(fmax(q->t.inner.s[pass], q->t.copies), fmax(q->t.head.s[pass], q->t.first.s[pass]));
    return q->blocking ? pass_s + q->message : fmax(pass_s, q->message);
}

static double gpipe_seconds(const struct question *q)
{
    double each = slowest_pass(q, PASS_FORWARD) + slowest_pass(q, PASS_BACKWARD);
    return (q->m - 1) * each + work_of(&q->t.sum, false) + 2 * (q->p - 1) * q->message;
}

/*
 * --- messages beside passes. A stage sends and receives one at a time, so a step takes no less than all that a stage inside the
 * pipeline sends. And a circle: the last n stages have `held` micro-batches in flight, so that one after that begins only when
 * the first of them has gone down and come back up, 2 (n - 1) messages on its way. Of p stages that is all that the first stage
 * has in flight; of few micro-batches fewer stages bind earlier, sqrt(m) of them most.
 */
double sent_seconds(const struct question *q, double chunks)
{
    double each = q->p > 2 ? 2 * chunks : q->layout->schedule == SCHEDULE_INTERLEAVED ? 2 * chunks - 1 : chunks;
    return q->m * each * q->message;
}

/* What a micro-batch takes in the last n stages, down and back; those between the first and the last as full ones of as many
 * layers. */
static double last_stages_seconds(const struct question *q, enum pass back, double n)
{
    const struct stage_times *t = &q->t;
    if (n >= q->p)
        return t->sum.s[PASS_FORWARD] + t->sum.s[back];
    double before_last = q->model->layers - t->head_layers;
    double full = (before_last - layout_layers(q->layout, q->model, (int)(q->p - n)).first) / t->fullest;
    return t->head.s[PASS_FORWARD] + t->head.s[back] + full * (t->inner.s[PASS_FORWARD] + t->inner.s[back]);
}

/* What the circles add to m micro-batches of `slowest`; `back` is the pass that gradients wait for, `lead` 2 where twice as many
 * are in flight; `beside`: what else a stage does before the circle begins again. */
static double circles_seconds(const struct question *q, enum pass back, double m, double slowest, double lead, double beside)
{
    const double sizes[] = {q->p, fmin(q->p, fmax(2, round(sqrt(m))))};
    double longest = 0;
    for (int i = 0; i < 2; i++) {
        double n = sizes[i], held = lead * (n - 1) + 1;
        if (m <= held)
            continue;
        double way = last_stages_seconds(q, back, n) + beside;
        longest = fmax(longest, (m - held) * ((way + 2 * (n - 1) * q->message) / held - slowest));
    }
    return longest;
}

/*
 * --- 1F1B: the first micro-batch goes through all stages and back; behind it stage r, which has p - r in flight by then, passes
 * the others:    S(F) + S(B) + (m - 1) B + (m - p + r) F, of the last one (m - 1) T. A full stage has at least its own work to do
 * after what fills the stages before it and before what drains them. Messages that block are waited for at each of a stage's
 * exchanges: two for a micro-batch inside the pipeline, one at its ends.
 */
static double one_f_one_b_bound(const struct question *q, const struct pass_times *stage, int r, bool inside)
{
    double both = work_of(stage, false), sum = work_of(&q->t.sum, false);
    double behind = (q->m - 1) * stage->s[PASS_BACKWARD] + fmax(0, q->m - q->p + r) * stage->s[PASS_FORWARD];
    double work = q->m * both + fmin(sum - both, r * both), waits = 0;
    if (q->blocking)
        waits = (q->m - 1) * (inside ? 2 : 1) * q->message;
    return fmax(sum + behind, work) + waits + 2 * (q->p - 1) * q->message;
}

static double one_f_one_b_seconds(const struct question *q)
{
    int last = (int)q->p - 1;
    double slowest = fmax(work_of(&q->t.inner, false), work_of(&q->t.head, false));
    bool inside = last > 1 && q->t.last_full > 0;
    double passes =
        fmax(one_f_one_b_bound(q, &q->t.inner, q->t.last_full, inside), one_f_one_b_bound(q, &q->t.head, last, false));
    if (q->blocking)
        return passes;
    double sent = sent_seconds(q, 1) + work_of(&q->t.first, false);
    return fmax(passes + circles_seconds(q, PASS_BACKWARD, q->m, slowest, 1, 0), sent);
}

/*
 * --- interleaved: the first chunks fill the pipeline and the last gradients drain it. A last round of fewer than p micro-batches
 * goes round the ring of stages once per chunk all the same: in the backward direction, where no forward passes are left to fill
 * the gap; in both when it is the only round.
 *
 * Messages. Beside the passes they take the ring's whole way while the pipeline fills and drains, where passes of one direction
 * follow one another without a gap, and afterwards what a forward pass does not cover. Where they block, and where passes run in
 * pairs, a forward and a backward pass begin with what both need and all stages keep step: each pair takes what the slowest
 * stage's does (t.lockstep). Elsewhere a chunk waits for the one before it of a round of p passes, so stages drift apart by no
 * more than that: where chunks differ by what their layers are, a round takes what it does on its slowest stage (t.rounds).
 *
 * Pairs, which begin with what both passes need, wait for both messages of the pair before. Messages that block are on the way of
 * a round that is not full, too.
 *
 * Copies of activations. A forward and a backward pass have a direction of the link each; so a stage's first passes, which are
 * all forward, and its last ones, all backward, take what their copies do where a pair would have covered them. Of the last stage
 * (v - 1) p + 1 either way, of the first one 2 (p - 1) more, where that is not hidden by what it waits for. Where there is one
 * round it is all of them, and what of the round is not full has room for copies. Messages that block cover copies as passes do.
 */
static double copies_seconds(const struct question *q)
{
    const struct pass_times *chunk = &q->t.chunk;
    double v = q->layout->vpp, all = q->m * v, message = q->blocking ? q->message : 0, longer = 0, round = 0;
    double covered = fmin(q->t.behind, 2 * message), pair = work_of(chunk, false) + 2 * message - covered;
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        double alone = chunk->s[pass] - q->t.behind / 2 + message;
        longer += fmax(alone, q->t.copies);
        round += fmax(0, q->m * q->t.copies - q->p * alone);
    }
    if (q->m <= q->p)
        return v * round - all * q->t.behind;
    double last = fmin(all, (v - 1) * q->p + 1), first = fmin(all, last + 2 * (q->p - 1));
    return fmax(last * (longer - pair), first * (longer - pair) - (q->p - 1) * pair) - all * covered;
}

static double interleaved_seconds(const struct question *q, double slowest)
{
    const struct layout *l = q->layout;
    if (q->t.follows) {
        double sent = q->blocking ? 0 : sent_seconds(q, l->vpp) + work_of(&q->t.chunk, false);
        return fmax(q->t.followed_s + q->pauses, sent);
    }
    if (q->m <= 1) /* all the way there and back */
        return work_of(&q->t.sum, false) + 2 * (q->p * l->vpp - 1) * q->message;
    double paired = schedule_paired(l, q->m);
    double missing = ceil(q->m / q->p) * q->p - q->m;
    const struct pass_times *chunk = &q->t.chunk;
    double both = work_of(chunk, false), ring = q->m > q->p ? chunk->s[PASS_BACKWARD] : both;
    double alone = work_of(&q->t.inner, false);
    double fill = q->t.fill_chunks * (paired > 0 ? q->pair / l->vpp : both - q->t.behind);
    double kept = fmax(0, q->t.lockstep - slowest);
    double passes = q->m * slowest - paired * (alone - q->pair) + fill + (l->vpp - 1) * missing * ring +
                    paired * kept * q->pair / alone + copies_seconds(q);
    if (q->blocking) {
        double around = (l->vpp - 1) * missing * (q->m > q->p ? 1 : 2);
        return passes + fmax(0, q->m - q->p - paired) * kept + (2 * (q->p - 1 + q->m * l->vpp) + around) * q->message;
    }
    double exposed = fmax(0, q->message - chunk->s[PASS_FORWARD]);
    passes += fmax(0, q->m - paired) * fmax(0, q->t.rounds - slowest);
    passes += 2 * (q->p * l->vpp - 1) * q->message + l->vpp * ((q->m - paired) * exposed + paired * 2 * q->message);
    return fmax(passes, sent_seconds(q, l->vpp) + both);
}

/*
 * --- zero bubble, on one chunk. Stage r, where a step's first r stages take S_r(F) and S_r(I), has k (p - r - 1) + 1
 * micro-batches in flight (k 2 for ZB-H2, else 1) and puts weights' gradients off by k r micro-batches:
 *
 *   before      S_r(F) and r messages, until the first micro-batch is there
 *   waits       for the first gradient, S(F) - S_r(F) + S(I) - S_r(I) - I and 2 (p - r - 1) messages after it began, less the
 *               forward passes that it has meanwhile
 *   last        before + waits + m T; ZB-H2's steps roll into one another, so what is before is not part of it (unless the
 *               first stage waits for the last one's gradients of the token table)
 *   way back    before + waits + m T, less the k r + 1 passes W that it has left when its last gradient leaves, + S_r(I), r
 *               messages, and the first stage's W
 *
 * The way back may as well end at a stage before r, s, that has k s + 1 of its W left then: at the first of the full ones, or at
 * the first that has put off all m.
 *
 * As long as weight gradients wait, a stage has F + I between the circles' messages, then T, and on the first stage W among what
 * goes round. And a message from the neighbour, sent when this stage begins its W, is waited for where it takes longer.
 */
struct zero_bubble {
    double lead;  /* k */
    bool rolling; /* ZB-H2 */
};

/* A micro-batch through the stages before one, of one chunk each, that has these layers. */
static double before_layers(const struct question *q, enum pass pass, struct layer_range range)
{
    return range.first > 0 ? q->t.first.s[pass] + (range.first - q->first_layers) * q->t.layer.s[pass] : 0;
}

/* The same, exact at the ends. */
static void before_stage(const struct question *q, int stage, double before[N_PASSES])
{
    static const enum pass passes[] = {PASS_FORWARD, PASS_BACKWARD_INPUT};
    bool last = stage == (int)q->p - 1;
    struct layer_range range = {0, 0};
    if (!last && stage > 0)
        range = layout_layers(q->layout, q->model, stage);
    for (int i = 0; i < 2; i++)
        before[passes[i]] = last ? q->t.sum.s[passes[i]] - q->t.head.s[passes[i]] : before_layers(q, passes[i], range);
}

/* From the last gradient of a stage, with the way back from there, to the end of stage `at` before it, which has W left then. */
static double left_seconds(const struct question *q, const struct zero_bubble *how, double back, int at)
{
    struct layer_range range = layout_layers(q->layout, q->model, at);
    double begun = how->rolling ? before_layers(q, PASS_FORWARD, range) + at * q->message : 0;
    double way = back - before_layers(q, PASS_BACKWARD_INPUT, range) - at * q->message;
    double left = fmin(q->m, how->lead * at + 1) * range.count * q->t.layer.s[PASS_BACKWARD_WEIGHT];
    return way + left - begun;
}

static double zero_bubble_bound(const struct question *q, const struct pass_times *stage, int r, const struct zero_bubble *how)
{
    const struct pass_times *sum = &q->t.sum;
    double all_before[N_PASSES], beyond = q->p - 1 - r;
    before_stage(q, r, all_before);
    double before_f = all_before[PASS_FORWARD], before_i = all_before[PASS_BACKWARD_INPUT];
    double bare = stage->s[PASS_FORWARD] + stage->s[PASS_BACKWARD_INPUT], before = before_f + r * q->message;
    double gradient = sum->s[PASS_FORWARD] - before_f + sum->s[PASS_BACKWARD_INPUT] - before_i - stage->s[PASS_BACKWARD_INPUT];
    double meanwhile = fmin(q->m, how->lead * beyond + 1) * stage->s[PASS_FORWARD];
    double waits = fmax(0, gradient + 2 * beyond * q->message - meanwhile);
    if (r > 0)
        waits =
            fmax(waits, circles_seconds(q, PASS_BACKWARD_INPUT, fmin(q->m, 2 * how->lead * (q->p - 1) + 1), bare, how->lead, 0));
    double own = q->m * work_of(stage, true) + waits, left = fmin(q->m, how->lead * r + 1) * stage->s[PASS_BACKWARD_WEIGHT];
    double last_gradient = before + own - left, back = before_i + r * q->message;
    double returned = last_gradient + back + (r > 0 ? q->t.first.s[PASS_BACKWARD_WEIGHT] : left);
    int stop = (int)ceil((q->m - 1) / how->lead);
    if (stop > 0 && stop < r)
        returned = fmax(returned, last_gradient + left_seconds(q, how, back, stop));
    if (q->t.first_full > 0 && q->t.first_full < r)
        returned = fmax(returned, last_gradient + left_seconds(q, how, back, q->t.first_full));
    bool rolls = how->rolling && !(beyond == 0 && q->shares_table);
    return fmax(own + (rolls ? 0 : before), returned);
}

static double zero_bubble_seconds(const struct question *q)
{
    bool rolling = q->layout->schedule == SCHEDULE_ZB2P;
    const struct zero_bubble how = {rolling ? 2 : 1, rolling};
    double held = how.lead * (q->p - 1) + 1, slowest = fmax(work_of(&q->t.inner, true), work_of(&q->t.head, true));
    double passes = zero_bubble_bound(q, &q->t.head, (int)q->p - 1, &how);
    passes = fmax(passes, zero_bubble_bound(q, &q->t.first, 0, &how));
    if (q->t.last_full < q->p - 1)
        passes = fmax(passes, zero_bubble_bound(q, &q->t.inner, q->t.last_full, &how));
    if (q->t.first_full < q->t.last_full)
        passes = fmax(passes, zero_bubble_bound(q, &q->t.inner, q->t.first_full, &how));
    double weights = q->t.inner.s[PASS_BACKWARD_WEIGHT];
    double behind = circles_seconds(q, PASS_BACKWARD_INPUT, q->m, slowest, how.lead, q->t.first.s[PASS_BACKWARD_WEIGHT]);
    behind = fmax(behind, fmax(0, q->m - held) * fmax(0, q->message - weights));
    double sent = sent_seconds(q, 1) + q->m * q->t.inner.s[PASS_BACKWARD_INPUT] + work_of(&q->t.first, true);
    return fmax(passes + behind, sent);
}

/* --- any */

static double seconds_of(const struct question *q, double slowest)
{
    switch (q->layout->schedule) {
    case SCHEDULE_GPIPE: return gpipe_seconds(q);
    case SCHEDULE_1F1B: return one_f_one_b_seconds(q);
    case SCHEDULE_INTERLEAVED: return interleaved_seconds(q, slowest);
    case SCHEDULE_ZB1P:
    case SCHEDULE_ZB2P: return zero_bubble_seconds(q);
    case SCHEDULE_ZBV: return zero_bubble_v_seconds(q, slowest);
    case SCHEDULE_DUALPIPE:
    case SCHEDULE_DUALPIPEV: return both_ways_seconds(q);
    default: return q->m * slowest;
    }
}

/*
 * Each schedule's path through the fullest stage, which is never shorter than this: the sum over all stages is not below that of
 * the layers, S >= L, and neither of the stages with the ends is needed. Copies make an interleaved stage's passes longer by
 * `behind` a chunk or more, and take back no more than that (copies_seconds).
 */
double schedule_least(const struct layout *l, const struct stage_times *t, double pair, double m)
{
    bool divided = schedule_divides(l->schedule);
    double inner = work_of(&t->inner, divided), layers = work_of(&t->layers, divided), paired, bare;
    switch (l->schedule) {
    case SCHEDULE_GPIPE: return (m - 1) * inner + layers;
    case SCHEDULE_1F1B: return (m - 1) * inner + fmin(layers, (t->last_full + 1) * inner);
    case SCHEDULE_INTERLEAVED:
        paired = schedule_paired(l, m);
        bare = inner - l->vpp * t->behind;
        return (m - paired) * bare + paired * pair * t->fullest +
               t->least_chunks * (paired > 0 ? pair * t->fullest : bare) / l->vpp;
    case SCHEDULE_ZB1P:
        return m * inner + (t->layers.s[PASS_FORWARD] - t->inner.s[PASS_FORWARD]) * t->last_full / fmax(1, l->pp - 1);
    case SCHEDULE_DUALPIPE:
    case SCHEDULE_DUALPIPEV: return 0;
    default: return m * inner;
    }
}

static bool blocks(const struct layout *l)
{
    return !(l->features & FEATURE_BIT(PP_OVERLAP)) && !schedule_divides(l->schedule) && !schedule_is_folded(l->schedule);
}

/* A stage waits for all that it sends itself: what each of its passes made, but for what leaves no chunk at one end of the model.
 */
double schedule_least_messages(const struct layout *l, double m, double message)
{
    return l->pp > 1 && blocks(l) ? m * (2 * l->vpp - 1) * message : 0;
}

static void add_pauses(struct pass_times *t, double seconds)
{
    t->s[PASS_BACKWARD] += seconds;
    t->s[PASS_BACKWARD_INPUT] += seconds;
}

/* Every repetition is held up. */
static void add_all_pauses(struct question *q, double pause)
{
    int v = q->layout->schedule == SCHEDULE_DUALPIPE ? 1 : q->layout->vpp;
    add_pauses(&q->t.inner, pause * q->t.checkpoints[0]);
    add_pauses(&q->t.head, pause * q->t.checkpoints[1]);
    add_pauses(&q->t.first, pause * q->t.checkpoints[0]);
    add_pauses(&q->t.sum, pause * q->t.checkpoints[2]);
    add_pauses(&q->t.layer, pause * q->t.checkpoints[2] / q->model->layers);
    add_pauses(&q->t.chunk, pause * q->t.checkpoints[0] / v);
    q->pair += pause * q->t.checkpoints[0];
}

struct schedule_time schedule_time_of(const struct layout *l, const struct setting *setting, const struct stage_times *stages,
                                      double pair, double m, double pause, double message)
{
    const struct transformer *model = setting->model;
    struct question q = {.layout = l, .model = model, .t = *stages, .m = m, .p = l->pp, .message = message};
    if (l->schedule == SCHEDULE_ZB2P)
        q.shares_table = work_shares_table(l, model) && adapter_trains(setting->job, model, WHOLE_EMBEDDING);
    if (l->pp > 1 && l->schedule >= SCHEDULE_ZB1P)
        q.first_layers = layout_layers(l, model, 0).count;
    struct schedule_time time = {
        .paired = schedule_paired(l, m), .layers = {model->layers / q.p, model->layers / q.p * stages->whole}, .ends = m / q.p};
    bool divided = schedule_divides(l->schedule), mirrored = l->schedule == SCHEDULE_DUALPIPE;
    time.alone = m - time.paired;
    q.blocking = blocks(l);
    q.pair = time.paired > 0 ? pair * stages->fullest : work_of(&stages->inner, divided);
    if (mirrored) /* two stages have both ends, each for half of the micro-batches */
        for (int pass = 0; pass < N_PASSES; pass++)
            q.t.head.s[pass] = q.t.first.s[pass] = (stages->head.s[pass] + stages->first.s[pass]) / 2;
    q.pauses = m * pause * stages->checkpoints[0];
    if (pause > 0)
        add_all_pauses(&q, pause);
    double inner = work_of(&q.t.inner, divided), head = work_of(&q.t.head, divided), slowest = fmax(inner, head);
    time.alone_s = time.ends * work_of(&stages->sum, divided) - time.paired * time.layers.n * work_of(&stages->layer, divided);
    time.pauses_s = m * pause * stages->checkpoints[2] / q.p;
    time.messages_s = q.blocking ? 2 * m * (l->vpp - 1 / q.p) * message : 0; /* none over the ends of the model */
    double pairs = time.paired * pair * time.layers.n;
    time.total_s = l->pp > 1 ? seconds_of(&q, slowest) : m * slowest;
    time.bubble_s = time.total_s - time.alone_s - pairs - time.pauses_s - time.messages_s;
    return time;
}
