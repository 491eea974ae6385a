/* profile_jax.c - Chrome traces of JAX: chooses threads and processes, and classifies their events. */
#include "traces/profile/profile_jax.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const char *event_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

bool event_time(const json_t *event, struct profile_step *time)
{
    const json_t *start = json_object_get(event, "ts"), *duration = json_object_get(event, "dur");
    double from = json_number_value(start) * 1e-6, length = json_number_value(duration) * 1e-6;
    *time = (struct profile_step){from, from + length};
    return strcmp(event_text(event, "ph"), "X") == 0 && json_is_number(start) && json_is_number(duration) &&
           profile_is_time(from, length);
}

/* --- names of processes and threads -------------------------------------------------------------------------------------- */

/* Cores beside those of the matrix units (SparseCore) have words behind the number and do not count. */
static enum jax_role role_of_process(const char *name)
{
    static const char *const devices[] = {"/device:GPU:", "/device:TPU:"};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(devices[i]);
        if (begins(name, devices[i]) && name[n] && strspn(name + n, "0123456789") == strlen(name + n))
            return i == 0 ? JAX_GPU : JAX_TPU;
    }
    return JAX_NONE;
}

static enum jax_role role_of_thread(const char *name)
{
    if (begins(name, "Stream #"))
        return JAX_STREAM;
    if (strcmp(name, "XLA Ops") == 0)
        return JAX_OPERATIONS;
    if (strcmp(name, "XLA Modules") == 0)
        return JAX_MODULES;
    return strcmp(name, "Steps") == 0 ? JAX_STEPS : JAX_NONE;
}

static void take_name(struct jax_trace *jax, const json_t *event)
{
    const char *what = event_text(event, "name"), *name = event_text(json_object_get(event, "args"), "name");
    bool of_process = strcmp(what, "process_name") == 0;
    enum jax_role role = of_process ? role_of_process(name) : strcmp(what, "thread_name") == 0 ? role_of_thread(name) : JAX_NONE;
    if (role == JAX_NONE)
        return;
    jax->names = memory_grow(jax->names, &jax->names_capacity, jax->n_names + 1, sizeof *jax->names);
    jax->names[jax->n_names++] = (struct jax_name){
        .process = json_integer_value(json_object_get(event, "pid")),
        .thread = of_process ? -1 : json_integer_value(json_object_get(event, "tid")),
        .role = role,
    };
}

static enum jax_role role_of(const struct jax_trace *jax, json_int_t process, json_int_t thread)
{
    for (size_t i = 0; i < jax->n_names; i++)
        if (jax->names[i].process == process && jax->names[i].thread == thread)
            return jax->names[i].role;
    return JAX_NONE;
}

/* --- work ------------------------------------------------------------------------------------------------------------- */

/* What an operation of XLA exchanges, in the words of other profilers; NULL if nothing. Permutations are what pipelines and rings
 * are made of. */
static const char *exchange_of(const char *operation)
{
    static const struct {
        const char *begins, *is;
    } exchanges[] = {
        {"all-to-all", "all_to_all"},
        {"ragged-all-to-all", "all_to_all"},
        {"all-reduce", "all_reduce"},
        {"all-gather", "all_gather"},
        {"reduce-scatter", "reduce_scatter"},
        {"collective-permute", "send"},
        {"collective-broadcast", "broadcast"},
        {"async-collective", "collective"},
        {"send", "send"},
        {"recv", "recv"},
    };
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++)
        if (begins(operation, exchanges[i].begins))
            return exchanges[i].is;
    return NULL;
}

static enum profile_kind kind_of_exchange(const char *name, const char *exchange, const struct layout *layout)
{
    const struct exchange_words words = {.kernel = name, .operation = exchange ? exchange : "", .group = ""};
    return profile_exchange_kind(&words, layout);
}

static enum profile_kind kind_of_kernel(const char *name, const char *operation, const struct layout *layout)
{
    if (begins(name, "Memcpy") || begins(name, "Memset"))
        return PROFILE_COPIES;
    enum profile_kind kind = profile_kernel_kind(name);
    return kind == PROFILE_EXCHANGE ? kind_of_exchange(name, exchange_of(operation), layout) : kind;
}

