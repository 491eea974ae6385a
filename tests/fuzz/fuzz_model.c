/* Model files: msim's YAML and JSON, and Hugging Face configurations. What is accepted has countable parameters. */
#include <math.h>

#include "model/spec/catalog.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct transformer model;
    struct fuzz_file file = fuzz_file_open(data, size);
    if (catalog_model(file.path, &model, &diags) == STATUS_OK) {
        struct parameter_count count;
        transformer_parameters(&model, &count);
        fuzz_expect(isfinite(count.total) && count.total > 0, "a model has parameters");
        fuzz_expect(count.active <= count.total, "active parameters are some of them");
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    fuzz_file_close(&file);
    diags_free(&diags);
    return 0;
}
