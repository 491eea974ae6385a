#include "cli/output/beside.h"

#include <math.h>
#include <string.h>

void difference_cell(struct table *table, double value, int digits)
{
    if (fabs(value) < 0.5 * pow(10, -digits))
        table_cell(table, "%.*f", digits, 0.0);
    else
        table_cell(table, "%+.*f", digits, value);
}

void memory_parts(const struct footprint *memory, struct memory_part parts[N_MEMORY_PARTS])
{
    const struct memory_part all[N_MEMORY_PARTS] = {{"weights", memory->weights},     {"gradients", memory->gradients},
                                                    {"optimizer", memory->optimizer}, {"activations", memory->activations},
                                                    {"buffers", memory->buffers},     {"framework", memory->framework}};
    memcpy(parts, all, sizeof all);
}
