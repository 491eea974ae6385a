/* profile_table.c - tables of launches: Nsight Systems (nsys stats -r cuda_gpu_trace --format csv), rocprofv3 (--kernel-trace)
 * and its two predecessors. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/memory.h"
#include "traces/profile/profile_internal.h"
#include "traces/table/csv.h"

/* Columns as the tools name them, with their units in seconds. */
struct time_column {
    const char *name;
    double unit;
};
static const struct time_column starts[] = {{"Start (ns)", 1e-9},
                                            {"Start (us)", 1e-6},
                                            {"Start (ms)", 1e-3},
                                            {"Start (s)", 1},
                                            {"Start_Timestamp", 1e-9},
                                            {"BeginNs", 1e-9},
                                            {0}};
static const struct time_column durations[] = {
    {"Duration (ns)", 1e-9}, {"Duration (us)", 1e-6}, {"Duration (ms)", 1e-3}, {"Duration (s)", 1}, {0}};
static const struct time_column ends[] = {{"End_Timestamp", 1e-9}, {"End (ns)", 1e-9}, {"EndNs", 1e-9}, {0}};
static const char *const names[] = {"Name", "Kernel_Name", "KernelName", NULL};
static const char *const devices[] = {"Device", "Agent_Id", "GPU_ID", "gpu-id", NULL};

struct columns {
    int start, duration, end, name, device;
    double start_unit, duration_unit, end_unit;
};

static int find_time(const struct csv_table *table, const struct time_column *of, double *unit)
{
    for (; of->name; of++)
        if (csv_table_column(table, of->name) >= 0) {
            *unit = of->unit;
            return csv_table_column(table, of->name);
        }
    return -1;
}

static int find_text(const struct csv_table *table, const char *const *of)
{
    for (; *of; of++)
        if (csv_table_column(table, *of) >= 0)
            return csv_table_column(table, *of);
    return -1;
}

static bool find_columns(const struct csv_table *table, struct columns *c, struct diags *diags)
{
    c->start = find_time(table, starts, &c->start_unit);
    c->duration = find_time(table, durations, &c->duration_unit);
    c->end = find_time(table, ends, &c->end_unit);
    c->name = find_text(table, names);
    c->device = find_text(table, devices);
    if (c->start >= 0 && c->name >= 0 && (c->duration >= 0 || c->end >= 0))
        return true;
    diag_error(diags, csv_header_place(table, 0),
               "neither a trace of torch.profiler or JAX (.json) nor a table of launches: 'nsys stats -r cuda_gpu_trace --format "
               "csv' and "
               "rocprofv3 --kernel-trace write those");
    return false;
}

static enum profile_kind kind_of_row(const char *name, const struct layout *layout)
{
    if (strncmp(name, "[CUDA mem", 9) == 0)
        return PROFILE_COPIES;
    enum profile_kind kind = profile_kernel_kind(name);
    const struct exchange_words words = {.kernel = name, .operation = "", .group = ""};
    return kind == PROFILE_EXCHANGE ? profile_exchange_kind(&words, layout) : kind;
}

static bool read_row(const struct csv_table *table, size_t row, const struct columns *c, struct profile_builder *b,
                     struct diags *diags)
{
    double start, other;
    bool by_end = c->duration < 0;
    if (csv_cell_number(table, row, c->start, -1e20, 1e20, &start, diags) != STATUS_OK ||
        csv_cell_number(table, row, by_end ? c->end : c->duration, -1e20, 1e20, &other, diags) != STATUS_OK)
        return false;
    double from = start * c->start_unit, length = by_end ? other * c->end_unit - from : other * c->duration_unit;
    if (!profile_is_time(from, length)) {
        diag_error(diags, csv_place(table, row, c->start), "a launch cannot begin or last so");
        return false;
    }
    const char *name = csv_cell(table, row, c->name);
    profile_add_span(b, kind_of_row(name, b->layout), name, (struct profile_step){from, from + length});
    return true;
}

