#include "sim/faults/faults.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <string.h>

#include "model/base/random.h"

enum purpose {
    PURPOSE_LEMON = 1,
    PURPOSE_ARRIVAL,
    PURPOSE_CAUSE,
    PURPOSE_REPAIR,
    PURPOSE_EARLY,
    PURPOSE_BURST,
    PURPOSE_GROUP,
    PURPOSE_SLOW,
    PURPOSE_POISSON,
    PURPOSE_REPLICA,
};

/* A century in seconds: no trace reaches beyond it. */
#define FAR_S 3.2e9

uint64_t faults_replica_seed(uint64_t seed, uint64_t replica)
{
    return random_stream_named(seed, PURPOSE_REPLICA, replica).key;
}

/* --- the life of one kind of node --- */

enum { BOUNDS = 256 };

struct life {
    double scale_s, shape;
    double bound[BOUNDS]; /* [i]: a length-biased quantile above which a residual life with U in bin i is beyond the horizon */
};

static struct life life_of(double rate, double shape, double end_s)
{
    struct life life = {.scale_s = 86400 / rate / gsl_sf_gamma(1 + 1 / shape), .shape = shape};
    for (int i = 0; i < BOUNDS; i++) {
        double u = (double)i / BOUNDS;
        life.bound[i] = u > 0 ? gsl_cdf_gamma_P(pow((end_s + 1) / (u * life.scale_s), shape), 1 + 1 / shape, 1) : 1;
    }
    return life;
}

/* Seconds until a node first fails, from an arbitrary moment of its life; FAR_S: beyond the horizon. */
static double residual_life_s(const struct life *life, struct random_stream *random)
{
    double quantile = random_uniform(random), u = random_uniform(random);
    if (quantile > life->bound[(int)(u * BOUNDS)] + 1e-12)
        return FAR_S;
    return life->scale_s * pow(gsl_cdf_gamma_Pinv(quantile, 1 + 1 / life->shape, 1), 1 / life->shape) * u;
}

/* --- causes and repairs --- */

static double total_weight(const struct fault_model *model)
{
    double total = 0;
    for (int i = 0; i < model->causes.n; i++)
        total += model->causes.items[i].weight;
    return total;
}

static const struct fault_cause *draw_cause(const struct fault_model *model, struct random_stream *random)
{
    double left = random_uniform(random) * total_weight(model);
    int i = 0;
    while (i + 1 < model->causes.n && left >= model->causes.items[i].weight)
        left -= model->causes.items[i++].weight;
    return &model->causes.items[i];
}

static double lognormal_s(struct repair_time repair, double u)
{
    double seconds = repair.sigma > 0 ? 3600 * gsl_cdf_lognormal_Pinv(u, repair.mu, repair.sigma) : 3600 * exp(repair.mu);
    return ceil(fmin(seconds, FAR_S));
}

static double draw_repair_s(const struct fault_model *model, int kind, struct random_stream *random)
{
    double u = random_uniform(random);
    return kind == REPAIR_NONE ? 0 : lognormal_s(model->repairs[kind], u);
}

static void add_outage(struct fault_trace *trace, enum fault_kind kind, int32_t node, double time_s, double down_s,
                       const char *cause)
{
    struct fault fault = {
        .time = (nanos)time_s * NANOS_PER_SECOND,
        .down = (nanos)down_s * NANOS_PER_SECOND,
        .node = node,
        .speed = FULL_SPEED,
        .kind = kind,
    };
    fault_trace_add(trace, fault, cause);
}

/* --- one node --- */

struct generation {
    const struct fault_model *model;
    struct life ordinary, lemon;
    double end_s;
    uint64_t seed;
    struct fault_trace *trace;
};

static const struct life *life_of_node(const struct generation *g, int32_t node)
{
    struct random_stream random = random_stream_named(g->seed, PURPOSE_LEMON, (uint64_t)node);
    return random_uniform(&random) < g->model->lemon_share ? &g->lemon : &g->ordinary;
}

struct node_streams {
    struct random_stream arrivals, causes, repairs, bursts;
};

/* One failure and the burst that may follow it. Returns when the node is back after the last of them. */
static double fail_node(const struct generation *g, int32_t node, double time_s, struct node_streams *random)
{
    const struct fault_model *model = g->model;
    for (;;) {
        const struct fault_cause *cause = draw_cause(model, &random->causes);
        double down_s = draw_repair_s(model, cause->repair, &random->repairs);
        add_outage(g->trace, FAULT_NODE, node, time_s, down_s, cause->name);
        time_s += down_s;
        if (model->burst_probability <= 0 || random_uniform(&random->bursts) >= model->burst_probability)
            return time_s;
        double next_s = time_s + ceil(-3600 * model->burst_hours * log(random_uniform(&random->bursts)));
        if (next_s >= g->end_s)
            return next_s;
        time_s = next_s;
    }
}

static void generate_node(const struct generation *g, int32_t node)
{
    const struct life *life = life_of_node(g, node);
    struct node_streams random = {.arrivals = random_stream_named(g->seed, PURPOSE_ARRIVAL, (uint64_t)node)};
    double time_s = floor(residual_life_s(life, &random.arrivals));
    if (time_s >= g->end_s)
        return;
    random.causes = random_stream_named(g->seed, PURPOSE_CAUSE, (uint64_t)node);
    random.repairs = random_stream_named(g->seed, PURPOSE_REPAIR, (uint64_t)node);
    random.bursts = random_stream_named(g->seed, PURPOSE_BURST, (uint64_t)node);
    while (time_s < g->end_s) {
        time_s = fail_node(g, node, time_s, &random);
        time_s += ceil(fmin(FAR_S, gsl_cdf_weibull_Pinv(random_uniform(&random.arrivals), life->scale_s, life->shape)));
    }
}

