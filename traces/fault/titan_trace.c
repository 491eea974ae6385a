/* titan_trace.c - reads the GPU events of the Titan system. */
#include <stdlib.h>
#include <string.h>

#include "traces/fault/trace_convert.h"
#include "traces/table/csv.h"
#include "traces/table/date.h"

enum column { TIME, LOCATION, EVENT, N_COLUMNS };
static const struct csv_column expected[N_COLUMNS] = {
    [TIME] = {"time", true}, [LOCATION] = {"location", true}, [EVENT] = {"event", true}};

/* c21-5c0s7n2: column, row, cage, slot, node; -1: not such a text. */
static int place_of(const char *text)
{
    int column, row, cage, slot, node, end = 0;
    if (sscanf(text, "c%2d-%1dc%1ds%1dn%1d%n", &column, &row, &cage, &slot, &node, &end) != 5 || text[end] || column > 24 ||
        row > 7 || cage > 2 || slot > 7 || node > 3 || column < 0)
        return -1;
    return ((column * 8 + row) * 3 + cage) * 32 + slot * 4 + node;
}

static const char *cause_of(const char *event)
{
    if (strcmp(event, "DBE") == 0)
        return "Double-bit error (DBE)";
    return strcmp(event, "OTB") == 0 ? "Off the bus (OTB)" : event;
}

static void read_row(const struct csv_table *table, const int *columns, size_t row, const struct convert_options *options,
                     struct fault_trace *trace, struct diags *diags)
{
    struct fault fault = {.down = options->down, .speed = FULL_SPEED, .kind = FAULT_NODE};
    const char *time = csv_cell(table, row, columns[TIME]), *location = csv_cell(table, row, columns[LOCATION]);
    fault.node = place_of(location);
    if (!local_time_parse(time, &fault.time))
        diag_error(diags, csv_place(table, row, columns[TIME]), "'%.40s' is not a time; write it as 2014-01-23T05:59:42", time);
    else if (fault.node < 0)
        diag_error(diags, csv_place(table, row, columns[LOCATION]), "'%.40s' is not a location; write it as c21-5c0s7n2",
                   location);
    else {
        fault_trace_name_node(trace, fault.node, location);
        fault_trace_add(trace, fault, cause_of(csv_cell(table, row, columns[EVENT])));
    }
}

/* Places that never failed are in the cluster too: numbers stay those of the machine's floor. */
enum status titan_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                             struct diags *diags)
{
    struct csv_table table;
    struct fault_trace read = {0};
    int columns[N_COLUMNS];
    size_t errors = diags->n_errors;
    enum status status = csv_table_read(path, &table, diags);
    if (status != STATUS_OK)
        return status;
    status = csv_table_columns(&table, expected, N_COLUMNS, columns, diags);
    for (size_t row = 0; status == STATUS_OK && row < table.n_rows; row++)
        read_row(&table, columns, row, options, &read, diags);
    csv_table_free(&table);
    if (status != STATUS_OK || diags->n_errors > errors) {
        fault_trace_free(&read);
        return STATUS_BAD_INPUT;
    }
    status = convert_finish(&read, options, NULL, -1, path, diags);
    if (status == STATUS_OK)
        *trace = read;
    return status;
}
