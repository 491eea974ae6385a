/*
 * msim.h - predict how a training job runs on a GPU cluster, from another program.
 *
 *     struct msim_messages *messages = msim_messages_create();
 *     struct msim_experiment *experiment;
 *     if (msim_experiment_read("job.yaml", messages, &experiment) == MSIM_OK) {
 *         struct msim_plans *plans;
 *         if (msim_plans_search(experiment, NULL, messages, &plans) == MSIM_OK) {
 *             struct msim_plan best;
 *             msim_plans_get(plans, 0, &best);
 *             printf("%s: %.2f s, MFU %.3f\n", best.layout, best.step_s, best.mfu);
 *         }
 *         msim_plans_destroy(plans);
 *     }
 *
 * Build: cc program.c $(pkg-config --cflags --libs msim), or find_package(msim) and target msim::msim with CMake.
 *
 * Rules
 *
 *   handles    Opaque. A function that creates one writes it last and only on success; otherwise it writes NULL. Each has a
 *              destroy function, which accepts NULL. A handle outlives what it was made of: an experiment may be destroyed
 *              while its plans are in use.
 *   errors     What can fail returns an msim_status. The reasons, with file, line and column, are added to the msim_messages
 *              that the caller passes; NULL discards them. The library never prints and never ends the process, except:
 *   memory     When memory runs out the library calls the handler of msim_out_of_memory, which must not return (longjmp out
 *              of the library leaks what it holds). Without a handler it calls abort().
 *   threads    Calls on different handles may run at the same time. Calls on one handle may not, unless they take it const.
 *   units      SI: seconds, bytes, bytes per second; shares from 0 to 1; virtual time in whole nanoseconds.
 *   results    The same input gives the same bytes, whatever the number of threads.
 *   lifetime   Texts that a getter returns live as long as the handle they come from.
 *   data       Catalog entries are searched for in $MSIM_DATA, in the build tree, and in PREFIX/share/msim, where PREFIX is
 *              where the program or libmsim.so was installed.
 */
#ifndef MSIM_H
#define MSIM_H

#include <stddef.h>
#include <stdint.h>

#define MSIM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- in general ------------------------------------------------------------------------------------------------------------ */

enum msim_status {
    MSIM_OK = 0,
    MSIM_FAILED = 1,      /* failed while running: files, a thread */
    MSIM_USAGE = 2,       /* a wrong argument */
    MSIM_BAD_INPUT = 3,   /* a file or a value is wrong; the messages say where */
    MSIM_MISSING = 4,     /* this machine or build lacks a capability */
    MSIM_CHECK_FAILED = 5 /* a check did not hold, or no plan fits */
};

MSIM_API const char *msim_version(void); /* "0.2.0" */
MSIM_API const char *msim_status_text(enum msim_status status);

/* Called with the number of bytes that could not be allocated; must not return. NULL restores abort(). For the whole process;
 * call it before any other function. */
MSIM_API void msim_out_of_memory(void (*handler)(size_t bytes));

/* Releases a text that a function returned to its caller. NULL is allowed. */
MSIM_API void msim_free(char *text);

/* ---- messages: errors, warnings and notes ---------------------------------------------------------------------------------- */

enum msim_severity { MSIM_ERROR, MSIM_WARNING, MSIM_NOTE };

struct msim_message {
    enum msim_severity severity;
    const char *file; /* NULL: no position */
    int line, column; /* from 1; 0: unknown */
    const char *text; /* one sentence */
};

struct msim_messages;

MSIM_API struct msim_messages *msim_messages_create(void);
MSIM_API void msim_messages_destroy(struct msim_messages *messages);
MSIM_API size_t msim_messages_count(const struct msim_messages *messages); /* at most 100 are kept */
/* MSIM_USAGE when there is no message i. */
MSIM_API enum msim_status msim_messages_get(const struct msim_messages *messages, size_t i, struct msim_message *message);
MSIM_API void msim_messages_clear(struct msim_messages *messages);

/* ---- an experiment: model, cluster, job, layout ---------------------------------------------------------------------------- */

struct msim_experiment;

/* From a YAML or JSON file, as `msim plan FILE` reads it: a pipe or "-", standard input, too. It is read once. */
MSIM_API enum msim_status msim_experiment_read(const char *path, struct msim_messages *messages,
                                               struct msim_experiment **experiment);
/* From n bytes of such a text; messages call it `name`. */
MSIM_API enum msim_status msim_experiment_parse(const char *name, const char *text, size_t n, struct msim_messages *messages,
                                                struct msim_experiment **experiment);
/* Changes one key, "job.global_batch=3072"; the value may be any YAML. On an error the experiment stays as it was. */
MSIM_API enum msim_status msim_experiment_set(struct msim_experiment *experiment, const char *key_value,
                                              struct msim_messages *messages);
/* The effective configuration as JSON, which is an experiment itself. Release with msim_free. */
MSIM_API char *msim_experiment_json(const struct msim_experiment *experiment);
MSIM_API int msim_experiment_gpus(const struct msim_experiment *experiment);
MSIM_API void msim_experiment_destroy(struct msim_experiment *experiment);

