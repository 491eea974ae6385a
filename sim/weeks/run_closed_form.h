/*
 * run_closed_form.h - the expected ETTR of a run in closed form, for memoryless failures and unlimited spares.
 *
 * Example: a failure every 10 h, interval 30 min, block 1 min, recovery 10 min, blocking checkpoints. To first order each failure
 * costs 10 + 15 min of 600 min, and the checkpoints one minute in 31: (1 - 25/600) * 30/31 = 0.927.
 *
 *     struct run_closed_form form = run_closed_form(&options, failures_over_the_horizon);   ... form.exponential ...
 *
 * Failures have rate L. R = detect + restart is the recovery, D the interval, w the block. P is the lag from the end of the
 * block until the state is safe (sim/weeks/checkpoint.h; 0 for blocking checkpoints). A copy that is due while the previous one
 * is on its way waits for it. So with E = max(D, P) checkpoints follow one another every E + w:
 *
 *     first order   (1 - L (R + P + E/2)) D / (E + w)
 *     exponential   D exp(-L (D + w + P)) / (1 - exp(-L (E + w))) / (1/L + (exp(L R) - 1)/L)
 *
 * The first counts, per failure, half an interval, the lag and one recovery. It holds while L (R + P + E/2) is small. The second
 * is exact for Poisson failures: the k-th checkpoint after a restart is safe at D + w + P + (k - 1) (E + w), and each keeps one
 * interval. A lag costs a factor exp(-L P) for any D >= P.
 *
 * The best interval. If D >= P the lag does not move the optimum. M is the mean time that the job runs between interruptions.
 * Young's interval is sqrt(2 w M); Daly's refinement (J. T. Daly, Future Generation Computer Systems 22, 2006) is
 *
 *     sqrt(2 w M) (1 + sqrt(w / 2M) / 3 + (w / 2M) / 9) - w   for w < 2M, else M
 *
 * If D < P checkpoints follow one another every P + w whatever D is. Then the exponential form is D exp(-L D) times a constant,
 * which grows up to D = 1/L = M. So the best interval is at least the shorter of P and M.
 *
 * With failover (sim/weeks/failover.h) an interruption costs c = detection + two regroupings + half a step of training. There is
 * no best interval, and the forms are (1 - L c) D / (E + w) and 1 / (1 + L c) D / (E + w).
 */
#ifndef MSIM_SIM_WEEKS_RUN_CLOSED_FORM_H
#define MSIM_SIM_WEEKS_RUN_CLOSED_FORM_H

#include "sim/weeks/run.h"

/* In seconds. 0: nothing fails, or checkpoints cost nothing and are safe at once. */
struct best_interval {
    double young_s, daly_s;
    double best_s; /* Daly's, but at least the shorter of the lag and the time between interruptions */
};
/* `between_s` is M; 0 or infinite: nothing fails. */
struct best_interval best_interval_of(const struct checkpoint_policy *policy, double between_s);

struct run_closed_form {
    double first_order, exponential; /* ETTR */
    double between_s;                /* M; 0: nothing fails */
    struct best_interval interval;   /* all zero with failover */
    bool nothing_failed;             /* the rate is unknown: the ETTR is that of no failures at all */
};

/* For `failures` over the options' horizon: they give the rate L, and M = 1/L. */
struct run_closed_form run_closed_form(const struct run_options *options, double failures);

/* Totals of a simulated run, or the mean of many. */
struct run_account {
    double use_s[N_TIME_USES]; /* sums to the horizon */
    double failures, interruptions;
};
/* Seconds that the job ran between two interruptions. Stops do not count as time, and failures during them do not count as
 * interruptions. 0: nothing interrupted it. */
double run_time_between(const struct run_account *account);
/* The closed form of a simulated run, with its own M. Under the plain rules L is the rate of all failures. Under a robust policy
 * recoveries differ: L is the rate of interruptions while the job ran, and R the average recovery without the wait for nodes.
 * R includes failures during a recovery, so 1/L + R replaces 1/L + (exp(L R) - 1)/L. Waiting is left out of both, because spares
 * are unlimited here. */
struct run_closed_form run_closed_form_of(const struct run_options *options, const struct run_account *account);

#endif
