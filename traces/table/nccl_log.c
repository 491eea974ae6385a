#include "traces/table/nccl_log.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

enum { WORDS_MAX = 24, WORD_SIZE = 64, GPU_SIZE = 96 };
#define RATIO_ERROR    0.01  /* of bandwidths printed with two decimals */
#define RANKS_BY_RATIO 128.5 /* more ranks differ by less than that error */

/* --- the test ------------------------------------------------------------------------------------------------------ */

/* Names of tests, as programs and files spell them, and the operation of a kernel table; NULL: the table has none. */
static const struct test_name {
    const char *name, *op;
} test_names[] = {
    {"all_reduce", "all_reduce"},
    {"allreduce", "all_reduce"},
    {"all_gather", "all_gather"},
    {"allgather", "all_gather"},
    {"reduce_scatter", "reduce_scatter"},
    {"reducescatter", "reduce_scatter"},
    {"all_to_all", "all_to_all"},
    {"alltoall", "all_to_all"},
    {"broadcast", "broadcast"},
    {"sendrecv", NULL},
    {"hypercube", NULL},
    {"scatter", NULL},
    {"gather", NULL},
    {"reduce_perf", NULL},
};

/* The test that a text names; NULL: none. Longer names come first in the list than those that they contain. */
static const struct test_name *named_test(const char *text)
{
    for (size_t i = 0; i < sizeof test_names / sizeof *test_names; i++)
        if (strcasestr(text, test_names[i].name))
            return &test_names[i];
    return NULL;
}

/* A run of a test in the log. */
struct run {
    const struct test_name *named; /* NULL: nothing names it */
    int ranks;                     /* of the first group */
    int group_first;               /* the number of that group; -1: no rank yet */
    char (*hosts)[WORD_SIZE];
    size_t n_hosts, hosts_capacity;
    char gpu[GPU_SIZE];
    bool has_rows;
    bool contradicted; /* the bandwidths contradict the rank lines, and a warning says so */
};

struct reader {
    const char *path;
    const struct test_name *by_file;
    struct run run;
    FILE *csv;
    size_t n_rows, n_left_out; /* rows of tests that the table does not have */
    struct diags *diags;
};

static void begin_run(struct reader *r)
{
    free(r->run.hosts);
    r->run = (struct run){.group_first = -1};
}

/* --- lines of the header ------------------------------------------------------------------------------------------- */

static void add_host(struct run *run, const char *host)
{
    for (size_t i = 0; i < run->n_hosts; i++)
        if (strcmp(run->hosts[i], host) == 0)
            return;
    run->hosts = memory_grow(run->hosts, &run->hosts_capacity, run->n_hosts + 1, sizeof *run->hosts);
    snprintf(run->hosts[run->n_hosts++], WORD_SIZE, "%s", host);
}

/* "#  Rank  0 Group  0 Pid    100 on     node-a device  0 [0x18] NVIDIA H100 80GB HBM3"; releases before 2.12 have no group. */
static bool take_rank(struct reader *r, const char *line)
{
    char host[WORD_SIZE];
    int rank, group = 0, end = 0;
    const char *from = strstr(line, "Rank");
    if (!from || sscanf(from, "Rank %d", &rank) != 1)
        return false;
    const char *with_group = strstr(from, "Group"), *on = strstr(from, " on "), *device = on ? strstr(on, " device ") : NULL;
    if (!device || sscanf(on, " on %63s", host) != 1)
        return false;
    if (with_group && with_group < on && sscanf(with_group, "Group %d", &group) != 1)
        return false;
    if (r->run.has_rows)
        begin_run(r);
    if (r->run.group_first < 0)
        r->run.group_first = group;
    if (group != r->run.group_first)
        return true;
    r->run.ranks++;
    add_host(&r->run, host);
    const char *bus = strchr(device, '[');
    if (bus && sscanf(bus, "[%*[^]]] %n", &end) == 0 && end > 0 && !*r->run.gpu)
        snprintf(r->run.gpu, sizeof r->run.gpu, "%s", bus + end);
    for (char *p = r->run.gpu; *p; p++)
        *p = *p == '"' ? ' ' : *p; /* it becomes a cell of CSV */
    for (size_t i = strlen(r->run.gpu); i > 0 && isspace((unsigned char)r->run.gpu[i - 1]); i--)
        r->run.gpu[i - 1] = '\0';
    return true;
}