/* ---- plans: the fastest layouts -------------------------------------------------------------------------------------------- */

enum { MSIM_PLANS_MAX = 100000 };

struct msim_plan_options {
    int keep;                 /* plans wanted, at most MSIM_PLANS_MAX; 0: 20 */
    int simulate;             /* how many of the best are simulated and ranked again; 0: 20, negative: none */
    int threads;              /* 0: one per CPU */
    const char *restrictions; /* "tp=8,zero=1..2" as in --space; NULL: what the experiment's layout fixes */
};

struct msim_plan {
    char layout[320]; /* "tp=8,pp=4,..." as every function here takes it */
    double step_s;
    double mfu;                        /* attention counted in full */
    double memory_bytes, memory_share; /* of the fullest rank; share of what a GPU can hold */
    double exposed_s;                  /* communication that nothing hides */
    double bubble_s;
    int simulated; /* 0: by the closed form */
};

struct msim_plans;

/* Searches the whole space, the experiment's layout where it fixes some dimensions. MSIM_BAD_INPUT, with what would help, when
 * nothing fits. `options` may be NULL. */
MSIM_API enum msim_status msim_plans_search(const struct msim_experiment *experiment, const struct msim_plan_options *options,
                                            struct msim_messages *messages, struct msim_plans **plans);
MSIM_API size_t msim_plans_count(const struct msim_plans *plans);
/* Plan i, best first; MSIM_USAGE when there is none. */
MSIM_API enum msim_status msim_plans_get(const struct msim_plans *plans, size_t i, struct msim_plan *plan);
/* How many layouts were examined, and how many of them are legal and fit. */
MSIM_API void msim_plans_examined(const struct msim_plans *plans, uint64_t *examined, uint64_t *legal, uint64_t *fit);
MSIM_API void msim_plans_destroy(struct msim_plans *plans);

/* ---- programs: a step as plain data ---------------------------------------------------------------------------------------- */

enum msim_detail { MSIM_CHUNK, MSIM_LAYER, MSIM_KERNEL };
enum msim_op_kind { MSIM_COMPUTE, MSIM_SEND, MSIM_RECEIVE, MSIM_COLLECTIVE, MSIM_JOIN };
enum { MSIM_OP_DEPENDENCIES = 4 };

struct msim_op {
    enum msim_op_kind kind;
    const char *stream;                     /* "compute", "tp", ... */
    char label[96];                         /* "forward 3.1": micro-batch 3, chunk 1 */
    int chunk;                              /* model chunk of the stage; -1: none */
    int micro_batch, layer;                 /* -1: none */
    int peer;                               /* rank that a message goes to or comes from; -1: none */
    int group_size;                         /* ranks of a collective; 0: none */
    double bytes;                           /* of a message, or of the full buffer of a collective */
    int dependencies[MSIM_OP_DEPENDENCIES]; /* operations of the same rank; -1: none */
};

struct msim_program;

/* The program of a layout; NULL: the experiment's own, searched where it is `auto`. With `all_ranks` 0 one rank of each pipeline
 * stage stands for all of it. */
MSIM_API enum msim_status msim_program_build(const struct msim_experiment *experiment, const char *layout,
                                             enum msim_detail detail, int all_ranks, struct msim_messages *messages,
                                             struct msim_program **program);
/* Messages match, collectives are entered in one order, nothing waits in a circle. MSIM_CHECK_FAILED otherwise. */
MSIM_API enum msim_status msim_program_verify(const struct msim_program *program, struct msim_messages *messages);
MSIM_API size_t msim_program_ranks(const struct msim_program *program);
MSIM_API size_t msim_program_ops(const struct msim_program *program, size_t rank);
MSIM_API enum msim_status msim_program_op(const struct msim_program *program, size_t rank, size_t i, struct msim_op *op);
MSIM_API void msim_program_destroy(struct msim_program *program);

/* ---- one step in virtual time ---------------------------------------------------------------------------------------------- */

struct msim_step_options {
    enum msim_detail detail;
    int all_ranks; /* simulate every rank; 0: one of each kind, which gives the same times */
    int timeline;  /* keep what each simulated operation did */
};

struct msim_step_result {
    double step_s;
    double mfu, hfu;               /* attention counted in full */
    double mfu_causal, hfu_causal; /* the causal half of it */
    double tokens_per_s;
    double memory_bytes; /* of the fullest rank */
    int memory_stage;    /* whose that is */
    int ranks_simulated;
};

struct msim_span {
    int rank; /* of the whole job; in a folded step the first of the ranks that it stands for */
    int stage;
    const char *stream;
    char label[96];
    int64_t start_ns, end_ns;
};

struct msim_step;

/* One training step of a layout, such as "tp=8,pp=4" or "auto"; NULL: the experiment's own, searched where it is `auto`.
 * `options` may be NULL. */
MSIM_API enum msim_status msim_step_simulate(const struct msim_experiment *experiment, const char *layout,
                                             const struct msim_step_options *options, struct msim_messages *messages,
                                             struct msim_step **step);
