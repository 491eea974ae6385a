/*
 * BlueGene's RAS log, as public archives have it: a label of alerts or "-", seconds since 1970, a date, a place, a time, the
 * place again, "RAS", the component, the severity, the message.
 *
 *     KERNDTLB 1118536327 2005.06.11 R30-M0-N9-C:J16-U01 2005-06-11-17.32.07.581048 R30-M0-N9-C:J16-U01 RAS KERNEL FATAL data TLB
 * ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/fault/trace_convert.h"

struct parser {
    struct fault_trace trace;
    struct host_table hosts;
    size_t n_rows, n_other;
};

/* A place is a chip; what is repaired is the node card, "R30-M0-N9". */
static size_t card_of(const char *place)
{
    const char *chip = strstr(place, "-C:");
    return chip ? (size_t)(chip - place) : strlen(place);
}

static bool read_line(struct parser *parser, const char *line, const struct convert_options *options)
{
    char label[32], place[64], component[24], severity[16], cause[96];
    double seconds;
    int end = 0;
    if (sscanf(line, "%31s %lf %*31s %63s %*63s %*63s RAS %23s %15s%n", label, &seconds, place, component, severity, &end) != 5 ||
        end == 0 || !(seconds >= 0 && seconds < 7.25e9))
        return false;
    parser->n_rows++;
    if (strcmp(severity, "FATAL") != 0 && strcmp(severity, "FAILURE") != 0) {
        parser->n_other++;
        return true;
    }
    struct fault fault = {.time = nanos_from_seconds(seconds), .down = options->down, .speed = FULL_SPEED, .kind = FAULT_NODE};
    fault.node = host_number(&parser->hosts, place, card_of(place));
    if (strcmp(label, "-") != 0) /* the alerts of the archives: a few dozen, where messages have numbers in them */
        snprintf(cause, sizeof cause, "%s", label);
    else
        snprintf(cause, sizeof cause, "%s %s", component, severity);
    fault_trace_add(&parser->trace, fault, cause);
    return true;
}

static bool read_lines(struct parser *parser, char *bytes, const struct convert_options *options, const char *path,
                       struct diags *diags)
{
    int number = 1;
    for (char *line = bytes; *line; number++) {
        size_t length = strcspn(line, "\n");
        bool more = line[length] == '\n';
        line[length] = '\0';
        bool blank = line[strspn(line, " \t\r")] == '\0' || *line == '#';
        if (!blank && !read_line(parser, line, options)) {
            diag_error(diags, (struct place){.file = path, .line = number},
                       "not a line of BlueGene's RAS log: LABEL SECONDS DATE PLACE TIME PLACE RAS COMPONENT SEVERITY MESSAGE");
            return false;
        }
        line += length + more;
    }
    return true;
}

enum status bgl_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                           struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    struct parser parser = {.n_rows = 0};
    char *bytes;
    size_t n;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = read_lines(&parser, bytes, options, path, diags) ? STATUS_OK : STATUS_BAD_INPUT;
    free(bytes);
    host_table_name(&parser.hosts, &parser.trace);
    host_table_free(&parser.hosts);
    if (status == STATUS_OK && parser.n_other > 0)
        diag_note(diags, (struct place){.file = path}, "left out: %zu of %zu messages, which are neither FATAL nor FAILURE",
                  parser.n_other, parser.n_rows);
    if (status == STATUS_OK)
        status = convert_finish(&parser.trace, options, NULL, -1, path, diags);
    else
        fault_trace_free(&parser.trace);
    if (status == STATUS_OK)
        *trace = parser.trace;
    return status;
}