/* Comments: rank lines, the beginning of a run, the name of the test. */
static void take_comment(struct reader *r, const char *line)
{
    if (take_rank(r, line))
        return;
    if ((strstr(line, "nThread") || strstr(line, "Collective test starting")) && r->run.has_rows)
        begin_run(r);
    const struct test_name *named = strstr(line, "_perf") || strstr(line, "Collective test") ? named_test(line) : NULL;
    if (named)
        r->run.named = named;
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

struct words {
    char items[WORDS_MAX][WORD_SIZE];
    size_t n;
};

/* The words of a line behind a launcher's prefix. */
static void split(const char *line, struct words *words)
{
    words->n = 0;
    while (words->n < WORDS_MAX) {
        line += strspn(line, " \t\r");
        size_t n = strcspn(line, " \t\r\n");
        if (n == 0)
            return;
        snprintf(words->items[words->n++], WORD_SIZE, "%.*s", (int)(n < WORD_SIZE ? n : WORD_SIZE - 1), line);
        line += n;
    }
}

static bool is_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

/* A row: size, count, type, redop, [root,] time, algbw, busbw, ... */
struct row {
    double bytes, us, algorithm, bus; /* bandwidths in GB/s */
    const char *type, *redop;
};

/* Are the three words from `at` on a time and its bandwidths? The algorithm's is bytes over time, to the digits printed. */
static bool takes_times(const struct words *words, size_t at, struct row *row)
{
    return at + 2 < words->n && is_number(words->items[at], &row->us) && is_number(words->items[at + 1], &row->algorithm) &&
           is_number(words->items[at + 2], &row->bus) && row->us > 0 &&
           fabs(1e-3 * row->bytes / row->us - row->algorithm) <= 0.011 + 0.01 * row->algorithm;
}

/* Releases differ in whether a redop and a root are printed, so the place of the time is found by its bandwidths. */
static bool is_row(const struct words *words, struct row *row)
{
    double count;
    if (words->n < 6 || !is_number(words->items[0], &row->bytes) || !is_number(words->items[1], &count) ||
        !isalpha((unsigned char)words->items[2][0]))
        return false;
    row->type = words->items[2];
    row->redop = isalpha((unsigned char)words->items[3][0]) ? words->items[3] : "none";
    for (size_t at = 3; at <= 5; at++)
        if (takes_times(words, at, row))
            return true;
    return false;
}

/* The operation by its columns: the bus bandwidth of an all-reduce over two ranks equals the algorithm's, over more it is
 * larger; that of a reduce-scatter is smaller. NULL after the error. */
static const char *op_by_columns(struct reader *r, const struct row *row, struct place at)
{
    if (strcmp(row->redop, "none") != 0)
        return row->bus > 0.99 * row->algorithm ? "all_reduce" : "reduce_scatter";
    diag_error(r->diags, at,
               "nothing in this log names its test, and all-gather and all-to-all look alike; put the name of the test into the "
               "file's name (all_gather.log) or keep the command line in the log");
    return NULL;
}

/* The number of ranks: of the rank lines, unless the ratio of the bandwidths contradicts them, as in a log whose rank lines were
 * cut. */
static int ranks_of(struct reader *r, const struct row *row, const char *op, struct place at)
{
    int listed = r->run.ranks;
    double passes = strcmp(op, "all_reduce") == 0 ? 2 : 1, ratio = row->bus / row->algorithm;
    double expected = passes * (listed - 1) / listed, ranks = passes / (passes - ratio);
    bool tells = strcmp(op, "broadcast") != 0 && row->algorithm >= 1; /* enough digits */
    if (!tells || fabs(ratio / expected - 1) < RATIO_ERROR || !(ranks > 1.5 && ranks < RANKS_BY_RATIO))
        return listed;
    if (!r->run.contradicted)
        diag_warning(r->diags, at,
                     "the log lists %d ranks, but its bandwidths (%.4g and %.4g GB/s) are those of %.0f ranks; msim takes %.0f",
                     listed, row->algorithm, row->bus, ranks, ranks);
    r->run.contradicted = true;
    return (int)lround(ranks);
}

static const char *const types[][2] = {{"float", "fp32"}, {"half", "fp16"}, {"bfloat16", "bf16"}, {"double", "fp64"}};

static const char *type_name(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i][0]) == 0)
            return types[i][1];
    return type;
}

