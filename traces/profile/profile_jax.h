/*
 * profile_jax.h - Chrome traces of JAX (XLA's profiler): *.trace.json.gz.
 *
 * Metadata events (ph "M") name processes and threads; complete events (ph "X") have no categories. These count:
 *
 *     threads "Stream #..." of a process /device:GPU:N
 *         kernels, by their names as for other profilers; copies are Memcpy... and Memset...
 *     thread "XLA Ops" of a process /device:TPU:N
 *         operations of XLA, by their names and args.hlo_category; loops and calls contain others, which count instead
 *     thread "Steps" of either
 *         beginnings of steps; events have their numbers as names
 *     thread "XLA Modules" of either
 *         runs of compiled functions. Without a thread "Steps", and if the host marks as many or none, the runs of the function
 * with the most time are the steps args.step_num anywhere else jax.profiler.StepTraceAnnotation: the host begins a step
 *
 * Other threads of devices ("Framework Ops", on GPUs "XLA Ops", ...) repeat the same work. The operation of an exchange
 * (args.hlo_op, on TPUs the name) says what it does; nothing names its group.
 */
#ifndef MSIM_TRACES_PROFILE_PROFILE_JAX_H
#define MSIM_TRACES_PROFILE_PROFILE_JAX_H

#include <jansson.h>

#include "traces/profile/profile_internal.h"

/* The text of a member; "" if it has none. */
const char *event_text(const json_t *object, const char *key);
/* The time of a complete event (ph "X"); false for other events and impossible times. */
bool event_time(const json_t *event, struct profile_step *time);

/* The role of a process or thread. */
enum jax_role { JAX_NONE, JAX_GPU, JAX_TPU, JAX_STREAM, JAX_OPERATIONS, JAX_MODULES, JAX_STEPS };

/* What has been read of one trace; zero at the start. */
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
    json_int_t device; /* the process with the first work; the work of others is left out */
    bool has_device;
    size_t n_others; /* launches on other devices */
};

/* Adds the work of one event without a category. */
void jax_take_event(struct jax_trace *jax, const json_t *event, struct profile_builder *b);
/* Adds the steps of modules. Call once, after the last event. */
void jax_mark_modules(const struct jax_trace *jax, struct profile_builder *b);
void jax_free(struct jax_trace *jax);

#endif
