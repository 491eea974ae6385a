/* profile_torch.c - Chrome traces that torch.profiler (Kineto) exports; events without a category are JAX's. */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/memory.h"
#include "traces/profile/profile_jax.h"

/* A position in the text; the events of a large trace are parsed one at a time, so that one is in memory at a time. */
struct cursor {
    const char *text, *path;
    size_t at, n;
    struct diags *diags;
};

struct parser {
    struct cursor cursor;
    struct profile_builder *builder;
    struct jax_trace jax;
    json_int_t device; /* of the first launch; -1: none yet */
    size_t n_others;   /* launches on other devices */
    size_t n_host;     /* events of the host */
    bool has_mtia;     /* Meta's accelerator recorded events */
    size_t told;       /* position of the last report to the watch */
};

static struct place place_at(const struct cursor *c, size_t offset)
{
    struct place at = {.file = c->path, .line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < c->n; i++) {
        at.column++;
        if (c->text[i] == '\n') {
            at.line++;
            at.column = 1;
        }
    }
    return at;
}

static bool wrong(struct cursor *c, size_t offset, const char *what)
{
    diag_error(c->diags, place_at(c, offset), "%s; a trace that torch.profiler (export_chrome_trace) or JAX writes is expected",
               what);
    return false;
}

/* The next character that is not space; '\0' at the end. */
static char peek(struct cursor *c)
{
    while (c->at < c->n && isspace((unsigned char)c->text[c->at]))
        c->at++;
    return c->at < c->n ? c->text[c->at] : '\0';
}

static bool expect(struct cursor *c, char character)
{
    if (peek(c) != character) {
        char what[32];
        snprintf(what, sizeof what, "'%c' is missing here", character);
        return wrong(c, c->at, what);
    }
    c->at++;
    return true;
}

/* One JSON value; NULL after saying what is wrong with it. */
static json_t *value(struct cursor *c)
{
    json_error_t error;
    peek(c);
    json_t *json = json_loadb(c->text + c->at, c->n - c->at, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!json) {
        wrong(c, c->at + (error.position > 0 ? (size_t)error.position : 0), error.text);
        return NULL;
    }
    c->at += (size_t)error.position;
    return json;
}

/* --- events -------------------------------------------------------------------------------------------------------- */

static enum profile_kind kind_of_event(const json_t *event, const char *name, const struct layout *layout)
{
    const json_t *args = json_object_get(event, "args");
    enum profile_kind kind = profile_kernel_kind(name);
    if (kind != PROFILE_EXCHANGE)
        return kind;
    const struct exchange_words words = {.kernel = name,
                                         .operation = event_text(args, "Collective name"),
                                         .group = event_text(args, "Process Group Description"),
                                         .ranks = (int)json_integer_value(json_object_get(args, "Group size"))};
    return profile_exchange_kind(&words, layout);
}

/* Before PyTorch 1.12 categories were spelled Kernel, Memcpy, Memset. */
static bool is_copy(const char *category)
{
    return strcmp(category, "gpu_memcpy") == 0 || strcmp(category, "gpu_memset") == 0 || strcmp(category, "Memcpy") == 0 ||
           strcmp(category, "Memset") == 0;
}

/* Was it launched on another device than the first? A process may drive several. */
static bool is_of_other_device(struct parser *r, const json_t *event)
{
    const json_t *device = json_object_get(json_object_get(event, "args"), "device");
    if (!json_is_integer(device))
        return false;
    if (r->device < 0)
        r->device = json_integer_value(device);
    bool other = json_integer_value(device) != r->device;
    r->n_others += other;
    return other;
}

static void add_work(struct parser *r, const json_t *event, enum profile_kind kind, struct profile_step time)
{
    const json_t *correlation = json_object_get(json_object_get(event, "args"), "correlation");
    profile_add_span(r->builder, kind, event_text(event, "name"), time);
    if (json_is_integer(correlation))
        profile_correlate_span(r->builder, json_integer_value(correlation));
}

static void take_event(struct parser *r, const json_t *event)
{
    const char *category = event_text(event, "cat"), *name = event_text(event, "name");
    struct profile_step time;
    if (!event_time(event, &time))
        return;
    if (strncmp(name, "ProfilerStep#", 13) == 0)
        profile_add_mark(r->builder, strcmp(category, "gpu_user_annotation") == 0, strtoll(name + 13, NULL, 10), time);
    else if (strcasecmp(category, "kernel") == 0 && !is_of_other_device(r, event))
        add_work(r, event, kind_of_event(event, name, r->builder->layout), time);
    else if (is_copy(category) && !is_of_other_device(r, event))
        add_work(r, event, PROFILE_COPIES, time);
    else
        r->has_mtia = r->has_mtia || strncmp(category, "mtia_", 5) == 0;
}

