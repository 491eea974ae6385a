#include "traces/launch/megatron/megatron_log.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/order.h"

enum { ESCAPE = '\033' };

struct line {
    const char *start, *end;
    int number;
    bool goes_on; /* a return ends it, as in progress bars: what follows stands on the same line */
};

struct iteration {
    double seconds;
    double batch; /* 0: not said */
};

struct log_reader {
    const char *name, *end; /* of the log */
    struct launch_words *words;
    struct launch_log *log;
    struct diags *diags;
    struct iteration *iterations;
    size_t capacity;
    bool in_block, in_second, ended;
    size_t n_first; /* words of the first block */
    size_t second;  /* words of the second one that agree */
};

static const char *find_in(const char *start, const char *end, const char *what)
{
    return memmem(start, (size_t)(end - start), what, strlen(what));
}

static bool begins_block(const struct line *line)
{
    return find_in(line->start, line->end, "--- arguments ---") != NULL;
}

static bool ends_block(const struct line *line)
{
    return find_in(line->start, line->end, "--- end of arguments ---") != NULL;
}

/* --- arguments --- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "  name ........ value", behind whatever; where the name leaves no room for dots it is a long one. */
static bool argument_of(const struct line *line, const char **name, size_t *n_name, const char **value, size_t *n_value)
{
    enum { LONG_NAME = 46 };
    const char *p = find_in(line->start, line->end, " .");
    for (; p; p = find_in(p + 1, line->end, " .")) {
        const char *q = p + 1;
        while (q < line->end && *q == '.')
            q++;
        if (q == line->end || *q == ' ')
            break;
    }
    const char *name_end = p, *rest = p ? p + 1 : NULL;
    while (p && rest < line->end && *rest == '.')
        rest++;
    if (!p) {
        const char *q = line->end;
        while (q > line->start && q[-1] != ' ')
            q--;
        rest = q;
        while (q > line->start && q[-1] == ' ')
            q--;
        name_end = q;
    }
    const char *start = name_end;
    while (start > line->start && is_name(start[-1]))
        start--;
    const char *end = line->end;
    while (rest < end && *rest == ' ')
        rest++;
    while (end > rest && isspace((unsigned char)end[-1]))
        end--;
    *name = start;
    *n_name = (size_t)(name_end - start);
    *value = rest;
    *n_value = (size_t)(end - rest);
    return *n_name > 0 && !isdigit((unsigned char)*start) && (p || *n_name >= LONG_NAME);
}

static const struct launch_word *find_word(const struct launch_words *words, size_t from, const char *name, size_t n)
{
    for (size_t i = from; i < words->n; i++)
        if (words->items[i].by_dest && strlen(words->items[i].name) == n && memcmp(words->items[i].name, name, n) == 0)
            return &words->items[i];
    return NULL;
}

static bool is_layout_word(const char *name, size_t n)
{
    static const char *const telling[] = {"tensor_model_parallel_size",
                                          "pipeline_model_parallel_size",
                                          "micro_batch_size",
                                          "global_batch_size",
                                          "num_layers",
                                          "hidden_size",
                                          "world_size",
                                          "seq_length"};
    for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++)
        if (strlen(telling[i]) == n && memcmp(telling[i], name, n) == 0)
            return true;
    return false;
}

static void read_argument(struct log_reader *r, const struct line *line)
{
    const char *name, *value;
    size_t n_name, n_value;
    if (!argument_of(line, &name, &n_name, &value, &n_value))
        return;
    struct place at = {r->name, line->number, (int)(name - line->start) + 1};
    if (!r->in_second) {
        launch_words_add(r->words, (struct launch_word){.name = launch_text(r->words, name, n_name),
                                                        .value = launch_text(r->words, value, n_value),
                                                        .at = at,
                                                        .by_dest = true});
        return;
    }
    const struct launch_word *before = find_word(r->words, 0, name, n_name);
    bool differs = before && (strlen(before->value) != n_value || memcmp(before->value, value, n_value) != 0);
    if (!differs || !is_layout_word(name, n_name) || r->ended)
        return;
    diag_warning(r->diags, at, "another job begins here (%s is no longer %.40s); the rest is not read", before->name,
                 before->value);
    r->ended = true;
}

/* Words of the padding are said when the tokenizer is built, behind the arguments: "... dummy tokens (new size: 129024)". */
static void read_padding(struct log_reader *r, const struct line *line)
{
    static const char key[] = "dummy tokens (new size: ";
    const char *p = find_in(line->start, line->end, key);
    if (!p)
        return;
    p += strlen(key);
    size_t n = 0;
    while (p + n < line->end && isdigit((unsigned char)p[n]))
        n++;
    struct launch_word word = {
        .name = "padded_vocab_size", .by_dest = true, .at = {r->name, line->number, (int)(p - line->start) + 1}};
    word.value = launch_text(r->words, p, n);
    if (n)
        launch_words_add(r->words, word);
}

