/* DCGM's gauge of Xids, in Prometheus' text. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/fault/xid_trace_internal.h"

/* Behind the quote that ends the text of a label, "GPU has {fallen} \"off\""; NULL: none does. */
static const char *behind_quoted(const char *text)
{
    for (; *text && *text != '"'; text++)
        text += *text == '\\' && text[1];
    return *text ? text + 1 : NULL;
}

/* The labels that tell GPUs apart; NULL: not there, or empty. */
struct labels {
    const char *host, *instance, *gpu;
    size_t n_host, n_instance, n_gpu;
};

static void keep_label(const char *name, size_t n_name, const char *wanted, const char **text, size_t *length)
{
    const char *value = name + n_name + 2;
    size_t n = (size_t)(behind_quoted(value) - 1 - value);
    if (n > 0 && strlen(wanted) == n_name && strncmp(name, wanted, n_name) == 0) {
        *text = value;
        *length = n;
    }
}

/* Reads {gpu="0",Hostname="n1"} from after its brace. Returns what follows it; NULL: it does not end. */
static const char *read_labels(const char *text, struct labels *labels)
{
    *labels = (struct labels){0};
    for (;;) {
        text += strspn(text, " \t,");
        if (*text == '}')
            return text + 1;
        size_t n = strcspn(text, "=\"} \t");
        const char *end = text[n] == '=' && text[n + 1] == '"' ? behind_quoted(text + n + 2) : NULL;
        if (!end)
            return NULL;
        keep_label(text, n, "Hostname", &labels->host, &labels->n_host);
        keep_label(text, n, "instance", &labels->instance, &labels->n_instance);
        keep_label(text, n, "gpu", &labels->gpu, &labels->n_gpu);
        text = end;
    }
}

/* Where the exporter does not name its host, Prometheus names the instance that it scraped. */
static void add_sample(struct xid_parser *parser, const struct labels *labels, int value, nanos time)
{
    char name[300];
    const char *host = labels->host ? labels->host : labels->instance;
    struct xid_sample sample = {.time = time, .value = value, .order = parser->n_samples};
    sample.node = xid_node(parser, host, labels->host ? labels->n_host : labels->n_instance);
    snprintf(name, sizeof name, "%d/%.*s", (int)sample.node, labels->n_gpu < 200 ? (int)labels->n_gpu : 200,
             labels->gpu ? labels->gpu : "");
    sample.gpu = host_number(&parser->gpus, name, strlen(name));
    parser->samples = memory_grow(parser->samples, &parser->capacity, parser->n_samples + 1, sizeof sample);
    parser->samples[parser->n_samples++] = sample;
}

/* The time behind a value: seconds since 1970, as OpenMetrics has them, or milliseconds, as Prometheus does. A time of before
 * 1973 would be of either. */
static bool metric_time(struct xid_parser *parser, const char *text, int number_line, nanos *time)
{
    static const double earliest_s = 1e8;
    char *end;
    text += strspn(text, " \t");
    double value = strtod(text, &end);
    if (end == text) {
        if (!parser->file.timeless)
            diag_error(
                parser->diags, xid_place(parser, number_line),
                "a metric without a time, as on an exporter's page: add the time of the scrape after the value, in seconds "
                "or milliseconds since 1970");
        parser->file.timeless = true;
        return false;
    }
    bool in_seconds = value < earliest_s * 1e3;
    double seconds = in_seconds ? value : value / 1e3;
    if (!(seconds >= earliest_s && seconds < LOG_LATEST_S)) {
        diag_error(parser->diags, xid_place(parser, number_line),
                   "a metric whose time '%.*s' is neither seconds nor milliseconds since 1970", (int)(end - text), text);
        return false;
    }
    nanos unit = in_seconds ? NANOS_PER_SECOND : NANOS_PER_SECOND / 1000;
    if (!nanos_parse_decimal(text, end, unit, time)) /* 1.7e9 */
        *time = (nanos)(value * (double)unit);
    return true;
}

/* DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n1"} 79 1700000000000. DCGM writes what it does not know as a large number. */
void xid_gauge_line(struct xid_parser *parser, const char *line, int number_line)
{
    struct labels labels;
    const char *value = read_labels(strchr(line, '{') + 1, &labels);
    char *end = NULL;
    double number = value ? strtod(value, &end) : 0;
    if (!value || end == value) {
        diag_error(parser->diags, xid_place(parser, number_line), "a metric without a value");
        return;
    }
    nanos time;
    bool blank = !(number >= 0 && number <= XID_LARGEST);
    parser->n_blank += blank;
    if (metric_time(parser, end, number_line, &time) && xid_clock_fits(parser, LOG_DATED, number_line))
        add_sample(parser, &labels, blank ? XID_BLANK : (int)number, time);
}

static int sample_compare(const void *a, const void *b)
{
    const struct xid_sample *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void add_xid(struct xid_parser *parser, nanos time, int32_t node, int number)
{
    const char *meaning = "";
    enum xid_class class = xid_classify(number, &meaning);
    parser->counts[number]++;
    parser->n_unsaid += number >= XID_NVLINK5_FIRST && number <= XID_NVLINK5_LAST;
    xid_add(parser, time, node, class, meaning);
}

/* The gauge keeps a GPU's last Xid, scrape after scrape: what counts is its changes. What it shows at first may be weeks old; a
 * blank is no Xid then, and changes nothing later. */
void xid_gauge_finish(struct xid_parser *parser)
{
    const struct xid_sample *at = parser->samples;
    int before = 0;
    if (parser->n_samples > 0)
        qsort(parser->samples, parser->n_samples, sizeof *parser->samples, sample_compare);
    for (size_t i = 0; i < parser->n_samples; i++) {
        bool first = i == 0 || at[i - 1].gpu != at[i].gpu;
        int value = at[i].value != XID_BLANK ? at[i].value : first ? 0 : before;
        parser->n_stood += first && value != 0;
        if (!first && value != 0 && value != before)
            add_xid(parser, at[i].time, at[i].node, value);
        before = value;
    }
}
