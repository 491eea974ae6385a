/* Topologies of other programs: what is accepted is a shape, and what is not says why. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/topology/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct topology_seen topology = {0};
    char *text = fuzz_text(data, size);
    if (topology_parse("topology", text, size, &topology, &diags) == STATUS_OK) {
        fuzz_expect(topology.gpus_per_node > 0 || topology.nodes > 0, "it has GPUs or nodes");
        fuzz_expect(topology.layers >= 0 && topology.layers <= 3, "and at most three layers");
        fuzz_expect(topology.nic_rate >= 0 && topology.leaf_oversubscription >= 0, "and rates");
        fuzz_expect(topology.leaf_nodes <= topology.nodes, "and no leaf of more nodes than there are");
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    free(text);
    diags_free(&diags);
    return 0;
}