/* A maker and a model, which has a digit soon: "NVIDIA A100-SXM4-80GB"; not "NVIDIA Release". */
static void read_gpu(struct log_reader *r, const struct line *line)
{
    static const char *const makers[] = {"NVIDIA ", "AMD Instinct "};
    struct launch_log *log = r->log;
    for (int i = 0; i < 2 && !log->gpu[0]; i++) {
        const char *name = find_in(line->start, line->end, makers[i]);
        const char *model = name ? name + strlen(makers[i]) : NULL;
        size_t n = 0, left = name ? (size_t)(line->end - model) : 0;
        while (n < left && n + 24 < sizeof log->gpu &&
               (isalnum((unsigned char)model[n]) || model[n] == '-' ||
                (model[n] == ' ' && n + 1 < left && isalnum((unsigned char)model[n + 1]))))
            n++;
        if (n < 2 || (!isdigit((unsigned char)model[1]) && (n < 3 || !isdigit((unsigned char)model[2]))))
            continue;
        snprintf(log->gpu, sizeof log->gpu, "%s%.*s", makers[i], (int)n, model);
        log->gpu_line = line->number;
    }
}

/* --- iterations --- */

/* A number, perhaps with K, M, B or T behind it as nanotron writes them; -1: none, or cut off where the log is (`whole`). */
static double number_at(const char *p, const char *end, const char *whole)
{
    char text[40];
    size_t n = 0;
    while (p < end && (*p == ' ' || *p == '='))
        p++;
    while (p < end && n + 1 < sizeof text && strchr("0123456789.eE+-", *p))
        text[n++] = *p++;
    text[n] = '\0';
    char *stop;
    double value = strtod(text, &stop);
    if (n == 0 || *stop || !isfinite(value) || value < 0 || p == whole)
        return -1;
    static const char letters[] = "KMBT";
    const char *letter = p < end && *p ? strchr(letters, *p) : NULL;
    return letter ? value * pow(1000, (double)(letter - letters + 1)) : value;
}

/* "6,300" as Python writes it with separators; -1: none. */
static double grouped_after(const struct log_reader *r, const struct line *line, const char *key)
{
    const char *p = find_in(line->start, line->end, key), *start = p ? p + strlen(key) : NULL;
    double value = 0;
    p = start;
    while (p && p < line->end && *p == ' ')
        start = ++p;
    for (; p && p < line->end && p - start < 20 && (isdigit((unsigned char)*p) || (*p == ',' && p > start)); p++)
        value = *p == ',' ? value : 10 * value + (*p - '0');
    return p == start || p == r->end ? -1 : value;
}

/* A GPU's tokens a second, in a line that counts steps; -1: none. */
static double token_rate(const struct log_reader *r, const struct line *line)
{
    if (!find_in(line->start, line->end, "step:"))
        return -1;
    double rate = grouped_after(r, line, " tps:");
    return rate > 0 ? rate : grouped_after(r, line, " wps:");
}

static double number_after(const struct log_reader *r, const struct line *line, const char *key)
{
    const char *p = find_in(line->start, line->end, key);
    return p ? number_at(p + strlen(key), line->end, r->end) : -1;
}

static void read_iteration(struct log_reader *r, const struct line *line)
{
    static const struct {
        const char *key;
        double in_a_second;
    } keys[] = {
        {"elapsed time per iteration (ms):", 1e3},
        {"elapsed time per iteration (s):", 1},
        {"elapsed_time_per_iteration_ms:", 1e3},
        {"train_step_timing in s:", 1},
        {"train_step_timing in s=", 1},
    };
    double seconds = -1, batch, rate = token_rate(r, line);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && seconds <= 0; i++)
        seconds = number_after(r, line, keys[i].key) / keys[i].in_a_second;
    bool per_token = !(seconds > 0) && rate > 0;
    seconds = per_token ? 1 / rate : seconds;
    if (!(seconds > 0) || (r->log->n_iterations && per_token != r->log->per_token))
        return;
    r->log->per_token = per_token;
    batch = number_after(r, line, "global batch size:");
    if (batch < 0)
        batch = number_after(r, line, "global_batch_size:");
    struct launch_log *log = r->log;
    r->iterations = memory_grow(r->iterations, &r->capacity, log->n_iterations + 1, sizeof *r->iterations);
    r->iterations[log->n_iterations++] = (struct iteration){seconds, batch > 0 ? batch : 0};
    log->after_failure++;
}

/* --- failures --- */

