/*
 * transformer.h - the shape of a decoder-only transformer, and its parameter counts.
 *
 * Example: llama2-7b
 *
 *     layers 32, hidden 4096, ffn_hidden 11008 (gated), heads 32, kv_heads 32, vocab 32000
 *     transformer_parameters(&model, &count);      count.total = 6.74e9
 *
 * Symbols used throughout msim: L layers, h hidden, f ffn_hidden, a heads, g kv_heads, d head_dim, s sequence length, V
 * vocabulary, E experts, k experts per token.
 *
 * A layer is a mixer of tokens plus a feed-forward part. The mixer is attention: multi-head with g <= a key/value heads
 * (grouped-query), or latent (DeepSeek's MLA). The feed-forward part is dense (two matrices, three when gated) or a mixture of
 * experts.
 *
 * Hybrids. The mixer of some layers keeps a state of fixed size instead of all keys and values (struct state_mixer), and some
 * layers are a mixer or a feed-forward part alone. `layer_pattern` has one letter per layer, repeated over the layers:
 *
 *     a  attention, feed-forward part       *  attention alone           -  dense feed-forward part alone
 *     m  state mixer, feed-forward part     M  state mixer alone         E  mixture of experts alone
 *     p  both mixers in parallel, whose outputs are added, feed-forward part
 *
 * Letters for parts alone are Megatron-LM's and Nemotron-H's (arXiv:2504.03624). Where a letter includes a feed-forward part,
 * `moe` decides whether it is a mixture. Each part has a norm before it and a residual after it.
 */
#ifndef MSIM_MODEL_SPEC_TRANSFORMER_H
#define MSIM_MODEL_SPEC_TRANSFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_SIZE = 64, SOURCE_SIZE = 512, PATTERN_SIZE = 256 };

enum norm_kind { NORM_LAYER, NORM_RMS };
enum position_kind { POSITION_LEARNED, POSITION_ROTARY, POSITION_ALIBI, POSITION_NONE };
enum attention_kind { ATTENTION_GROUPED, ATTENTION_LATENT };

/* Multi-head latent attention; ranks and per-head dimensions in elements. */
struct latent_attention {
    int q_lora_rank; /* 0: the query projection is not compressed */
    int kv_lora_rank;
    int qk_nope_dim, qk_rope_dim, v_dim;
};

/*
 * A mixer with a state: each head has a matrix S[state N, head_dim P]. Every token adds its key times its value to it and reads
 * it by its query,
 *
 *     S_t = A_t S_(t-1) + k_t v_t^T,    y_t = S_t^T q_t.
 *
 * There are H heads; the heads of one of G groups share keys and queries (Mamba's B and C), the reverse of grouped-query
 * attention. Kinds:
 *
 *     mamba2        A_t is a number per head and token (SSD, arXiv:2405.21060, section 6); before it a causal convolution over
 *                   values, keys and queries, after it a gate and a norm
 *     lightning     A is a constant of the head (arXiv:2501.08313, section 2.2); no convolution
 *     gated_delta   A_t = a_t (1 - b_t k_t k_t^T): the state forgets its entry for this key (arXiv:2412.06464; Qwen3-Next)
 *     kimi_delta    the same, with a_t a number per row of the state, from a projection of rank P (arXiv:2510.26692, section 3)
 */
enum mixer_kind { MIXER_MAMBA2, MIXER_LIGHTNING, MIXER_GATED_DELTA, MIXER_KIMI_DELTA };

struct state_mixer {
    enum mixer_kind kind;
    int heads;    /* H; 0: the model has no such layers */
    int groups;   /* G, divides H */
    int state;    /* N */
    int head_dim; /* P */
    int conv;     /* taps of the convolution over time; 0: none */
    int chunk;    /* C: tokens per chunk; effects within a chunk are products, and the state is passed on between chunks */
    bool norm;    /* a norm over the output of the heads, before the output projection */
};

/* Where layers with a window attend by heads of their own (Gemma 4, MiMo-V2); 0: as the others have. */
struct windowed_heads {
    int heads, kv_heads, head_dim, value_dim;
};

/* Picks the keys that a query attends to (DeepSeek-V3.2's lightning indexer, arXiv:2512.02556): heads that score all keys by a
 * query of their own, from the compressed query where there is one, and one key for all heads. */
struct key_indexer {
    int heads; /* 0: every query attends to all keys */
    int head_dim;
    int top_k; /* keys that a query attends to */
};

