/*
 * closed_form_schedule.c - schedules whose micro-batches go in one direction, and the choice of the formula for every schedule.
 */
#include "model/cost/step/closed_form_schedule.h"

#include <math.h>

#include "model/cost/step/closed_form_schedule_internal.h"
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

static double slowest_pass(const struct schedule_timing *timing, enum pass pass)
{
    double pass_s = fmax(fmax(timing->t.inner.s[pass], timing->t.copies), fmax(timing->t.head.s[pass], timing->t.first.s[pass]));
    return timing->blocking ? pass_s + timing->message : fmax(pass_s, timing->message);
}

static double gpipe_seconds(const struct schedule_timing *timing)
{
    double each = slowest_pass(timing, PASS_FORWARD) + slowest_pass(timing, PASS_BACKWARD);
    return (timing->m - 1) * each + work_of(&timing->t.sum, false) + 2 * (timing->p - 1) * timing->message;
}

/*
 * --- messages that overlap passes. A step takes no less than all that a stage inside the pipeline sends (sent_seconds). And a
 * circle: the last n stages have `held` micro-batches in flight, so that one after that begins only when the first of them has
 * gone down and come back up, 2 (n - 1) messages on its way. Of p stages that is all that the first stage has in flight; of few
 * micro-batches fewer stages bind earlier, sqrt(m) of them most.
 */
/* What a micro-batch takes in the last n stages, down and back; those between the first and the last as full ones of as many
 * layers. */
static double last_stages_seconds(const struct schedule_timing *timing, enum pass back, double n)
{
    const struct stage_times *t = &timing->t;
    if (n >= timing->p)
        return t->sum.s[PASS_FORWARD] + t->sum.s[back];
    double before_last = timing->model->layers - t->head_layers;
    double full = (before_last - layout_layers(timing->layout, timing->model, (int)(timing->p - n)).first) / t->fullest;
    return t->head.s[PASS_FORWARD] + t->head.s[back] + full * (t->inner.s[PASS_FORWARD] + t->inner.s[back]);
}

/* What the circles add to m micro-batches of `slowest`; `back` is the pass that gradients wait for, `lead` 2 where twice as many
 * are in flight; `beside`: what else a stage does before the circle begins again. */
static double circles_seconds(const struct schedule_timing *timing, enum pass back, double m, double slowest, double lead,
                              double beside)
{
    const double sizes[] = {timing->p, fmin(timing->p, fmax(2, round(sqrt(m))))};
    double longest = 0;
    for (int i = 0; i < 2; i++) {
        double n = sizes[i], held = lead * (n - 1) + 1;
        if (m <= held)
            continue;
        double way = last_stages_seconds(timing, back, n) + beside;
        longest = fmax(longest, (m - held) * ((way + 2 * (n - 1) * timing->message) / held - slowest));
    }
    return longest;
}

/*
 * --- 1F1B: the first micro-batch goes through all stages and back; behind it stage r, which has p - r in flight by then, passes
 * the others:    S(F) + S(B) + (m - 1) B + (m - p + r) F, of the last one (m - 1) T. A full stage has at least its own work to do
 * after what fills the stages before it and before what drains them. Messages that block are waited for at each of a stage's
 * exchanges: two for a micro-batch inside the pipeline, one at its ends.
 */
static double one_f_one_b_bound(const struct schedule_timing *timing, const struct pass_times *stage, int r, bool inside)
{
    double both = work_of(stage, false), sum = work_of(&timing->t.sum, false);
    double behind = (timing->m - 1) * stage->s[PASS_BACKWARD] + fmax(0, timing->m - timing->p + r) * stage->s[PASS_FORWARD];
    double work = timing->m * both + fmin(sum - both, r * both), waits = 0;
    if (timing->blocking)
        waits = (timing->m - 1) * (inside ? 2 : 1) * timing->message;
    return fmax(sum + behind, work) + waits + 2 * (timing->p - 1) * timing->message;
}

