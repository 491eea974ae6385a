#include "model/spec/entry.h"

bool huggingface_is(const struct yaml_node *mapping)
{
    return yaml_find(mapping, "model_type") != NULL;
}

struct yaml_node *huggingface_entry(const struct yaml_node *config, const char *path, struct arena *arena, struct diags *diags)
{
    (void)path, (void)arena;
    diag_error(diags, config->at, "Hugging Face configurations are not read yet");
    return NULL;
}
