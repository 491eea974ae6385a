#include "sim/fabric/load.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/base/random.h"
#include "sim/fabric/load_packets.h"

enum { PURPOSE_PERMUTATION = 0x706d, PURPOSE_JITTER = 0x6a74 };

const char *load_pattern_name(enum load_pattern pattern)
{
    static const char *const names[N_LOAD_PATTERNS] = {"permutation", "ring", "shift", "incast", "all_to_all"};
    return names[pattern];
}

/* ---- who sends to whom */

/* Fisher-Yates, then fixed points are exchanged with their neighbour. */
static void permutation_fill(int *to, int n, uint64_t seed)
{
    struct random_stream stream = random_stream_named(seed, PURPOSE_PERMUTATION, 0);

    for (int i = 0; i < n; i++)
        to[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)random_below(&stream, (uint64_t)i + 1), keep = to[i];
        to[i] = to[j];
        to[j] = keep;
    }
    for (int i = 0; i < n && n > 1; i++) {
        int j = (i + 1) % n, keep = to[i];
        if (to[i] != i)
            continue;
        to[i] = to[j];
        to[j] = keep;
    }
}

struct pairs {
    enum load_pattern pattern;
    int n;
    int *to; /* of a permutation */
    int stride;
    size_t count;
};

static struct pairs pairs_of(const struct load *load, int n)
{
    struct pairs pairs = {.pattern = load->pattern, .n = n, .stride = (n + 1) / 2, .count = (size_t)n};

    if (load->pattern == LOAD_PERMUTATION) {
        pairs.to = memory_new((size_t)n, sizeof *pairs.to);
        permutation_fill(pairs.to, n, load->seed);
    }
    if (load->stride > 0)
        pairs.stride = load->stride % n;
    if (load->senders > 0 && load->senders < n)
        pairs.count = (size_t)load->senders;
    if (load->pattern == LOAD_INCAST)
        pairs.count = (size_t)n - 1;
    if (load->pattern == LOAD_ALL_TO_ALL)
        pairs.count = (size_t)n * (size_t)(n - 1);
    return pairs;
}

static void pair_get(const struct pairs *pairs, size_t i, int *from, int *to)
{
    int n = pairs->n;

    *from = (int)(i % (size_t)n);
    switch (pairs->pattern) {
    case LOAD_PERMUTATION: *to = pairs->to[i]; break;
    case LOAD_RING: *to = (*from + 1) % n; break;
    case LOAD_SHIFT: *to = (*from + pairs->stride) % n; break;
    case LOAD_INCAST:
        *from = (int)i + 1;
        *to = 0;
        break;
    default: *to = (*from + 1 + (int)(i / (size_t)n)) % n;
    }
}

/* ---- the run */

struct run {
    const struct load *load;
    struct router router;
    struct pairs pairs;
    struct flows *flows;
    struct packets *packets; /* NULL: flows alone */
    uint32_t *loads;
    int queue_pairs;
    double *sizes; /* [pairs] bytes of each transfer of a connection */
    double hops;   /* of packets */
};

static enum status too_many(const struct run *run, struct diags *diags)
{
    char some[40], most[40];
    diag_error(diags, PLACE_NONE,
               "about %s packets over links are too many; msim simulates at most %s. Send less, use larger packets, or simulate "
               "flows only",
               quantity_format(run->hops, DIM_COUNT, some, sizeof some),
               quantity_format(LOAD_HOPS_MAX, DIM_COUNT, most, sizeof most));
    return STATUS_BAD_INPUT;
}

static enum status transfers_open(struct run *run, struct diags *diags)
{
    const struct load *load = run->load;
    double bytes = load->bytes / (load->pattern == LOAD_ALL_TO_ALL ? run->pairs.n - 1 : 1);
    int from, to;

