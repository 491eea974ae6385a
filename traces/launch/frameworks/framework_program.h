/*
 * framework_program.h - recipes that are programs: what a Python program assigns to a recipe (python_keys.h), as words.
 *
 *     cfg = llama3_8b_pretrain_config(tensor_parallelism=4)     the model llama3-8b, the defaults of recipes, tp 4
 *     cfg.train.global_batch_size = 512                         global_batch_size = 512
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_PROGRAM_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_PROGRAM_H

#include "model/spec/yaml.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch_words.h"

/* A recipe that pre-trains a model of the catalog; `family` is its folder in Megatron-Bridge. */
struct recipe {
    const char *model, *family, *name;
};
/* NULL after the last. The first two serve for other models, with grouped and with latent attention. */
extern const struct recipe bridge_recipes[], nemo2_recipes[];

/* Words of a program's tree. A model without a described width is the recipe's, by its name. The words are, in this order: the
 * defaults of recipes, the arguments of the recipe's function, the fields. The layout of a recipe is not known, which a warning
 * says; so are calls and names where a number is needed. */
MUST_CHECK enum status framework_read_program(const struct frameworks *frameworks, const struct yaml_node *root, const char *path,
                                              struct launch_words *words, const struct framework **framework,
                                              struct diags *diags);

#endif
