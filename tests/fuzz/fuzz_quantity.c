/* Quantities: first byte the dimension, then the text. What is accepted is finite, and prints. */
#include <math.h>
#include <stdlib.h>

#include "model/base/units.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum dimension dimension = (enum dimension)(data[0] % (DIM_FRACTION + 1));
    char *text = fuzz_text(data + 1, size - 1);
    char why[64] = "", shown[64];
    double value = 0;
    if (quantity_parse(text, dimension, &value, why, sizeof why) == STATUS_OK) {
        fuzz_expect(isfinite(value), "a quantity is finite");
        quantity_format(value, dimension, shown, sizeof shown);
        nanos_from_seconds(value);
    } else {
        fuzz_expect(why[0] != '\0', "a refusal says why");
    }
    free(text);
    return 0;
}
