/* Tables of jobs: those that a node ended, as failures at their ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/fault/record_table.h"
#include "traces/fault/trace_convert.h"
#include "traces/table/csv.h"

/* --- columns --- */

/* The same column under the names that public tables and sacct use, in lower case and without what is no letter. */
static const char *const state_names[] = {"state", "status", "jobstate", NULL};
static const char *const end_names[] = {"ends", "end", "endtime", "finishedtime", NULL};
static const char *const start_names[] = {"starts", "start",      "starttime",     "submits",
                                          "submit", "submittime", "submittedtime", NULL};
static const char *const duration_names[] = {"durations", "duration", "runtime", NULL};
static const char *const node_names[] = {"node", "host", "nodelist", "nodes", "hosts", NULL};
static const char *const gpu_names[] = {"numgpu", "gpus", "gpunum", "numgpus", "ngpus", NULL};
static const char *const id_names[] = {"jobid", NULL};

struct columns {
    int state, end, start, duration, node, gpus, id;
};

/* A column of the plural that holds nothing but whole numbers, or nothing, says how many nodes a job had. */
static bool holds_counts(const struct csv_table *table, int column)
{
    char word[64];
    if (column < 0)
        return false;
    record_word(table->header[column], word, sizeof word);
    if (strcmp(word, "nodes") != 0 && strcmp(word, "hosts") != 0)
        return false;
    for (size_t row = 0; row < table->n_rows; row++) {
        const char *text = csv_cell(table, row, column);
        char *end;
        double count = strtod(text, &end); /* as 8, or 8.0 */
        if (*end || count != floor(count))
            return false;
    }
    return true;
}

static bool find_columns(const struct csv_table *table, const struct convert_options *options, struct columns *columns,
                         struct diags *diags)
{
    size_t errors = diags->n_errors;
    struct place at = csv_header_place(table, 0);
    *columns = (struct columns){record_column(table, state_names), record_column(table, end_names),
                                record_column(table, start_names), record_column(table, duration_names),
                                record_column(table, node_names),  record_column(table, gpu_names),
                                record_column(table, id_names)};
    bool counts = holds_counts(table, columns->node);
    if (columns->state < 0)
        diag_error(diags, at,
                   "the column of job states is missing; name it state or status (a table without one contains no failures)");
    if (columns->end < 0 && (columns->start < 0 || columns->duration < 0))
        diag_error(diags, at, "the column of end times is missing; name it end_s, or add start_s (or submit_s) and duration_s");
    if ((columns->node < 0 || counts) && options->nodes <= 0)
        diag_error(diags, counts ? csv_header_place(table, columns->node) : at,
                   "%s; add a column node with their names, or specify --nodes N to spread the failures over N nodes",
                   counts ? "this column counts nodes, and none names them" : "the column of nodes is missing");
    if (counts)
        columns->node = -1;
    return diags->n_errors == errors;
}

/* --- jobs --- */

enum ending { ENDED_WELL, ENDED_BY_ITSELF, ENDED_BY_NODE };

/* As Slurm's states, and what other schedulers write in their place. */
static enum ending ending_of(const char *state)
{
    static const char *const of_node[] = {"nodefail", "nodeerr",        "nodelost", "nodedown",   "nodefault",
                                          "hostfail", "hostdown",       "bootfail", "launchfail", "reconfigfail",
                                          "hardware", "infrastructure", NULL};
    static const char *const of_job[] = {"fail", "error", "crash", NULL};
    static const char *const of_limits[] = {"timeout", "deadline", "memory", "oom", NULL};
    char word[80];
    record_word(state, word, sizeof word);
    if (record_has_any(word, of_node))
        return ENDED_BY_NODE;
    return record_has_any(word, of_job) && !record_has_any(word, of_limits) ? ENDED_BY_ITSELF : ENDED_WELL;
}

struct parser {
    struct records records;
    struct columns columns;
    size_t n_failed, n_several; /* jobs that just failed and are left out; failures of jobs on several nodes */
};

static bool end_of(struct parser *parser, size_t row, nanos *end)
{
    const struct columns *columns = &parser->columns;
    nanos duration = 0;
    if (columns->end >= 0)
        return records_time(&parser->records, row, columns->end, end);
    if (!records_time(&parser->records, row, columns->start, end) ||
        !records_duration(&parser->records, row, columns->duration, &duration))
        return false;
    *end += duration;
    return true;
}

