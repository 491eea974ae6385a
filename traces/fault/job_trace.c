/* job_trace.c - tables of jobs: those that ended because of a node become failures at their end. */
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "traces/fault/records.h"
#include "traces/fault/trace_convert.h"
#include "traces/table/job_table.h"
#include "traces/table/node_list.h"

struct parser {
    struct records records;
    struct job_columns columns;
    size_t n_failed;  /* jobs that just failed and are left out */
    size_t n_several; /* failures of jobs on several nodes, of which one is taken */
    bool invented;    /* nodes that nobody named */
};

static bool check_columns(const struct parser *parser)
{
    const struct csv_table *table = &parser->records.rows.table;
    const struct job_columns *columns = &parser->columns;
    struct diags *diags = parser->records.diags;
    size_t errors = diags->n_errors;
    struct place at = csv_header_place(table, 0);
    bool nameless = columns->nodes < 0 && columns->failed_node < 0;
    if (columns->state < 0)
        diag_error(diags, at,
                   "the column of job states is missing; name it state or status (a table without one contains no failures)");
    if (columns->end < 0 && ((columns->start < 0 && columns->submit < 0) || columns->duration < 0))
        diag_error(diags, at, "the column of end times is missing; name it end_s, or add start_s (or submit_s) and duration_s");
    if (nameless && parser->records.options->nodes <= 0)
        diag_error(diags, columns->nodes_are_counts ? csv_header_place(table, columns->node_count) : at,
                   "%s; add a column node with their names, or specify --nodes N to spread the failures over N nodes",
                   columns->nodes_are_counts ? "this column counts nodes, and none names them"
                                             : "the column of nodes is missing");
    return diags->n_errors == errors;
}

/* The node that failed, where the table names it (FailedNode). Of a job on several nodes any may have: which one is taken depends
 * on the row alone, so that no node seems worse than the others. False: no node is named. */
static bool add_failure(struct parser *parser, size_t row, struct fault fault, const char *state)
{
    struct records *records = &parser->records;
    const struct csv_table *table = &records->rows.table;
    const char *nodes = csv_cell(table, row, parser->columns.nodes);
    char name[NODE_NAME_SIZE];
    if (parser->invented) {
        fault.node = (int32_t)(row % (size_t)records->options->nodes);
        fault_trace_add(&records->trace, fault, state);
        return true;
    }
    if (records_add(records, csv_cell(table, row, parser->columns.failed_node), fault, state) > 0)
        return true;
    if (records_is_cut(records, nodes))
        return true;
    int64_t n = node_list_count(nodes);
    uint64_t key = row, drawn = hash_key(&key, sizeof key) >> 20;
    if (n == 0 || !node_list_name(nodes, n == 1 ? 0 : (int64_t)(drawn % (uint64_t)n), name))
        return false;
    parser->n_several += n > 1;
    fault.node = host_number(&records->hosts, name, strlen(name));
    fault_trace_add(&records->trace, fault, state);
    return true;
}

static void read_row(struct parser *parser, size_t row)
{
    struct records *records = &parser->records;
    const struct csv_table *table = &records->rows.table;
    struct fault fault = {.down = records->options->down, .speed = FULL_SPEED, .kind = FAULT_NODE};
    const char *state = csv_cell(table, row, parser->columns.state);
    enum job_ending ending = job_ending_of(state);
    if (ending == JOB_ENDED_WELL || job_is_step(table, &parser->columns, row))
        return;
    if (ending == JOB_ENDED_BY_ITSELF && (!records->options->failed_jobs || job_gpus(table, &parser->columns, row) == 0))
        parser->n_failed++;
    else if (job_end(&records->rows, &parser->columns, row, FAULT_TRACE_LONGEST, &fault.time) &&
             !add_failure(parser, row, fault, state))
        records->trace.n_outside++;
}

static void tell(const struct parser *parser)
{
    const struct place at = {.file = parser->records.rows.table.name};
    if (parser->n_failed > 0)
        diag_note(parser->records.diags, at, "left out: %zu job%s in state FAILED, %s", parser->n_failed,
                  parser->n_failed == 1 ? "" : "s",
                  parser->records.options->failed_jobs ? "without GPUs"
                                                       : "possibly because of bugs; --failed-jobs counts those with GPUs, too");
    record_table_tell_zones(&parser->records.rows);
    if (parser->invented)
        diag_note(parser->records.diags, at,
                  "no column names nodes: failures are spread over --nodes %d, so differences between nodes are not visible",
                  (int)parser->records.options->nodes);
    if (parser->n_several > 0)
        diag_note(parser->records.diags, at,
                  "%zu failure%s of jobs on several nodes: which node failed is not known, so each counts for one of the job's "
                  "nodes, and differences between nodes are not visible; sacct -o ...,FailedNode names it",
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
    job_columns_find(&records->rows.table, &parser.columns);
    parser.invented = parser.columns.nodes < 0 && parser.columns.failed_node < 0;
    bool good = check_columns(&parser);
    for (size_t row = 0; good && row < records->rows.table.n_rows; row++)
        read_row(&parser, row);
    if (record_table_good(&records->rows))
        tell(&parser);
    /* two failures on a node that was made up are two */
    return records_finish(records, parser.invented ? 0 : options->merge, trace);
}