static double one_f_one_b_seconds(const struct schedule_timing *timing)
{
    int last = (int)timing->p - 1;
    double slowest = fmax(work_of(&timing->t.inner, false), work_of(&timing->t.head, false));
    bool inside = last > 1 && timing->t.last_full > 0;
    double passes = fmax(one_f_one_b_bound(timing, &timing->t.inner, timing->t.last_full, inside),
                         one_f_one_b_bound(timing, &timing->t.head, last, false));
    if (timing->blocking)
        return passes;
    double sent = sent_seconds(timing, 1) + work_of(&timing->t.first, false);
    return fmax(passes + circles_seconds(timing, PASS_BACKWARD, timing->m, slowest, 1, 0), sent);
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
static double copies_seconds(const struct schedule_timing *timing)
{
    const struct pass_times *chunk = &timing->t.chunk;
    double v = timing->layout->vpp, all = timing->m * v, message = timing->blocking ? timing->message : 0, longer = 0, round = 0;
    double covered = fmin(timing->t.behind, 2 * message), pair = work_of(chunk, false) + 2 * message - covered;
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        double alone = chunk->s[pass] - timing->t.behind / 2 + message;
        longer += fmax(alone, timing->t.copies);
        round += fmax(0, timing->m * timing->t.copies - timing->p * alone);
    }
    if (timing->m <= timing->p)
        return v * round - all * timing->t.behind;
    double last = fmin(all, (v - 1) * timing->p + 1), first = fmin(all, last + 2 * (timing->p - 1));
    return fmax(last * (longer - pair), first * (longer - pair) - (timing->p - 1) * pair) - all * covered;
}

