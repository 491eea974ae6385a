#include "cli/output/narrow_gradients.h"

#include "cli/output/table.h"

void narrow_gradients_note(const size_t runs[N_PRECISIONS], struct diags *diags)
{
    static const struct {
        enum precision precision;
        const char *why;
    } narrow[] = {{PRECISION_BF16, "as optimizers that `zero` shards do"}, {PRECISION_FP16, "as runs in fp16 do"}};
    for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++) {
        const char *precision = precision_name(narrow[k].precision);
        size_t n = runs[narrow[k].precision];
        if (n > 0)
            diag_note(
                diags, PLACE_NONE,
                "%zu row%s reduce%s gradients in %s, %s; msim step uses fp32 unless you specify --set job.gradient_precision=%s",
                n, plural((int64_t)n), n == 1 ? "s" : "", precision, narrow[k].why, precision);
    }
}
