/* Fault models: what is accepted can be written and read again, and draws faults in order of time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/faults/faults.h"
#include "tests/fuzz/fuzz.h"

static void round_trip(const struct fault_model *model, struct diags *diags)
{
    static struct fault_model again;
    char *text = fault_model_to_json(model);
    fuzz_expect(fault_model_parse("again", text, strlen(text), &again, diags) == STATUS_OK, "a written model is read");
    char *twice = fault_model_to_json(&again);
    fuzz_expect(strcmp(text, twice) == 0, "and is the same");
    free(twice);
    free(text);
}

static void draw(const struct fault_model *model)
{
    enum { NODES = 40, DAYS = 3 };
    double slow = 0;
    for (int i = 0; i < model->slow.n; i++)
        slow += model->slow.items[i].rate;
    double expected = (fault_model_total_rate(model) + slow) * NODES * DAYS;
    fuzz_expect(expected >= 0, "a rate is not negative");
    if (!(expected < 1e4))
        return;
    struct fault_trace trace;
    faults_generate(model, NODES, DAYS * 86400 * NANOS_PER_SECOND, 1, &trace);
    for (size_t i = 0; i < trace.n_items; i++) {
        const struct fault *fault = &trace.items[i];
        fuzz_expect(fault->node >= 0 && fault->node < NODES && fault->down >= 0 && fault->time >= 0, "faults are sound");
        fuzz_expect(i == 0 || trace.items[i - 1].time <= fault->time, "in order of time");
    }
    fault_trace_free(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fault_model model;
    struct diags diags = {0};
    char *text = fuzz_text(data, size);
    if (fault_model_parse("input", text, size, &model, &diags) == STATUS_OK) {
        round_trip(&model, &diags);
        draw(&model);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    free(text);
    diags_free(&diags);
    return 0;
}
