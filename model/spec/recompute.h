/*
 * recompute.h - the activations that are computed again in the backward pass instead of being kept, and of which layers.
 *
 * None; those of whole layers (full); what a framework selects unless it is told more (selective: Megatron's core of attention,
 * PyTorch's policy; model/layout says which); or those of a set of modules, by the names of Megatron-Core's --recompute-modules.
 * It has all of them but mlp_act, which stacks of its line have (assumption: as its moe_act). What a module gives is not kept,
 * nor is what is inside it; what it reads is. A module inside another one of the set (moe_act and shared_experts in moe, mlp_act
 * in mlp) is repeated with it.
 *
 * Whole layers need not be all layers. Of each virtual stage, a chunk of the model, it can be the first so many (Megatron-LM's
 * --recompute-method block), every so manyth (torchtitan's selective with an integer: the second, the fourth, ... of every2), or
 * all in groups of so many that are repeated together, of which only the first one's input is kept (Megatron-LM's uniform).
 *
 * As text: a word, or modules joined by '+', which may stand behind "selective:"; full with layers is full:4 (the first four),
 * full:every2, full:groups4. Tables have brief words, which mean the same anywhere: sel, and of the modules attn, norm, mla, act
 * (mlp_act), shared; moe_act, mlp and moe are brief enough.
 */
#ifndef MSIM_MODEL_SPEC_RECOMPUTE_H
#define MSIM_MODEL_SPEC_RECOMPUTE_H

#include <stdbool.h>
#include <stddef.h>

/* One of the first three, or a set of the others. */
enum recompute_what {
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

/* Of which layers. */
enum recompute_of { RECOMPUTE_ALL, RECOMPUTE_FIRST, RECOMPUTE_EVERY, RECOMPUTE_GROUPS };
enum { RECOMPUTE_LAYERS_MAX = 999 };

struct recompute {
    enum recompute_what what;
    enum recompute_of of; /* other than RECOMPUTE_ALL with RECOMPUTE_FULL only */
    int layers;           /* 0 of all */
};

static inline bool recompute_equal(struct recompute a, struct recompute b)
{
    return a.what == b.what && a.of == b.of && a.layers == b.layers;
}
bool recompute_is_known(struct recompute recompute);

/* Numbers in an order, none (0) first: words, sets of modules, and so many of the layers; for tables of values. */
int recompute_number(struct recompute recompute);
struct recompute recompute_of_number(int number);

/* Of a virtual stage of so many layers those that are repeated; how many repetitions of one or more layers that makes; and how
 * many behind the last repeated one keep everything. */
int recompute_layers(struct recompute recompute, int layers);
int recompute_checkpoints(struct recompute recompute, int layers);
int recompute_kept_behind(struct recompute recompute, int layers);
/* Those that are repeated together with the one at `index` of such a stage: from *first on so many; 0: it keeps everything. */
int recompute_group(struct recompute recompute, int layers, int index, int *first);

enum { RECOMPUTE_WHY = 288 };
/* What a text says; false with, in `why` (may be NULL), what cannot stand there and what could: "'mla_up' is unknown; did you
 * mean 'mla_up_proj'?". */
bool recompute_parse(const char *text, struct recompute *recompute, char *why, size_t size);

enum { RECOMPUTE_TEXT = 96 }; /* room for the names of all modules */
/* "none", "layernorm+moe_act", "full:4". Returns buffer. */
char *recompute_format(struct recompute recompute, char *buffer, size_t size);
/* The same in brief words for tables, as "norm+act". */
char *recompute_brief(struct recompute recompute, char *buffer, size_t size);

#endif
