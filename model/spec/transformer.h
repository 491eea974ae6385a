/*
 * transformer.h - what is trained: the shape of a decoder-only transformer.
 *
 * Symbols used throughout msim: L layers, h hidden, f ffn_hidden, a heads, g kv_heads, d head_dim, s sequence length,
 * V vocabulary, E experts, k experts per token.
 *
 * A layer is attention plus a feed-forward part. Attention is multi-head with g <= a key/value heads (grouped-query), or
 * latent (DeepSeek's MLA). The feed-forward part is dense (two matrices, three when gated) or a mixture of experts.
 */
#ifndef MSIM_MODEL_SPEC_TRANSFORMER_H
#define MSIM_MODEL_SPEC_TRANSFORMER_H

#include <stdbool.h>
#include <stdint.h>

enum { NAME_SIZE = 64, SOURCE_SIZE = 512 };

enum norm_kind { NORM_LAYER, NORM_RMS };
enum position_kind { POSITION_LEARNED, POSITION_ROTARY, POSITION_ALIBI, POSITION_NONE };
enum attention_kind { ATTENTION_GROUPED, ATTENTION_LATENT };

/* Multi-head latent attention; ranks and per-head dimensions in elements. */
struct latent_attention {
    int q_lora_rank; /* 0: the query projection is not compressed */
    int kv_lora_rank;
    int qk_nope_dim, qk_rope_dim, v_dim;
};

struct mixture {
    int experts; /* routed experts per layer; 0: dense model */
    int top_k;   /* routed experts per token */
    int groups,
        top_groups;     /* a token's experts lie in at most top_groups of `groups` equal groups (DeepSeek-V3: 4 of 8); 0: any */
    int64_t expert_ffn; /* feed-forward width of one routed expert */
    int shared_experts; /* experts every token passes */
    int64_t shared_ffn; /* width of the shared expert(s) together; 0: shared_experts * expert_ffn */
    int first_dense_layers; /* leading layers that stay dense, of width ffn_hidden */
    int every;              /* after those, one layer in `every` is a mixture (1: all) */
};

struct transformer {
    char name[NAME_SIZE];
    char source[SOURCE_SIZE];
    int layers;
    int64_t hidden, ffn_hidden;
    bool gated_mlp;   /* SwiGLU or GeGLU: three matrices */
    double mlp_limit; /* largest magnitude of what a gated activation reads (gpt-oss: 7); 0: any */
    int heads, kv_heads;
    int head_dim; /* hidden / heads unless the model says otherwise */
    int64_t vocab;
    int64_t max_seq_len; /* of the learned position table, and the default sequence length */
    bool tied_embeddings, linear_bias, qkv_bias, qk_norm;
    enum norm_kind norm;
    enum position_kind position;
    enum attention_kind attention;
    struct latent_attention latent;
    int64_t window;   /* sliding-window width in tokens, 0: full attention */
    int window_every; /* one layer in `window_every` keeps full attention (0: none does) */
    struct mixture moe;
    int mtp_layers;                                /* multi-token-prediction layers after the last (DeepSeek-V3: 1) */
    double published_parameters, published_active; /* 0: the publication gives none */
};

/* Parameter counts, in elements, of the whole model. */
struct parameter_count {
    double embedding; /* token and position tables */
    double head;      /* output projection; 0 when tied */
    double attention; /* all layers */
    double dense_ffn; /* all dense feed-forward parts, and shared experts */
    double experts;   /* all routed experts */
    double router;
    double norms; /* all layers and the final norm */
    double mtp;   /* multi-token prediction; published totals leave it out, so `total` does too */
    double total;
    double active; /* used for one token: routed experts count k of E */
};

void transformer_parameters(const struct transformer *model, struct parameter_count *count);

/* Of a 0-based layer; layers behind the last one are those of multi-token prediction, which are like it. */
bool layer_is_mixture(const struct transformer *model, int layer);
bool layer_is_windowed(const struct transformer *model, int layer); /* attends to `window` tokens only */
double transformer_layer_parameters(const struct transformer *model, int layer,
                                    bool experts); /* with or without routed experts */

#endif
