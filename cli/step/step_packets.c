#include "cli/step/step_packets.h"

#include <math.h>

#include "sim/network/network_packets.h"

enum status step_packets_load(struct invocation *call, const struct fabric *fabric, double fraction, struct step_packets *packets)
{
    packets->wanted = true;
    if (option_given(call, "flap")) {
        diag_error(&call->diags, PLACE_NONE,
                   "--flap: --network packet does not support links that change during the step; use --network flow");
        return STATUS_USAGE;
    }
    enum status status = fabric_packets_parameters(call, &packets->options.with);
    if (status != STATUS_OK)
        return status;
    packets->options.with.seed = call->seed;
    return network_packets_create(fabric, fraction, &packets->options, &packets->options.made, &call->diags);
}

void step_packets_free(struct step_packets *packets)
{
    network_packets_destroy(packets->options.made);
    packets->options.made = NULL;
}

/* Bytes on links that are not NVLink are packets; what arrives over NIC ports is all there is to send. */
void step_packets_measure(struct step_packets *packets, const struct fabric *fabric, const struct link_usage *usage,
                          double seconds)
{
    packets->fair_s = seconds;
    for (uint32_t l = fabric->first[LAYER_GPU_OUT]; l < fabric_links(fabric); l++)
        packets->hops += ceil(usage[l].carried / packets->options.with.packet_bytes);
    for (uint32_t l = fabric->first[LAYER_NIC_DOWN]; l < fabric->first[LAYER_NIC_DOWN + 1]; l++)
        packets->options.total += usage[l].carried;
}

enum status step_packets_check(struct invocation *call, const struct step_packets *packets)
{
    char some[40], most[40];
    if (packets->hops <= STEP_HOPS_MAX)
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE,
               "the step sends about %s packets over links, but msim simulates at most %s; use fewer GPUs, larger packets "
               "(--mtu), or --network flow",
               quantity_format(packets->hops, DIM_COUNT, some, sizeof some),
               quantity_format(STEP_HOPS_MAX, DIM_COUNT, most, sizeof most));
    return STATUS_BAD_INPUT;
}

void step_packets_see(struct step_packets *packets, const struct fabric *fabric, const struct packets *seen, double seconds)
{
    struct packets_totals totals = packets_totals(seen);
    struct packets_summary *s = &packets->seen;

    *s = (struct packets_summary){.with = packets->options.with,
                                  .seconds = seconds,
                                  .marks = (double)totals.marks,
                                  .cnps = (double)totals.cnps,
                                  .pauses = (double)totals.pauses,
                                  .paused_s = nanos_to_seconds(totals.paused),
                                  .paused_links = totals.paused_links,
                                  .fullest = totals.fullest,
                                  .packets = (double)totals.packets,
                                  .hops = (double)totals.hops,
                                  .events = (double)totals.events,
                                  .repeats = 1};
    worst_links_find(fabric, seen, seconds, &s->worst);
}

void step_packets_write(const struct invocation *call, const struct fabric *fabric, const struct step_packets *packets)
{
    char fair[32];

    fprintf(call->out, "by fair flows the step takes %s, packet by packet %+.2f %%\n",
            quantity_format(packets->fair_s, DIM_TIME, fair, sizeof fair), 100 * (packets->seen.seconds / packets->fair_s - 1));
    packets_totals_write(call, fabric, &packets->seen);
    worst_links_write(call, fabric, &packets->seen.worst, "");
}

struct packets_of_step {
    const struct invocation *call;
    const struct fabric *fabric;
    double fair_s;
    const struct packets_summary *seen;
};

#define PACKET_ROWS(ROW)                                                                                                         \
    ROW(packets_of_step, parameters, as_json(packets_parameters_json(&s->seen->with)), "", JSON,                                 \
        "options of packets, in effect")                                                                                         \
    ROW(packets_of_step, flow_step_time_s, as_real(s->fair_s), "s", JSON, "time of the step with fair flows")                    \
    ROW(packets_of_step, packets, as_real(s->seen->packets), "", JSON, "packets sent")                                           \
    ROW(packets_of_step, packet_hops, as_real(s->seen->hops), "", JSON, "packets times links")                                   \
    ROW(packets_of_step, events, as_real(s->seen->events), "", JSON, "events simulated")                                         \
    ROW(packets_of_step, marks, as_real(s->seen->marks), "", JSON, "packets marked")                                             \
    ROW(packets_of_step, cnps, as_real(s->seen->cnps), "", JSON, "notifications to senders")                                     \
    ROW(packets_of_step, pauses, as_real(s->seen->pauses), "", JSON, "PFC pauses")                                               \
    ROW(packets_of_step, paused_s, as_real(s->seen->paused_s), "s", JSON, "time that links were paused, summed")                 \
    ROW(packets_of_step, paused_links, as_real(s->seen->paused_links), "", JSON, "links that were paused")                       \
    ROW(packets_of_step, fullest_buffer, as_real(s->seen->fullest), "", JSON, "highest use of a buffer, as a fraction")          \
    ROW(packets_of_step, assumed, as_json(packets_assumed_json(s->call, s->fabric)), "", JSON, "options without published value")
RESULT_ROWS(step_packet_rows, PACKET_ROWS)

json_t *step_packets_json(const struct invocation *call, const struct fabric *fabric, const struct step_packets *packets)
{
    json_t *object = rows_object(step_packet_rows, &(struct packets_of_step){call, fabric, packets->fair_s, &packets->seen});
    worst_links_json(fabric, &packets->seen.worst, object);
    return object;
}
