/*
 * run_flows.c - flows on a fabric and a queue of events, through an installed libmsim.
 *
 * Two hosts of one 400 Gbps NIC each send 1 GB to a third: the receiver's NIC is shared, so each gets 25 GB/s and both end after
 * 40 ms.
 */
#include <math.h>
#include <msim.h>
#include <stdio.h>
#include <stdlib.h>

int run_flows(void);

static int wrong(const char *what)
{
    fprintf(stderr, "consumer: %s\n", what);
    return 1;
}

static int check_incast(const struct msim_fabric *fabric)
{
    struct msim_flows *flows;
    size_t first, second, ended;
    int status = 0;
    if (msim_flows_create(fabric, MSIM_STATIC, 1, NULL, &flows) != MSIM_OK)
        return wrong("flows cannot be created");
    if (msim_flows_send(flows, 0, 2, 1e9, NULL, &first) != MSIM_OK || msim_flows_send(flows, 1, 2, 1e9, NULL, &second) != MSIM_OK)
        status = wrong("a transfer does not begin");
    else if (fabs(msim_flows_rate(flows, first) - 25e9) > 1e3)
        status = wrong("a shared NIC is not shared evenly");
    while (status == 0 && msim_flows_next(flows, &ended))
        if (llabs(msim_flows_now_ns(flows) - 40000000) > 1000)
            status = wrong("transfers do not end after 40 ms");
    if (status == 0 && msim_flows_send(flows, 0, 99, 1, NULL, &first) != MSIM_USAGE)
        status = wrong("a transfer to a GPU that does not exist begins");
    msim_flows_destroy(flows);
    return status;
}

static int check_events(void)
{
    struct msim_events *events = msim_events_create(4);
    struct msim_event event = {0};
    int status = 0;
    if (msim_events_schedule(events, 20, 0, 2) != MSIM_OK || msim_events_schedule(events, 10, 1, 1) != MSIM_OK)
        status = wrong("an event is refused");
    if (!msim_events_next(events, &event) || event.payload != 1 || event.time_ns != 10)
        status = wrong("events leave out of order");
    if (msim_events_schedule(events, 5, 0, 3) != MSIM_USAGE)
        status = wrong("an event in the past is accepted");
    msim_events_destroy(events);
    return status;
}

int run_flows(void)
{
    struct msim_fabric *fabric;
    if (msim_fabric_parse("clos hosts:3 gpus:1 nics:1x400G tor:32x400G", NULL, &fabric) != MSIM_OK)
        return wrong("the fabric cannot be read");
    int status = check_incast(fabric);
    msim_fabric_destroy(fabric);
    return status != 0 ? status : check_events();
}