/* False after the error. */
static bool take_row(struct reader *r, const struct row *row, struct place at)
{
    r->run.has_rows = true;
    if (r->run.ranks < 2) {
        diag_error(r->diags, at,
                   r->run.ranks ? "one rank exchanges nothing; run nccl-tests on two GPUs or more"
                                : "no line '#  Rank ...' before this row; keep the header of nccl-tests in the log");
        return false;
    }
    if (row->bytes < 1) /* nccl-tests times empty messages, too */
        return true;
    const struct test_name *test = r->run.named ? r->run.named : r->by_file;
    if (test && !test->op) {
        r->n_left_out++;
        return true;
    }
    const char *op = test ? test->op : op_by_columns(r, row, at);
    if (!op)
        return false;
    fprintf(r->csv, "\"%s\",%s,%s,%d,%zu,%.0f,%.6g\n", r->run.gpu, op, type_name(row->type), ranks_of(r, row, op, at),
            r->run.n_hosts, row->bytes, row->us);
    r->n_rows++;
    return true;
}

/* Behind what a launcher puts before each line: "[1,0]<stdout>:", "0: ". */
static const char *without_prefix(const char *line)
{
    size_t n = *line == '[' ? strcspn(line, ":\n") : strspn(line, "0123456789 ");
    return line[n] == ':' && (*line == '[' || n > 0) ? line + n + 1 : line;
}

static bool take_line(struct reader *r, const char *text, int number)
{
    struct words words;
    struct row row;
    const char *line = without_prefix(text), *first = line + strspn(line, " \t");
    if (*first == '#') {
        take_comment(r, first);
        return true;
    }
    split(line, &words);
    if (is_row(&words, &row))
        return take_row(r, &row, (struct place){.file = r->path, .line = number, .column = 1});
    if (strstr(line, "_perf") && named_test(line)) { /* the command */
        if (r->run.has_rows)
            begin_run(r);
        r->run.named = named_test(line);
    }
    return true;
}

/* --- the whole ----------------------------------------------------------------------------------------------------- */

bool nccl_log_is(const char *text, size_t n)
{
    bool header = memmem(text, n, "nThread", 7) || memmem(text, n, "# Using devices", 15);
    return header && memmem(text, n, "busbw", 5);
}

static bool read_lines(struct reader *r, const char *text, size_t n)
{
    bool good = true;
    int number = 1;
    for (size_t at = 0; at < n && good; number++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end ? (size_t)(end - text) - at : n - at;
        char *line = memory_new(length + 1, 1);
        memcpy(line, text + at, length);
        good = take_line(r, line, number);
        free(line);
        at += length + 1;
    }
    return good;
}

enum status nccl_log_parse(const char *path, const char *text, size_t n, struct csv_table *table, struct diags *diags)
{
    char *csv;
    size_t n_csv;
    const char *slash = strrchr(path, '/');
    struct reader r = {.path = path, .by_file = named_test(slash ? slash + 1 : path), .run = {.group_first = -1}, .diags = diags};
    r.csv = open_memstream(&csv, &n_csv);
    fputs("gpu,op,dtype,ranks,nodes,bytes,time_us\n", r.csv);
    bool good = read_lines(&r, text, n);
    begin_run(&r);
    fclose(r.csv);
    if (good && r.n_rows == 0)
        diag_error(diags, (struct place){.file = path}, "this log of nccl-tests has no row of a collective that msim models");
    else if (good && r.n_left_out)
        diag_warning(diags, (struct place){.file = path}, "%zu rows of tests that msim does not model are left out",
                     r.n_left_out);
    enum status status = good && r.n_rows ? csv_table_parse(path, csv, n_csv, table, diags) : STATUS_BAD_INPUT;
    free(csv);
    return status;
}