    for (size_t i = 0; i < run->pairs.count; i++) {
        struct random_stream jitter = random_stream_named(load->seed, PURPOSE_JITTER, i);
        double size = load->jitter > 0 ? bytes * (1 + load->jitter * random_uniform(&jitter)) : bytes;
        pair_get(&run->pairs, i, &from, &to);
        run->sizes[i] = size / run->queue_pairs;
        for (int q = 0; q < run->queue_pairs; q++) {
            struct path path;
            if (!route_gpus(&run->router, from, to, (uint32_t)q, &path)) {
                diag_error(diags, PLACE_NONE, "there is no path%s from GPU %d to GPU %d%s", route_limit_text(run->router.fabric),
                           from, to, run->router.fabric->n_down > 0 ? " around the failed links" : "");
                return STATUS_BAD_INPUT;
            }
            for (int h = 0; h < path.n && run->loads != NULL; h++)
                run->loads[path.links[h]]++;
            uint32_t flow = flows_open(run->flows, path.links, path.n, 1, i);
            flows_send(run->flows, flow, run->sizes[i]);
            if (run->packets == NULL)
                continue;
            packets_open(run->packets, path.links, path.n, i);
            run->hops += ceil(run->sizes[i] / load->packets->packet_bytes) * path.n;
        }
    }
    return run->hops > LOAD_HOPS_MAX ? too_many(run, diags) : STATUS_OK;
}

/* Which connections stay inside their NVLink domain; none, where all do. */
static bool *inside_of(const struct run *run, size_t *count)
{
    int domain = run->router.fabric->shape.nvlink_domain, from, to;
    bool *inside = memory_new(run->pairs.count, sizeof *inside);

    *count = 0;
    for (size_t i = 0; i < run->pairs.count; i++) {
        pair_get(&run->pairs, i, &from, &to);
        inside[i] = domain > 1 && from / domain == to / domain;
        *count += inside[i];
    }
    for (size_t i = 0; i < run->pairs.count && *count == run->pairs.count; i++)
        inside[i] = false;
    *count %= run->pairs.count > 0 ? run->pairs.count : 1;
    return inside;
}

static void flows_run(struct run *run, struct load_result *result)
{
    nanos time;

    for (size_t f = 0; f < result->n_transfers; f++)
        result->rates[flows_payload(run->flows, (uint32_t)f)] += flows_rate(run->flows, (uint32_t)f);
    while ((time = flows_next(run->flows)) != NEVER_ENDS) {
        flows_advance(run->flows, time);
        for (uint32_t flow; (flow = flows_take(run->flows)) != NO_FLOW;)
            result->ends[flows_payload(run->flows, flow)] = (double)time / (double)NANOS_PER_SECOND;
    }
    result->counts = flows_counts(run->flows);
}

static void result_sort(struct load_result *result, const bool *inside, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!inside[i])
            result->rates[kept++] = result->rates[i];
    qsort(result->rates, kept, sizeof *result->rates, double_compare);
    qsort(result->ends, n, sizeof *result->ends, double_compare);
    result->seconds = n > 0 ? result->ends[n - 1] : 0;
}

/* Of GPUs with a connection that is counted; `sending`: as its sender, or else as its receiver. */
static struct load_sums sums_of(const struct run *run, const double *rates, const bool *inside, bool sending)
{
    size_t n = (size_t)run->pairs.n;
    struct load_sums sums = {.rates = memory_new(n, sizeof *sums.rates)};
    bool *any = memory_new(n, sizeof *any);
    int from, to;

    for (size_t i = 0; i < run->pairs.count; i++) {
        pair_get(&run->pairs, i, &from, &to);
        if (inside[i])
            continue;
        sums.rates[sending ? from : to] += rates[i];
        any[sending ? from : to] = true;
    }
    for (size_t g = 0; g < n; g++)
        if (any[g])
            sums.rates[sums.n++] = sums.rates[g];
    qsort(sums.rates, sums.n, sizeof *sums.rates, double_compare);
    free(any);
    return sums;
}

static enum status transfers_run(struct run *run, struct load_result *result, struct diags *diags)
{
    size_t n = run->pairs.count;
    enum status status = STATUS_OK;
    bool *inside = inside_of(run, &result->n_inside);

    result->n_connections = n - result->n_inside;
    result->rates = memory_new(n, sizeof *result->rates);
    result->ends = memory_new(n, sizeof *result->ends);
    flows_run(run, result);
    double *achieved = run->packets != NULL ? memory_new(n, sizeof *achieved) : NULL;
    if (run->packets != NULL) {
        struct load_fair fair = {.n = n,
                                 .per = (size_t)run->queue_pairs,
                                 .sizes = run->sizes,
                                 .rates = result->rates,
                                 .ends = result->ends,
                                 .inside = inside,
                                 .achieved = achieved};
        status = load_packets_run(run->packets, run->load, &fair, &result->packets, diags);
        run->packets = NULL;
    }
    result->sent = sums_of(run, achieved ? achieved : result->rates, inside, true);
    result->received = sums_of(run, achieved ? achieved : result->rates, inside, false);
    result_sort(result, inside, n);
    free(achieved);
    free(inside);
    return status;
}

