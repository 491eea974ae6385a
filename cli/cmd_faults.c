/*
 * msim faults - generate, summarise and convert fault traces.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/result.h"
#include "cli/table.h"
#include "sim/fault_statistics.h"
#include "sim/faults.h"
#include "traces/lanl_trace.h"

static const struct place nowhere = {0};

/* --- generate ----------------------------------------------------------------------------------------------------------------
 */

static const struct fault_model *chosen_preset(struct invocation *call)
{
    enum { MAX_PRESETS = 16 };
    const char *name = option_text(call, "preset");
    const struct fault_model *model = fault_preset(name);
    if (model)
        return model;
    const char *names[MAX_PRESETS];
    int n = n_fault_presets < MAX_PRESETS ? n_fault_presets : MAX_PRESETS;
    for (int i = 0; i < n; i++)
        names[i] = fault_presets[i].name;
    const char *near = nearest_name(name, names, (size_t)n);
    diag_error(&call->diags, nowhere, "unknown preset '%s'; %s%s", name,
               near ? "did you mean " : "known are llama3, rsc-1 and rsc-2", near ? near : "");
    return NULL;
}

static enum status write_trace(struct invocation *call, struct fault_trace *trace)
{
    fault_trace_write(trace, call->out);
    fault_trace_free(trace);
    return STATUS_OK;
}

static enum status generate(struct invocation *call)
{
    const struct fault_model *preset = chosen_preset(call);
    if (!preset)
        return STATUS_USAGE;
    struct fault_model model = *preset;
    if (option_given(call, "rate"))
        model.rate = strtod(option_text(call, "rate"), NULL);
    int32_t nodes = option_given(call, "nodes") ? (int32_t)option_count(call, "nodes") : model.nodes;
    nanos horizon = nanos_from_seconds(option_given(call, "horizon") ? option_quantity(call, "horizon") : model.days * 86400);
    double expected = model.rate * nodes * (double)horizon / 86400e9;
    if (expected > 1e7) {
        diag_error(&call->diags, nowhere, "about %.3g faults; fewer nodes, a shorter horizon or a lower rate give a usable trace",
                   expected);
        return STATUS_BAD_INPUT;
    }
    struct fault_trace trace;
    faults_generate(&model, nodes, horizon, call->seed, &trace);
    talk(call, 0, "%zu faults on %" PRId32 " nodes in %.4g d, %.3g expected; %s", trace.n_items, nodes, (double)horizon / 86400e9,
         expected, model.source);
    return write_trace(call, &trace);
}

/* --- summary -----------------------------------------------------------------------------------------------------------------
 */

struct summary {
    const char *name;
    const struct fault_trace *trace;
    struct fault_statistics statistics;
};

static const char *cause_of(const struct summary *summary, const struct fault_count *count)
{
    return count->what < 0 ? "" : summary->trace->details[count->what];
}

static void row(struct table *table, const char *name, const char *meaning, const char *format, ...) PRINTF_LIKE(4, 5);
static void row(struct table *table, const char *name, const char *meaning, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_cell(table, "%s", name);
    table_cell(table, "%s", text);
    table_cell(table, "%s", meaning);
}

static void summary_rows(const struct summary *summary, struct table *table)
{
    const struct fault_statistics *s = &summary->statistics;
    row(table, "failures", "node outages", "%zu", s->n_failures);
    row(table, "slowdowns", "stragglers and slow links", "%zu", s->n_slow);
    row(table, "nodes", "nodes of the cluster", "%" PRId32, s->nodes);
    row(table, "nodes_hit", "nodes that failed at least once", "%" PRId32, s->nodes_hit);
    row(table, "horizon_d", "days that the trace covers", "%.6g", s->horizon_s / 86400);
    row(table, "mtbf_h", "hours between failures of the cluster, mean", "%.4g", s->mtbf_s / 3600);
    row(table, "per_node_day", "failures per node and day", "%.4g", s->per_node_day);
    row(table, "variance_to_mean", "of the daily counts; 1 for a Poisson process", "%.3g", s->variance_to_mean);
    row(table, "top_share_pct", "share of the failures on the worst 1 % of the nodes", "%.3g", 100 * s->top_share);
    row(table, "gap_shape", "Weibull shape k of the times between failures; below 1: bursts", "%.4g", s->gaps.shape);
    row(table, "gap_scale_h", "Weibull scale", "%.4g", s->gaps.scale_s / 3600);
    row(table, "gap_ks", "Kolmogorov-Smirnov distance to that fit", "%.3g", s->gaps.ks);
    row(table, "gap_ks_exponential", "and to the exponential of the same mean", "%.3g", s->gaps.ks_exponential);
    row(table, "repair_mean_h", "of repairs that take time", "%.4g", s->repair.mean_s / 3600);
    row(table, "repair_median_h", "", "%.4g", s->repair.median_s / 3600);
    row(table, "repair_p90_h", "", "%.4g", s->repair.p90_s / 3600);
    row(table, "repair_max_h", "", "%.4g", s->repair.max_s / 3600);
    row(table, "repair_mu", "lognormal: mean of ln hours", "%.4g", s->repair.mu);
    row(table, "repair_sigma", "lognormal: standard deviation of ln hours", "%.4g", s->repair.sigma);
    row(table, "repairs_of_no_length", "outages that end at once", "%zu", s->repair.n_empty);
}

