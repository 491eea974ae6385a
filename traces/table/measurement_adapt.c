#include <string.h>

#include "model/layout/layout.h"
#include "traces/table/measurement_reading.h"

/* Tables of different people say the same run in different words. What has only one sensible meaning is taken so, with a warning;
 * everything else is left to layout_check, which says why a run cannot be predicted. */

static void adapted(struct measurement_reading *reading, enum column column, const char *given, const char *taken)
{
    diag_warning(reading->diags, reading_place(reading, column), "%s %s is taken as %s", measurement_columns[column].name, given,
                 taken);
}

/* A pipeline of one stage is none; Megatron calls 1F1B with several chunks per stage interleaved; the V-shaped schedules have two
 * chunks per stage whether or not the table counts them as vpp. */
static enum schedule schedule_meant(const struct layout *layout)
{
    bool either = layout->schedule == SCHEDULE_1F1B || layout->schedule == SCHEDULE_INTERLEAVED;
    if (layout->pp == 1)
        return SCHEDULE_NONE;
    if (either || layout->schedule == SCHEDULE_NONE)
        return layout->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    return layout->schedule;
}

static int chunks_meant(const struct layout *layout, enum schedule schedule)
{
    switch (schedule) {
    case SCHEDULE_INTERLEAVED: return layout->vpp;
    case SCHEDULE_ZBV:
    case SCHEDULE_DUALPIPE:
    case SCHEDULE_DUALPIPEV: return 2;
    default: return 1;
    }
}

static void adapt_schedule(struct measurement_reading *reading, struct layout *layout)
{
    enum schedule schedule = schedule_meant(layout);
    int vpp = chunks_meant(layout, schedule);
    if (schedule != layout->schedule && layout->pp > 1)
        adapted(reading, COLUMN_SCHEDULE, schedule_name(layout->schedule), schedule_name(schedule));
    if (vpp != layout->vpp && layout->vpp > 1) {
        char given[16], taken[16];
        snprintf(given, sizeof given, "%d", layout->vpp);
        snprintf(taken, sizeof taken, "%d", vpp);
        adapted(reading, COLUMN_VPP, given, taken);
    }
    layout->schedule = schedule;
    layout->vpp = vpp;
}

/* Frameworks pad the last micro-batches, or drop them: the step is about as long as that of the next whole number. */
static void adapt_batch(struct measurement_reading *reading, const struct layout *layout, struct job *job)
{
    char given[32], taken[64];
    int64_t unit = (int64_t)layout->dp * layout->micro_batch;
    int64_t batch = (job->global_batch + unit - 1) / unit * unit;
    if (batch == job->global_batch)
        return;
    snprintf(given, sizeof given, "%lld", (long long)job->global_batch);
    snprintf(taken, sizeof taken, "%lld, a multiple of dp x micro_batch", (long long)batch);
    adapted(reading, COLUMN_GLOBAL_BATCH, given, taken);
    job->global_batch = batch;
}

void reading_adapt(struct measurement_reading *reading, struct layout *layout, struct job *job)
{
    if (reading->unusable || layout->dp < 1)
        return;
    adapt_schedule(reading, layout);
    adapt_batch(reading, layout, job);
    if (layout->zero == 3 && layout->pp > 1) { /* gathered once a step, weights stay: what Llama 3 calls FSDP with a pipeline */
        adapted(reading, COLUMN_ZERO, "3", "2 with a pipeline");
        layout->zero = 2;
    }
}
