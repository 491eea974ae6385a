/* What a kernel is, by its name; which group an exchange belongs to. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "traces/profile/profile_internal.h"

static bool has_any(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (strcasestr(name, *parts))
            return true;
    return false;
}

/* In this order: NCCL's kernels carry names of types that others have too; losses and attention have a softmax; Hadamard's
 * transforms (of operands in 4 bits) hold an Adam; grouped and batched products of attention's libraries carry the word gemm.
 * Names of C++ are full of lambdas, which are no LAMB. */
enum profile_kind profile_kernel_kind(const char *name)
{
    static const char *const exchanges[] = {"nccl", "rccl", "nvshmem", "deep_ep", "deepep", "allreduce_", "userbuffers", NULL};
    static const char *const copies[] = {"rocclr_copy", "rocclr_fill", NULL};
    static const char *const others[] = {"cross_entropy", "crossentropy", "log_softmax", "logsoftmax",
                                         "nll_loss",      "hadamard",     NULL};
    static const char *const attentions[] = {"flash", "fmha", "attention", "attn", "sdpa", "softmax", NULL};
    static const char *const updates[] = {"adam", "lambstage", "lamb_", "fusedlamb", "multi_tensor_apply", "multi_tensor_l2norm",
                                          "sgd",  "optimizer", NULL};
    static const char *const products[] = {"gemm",    "nvjet", "cublas", "cijk_",     "matmul",     "splitk",
                                           "cutlass", "xmma",  "_mm_",   "triton_mm", "grouped_mm", NULL};
    if (has_any(name, exchanges))
        return PROFILE_EXCHANGE;
    if (has_any(name, copies))
        return PROFILE_COPIES;
    if (has_any(name, others))
        return PROFILE_OTHER;
    if (has_any(name, attentions))
        return PROFILE_ATTENTION;
    if (has_any(name, updates))
        return PROFILE_OPTIMIZER;
    return has_any(name, products) ? PROFILE_PRODUCTS : PROFILE_OTHER;
}

/* Is `word` one of the text's words, which anything but letters divides? */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; *at; at++) {
        bool begins = at == text || !isalpha((unsigned char)at[-1]);
        if (begins && strncasecmp(at, word, length) == 0 && !isalpha((unsigned char)at[length]))
            return true;
    }
    return false;
}

/* Megatron-Core's, DeepSpeed's and PyTorch's (device meshes) names of groups. Data comes first: data-parallel groups are also
 * named after the experts or the context that they include. */
static enum profile_kind kind_of_description(const char *text)
{
    static const struct {
        enum profile_kind kind;
        const char *words[8];
    } groups[] = {
        {PROFILE_DP, {"data", "dp", "fsdp", "ddp", "shard", "replicate", "embedding"}},
        {PROFILE_PP, {"pipeline", "pipe", "pp"}},
        {PROFILE_CP, {"context", "cp", "ulysses"}},
        {PROFILE_EP, {"expert", "ep"}},
        {PROFILE_TP, {"tensor", "tp", "mp"}},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (const char *const *word = groups[i].words; *word; word++)
            if (has_word(text, *word))
                return groups[i].kind;
    return PROFILE_EXCHANGE;
}

/* The only group of the layout with this number of ranks (0: unknown; any). */
static enum profile_kind kind_of_size(int ranks, const struct layout *layout)
{
    const struct {
        enum profile_kind kind;
        int ranks;
    } groups[] = {{PROFILE_TP, layout->tp},
                  {PROFILE_CP, layout->cp},
                  {PROFILE_EP, layout->ep},
                  {PROFILE_DP, layout_shard_ranks(layout)},
                  {PROFILE_DP, layout->dp * layout->cp / layout_shard_ranks(layout)}};
    enum profile_kind found = PROFILE_EXCHANGE;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (groups[i].ranks < 2 || (ranks > 0 && groups[i].ranks != ranks))
            continue;
        if (found != PROFILE_EXCHANGE && found != groups[i].kind)
            return PROFILE_EXCHANGE;
        found = groups[i].kind;
    }
    return found;
}

static bool is_message(const char *operation)
{
    return strcasestr(operation, "send") || strcasestr(operation, "recv");
}

/* Messages are a pipeline's or a ring's; where only the kernel is known (send and receive) those of an all-to-all look alike. */
static enum profile_kind kind_of_message(bool told, const struct layout *layout)
{
    bool pipeline = layout->pp > 1, ring = layout->cp > 1, experts = !told && layout->ep > 1;
    if (pipeline + ring + experts != 1)
        return PROFILE_EXCHANGE;
    return pipeline ? PROFILE_PP : ring ? PROFILE_CP : PROFILE_EP;
}

enum profile_kind profile_exchange_kind(const struct exchange_words *words, const struct layout *layout)
{
    enum profile_kind kind = kind_of_description(words->group);
    if (kind != PROFILE_EXCHANGE)
        return kind;
    static const char *const of_experts[] = {"deep_ep", "deepep", NULL}, *const of_tensors[] = {"userbuffers", NULL};
    if (layout->ep > 1 && has_any(words->kernel, of_experts))
        return PROFILE_EP;
    if (layout->tp > 1 && has_any(words->kernel, of_tensors))
        return PROFILE_TP;
    const char *operation = *words->operation ? words->operation : words->kernel;
    if (strcasestr(operation, "alltoall") || strcasestr(operation, "all_to_all"))
        return layout->ep > 1 ? PROFILE_EP : PROFILE_EXCHANGE;
    return is_message(operation) ? kind_of_message(*words->operation != '\0', layout) : kind_of_size(words->ranks, layout);
}
