/*
 * framework_program.h - recipes that are programs: what a program in Python assigns to a recipe's fields (python_keys.h), as
 * words.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_PROGRAM_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_PROGRAM_H

#include "model/spec/yaml.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch_words.h"

/* A recipe that pretrains a model of the catalog; of Megatron-Bridge's the folder that has it. */
struct recipe {
    const char *model, *family, *name;
};
/* NULL after the last. The first two stand in for others, of grouped and of latent attention. */
extern const struct recipe bridge_recipes[], nemo2_recipes[];

/* Words of a program's tree. A model that it does not describe (by its width) is the recipe's, by its name, and so is what
 * recipes have by themselves, behind which what its function is told stands, and then the fields. Layouts of recipes are not
 * known, which is told, as are calls and names where a number has to stand. */
MUST_CHECK enum status framework_read_program(const struct frameworks *frameworks, const struct yaml_node *root, const char *path,
                                              struct launch_words *words, const struct framework **framework,
                                              struct diags *diags);

#endif
