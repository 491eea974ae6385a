#include "traces/profile.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/profile_reading.h"

/* Traces of large steps have millions of events of some 300 bytes. */
#define PROFILE_BYTES_MAX ((size_t)8 << 30)

static const struct {
    const char *name, *text;
} kinds[N_PROFILE_KINDS] = {
#define X(id, name_, text_) [PROFILE_##id] = {(name_), (text_)},
    PROFILE_KINDS(X)
#undef X
};

const char *profile_kind_name(enum profile_kind kind)
{
    return kinds[kind].name;
}

const char *profile_kind_text(enum profile_kind kind)
{
    return kinds[kind].text;
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* A position in the text; the events of a large trace are parsed one at a time, so that one is in memory at a time. */
struct cursor {
    const char *text, *path;
    size_t at, n;
    struct diags *diags;
};

struct reading {
    struct cursor cursor;
    const struct layout *layout;
    struct profile *profile;
    size_t spans_capacity, kernels_capacity, steps_capacity, marks_capacity;
    struct profile_step *marks; /* on the host's clock; profile->steps are those on the device's */
    size_t n_marks;
    struct kernel_index {
        uint64_t hash;
        size_t kernel; /* one more than its number; 0: free */
    } * index;         /* of names, by open addressing */
    size_t index_size;
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
    diag_error(c->diags, place_at(c, offset), "%s; a trace that torch.profiler exports (export_chrome_trace) is expected", what);
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

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static void index_put(struct reading *r, uint64_t hash, size_t kernel)
{
    size_t at = hash & (r->index_size - 1);
    while (r->index[at].kernel)
        at = (at + 1) & (r->index_size - 1);
    r->index[at] = (struct kernel_index){hash, kernel + 1};
}

static void index_grow(struct reading *r)
{
    struct kernel_index *old = r->index;
    size_t old_size = r->index_size;
    r->index_size = old_size ? 2 * old_size : 1024;
    r->index = memory_new(r->index_size, sizeof *r->index);
    for (size_t i = 0; i < old_size; i++)
        if (old[i].kernel)
            index_put(r, old[i].hash, old[i].kernel - 1);
    free(old);
}

static struct profile_kernel *kernel_named(struct reading *r, const char *name, enum profile_kind kind)
{
    struct profile *p = r->profile;
    uint64_t hash = hash_of(name) ^ (uint64_t)kind; /* one name of NCCL serves several groups */
    if (2 * (p->n_kernels + 1) > r->index_size)
        index_grow(r);
    for (size_t at = hash & (r->index_size - 1); r->index[at].kernel; at = (at + 1) & (r->index_size - 1)) {
        struct profile_kernel *kernel = &p->kernels[r->index[at].kernel - 1];
        if (r->index[at].hash == hash && kernel->kind == kind && strcmp(kernel->name, name) == 0)
            return kernel;
    }
    index_put(r, hash, p->n_kernels);
    p->kernels = memory_grow(p->kernels, &r->kernels_capacity, p->n_kernels + 1, sizeof *p->kernels);
    p->kernels[p->n_kernels] = (struct profile_kernel){.name = memory_copy_text(name), .kind = kind};
    return &p->kernels[p->n_kernels++];
}

static enum profile_kind kind_of_event(const json_t *event, const char *name, const struct layout *layout)
{
    const json_t *args = json_object_get(event, "args");
    enum profile_kind kind = profile_kernel_kind(name);
    if (kind != PROFILE_EXCHANGE)
        return kind;
    const struct exchange_words words = {.kernel = name,
                                         .operation = text_of(args, "Collective name"),
                                         .group = text_of(args, "Process Group Description"),
                                         .ranks = (int)json_integer_value(json_object_get(args, "Group size"))};
    return profile_exchange_kind(&words, layout);
}

static void add_span(struct reading *r, enum profile_kind kind, const char *name, struct profile_step time)
{
    struct profile *p = r->profile;
    p->spans = memory_grow(p->spans, &r->spans_capacity, p->n_spans + 1, sizeof *p->spans);
    p->spans[p->n_spans++] = (struct profile_span){time.start_s, time.end_s, kind};
    struct profile_kernel *kernel = kernel_named(r, name, kind);
    kernel->launches++;
    kernel->seconds += time.end_s - time.start_s;
}

static void add_mark(struct reading *r, bool on_device, struct profile_step time)
{
    struct profile *p = r->profile;
    if (on_device) {
        p->steps = memory_grow(p->steps, &r->steps_capacity, p->n_steps + 1, sizeof *p->steps);
        p->steps[p->n_steps++] = time;
    } else {
        r->marks = memory_grow(r->marks, &r->marks_capacity, r->n_marks + 1, sizeof *r->marks);
        r->marks[r->n_marks++] = time;
    }
}

/* Some 3,000 years from the epoch, and eleven days. */
static bool is_time(double start_s, double length_s)
{
    return start_s > -1e11 && start_s < 1e11 && length_s >= 0 && length_s < 1e6;
}

static void take_event(struct reading *r, const json_t *event)
{
    const char *category = text_of(event, "cat"), *name = text_of(event, "name");
    const json_t *start = json_object_get(event, "ts"), *duration = json_object_get(event, "dur");
    double from = json_number_value(start) * 1e-6, length = json_number_value(duration) * 1e-6;
    if (strcmp(text_of(event, "ph"), "X") != 0 || !json_is_number(start) || !json_is_number(duration) || !is_time(from, length))
        return;
    struct profile_step time = {from, from + length};
    if (strncmp(name, "ProfilerStep#", 13) == 0)
        add_mark(r, strcmp(category, "gpu_user_annotation") == 0, time);
    else if (strcmp(category, "kernel") == 0)
        add_span(r, kind_of_event(event, name, r->layout), name, time);
    else if (strcmp(category, "gpu_memcpy") == 0 || strcmp(category, "gpu_memset") == 0)
        add_span(r, PROFILE_COPIES, name, time);
}

static bool read_events(struct reading *r)
{
    struct cursor *c = &r->cursor;
    if (!expect(c, '['))
        return false;
    while (peek(c) != ']') {
        json_t *event = value(c);
        if (!event)
            return false;
        take_event(r, event);
        json_decref(event);
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
        snprintf(p->gpu, sizeof p->gpu, "%s", text_of(json_array_get(json, 0), "name"));
    if (strcmp(key, "distributedInfo") == 0 && json_is_integer(json_object_get(json, "rank"))) {
        p->rank = (int)json_integer_value(json_object_get(json, "rank"));
        p->world = (int)json_integer_value(json_object_get(json, "world_size"));
    }
}

static bool read_member(struct reading *r)
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
            take_property(r->profile, json_string_value(key), json);
        json_decref(json);
    }
    json_decref(key);
    return good;
}

static bool read_trace(struct reading *r)
{
    struct cursor *c = &r->cursor;
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

/* --- steps --------------------------------------------------------------------------------------------------------- */

static int compare_steps(const void *left, const void *right)
{
    const struct profile_step *a = left, *b = right;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

static int compare_kernels(const void *left, const void *right)
{
    const struct profile_kernel *a = left, *b = right;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : (int)a->kind - (int)b->kind;
}

static bool works_within(const struct profile *p, struct profile_step step)
{
    for (size_t i = 0; i < p->n_spans; i++)
        if (p->spans[i].start_s < step.end_s && p->spans[i].end_s > step.start_s)
            return true;
    return false;
}

/* A step ends where the next begins; those in which the device did nothing are left out. */
static void settle_steps(struct reading *r)
{
    struct profile *p = r->profile;
    if (p->n_steps == 0) {
        free(p->steps);
        p->steps = r->marks;
        p->n_steps = r->n_marks;
        r->marks = NULL;
    }
    qsort(p->steps, p->n_steps, p->n_steps ? sizeof *p->steps : 1, compare_steps);
    size_t kept = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        struct profile_step step = p->steps[i];
        if (i + 1 < p->n_steps)
            step.end_s = p->steps[i + 1].start_s;
        if (step.end_s > step.start_s && works_within(p, step))
            p->steps[kept++] = step;
    }
    p->n_steps = kept;
    p->marked = kept > 0;
    if (p->marked)
        return;
    struct profile_step whole = {INFINITY, -INFINITY};
    for (size_t i = 0; i < p->n_spans; i++) {
        whole.start_s = fmin(whole.start_s, p->spans[i].start_s);
        whole.end_s = fmax(whole.end_s, p->spans[i].end_s);
    }
    free(p->steps);
    p->steps = memory_new(1, sizeof *p->steps);
    p->steps[p->n_steps++] = whole;
}

enum status profile_parse(const char *text, size_t n, const char *path, const struct layout *layout, struct profile *profile,
                          struct diags *diags)
{
    struct profile read = {.rank = -1};
    struct reading r = {.cursor = {.text = text, .path = path, .n = n, .diags = diags}, .layout = layout, .profile = &read};
    bool good = read_trace(&r);
    if (good && read.n_spans == 0) {
        diag_error(diags, (struct place){.file = path},
                   "no kernel and no copy is in this trace; record with ProfilerActivity.CUDA, and export a step that ran");
        good = false;
    }
    if (good) {
        settle_steps(&r);
        qsort(read.kernels, read.n_kernels, sizeof *read.kernels, compare_kernels);
        *profile = read;
    } else {
        profile_free(&read);
    }
    free(r.marks);
    free(r.index);
    return good ? STATUS_OK : STATUS_BAD_INPUT;
}

enum status profile_read(const char *path, const struct layout *layout, struct profile *profile, struct diags *diags)
{
    char *text;
    size_t n;
    enum status status = file_read(path, PROFILE_BYTES_MAX, &text, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = profile_parse(text, n, path, layout, profile, diags);
    free(text);
    return status;
}

void profile_free(struct profile *profile)
{
    for (size_t i = 0; i < profile->n_kernels; i++)
        free(profile->kernels[i].name);
    free(profile->kernels);
    free(profile->spans);
    free(profile->steps);
    *profile = (struct profile){.rank = -1};
}
