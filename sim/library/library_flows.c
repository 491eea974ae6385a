/* library_flows.c - fabrics, and transfers that share their links. */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/fabric/flows.h"
#include "sim/fabric/route.h"
#include "sim/library/library_internal.h"

_Static_assert((int)MSIM_ECMP == ROUTING_ECMP && (int)MSIM_STATIC == ROUTING_STATIC && (int)MSIM_ADAPTIVE == ROUTING_ADAPTIVE &&
                   (int)MSIM_VALIANT == ROUTING_VALIANT,
               "routings have the same numbers");

struct msim_fabric {
    struct fabric fabric;
};

static enum msim_status fabric_done(struct library_call *call, enum status status, struct msim_fabric *handle,
                                    struct msim_fabric **fabric)
{
    *fabric = status == STATUS_OK ? handle : NULL;
    if (status != STATUS_OK)
        free(handle);
    return library_done(call, status);
}

enum msim_status msim_fabric_parse(const char *text, struct msim_messages *messages, struct msim_fabric **fabric)
{
    struct library_call call;
    struct msim_fabric *handle = memory_new(1, sizeof *handle);
    enum status status = fabric_parse(text, (struct place){.file = "fabric"}, &handle->fabric, library_begin(&call, messages));
    return fabric_done(&call, status, handle, fabric);
}

enum msim_status msim_fabric_of_experiment(const struct msim_experiment *experiment, struct msim_messages *messages,
                                           struct msim_fabric **fabric)
{
    struct library_call call;
    struct msim_fabric *handle = memory_new(1, sizeof *handle);
    enum status status = fabric_create(&experiment->experiment.cluster, &handle->fabric, library_begin(&call, messages));
    return fabric_done(&call, status, handle, fabric);
}

char *msim_fabric_text(const struct msim_fabric *fabric)
{
    return fabric_format(&fabric->fabric, memory_new(FABRIC_TEXT_MAX, 1), FABRIC_TEXT_MAX);
}

size_t msim_fabric_gpus(const struct msim_fabric *fabric)
{
    return (size_t)fabric->fabric.n_gpus;
}

size_t msim_fabric_links(const struct msim_fabric *fabric)
{
    return fabric_links(&fabric->fabric);
}

char *msim_fabric_link_name(const struct msim_fabric *fabric, size_t link, char *buffer, size_t size)
{
    if (link >= msim_fabric_links(fabric) || size == 0)
        return NULL;
    return fabric_link_name(&fabric->fabric, (uint32_t)link, buffer, size);
}

enum msim_status msim_fabric_set_speed(struct msim_fabric *fabric, size_t link, double speed)
{
    if (link >= msim_fabric_links(fabric) || !(speed >= 0 && speed <= 1))
        return MSIM_USAGE;
    fabric_set_speed(&fabric->fabric, (uint32_t)link, speed);
    return MSIM_OK;
}

void msim_fabric_destroy(struct msim_fabric *fabric)
{
    if (fabric)
        fabric_free(&fabric->fabric);
    free(fabric);
}

/* Transfer i of the caller is connection i of the solver: none is closed, so numbers are not given twice. */
struct msim_flows {
    struct fabric fabric; /* a copy, as it was at creation */
    struct router router;
    struct flows *flows;
    uint32_t *load; /* [links] transfers under way over each, for adaptive routing */
    struct path *paths;
    size_t n_transfers, capacity;
};

enum msim_status msim_flows_create(const struct msim_fabric *fabric, enum msim_routing routing, uint64_t seed,
                                   struct msim_messages *messages, struct msim_flows **flows)
{
    struct library_call call;
    struct diags *diags = library_begin(&call, messages);
    *flows = NULL;
    if ((unsigned)routing >= N_ROUTINGS) {
        diag_error(diags, PLACE_NONE, "unknown routing %d", (int)routing);
        return library_done(&call, STATUS_USAGE);
    }
    size_t n_links = msim_fabric_links(fabric);
    struct msim_flows *handle = memory_new(1, sizeof *handle);
    double *rates = memory_new(n_links, sizeof *rates);
    fabric_rates_now(&fabric->fabric, rates);
    fabric_copy(&fabric->fabric, &handle->fabric);
    handle->flows = flows_create(rates, n_links);
    handle->load = memory_new(n_links, sizeof *handle->load);
    handle->router = (struct router){
        .fabric = &handle->fabric,
        .routing = (enum routing)routing,
        .rail_aware = true,
        .seed = seed,
        .load = handle->load,
    };
    free(rates);
    *flows = handle;
    return library_done(&call, STATUS_OK);
}

