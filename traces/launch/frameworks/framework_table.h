/*
 * framework_table.h - the table of a framework: its keys as Megatron-LM's arguments.
 *
 *     name: torchtitan                                        (traces/launch/frameworks/torchtitan.yaml)
 *     signs: [training, model]                                a configuration with these keys is torchtitan's
 *     fixed:
 *     - [overlap_p2p_comm, False]                             the program always does this
 *     keys:
 *     - {key: training.seq_len, is: seq_length}               the value is the argument's
 *     - {key: model.bias, not: disable_bias}                  the opposite truth
 *     - {key: optimizer.name, words: optimizers}              one of the words below
 *     words:
 *       optimizers:
 *       - [AdamW, optimizer, adam]                            the word AdamW is --optimizer adam
 *
 * The same table is read in both directions. README.md of this folder describes all keys of a file.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLE_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLE_H

#include <stdbool.h>

#include "model/spec/yaml.h"

struct launch_words;
struct framework;

/* A word of a key as an argument. `name` is the argument's in a log of Megatron-LM; NULL: the word changes nothing. */
struct framework_word {
    const char *word, *name, *value;
};

/* A key, by its path. The value stays, or becomes the opposite truth, or is one of the words (the same word in several rows says
 * several things). */
struct framework_key {
    const char *path, *name;
    bool opposite;
    const struct framework_word *words;
    bool inside; /* what counts is that its mapping or list is not empty */
};

/* Words by the name of their list. */
struct framework_list {
    const char *name;
    const struct framework_word *words; /* up to a row without a word */
};

enum framework_form { FORM_YAML, FORM_TOML, FORM_PYTHON };

/* Adds words for what single keys do not say. */
typedef void framework_more(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);

struct framework {
    const char *name;
    const char *source;                 /* where the table is from */
    const char *checked;                /* the version of the program that it was checked against; NULL: none */
    int order;                          /* of several frameworks whose signs fit, the lowest is meant */
    const char *signs[3];               /* keys, by their paths: a configuration of this framework has all of them */
    const char *const *any_sign;        /* or one of these; NULL: none */
    bool companion;                     /* no job by itself */
    const struct framework_word *fixed; /* what the program does without a key; `word` is unused. NULL: nothing */
    const struct framework_key *keys;
    const char *const *groups;           /* mappings whose keys have the names of Megatron-LM's arguments; NULL: none */
    const char *model[3];                /* keys whose texts, joined by a dash, name the model */
    const struct framework_word *models; /* such names and the catalog's; `name` is unused. NULL: none */
    const char *described;               /* with this key the model is described, and not named; NULL: none */
    const char *unset;                   /* a value that says nothing; NULL: none */
    const char *base;                    /* the file that has all keys, of which a command sets some; NULL: none */
    framework_more *more;                /* NULL: nothing */
    const char *const *ignored;          /* paths of keys that change neither time nor memory, '*' for any ending, '.' behind a
                                          * mapping: other unknown keys are reported one by one. NULL: the list is not complete */
    enum framework_form form;            /* of an export */
    const char *const *written;          /* the keys of an export, where the table has several for one argument, or keys of
                                          * groups. '?' before those that are there even when empty, '!' before those that are
                                          * there only when they differ from the default. NULL: all of the table */
    struct framework_list *lists;        /* the table's own words; then those that several tables share */
    int n_lists;
};

/* All tables. */
struct frameworks {
    struct arena arena;
    struct framework *items; /* in the order in which their signs count; those without signs last */
    int n, n_signed;
    const struct framework *bridge, *nemo2, *trainer; /* Megatron-Bridge, NeMo 2, TrainingArguments: the program knows them */
    const struct framework *recipe;                   /* what recipes have by themselves, and the arguments of their functions */
    const char *const *ignored;                       /* Megatron-LM's arguments that change neither time nor memory */
};

/* Reads all files of traces/launch/frameworks: those of $MSIM_DATA, of the build tree and of the installed data; of one name the
 * first counts. STATUS_BAD_INPUT, with file, line and column, where one is wrong. Takes about 10 ms. Free with
 * frameworks_free. */
MUST_CHECK enum status frameworks_load(struct frameworks *frameworks, struct diags *diags);
void frameworks_free(struct frameworks *frameworks);

/* A table by its name; NULL: there is none. */
const struct framework *frameworks_find(const struct frameworks *frameworks, const char *name);

#define FRAMEWORK_BRIDGE  "Megatron-Bridge"
#define FRAMEWORK_NEMO2   "NeMo 2"
#define FRAMEWORK_TRAINER "TrainingArguments"
#define FRAMEWORK_RECIPE  "the recipe"

/* By this key the flags of a script are known for keys of Hugging Face's TrainingArguments. */
#define FLAGS_SIGN "per_device_train_batch_size"
/* And by this one for Colossal-AI's. */
#define PLUGIN_SIGN "plugin"

#endif