static void write_values(struct invocation *call, const struct summary *summary)
{
    struct table table = {0};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    table_column(&table, "value", NULL, ALIGN_RIGHT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    summary_rows(summary, &table);
    table_write(&table, call);
    table_free(&table);
}

static void write_causes(struct invocation *call, const struct summary *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    size_t shown = call->verbosity > 0 || s->n_causes < 15 ? s->n_causes : 15;
    struct table table = {0};
    table_column(&table, "cause", NULL, ALIGN_LEFT);
    table_column(&table, "faults", NULL, ALIGN_RIGHT);
    table_column(&table, "share", "%", ALIGN_RIGHT);
    table_column(&table, "mean repair", "h", ALIGN_RIGHT);
    for (size_t i = 0; i < shown; i++) {
        table_cell(&table, "%s", s->causes[i].what < 0 ? "(none given)" : cause_of(summary, &s->causes[i]));
        table_cell(&table, "%zu", s->causes[i].n);
        table_cell(&table, "%.1f", 100.0 * (double)s->causes[i].n / (double)summary->trace->n_items);
        table_cell(&table, "%.2f", s->causes[i].mean_down_s / 3600);
    }
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
    if (shown < s->n_causes)
        fprintf(call->out, "... and %zu more (-v shows all)\n", s->n_causes - shown);
}

static void write_nodes(struct invocation *call, const struct summary *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    struct table table = {0};
    table_column(&table, "node", NULL, ALIGN_RIGHT);
    table_column(&table, "failures", NULL, ALIGN_RIGHT);
    table_column(&table, "mean repair", "h", ALIGN_RIGHT);
    for (int i = 0; i < s->n_top_nodes; i++) {
        table_cell(&table, "%" PRId32, s->top_nodes[i].what);
        table_cell(&table, "%zu", s->top_nodes[i].n);
        table_cell(&table, "%.2f", s->top_nodes[i].mean_down_s / 3600);
    }
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
}

static json_t *counts_json(const struct summary *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    json_t *causes = json_array();
    for (size_t i = 0; i < s->n_causes; i++)
        json_array_append_new(causes, json_pack("{s:s, s:I, s:f}", "detail", cause_of(summary, &s->causes[i]), "faults",
                                                (json_int_t)s->causes[i].n, "mean_down_s", s->causes[i].mean_down_s));
    return causes;
}

static json_t *nodes_json(const struct fault_statistics *s)
{
    json_t *nodes = json_array();
    for (int i = 0; i < s->n_top_nodes; i++)
        json_array_append_new(nodes, json_pack("{s:i, s:I, s:f}", "node", s->top_nodes[i].what, "failures",
                                               (json_int_t)s->top_nodes[i].n, "mean_down_s", s->top_nodes[i].mean_down_s));
    return nodes;
}

static json_t *kinds_json(const struct fault_statistics *s)
{
    json_t *kinds = json_object();
    for (int i = 0; i < N_FAULT_KINDS; i++)
        json_object_set_new(kinds, fault_kind_name((enum fault_kind)i), json_integer((json_int_t)s->kinds[i]));
    return kinds;
}

static enum status write_json(struct invocation *call, const struct summary *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    json_t *result = result_create(call, NULL);
    json_object_set_new(result, "trace", json_string(summary->name));
    json_object_set_new(result, "failures", json_integer((json_int_t)s->n_failures));
    json_object_set_new(result, "nodes", json_integer(s->nodes));
    json_object_set_new(result, "nodes_hit", json_integer(s->nodes_hit));
    json_object_set_new(result, "horizon_s", json_real(s->horizon_s));
    json_object_set_new(result, "mtbf_s", json_real(s->mtbf_s));
    json_object_set_new(result, "per_node_day", json_real(s->per_node_day));
    json_object_set_new(result, "variance_to_mean", json_real(s->variance_to_mean));
    json_object_set_new(result, "top_share", json_real(s->top_share));
    json_object_set_new(result, "gaps",
                        json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "n", (json_int_t)s->gaps.n, "mean_s", s->gaps.mean_s, "shape",
                                  s->gaps.shape, "scale_s", s->gaps.scale_s, "ks", s->gaps.ks, "ks_exponential",
                                  s->gaps.ks_exponential));
    json_object_set_new(result, "repair",
                        json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "n", (json_int_t)s->repair.n, "n_empty",
                                  (json_int_t)s->repair.n_empty, "mean_s", s->repair.mean_s, "median_s", s->repair.median_s,
                                  "p90_s", s->repair.p90_s, "max_s", s->repair.max_s, "mu", s->repair.mu, "sigma",
                                  s->repair.sigma));
    json_object_set_new(result, "kinds", kinds_json(s));
    json_object_set_new(result, "causes", counts_json(summary));
    json_object_set_new(result, "top_nodes", nodes_json(s));
    return result_write(call, result);
}