static void generate_early(const struct generation *g, int32_t nodes)
{
    const struct fault_model *model = g->model;
    for (int32_t node = 0; node < nodes && model->early_share > 0; node++) {
        struct random_stream random = random_stream_named(g->seed, PURPOSE_EARLY, (uint64_t)node);
        if (random_uniform(&random) >= model->early_share)
            continue;
        double time_s = floor(-86400 * model->early_days * log(random_uniform(&random)));
        const struct fault_cause *cause = draw_cause(model, &random);
        double down_s = draw_repair_s(model, cause->repair, &random);
        if (time_s < g->end_s)
            add_outage(g->trace, FAULT_NODE, node, time_s, down_s, cause->name);
    }
}

/* --- groups of nodes, slow nodes and links --- */

static void hit_group(const struct generation *g, const struct fault_group *group, int32_t first, int32_t end, double time_s,
                      struct random_stream *random)
{
    double down_s = lognormal_s(group->repair, random_uniform(random));
    for (int32_t node = first; node < end; node++)
        if (random_uniform(random) < group->share)
            add_outage(g->trace, group->planned ? FAULT_PLANNED : FAULT_NODE, node, time_s, down_s, group->name);
}

static void generate_groups(const struct generation *g, int kind, int32_t nodes)
{
    const struct fault_group *group = &g->model->groups.items[kind];
    for (int32_t first = 0; first < nodes && group->rate > 0; first += group->nodes) {
        uint64_t entity = (uint64_t)kind << 32 | (uint64_t)(first / group->nodes);
        struct random_stream random = random_stream_named(g->seed, PURPOSE_GROUP, entity);
        int32_t end = nodes - first < group->nodes ? nodes : first + group->nodes;
        double time_s = 0;
        while ((time_s += -86400 / group->rate * log(random_uniform(&random))) < g->end_s)
            hit_group(g, group, first, end, floor(time_s), &random);
    }
}

/* Durations of slow nodes and links are in milliseconds, because flaps last seconds. */
static nanos slow_duration(const struct fault_slow *slow, double u)
{
    double seconds = slow->sigma > 0 ? gsl_cdf_lognormal_Pinv(u, log(slow->median_s), slow->sigma) : slow->median_s;
    return (nanos)ceil(fmin(seconds, FAR_S) * 1e3) * 1000000;
}

static void add_slow(const struct generation *g, const struct fault_slow *slow, int32_t node, double time_s, nanos duration)
{
    struct fault fault = {
        .time = (nanos)time_s * NANOS_PER_SECOND,
        .down = duration,
        .node = node,
        .speed = (int32_t)lround(slow->factor * FULL_SPEED),
        .kind = slow->kind == SLOW_LINK ? FAULT_LINK : FAULT_STRAGGLER,
    };
    fault_trace_add(g->trace, fault, slow->name);
}

static void generate_slow(const struct generation *g, int kind, int32_t nodes)
{
    const struct fault_slow *slow = &g->model->slow.items[kind];
    for (int32_t node = 0; node < nodes; node++) {
        struct random_stream random = random_stream_named(g->seed, PURPOSE_SLOW, (uint64_t)kind << 32 | (uint64_t)node);
        if (random_uniform(&random) < slow->share)
            add_slow(g, slow, node, 0, (nanos)ceil(g->end_s) * NANOS_PER_SECOND);
        double time_s = 0;
        while (slow->rate > 0 && (time_s += -86400 / slow->rate * log(random_uniform(&random))) < g->end_s)
            add_slow(g, slow, node, floor(time_s), slow_duration(slow, random_uniform(&random)));
    }
}

void faults_generate(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed, struct fault_trace *trace)
{
    double end_s = nanos_to_seconds(horizon), ordinary = model->rate / (1 + model->lemon_share * (model->lemon_factor - 1));
    struct generation g = {
        .model = model,
        .ordinary = life_of(ordinary, model->shape, end_s),
        .lemon = life_of(ordinary * model->lemon_factor, model->shape, end_s),
        .end_s = end_s,
        .seed = seed,
        .trace = trace,
    };
    *trace = (struct fault_trace){0};
    for (int32_t node = 0; node < nodes; node++)
        generate_node(&g, node);
    generate_early(&g, nodes);
    for (int i = 0; i < model->groups.n; i++)
        generate_groups(&g, i, nodes);
    for (int i = 0; i < model->slow.n; i++)
        generate_slow(&g, i, nodes);
    fault_trace_sort(trace);
}

void faults_generate_poisson(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed,
                             struct fault_trace *trace)
{
    double mean_s = 86400 / (model->rate * nodes), end_s = nanos_to_seconds(horizon), time_s = 0;
    struct random_stream random = random_stream_named(seed, PURPOSE_POISSON, 0);
    *trace = (struct fault_trace){0};
    while ((time_s += -mean_s * log(random_uniform(&random))) < end_s) {
        const struct fault_cause *cause = draw_cause(model, &random);
        double down_s = draw_repair_s(model, cause->repair, &random);
        int32_t node = (int32_t)random_below(&random, (uint64_t)nodes);
        struct fault fault = {.time = nanos_from_seconds(time_s), .node = node, .speed = FULL_SPEED, .kind = FAULT_NODE};
        fault.down = (nanos)down_s * NANOS_PER_SECOND;
        if (fault.time < horizon)
            fault_trace_add(trace, fault, cause->name);
    }
    fault_trace_sort(trace);
}