/* A TPU computes matrix products as convolutions. */
static enum profile_kind kind_of_operation(const char *name, const char *category, const struct layout *layout)
{
    const char *exchange = exchange_of(name);
    if (!exchange)
        exchange = exchange_of(category);
    if (exchange)
        return kind_of_exchange(name, exchange, layout);
    if (begins(category, "convolution"))
        return PROFILE_PRODUCTS;
    return begins(name, "copy") ? PROFILE_COPIES : profile_kernel_kind(name);
}

static bool holds_others(const char *operation)
{
    return begins(operation, "while") || begins(operation, "conditional") || begins(operation, "call");
}

static void take_module(struct jax_trace *jax, const char *name, struct profile_step time)
{
    size_t i = 0;
    while (i < jax->n_modules && strcmp(jax->modules[i].name, name) != 0)
        i++;
    if (i == jax->n_modules) {
        jax->modules = memory_grow(jax->modules, &jax->modules_capacity, i + 1, sizeof *jax->modules);
        jax->modules[jax->n_modules++] = (struct jax_module){.name = memory_copy_text(name)};
    }
    struct jax_module *module = &jax->modules[i];
    module->runs = memory_grow(module->runs, &module->runs_capacity, module->n_runs + 1, sizeof *module->runs);
    module->runs[module->n_runs++] = time;
    module->seconds += time.end_s - time.start_s;
}

/* Numbers are also written as texts. False: there is none. */
static bool number_of(const json_t *json, int64_t *number)
{
    const char *text = json_string_value(json);
    if (json_is_integer(json))
        *number = json_integer_value(json);
    else if (text && isdigit((unsigned char)*text))
        *number = strtoll(text, NULL, 10);
    else
        return false;
    return true;
}

static void take_work(struct jax_trace *jax, const json_t *event, enum jax_role device, enum jax_role line,
                      struct profile_step time, struct profile_builder *b)
{
    const json_t *args = json_object_get(event, "args");
    const char *name = event_text(event, "name");
    int64_t number;
    if (device == JAX_GPU && line == JAX_STREAM)
        profile_add_span(b, kind_of_kernel(name, event_text(args, "hlo_op"), b->layout), name, time);
    else if (device == JAX_TPU && line == JAX_OPERATIONS && !holds_others(name))
        profile_add_span(b, kind_of_operation(name, event_text(args, "hlo_category"), b->layout), name, time);
    else if (line == JAX_MODULES)
        take_module(jax, name, time);
    else if (line == JAX_STEPS && number_of(json_object_get(event, "name"), &number))
        profile_add_mark(b, true, number, time);
}

void jax_take_event(struct jax_trace *jax, const json_t *event, struct profile_builder *b)
{
    if (strcmp(event_text(event, "ph"), "M") == 0)
        take_name(jax, event);
    struct profile_step time;
    if (!event_time(event, &time))
        return;
    json_int_t process = json_integer_value(json_object_get(event, "pid"));
    enum jax_role device = role_of(jax, process, -1), line = JAX_NONE;
    int64_t number;
    if (device != JAX_NONE)
        line = role_of(jax, process, json_integer_value(json_object_get(event, "tid")));
    else if (number_of(json_object_get(json_object_get(event, "args"), "step_num"), &number))
        profile_add_mark(b, false, number, time);
    if (line == JAX_NONE)
        return;
    if (!jax->has_device) {
        jax->has_device = true;
        jax->device = process;
    }
    if (process == jax->device)
        take_work(jax, event, device, line, time, b);
    else
        jax->n_others += line == JAX_STREAM || (device == JAX_TPU && line == JAX_OPERATIONS);
}

/* --- the whole ------------------------------------------------------------------------------------------------------- */

void jax_mark_modules(const struct jax_trace *jax, struct profile_builder *b)
{
    const struct jax_module *longest = NULL;
    for (size_t i = 0; i < jax->n_modules; i++)
        if (!longest || jax->modules[i].seconds > longest->seconds)
            longest = &jax->modules[i];
    if (!longest || b->marks[true].n > 0 || (b->marks[false].n > 0 && b->marks[false].n != longest->n_runs))
        return;
    for (size_t i = 0; i < longest->n_runs; i++)
        profile_add_mark(b, true, (int64_t)i, longest->runs[i]);
}

void jax_free(struct jax_trace *jax)
{
    for (size_t i = 0; i < jax->n_modules; i++) {
        free(jax->modules[i].name);
        free(jax->modules[i].runs);
    }
    free(jax->modules);
    free(jax->names);
    *jax = (struct jax_trace){0};
}