static enum status write_summary(struct invocation *call, const struct summary *summary)
{
    if (call->format == FORMAT_JSON)
        return write_json(call, summary);
    if (call->format == FORMAT_TEXT)
        fprintf(call->out, "%s\n\n", summary->name);
    write_values(call, summary);
    if (call->format == FORMAT_TEXT) {
        write_causes(call, summary);
        write_nodes(call, summary);
    }
    return STATUS_OK;
}

static enum status summarise(struct invocation *call)
{
    char *path;
    bool shipped;
    enum status status = fault_trace_find(call->operands[1], &path, &shipped, &call->diags);
    if (status != STATUS_OK)
        return status;
    struct fault_trace trace;
    int32_t nodes = option_given(call, "nodes") ? (int32_t)option_count(call, "nodes") : 0;
    struct fault_trace_limits limits = {.keep = nodes, .known = nodes};
    status = fault_trace_read(path, limits, &trace, &call->diags);
    free(path);
    if (status != STATUS_OK)
        return status;
    if (nodes == 0)
        nodes = fault_trace_nodes(&trace);
    nanos horizon =
        option_given(call, "horizon") ? nanos_from_seconds(option_quantity(call, "horizon")) : fault_trace_horizon(&trace);
    struct summary summary = {.name = call->operands[1], .trace = &trace};
    fault_statistics(&trace, nodes > 0 ? nodes : 1, horizon, &summary.statistics);
    status = write_summary(call, &summary);
    fault_statistics_free(&summary.statistics);
    fault_trace_free(&trace);
    return status;
}

/* --- convert -----------------------------------------------------------------------------------------------------------------
 */

static bool read_window(struct invocation *call, struct lanl_window *window)
{
    *window = (struct lanl_window){.from = LANL_FIRST_DAY};
    int n = 0;
    const char *const *systems = option_list(call, "systems", &n);
    for (int i = 0; i < n; i++) {
        char *end;
        long system = strtol(systems[i], &end, 10);
        if (*end || end == systems[i] || system < 1 || system > 999 || i >= LANL_MAX_SYSTEMS) {
            diag_error(&call->diags, nowhere, "--systems: '%s' is not the number of a system; write 18,20", systems[i]);
            return false;
        }
        window->systems[window->n_systems++] = (int)system;
    }
    const char *from = option_text(call, "from");
    if (from && !local_time_parse(from, &window->from)) {
        diag_error(&call->diags, nowhere, "--from: '%s' is not a date; write 2003-01-01 or 2003-01-01T07:15", from);
        return false;
    }
    if (option_given(call, "horizon"))
        window->length = nanos_from_seconds(option_quantity(call, "horizon"));
    return true;
}

static enum status convert(struct invocation *call)
{
    struct lanl_window window;
    struct fault_trace trace;
    if (!read_window(call, &window))
        return STATUS_USAGE;
    enum status status = lanl_trace_read(call->operands[1], &window, &trace, &call->diags);
    if (status != STATUS_OK)
        return status;
    talk(call, 0, "%zu faults on %" PRId32 " nodes", trace.n_items, fault_trace_nodes(&trace));
    if (trace.n_outside > 0)
        diag_note(&call->diags, (struct place){.file = call->operands[1]}, "%zu rows name no node and are left out",
                  trace.n_outside);
    return write_trace(call, &trace);
}