/* "gpu[001-003,007]" is gpu001, gpu002, gpu003 and gpu007; others stand one behind the other, "n17,n18" or "n17 n18". The first
 * of them; false: nothing is named. */
static bool first_node(const char *text, char *name, size_t size, bool *several)
{
    size_t prefix = strcspn(text, ",;+ |["), n = 0, suffix = 0;
    const char *rest = text + prefix, *after = rest;
    if (strncmp(text, "None", 4) == 0 || strcmp(text, "(null)") == 0)
        return false;
    if (*rest == '[') {
        n = strcspn(rest + 1, "-,]");
        after = rest + strcspn(rest, "]");
        after += *after == ']';
        suffix = strcspn(after, ",;+ |[");
        *several = rest[1 + n] == '-' || rest[1 + n] == ',' || after[suffix];
    } else {
        *several = *rest != '\0';
    }
    snprintf(name, size, "%.*s%.*s%.*s", (int)(prefix < 100 ? prefix : 100), text, (int)(n < 20 ? n : 20), rest + 1,
             (int)(suffix < 100 ? suffix : 100), after);
    return *name != '\0';
}

static bool node_of(struct parser *parser, size_t row, int32_t *node)
{
    char name[256];
    bool several = false;
    if (parser->columns.node < 0) {
        *node = (int32_t)(row % (size_t)parser->records.options->nodes);
        return true;
    }
    if (!first_node(csv_cell(&parser->records.table, row, parser->columns.node), name, sizeof name, &several))
        return false;
    parser->n_several += several;
    *node = host_number(&parser->records.hosts, name, strlen(name));
    return true;
}

/* 17.batch and 17.0 are steps of Slurm's job 17, which has a row of its own. */
static bool is_step(const struct parser *parser, size_t row)
{
    return strchr(csv_cell(&parser->records.table, row, parser->columns.id), '.') != NULL;
}

static bool without_gpus(const struct parser *parser, size_t row)
{
    const char *text = csv_cell(&parser->records.table, row, parser->columns.gpus);
    char *end;
    return *text && strtod(text, &end) <= 0 && end != text;
}

static void read_row(struct parser *parser, size_t row)
{
    struct fault fault = {.down = parser->records.options->down, .speed = FULL_SPEED, .kind = FAULT_NODE};
    const char *state = csv_cell(&parser->records.table, row, parser->columns.state);
    enum ending ending = ending_of(state);
    if (ending == ENDED_WELL || is_step(parser, row))
        return;
    if (ending == ENDED_BY_ITSELF && (!parser->records.options->failed_jobs || without_gpus(parser, row)))
        parser->n_failed++;
    else if (!end_of(parser, row, &fault.time))
        return;
    else if (node_of(parser, row, &fault.node))
        fault_trace_add(&parser->records.trace, fault, state);
    else
        parser->records.trace.n_outside++;
}

static void tell(const struct parser *parser)
{
    const struct place at = {.file = parser->records.table.name};
    if (parser->n_failed > 0)
        diag_note(parser->records.diags, at, "left out: %zu job%s in state FAILED, %s", parser->n_failed,
                  parser->n_failed == 1 ? "" : "s",
                  parser->records.options->failed_jobs ? "without GPUs"
                                                       : "possibly because of bugs; --failed-jobs counts those with GPUs, too");
    records_tell_zones(&parser->records);
    if (parser->columns.node < 0)
        diag_note(parser->records.diags, at,
                  "no column names nodes: failures are spread over --nodes %d, so differences between nodes are not visible",
                  (int)parser->records.options->nodes);
    if (parser->n_several > 0)
        diag_note(parser->records.diags, at, "%zu failure%s of jobs on several nodes; each counts for the first node of its list",
                  parser->n_several, parser->n_several == 1 ? "" : "s");
}

enum status job_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                           struct diags *diags)
{
    struct parser parser = {.n_failed = 0};
    struct records *records = &parser.records;
    enum status status = records_open(records, path, options, diags);
    if (status != STATUS_OK)
        return status;
    bool good = find_columns(&records->table, options, &parser.columns, diags);
    for (size_t row = 0; good && row < records->table.n_rows; row++)
        read_row(&parser, row);
    if (records_good(records))
        tell(&parser);
    /* two failures on a node that was made up are two */
    return records_finish(records, parser.columns.node < 0 ? 0 : options->merge, trace);
}
