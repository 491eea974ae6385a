/* Fault traces: what is accepted is in order of time, and is read back as written. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/fault/fault_trace.h"

static void round_trip(const struct fault_trace *trace, struct diags *diags)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fuzz_expect(out != NULL, "a stream in memory");
    fault_trace_write(trace, out);
    fclose(out);
    struct fuzz_file file = fuzz_file_open((const uint8_t *)text, size);
    struct fault_trace again;
    fuzz_expect(fault_trace_read(file.path, (struct fault_trace_limits){0}, &again, diags) == STATUS_OK,
                "a written trace is read");
    fuzz_expect(again.n_items == trace->n_items, "and has the same rows");
    for (size_t i = 0; i < again.n_items; i++) {
        const struct fault *a = &trace->items[i], *b = &again.items[i];
        fuzz_expect(a->time == b->time && a->down == b->down && a->node == b->node && a->speed == b->speed && a->kind == b->kind,
                    "with the same values");
    }
    fault_trace_free(&again);
    fuzz_file_close(&file);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct fault_trace trace;
    struct fuzz_file file = fuzz_file_open(data, size);
    if (fault_trace_read(file.path, (struct fault_trace_limits){0}, &trace, &diags) == STATUS_OK) {
        for (size_t i = 1; i < trace.n_items; i++)
            fuzz_expect(trace.items[i - 1].time <= trace.items[i].time, "in order of time");
        round_trip(&trace, &diags);
        fault_trace_free(&trace);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    fuzz_file_close(&file);
    diags_free(&diags);
    return 0;
}
