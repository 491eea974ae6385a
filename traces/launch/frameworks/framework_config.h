/*
 * framework_config.h - configuration files of other frameworks as words of Megatron-LM's arguments.
 *
 * A framework is a table that renames its keys, and what its code has fixed without a key:
 *
 *   NeMo 1           its Megatron GPT recipes: trainer, model
 *   NeMo 2           a recipe as NeMo-Run writes it: trainer.strategy, model.config; a model that is not described is the one
 *                    that the class of its configuration is called after
 *   Megatron-Bridge  its ConfigContainer: train, model
 *   torchtitan       job_config in TOML: training, model; keys that have stood in training, experimental and parallelism
 *   nanotron         parallelism, tokens, model
 *   Axolotl          base_model and its trainer's keys
 *   LLaMA-Factory    finetuning_type and its trainer's keys
 *   Hugging Face     TrainingArguments, as a file or as a script's flags
 *   llm-foundry, OLMo, OLMo-core (config.json; batches in tokens)
 *   MaxText          base.yml
 *   Colossal-AI      arguments of a plugin, or an application's flags
 *   companions       DeepSpeed's, accelerate's and peft's configurations only say more about a job that others describe
 *
 * and test recipes of Megatron-LM (MODEL_ARGS). YAML, JSON or TOML, or of the recipes that are programs (Megatron-Bridge, NeMo 2)
 * what a file that ends in .py assigns to their fields (python_keys.h). Keys that no table has are ignored: most of a
 * configuration is about data and logging. Names, defaults and meanings of keys are written down from knowledge of these
 * programs; a later release may call things otherwise, which shows in what is "not said".
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_CONFIG_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_CONFIG_H

#include "traces/launch/job/launch_words.h"

/* Does a file of this name and content look like a configuration (a mapping in YAML or JSON, by its name or its first line), not
 * a script? */
bool framework_is_config(const char *path, const char *bytes, size_t n);

/* The words of a configuration; *companion: it describes no job by itself. `path` must outlive the words. */
MUST_CHECK enum status framework_config_parse(const char *path, const char *bytes, size_t n, struct launch_words *words,
                                              bool *companion, struct diags *diags);

#endif
