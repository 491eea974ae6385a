/* profile_kernels.c - classifies a kernel by its name, and an exchange by its group. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "traces/profile/profile_internal.h"

/* The words of a kernel's name. A word begins behind anything but a letter, and at a capital letter before or behind a small
 * one: FlashAttnFwdSm90, LAMBStage1Functor, s16816gemm. */
static bool begins_word(const char *name, const char *at)
{
    unsigned char here = (unsigned char)at[0], next = here ? (unsigned char)at[1] : 0;
    if (at == name)
        return true;
    unsigned char before = (unsigned char)at[-1];
    if (!isalpha(before))
        return isalnum(here);
    return isupper(here) && (islower(before) || islower(next));
}

/* The end of `pattern` at this place: letters match in either case, and '_' matches any number of '_', '-' and ' ', also none.
 * NULL if it does not match. */
static const char *pattern_end(const char *at, const char *pattern)
{
    for (; *pattern && *pattern != '$'; pattern++) {
        if (*pattern == '_')
            at += strspn(at, "_- ");
        else if (tolower((unsigned char)*at) == *pattern)
            at++;
        else
            return NULL;
    }
    return at;
}

/* Does a word of the name begin with `pattern`? A pattern that ends in '$' is a whole word. */
static bool has_pattern(const char *name, const char *pattern)
{
    bool whole = pattern[strlen(pattern) - 1] == '$';
    for (const char *at = name; *at; at++) {
        const char *end = begins_word(name, at) ? pattern_end(at, pattern) : NULL;
        if (end && (!whole || !isalpha((unsigned char)*end) || begins_word(name, end)))
            return true;
    }
    return false;
}

static bool has_any(const char *name, const char *const *patterns)
{
    for (; *patterns; patterns++)
        if (has_pattern(name, *patterns))
            return true;
    return false;
}

/* The first kind that has a pattern in the name. The order matters: NCCL's kernels carry names of types that others have too;
 * losses and attention have a softmax; products of attention's libraries carry the word gemm; Inductor's fused kernels
 * (triton_poi, red, per, for) are named after the products beside them, and only its templates (triton_tem) multiply. Patterns
 * are beginnings of words, because fbgemm is a library, a lambda is no LAMB, and a Hadamard transform is no Adam. */
static const struct kernel_words {
    enum profile_kind kind;
    const char *patterns[40];
} kernel_words[] = {
    {PROFILE_EXCHANGE,
     {"nccl", "rccl", "nvshmem", "deep_ep", "mscclpp", "userbuffers", "multimem", "symm_mem", "nvls", "all_reduce", "all_gather",
      "reduce_scatter", "all_to_all", "one_shot_all", "two_shot_all", "cross_device_reduce", "quick_reduce", "lamport"}},
    {PROFILE_COPIES, {"rocclr_copy", "rocclr_fill"}},
    {PROFILE_OTHER, {"cross_entropy", "log_softmax", "nll_loss", "hadamard"}},
    {PROFILE_ATTENTION, {"flash", "fmha", "attention", "attn", "sdpa", "softmax", "mha$"}},
    {PROFILE_OPTIMIZER,
     {"adam", "fusedadam", "lamb$", "lambstage", "fusedlamb", "multi_tensor_apply", "multi_tensor_l2norm", "sgd", "optimizer"}},
    {PROFILE_OTHER, {"triton_poi", "triton_red", "triton_per", "triton_for"}},
    {PROFILE_PRODUCTS,
     {"gemm",   "sgemm", "dgemm",  "hgemm",     "cgemm",      "zgemm",      "igemm",     "bgemm",    "groupedgemm",
      "hsgemm", "gemv",  "nvjet",  "cublas",    "cijk",       "matmul",     "splitk",    "cutlass",  "xmma",
      "mm$",    "bmm$",  "addmm$", "triton_mm", "triton_tem", "grouped_mm", "scaled_mm", "fused_moe"}},
};

enum profile_kind profile_kernel_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kernel_words / sizeof *kernel_words; i++)
        if (has_any(name, kernel_words[i].patterns))
            return kernel_words[i].kind;
    return PROFILE_OTHER;
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
    static const char *const of_experts[] = {"deep_ep", NULL}, *const of_tensors[] = {"userbuffers", NULL};
    if (layout->ep > 1 && has_any(words->kernel, of_experts))
        return PROFILE_EP;
    if (layout->tp > 1 && has_any(words->kernel, of_tensors))
        return PROFILE_TP;
    const char *operation = *words->operation ? words->operation : words->kernel;
    if (strcasestr(operation, "alltoall") || strcasestr(operation, "all_to_all"))
        return layout->ep > 1 ? PROFILE_EP : PROFILE_EXCHANGE;
    return is_message(operation) ? kind_of_message(*words->operation != '\0', layout) : kind_of_size(words->ranks, layout);
}
