/* Records of other systems: the first byte says which. What is accepted is a fault trace that can be written and read. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/fault/lanl_trace.h"
#include "traces/fault/trace_convert.h"

static enum status convert(char source, const char *path, struct fault_trace *trace, struct diags *diags)
{
    const struct convert_options how = {.down = 3600 * NANOS_PER_SECOND, .merge = 300 * NANOS_PER_SECOND, .nodes = 16};
    const struct convert_options failed = {.down = 0, .merge = how.merge, .nodes = 3, .failed_jobs = true};
    const char *const twice[] = {path, path};
    const struct lanl_window window = {.from = LANL_FIRST_DAY};
    switch (source) {
    case 't': return titan_trace_read(path, &how, trace, diags);
    case 'j': return job_trace_read(path, &how, trace, diags);
    case 'x': return xid_trace_read(&path, 1, &how, trace, diags);
    case 's': return smi_trace_read(&path, 1, &how, trace, diags);
    case 'n': return node_trace_read(path, &how, trace, diags);
    case 'f': return job_trace_read(path, &failed, trace, diags);
    case 'c': return slurm_log_read(path, &how, trace, diags);
    case 'e': return event_trace_read(path, &how, trace, diags);
    case 'b': return bgl_trace_read(path, &how, trace, diags);
    case 'p': return table_trace_read(path, &how, trace, diags);
    case 'X': return xid_trace_read(twice, 2, &how, trace, diags);
    default: return lanl_trace_read(path, &window, trace, diags);
    }
}

static void check(const struct fault_trace *trace, struct diags *diags)
{
    char *text = NULL;
    size_t size = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        fuzz_expect(fault->time >= 0 && fault->down >= 0 && fault->node >= 0, "faults are sound");
        fuzz_expect(fault->speed >= 0 && fault->speed <= FULL_SPEED, "a speed is a part of the full one");
        fuzz_expect(i == 0 || trace->items[i - 1].time <= fault->time, "in order of time");
    }
    FILE *out = open_memstream(&text, &size);
    fuzz_expect(out != NULL, "a stream in memory");
    fault_trace_write(trace, out);
    fclose(out);
    struct fuzz_file file = fuzz_file_open((const uint8_t *)text, size);
    struct fault_trace again;
    fuzz_expect(fault_trace_read(file.path, (struct fault_trace_limits){0}, &again, diags) == STATUS_OK,
                "a converted trace is read");
    fuzz_expect(again.n_items == trace->n_items, "and has the same rows");
    fault_trace_free(&again);
    fuzz_file_close(&file);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct diags diags = {0};
    struct fault_trace trace;
    enum convert_source source;
    struct fuzz_file file = fuzz_file_open(data + 1, size - 1);
    bool known = convert_source_of(file.path, &source, &diags) == STATUS_OK;
    fuzz_expect(known == (diags.n_errors == 0), "an unknown name is an error");
    diags_free(&diags);
    diags = (struct diags){0};
    if (convert((char)data[0], file.path, &trace, &diags) == STATUS_OK) {
        check(&trace, &diags);
        fault_trace_free(&trace);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    fuzz_file_close(&file);
    diags_free(&diags);
    return 0;
}
