/* framework_maxtext.c - MaxText: base.yml, and keys of its command line (per_device_batch_size=4). Not checked against the
 * program. megatron_mesh.c translates its axes. */
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_more.h"
#include "traces/launch/frameworks/framework_tree.h"

#define CHEAP_PARTS "layernorm mlp_act moe_act"
static void add_above_zero(struct launch_words *words, const struct yaml_node *root, const char *key, const char *name)
{
    const struct yaml_node *node = framework_find(root, key);
    if (node && node->kind == YAML_SCALAR && strtol(node->text, NULL, 10) > 0)
        framework_add(words, node, key, name, framework_text(words, node));
}

/* mlp_activations of [silu, linear] means a gated feed-forward part; one expert means a dense one. The capacity limits experts
 * that are products of whole matrices. Ragged products (sparse_matmul, the default) ignore it and drop nothing. */
void more_maxtext(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    const struct yaml_node *activations = framework_find(root, "mlp_activations"), *experts = framework_find(root, "num_experts");
    int n = 0;
    for (const struct yaml_node *item = activations && activations->kind == YAML_SEQUENCE ? activations->first : NULL; item;
         item = item->next)
        n++;
    if (n > 0)
        framework_add(words, activations, "mlp_activations", "swiglu", n > 1 ? "True" : "False");
    if (experts && experts->kind == YAML_SCALAR)
        framework_add(words, experts, "num_experts", "num_experts",
                      strcmp(experts->text, "1") == 0 ? "0" : framework_text(words, experts));
    add_above_zero(words, root, "n_routing_groups", "moe_router_num_groups"); /* -1: none */
    add_above_zero(words, root, "topk_routing_group", "moe_router_group_topk");
    const struct yaml_node *capacity = framework_find(root, "capacity_factor"), *sparse = framework_find(root, "sparse_matmul");
    bool dense = sparse && sparse->kind == YAML_SCALAR && !framework_is_true(sparse->text);
    if (dense && capacity && capacity->kind == YAML_SCALAR && strtod(capacity->text, NULL) > 0) {
        framework_add(words, capacity, "capacity_factor", "moe_expert_capacity_factor", framework_text(words, capacity));
        framework_add(words, capacity, "capacity_factor", "moe_pad_expert_input_to_capacity", "True");
    }
}
