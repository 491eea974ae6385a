#include "sim/weeks/recovery_machine.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

const char *channel_name(enum channel channel)
{
    static const char *const names[N_CHANNELS] = {
#define X(id, name) name,
        CHANNELS(X)
#undef X
    };
    return names[channel];
}

#define FAR_S 3.2e9

static nanos to_millisecond(double seconds)
{
    return (nanos)llround(fmin(fmax(seconds, 0), FAR_S) * 1e3) * 1000000;
}

static double exponential(double mean, struct random_stream *random)
{
    return -mean * log(random_uniform(random));
}

/* --- noticing --- */

/* A hang is noticed by its traffic, if that is watched, or by the collective timeout. */
static double hang_s(const struct robust_policy *policy, struct verdict *verdict)
{
    bool watched = robust_policy_watches_traffic(policy);
    verdict->channel = watched ? CHANNEL_TRAFFIC : CHANNEL_TIMEOUT;
    return watched ? policy->traffic_window_s : policy->collective_timeout_s;
}

static void notice(const struct robust_policy *policy, const struct fault_case *fault, struct random_stream *random,
                   struct verdict *verdict)
{
    double phase = random_uniform(random), seconds = 0;
    switch (fault->symptom) {
    case SYMPTOM_EXIT:
        verdict->channel = CHANNEL_LOG;
        seconds = phase * policy->heartbeat_s + policy->log_delay_s;
        break;
    case SYMPTOM_UNREACHABLE: /* the last heartbeat was heard up to one period before the fault */
        verdict->channel = CHANNEL_HEARTBEAT;
        seconds = policy->heartbeat_timeout_s - phase * fmin(policy->heartbeat_s, policy->heartbeat_timeout_s);
        break;
    case SYMPTOM_HANG: seconds = hang_s(policy, verdict) + phase * policy->heartbeat_s; break;
    default: verdict->channel = CHANNEL_NUMBERS; seconds = -policy->silent_detect_s * log(phase);
    }
    verdict->detect = to_millisecond(seconds);
}

/* --- finding --- */

/* Poisson by inversion: condemned nodes are few. */
static int condemned(double mean, struct random_stream *random)
{
    double u = random_uniform(random), p = exp(-mean), sum = p;
    int n = 0;
    while (u > sum && n < 1000) {
        p *= mean / ++n;
        sum += p;
    }
    return n;
}

static void diagnose(const struct robust_policy *policy, const struct fault_case *fault, struct random_stream *random,
                     struct verdict *verdict)
{
    double seconds = 0, false_positives = 0;
    verdict->found_by = -1;
    for (int i = 0; i < policy->tests.n && verdict->found_by < 0; i++) {
        const struct diagnostic_test *test = &policy->tests.items[i];
        seconds += test->seconds;
        false_positives += test->false_positive * fault->nodes;
        if (fault->broken && random_uniform(random) < test->finds[fault->component])
            verdict->found_by = i;
    }
    verdict->found = verdict->found_by >= 0;
    verdict->n_condemned = condemned(false_positives, random);
    verdict->diagnose = to_millisecond(seconds);
}

static void call_person(const struct robust_policy *policy, struct random_stream *random, struct verdict *verdict)
{
    double z = gsl_cdf_ugaussian_Pinv(random_uniform(random));
    verdict->called = true;
    verdict->found = true;
    verdict->human = to_millisecond(policy->human_median_s * exp(policy->human_sigma * z));
}

struct verdict recovery_machine_run(const struct robust_policy *policy, const struct fault_case *fault,
                                    struct random_stream *random)
{
    struct verdict verdict = {0};
    notice(policy, fault, random, &verdict);
    diagnose(policy, fault, random, &verdict);
    bool left_to_people = random_uniform(random) >= policy->automatic;
    bool given_up = (fault->broken || fault->attempt > 0) && !verdict.found && fault->attempt + 1 >= policy->attempts;
    if (left_to_people || given_up)
        call_person(policy, random, &verdict);
    bool recurs = !fault->broken && fault->symptom == SYMPTOM_HANG && !verdict.called && policy->hang_recurs > 0 &&
                  random_uniform(random) < policy->hang_recurs;
    if ((fault->broken && !verdict.found) || recurs)
        verdict.relapse = to_millisecond(exponential(policy->relapse_s, random)) + 1;
    return verdict;
}

struct verdict recovery_machine_alarm(const struct robust_policy *policy, enum channel channel, int32_t nodes,
                                      struct random_stream *random)
{
    const struct fault_case nothing = {.component = COMPONENT_UNKNOWN, .nodes = nodes};
    struct verdict verdict = {.channel = channel};
    diagnose(policy, &nothing, random, &verdict);
    return verdict;
}
