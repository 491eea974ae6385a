/*
 * framework_config.h - configuration files of other frameworks as words of Megatron-LM's arguments.
 *
 *     run.yaml (Axolotl)                        words
 *     base_model: meta-llama/Meta-Llama-3-8B    catalog_model = meta-llama/Meta-Llama-3-8B     run.yaml:1
 *     micro_batch_size: 2                       micro_batch_size = 2                           run.yaml:2
 *     wandb_project: mine                       nothing: no table has it
 *
 * The tables in this folder (framework_table.h) know NeMo 1 and 2, Megatron-Bridge, torchtitan, nanotron, Axolotl, LLaMA-Factory,
 * Hugging Face's TrainingArguments, llm-foundry, OLMo, OLMo-core, MaxText, Colossal-AI and LitGPT. Three more describe no job by
 * themselves: DeepSpeed, accelerate and peft. Test recipes of Megatron-LM (MODEL_ARGS) are read, too.
 *
 * A file is YAML, JSON, TOML or, for Megatron-Bridge and NeMo 2, a program in Python (python_keys.h). Keys that no table has are
 * ignored: most of a configuration is about data and logging. A later release of a framework may rename a key; then the value
 * shows up as "not specified".
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_CONFIG_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_CONFIG_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch_words.h"

/* Does a file look like a configuration and not like a script? By its name, or by its first line: a mapping in YAML, JSON or
 * TOML. */
bool framework_is_config(const char *path, const char *bytes, size_t n);

/* The words of a configuration; *framework is whose it is, NULL: nobody's. `path` must outlive the words. */
MUST_CHECK enum status framework_config_parse(const struct frameworks *frameworks, const char *path, const char *bytes, size_t n,
                                              struct launch_words *words, const struct framework **framework,
                                              struct diags *diags);

#endif
