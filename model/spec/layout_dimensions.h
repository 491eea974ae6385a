/*
 * layout_dimensions.h - the dimensions of a layout, one row each.
 *
 *     X(CP, NUMBER, cp, "cp", "cp", "cp", "context_parallel", 1, 1e6, 1, "context parallelism", LAYOUT_NUMBERS)
 *
 * A layout is written in many forms: as text (tp=8,mb=1), as YAML and JSON (micro_batch: 1), as columns of tables, in short
 * (tp8 z1). All of them take names, bounds and defaults from these rows.
 *
 * To add a dimension:
 *  1. add its member to struct layout (model/layout/layout.h) and a row here, in the part where a reader looks for it;
 *  2. give it a type: NUMBER and FLAG need nothing else; a type of its own needs a case in every function that switches over
 *     enum dimension_type (model/layout/dimension_value.c, text.c; model/spec/layout_request.c; model/plan/space_limits.c);
 *  3. give it the default that means "as before" and set `rare`, and outputs show it only where it is not the default;
 *  4. say when it is legal (model/layout/check.c), what it costs (model/cost), and which values a search tries
 * (model/plan/space.c);
 *  5. run test_layout_dimensions: it takes every dimension through text, YAML, JSON, CSV and back.
 *
 * Columns of a row:
 *   id          DIMENSION_id here, SPACE_id in searches, COLUMN_id in measurement tables
 *   type        of the value: enum dimension_type
 *   member      of struct layout
 *   key         in YAML, JSON and the columns of tables
 *   word        in the text form, and in messages about it
 *   brief       before the number in short forms: tp8, z1
 *   long_name   another name that texts, files and searches accept; NULL: none
 *   least, most the bounds of a NUMBER as it is written. In a struct layout 0 also means: not given
 *   usual       the default, as layout_complete makes it (dp follows from the number of GPUs)
 *   rare        outputs leave it out where it has its default
 *   in_tables   measurement tables have a column for it
 *   help        a phrase for templates and help
 *   values      what a search restricts it to, for messages
 *
 * The parts exist because outputs name dimensions in different orders, which files and tests already rely on.
 */
#ifndef MSIM_MODEL_SPEC_LAYOUT_DIMENSIONS_H
#define MSIM_MODEL_SPEC_LAYOUT_DIMENSIONS_H

#include <stdbool.h>
#include <stddef.h>

#define LAYOUT_NUMBERS "numbers from 1 and ranges such as 2..16"

/* clang-format off */
/*
 * Dimensions that divide the work.
 *    id, type, member, key, word, brief, long_name, least, most, usual, rare, in_tables, help, values
 */
#define LAYOUT_DIVISION(X)                                                                                                       \
    X(TP, NUMBER, tp, "tp", "tp", "tp", "tensor_parallel", 1, 1e6, 1, false, true, "tensor parallelism", LAYOUT_NUMBERS)         \
    X(CP, NUMBER, cp, "cp", "cp", "cp", "context_parallel", 1, 1e6, 1, false, true, "context parallelism", LAYOUT_NUMBERS)       \
    X(CP_COMM, CP_COMM, cp_comm, "cp_comm", "cp_comm", "", "cp_comm_type", 0, 0, 0, true, true,                                  \
      "how it exchanges: ring, all_gather, a2a, a2a:8+ring", "ring, all_gather, a2a, a2a:8+ring, a2a:8+all_gather")              \
    X(PP, NUMBER, pp, "pp", "pp", "pp", "pipeline_parallel", 1, 1e6, 1, false, true, "pipeline stages", LAYOUT_NUMBERS)          \
    X(VPP, NUMBER, vpp, "vpp", "vpp", "vpp", "virtual_pipeline", 1, 1e6, 1, false, true, "model chunks per stage",               \
      LAYOUT_NUMBERS)                                                                                                            \
    X(DP, NUMBER, dp, "dp", "dp", "dp", "data_parallel", 1, 1e7, 1, false, true, "data parallelism", LAYOUT_NUMBERS)             \
    X(EP, NUMBER, ep, "ep", "ep", "ep", "expert_parallel", 1, 1e6, 1, false, true, "expert parallelism", LAYOUT_NUMBERS)         \
    X(ETP, NUMBER, etp, "etp", "etp", "etp", "expert_tensor_parallel", 1, 1e6, 0, true, false,                                   \
      "ranks that one expert is split over", LAYOUT_NUMBERS)                                                                     \
    X(MICRO_BATCH, NUMBER, micro_batch, "micro_batch", "mb", "mb", NULL, 1, 1e6, 1, false, true,                                 \
      "sequences per micro-batch", LAYOUT_NUMBERS)

