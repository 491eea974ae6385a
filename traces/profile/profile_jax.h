/*
 * profile_jax.h - Chrome traces that JAX (XLA's profiler) writes: *.trace.json.gz.
 *
 * Metadata events (ph "M") name processes and threads; complete events (ph "X") have no categories. Of those count:
 *
 *   threads "Stream #..." of a process /device:GPU:N
 *       kernels, by their names as of other profilers; copies are called Memcpy... and Memset...
 *   thread "XLA Ops" of a process /device:TPU:N
 *       operations of XLA, by their names and args.hlo_category; loops and calls hold others, which count in their place
 *   thread "Steps" of either
 *       where steps begin; events are called by their numbers
 *   thread "XLA Modules" of either
 *       runs of compiled functions: those of the function that takes most of the time are steps where no thread "Steps"
 *       tells, and the host marks as many or none
 *   args.step_num anywhere else
 *       jax.profiler.StepTraceAnnotation: where the host begins a step
 *
 * Other threads of devices ("Framework Ops", on GPUs "XLA Ops", ...) tell the same again. What an exchange does is told by its
 * operation (args.hlo_op, on TPUs the name), its group by nothing.
 */
#ifndef MSIM_TRACES_PROFILE_PROFILE_JAX_H
#define MSIM_TRACES_PROFILE_PROFILE_JAX_H

#include <jansson.h>

#include "traces/profile/profile_internal.h"

/* The text of a member; "" if it has none. */
const char *event_text(const json_t *object, const char *key);
/* When a complete event (ph "X") was; false for other events and impossible times. */
bool event_time(const json_t *event, struct profile_step *time);

/* What a process or a thread is. */
enum jax_role { JAX_NONE, JAX_GPU, JAX_TPU, JAX_STREAM, JAX_OPERATIONS, JAX_MODULES, JAX_STEPS };

/* What has been read of one trace; begins as zeros. */
struct jax_trace {
    struct jax_name {
        json_int_t process, thread; /* thread -1: the process itself */
        enum jax_role role;
    } * names;
    size_t n_names, names_capacity;
    struct jax_module {
        char *name;
        double seconds;
        struct profile_step *runs;
        size_t n_runs, runs_capacity;
    } * modules;
    size_t n_modules, modules_capacity;
    json_int_t device; /* the process whose work was first; others' is left out */
    bool has_device;
    size_t n_others; /* launches on other devices */
};

/* Takes what counts of one event without a category. */
void jax_take_event(struct jax_trace *jax, const json_t *event, struct profile_builder *b);
/* Steps that modules tell. Call once, behind the last event. */
void jax_mark_modules(const struct jax_trace *jax, struct profile_builder *b);
void jax_free(struct jax_trace *jax);

#endif
