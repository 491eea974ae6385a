/*
 * adapter_modules.h - what libraries call the matrices beside which adapters stand. From memory.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_ADAPTER_MODULES_H
#define MSIM_TRACES_LAUNCH_MEGATRON_ADAPTER_MODULES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/spec/transformer.h"

/* Matrices as they are apart. */
enum {
    PART_Q = 1,
    PART_K = 2,
    PART_V = 4,
    PART_O = 8,
    PART_GATE = 16,
    PART_UP = 32,
    PART_DOWN = 64,
    PART_QKV = PART_Q | PART_K | PART_V,
    PART_MLP_UP = PART_GATE | PART_UP
};

/* Is a module called so, perhaps by a path, or a pattern, that ends in it? */
bool adapter_is_called(const char *name, const char *ending);
/* What a module of this name, or path, is made of; 0: none of them. */
unsigned adapter_parts(const struct transformer *model, const char *name);

/* Of a model's modules, as Hugging Face's library calls them, those that match all of a pattern of peft's (module_pattern.h). */
struct adapter_match {
    unsigned everywhere, somewhere; /* parts of every layer, and of any */
    bool table;                     /* embedding or head, too */
    char example[96];               /* the name of a module */
};
/* false, with *why, where the pattern cannot be read. */
bool adapter_match(const struct transformer *model, const char *pattern, struct adapter_match *match, char *why, size_t size);

#endif
