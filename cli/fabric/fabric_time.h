/*
 * fabric_time.h - msim fabric time: the predicted time of one collective, and its parts.
 *
 *     msim fabric time --op all_reduce --bytes 1GiB --gpus 64 --cluster dgx-h100
 */
#ifndef MSIM_CLI_FABRIC_FABRIC_TIME_H
#define MSIM_CLI_FABRIC_FABRIC_TIME_H

#include "cli/options/command.h"
#include "cli/output/result_row.h"
#include "model/spec/cluster.h"

extern const char *const time_op_choices[];

#define TIME_GROUP "Time"
#define FABRIC_TIME_OPTION_ROWS                                                                                                  \
    {                                                                                                                            \
        .name = "op", CHOICE_FIELDS("OP", time_op_choices), .initial = "all_reduce", .group = TIME_GROUP,                        \
        .help = "time: choose the collective; --bytes is its full buffer, as nccl-tests counts it"                               \
    }

extern const struct result_table fabric_keys[];
MUST_CHECK enum status fabric_time(struct invocation *call, const struct cluster *cluster);

#endif
