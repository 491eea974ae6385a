/*
 * cp_comm.h - the exchanges of context parallelism.
 *
 * Example: cp = 16 with cp_comm = a2a:8+ring.
 *
 *     cp_comm_parse("a2a:8+ring", why, size)     the value below
 *     cp_comm_heads(comm, 16)                    8: neighbours that exchange heads
 *     keys and values then go around rings of 16 / 8 = 2 ranks
 *
 * Each of cp ranks has a part of every sequence, and its queries attend to the keys of all ranks. The exchanged data are
 *
 *     ring        keys and values, block by block around the ranks, while attention to the last block is computed (Liu et al.,
 *                 arXiv:2310.01889; Megatron-Core's cp_comm_type p2p, Transformer Engine)
 *     all_gather  keys and values of all ranks, before attention begins (Llama 3, arXiv:2407.21783, section 3.3.2)
 *     a2a         queries, keys, values and the output of attention: during attention a rank has whole sequences of some heads
 *                 (DeepSpeed-Ulysses, arXiv:2309.14509)
 *     a2a:8+ring  both (Fang and Zhao, arXiv:2405.07719; Megatron-Core's a2a+p2p): 8 neighbours exchange heads for tokens; the
 * keys and values of their parts of the sequence go around, or are gathered (a2a:8+all_gather)
 *
 * A value is the number of ranks that exchange heads, and whether keys and values are gathered among the others.
 */
#ifndef MSIM_MODEL_SPEC_CP_COMM_H
#define MSIM_MODEL_SPEC_CP_COMM_H

#include <stdbool.h>
#include <stddef.h>

enum cp_comm {
    CP_RING,
    CP_ALL_GATHER,
    CP_A2A = 1 << 21, /* among all ranks */
};

/* `a2a` ranks exchange heads; keys and values travel among the other cp / a2a, gathered or around a ring. */
enum cp_comm cp_comm_of(int a2a, bool gathers);
/* Of `cp` ranks, the number that exchange heads; 1: none do. */
int cp_comm_heads(enum cp_comm comm, int cp);
/* Whether the others gather keys and values; else they go around. */
bool cp_comm_gathers(enum cp_comm comm);
/* The simplest value with the same meaning for `cp` ranks: a2a:8 of 8 ranks is a2a. */
enum cp_comm cp_comm_settled(enum cp_comm comm, int cp);
bool cp_comm_is_known(int value);

enum { CP_COMM_WHY = 192 };
/* Reads a value from a text; p2p and ulysses are synonyms. On an error returns -1 and writes the possible values to `why` (may be
 * NULL). */
int cp_comm_parse(const char *text, char *why, size_t size);

enum { CP_COMM_TEXT = 32 }; /* room for one */
/* "ring", "a2a:8+all_gather". Returns buffer. */
char *cp_comm_format(enum cp_comm comm, char *buffer, size_t size);

#endif
