#include "sim/fabric/load_packets.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"

struct packet_run {
    struct packets *packets;
    const struct load *load;
    const struct load_fair *fair;
    struct load_packets *out;
    double *before,
        *after; /* [connections] bytes that had arrived when all began to be under way as settled, and when the first ended */
    bool first_ended;
    double total; /* bytes */
};

static void arrived_now(const struct packet_run *run, double *bytes)
{
    for (size_t i = 0; i < run->fair->n; i++) {
        bytes[i] = 0;
        for (size_t q = 0; q < run->fair->per; q++)
            bytes[i] += (double)packets_arrived(run->packets, (uint32_t)(i * run->fair->per + q));
    }
}

/* Half of the time until the first ends by the fair rates. */
static double settled_from(const struct load_fair *fair)
{
    double first = INFINITY;

    for (size_t i = 0; i < fair->n; i++)
        if (!fair->inside[i])
            first = fmin(first, fair->ends[i]);
    return first / 2;
}

static void transfer_ended(struct packet_run *run, uint32_t transfer)
{
    size_t connection = packets_payload(run->packets, transfer);
    double now = nanos_to_seconds(packets_now(run->packets));

    run->out->ends[connection] = now;
    if (run->first_ended || run->fair->inside[connection])
        return;
    run->first_ended = true;
    run->out->until_s = now;
    arrived_now(run, run->after);
}

static enum status too_long(struct diags *diags)
{
    diag_error(diags, PLACE_NONE, "the load needs more than %lld hours, which is the limit; send less, or use faster links",
               (long long)(PACKETS_LONGEST / NANOS_PER_SECOND / 3600));
    return STATUS_BAD_INPUT;
}

static enum status packets_follow(struct packet_run *run, struct diags *diags)
{
    struct packets *packets = run->packets;
    size_t left = run->fair->n * run->fair->per;
    uint32_t transfer;

    for (;;) {
        switch (packets_next(packets, &transfer)) {
        case PACKETS_ENDED:
            transfer_ended(run, transfer);
            left--;
            break;
        case PACKETS_ALARM:
            if (run->first_ended)
                break;
            run->out->from_s = nanos_to_seconds(packets_now(packets));
            arrived_now(run, run->before);
            break;
        case PACKETS_BUSY:
            if (run->load->progress != NULL)
                run->load->progress(run->load->context, (double)packets_bytes_arrived(packets), run->total);
            break;
        case PACKETS_TOO_LONG: return too_long(diags);
        case PACKETS_IDLE:
            if (left == 0)
                return STATUS_OK;
            diag_error(diags, PLACE_NONE, "%zu transfers are stuck; this is a bug in msim", left);
            return STATUS_FAILED;
        }
    }
}

static void results_take(struct packet_run *run)
{
    const struct load_fair *fair = run->fair;
    struct load_packets *out = run->out;
    size_t kept = 0;

    for (size_t i = 0; i < fair->n; i++) {
        out->delays[i] = fair->ends[i] > 0 ? out->ends[i] / fair->ends[i] : 1;
        out->seconds = fmax(out->seconds, out->ends[i]);
        fair->achieved[i] = (run->after[i] - run->before[i]) / (out->until_s - out->from_s);
        if (fair->inside[i])
            continue;
        out->rates[kept] = fair->achieved[i];
        out->shares[kept] = out->rates[kept] / fair->rates[i];
        kept++;
    }
    qsort(out->rates, kept, sizeof *out->rates, double_compare);
    qsort(out->shares, kept, sizeof *out->shares, double_compare);
    qsort(out->ends, fair->n, sizeof *out->ends, double_compare);
    qsort(out->delays, fair->n, sizeof *out->delays, double_compare);
    out->totals = packets_totals(run->packets);
}

enum status load_packets_run(struct packets *packets, const struct load *load, const struct load_fair *fair,
                             struct load_packets *result, struct diags *diags)
{
    size_t n = fair->n;
    struct packet_run run = {.packets = packets, .load = load, .fair = fair, .out = result};

    *result = (struct load_packets){.packets = packets};
    for (size_t i = 0; i < n; i++)
        if (fair->ends[i] > nanos_to_seconds(PACKETS_LONGEST)) {
            load_packets_free(result);
            return too_long(diags);
        }
    result->rates = memory_new(n, sizeof *result->rates);
    result->shares = memory_new(n, sizeof *result->shares);
    result->ends = memory_new(n, sizeof *result->ends);
    result->delays = memory_new(n, sizeof *result->delays);
    run.before = memory_new(n, sizeof *run.before);
    run.after = memory_new(n, sizeof *run.after);
    packets_alarm(packets, nanos_from_seconds(settled_from(fair)));
    for (size_t i = 0; i < n * fair->per; i++) {
        packets_send(packets, (uint32_t)i, fair->sizes[i / fair->per]);
        run.total += fair->sizes[i / fair->per];
    }
    enum status status = packets_follow(&run, diags);
    if (status == STATUS_OK)
        results_take(&run);
    else
        load_packets_free(result);
    free(run.before);
    free(run.after);
    return status;
}

void load_packets_free(struct load_packets *result)
{
    free(result->rates);
    free(result->shares);
    free(result->ends);
    free(result->delays);
    packets_destroy(result->packets);
    *result = (struct load_packets){0};
}