static void read_failure(struct log_reader *r, const struct line *line)
{
    static const struct {
        const char *words;
        bool oom;
    } failures[] = {
        {"OutOfMemoryError", true},
        {"CUDA out of memory", true},
        {"CUDA error: out of memory", true},
        {"HIP out of memory", true},
        {"ChildFailedError", false},
        {"Traceback (most recent call last)", false},
        {"Segmentation fault", false},
        {"CUDA error:", false},
        {"NCCL error", false},
        {"Watchdog caught collective", false},
        {"DUE TO TIME LIMIT", false},
        {"CANCELLED AT", false},
    };
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        if (!find_in(line->start, line->end, failures[i].words))
            continue;
        bool first = !r->log->failed || r->log->after_failure > 0 || (failures[i].oom && !r->log->oom);
        if (first) {
            r->log->failed = failures[i].words;
            r->log->failed_at = (struct place){r->name, line->number, 0};
            r->log->oom = failures[i].oom;
            r->log->after_failure = 0;
        }
        return;
    }
}

/* --- all lines --- */

static void read_line(struct log_reader *r, const struct line *line)
{
    if (begins_block(line)) {
        r->in_second = r->log->has_arguments;
        r->in_block = r->log->has_arguments = true;
    } else if (ends_block(line)) {
        r->in_block = false;
    } else if (r->in_block) {
        read_argument(r, line);
    } else if (!r->ended) {
        read_padding(r, line);
        read_gpu(r, line);
        read_iteration(r, line);
        read_failure(r, line);
    }
}

void launch_log_settle(struct launch_log *log, double tokens_per_gpu)
{
    if (!log->per_token)
        return;
    log->step_s *= tokens_per_gpu;
    log->low_s *= tokens_per_gpu;
    log->high_s *= tokens_per_gpu;
    log->per_token = false;
}

static bool next_line(const char **at, const char *end, struct line *line)
{
    if (*at >= end)
        return false;
    const char *stop = *at;
    while (stop < end && *stop != '\n' && *stop != '\r')
        stop++;
    *line = (struct line){*at, stop, line->number + !line->goes_on, false};
    if (stop + 1 < end && stop[0] == '\r' && stop[1] == '\n')
        stop++;
    line->goes_on = stop < end && *stop == '\r';
    *at = stop < end ? stop + 1 : stop;
    return true;
}

size_t launch_plain(char *bytes, size_t n)
{
    char *to = memchr(bytes, ESCAPE, n), *end = bytes + n;
    if (!to)
        return n;
    for (const char *p = to; p < end; p++) {
        if (*p != ESCAPE) {
            *to++ = *p;
        } else if (p + 1 < end && p[1] == '[') {
            for (p += 2; p < end && !(*p >= '@' && *p <= '~'); p++)
                ;
        }
    }
    return (size_t)(to - bytes);
}

bool launch_is_log(const char *bytes, size_t n)
{
    static const char *const signs[] = {"--- arguments ---",
                                        "elapsed time per iteration",
                                        "elapsed_time_per_iteration_ms",
                                        "train_step_timing in s",
                                        " tps: ",
                                        " wps: "};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (find_in(bytes, bytes + n, signs[i]))
            return true;
    return false;
}

static void take_median(struct log_reader *r, int warm_up)
{
    struct launch_log *log = r->log;
    size_t n = log->n_iterations, kept = 0;
    if (n == 0)
        return;
    double last = 0, *times = memory_new(n, sizeof *times);
    for (size_t i = n; i-- > 0 && !(last > 0);) /* the last line may end before it */
        last = r->iterations[i].batch;
    for (size_t i = 0; i < n; i++)
        if (!(r->iterations[i].batch < last) && !(r->iterations[i].batch > last))
            times[kept++] = r->iterations[i].seconds;
    log->n_ramp_up = n - kept;
    size_t usual = kept / 5 < 10 ? kept / 5 : 10, wanted = warm_up < 0 ? usual + (usual == 0) : (size_t)warm_up;
    log->n_warm_up = wanted < kept ? wanted : kept - 1;
    log->n_taken = kept - log->n_warm_up;
    double *counted = times + log->n_warm_up;
    qsort(counted, log->n_taken, sizeof *counted, double_compare);
    log->step_s = double_quantile(counted, log->n_taken, 0.5);
    log->low_s = double_quantile(counted, log->n_taken, 0.25);
    log->high_s = double_quantile(counted, log->n_taken, 0.75);
    free(times);
}

/* A job that went on after a failure did not end with it. */
static void settle_failure(struct launch_log *log)
{
    if (log->failed && log->after_failure > 0) {
        log->failed = NULL;
        log->failed_at = PLACE_NONE;
        log->oom = false;
    }
}

void megatron_log_parse(const char *name, const char *bytes, size_t n, int warm_up, struct launch_words *words,
                        struct launch_log *log, struct diags *diags)
{
    *log = (struct launch_log){0};
    struct log_reader r = {.name = name, .end = bytes + n, .words = words, .log = log, .diags = diags};
    struct line line = {0};
    const char *at = bytes;
    while (next_line(&at, bytes + n, &line) && !r.ended)
        read_line(&r, &line);
    take_median(&r, warm_up);
    settle_failure(log);
    free(r.iterations);
}