/* Sharding of states and activations. */
#define LAYOUT_SHARDING(X)                                                                                                       \
    X(ZERO, NUMBER, zero, "zero", "zero", "z", "zero_stage", 0, 3, 1, false, true, "ZeRO stage", "0 to 3")                       \
    X(SHARD, NUMBER, shard, "shard", "shard", "shard", "hybrid_shard", 0, 1e7, 0, true, true,                                    \
      "ranks that ZeRO shards over (HSDP); 0: all replicas", "0 for all replicas, numbers and ranges such as 8..64")             \
    X(SEQUENCE_PARALLEL, FLAG, sequence_parallel, "sequence_parallel", "sp", "sp", NULL, 0, 1, 1, false, true,                   \
      "norms split over tp", "0 or 1")

#define LAYOUT_RECOMPUTE(X)                                                                                                      \
    X(RECOMPUTE, RECOMPUTE, recompute, "recompute", "recompute", "", NULL, 0, 0, 0, false, true,                                 \
      "activations computed again", "none, selective, full, full:4 and the like, modules as layernorm+moe_act")
#define LAYOUT_OFFLOAD(X)                                                                                                        \
    X(OFFLOAD, OFFLOAD, offload, "offload", "offload", "", NULL, 0, 0, 0, true, false,                                           \
      "kept in the host's memory; auto with auto",                                                                               \
      "none, optimizer, activations, parameters joined by '+', or auto (whole), auto:25% and more")
#define LAYOUT_SCHEDULE(X)                                                                                                       \
    X(SCHEDULE, SCHEDULE, schedule, "schedule", "schedule", "", NULL, 0, 0, 0, false, true, "order of the pipeline's work",      \
      "none, gpipe, 1f1b, interleaved, zb-1p, zb-2p, zb-v, dualpipe, dualpipe-v")
/* clang-format on */

/* All of them, in the order of an experiment's keys. */
#define LAYOUT_DIMENSIONS(X) LAYOUT_DIVISION(X) LAYOUT_SHARDING(X) LAYOUT_RECOMPUTE(X) LAYOUT_OFFLOAD(X) LAYOUT_SCHEDULE(X)

enum layout_dimension {
#define X(id, ...) DIMENSION_##id,
    LAYOUT_DIMENSIONS(X)
#undef X
        N_LAYOUT_DIMENSIONS
};

enum dimension_type {
    DIMENSION_TYPE_NUMBER,    /* int */
    DIMENSION_TYPE_FLAG,      /* bool */
    DIMENSION_TYPE_CP_COMM,   /* enum cp_comm (model/spec/cp_comm.h) */
    DIMENSION_TYPE_RECOMPUTE, /* struct recompute (model/spec/recompute.h) */
    DIMENSION_TYPE_OFFLOAD,   /* struct offload (model/spec/offload.h) */
    DIMENSION_TYPE_SCHEDULE,  /* enum schedule */
};

struct layout_dimension_row {
    const char *key, *word, *brief, *long_name;
    enum dimension_type type;
    int least, usual;
    bool rare, in_tables;
    const char *help, *values;
};
extern const struct layout_dimension_row layout_dimensions[N_LAYOUT_DIMENSIONS];

/* The dimension of this key, word or long name; -1: none. */
int layout_dimension_of(const char *name);

/* Fills in the order of an output: the n dimensions of `first`, then all others as in the table. */
void layout_dimension_order(const enum layout_dimension *first, int n, enum layout_dimension order[N_LAYOUT_DIMENSIONS]);

enum schedule {
    SCHEDULE_NONE, /* no pipeline */
    SCHEDULE_GPIPE,
    SCHEDULE_1F1B,
    SCHEDULE_INTERLEAVED,
    SCHEDULE_ZB1P, /* zero bubble H1 */
    SCHEDULE_ZB2P, /* zero bubble H2 */
    SCHEDULE_ZBV,
    SCHEDULE_DUALPIPE,  /* DeepSeek-V3's: bidirectional, two copies of the weights */
    SCHEDULE_DUALPIPEV, /* one half of it with one copy of the weights: folded into a V */
    N_SCHEDULES
};

extern const char *const schedule_names[N_SCHEDULES + 1]; /* by enum schedule; NULL after the last */
const char *schedule_name(enum schedule schedule);        /* none gpipe 1f1b interleaved zb-1p zb-2p zb-v dualpipe dualpipe-v */
int schedule_parse(const char *name);                     /* -1: unknown */

#endif
