/*
 * framework_tables.h - how frameworks call what Megatron-LM's arguments say. Private to framework_config.c.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLES_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLES_H

#include <stdbool.h>

struct launch_words;
struct yaml_node;

/* A word of theirs as an argument: `name` is what Megatron-LM's log calls it; NULL: the word changes nothing. */
struct framework_word {
    const char *word, *name, *value;
};

/* A key of theirs, by its path. The value stays, or is the opposite truth, or is one of the words (of which several may be the
 * same: each says something). */
struct framework_key {
    const char *path, *name;
    bool opposite;
    const struct framework_word *words;
    bool inside; /* that there is something in its mapping or list is what counts */
};

enum framework_form { FORM_YAML, FORM_TOML, FORM_PYTHON };

struct framework {
    const char *name;
    const char *signs[3];               /* keys, by their paths, that tell it: all of them */
    bool companion;                     /* no job by itself */
    const struct framework_word *fixed; /* what its code does without a key; `word` is unused */
    const struct framework_key *keys;
    const char *const *groups;           /* mappings whose keys are called as Megatron-LM's program calls its arguments */
    const char *model[3];                /* keys whose texts, joined by a dash, name the model */
    const struct framework_word *models; /* such names and what the catalog has for them; `name` is unused */
    const char *described;               /* where this key is there, the model is described, and not named */
    const char *unset;                   /* a value that says nothing; NULL: none */
    const char *base;                    /* the file that has all keys, of which a command sets some; NULL: none by that name */
    void (*more)(struct launch_words *words, const struct yaml_node *root); /* what is not one key; NULL: nothing */
    const char *const *ignored; /* paths of keys that change neither time nor memory, '*' behind what many begin with, '.' behind
                                 * a mapping: others that nobody reads are told one by one. NULL: nobody knows them all */
    enum framework_form form;   /* of an export */
    const char *const *written; /* the keys of an export, where the table has several for one thing or the mappings others;
                                 * '?' before those that are there with nothing, too, '!' before those that are there where
                                 * they are not as usual. NULL: all of the table */
};

enum { N_FRAMEWORKS = 17 };
extern const struct framework *const frameworks[N_FRAMEWORKS]; /* the first whose signs are there is meant */

/* Of torch's own stacks (framework_tables_torch.c, framework_torchtitan.c, framework_composer.c). */
extern const struct framework framework_torchtitan, framework_axolotl, framework_factory, framework_trainer, framework_accelerate,
    framework_olmo, framework_foundry, framework_peft;
/* Recipes that are programs (framework_tables.c). */
extern const struct framework framework_bridge, framework_nemo2;
/* In files of their own. */
extern const struct framework framework_maxtext, framework_olmo_core, framework_colossal, framework_litgpt;
/* What `nemo llm pretrain --factory RECIPE` does unasked. */
extern const struct framework_word framework_nemo_recipe[];
/* What their recipes call precisions and adapters, and that documents stand in a row. */
extern const struct framework_word framework_nemo2_precisions[], framework_bridge_precisions[], framework_peft_words[],
    framework_packed[];
/* Optimizers as libraries call them. */
extern const struct framework_word framework_optimizers[];
/* By this key a script's flags are known for keys of Hugging Face's TrainingArguments. */
#define FLAGS_SIGN "per_device_train_batch_size"
/* And by this one for Colossal-AI's. */
#define PLUGIN_SIGN "plugin"

#endif
