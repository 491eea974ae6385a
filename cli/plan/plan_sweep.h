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

#include <jansson.h>

#include "cli/job/plan_record.h"
#include "cli/options/command.h"
#include "cli/options/experiment_options.h"
#include "cli/options/gpu_prices.h"
#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "model/cost/step/energy.h"
#include "model/cost/step/track_record.h"

enum { SWEEP_AXES = 4, SWEEP_KEYS = 4, SWEEP_VALUES = 64, SWEEP_TEXT = 96 };

struct sweep_key {
    char word[32]; /* as asked */
    char path[96]; /* in the experiment: cluster.gpus; or model, cluster, gpu: what options of these names say */
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

/* The best plan at one point. */
struct sweep_point {
    char why[256];             /* there is no such experiment; "": there is */
    enum layout_reason reason; /* where no layout is legal: what those break that come closest */
    char *config;              /* as JSON */
    char model[64], cluster[64], gpu[64];
    const char *precision;
    feature_set features; /* that are allowed */
    int gpus;
    bool grown; /* more nodes than the cluster has */
    bool usual; /* several usual nodes of a GPU that is named alone */
    int64_t global_batch, seq_len;
    bool legal, fits;     /* some layout is, does; the rest only if it fits */
    double missing_bytes; /* where none fits: by how much the smallest layout is too large */
    struct best_plan best;
    enum run_kind kind;
    double load;                               /* how full its best layout makes an oversubscribed fabric; 0: there is none */
    char narrow[OVERSUBSCRIBED_TEXT];          /* what its best layout meets on an oversubscribed fabric (notes.h) */
    char unheard[UNHEARD_TEXT];                /* what no real run of its kind has (expectation.h) */
    bool drops;                                /* copies of tokens, beyond the capacity of experts */
    bool masks;                                /* attention, between documents */
    double tokens;                             /* the budget; 0: none */
    double days, gpu_hours, cost;              /* for it; 0: no budget, or no price */
    double gpu_price;                          /* money per GPU and hour; 0: none is given */
    struct power_bound power[POWER_NODES + 1]; /* by what is counted */
    double energy_j; /* for the budget, at most, by what the sweep counts; 0: no budget, or power not published */
};

/* What of the points that are done in time is the least: --least. */
enum sweep_least { LEAST_GPU_HOURS, LEAST_ENERGY, LEAST_COST };
extern const char *const sweep_least_choices[];

struct plan_sweep {
    struct plan_axes axes;
    struct experiment_flags flags; /* the call's */
    char *input;                   /* the experiment, when that is read from standard input, which is read once */
    struct sweep_point *points;    /* axes.n_points */
    struct gpu_prices prices;
    bool budgeted;            /* some point has a budget of tokens */
    double within_s;          /* 0: no deadline */
    enum power_count counted; /* of each point, as much as is published of all that have anything published */
    enum sweep_least least;
    int cheapest; /* fits, and is done in time, with the least of that; -1: none, or no deadline */
};

/* `msim plan --sweep`. */
MUST_CHECK enum status plan_sweep(struct invocation *call);

MUST_CHECK enum status plan_sweep_report(const struct plan_sweep *sweep, struct invocation *call);

#endif