static double interleaved_seconds(const struct schedule_timing *timing, double slowest)
{
    const struct layout *l = timing->layout;
    if (timing->t.follows) {
        double sent = timing->blocking ? 0 : sent_seconds(timing, l->vpp) + work_of(&timing->t.chunk, false);
        return fmax(timing->t.followed_s + timing->pauses, sent);
    }
    if (timing->m <= 1) /* all the way there and back */
        return work_of(&timing->t.sum, false) + 2 * (timing->p * l->vpp - 1) * timing->message;
    double paired = schedule_paired(l, timing->m);
    double missing = ceil(timing->m / timing->p) * timing->p - timing->m;
    const struct pass_times *chunk = &timing->t.chunk;
    double both = work_of(chunk, false), ring = timing->m > timing->p ? chunk->s[PASS_BACKWARD] : both;
    double alone = work_of(&timing->t.inner, false);
    double fill = timing->t.fill_chunks * (paired > 0 ? timing->pair / l->vpp : both - timing->t.behind);
    double kept = fmax(0, timing->t.lockstep - slowest);
    double passes = timing->m * slowest - paired * (alone - timing->pair) + fill + (l->vpp - 1) * missing * ring +
                    paired * kept * timing->pair / alone + copies_seconds(timing);
    if (timing->blocking) {
        double around = (l->vpp - 1) * missing * (timing->m > timing->p ? 1 : 2);
        return passes + fmax(0, timing->m - timing->p - paired) * kept +
               (2 * (timing->p - 1 + timing->m * l->vpp) + around) * timing->message;
    }
    double exposed = fmax(0, timing->message - chunk->s[PASS_FORWARD]);
    passes += fmax(0, timing->m - paired) * fmax(0, timing->t.rounds - slowest);
    passes +=
        2 * (timing->p * l->vpp - 1) * timing->message + l->vpp * ((timing->m - paired) * exposed + paired * 2 * timing->message);
    return fmax(passes, sent_seconds(timing, l->vpp) + both);
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
static double before_layers(const struct schedule_timing *timing, enum pass pass, struct layer_range range)
{
    return range.first > 0 ? timing->t.first.s[pass] + (range.first - timing->first_layers) * timing->t.layer.s[pass] : 0;
}

/* The same, exact at the ends. */
static void before_stage(const struct schedule_timing *timing, int stage, double before[N_PASSES])
{
    static const enum pass passes[] = {PASS_FORWARD, PASS_BACKWARD_INPUT};
    bool last = stage == (int)timing->p - 1;
    struct layer_range range = {0, 0};
    if (!last && stage > 0)
        range = layout_layers(timing->layout, timing->model, stage);
    for (int i = 0; i < 2; i++)
        before[passes[i]] =
            last ? timing->t.sum.s[passes[i]] - timing->t.head.s[passes[i]] : before_layers(timing, passes[i], range);
}

/* From the last gradient of a stage, with the way back from there, to the end of stage `at` before it, which has W left then. */
static double left_seconds(const struct schedule_timing *timing, const struct zero_bubble *how, double back, int at)
{
    struct layer_range range = layout_layers(timing->layout, timing->model, at);
    double begun = how->rolling ? before_layers(timing, PASS_FORWARD, range) + at * timing->message : 0;
    double way = back - before_layers(timing, PASS_BACKWARD_INPUT, range) - at * timing->message;
    double left = fmin(timing->m, how->lead * at + 1) * range.count * timing->t.layer.s[PASS_BACKWARD_WEIGHT];
    return way + left - begun;
}

static double zero_bubble_bound(const struct schedule_timing *timing, const struct pass_times *stage, int r,
                                const struct zero_bubble *how)
{
    const struct pass_times *sum = &timing->t.sum;
    double all_before[N_PASSES], beyond = timing->p - 1 - r;
    before_stage(timing, r, all_before);
    double before_f = all_before[PASS_FORWARD], before_i = all_before[PASS_BACKWARD_INPUT];
    double bare = stage->s[PASS_FORWARD] + stage->s[PASS_BACKWARD_INPUT], before = before_f + r * timing->message;
    double gradient = sum->s[PASS_FORWARD] - before_f + sum->s[PASS_BACKWARD_INPUT] - before_i - stage->s[PASS_BACKWARD_INPUT];
    double meanwhile = fmin(timing->m, how->lead * beyond + 1) * stage->s[PASS_FORWARD];
    double waits = fmax(0, gradient + 2 * beyond * timing->message - meanwhile);
    if (r > 0)
        waits = fmax(waits, circles_seconds(timing, PASS_BACKWARD_INPUT, fmin(timing->m, 2 * how->lead * (timing->p - 1) + 1),
                                            bare, how->lead, 0));
    double own = timing->m * work_of(stage, true) + waits,
           left = fmin(timing->m, how->lead * r + 1) * stage->s[PASS_BACKWARD_WEIGHT];
    double last_gradient = before + own - left, back = before_i + r * timing->message;
    double returned = last_gradient + back + (r > 0 ? timing->t.first.s[PASS_BACKWARD_WEIGHT] : left);
    int stop = (int)ceil((timing->m - 1) / how->lead);
    if (stop > 0 && stop < r)
        returned = fmax(returned, last_gradient + left_seconds(timing, how, back, stop));
    if (timing->t.first_full > 0 && timing->t.first_full < r)
        returned = fmax(returned, last_gradient + left_seconds(timing, how, back, timing->t.first_full));
    bool rolls = how->rolling && !(beyond == 0 && timing->shares_table);
    return fmax(own + (rolls ? 0 : before), returned);
}

static double zero_bubble_seconds(const struct schedule_timing *timing)
{
    bool rolling = timing->layout->schedule == SCHEDULE_ZB2P;
    const struct zero_bubble how = {rolling ? 2 : 1, rolling};
    double held = how.lead * (timing->p - 1) + 1, slowest = fmax(work_of(&timing->t.inner, true), work_of(&timing->t.head, true));
    double passes = zero_bubble_bound(timing, &timing->t.head, (int)timing->p - 1, &how);
    passes = fmax(passes, zero_bubble_bound(timing, &timing->t.first, 0, &how));
    if (timing->t.last_full < timing->p - 1)
        passes = fmax(passes, zero_bubble_bound(timing, &timing->t.inner, timing->t.last_full, &how));
    if (timing->t.first_full < timing->t.last_full)
        passes = fmax(passes, zero_bubble_bound(timing, &timing->t.inner, timing->t.first_full, &how));
    double weights = timing->t.inner.s[PASS_BACKWARD_WEIGHT];
    double behind =
        circles_seconds(timing, PASS_BACKWARD_INPUT, timing->m, slowest, how.lead, timing->t.first.s[PASS_BACKWARD_WEIGHT]);
    behind = fmax(behind, fmax(0, timing->m - held) * fmax(0, timing->message - weights));
    double sent = sent_seconds(timing, 1) + timing->m * timing->t.inner.s[PASS_BACKWARD_INPUT] + work_of(&timing->t.first, true);
    return fmax(passes + behind, sent);
}

/* --- any */

static double seconds_of(const struct schedule_timing *timing, double slowest)
{
    switch (timing->layout->schedule) {
    case SCHEDULE_GPIPE: return gpipe_seconds(timing);
    case SCHEDULE_1F1B: return one_f_one_b_seconds(timing);
    case SCHEDULE_INTERLEAVED: return interleaved_seconds(timing, slowest);
    case SCHEDULE_ZB1P:
    case SCHEDULE_ZB2P: return zero_bubble_seconds(timing);
    case SCHEDULE_ZBV: return zero_bubble_v_seconds(timing, slowest);
    case SCHEDULE_DUALPIPE:
    case SCHEDULE_DUALPIPEV: return both_ways_seconds(timing);
    default: return timing->m * slowest;
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
static void add_all_pauses(struct schedule_timing *timing, double pause)
{
    int v = timing->layout->schedule == SCHEDULE_DUALPIPE ? 1 : timing->layout->vpp;
    add_pauses(&timing->t.inner, pause * timing->t.checkpoints[0]);
    add_pauses(&timing->t.head, pause * timing->t.checkpoints[1]);
    add_pauses(&timing->t.first, pause * timing->t.checkpoints[0]);
    add_pauses(&timing->t.sum, pause * timing->t.checkpoints[2]);
    add_pauses(&timing->t.layer, pause * timing->t.checkpoints[2] / timing->model->layers);
    add_pauses(&timing->t.chunk, pause * timing->t.checkpoints[0] / v);
    timing->pair += pause * timing->t.checkpoints[0];
}

struct schedule_time schedule_time_of(const struct layout *l, const struct setting *setting, const struct stage_times *stages,
                                      double pair, double m, double pause, double message)
{
    const struct transformer *model = setting->model;
    struct schedule_timing timing = {.layout = l, .model = model, .t = *stages, .m = m, .p = l->pp, .message = message};
    if (l->schedule == SCHEDULE_ZB2P)
        timing.shares_table = work_shares_table(l, model) && adapter_trains(setting->job, model, WHOLE_EMBEDDING);
    if (l->pp > 1 && l->schedule >= SCHEDULE_ZB1P)
        timing.first_layers = layout_layers(l, model, 0).count;
    struct schedule_time time = {.paired = schedule_paired(l, m),
                                 .layers = {model->layers / timing.p, model->layers / timing.p * stages->whole},
                                 .ends = m / timing.p};
    bool divided = schedule_divides(l->schedule), mirrored = l->schedule == SCHEDULE_DUALPIPE;
    time.alone = m - time.paired;
    timing.blocking = blocks(l);
    timing.pair = time.paired > 0 ? pair * stages->fullest : work_of(&stages->inner, divided);
    if (mirrored) /* two stages have both ends, each for half of the micro-batches */
        for (int pass = 0; pass < N_PASSES; pass++)
            timing.t.head.s[pass] = timing.t.first.s[pass] = (stages->head.s[pass] + stages->first.s[pass]) / 2;
    timing.pauses = m * pause * stages->checkpoints[0];
    if (pause > 0)
        add_all_pauses(&timing, pause);
    double inner = work_of(&timing.t.inner, divided), head = work_of(&timing.t.head, divided), slowest = fmax(inner, head);
    time.alone_s = time.ends * work_of(&stages->sum, divided) - time.paired * time.layers.n * work_of(&stages->layer, divided);
    time.pauses_s = m * pause * stages->checkpoints[2] / timing.p;
    time.messages_s = timing.blocking ? 2 * m * (l->vpp - 1 / timing.p) * message : 0; /* none over the ends of the model */
    double pairs = time.paired * pair * time.layers.n;
    time.total_s = l->pp > 1 ? seconds_of(&timing, slowest) : m * slowest;
    time.bubble_s = time.total_s - time.alone_s - pairs - time.pauses_s - time.messages_s;
    return time;
}
