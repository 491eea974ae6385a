/* Layout texts. What is accepted prints to a text that is accepted and prints the same. */
#include <stdlib.h>
#include <string.h>

#include "model/layout/layout.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct diags diags = {0};
    struct layout layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    if (layout_parse(text, &layout, &diags) == STATUS_OK) {
        char once[512], twice[512];
        layout_format(&layout, once, sizeof once);
        struct layout again = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
        fuzz_expect(layout_parse(once, &again, &diags) == STATUS_OK, "a printed layout parses");
        fuzz_expect(strcmp(layout_format(&again, twice, sizeof twice), once) == 0, "and prints the same");
        layout_brief(&layout, once, sizeof once);
        fuzz_expect(layout_parse(once, &again, &diags) == STATUS_OK, "so does its brief form");
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    diags_free(&diags);
    free(text);
    return 0;
}