MSIM_API void msim_step_get(const struct msim_step *step, struct msim_step_result *result);
MSIM_API const char *msim_step_layout(const struct msim_step *step);
/* Where the time went: seconds per class of work, the average of the ranks; they add up to step_s. */
MSIM_API size_t msim_step_classes(void);
MSIM_API const char *msim_step_class_name(size_t i); /* "gemm", "bubble", ...; NULL: there is no class i */
MSIM_API double msim_step_class_s(const struct msim_step *step, size_t i);
/* The timeline in order of (rank, operation); 0 spans without options.timeline. */
MSIM_API size_t msim_step_spans(const struct msim_step *step);
MSIM_API enum msim_status msim_step_span(const struct msim_step *step, size_t i, struct msim_span *span);
/* The timeline for ui.perfetto.dev. */
MSIM_API enum msim_status msim_step_write_trace(const struct msim_step *step, const char *path, struct msim_messages *messages);
MSIM_API void msim_step_destroy(struct msim_step *step);

/* ---- flows on a fabric ----------------------------------------------------------------------------------------------------- */

struct msim_fabric;

/* "clos hosts:16 gpus:8 nics:8x400G tors:8 tor:32x400G/32x400G agg:64x400G"; sim/fabric/fabric.h has the grammar. */
MSIM_API enum msim_status msim_fabric_parse(const char *text, struct msim_messages *messages, struct msim_fabric **fabric);
/* The fabric of an experiment's cluster. */
MSIM_API enum msim_status msim_fabric_of_experiment(const struct msim_experiment *experiment, struct msim_messages *messages,
                                                    struct msim_fabric **fabric);
MSIM_API char *msim_fabric_text(const struct msim_fabric *fabric); /* the complete text; release with msim_free */
MSIM_API size_t msim_fabric_gpus(const struct msim_fabric *fabric);
MSIM_API size_t msim_fabric_links(const struct msim_fabric *fabric); /* directed */
/* "tor 17 port 3 -> agg 35"; size 96 suffices. Returns buffer, or NULL when there is no such link. */
MSIM_API char *msim_fabric_link_name(const struct msim_fabric *fabric, size_t link, char *buffer, size_t size);
/* Speed of a link as a share of its rate: 0 is down. Paths of later transfers go around links that are down. */
MSIM_API enum msim_status msim_fabric_set_speed(struct msim_fabric *fabric, size_t link, double speed);
MSIM_API void msim_fabric_destroy(struct msim_fabric *fabric);

enum msim_routing { MSIM_ECMP, MSIM_STATIC, MSIM_ADAPTIVE, MSIM_VALIANT };

/* Transfers that share links by max-min fairness, in virtual time that begins at 0. Latency is not counted. */
struct msim_flows;

/* On the fabric as it is now: later changes of the fabric have no effect. `seed` is that of the hash. */
MSIM_API enum msim_status msim_flows_create(const struct msim_fabric *fabric, enum msim_routing routing, uint64_t seed,
                                            struct msim_messages *messages, struct msim_flows **flows);
/* Begins a transfer now. *id counts up from 0. MSIM_BAD_INPUT when no path leads there. */
MSIM_API enum msim_status msim_flows_send(struct msim_flows *flows, size_t from_gpu, size_t to_gpu, double bytes,
                                          struct msim_messages *messages, size_t *id);
/* Bytes per second at the present; 0 when the transfer has ended. */
MSIM_API double msim_flows_rate(struct msim_flows *flows, size_t id);
MSIM_API int64_t msim_flows_now_ns(const struct msim_flows *flows);
/* Moves the clock to the next end of a transfer; *id is that transfer. Returns 0 when none is under way or will end. */
MSIM_API int msim_flows_next(struct msim_flows *flows, size_t *id);
/* Moves the clock to a time before that end: for transfers that begin later. MSIM_USAGE when the time lies in the past or beyond
 * the next end. */
MSIM_API enum msim_status msim_flows_advance(struct msim_flows *flows, int64_t time_ns);
/* Bytes per second on a link at the present. */
MSIM_API double msim_flows_link_load(struct msim_flows *flows, size_t link);
MSIM_API void msim_flows_destroy(struct msim_flows *flows);

/* ---- events in virtual time ------------------------------------------------------------------------------------------------ */

/* A clock and a queue of events, in order of (time, priority, order of scheduling). */
struct msim_events;

struct msim_event {
    int64_t time_ns;
    uint32_t priority; /* 0 to 3; 0 leaves first */
    uint64_t payload;
};

MSIM_API struct msim_events *msim_events_create(size_t n_pending); /* room for n_pending events; grows when needed */
/* MSIM_USAGE when the time lies before the present or the priority is above 3. */
MSIM_API enum msim_status msim_events_schedule(struct msim_events *events, int64_t time_ns, uint32_t priority, uint64_t payload);
/* Moves the clock to the next event. Returns 0 when none is pending. */
MSIM_API int msim_events_next(struct msim_events *events, struct msim_event *event);
MSIM_API int64_t msim_events_now_ns(const struct msim_events *events);
MSIM_API size_t msim_events_pending(const struct msim_events *events);
MSIM_API void msim_events_destroy(struct msim_events *events);

#ifdef __cplusplus
}
#endif

#endif
