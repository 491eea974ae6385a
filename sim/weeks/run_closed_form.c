#include "sim/weeks/run_closed_form.h"

#include <math.h>

/* The checkpoint policy in seconds. */
struct rhythm {
    double work, block, lag;
    double every; /* from one checkpoint to the next */
};

static struct rhythm rhythm_of(const struct checkpoint_policy *policy)
{
    struct rhythm r = {.work = nanos_to_seconds(policy->interval),
                       .block = nanos_to_seconds(policy->block),
                       .lag = nanos_to_seconds(checkpoint_lag(policy))};
    r.every = fmax(r.work, r.lag) + r.block;
    return r;
}

struct best_interval best_interval_of(const struct checkpoint_policy *policy, double between_s)
{
    struct best_interval best = {0};
    const struct rhythm r = rhythm_of(policy);
    if (!(between_s > 0) || isinf(between_s))
        return best;
    double w = r.block, x = w / (2 * between_s);
    best.young_s = sqrt(2 * w * between_s);
    best.daly_s = x < 1 ? best.young_s * (1 + sqrt(x) / 3 + x / 9) - w : between_s;
    best.best_s = fmax(best.daly_s, fmin(r.lag, between_s));
    return best;
}

/* Expected seconds of work kept between two failures at this rate. */
static double kept_work(const struct rhythm *r, double rate)
{
    double late = r->work + r->block + r->lag - r->every;        /* delay of the first safe checkpoint */
    return r->work * exp(-rate * late) / expm1(rate * r->every); /* expm1: no cancellation at small rates */
}

/* `each`: seconds lost per failure, including the lost part of an interval. */
static double first_order(const struct rhythm *r, double rate, double each)
{
    return (1 - rate * each) * r->work / r->every;
}

static double lost_each(const struct rhythm *r)
{
    return r->lag + (r->every - r->block) / 2;
}

static struct run_closed_form with_failover(const struct run_options *options, double rate)
{
    const struct run_failover *f = options->failover;
    const struct rhythm r = rhythm_of(&options->checkpoint);
    double each = rate * nanos_to_seconds(options->recovery.detect + 2 * f->regroup + f->step / 2), share = r.work / r.every;
    return (struct run_closed_form){.first_order = (1 - each) * share, .exponential = share / (1 + each)};
}

struct run_closed_form run_closed_form(const struct run_options *options, double failures)
{
    const struct rhythm r = rhythm_of(&options->checkpoint);
    double recovery = nanos_to_seconds(options->recovery.detect + options->recovery.restart);
    double rate = failures / nanos_to_seconds(options->horizon);
    if (!(rate > 0))
        return (struct run_closed_form){.first_order = r.work / r.every, .exponential = r.work / r.every, .nothing_failed = true};
    if (options->failover)
        return with_failover(options, rate);
    return (struct run_closed_form){.first_order = first_order(&r, rate, recovery + lost_each(&r)),
                                    .exponential = kept_work(&r, rate) / (1 / rate + expm1(rate * recovery) / rate),
                                    .between_s = 1 / rate,
                                    .interval = best_interval_of(&options->checkpoint, 1 / rate)};
}

/* Seconds of recovery without the wait for nodes. */
static double recovering_s(const struct run_account *account)
{
    const double *use = account->use_s;
    return use[USE_DETECTION] + use[USE_DIAGNOSIS] + use[USE_HUMAN] + use[USE_RESTART];
}

static double running_s(const struct run_account *account)
{
    double total = 0;
    for (int i = 0; i < N_TIME_USES; i++)
        total += account->use_s[i];
    return fmax(total - account->use_s[USE_WAITING] - recovering_s(account), 0);
}

double run_time_between(const struct run_account *account)
{
    return account->interruptions > 0 ? running_s(account) / account->interruptions : 0;
}

static struct run_closed_form of_policy(const struct run_options *options, const struct run_account *account)
{
    const struct rhythm r = rhythm_of(&options->checkpoint);
    double between = run_time_between(account);
    if (!(between > 0))
        return run_closed_form(options, 0);
    double recovery = recovering_s(account) / account->interruptions;
    return (struct run_closed_form){.first_order = first_order(&r, 1 / (between + recovery), recovery + lost_each(&r)),
                                    .exponential = kept_work(&r, 1 / between) / (between + recovery),
                                    .between_s = between,
                                    .interval = best_interval_of(&options->checkpoint, between)};
}

/* With failover the survivors stand still for detection, diagnosis and person: these replace the detection time. */
static struct run_closed_form of_policy_with_failover(const struct run_options *options, const struct run_account *account)
{
    struct run_options mean = *options;
    const double *use = account->use_s;
    double n = account->interruptions;
    mean.horizon -= nanos_from_seconds(use[USE_WAITING]);
    if (n > 0)
        mean.recovery.detect = nanos_from_seconds((use[USE_DETECTION] + use[USE_DIAGNOSIS] + use[USE_HUMAN]) / n);
    return mean.horizon > 0 ? run_closed_form(&mean, n) : run_closed_form(options, n);
}

struct run_closed_form run_closed_form_of(const struct run_options *options, const struct run_account *account)
{
    if (options->robust)
        return options->failover ? of_policy_with_failover(options, account) : of_policy(options, account);
    struct run_closed_form form = run_closed_form(options, account->failures);
    if (!options->failover && !form.nothing_failed) { /* announced outages alone are no failures */
        form.between_s = run_time_between(account);
        form.interval = best_interval_of(&options->checkpoint, form.between_s);
    }
    return form;
}