struct mixture {
    int experts; /* routed experts per layer; 0: dense model */
    int top_k;   /* routed experts per token */
    int groups,
        top_groups;     /* a token's experts lie in at most top_groups of `groups` equal groups (DeepSeek-V3: 4 of 8); 0: any */
    int64_t expert_ffn; /* feed-forward width of one routed expert */
    int shared_experts; /* experts that every token uses */
    int64_t shared_ffn; /* width of the shared expert(s) together; 0: shared_experts * expert_ffn */
    int first_dense_layers; /* leading layers that stay dense, of width ffn_hidden */
    int last_dense_layers;  /* and last ones (Step-3: 1) */
    int every;              /* after those, one layer in `every` is a mixture (1: all) */
    int zero_experts;       /* choices of the router that compute nothing (LongCat); top_k leaves out their share */
    bool router_bias;       /* a number of each expert that balances their load (DeepSeek-V3's correction bias) */
    bool shared_gate;       /* the shared expert's output is weighted by a projection of the input to one number (Qwen) */
};

struct transformer {
    char name[NAME_SIZE];
    char source[SOURCE_SIZE];
    int layers;
    int64_t hidden, ffn_hidden;
    bool gated_mlp;   /* SwiGLU or GeGLU: three matrices */
    double mlp_limit; /* largest magnitude of the input of a gated activation (gpt-oss: 7); 0: any */
    int heads, kv_heads;
    int head_dim;         /* hidden / heads unless the model says otherwise */
    int value_dim;        /* of a value's head, where it is not head_dim (MiMo-V2: 128 of 192); 0: head_dim */
    int64_t query_rank;   /* grouped attention's queries come by a product of this rank (Step-3's MFA); 0: they do not */
    bool values_are_keys; /* layers without a window have no projection for values (Gemma 4) */
    int shared_kv_layers; /* this many last layers take keys and values from earlier ones (Gemma 4's smallest) */
    int64_t vocab;
    int64_t max_seq_len;           /* of the learned position table, and the default sequence length */
    int64_t position_offset;       /* rows of the learned position table before that of the first token (OPT: 2) */
    int64_t layer_embedding;       /* width of a token's vector for each layer (Gemma 4's smallest: 256); 0: none */
    int64_t layer_embedding_vocab; /* rows of that table; 0: vocab */
    bool tied_embeddings, linear_bias, qkv_bias, qk_norm;
    bool output_bias;     /* the projection behind attention has a bias */
    bool qk_norm_whole;   /* the norm on queries and keys is over all heads together (OLMo 2), not over each */
    bool attention_sinks; /* a number of each head takes part in its softmax (gpt-oss) */
    int layer_norms;      /* of a layer with both parts: 4 where one is behind each part, too, 1 of parts side by side; 0: 2 */
    bool output_gate;     /* the output of grouped attention is multiplied by the sigmoid of a projection of the same width
                             (Qwen3-Next) */
    enum norm_kind norm;
    enum position_kind position;
    double rope_theta; /* base of the angles of rotary positions, which costs no time; 0: unknown */
    enum attention_kind attention;
    struct latent_attention latent;
    int64_t window;   /* sliding-window width in tokens, 0: full attention */
    int window_every; /* one layer in `window_every` keeps full attention (0: none does) */
    struct windowed_heads windowed;
    struct key_indexer indexer;
    struct mixture moe;
    struct state_mixer mixer;
    char layer_pattern[PATTERN_SIZE];              /* empty: all `a` */
    int mtp_layers;                                /* multi-token-prediction layers after the last (DeepSeek-V3: 1) */
    double published_parameters, published_active; /* 0: the publication gives none */
};

/* Parameter counts, in elements, of the whole model. */
struct parameter_count {
    double embedding; /* token and position tables, and those of layers with what reads them */
    double head;      /* output projection; 0 when tied */
    double attention; /* all layers */
    double mixers;    /* those with a state, all layers */
    double dense_ffn; /* all dense feed-forward parts, and shared experts */
    double experts;   /* all routed experts */
    double router;
    double norms; /* all layers and the final norm */
    double mtp;   /* multi-token prediction; published totals leave it out, so `total` does too */
    double total;
    double active; /* used for one token: routed experts count k of E */
};

void transformer_parameters(const struct transformer *model, struct parameter_count *count);

