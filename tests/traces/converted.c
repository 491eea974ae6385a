#include "tests/traces/converted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/base/append.h"
#include "traces/fault/lanl_trace.h"
#include "traces/fault/xid.h"
#include "traces/table/date.h"

const struct convert_options usual = {.down = 60 * MINUTE, .merge = 5 * MINUTE};

void files_add(struct files *files, const char *text)
{
    char *path = files->paths[files->n];
    snprintf(path, sizeof files->paths[0], "convert-XXXXXX");
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    files->names[files->n++] = path;
}

/* "second node down detail;" of every fault, or the mistakes; notes behind. */
static void text_of(const struct fault_trace *trace, const struct diags *diags, enum status status, char *text, size_t size)
{
    *text = '\0';
    for (size_t i = 0; status == STATUS_OK && i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        text_append(text, size, "%" PRId64 " %" PRId32 " %" PRId64 " %.6s%s;", fault->time / NANOS_PER_SECOND, fault->node,
                    fault->down / NANOS_PER_SECOND, fault_trace_detail(trace, fault),
                    fault->kind == FAULT_PLANNED ? " planned" : "");
    }
    for (size_t i = 0; i < diags->n_items; i++)
        text_append(text, size, "|%s", diags->items[i].text);
}

const char *converted(several *reader, struct convert_options options, const char *const *texts)
{
    static char text[4096];
    struct files files = {.n = 0};
    struct fault_trace trace = {0};
    struct diags diags = {0};
    for (; *texts; texts++)
        files_add(&files, *texts);
    enum status status = reader(files.names, files.n, &options, &trace, &diags);
    text_of(&trace, &diags, status, text, sizeof text);
    ck_assert_int_eq(status == STATUS_OK, diags.n_errors == 0);
    if (status == STATUS_OK)
        fault_trace_free(&trace);
    for (int i = 0; i < files.n; i++)
        unlink(files.names[i]);
    diags_free(&diags);
    return text;
}

enum status jobs(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                 struct diags *diags)
{
    ck_assert_int_eq(n, 1);
    return job_trace_read(paths[0], options, trace, diags);
}

enum status nodes(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                  struct diags *diags)
{
    ck_assert_int_eq(n, 1);
    return node_trace_read(paths[0], options, trace, diags);
}

enum status titan(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                  struct diags *diags)
{
    ck_assert_int_eq(n, 1);
    return titan_trace_read(paths[0], options, trace, diags);
}

const char *host_of_first(const char *text)
{
    static char host[64];
    struct files file = {.n = 0};
    struct fault_trace trace;
    struct diags diags = {0};
    files_add(&file, text);
    ck_assert_int_eq(xid_trace_read(file.names, 1, &usual, &trace, &diags), STATUS_OK);
    unlink(file.names[0]);
    const char *name = fault_trace_host(&trace, trace.items[0].node);
    snprintf(host, sizeof host, "%s", strcmp(name, file.names[0]) == 0 ? "the file" : name);
    fault_trace_free(&trace);
    diags_free(&diags);
    return host;
}

struct convert_options window(const char *from, nanos length)
{
    struct convert_options options = usual;
    options.has_from = from != NULL;
    if (from)
        ck_assert(local_time_parse(from, &options.from));
    options.length = length;
    return options;
}
