/*
 * recompute.h - the activations that are computed again in the backward pass instead of being kept.
 *
 * None; those of whole layers (full); what a framework selects unless it is told more (selective: Megatron's core of attention,
 * PyTorch's policy; model/layout says which); or those of a set of modules, by the names of Megatron-Core's --recompute-modules.
 * It has all of them but mlp_act, which stacks of its line have (assumption: as its moe_act). What a module gives is not kept,
 * nor is what is inside it; what it reads is. A module inside another one of the set (moe_act and shared_experts in moe, mlp_act
 * in mlp) is repeated with it.
 *
 * As text: a word, or modules joined by '+', which may stand behind "selective:".
 */
#ifndef MSIM_MODEL_SPEC_RECOMPUTE_H
#define MSIM_MODEL_SPEC_RECOMPUTE_H

#include <stdbool.h>
#include <stddef.h>

/* One of the first three, or a set of the others. */
enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE,
    RECOMPUTE_FULL,
    RECOMPUTE_CORE_ATTN = 1 << 2,      /* scores, softmax and context, and the ring of context parallelism before them */
    RECOMPUTE_LAYERNORM = 1 << 3,      /* the norms before attention and before the feed-forward part */
    RECOMPUTE_MLA_UP_PROJ = 1 << 4,    /* latent attention: up-projections, norms of heads, rotation */
    RECOMPUTE_MLP_ACT = 1 << 5,        /* between the products of a dense feed-forward part */
    RECOMPUTE_MOE_ACT = 1 << 6,        /* between those of the routed experts */
    RECOMPUTE_MLP = 1 << 7,            /* a dense feed-forward part, its exchanges included */
    RECOMPUTE_SHARED_EXPERTS = 1 << 8, /* the experts that every token passes, their exchanges included */
    RECOMPUTE_MOE = 1 << 9             /* a mixture: router, dispatch, experts, combine, shared experts */
};
enum { N_RECOMPUTES = 3, N_RECOMPUTE_MODULES = 8 };

/* The words for the first three and for each module, NULL after the last. */
extern const char *const recompute_words[N_RECOMPUTES + N_RECOMPUTE_MODULES + 1];

bool recompute_is_known(int recompute);

enum { RECOMPUTE_WHY = 224 };
/* What a text says; -1 with, in `why` (may be NULL), what cannot stand there and what could: "'mla_up' is unknown; did you mean
 * 'mla_up_proj'?". */
int recompute_parse(const char *text, char *why, size_t size);

enum { RECOMPUTE_TEXT = 96 }; /* room for the names of all modules */
/* "none", "layernorm+moe_act". Returns buffer. */
char *recompute_format(enum recompute recompute, char *buffer, size_t size);
/* The same in few letters for tables, as "norm+act". */
char *recompute_brief(enum recompute recompute, char *buffer, size_t size);

#endif