/* "NVIDIA H100 80GB HBM3 (0)" without the number of the device; rocprof tells a number alone, or "Agent 4". */
static void take_device(struct profile *p, const char *device)
{
    const char *end = strrchr(device, '(');
    int length = end && end > device ? (int)(end - device) : (int)strlen(device);
    while (length > 0 && device[length - 1] == ' ')
        length--;
    if (strncmp(device, "Agent ", 6) == 0)
        return;
    if (strpbrk(device, "abcdefghijklmnopqrstuvwxyz") || strncasecmp(device, "NVIDIA", 6) == 0)
        snprintf(p->gpu, sizeof p->gpu, "%.*s", length, device);
}

static bool has_text(const char *line, size_t n, const char *text)
{
    return memmem(line, n, text, strlen(text)) != NULL;
}

/* Does a line name a column of names and one of starts? */
static bool is_header(const char *line, size_t n)
{
    bool named = false, starting = false;
    for (const char *const *name = names; *name; name++)
        named |= has_text(line, n, *name);
    for (const struct time_column *start = starts; start->name; start++)
        starting |= has_text(line, n, start->name);
    return named && starting;
}

/* nsys tells on standard output what it does before it prints the table. */
enum { TALK_MAX = 64 };
static size_t talk_before_header(const char *text, size_t n, size_t *lines)
{
    size_t at = 0;
    for (*lines = 0; at < n && *lines < TALK_MAX; ++*lines) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end ? (size_t)(end - (text + at)) : n - at;
        if (is_header(text + at, length))
            return at;
        at += length + (end != NULL);
    }
    *lines = 0;
    return 0;
}

/* The table alone, with an empty line for each line of talk so that those of errors are the file's. */
static enum status parse_table(const char *text, size_t n, const char *path, const struct watch *watch, struct csv_table *table,
                               struct diags *diags)
{
    size_t lines, talk = talk_before_header(text, n, &lines), n_table = n - talk;
    if (talk == 0)
        return csv_table_parse_watched(path, text, n, watch, table, diags);
    char *bare = memory_new(lines + n_table, 1);
    memset(bare, '\n', lines);
    memcpy(bare + lines, text + talk, n_table);
    enum status status = csv_table_parse_watched(path, bare, lines + n_table, watch, table, diags);
    free(bare);
    return status;
}

/* Cells are half of the work, their meaning the other half: the outer watch gets both. */
static void tell_of_cells(void *outer, double done, double total)
{
    watch_tell(outer, done / total, 2);
}

static void tell_of_rows(const struct profile_builder *b, size_t row, size_t n_rows)
{
    if (row % 4096 == 0 || row == n_rows)
        watch_tell(b->watch, 1 + (double)row / (double)n_rows, 2);
}

/* Of a trace of several devices those of the first row's. */
enum status profile_from_table(const char *text, size_t n, const char *path, struct profile_builder *b, struct diags *diags)
{
    struct csv_table table;
    struct columns columns = {0};
    struct watch watch = {tell_of_cells, (void *)b->watch};
    enum status status = parse_table(text, n, path, &watch, &table, diags);
    if (status != STATUS_OK)
        return status;
    bool good = find_columns(&table, &columns, diags);
    size_t others = 0;
    for (size_t row = 0; good && row < table.n_rows; row++) {
        if (strcmp(csv_cell(&table, row, columns.device), csv_cell(&table, 0, columns.device)) == 0)
            good = read_row(&table, row, &columns, b, diags);
        else
            others++;
        tell_of_rows(b, row + 1, table.n_rows);
    }
    if (good && others > 0)
        diag_warning(diags, (struct place){.file = path}, "%zu launches on other devices than '%s' are left out", others,
                     csv_cell(&table, 0, columns.device));
    if (good && table.n_rows > 0)
        take_device(&b->profile, csv_cell(&table, 0, columns.device));
    csv_table_free(&table);
    return good ? STATUS_OK : STATUS_BAD_INPUT;
}
