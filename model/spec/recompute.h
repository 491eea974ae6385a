/*
 * recompute.h - which activations are recomputed in the backward pass instead of kept, and in which layers.
 *
 * Example: recompute=full:4 in a virtual stage of 10 layers.
 *
 *     recompute_layers(recompute, 10)           4 layers are recomputed
 *     recompute_checkpoints(recompute, 10)      4 recomputations of one layer each
 *     recompute_kept_behind(recompute, 10)      6 layers after them keep everything
 *
 * Values:
 *     none                  nothing is recomputed
 *     full                  every layer as a whole
 *     full:4                the first 4 layers of each virtual stage (Megatron-LM's --recompute-method block)
 *     full:every2           the second, the fourth, ... layer of each (torchtitan's selective with an integer)
 *     full:groups4          all layers, in groups of 4 recomputed together; only a group's input is kept (Megatron-LM's uniform)
 *     selective             the framework's default: Megatron's core of attention, or PyTorch's policy (model/layout decides)
 *     layernorm+moe_act     a set of modules, also written selective:layernorm+moe_act
 *
 * Modules have the names of Megatron-Core's --recompute-modules, which has all of them except mlp_act; stacks derived from it
 * have that one (assumption: it works like moe_act). The input of a module is kept; its output and all tensors inside it are
 * not. A module inside another one of the set (moe_act and shared_experts in moe, mlp_act in mlp) is recomputed with it.
 *
 * Tables use short words, which are accepted everywhere: sel, and for modules attn, norm, mla, act (mlp_act), shared. moe_act,
 * mlp and moe have no shorter form.
 */
#ifndef MSIM_MODEL_SPEC_RECOMPUTE_H
#define MSIM_MODEL_SPEC_RECOMPUTE_H

#include <stdbool.h>
#include <stddef.h>

/* Values: one of the first three, or a set of modules. */
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
    RECOMPUTE_SHARED_EXPERTS = 1 << 8, /* the shared experts, their exchanges included */
    RECOMPUTE_MOE = 1 << 9             /* a mixture: router, dispatch, experts, combine, shared experts */
};
enum { N_RECOMPUTES = 3, N_RECOMPUTE_MODULES = 8 };

/* The words for the first three and for each module, NULL after the last. */
extern const char *const recompute_words[N_RECOMPUTES + N_RECOMPUTE_MODULES + 1];

/* The layers to which a value applies. */
enum recompute_of { RECOMPUTE_ALL, RECOMPUTE_FIRST, RECOMPUTE_EVERY, RECOMPUTE_GROUPS };
enum { RECOMPUTE_LAYERS_MAX = 999 };

struct recompute {
    enum recompute_what what;
    enum recompute_of of; /* RECOMPUTE_ALL unless `what` is RECOMPUTE_FULL */
    int layers;           /* 0 for RECOMPUTE_ALL */
};

static inline bool recompute_equal(struct recompute a, struct recompute b)
{
    return a.what == b.what && a.of == b.of && a.layers == b.layers;
}
bool recompute_is_known(struct recompute recompute);

/* Numbers the values, for tables: none (0) first, then words, sets of modules, and parts of the layers. */
int recompute_number(struct recompute recompute);
struct recompute recompute_of_number(int number);

/* For a virtual stage with `layers` layers: the number of recomputed layers; the number of recomputations, each of one or more
 * layers; and the number of layers after the last recomputed one, which keep everything. */
int recompute_layers(struct recompute recompute, int layers);
int recompute_checkpoints(struct recompute recompute, int layers);
int recompute_kept_behind(struct recompute recompute, int layers);
/* The layers of such a stage that are recomputed together with the one at `index`: returns their number and sets *first; 0: the
 * layer keeps everything. */
int recompute_group(struct recompute recompute, int layers, int index, int *first);

enum { RECOMPUTE_WHY = 288 };
/* Reads a value from a text. On an error returns false and writes the reason and a suggestion to `why` (may be NULL): "'mla_up'
 * is unknown; did you mean 'mla_up_proj'?". */
bool recompute_parse(const char *text, struct recompute *recompute, char *why, size_t size);

enum { RECOMPUTE_TEXT = 96 }; /* room for the names of all modules */
/* "none", "layernorm+moe_act", "full:4". Returns buffer. */
char *recompute_format(struct recompute recompute, char *buffer, size_t size);
/* The same in brief words for tables, as "norm+act". */
char *recompute_brief(struct recompute recompute, char *buffer, size_t size);

#endif
