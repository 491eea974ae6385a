#include "oracle.h"

enum state { TRAINING, WRITING, STOPPED };

struct oracle {
    const struct run_options *options;
    const struct fault_trace *trace;
    struct oracle_answer answer;
    enum state state;
    int64_t work;    /* since the safe state, in parts of a nanosecond */
    int64_t elapsed; /* nanoseconds that it took */
    int64_t written; /* nanoseconds of the checkpoint being written */
    int64_t noticed, resumes;
    bool ready;
};

/* Nodes that some outage holds down at t: of those that began before `began` (an index in the trace), and, when `empty`, outages
 * of no length of this instant too. */
static int nodes_down(const struct oracle *oracle, int64_t t, size_t began, bool empty)
{
    int down = 0;
    for (int node = 0; node < oracle->options->nodes; node++) {
        bool is_down = false;
        for (size_t i = 0; i < began; i++) {
            const struct fault *fault = &oracle->trace->items[i];
            if (fault->kind == FAULT_NODE && fault->node == node && fault->time <= t &&
                (t < fault->time + fault->down || (empty && fault->down == 0 && fault->time == t)))
                is_down = true;
        }
        down += is_down;
    }
    return down;
}

static int64_t speed_at(const struct oracle *oracle, int64_t t)
{
    int64_t speed = FULL_SPEED;
    for (size_t i = 0; i < oracle->trace->n_items; i++) {
        const struct fault *fault = &oracle->trace->items[i];
        if (fault->kind != FAULT_NODE && fault->time <= t && t < fault->time + fault->down && fault->speed < speed)
            speed = fault->speed;
    }
    return speed;
}

static void look_whether_ready(struct oracle *oracle, int64_t t, int down)
{
    if (oracle->state != STOPPED)
        return;
    if (!oracle->ready && t >= oracle->noticed && down <= oracle->options->recovery.spares) {
        oracle->ready = true;
        oracle->resumes = t + oracle->options->recovery.restart;
    }
    if (oracle->ready && oracle->resumes == t)
        oracle->state = TRAINING;
}

static void fail(struct oracle *oracle, int64_t t)
{
    if (oracle->state != STOPPED) {
        oracle->answer.interruptions++;
        oracle->answer.lost += oracle->elapsed;
        oracle->work = oracle->elapsed = oracle->written = 0;
    }
    oracle->state = STOPPED;
    oracle->noticed = t + oracle->options->recovery.detect;
    oracle->ready = false;
}

/* What happens at the instant t, in the order of the rules. */
static void instant(struct oracle *oracle, int64_t t)
{
    const struct fault_trace *trace = oracle->trace;
    size_t before = 0;
    while (before < trace->n_items && trace->items[before].time < t)
        before++;
    look_whether_ready(oracle, t, nodes_down(oracle, t, before, true));
    size_t next = before;
    for (; next < trace->n_items && trace->items[next].time == t; next++) {
        if (trace->items[next].kind != FAULT_NODE)
            continue;
        fail(oracle, t);
        look_whether_ready(oracle, t, nodes_down(oracle, t, next + 1, true));
    }
    look_whether_ready(oracle, t, nodes_down(oracle, t, next, false));
}

static void become_safe(struct oracle *oracle)
{
    oracle->answer.training += oracle->work / FULL_SPEED;
    oracle->answer.slow += oracle->elapsed - oracle->work / FULL_SPEED;
    oracle->answer.checkpoints++;
    oracle->work = oracle->elapsed = oracle->written = 0;
    oracle->state = TRAINING;
}

/* The nanosecond after t. */
static void pass(struct oracle *oracle, int64_t t)
{
    const struct checkpoint_policy *policy = &oracle->options->checkpoint;
    if (oracle->state == STOPPED) {
        oracle->answer.idle++;
    } else if (oracle->state == WRITING) {
        oracle->answer.checkpoint++;
        if (++oracle->written == policy->block)
            become_safe(oracle);
    } else {
        oracle->elapsed++;
        oracle->work += speed_at(oracle, t);
        if (oracle->work < policy->interval * FULL_SPEED)
            return;
        oracle->work = policy->interval * FULL_SPEED;
        oracle->state = WRITING;
        if (policy->block == 0)
            become_safe(oracle);
    }
}

struct oracle_answer oracle_replay(const struct run_options *options, const struct fault_trace *trace)
{
    struct oracle oracle = {.options = options, .trace = trace};
    for (int64_t t = 0; t < options->horizon; t++) {
        instant(&oracle, t);
        pass(&oracle, t);
    }
    oracle.answer.training += oracle.work / FULL_SPEED;
    oracle.answer.slow += oracle.elapsed - oracle.work / FULL_SPEED;
    return oracle.answer;
}
