/*
 * framework_config.h - configuration files of other frameworks as words of Megatron-LM's arguments.
 *
 * A framework is a table that renames its keys, and what its code has fixed without a key: NeMo (its Megatron GPT recipes of
 * version 1: trainer, model), nanotron (parallelism, tokens, model), DeepSpeed (zero_optimization, batch sizes, bf16, fp16),
 * which only says more about a job that its arguments describe, and test recipes of Megatron-LM (MODEL_ARGS). YAML or JSON. Keys
 * that no table has are ignored: most of a configuration is about data and logging.
 */
#ifndef MSIM_TRACES_FRAMEWORK_CONFIG_H
#define MSIM_TRACES_FRAMEWORK_CONFIG_H

#include "traces/launch/launch_words.h"

/* Does a file of this name and content look like a configuration (a mapping in YAML or JSON, by its name or its first line), not
 * a script? */
bool framework_is_config(const char *path, const char *bytes, size_t n);

/* The words of a configuration; *companion: it describes no job by itself. `path` must outlive the words. */
MUST_CHECK enum status framework_config_parse(const char *path, const char *bytes, size_t n, struct launch_words *words,
                                              bool *companion, struct diags *diags);

#endif
