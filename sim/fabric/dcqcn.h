/*
 * dcqcn.h - the rate of one sender under DCQCN, and when a switch marks.
 *
 * Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015. Three parties:
 *
 *   Switch     An arriving packet that finds q bytes waiting at its output is marked with probability 0 up to Kmin, 1 from Kmax
 *              on, and between them Pmax (q - Kmin) / (Kmax - Kmin) (figure 5 there; RED on the instantaneous queue).
 *   Receiver   A marked packet makes it send a congestion notification (CNP), at most one per connection and `cnp_interval`.
 *   Sender     Rates Rc (current) and Rt (target) start at the line rate, alpha at 1. A CNP (equation 1):
 *
 *                  Rt = Rc,  Rc = Rc (1 - alpha / 2),  alpha = (1 - g) alpha + g
 *
 *              and counters and timers begin anew. `alpha_timer` without a CNP: alpha = (1 - g) alpha (equation 2). Every
 *              `rate_timer` and every `byte_counter` bytes sent the rate grows. With T and B the times that the timer and the
 *              counter have done so since the cut, and F = fast_rounds (equations 3 and 4, figure 7):
 *
 *                  max(T, B) < F    fast recovery       Rc = (Rt + Rc) / 2
 *                  min(T, B) > F    hyper increase      Rt += hyper,     Rc = (Rt + Rc) / 2
 *                  otherwise        additive increase   Rt += additive,  Rc = (Rt + Rc) / 2
 *
 * Rt never exceeds the line rate and Rc never falls below `least`. Where both are within a byte a second of the line rate the
 * sender is as if it had never been cut, but for alpha.
 *
 * A sender is advanced when something looks at it; what its timers did meanwhile happens then, in order, so a sender costs
 * nothing while nobody does. Times are in nanoseconds, rates in B/s; doubles, in one order on every compiler.
 */
#ifndef MSIM_SIM_FABRIC_DCQCN_H
#define MSIM_SIM_FABRIC_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/units.h"

/* One set for all senders; rates for a line of DCQCN_REFERENCE_RATE, in proportion for others. */
#define DCQCN_REFERENCE_RATE 50e9 /* B/s: 400 Gbps */
enum { DCQCN_TIMER_MIN = 1000 };  /* ns; NICs count in microseconds, and every tick is followed */
#define DCQCN_SECONDS_MAX 1e3     /* of timers and intervals */
#define DCQCN_NUMBER_MAX  1e15    /* of bytes and B/s */

struct dcqcn_parameters {
    double gain;         /* g */
    nanos cnp_interval;  /* between two CNPs of a connection */
    nanos alpha_timer;   /* without a CNP until alpha falls */
    nanos rate_timer;    /* between two increases */
    double byte_counter; /* bytes between two increases */
    int fast_rounds;     /* F */
    double additive;     /* R_AI, B/s a round */
    double hyper;        /* R_HAI, B/s a round */
    double least;        /* B/s, of any line */
};

struct dcqcn {
    double line;            /* B/s */
    double current;         /* Rc */
    double target;          /* Rt */
    double alpha;           /* 0 to 1 */
    double unsent;          /* bytes until the counter is full */
    nanos alpha_at;         /* when alpha falls next */
    nanos rate_at;          /* when the timer runs out; DCQCN_NEVER at the line rate */
    int32_t timed, counted; /* T and B, that stop counting where more changes nothing */
};
#define DCQCN_NEVER INT64_MAX

/* A sender at its line rate. */
struct dcqcn dcqcn_start(double line);
/* What the timers did up to `now`, which may not run backwards. */
void dcqcn_advance(struct dcqcn *sender, const struct dcqcn_parameters *with, nanos now);
/* A CNP arrives. */
void dcqcn_notify(struct dcqcn *sender, const struct dcqcn_parameters *with, nanos now);
/* So many bytes leave. */
void dcqcn_sent(struct dcqcn *sender, const struct dcqcn_parameters *with, double bytes, nanos now);

/* The chance that a packet is marked which finds `queued` bytes; kmin <= kmax, in bytes. */
static inline double red_probability(double queued, double kmin, double kmax, double pmax)
{
    if (queued <= kmin)
        return 0;
    return queued >= kmax ? 1 : pmax * (queued - kmin) / (kmax - kmin);
}

#endif