/* What the trace shows instead of a device's work, for the error. */
static const char *without_work(const struct parser *r)
{
    if (r->has_mtia)
        return "this is a trace of an MTIA accelerator, whose events msim does not read: it reads kernels of NVIDIA and AMD GPUs "
               "and "
               "of TPUs";
    if (r->n_host > 0)
        return "this trace shows the host alone, no kernel and no copy; record the device too (ProfilerActivity.CUDA)";
    return NULL;
}

/* Behind the object that begins here; 0 when it does not end. */
static size_t object_end(const struct cursor *c)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = c->at; i < c->n; i++) {
        char character = c->text[i];
        if (quoted) {
            if (character == '\\')
                i++;
            else if (character == '"')
                quoted = false;
        } else if (character == '"') {
            quoted = true;
        } else if (character == '{') {
            depth++;
        } else if (character == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* The number behind a key of the object text [at, end); false if there is none. */
static bool number_behind(const char *at, const char *end, const char *key, double *number)
{
    const char *found = memmem(at, (size_t)(end - at), key, strlen(key));
    if (!found)
        return false;
    char *rest;
    found += strlen(key) + strspn(found + strlen(key), " :");
    *number = strtod(found, &rest);
    return rest > found && rest < end && isfinite(*number);
}

/* A call of the CUDA or HIP runtime: the launch of the kernel with the same correlation number. */
static void take_launch(struct parser *r, const char *at, const char *end)
{
    double correlation, at_us;
    if (number_behind(at, end, "\"correlation\"", &correlation) && fabs(correlation) < 1e15 &&
        number_behind(at, end, "\"ts\"", &at_us))
        profile_add_launch(r->builder, (int64_t)correlation, 1e-6 * at_us);
}

/* Most events are the host's: their objects are not parsed, only their ends are found. Old releases mark steps as operations of
 * the host, and begin the names of categories with capital letters. */
static bool pass_event_of_host(struct parser *r)
{
    static const struct {
        const char *name;
        bool launches;
    } categories[] = {{"cpu_op", false},           {"cuda_runtime", true}, {"cuda_driver", true},       {"hip_runtime", true},
                      {"Runtime", true},           {"ac2g", false},        {"python_function", false},  {"fwdbwd", false},
                      {"async_cpu_to_gpu", false}, {"overhead", false},    {"forward_backward", false}, {"Operator", false}};
    struct cursor *c = &r->cursor;
    size_t end = peek(c) == '{' ? object_end(c) : 0;
    const char *at = end ? memmem(c->text + c->at, end - c->at, "\"cat\"", 5) : NULL;
    if (!at || memmem(c->text + c->at, end - c->at, "\"ProfilerStep#", 14))
        return false;
    for (at += 5; *at == ' ' || *at == ':'; at++) {
    }
    for (size_t i = 0; *at == '"' && i < sizeof categories / sizeof *categories; i++) {
        size_t length = strlen(categories[i].name);
        if (strncmp(at + 1, categories[i].name, length) != 0 || at[1 + length] != '"')
            continue;
        if (categories[i].launches)
            take_launch(r, c->text + c->at, c->text + end);
        c->at = end;
        r->n_host++;
        return true;
    }
    return false;
}

/* Kineto prints ratios of nothing as C does (inf, -nan), which is no JSON: zeros of the same length in their places. Returns
 * whether there were any. */
static bool scrub(char *text, size_t n)
{
    static const char *const words[] = {"-infinity", "infinity", "-inf", "inf", "-nan", "nan"};
    bool quoted = false, found = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        for (size_t w = 0; !quoted && i < n && w < sizeof words / sizeof *words; w++) {
            size_t length = strlen(words[w]);
            if (length > n - i || strncasecmp(text + i, words[w], length) != 0)
                continue;
            memset(text + i, ' ', length);
            text[i] = '0';
            found = true;
        }
    }
    return found;
}

/* The event that begins here, if its numbers are all that is wrong with it; NULL otherwise. */
static json_t *scrubbed_event(struct cursor *c)
{
    size_t end = object_end(c), n = end ? end - c->at : 0;
    if (n == 0)
        return NULL;
    char *text = memory_new(n, 1);
    memcpy(text, c->text + c->at, n);
    json_t *event = scrub(text, n) ? json_loadb(text, n, JSON_ALLOW_NUL, NULL) : NULL;
    free(text);
    if (event)
        c->at = end;
    return event;
}

/* NULL after saying what is wrong. */
static json_t *event_of_device(struct cursor *c)
{
    json_error_t error;
    if (peek(c) != '{')
        return value(c);
    json_t *event = json_loadb(c->text + c->at, c->n - c->at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &error);
    if (event) {
        c->at += (size_t)error.position;
        return event;
    }
    event = scrubbed_event(c);
    return event ? event : value(c);
}

static bool read_event(struct parser *r)
{
    if (pass_event_of_host(r))
        return true;
    json_t *event = event_of_device(&r->cursor);
    if (!event)
        return false;
    take_event(r, event);
    if (!json_object_get(event, "cat"))
        jax_take_event(&r->jax, event, r->builder);
    json_decref(event);
    return true;
}

static void tell(struct parser *r)
{
    const struct cursor *c = &r->cursor;
    if (c->at - r->told < WATCH_BYTES)
        return;
    watch_tell(r->builder->watch, (double)c->at, (double)c->n);
    r->told = c->at;
}

static bool read_events(struct parser *r)
{
    struct cursor *c = &r->cursor;
    if (!expect(c, '['))
        return false;
    while (peek(c) != ']') {
        if (!read_event(r))
            return false;
        tell(r);
        if (peek(c) == ',')
            c->at++;
        else if (peek(c) != ']')
            return wrong(c, c->at, "',' or ']' is missing here");
    }
    c->at++;
    return true;
}

/* Properties beside the events: whose trace it is. */
static void take_property(struct profile *p, const char *key, const json_t *json)
{
    if (strcmp(key, "deviceProperties") == 0)
        snprintf(p->gpu, sizeof p->gpu, "%s", event_text(json_array_get(json, 0), "name"));
    if (strcmp(key, "distributedInfo") == 0 && json_is_integer(json_object_get(json, "rank"))) {
        p->rank = (int)json_integer_value(json_object_get(json, "rank"));
        p->world = (int)json_integer_value(json_object_get(json, "world_size"));
    }
}

static bool read_member(struct parser *r)
{
    struct cursor *c = &r->cursor;
    if (peek(c) != '"')
        return wrong(c, c->at, "a key is missing here");
    json_t *key = value(c);
    bool good = key && expect(c, ':');
    if (good && strcmp(json_string_value(key), "traceEvents") == 0) {
        good = read_events(r);
    } else if (good) {
        json_t *json = value(c);
        good = json != NULL;
        if (good)
            take_property(&r->builder->profile, json_string_value(key), json);
        json_decref(json);
    }
    json_decref(key);
    return good;
}

static bool read_trace(struct parser *r)
{
    struct cursor *c = &r->cursor;
    if (c->n >= 3 && memcmp(c->text, "\xEF\xBB\xBF", 3) == 0) /* byte-order mark */
        c->at = 3;
    if (peek(c) == '[')
        return read_events(r);
    if (!expect(c, '{'))
        return false;
    while (peek(c) != '}') {
        if (!read_member(r))
            return false;
        if (peek(c) == ',')
            c->at++;
        else if (peek(c) != '}')
            return wrong(c, c->at, "',' or '}' is missing here");
    }
    return true;
}

enum status profile_from_torch(const char *text, size_t n, const char *path, struct profile_builder *b, struct diags *diags)
{
    struct parser r = {.cursor = {.text = text, .path = path, .n = n, .diags = diags}, .builder = b, .device = -1};
    bool good = read_trace(&r);
    b->without_work = without_work(&r);
    if (good)
        jax_mark_modules(&r.jax, b);
    if (good && r.n_others > 0)
        diag_warning(diags, (struct place){.file = path},
                     "%zu launches on other devices than %" JSON_INTEGER_FORMAT " are left out", r.n_others, r.device);
    if (good && r.jax.n_others > 0)
        diag_warning(diags, (struct place){.file = path}, "%zu launches on other devices than the first are left out",
                     r.jax.n_others);
    jax_free(&r.jax);
    if (!good)
        return STATUS_BAD_INPUT;
    watch_tell(b->watch, (double)n, (double)n);
    return STATUS_OK;
}
