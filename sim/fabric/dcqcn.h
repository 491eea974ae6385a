/*
 * dcqcn.h - DCQCN congestion control: the rate of one sender, and when a switch marks packets.
 *
 * Example: a sender at 100 Gbps gets its first notification: alpha is 1, so its rate halves to 50 Gbps. Five timers later it is
 * back within 2 Gbps of 100, as fast recovery halves the difference each time.
 *
 * Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015. Three parties:
 *
 *   Switch     A packet that arrives when q bytes wait at its output is marked with probability 0 up to Kmin, 1 from Kmax, and
 *              Pmax (q - Kmin) / (Kmax - Kmin) in between (figure 5 there; RED on the instantaneous queue).
 *   Receiver   A marked packet makes it send a congestion notification (CNP), at most one per connection and `cnp_interval`.
 *   Sender     The rates Rc (current) and Rt (target) start at the line rate, alpha at 1. A CNP sets (equation 1)
 *
 *                  Rt = Rc,  Rc = Rc (1 - alpha / 2),  alpha = (1 - g) alpha + g
 *
 *              and restarts counters and timers. After `alpha_timer` without a CNP: alpha = (1 - g) alpha (equation 2). Every
 *              `rate_timer`, and every `byte_counter` bytes sent, the rate grows. T and B count the expiries of the timer and of
 *              the counter since the cut; F = fast_rounds (equations 3 and 4, figure 7):
 *
 *                  max(T, B) < F    fast recovery       Rc = (Rt + Rc) / 2
 *                  min(T, B) > F    hyper increase      Rt += hyper,     Rc = (Rt + Rc) / 2
 *                  otherwise        additive increase   Rt += additive,  Rc = (Rt + Rc) / 2
 *
 * Rt never exceeds the line rate, and Rc never falls below `least`. If both are within 1 B/s of the line rate the sender is as
 * if it had never been cut, except for alpha.
 *
 * A sender is advanced when something looks at it: then its timers run up to that time, in order. So an idle sender costs
 * nothing. Times are nanoseconds, rates B/s, in doubles, with one order of operations on every compiler.
 */
#ifndef MSIM_SIM_FABRIC_DCQCN_H
#define MSIM_SIM_FABRIC_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/units.h"

/* One set for all senders. Rates are for a line of DCQCN_REFERENCE_RATE and scale with the line. */
#define DCQCN_REFERENCE_RATE 50e9 /* B/s: 400 Gbps */
enum { DCQCN_TIMER_MIN = 1000 };  /* ns; NICs count in microseconds, and each tick is simulated */
#define DCQCN_SECONDS_MAX 1e3     /* of timers and intervals */
#define DCQCN_NUMBER_MAX  1e15    /* of bytes and B/s */

struct dcqcn_parameters {
    double gain;         /* g */
    nanos cnp_interval;  /* between two CNPs of a connection */
    nanos alpha_timer;   /* without a CNP until alpha falls */
    nanos rate_timer;    /* between two increases */
    double byte_counter; /* bytes between two increases */
    int fast_rounds;     /* F */
    double additive;     /* R_AI, B/s per round */
    double hyper;        /* R_HAI, B/s per round */
    double least;        /* B/s, for any line */
};

struct dcqcn {
    double line;            /* B/s */
    double current;         /* Rc */
    double target;          /* Rt */
    double alpha;           /* 0 to 1 */
    double unsent;          /* bytes until the counter expires */
    nanos alpha_at;         /* when alpha falls next */
    nanos rate_at;          /* when the timer expires; DCQCN_NEVER at the line rate */
    int32_t timed, counted; /* T and B; they stop when more makes no difference */
};
#define DCQCN_NEVER INT64_MAX

/* A sender at its line rate. */
struct dcqcn dcqcn_start(double line);
/* Runs the timers up to `now`, which must not go backwards. */
void dcqcn_advance(struct dcqcn *sender, const struct dcqcn_parameters *with, nanos now);
/* A CNP arrives. */
void dcqcn_notify(struct dcqcn *sender, const struct dcqcn_parameters *with, nanos now);
/* `bytes` leave the sender. */
void dcqcn_sent(struct dcqcn *sender, const struct dcqcn_parameters *with, double bytes, nanos now);

/* Probability that a packet is marked when `queued` bytes wait; kmin <= kmax, in bytes. */
static inline double red_probability(double queued, double kmin, double kmax, double pmax)
{
    if (queued <= kmin)
        return 0;
    return queued >= kmax ? 1 : pmax * (queued - kmin) / (kmax - kmin);
}

#endif
