#include "sim/network/link_fault.h"

nanos retransmit_interval(int exponent)
{
    return INT64_C(4096) << exponent;
}

nanos retransmit_stall(nanos down, int exponent, bool adaptive)
{
    nanos longest = retransmit_interval(exponent), patience = RETRANSMIT_TRIES * longest, stall = 0;
    nanos wait = adaptive ? longest >> RETRANSMIT_ADAPTIVE_DOUBLINGS : longest;

    while (stall < down) {
        stall += wait;
        wait = 2 * wait < longest ? 2 * wait : longest;
        if (stall > patience)
            return -1;
    }
    return stall;
}

int link_event_compare(const void *a, const void *b)
{
    const struct link_event *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    return (x->speed > y->speed) - (x->speed < y->speed);
}
