/* Fabric texts. What is accepted holds together, prints to a text that is accepted, and prints the same; routing stays on it. */
#include <stdlib.h>
#include <string.h>

#include "sim/fabric/route.h"
#include "tests/fuzz/fuzz.h"

static void routes_try(const struct fabric *fabric)
{
    struct router router = {.fabric = fabric, .routing = ROUTING_ECMP, .rail_aware = true};
    for (int i = 0; i < 16; i++) {
        int from = (int)((int64_t)fabric->n_gpus * i / 16), to = fabric->n_gpus - 1 - from / 2;
        struct path path;
        router.routing = i % 3 == 2 ? ROUTING_VALIANT : i % 2 ? ROUTING_ECMP : ROUTING_STATIC;
        if (!route_gpus(&router, from, to, (uint32_t)i, &path))
            continue;
        fuzz_expect(path.n <= PATH_HOPS, "a path fits");
        for (int h = 0; h < path.n; h++)
            fuzz_expect(path.links[h] < fabric_links(fabric), "its links exist");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct diags diags = {0};
    struct place at = {.file = "fuzz"};
    struct fabric fabric, again;
    if (fabric_parse(text, at, &fabric, &diags) == STATUS_OK) {
        char once[FABRIC_TEXT_MAX], twice[FABRIC_TEXT_MAX];
        fuzz_expect(fabric_check(&fabric, &diags) == STATUS_OK, "an accepted fabric holds together");
        routes_try(&fabric);
        fabric_format(&fabric, once, sizeof once);
        fabric_free(&fabric);
        fuzz_expect(fabric_parse(once, at, &again, &diags) == STATUS_OK, "a printed fabric parses");
        fuzz_expect(strcmp(fabric_format(&again, twice, sizeof twice), once) == 0, "and prints the same");
        fabric_free(&again);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    diags_free(&diags);
    free(text);
    return 0;
}