/* The parts of a layer. */
enum layer_mixers { MIXES_NOT, MIXES_BY_ATTENTION, MIXES_BY_STATE, MIXES_BY_BOTH }; /* a set of two bits */
enum layer_feed { FEEDS_NOT, FEEDS_DENSE, FEEDS_EXPERTS };
struct layer_kind {
    enum layer_mixers mixers;
    enum layer_feed feed;
    bool windowed; /* its attention */
};
enum { N_LAYER_KINDS = 4 * 3 * 2, LAYER_PARTS_MAX = 2 };
/* The number of a kind, below N_LAYER_KINDS. Two kinds that differ only in the window are neighbours, the one without first. */
int layer_kind_index(struct layer_kind kind);
struct layer_kind layer_kind_at(int index);
static inline bool layer_kind_equal(struct layer_kind a, struct layer_kind b)
{
    return a.mixers == b.mixers && a.feed == b.feed && a.windowed == b.windowed;
}
/* Layers by kind: their number, and the index of one of them. */
struct layer_kinds {
    int count[N_LAYER_KINDS], one[N_LAYER_KINDS];
};
/* Number of parts (mixers together, feed-forward part); each has a norm and a residual. */
static inline int layer_kind_parts(struct layer_kind kind)
{
    return (kind.mixers != MIXES_NOT) + (kind.feed != FEEDS_NOT);
}
/* Rows of the learned position table, 0 without one. */
static inline int64_t transformer_position_rows(const struct transformer *model)
{
    return model->position == POSITION_LEARNED ? model->max_seq_len + model->position_offset : 0;
}
/* Whether a pattern gives layers different kinds. */
static inline bool transformer_is_hybrid(const struct transformer *model)
{
    return model->layer_pattern[0] != '\0';
}
/* Shortens a pattern to its period. */
void layer_pattern_shorten(char *pattern);
/* The letters of patterns. */
extern const char layer_letters[];

/* The model as its layers of one kind see it: `model` itself, or `*view` with the heads of layers that have a window, where these
 * have their own. */
const struct transformer *transformer_view(const struct transformer *model, bool windowed, struct transformer *view);
/* Width of a value's head of grouped attention. */
static inline int transformer_value_dim(const struct transformer *model)
{
    return model->value_dim ? model->value_dim : model->head_dim;
}
/* Norms of hidden width of `parts` parts of layers. */
static inline double transformer_norms(const struct transformer *model, double parts)
{
    return model->layer_norms ? parts * model->layer_norms / 2 : parts;
}

/* The kind of a layer (0-based). Layers after the last one are those of multi-token prediction, and are like the last. */
struct layer_kind layer_kind_of(const struct transformer *model, int layer);
struct layer_kinds layer_kinds_of(const struct transformer *model, int first, int count);
bool layer_is_mixture(const struct transformer *model, int layer);
bool layer_is_windowed(const struct transformer *model, int layer); /* attends to `window` tokens only */
double transformer_layer_parameters(const struct transformer *model, int layer,
                                    bool experts); /* with or without routed experts */
/* The part of these parameters that every rank of a tensor-parallel group holds whole: norms, latent attention's
 * down-projections, routers, biases after products whose rows are divided. */
double transformer_layer_undivided(const struct transformer *model, int layer, bool experts);
/* Parameters of one key and one value head, of which every rank has at least one; 0 without grouped attention. */
double transformer_key_value_head(const struct transformer *model, int layer);

/* The layer with the most parameters, routed experts included; the last one if all are equal. */
int transformer_largest_layer(const struct transformer *model);

/* Widths of a state mixer, in elements per token: outputs of its heads (H P); keys or queries of all groups (G N); input of the
 * causal convolution (values, keys and queries). */
struct mixer_width {
    double values, keys, convolved;
};
struct mixer_width mixer_width_of(const struct state_mixer *mixer);
/* Columns of the matrices that read the layer's input: values, keys and queries; the gate, as wide as values; and numbers per
 * head (a step, decays, strengths). In kimi_delta the gate and decays come through two projections of rank head_dim. */
struct mixer_columns {
    double mixed, gate, scalars;
    int ranks; /* number of such projections */
};
struct mixer_columns mixer_columns_of(const struct state_mixer *mixer);

/* The suffix of the name of a model that an experiment changes without renaming it, `model: {base: llama3-8b, layers: 16}`, or
 * that a flag changes. */
#define MODEL_CHANGED " (changed)"
/* The length of a name without that suffix. */
size_t model_name_length(const char *name);

#endif