/* Why a transfer cannot begin; STATUS_OK: it can. */
static enum status transfer_check(const struct msim_flows *flows, size_t from, size_t to, double bytes, struct diags *diags)
{
    size_t gpus = (size_t)flows->fabric.n_gpus;
    if (from >= gpus || to >= gpus)
        diag_error(diags, PLACE_NONE, "a transfer from GPU %zu to GPU %zu: the fabric has GPUs 0 to %zu", from, to, gpus - 1);
    else if (!(bytes >= 0 && bytes <= 1e18))
        diag_error(diags, PLACE_NONE, "a transfer of %g bytes; it must have from 0 to 1e18", bytes);
    else if (flows->n_transfers >= NO_FLOW)
        diag_error(diags, PLACE_NONE, "more than %zu transfers", flows->n_transfers);
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

static void count_load(struct msim_flows *flows, const struct path *path, int change)
{
    for (int hop = 0; hop < path->n; hop++)
        flows->load[path->links[hop]] += (uint32_t)change;
}

enum msim_status msim_flows_send(struct msim_flows *flows, size_t from_gpu, size_t to_gpu, double bytes,
                                 struct msim_messages *messages, size_t *id)
{
    struct library_call call;
    struct diags *diags = library_begin(&call, messages);
    struct path path;
    enum status status = transfer_check(flows, from_gpu, to_gpu, bytes, diags);
    if (status != STATUS_OK)
        return library_done(&call, status);
    if (!route_gpus(&flows->router, (int)from_gpu, (int)to_gpu, 0, &path)) {
        diag_error(diags, PLACE_NONE, "no path%s leads from GPU %zu to GPU %zu", route_limit_text(&flows->fabric), from_gpu,
                   to_gpu);
        return library_done(&call, STATUS_BAD_INPUT);
    }
    count_load(flows, &path, 1);
    flows->paths = memory_grow(flows->paths, &flows->capacity, flows->n_transfers + 1, sizeof *flows->paths);
    flows->paths[flows->n_transfers] = path;
    uint32_t flow = flows_open(flows->flows, path.links, path.n, 1, flows->n_transfers);
    flows_send(flows->flows, flow, bytes);
    *id = flows->n_transfers++;
    return library_done(&call, STATUS_OK);
}

double msim_flows_rate(struct msim_flows *flows, size_t id)
{
    return id < flows->n_transfers ? flows_rate(flows->flows, (uint32_t)id) : 0;
}

int64_t msim_flows_now_ns(const struct msim_flows *flows)
{
    return flows_now(flows->flows);
}

int msim_flows_next(struct msim_flows *flows, size_t *id)
{
    uint32_t ended = flows_take(flows->flows); /* several may end at once */
    if (ended == NO_FLOW) {
        nanos next = flows_next(flows->flows);
        if (next == NEVER_ENDS)
            return 0;
        flows_advance(flows->flows, next);
        ended = flows_take(flows->flows);
    }
    if (ended == NO_FLOW)
        return 0;
    count_load(flows, &flows->paths[ended], -1);
    *id = ended;
    return 1;
}

enum msim_status msim_flows_advance(struct msim_flows *flows, int64_t time_ns)
{
    if (time_ns < flows_now(flows->flows) || time_ns > flows_next(flows->flows))
        return MSIM_USAGE;
    flows_advance(flows->flows, time_ns);
    return MSIM_OK;
}

double msim_flows_link_load(struct msim_flows *flows, size_t link)
{
    return link < fabric_links(&flows->fabric) ? flows_load(flows->flows, (uint32_t)link) : 0;
}

void msim_flows_destroy(struct msim_flows *flows)
{
    if (!flows)
        return;
    flows_destroy(flows->flows);
    fabric_free(&flows->fabric);
    free(flows->paths);
    free(flows->load);
    free(flows);
}
