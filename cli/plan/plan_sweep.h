/*
 * plan_sweep.h - how a job scales: the best plan for each of several GPU counts, batches, precisions or clusters.
 *
 * An axis is a key of the experiment and its values, or several keys that change together:
 *
 *   gpus=256,512,1024     cluster=dgx-h100,gb200-nvl72     precision=bf16,fp8
 *   gpus=256..4096        gpus=256:1024:4                  ranges (sweep_values.h)
 *   gpus=256..4096+global-batch=384..6144               weak scaling: both double
 *   cluster.pue=1:1.5:3      cluster.nic_rate=100Gbps..400Gbps    keys that are not counts: the unit of the first
 *   layout={tp=8,pp=2},{tp=4,pp=4}                      braces hold values with commas
 *
 * Several axes give every combination; the first axis varies fastest. A cluster with fewer GPUs than an axis or --gpus requests
 * gets more nodes of its kind.
 */
#ifndef MSIM_CLI_PLAN_PLAN_SWEEP_H
#define MSIM_CLI_PLAN_PLAN_SWEEP_H

#include "cli/options/command.h"
#include "cli/options/experiment_options.h"
#include "cli/options/gpu_prices.h"
#include "cli/output/result_row.h"
#include "sim/search/plan_points.h"

enum { SWEEP_AXES = 4, SWEEP_KEYS = 4, SWEEP_VALUES = 64, SWEEP_TEXT = 96 };

struct sweep_key {
    char word[32];      /* as asked */
    const char *option; /* of this name; NULL: none */
    char path[96];      /* in the experiment: cluster.gpus; or model, cluster, gpu: what options of these names say */
    char values[SWEEP_VALUES][SWEEP_TEXT];
};

struct sweep_axis {
    struct sweep_key keys[SWEEP_KEYS];
    int n_keys, n_values;
};

struct plan_axes {
    struct sweep_axis axes[SWEEP_AXES];
    int n_axes, n_points;
};

/* One axis from its text. *why says what is wrong and what would be right. */
MUST_CHECK enum status sweep_axis_parse(const char *text, struct sweep_axis *axis, char *why, size_t size);
/* The axes that --sweep names. STATUS_USAGE, with a diagnostic, when there are too many, a key twice, or too many points. */
MUST_CHECK enum status plan_axes_read(struct invocation *call, struct plan_axes *axes);
/* Which value of an axis a point has. */
int plan_axes_index(const struct plan_axes *axes, int axis, int point);
/* The axis with cluster.gpus; -1: none. */
int plan_axes_gpus(const struct plan_axes *axes);
/* The point with the same values, but the first of this axis. */
int plan_axes_first(const struct plan_axes *axes, int axis, int point);

/* "gpus=512, precision=fp8". Returns buffer. */
char *plan_axes_text(const struct plan_axes *axes, int point, char *buffer, size_t size);

/* A value among n_values as a column has room for it: of lists (with commas) without what all of them have, "-" where nothing is
 * left. Returns buffer. */
char *sweep_value_brief(const struct sweep_key *key, int n_values, int value, char *buffer, size_t size);
/* What all values, of which some are lists, have in common, and of how many items that is. */
int sweep_values_common(const struct sweep_key *key, int n_values, char *buffer, size_t size);

/* The values of a key of an axis, and the one at a point. */
const struct sweep_key *sweep_key_at(const struct plan_axes *axes, int axis, int key);
const char *sweep_value_at(const struct plan_axes *axes, int axis, int key, int point);

/* What of the points that are done in time is the least: --least, in the order of enum sweep_least. */
extern const char *const sweep_least_choices[];

struct plan_sweep {
    struct plan_axes axes;
    struct experiment_flags flags; /* the call's */
    char *input;                   /* the experiment, when that is read from standard input, which is read once */
    char *model;                   /* the model, when it is read from a pipe */
    struct plan_points found;      /* axes.n_points */
    struct gpu_prices prices;
    bool budgeted; /* some point has a budget of tokens */
};

/* `msim plan --sweep`. */
MUST_CHECK enum status plan_sweep(struct invocation *call);

/* --- the report: plan_sweep_report.c (text), plan_sweep_record.c (JSON and CSV), plan_sweep_notes.c (text below the table) ---
 */

MUST_CHECK enum status plan_sweep_report(const struct plan_sweep *sweep, struct invocation *call);
MUST_CHECK enum status sweep_write_json(const struct plan_sweep *sweep, struct invocation *call);
void sweep_write_csv(const struct plan_sweep *sweep, FILE *out);

/* One point of a report. */
struct sweep_line {
    const struct plan_sweep *sweep;
    const struct plan_point *point;
    const struct experiment *e;
    int i;
};
struct sweep_line sweep_line_at(const struct plan_sweep *sweep, int i);
extern const struct result_row point_rows[]; /* of a struct sweep_line */

/* What some point of a sweep has: whether there is a column of it, or a note. */
struct sweep_traits {
    bool grown, usual;          /* a cluster of more nodes than its entry has; a GPU in its usual nodes */
    bool margins_differ;        /* of memory */
    bool fits;                  /* a plan; the rest only of plans */
    bool uneven, drops, masks;  /* chunks, copies of tokens beyond the capacity of experts, attention between documents */
    bool costs, energy;         /* a price, a budget and published power */
    bool offloads;              /* to the memory of the host */
    bool rates_differ;          /* by the convention of MFU */
    bool batch_follows;         /* varies between points, in sequences, without being asked to */
    bool batch_is_one_sequence; /* of each GPU, everywhere, and so varies */
};

/* The first point that is an experiment; there is one. */
const struct experiment *sweep_first_experiment(const struct plan_sweep *sweep);
/* Are there prices, but none of this point's GPU? */
bool sweep_is_unpriced(const struct plan_sweep *sweep, const struct plan_point *point);
/* Why a point has no plan: there is no such experiment, or no layout is legal or fits. Returns buffer. */
enum { SWEEP_WHY_TEXT = 256 };
char *sweep_point_why(const struct plan_point *point, char buffer[SWEEP_WHY_TEXT]);
/* What no real run of its kind has (expectation.h). Returns buffer. */
char *sweep_point_unheard(const struct plan_point *point, char *buffer, size_t size);
void sweep_notes_write(const struct plan_sweep *sweep, const struct sweep_traits *some, FILE *out);

#endif
