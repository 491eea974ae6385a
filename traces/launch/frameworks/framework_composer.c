/* framework_composer.c - MosaicML's Composer and its relatives: llm-foundry (MPT), OLMo until OLMo-core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_more.h"
#include "traces/launch/frameworks/framework_tree.h"

/* --- MosaicML's llm-foundry: MPT --- */

/* Options of a compiler, if none of them: it is used. */
static void read_compile(struct launch_words *words, const struct yaml_node *root, const char *key)
{
    const struct yaml_node *options = framework_find(root, key);
    if (!options || options->kind != YAML_MAPPING)
        return;
    framework_add(words, options, key, "torch_compile", "True");
    framework_add(words, options, key, "compiled_cross_entropy", "True");
}

void more_olmo(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    read_compile(words, root, "compile");
}

/* expansion_ratio: the width of a feed-forward part over the width of the model. */
void more_llm_foundry(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    read_compile(words, root, "compile_config");
    const struct yaml_node *ratio = framework_find(root, "model.expansion_ratio"), *width = framework_find(root, "model.d_model");
    if (!ratio || ratio->kind != YAML_SCALAR || !width || width->kind != YAML_SCALAR ||
        framework_find(root, "model.ffn_config.ffn_hidden_size"))
        return;
    char text[32];
    double product = strtod(ratio->text, NULL) * strtod(width->text, NULL);
    if (!(product >= 1 && product <= 1e9))
        return;
    snprintf(text, sizeof text, "%.0f", product);
    framework_add(words, ratio, "model.expansion_ratio", "ffn_hidden_size", launch_text(words, text, strlen(text)));
}
