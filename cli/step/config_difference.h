/*
 * config_difference.h - the settings in which two experiments differ.
 */
#ifndef MSIM_CLI_STEP_CONFIG_DIFFERENCE_H
#define MSIM_CLI_STEP_CONFIG_DIFFERENCE_H

#include <jansson.h>

/*
 * [{"key": "cluster.gpu.name", "a": "h100-sxm", "b": "gb200"}, ...] in the order of the keys, null where one has no such key. Of
 * things that have a name (a model, a cluster, its GPU) and are not called the same, only the names count, and the named things
 * in them; a changed model (MODEL_CHANGED) is called the same, and sources are no difference.
 */
json_t *config_differences(const json_t *a, const json_t *b);

#endif
