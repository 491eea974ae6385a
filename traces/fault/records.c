#include "traces/fault/records.h"

#include <stdlib.h>
#include <string.h>

#include "traces/table/node_list.h"

/* A list of more nodes than a cluster has is a mistake rather than an outage. */
enum { NODES_MAX = 1000000 };

enum status records_open(struct records *records, const char *path, const struct convert_options *options, struct diags *diags)
{
    *records = (struct records){.path = path, .options = options, .diags = diags};
    return record_table_open(&records->rows, path, diags);
}

bool records_duration(struct records *records, size_t row, int column, nanos *duration)
{
    return record_table_duration(&records->rows, row, column, FAULT_TRACE_LONGEST, duration);
}

bool records_is_cut(struct records *records, const char *cell)
{
    size_t n = strlen(cell);
    bool cut = records->rows.fixed && n > 0 && cell[n - 1] == '+';
    records->n_cut += cut;
    return cut;
}

int64_t records_add(struct records *records, const char *nodes, struct fault fault, const char *detail)
{
    char name[NODE_NAME_SIZE];
    size_t length = strlen(nodes);
    bool cut = records->rows.fixed && length > 0 && nodes[length - 1] == '+';
    int64_t n = cut ? 0 : node_list_count(nodes);
    if (n > NODES_MAX)
        return 0;
    for (int64_t i = 0; i < n; i++)
        if (node_list_name(nodes, i, name)) {
            fault.node = host_number(&records->hosts, name, strlen(name));
            fault_trace_add(&records->trace, fault, detail);
        }
    return n;
}

/* A date --from says nothing of seconds from the table's own start. */
static bool from_fits(const struct records *records)
{
    const struct fault_trace *trace = &records->trace;
    nanos latest = 0;
    for (size_t i = 0; i < trace->n_items; i++)
        latest = trace->items[i].time > latest ? trace->items[i].time : latest;
    if (!records->options->has_from || records->rows.n_dates > 0 || trace->n_items == 0 || latest >= RECORD_EARLIEST_OF_CALENDAR)
        return true;
    diag_error(records->diags, (struct place){.file = records->path},
               "--from is a date, and these times are seconds since the table's own start; --horizon alone cuts it");
    return false;
}

static void tell_cut(const struct records *records)
{
    if (records->n_cut > 0)
        diag_note(records->diags, (struct place){.file = records->path},
                  "left out: %zu row%s whose list of nodes is cut (it ends with +); sacct -P and sacctmgr -P write all of it",
                  records->n_cut, records->n_cut == 1 ? "" : "s");
}

enum status records_finish(struct records *records, nanos merge, struct fault_trace *trace)
{
    struct convert_options options = *records->options;
    bool good = record_table_good(&records->rows);
    options.merge = merge;
    good = good && record_table_times_fit(&records->rows); /* the table is still there, which has the text */
    if (good)
        tell_cut(records);
    host_table_name(&records->hosts, &records->trace);
    host_table_free(&records->hosts);
    record_table_close(&records->rows);
    enum status status = good && from_fits(records)
                             ? convert_finish(&records->trace, &options, NULL, -1, records->path, records->diags)
                             : STATUS_BAD_INPUT;
    if (status == STATUS_OK)
        *trace = records->trace;
    else
        fault_trace_free(&records->trace);
    return status;
}
