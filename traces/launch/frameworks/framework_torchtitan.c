/* framework_torchtitan.c - torchtitan: compiled components, and stages by the names of their modules. */
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/frameworks/framework_more.h"
#include "traces/launch/frameworks/framework_tree.h"

/* Where components are listed the model and the loss are compiled if they are among them. */
static void read_components(struct launch_words *words, const struct yaml_node *root)
{
    const struct yaml_node *components = framework_find(root, "compile.components");
    bool listed = components && components->kind == YAML_SEQUENCE, model = false, loss = false;
    for (const struct yaml_node *item = listed ? components->first : NULL; item; item = item->next) {
        model |= item->kind == YAML_SCALAR && strcmp(item->text, "model") == 0;
        loss |= item->kind == YAML_SCALAR && strcmp(item->text, "loss") == 0;
    }
    if (listed && !model)
        framework_add(words, components, "compile.components", "torch_compile", "False");
    if (listed && !loss)
        framework_add(words, components, "compile.components", "compiled_cross_entropy", "False");
}

/* A stage by the names of its modules as Megatron-LM's layout has it: "Et*3". How many layers there are up to its end, behind
 * `layers` before it; -1: they are not the next ones. */
static int read_stage(const struct yaml_node *stage, int layers, char *text, size_t size)
{
    char next[32], ends[2][2] = {"", ""};
    int first = layers;
    for (const struct yaml_node *item = stage->kind == YAML_SEQUENCE ? stage->first : NULL; item; item = item->next) {
        const char *name = item->kind == YAML_SCALAR ? item->text : "";
        snprintf(next, sizeof next, "layers.%d", layers);
        if (strcmp(name, "tok_embeddings") == 0)
            memcpy(ends[0], "E", 2);
        else if (strcmp(name, "output") == 0)
            memcpy(ends[1], "L", 2);
        else if (strcmp(name, next) == 0)
            layers++;
        else if (strcmp(name, "norm") != 0)
            return -1;
    }
    text_append(text, size, "%s%s", first || *text ? "|" : "", ends[0]);
    if (layers > first)
        text_append(text, size, layers - first > 1 ? "t*%d" : "t", layers - first);
    text_append(text, size, "%s", ends[1]);
    return stage->kind == YAML_SEQUENCE ? layers : -1;
}

/* Stages by hand; such as are no layers in their order are only told. */
static void read_modules(struct launch_words *words, const struct yaml_node *root)
{
    enum { STAGES_SIZE = 4096 };
    static const char path[] = "parallelism.module_fqns_per_model_part";
    const struct yaml_node *parts = framework_find(root, path);
    char text[STAGES_SIZE] = "";
    int layers = 0;
    if (!parts || parts->kind != YAML_SEQUENCE || !parts->first)
        return;
    for (const struct yaml_node *part = parts->first; part && layers >= 0; part = part->next)
        layers = read_stage(part, layers, text, sizeof text);
    bool whole = layers > 0 && strlen(text) + 1 < sizeof text;
    framework_add(words, parts, path, whole ? "pipeline_model_parallel_layout" : "pipeline_split_points",
                  whole ? launch_text(words, text, strlen(text)) : "several");
}

void more_torchtitan(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    read_components(words, root);
    read_modules(words, root);
}
