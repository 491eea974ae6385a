/*
 * launch_export.h - the option --export of plan and step: write a launch script or configuration instead of a report.
 *
 *     msim plan job.yaml --export megatron -o launch.sh
 *
 * A search with --export, or with --framework alone, is limited to layouts that the framework supports, unless --space restricts
 * that dimension itself. Of the numbers of micro-batches that a framework refuses, --space allows none.
 */
#ifndef MSIM_CLI_JOB_LAUNCH_EXPORT_H
#define MSIM_CLI_JOB_LAUNCH_EXPORT_H

#include "cli/options/command.h"
#include "model/plan/space.h"
#include "model/spec/experiment.h"

extern const char *const export_choices[], *const framework_choices[];

#define EXPORT_ROW(HELP)                                                                                                         \
    {                                                                                                                            \
        .name = "export", CHOICE_FIELDS("FRAMEWORK", export_choices), .group = "Files", .help = HELP                             \
    }

/* With --export or --framework a search is limited to layouts that the framework supports, unless a restriction of that dimension
 * exists; a note reports the limits. STATUS_USAGE if the two name different frameworks. */
MUST_CHECK enum status framework_limit(const struct invocation *call, const struct experiment *experiment,
                                       struct space_limits *limits, struct diags *diags);

/* Writes the script that launches a layout to call->out; step_s is what a step is predicted to take, 0 not known. STATUS_USAGE
 * where --format asks for something else, STATUS_BAD_INPUT where the framework refuses the layout. */
MUST_CHECK enum status launch_export_write(struct invocation *call, const struct layout *layout, const struct setting *setting,
                                           double step_s);

#endif
