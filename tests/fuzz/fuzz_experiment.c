/* Experiment files. What is accepted prints as JSON that is accepted. */
#include <stdlib.h>
#include <string.h>

#include "model/spec/experiment.h"
#include "tests/fuzz/fuzz.h"

static enum status load(const uint8_t *data, size_t size, struct experiment *experiment, struct diags *diags)
{
    struct fuzz_file file = fuzz_file_open(data, size);
    struct experiment_flags flags = {.file = file.path};
    enum status status = experiment_load(&flags, experiment, diags);
    fuzz_file_close(&file);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct experiment experiment;
    if (load(data, size, &experiment, &diags) == STATUS_OK) {
        char *json = experiment_to_json(&experiment);
        fuzz_expect(load((const uint8_t *)json, strlen(json), &experiment, &diags) == STATUS_OK,
                    "the effective configuration loads");
        free(json);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    diags_free(&diags);
    return 0;
}
