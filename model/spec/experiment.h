/*
 * experiment.h - one experiment: model, cluster, job, layout and faults, from a file and flags.
 *
 * Example of a file:
 *
 *     model: gpt-175b-megascale | file | {base: NAME, field: value...}
 *     cluster: {base: megascale-a100, gpus: 12288}
 *     job: {global_batch: 6144, seq_len: 2048, precision: bf16, optimizer: adam, features: [...], tokens: 300B}
 *          batch_tokens: 12582912 instead of global_batch
 *     layout: {tp: 8, pp: 8, vpp: 6, micro_batch: 1, zero: 2} | auto | {auto: true, pp: 8}: the best with pp = 8
 *             | tp8 pp8 vpp6 mb1 z2: as tables print it (layout_items.h)
 *     faults: {trace: llama3-54d, checkpoint_interval: 30min, checkpoint_block: 30s, restart: 15min, detect: 0s, spares: 4,
 *              horizon: 54d}
 *             {model: llama3, policy: megascale, checkpoint: two-stage, ...}: faults drawn from a model, recovery in stages
 *
 * Overrides ("job.global_batch=6144") reach any key and win over the file. A cluster named on the command line replaces all
 * keys of the file's cluster except `gpus`, so the size of the job stays.
 */
#ifndef MSIM_MODEL_SPEC_EXPERIMENT_H
#define MSIM_MODEL_SPEC_EXPERIMENT_H

#include "model/base/diag.h"
#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/spec/cluster.h"
#include "model/spec/job.h"
#include "model/spec/transformer.h"

/* The requested layout as text; model/layout turns it into a struct layout. */
struct layout_request {
    bool given;     /* true: dimensions that the text does not name have their defaults; false: they are searched ("auto") */
    char text[384]; /* "tp=8,pp=8,..." as layout_parse reads it, from the mapping or a flag; may be empty */
};

struct faults_request {
    char trace[256];              /* name or path; "" none */
    char model[256];              /* fault model to draw from instead, name or path; "" none */
    char policy[256];             /* of recovery: a name or path; "" the plain rules */
    char checkpoint[32];          /* kind of checkpoint; "" blocking */
    double horizon_s;             /* 0: the trace's length */
    double checkpoint_interval_s; /* of useful work; 0: not given */
    int64_t checkpoint_steps;     /* the same in steps; 0: not given */
    double checkpoint_block_s;    /* negative: not given */
    double detect_s;              /* negative: not given */
    double restart_s;             /* negative: not given */
    double repair_s;              /* mean to which repairs are scaled; 0: as in the trace or model */
    int spares;                   /* -1: not given */
};

struct experiment {
    struct transformer model;
    struct cluster cluster; /* all of its nodes, also those that `gpus` does not use */
    int gpus;               /* used by the job; a multiple of gpus_per_node, or a divisor of it */
    bool grown;             /* the cluster has been given more nodes of its kind, for these GPUs */
    struct job job;
    struct layout_request layout;
    struct faults_request faults;
    uint64_t seed;
};

/* The command line; NULL or 0 where it specifies nothing. */
struct experiment_flags {
    const char *file; /* experiment file */
    const char *text; /* its contents, if already read (standard input); n_text bytes */
    const char *name; /* of the text, for messages; NULL: "standard input" */
    size_t n_text;
    const char *model, *cluster; /* names or paths */
    const char *model_text;      /* contents of the pipe that `model` names, if already read; n_model_text bytes */
    size_t n_model_text;
    const char *gpu; /* replaces the cluster's GPU; without a cluster: usual nodes, the number that the job needs */
    const char *layout;
    const char *const *overrides; /* n_overrides texts "a.b=value", any YAML, or "=a.b=value", a plain text */
    int n_overrides;
    bool grows; /* a cluster that has fewer GPUs than the job uses gets more nodes of its kind */
};

/* Load, apply overrides, fill defaults (seq_len from the model, precision bf16, optimizer adam, gradients fp32), check. All
 * mistakes are reported at once. *experiment is written only on success. */
MUST_CHECK enum status experiment_load(const struct experiment_flags *flags, struct experiment *experiment, struct diags *diags);

/* The same from a text in memory; `name` is what diagnostics call it. For tests and fuzzers. */
MUST_CHECK enum status experiment_parse_text(const char *name, const char *bytes, size_t n, struct experiment *experiment,
                                             struct diags *diags);

/* The path of the key that a word means: "job.optimizer" for "optimizer", "layout.micro_batch" for "mb"; dashes count as
 * underscores. Returns buffer, NULL if no part has such a key. */
const char *experiment_key_path(const char *word, char *buffer, size_t size);
/* Whether the value of a key, given by its full path ("cluster.pue", "cluster.gpu.hbm_rate"), is a quantity that need not be
 * whole; *dimension is then its dimension. */
bool experiment_key_quantity(const char *path, enum dimension *dimension);
/* The key with the same meaning in another form, by full path: "job.batch_tokens" for "job.global_batch"; an experiment may
 * have only one of the two. NULL: there is none. *both (may be NULL) is then a phrase about the two: "say the same thing". */
const char *experiment_key_instead(const char *path, const char **both);
/* Whether the keys of this part count one by one when it is set as a whole, --set 'job={...}'. */
bool experiment_key_counts_parts(const char *path);
/* Texts in the arena: "job.seq_len" of "job" and "seq_len"; and a key's path with the long name of a layout's key,
 * "layout.micro_batch" of "layout.mb". */
char *experiment_key_under(const char *part, const char *key, struct arena *arena);
const char *experiment_key_long(const char *path, struct arena *arena);
/* The key of a part nearest to an unknown word: "optimizer" for "optimzer"; NULL: none is near. */
const char *experiment_key_nearest(const char *word);

/* The effective configuration as one JSON text (what result files hold); caller frees. It is itself an
 * experiment file: loading it gives this experiment again. */
char *experiment_to_json(const struct experiment *experiment);

#endif