static struct flows *flows_of(const struct fabric *fabric, size_t n_transfers)
{
    double *rates = memory_new(fabric_links(fabric), sizeof *rates);

    fabric_rates_now(fabric, rates);
    struct flows *flows = flows_create(rates, fabric_links(fabric));
    flows_reserve(flows, n_transfers, n_transfers * 6);
    free(rates);
    return flows;
}

static enum status load_check(const struct fabric *fabric, const struct load *load, int n, double transfers, struct diags *diags)
{
    if (n < 2 || n > fabric->n_gpus)
        diag_error(diags, PLACE_NONE, "a load between %d GPUs is impossible; use at least 2, and at most the %d of the fabric", n,
                   fabric->n_gpus);
    else if (transfers > LOAD_TRANSFERS_MAX)
        diag_error(diags, PLACE_NONE, "%.0f transfers are too many; at most %d. Use fewer GPUs or queue pairs", transfers,
                   LOAD_TRANSFERS_MAX);
    else if (!(load->bytes > 0 && load->bytes <= LOAD_BYTES_MAX) || load->jitter < 0)
        diag_error(diags, PLACE_NONE, "the size of a load must be above 0 and at most %.0f B", LOAD_BYTES_MAX);
    else if (load->pattern == LOAD_SHIFT && load->stride > 0 && load->stride % n == 0)
        diag_error(diags, PLACE_NONE, "a shift by %d among %d GPUs sends from each GPU to itself; change --stride", load->stride,
                   n);
    else
        return STATUS_OK;
    return STATUS_BAD_INPUT;
}

enum status load_run(const struct router *router, const struct load *load, struct load_result *result, struct diags *diags)
{
    const struct fabric *fabric = router->fabric;
    const struct fabric_shape *s = &fabric->shape;
    int n = load->gpus > 0 ? load->gpus : fabric->n_gpus,
        queue_pairs = (load->queue_pairs > 0 ? load->queue_pairs : 1) * fabric_gpu_ports(fabric);
    double transfers = (load->pattern == LOAD_ALL_TO_ALL ? (double)n * (n - 1) : n) * queue_pairs;
    enum status status = load_check(fabric, load, n, transfers, diags);

    if (status != STATUS_OK)
        return status;
    struct run run = {.load = load, .router = *router, .pairs = pairs_of(load, n), .queue_pairs = queue_pairs};
    struct load_result out = {.n_connections = run.pairs.count, .n_transfers = run.pairs.count * (size_t)queue_pairs};
    if (router->routing == ROUTING_ADAPTIVE)
        run.loads = memory_new(fabric_links(fabric), sizeof *run.loads);
    run.router.load = run.loads;
    run.sizes = memory_new(run.pairs.count, sizeof *run.sizes);
    out.flows = run.flows = flows_of(fabric, out.n_transfers);
    out.demand = s->nic_rate * s->nics_per_host / s->gpus_per_host;
    if (load->packets != NULL) {
        struct packets_parameters with = *load->packets;
        with.seed = load->seed;
        status = packets_create(fabric, &with, &run.packets, diags);
    }
    if (status == STATUS_OK)
        status = transfers_open(&run, diags);
    if (status == STATUS_OK)
        status = transfers_run(&run, &out, diags);
    if (status == STATUS_OK)
        *result = out;
    else
        load_result_free(&out);
    packets_destroy(run.packets);
    free(run.sizes);
    free(run.loads);
    free(run.pairs.to);
    return status;
}

void load_result_free(struct load_result *result)
{
    free(result->rates);
    free(result->ends);
    free(result->sent.rates);
    free(result->received.rates);
    flows_destroy(result->flows);
    load_packets_free(&result->packets);
    *result = (struct load_result){0};
}

double load_quantile(const double *values, size_t n, double q)
{
    if (n == 0)
        return 0;
    size_t at = (size_t)(q * (double)(n - 1) + 0.5);
    return values[at < n ? at : n - 1];
}