/* --- the command -------------------------------------------------------------------------------------------------------------
 */

struct action {
    const char *name;
    int n_operands; /* after the name */
    const char *needs;
    enum status (*run)(struct invocation *call);
};

static const struct action actions[] = {
    {"generate", 0, "no operand", generate},
    {"summary", 1, "one trace: a shipped name or a file", summarise},
    {"convert", 1, "one file to convert", convert},
};

static enum status run(struct invocation *call)
{
    enum { N_ACTIONS = sizeof actions / sizeof *actions };
    const char *names[N_ACTIONS];
    for (int i = 0; i < N_ACTIONS; i++) {
        names[i] = actions[i].name;
        if (strcmp(call->operands[0], actions[i].name) != 0)
            continue;
        if (call->n_operands == 1 + actions[i].n_operands)
            return actions[i].run(call);
        diag_error(&call->diags, nowhere, "msim faults %s takes %s", actions[i].name, actions[i].needs);
        return STATUS_USAGE;
    }
    const char *near = nearest_name(call->operands[0], names, N_ACTIONS);
    diag_error(&call->diags, nowhere, "msim faults does not know '%s'; %s%s", call->operands[0],
               near ? "did you mean " : "it generates, summarises (summary) or converts (convert)", near ? near : "");
    return STATUS_USAGE;
}

static enum status check_rate(const char *text, char *why, size_t size)
{
    char *end;
    double rate = strtod(text, &end);
    if (end != text && !*end && rate > 0 && rate <= 100)
        return STATUS_OK;
    snprintf(why, size, "'%.40s' is not a rate; write failures per node and day, such as 3.79e-3", text);
    return STATUS_BAD_INPUT;
}

static const char *const sources[] = {"lanl", NULL};

static const struct option_row options[] = {
    {.name = "preset",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .initial = "llama3",
     .help = "generate: the fleet to be like: llama3, rsc-1, rsc-2"},
    {.name = "nodes",
     .argument = "N",
     .type = OPTION_COUNT,
     .low = 1,
     .high = 1e7,
     .help = "nodes of the cluster; the preset's, or the trace's highest, otherwise"},
    {.name = "horizon",
     .argument = "TIME",
     .type = OPTION_QUANTITY,
     .dimension = DIM_TIME,
     .low = 1,
     .high = 100 * 366 * 86400.0,
     .help = "length of the trace; the preset's, or to its last day, otherwise"},
    {.name = "rate",
     .argument = "X",
     .type = OPTION_TEXT,
     .check = check_rate,
     .help = "generate: failures per node and day instead of the preset's, such as 3.79e-3"},
    {.name = "source",
     .argument = "FORMAT",
     .type = OPTION_CHOICE,
     .choices = sources,
     .initial = "lanl",
     .help = "convert: what the file is: lanl (LA-UR-05-7318 outage records)"},
    {.name = "systems",
     .argument = "N,...",
     .type = OPTION_LIST,
     .help = "convert: systems that become one cluster, in this order; all of them otherwise"},
    {.name = "from",
     .argument = "DATE",
     .type = OPTION_TEXT,
     .help = "convert: what becomes time 0, such as 2003-01-01; the first day otherwise"},
    {0},
};

static const struct example examples[] = {
    {"msim faults generate --preset llama3 --nodes 1536 --horizon 30d --seed 73", "a month on 1,536 nodes at Llama 3's rate"},
    {"msim faults summary llama3-54d", "rates, bursts, repair times, causes and worst nodes of a trace"},
    {"msim faults convert lanl_failures.csv.gz --systems 18,20 --from 2003-01-01 --horizon 974d -o lanl.csv",
     "974 days of two LANL systems as one cluster"},
    {0},
};

const struct command command_faults = {
    .name = "faults",
    .summary = "generate, summarise, convert fault traces",
    .description =
        "generate writes a fault trace like those of a published fleet; the same seed gives the same bytes. summary tells what a "
        "trace is like: how often, how bursty, how uneven, how long, and why. convert reads the records of other systems.\n\n"
        "A trace is a CSV table with the columns time_s, node, kind, down_s, factor and detail; msim run replays it.",
    .operands = "generate | summary TRACE | convert FILE",
    .min_operands = 1,
    .max_operands = 2,
    .options = options,
    .examples = examples,
    .run = run,
};
