/*
 * run_closed_form.h - what memoryless failures and unlimited spares would make of a run, in closed form.
 *
 * Failures at rate L, recovery R = detect + restart, interval D, block w, and the lag P from the end of the block until the
 * state is safe (sim/weeks/checkpoint.h; 0 where checkpoints block until they are there). A copy that is due while the one before
 * is on its way waits for it, so with E = max(D, P) checkpoints follow one another every E + w:
 *
 *     first order   (1 - L (R + P + E/2)) D / (E + w)
 *     exponential   D exp(-L (D + w + P)) / (1 - exp(-L (E + w))) / (1/L + (exp(L R) - 1)/L)
 *
 * The first counts one interval half lost, the lag and one recovery per failure; it is good while L (R + P + E/2) is small. The
 * second is exact for a Poisson process of failures: the k-th checkpoint after a restart is safe at D + w + P + (k - 1) (E + w),
 * and each of them keeps an interval. A lag costs a factor exp(-L P) at any D >= P.
 *
 * The interval. Where D >= P the lag moves no optimum: Young's sqrt(2 w M) of the mean time M that the job runs between
 * interruptions, and Daly's refinement (J. T. Daly, Future Generation Computer Systems 22, 2006)
 *
 *     sqrt(2 w M) (1 + sqrt(w / 2M) / 3 + (w / 2M) / 9) - w   for w < 2M, else M
 *
 * Where D < P checkpoints follow one another every P + w whatever D is, and the exponential form is D exp(-L D) times what D does
 * not change: it grows up to D = 1/L = M, so the best interval is the shorter of P and M at least.
 *
 * With failover (sim/weeks/failover.h) an interruption costs c = detection, two regroupings and half a step of training, and no
 * interval is best: (1 - L c) D / (E + w), and 1 / (1 + L c) D / (E + w).
 */
#ifndef MSIM_SIM_WEEKS_RUN_CLOSED_FORM_H
#define MSIM_SIM_WEEKS_RUN_CLOSED_FORM_H

#include "sim/weeks/run.h"

/* Seconds; 0: nothing fails, or checkpoints cost nothing and are safe at once. */
struct best_interval {
    double young_s, daly_s;
    double best_s; /* Daly's, but at least the lag, or the time between interruptions where that is shorter */
};
/* `between_s`: M; 0 or infinite where nothing fails. */
struct best_interval best_interval_of(const struct checkpoint_policy *policy, double between_s);

struct run_closed_form {
    double first_order, exponential; /* of the ETTR */
    double between_s;                /* M; 0: nothing fails */
    struct best_interval interval;   /* with failover nothing */
};

/* For `failures` over the horizon of the options: L is their rate, M = 1/L. */
struct run_closed_form run_closed_form(const struct run_options *options, double failures);

/* What a run did, or the mean of many. */
struct run_account {
    double use_s[N_TIME_USES]; /* adds up to the horizon */
    double failures, interruptions;
};
/* Seconds that a job ran between two interruptions: stops of any kind are left out of the time, and what failed meanwhile out of
 * the count. 0: nothing interrupted it. */
double run_time_between(const struct run_account *account);
/* The same of a run that was simulated, with its own M. By the plain rules L is the rate of all failures. With a robust policy,
 * whose recoveries differ, L is that of the interruptions while the job ran, and R what each took in the mean without the wait
 * for nodes, failures during the recovery included: then 1/L + R stands where 1/L + (exp(L R) - 1)/L does. Waiting counts in
 * neither: spares are unlimited here. */
struct run_closed_form run_closed_form_of(const struct run_options *options, const struct run_account *account);

#endif
