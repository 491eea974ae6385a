/*
 * launch_export.h - the option --export of plan and step: write a launch script or configuration instead of a report.
 *
 *     msim plan job.yaml --export megatron -o launch.sh
 *
 * A search with --export is limited to layouts that the framework supports, unless --space restricts that dimension itself.
 */
#ifndef MSIM_CLI_JOB_LAUNCH_EXPORT_H
#define MSIM_CLI_JOB_LAUNCH_EXPORT_H

#include "cli/options/command.h"
#include "model/plan/space.h"

extern const char *const export_choices[];

#define EXPORT_ROW(HELP)                                                                                                         \
    {                                                                                                                            \
        .name = "export", CHOICE_FIELDS("FRAMEWORK", export_choices), .group = "Files", .help = HELP                             \
    }

/* With --export a search is of layouts that the framework can say, unless a restriction of that dimension is there; a note says
 * which. Without, nothing happens. */
void launch_export_limit(struct invocation *call, const struct transformer *model, feature_set features,
                         struct space_limits *limits);

/* Writes the script that launches a layout to call->out; step_s is what a step is predicted to take, 0 not known. STATUS_USAGE
 * where --format asks for something else. */
MUST_CHECK enum status launch_export_write(struct invocation *call, const struct layout *layout, const struct setting *setting,
                                           double step_s);

#endif
