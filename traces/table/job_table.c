#include "traces/table/job_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same column under the names that public tables and sacct use (record_word). */
static const char *const id_names[] = {"jobid", "jobidraw", "jobname", "id", NULL};
static const char *const user_names[] = {"user", "username", "uid", NULL};
static const char *const state_names[] = {"state", "status", "jobstate", NULL};
static const char *const submit_names[] = {"submits", "submit", "submittime", "submittedtime", NULL};
static const char *const start_names[] = {"starts", "start", "starttime", "startedtime", NULL};
static const char *const end_names[] = {"ends", "end", "endtime", "finishedtime", "finishtime", NULL};
static const char *const duration_names[] = {"durations", "duration", "runtime", "elapsed", "elapsedraw", NULL};
static const char *const node_names[] = {"node", "host", "nodelist", "nodes", "hosts", "machine", NULL};
static const char *const failed_names[] = {"failednode", NULL};
static const char *const gpu_names[] = {"numgpu", "gpus", "gpunum", "numgpus", "ngpus", NULL};
static const char *const tres_names[] = {"alloctres", "tresalloc", "allocgres", "reqtres", NULL};
static const char *const count_names[] = {"nnodes", "nodenum", "numnodes", "allocnodes", NULL};

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

void job_columns_find(const struct csv_table *table, struct job_columns *columns)
{
    *columns = (struct job_columns){.id = record_column(table, id_names),
                                    .user = record_column(table, user_names),
                                    .state = record_column(table, state_names),
                                    .submit = record_column(table, submit_names),
                                    .start = record_column(table, start_names),
                                    .end = record_column(table, end_names),
                                    .duration = record_column(table, duration_names),
                                    .nodes = record_column(table, node_names),
                                    .failed_node = record_column(table, failed_names),
                                    .gpus = record_column(table, gpu_names),
                                    .tres = record_column(table, tres_names),
                                    .node_count = record_column(table, count_names)};
    if (!holds_counts(table, columns->nodes))
        return;
    columns->nodes_are_counts = true;
    columns->node_count = columns->nodes;
    columns->nodes = -1;
}

enum job_ending job_ending_of(const char *state)
{
    static const char *const of_node[] = {"nodefail", "nodeerr",        "nodelost", "nodedown",   "nodefault",
                                          "hostfail", "hostdown",       "bootfail", "launchfail", "reconfigfail",
                                          "hardware", "infrastructure", NULL};
    static const char *const of_job[] = {"fail", "error", "crash", NULL};
    static const char *const of_limits[] = {"timeout", "deadline", "memory", "oom", NULL};
    char word[80];
    record_word(state, word, sizeof word);
    if (record_has_any(word, of_node))
        return JOB_ENDED_BY_NODE;
    return record_has_any(word, of_job) && !record_has_any(word, of_limits) ? JOB_ENDED_BY_ITSELF : JOB_ENDED_WELL;
}

/* A name of a job, as in PAI's tables, may contain dots. */
bool job_is_step(const struct csv_table *table, const struct job_columns *columns, size_t row)
{
    const char *id = csv_cell(table, row, columns->id);
    size_t digits = strspn(id, "0123456789_[]-+");
    return digits > 0 && id[digits] == '.';
}

double job_gpus(const struct csv_table *table, const struct job_columns *columns, size_t row)
{
    char *end;
    const char *text = csv_cell(table, row, columns->gpus);
    double gpus = strtod(text, &end);
    if (end != text && gpus >= 0)
        return gpus;
    text = strstr(csv_cell(table, row, columns->tres), "gres/gpu=");
    if (!text)
        return -1;
    gpus = strtod(text + strlen("gres/gpu="), &end);
    return gpus >= 0 ? gpus : -1;
}

bool job_end(struct record_table *records, const struct job_columns *columns, size_t row, nanos longest, nanos *end)
{
    nanos duration = 0;
    int start = columns->start >= 0 ? columns->start : columns->submit;
    if (columns->end >= 0)
        return record_table_time(records, row, columns->end, end);
    if (!record_table_time(records, row, start, end) ||
        !record_table_duration(records, row, columns->duration, longest, &duration))
        return false;
    *end += duration;
    return true;
}
