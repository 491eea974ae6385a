/* What kernel logs and DCGM's gauge share: hosts, faults by class, and clocks that fit together. */
#include <string.h>

#include "model/base/memory.h"
#include "traces/fault/xid_trace_internal.h"

struct place xid_place(const struct xid_parser *parser, int line)
{
    return (struct place){.file = parser->file.name, .line = line};
}

int32_t xid_node(struct xid_parser *parser, const char *host, size_t length)
{
    parser->file.names_hosts |= host != NULL;
    return host ? host_number(&parser->hosts, host, length)
                : host_number(&parser->hosts, parser->file.name, strlen(parser->file.name));
}

void xid_add(struct xid_parser *parser, nanos time, int32_t node, enum xid_class class, const char *cause)
{
    struct fault fault = {.time = time, .node = node, .speed = FULL_SPEED};
    if (class == XID_UNKNOWN || class == XID_INFORMATION)
        return;
    fault.down = class == XID_APPLICATION ? 0 : parser->options->down;
    if (parser->trace.n_items == 0 || time < parser->first)
        parser->first = time;
    fault_trace_add(&parser->trace, fault, cause);
    parser->ranks = memory_grow(parser->ranks, &parser->ranks_capacity, parser->trace.n_details, sizeof *parser->ranks);
    parser->ranks[parser->trace.items[parser->trace.n_items - 1].detail] = (int)class;
}

bool xid_clock_fits(struct xid_parser *parser, enum log_time clock, int line)
{
    static const char *const names[] = {
        [LOG_SINCE_BOOT] = "seconds since boot", [LOG_YEARLESS] = "a date without a year", [LOG_DATED] = "a date with its year"};
    if (parser->clock != LOG_NO_TIME && parser->clock != clock) {
        diag_error(parser->diags, xid_place(parser, line), "this line has %s, those above %s; convert them apart", names[clock],
                   names[parser->clock]);
        return false;
    }
    parser->clock = clock;
    return true;
}
