/*
 * step_profile.h - a profile of a real step next to the predicted one: `msim step --profile`.
 */
#ifndef MSIM_CLI_STEP_STEP_PROFILE_H
#define MSIM_CLI_STEP_STEP_PROFILE_H

#include <jansson.h>

#include "cli/job/job_setup.h"
#include "cli/output/result_row.h"
#include "sim/step/step.h"
#include "traces/profile/profile.h"

struct step_profile {
    const char *path;
    struct profile profile;
    struct profile_account measured;
    double predicted_s[N_PROFILE_KINDS]; /* of the profile's stage, or the mean over all; sums to the step */
    double step_s;                       /* predicted */
    int stage;                           /* of the profile's rank; -1: not known */
};

/* Reads --profile when it is given (*given), with warnings where the trace is of another machine or job. */
MUST_CHECK enum status step_profile_load(struct invocation *call, const struct job_setup *setup, struct step_profile *with,
                                         bool *given);
/* What was predicted for the rank that was profiled. */
void step_profile_complete(struct step_profile *with, const struct job_setup *setup, const struct breakdown *stages);
void step_profile_write(const struct step_profile *with, const struct invocation *call);
/* With profile_rows, and in its kernels and idle the two others. */
extern const struct result_row profile_rows[], profile_kernel_rows[], profile_idle_rows[];
json_t *step_profile_json(const struct step_profile *with);
void step_profile_free(struct step_profile *with);

#endif
