/*
 * msim faults - generate, summarise, fit and convert fault traces.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/faults/faults_report.h"
#include "cli/options/command.h"
#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/run/run_report.h"
#include "model/base/memory.h"
#include "sim/faults/fault_fit.h"
#include "sim/faults/fault_statistics.h"
#include "sim/faults/faults.h"
#include "traces/fault/lanl_trace.h"
#include "traces/fault/trace_convert.h"
#include "traces/table/date.h"

/* --- generate --- */

static enum status write_trace(struct invocation *call, struct fault_trace *trace)
{
    enum status status = STATUS_OK;
    if (call->format == FORMAT_JSON)
        status = faults_report_trace(call, trace);
    else
        fault_trace_write(trace, call->out);
    fault_trace_free(trace);
    return status;
}

static enum status generate(struct invocation *call)
{
    struct fault_model model;
    enum status status = fault_model_load(option_text(call, "preset"), &model, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (option_given(call, "rate"))
        model.rate = strtod(option_text(call, "rate"), NULL);
    int32_t nodes = option_given(call, "nodes") ? (int32_t)option_count(call, "nodes") : model.nodes;
    nanos horizon = nanos_from_seconds(option_given(call, "horizon") ? option_quantity(call, "horizon") : model.days * 86400);
    double expected = fault_model_total_rate(&model) * nodes * (double)horizon / 86400e9;
    if (expected > 1e7) {
        char text[32];
        diag_error(&call->diags, PLACE_NONE,
                   "about %s faults are too many for a trace; use fewer nodes, a shorter horizon or a lower rate",
                   quantity_format(expected, DIM_COUNT, text, sizeof text));
        return STATUS_BAD_INPUT;
    }
    struct fault_trace trace;
    faults_generate(&model, nodes, horizon, call->seed, &trace);
    char days[32], count[32];
    info(call, 0, "%zu fault%s on %" PRId32 " node%s in %s, %s expected; %s", trace.n_items, trace.n_items == 1 ? "" : "s", nodes,
         nodes == 1 ? "" : "s", horizon_text(horizon, days, sizeof days),
         quantity_format(expected, DIM_COUNT, count, sizeof count), model.source);
    return write_trace(call, &trace);
}

/* --- summary --- */

/* The trace that the second operand names; over which nodes and how long, as said or as the trace shows. */
static enum status read_named_trace(struct invocation *call, struct fault_trace *trace, int32_t *nodes, nanos *horizon)
{
    char *path;
    enum status status = fault_trace_find(call->operands[1], &path, NULL, &call->diags);
    if (status != STATUS_OK)
        return status;
    *nodes = option_given(call, "nodes") ? (int32_t)option_count(call, "nodes") : 0;
    struct fault_trace_limits limits = {.keep = *nodes, .known = *nodes};
    status = fault_trace_read(path, limits, trace, &call->diags);
    free(path);
    if (status != STATUS_OK)
        return status;
    *nodes = *nodes > 0 ? *nodes : fault_trace_nodes(trace);
    if (!option_given(call, "horizon")) {
        *horizon = fault_trace_horizon(trace);
        return STATUS_OK;
    }
    *horizon = nanos_from_seconds(option_quantity(call, "horizon"));
    fault_trace_cut(trace, 0, *horizon, (struct place){.file = call->operands[1]}, &call->diags);
    return STATUS_OK;
}

static enum status summarise(struct invocation *call)
{
    struct fault_trace trace;
    int32_t nodes;
    nanos horizon;
    enum status status = read_named_trace(call, &trace, &nodes, &horizon);
    if (status != STATUS_OK)
        return status;
    struct faults_report summary = {.name = call->operands[1], .trace = &trace};
    fault_statistics(&trace, nodes > 0 ? nodes : 1, horizon, &summary.statistics);
    status = faults_report_write(call, &summary);
    fault_statistics_free(&summary.statistics);
    fault_trace_free(&trace);
    return status;
}

/* --- fit --- */

static enum status write_model(struct invocation *call, const struct fault_model *model)
{
    FILE *out;
    enum status status = output_option(call, "model", &out);
    if (status == STATUS_OK && out) {
        char *text = fault_model_to_json(model);
        fprintf(out, "%s\n", text);
        free(text);
    }
    return status;
}

static enum status fit(struct invocation *call)
{
    struct fault_trace trace;
    int32_t nodes;
    nanos horizon;
    enum status status = read_named_trace(call, &trace, &nodes, &horizon);
    if (status != STATUS_OK)
        return status;
    if (!option_given(call, "nodes"))
        diag_note(&call->diags, PLACE_NONE, "--nodes is not given; assuming %" PRId32 ", the highest in the trace", nodes);
    struct fault_fit *fitted = memory_new(1, sizeof *fitted);
    struct fault_model like;
    bool told = option_given(call, "preset");
    status = told ? fault_model_load(option_text(call, "preset"), &like, &call->diags) : STATUS_OK;
    if (status == STATUS_OK)
        status = fault_fit(&trace, call->operands[1], nodes, horizon, told ? &like.causes : NULL, fitted, &call->diags);
    if (status == STATUS_OK)
        status = write_model(call, &fitted->model);
    if (status == STATUS_OK)
        status = faults_report_fit(call, fitted);
    free(fitted);
    fault_trace_free(&trace);
    return status;
}

/* --- convert --- */

static bool read_window(struct invocation *call, struct lanl_window *window)
{
    *window = (struct lanl_window){.from = LANL_FIRST_DAY};
    int n = 0;
    const char *const *systems = option_list(call, "systems", &n);
    for (int i = 0; i < n; i++) {
        char *end;
        long system = strtol(systems[i], &end, 10);
        if (*end || end == systems[i] || system < 1 || system > 999 || i >= LANL_MAX_SYSTEMS) {
            diag_error(&call->diags, PLACE_NONE, "--systems: '%s' is not the number of a system; write for example 18,20",
                       systems[i]);
            return false;
        }
        window->systems[window->n_systems++] = (int)system;
    }
    const char *from = option_text(call, "from");
    if (from && !local_time_parse(from, &window->from)) {
        diag_error(&call->diags, PLACE_NONE, "--from: '%s' is not a date; write for example 2003-01-01 or 2003-01-01T07:15",
                   from);
        return false;
    }
    if (option_given(call, "horizon"))
        window->length = nanos_from_seconds(option_quantity(call, "horizon"));
    return true;
}

/* What is left without a meaning for this source. */
static void note_idle(struct invocation *call, enum convert_source source)
{
    if (source != CONVERT_LANL && option_given(call, "systems"))
        diag_note(&call->diags, PLACE_NONE, "--systems has no effect; only LANL's records name systems");
    if (source != CONVERT_TABLE && option_given(call, "map"))
        diag_note(&call->diags, PLACE_NONE, "--map has no effect; only --source table names columns");
    if (source != CONVERT_JOBS && option_given(call, "failed-jobs"))
        diag_note(&call->diags, PLACE_NONE, "--failed-jobs has no effect; this is not a table of jobs");
}

/* As said, or as the first file shows. */
static enum status find_source(struct invocation *call, const char *path, enum convert_source *source)
{
    if (option_given(call, "source")) {
        *source = (enum convert_source)option_choice(call, "source");
        return STATUS_OK;
    }
    if (option_given(call, "map")) {
        *source = CONVERT_TABLE;
        return STATUS_OK;
    }
    enum status status = convert_source_of(path, source, &call->diags);
    if (status == STATUS_OK)
        info(call, 1, "read as --source %s", convert_source_names[*source]);
    return status;
}

static enum status read_source(struct invocation *call, struct fault_trace *trace)
{
    struct lanl_window window;
    const char *const *paths = (const char *const *)call->operands + 1;
    int n = call->n_operands - 1;
    struct convert_options how = {.down = nanos_from_seconds(option_quantity(call, "down")),
                                  .merge = nanos_from_seconds(option_quantity(call, "merge")),
                                  .nodes = option_given(call, "nodes") ? (int32_t)option_count(call, "nodes") : 0,
                                  .failed_jobs = option_given(call, "failed-jobs")};
    enum convert_source source;
    how.map = option_list(call, "map", &how.n_map);
    if (!read_window(call, &window))
        return STATUS_USAGE;
    enum status status = find_source(call, paths[0], &source);
    if (status != STATUS_OK)
        return status;
    how.has_from = window.from != LANL_FIRST_DAY;
    how.from = window.from;
    how.length = window.length;
    note_idle(call, source);
    if (n > 1 && source != CONVERT_XID && source != CONVERT_SMI) {
        diag_error(&call->diags, PLACE_NONE, "--source %s reads one file; only xid and smi read several",
                   convert_source_names[source]);
        return STATUS_USAGE;
    }
    switch (source) {
    case CONVERT_TITAN: return titan_trace_read(paths[0], &how, trace, &call->diags);
    case CONVERT_JOBS: return job_trace_read(paths[0], &how, trace, &call->diags);
    case CONVERT_NODES: return node_trace_read(paths[0], &how, trace, &call->diags);
    case CONVERT_SLURM: return slurm_log_read(paths[0], &how, trace, &call->diags);
    case CONVERT_EVENTS: return event_trace_read(paths[0], &how, trace, &call->diags);
    case CONVERT_BGL: return bgl_trace_read(paths[0], &how, trace, &call->diags);
    case CONVERT_TABLE: return table_trace_read(paths[0], &how, trace, &call->diags);
    case CONVERT_XID: return xid_trace_read(paths, n, &how, trace, &call->diags);
    case CONVERT_SMI: return smi_trace_read(paths, n, &how, trace, &call->diags);
    default: return lanl_trace_read(paths[0], &window, trace, &call->diags);
    }
}

static enum status convert(struct invocation *call)
{
    struct fault_trace trace;
    enum status status = read_source(call, &trace);
    if (status != STATUS_OK)
        return status;
    int32_t hosts = trace.n_hosts > 0 ? trace.hosts[trace.n_hosts - 1].node + 1 : 0, nodes = fault_trace_nodes(&trace);
    info(call, 0, "%zu fault%s on %" PRId32 " node%s", trace.n_items, plural((int64_t)trace.n_items), nodes, plural(nodes));
    if (hosts > nodes)
        info(call, 0,
             "%" PRId32
             " host%s found; if others had no faults, give summary and fit the number of all with --nodes (here %" PRId32 ")",
             hosts, hosts == 1 ? " was" : "s were", hosts);
    if (trace.n_outside > 0)
        diag_note(&call->diags, (struct place){.file = call->operands[1]}, "ignored: %zu row%s without a node", trace.n_outside,
                  plural((int64_t)trace.n_outside));
    return write_trace(call, &trace);
}

/* --- the command --- */

struct action {
    const char *name;
    int n_operands; /* after the name */
    bool more;      /* or any number above */
    const char *needs;
    enum status (*run)(struct invocation *call);
};

static const struct action actions[] = {
    {"generate", 0, false, "no operand; specify the fleet with --preset", generate},
    {"summary", 1, false, "one trace: a shipped name or a file", summarise},
    {"convert", 1, true, "a file to convert; with --source xid or smi, one or more", convert},
    {"fit", 1, false, "one trace: a shipped name or a file", fit},
};

static enum status run(struct invocation *call)
{
    enum { N_ACTIONS = sizeof actions / sizeof *actions };
    const char *names[N_ACTIONS];
    for (int i = 0; i < N_ACTIONS; i++) {
        names[i] = actions[i].name;
        if (strcmp(call->operands[0], actions[i].name) != 0)
            continue;
        int above = call->n_operands - 1 - actions[i].n_operands;
        if (above == 0 || (above > 0 && actions[i].more))
            return actions[i].run(call);
        diag_error(&call->diags, PLACE_NONE, "msim faults %s takes %s", actions[i].name, actions[i].needs);
        return STATUS_USAGE;
    }
    char hint[96];
    diag_error(&call->diags, PLACE_NONE, "msim faults: there is no '%.40s'; %s", call->operands[0],
               name_hint(call->operands[0], names, N_ACTIONS, "it is generate, summary, fit or convert", hint, sizeof hint));
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

static const struct option_row options[] = {
    {.name = "preset",
     TEXT_FIELDS("NAME|FILE"),
     .initial = "llama3",
     .help = "generate: choose the fleet (delta, lanl, llama3, megascale, rsc-1, rsc-2, titan) or a model file. fit: take the "
             "kinds of repair from its causes"},
    {.name = "nodes",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e7,
     .fallback = "the preset's, or the trace's highest",
     .help = "set the number of nodes. convert: spread failures of jobs without named nodes over them"},
    {.name = "horizon",
     TIME_FIELDS,
     .low = 1,
     .high = TIME_LONGEST_S,
     .fallback = "the preset's, or to the last day of the trace",
     .help = "set the length of the trace; convert, summary and fit drop faults that begin later"},
    {.name = "rate",
     TEXT_FIELDS("X"),
     .check = check_rate,
     .fallback = "the preset's",
     .help = "generate: set the failures per node and day, such as 3.79e-3"},
    {.name = "source",
     CHOICE_FIELDS("FORMAT", convert_source_names),
     .fallback = "found from the columns or lines",
     .help = "convert: choose the format of the file"},
    {.name = "map",
     .argument = "COLUMN=NAME,...",
     .type = OPTION_LIST,
     .fallback = "usual names",
     .help = "convert: name the columns of a table of failures, such as time=started,node=server,down=repair_h; COLUMN is time, "
             "node, end, down, kind, factor, detail or xid"},
    {.name = "down",
     TIME_FIELDS,
     .high = 1e9,
     .initial = "1h",
     .help = "convert: set the outage of a node where the source does not say it"},
    {.name = "merge",
     TIME_FIELDS,
     .high = 1e9,
     .initial = "5min",
     .help = "convert: merge events of one node and cause that are closer than this; Xids of a node merge across causes (the "
             "worst one counts), states of a node merge into one outage; 0s: merge nothing"},
    {.name = "failed-jobs",
     .type = OPTION_FLAG,
     .help = "convert: also count jobs with GPUs that just FAILED, not only those with a state that blames the node"},
    FILE_ROW("model", NULL, "fit: also write the model, for --preset and msim run"),
    {.name = "systems",
     .argument = "N,...",
     .type = OPTION_LIST,
     .fallback = "all",
     .help = "convert: combine these systems into one cluster, in this order"},
    {.name = "from",
     TEXT_FIELDS("DATE"),
     .fallback = "the first day",
     .help = "convert: set the date that becomes time 0, such as 2003-01-01 or 2003-01-01T07:15; earlier faults are dropped, and "
             "those later than --horizon"},
    {0},
};

static const struct example examples[] = {
    {"msim faults generate --preset llama3 --nodes 1536 --horizon 30d --seed 73",
     "generate a month on 1,536 nodes at Llama 3's rate"},
    {"msim faults summary llama3-54d", "summarise rates, bursts, repair times, causes and worst nodes"},
    {"msim faults convert lanl_failures.csv.gz --systems 18,20 --from 2003-01-01 --horizon 974d -o lanl.csv",
     "convert 974 days of two LANL systems into one cluster"},
    {"msim faults fit lanl.csv --nodes 1536 --horizon 974d --model mine.yaml",
     "fit your own fault model, with confidence intervals and goodness of fit"},
    {"msim faults convert --source xid logs/*.dmesg -o faults.csv", "convert GPU errors of kernel logs, one file per host"},
    {"msim faults convert --source jobs sacct.txt -o faults.csv",
     "convert node failures from 'sacct -P -o JobID,State,Start,End,NodeList'"},
    {"msim faults convert --source nodes events.txt -o faults.csv",
     "convert outages from 'sacctmgr -P list event format=NodeName,TimeStart,TimeEnd,State,Reason "
     "start=2025-01-01'"},
    {0},
};

static const struct command_note notes[] = {
    {"convert --source jobs",
     "Reads the columns state (or status), end (or end_s, end_time; else start or submit with a duration), node "
     "(or NodeList, host) and the GPUs (gpus, num_gpu), in any case, separated by commas or, as in sacct -P, by "
     "bars. Times are seconds or dates, with or without a time zone. A job counts as a failure if its state "
     "blames the node or the hardware: NODE_FAIL, BOOT_FAIL, LAUNCH_FAILED and similar. A job that just FAILED "
     "counts only with --failed-jobs; one that ran out of time or memory never counts. A table without states, "
     "such as many from Philly and Acme, contains no failures. A table without node names needs --nodes."},
    {"convert --source nodes",
     "Reads the columns NodeName (or node, host), State, TimeStart (or start, from), TimeEnd (or end, to) and "
     "Reason, as sacctmgr -P list event writes them. A node that is down, failing or not responding has failed, "
     "for as long as the state lasts. A node that drains, is offline, in maintenance or reboots has a planned "
     "outage (kind planned). Consecutive states are one outage with the kind and reason of the first."},
    {"convert --source xid",
     "Reads one file or many: dmesg (also -T), syslog, journalctl or DCGM. The host is the one that the line "
     "names, else the file. Program errors (Xid 13, 31, 43 ...) do not count as faults. Informational Xids (45, "
     "63, 92, 154 ...) and unknown ones are dropped and reported. DCGM's gauge keeps the last Xid of a GPU, so "
     "only changes count; its lines must have the time after the value, in seconds or milliseconds since 1970."},
    {"convert --source smi",
     "Reads the CSV of nvidia-smi. A GPU is a straggler while its clock is below 95 % of its maximum because of "
     "a hardware slowdown (0x8), heat (0x20, 0x40) or the power brake (0x80). The power cap (0x4), fixed clocks "
     "(0x2) and sync boost (0x10) are not faults."},
    {"convert --source lanl, titan", "lanl: LANL's outage records (LA-UR-05-7318). titan: Titan's GPU events."},
    {0},
};

const struct command command_faults = {
    .name = "faults",
    .summary = "generate, summarise, fit or convert fault traces",
    .description = "generate writes a fault trace that resembles a published fleet. summary reports failure rate, burstiness, "
                   "skew across nodes, repair times and causes. fit estimates a fault model from a trace. convert reads the "
                   "records of other systems.\n"
                   "\n"
                   "A trace is a CSV table with the columns time_s, node, kind, down_s, factor and detail, and host if nodes "
                   "have names. msim run replays it. The same seed gives the same trace.",
    .operands = "generate | summary TRACE | fit TRACE | convert FILE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .notes = notes,
    .examples = examples,
    .run = run,
};
