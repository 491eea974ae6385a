/*
 * adapter_modules.h - the names that libraries give to the matrices with adapters. From memory.
 *
 *     q_proj (transformers), linear_qkv (Megatron-LM), attention_qkv (NeMo), c_attn (GPT-2)     PART_Q or PART_QKV
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_ADAPTER_MODULES_H
#define MSIM_TRACES_LAUNCH_MEGATRON_ADAPTER_MODULES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/spec/transformer.h"

/* Matrices, each by itself. */
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

/* Does a name, possibly a path or a pattern, end in this name of a module? */
bool adapter_is_called(const char *name, const char *ending);
/* The parts of a module of this name or path; 0: none of them. */
unsigned adapter_parts(const struct transformer *model, const char *name);

/* The modules of a model, by the names of Hugging Face's library, that match a pattern of peft (module_pattern.h) completely.
 * */
struct adapter_match {
    unsigned everywhere, somewhere; /* parts of every layer; parts of at least one */
    bool table;                     /* the embedding or the head, too */
    char example[96];               /* the name of a module */
};
/* false, with *why, if the pattern cannot be read. */
bool adapter_match(const struct transformer *model, const char *pattern, struct adapter_match *match, char *why, size_t size);

#endif
