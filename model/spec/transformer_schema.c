/* transformer_schema.c - the rows of a model. */
#include <string.h>

#include "model/spec/schemas.h"
#include "model/spec/transformer.h"

static const char *const norms[] = {[NORM_LAYER] = "layer", [NORM_RMS] = "rms", NULL};
static const char *const positions[] = {
    [POSITION_LEARNED] = "learned", [POSITION_ROTARY] = "rotary", [POSITION_ALIBI] = "alibi", [POSITION_NONE] = "none", NULL};
/* As papers, configurations and other simulators call them. */
static const char *const norm_synonyms[] = {"rmsnorm", "rms",        "rms_norm", "rms", "layernorm",
                                            "layer",   "layer_norm", "layer",    NULL};
static const char *const position_synonyms[] = {
    "rope", "rotary", "rotary_embedding", "rotary", "yarn", "rotary", "absolute", "learned", "nope", "none", NULL};
static const char *const attention_synonyms[] = {"mla", "latent", "gqa", "grouped", "mha", "grouped", "mqa", "grouped", NULL};
static const char *const attentions[] = {[ATTENTION_GROUPED] = "grouped", [ATTENTION_LATENT] = "latent", NULL};

static const struct field latent_rows[] = {
    INTEGER("q_lora_rank", struct latent_attention, q_lora_rank, 0, 1e6, UNSET, "rank of the compressed query"),
    INTEGER("kv_lora_rank", struct latent_attention, kv_lora_rank, 1, 1e6, REQUIRED, "rank of the compressed key and value"),
    INTEGER("qk_nope_dim", struct latent_attention, qk_nope_dim, 1, 1e5, REQUIRED, "per head, without position"),
    INTEGER("qk_rope_dim", struct latent_attention, qk_rope_dim, 0, 1e5, REQUIRED, "per head, with rotary position"),
    INTEGER("v_dim", struct latent_attention, v_dim, 1, 1e5, REQUIRED, "value dimension per head"),
};
static const struct schema latent_schema = SCHEMA("latent attention", latent_rows);

static const struct field mixture_rows[] = {
    INTEGER("experts", struct mixture, experts, 1, 1e5, REQUIRED, "routed experts per layer"),
    INTEGER("top_k", struct mixture, top_k, 1, 1e5, REQUIRED, "routed experts per token"),
    INTEGER("groups", struct mixture, groups, 0, 1e4, UNSET, "equal groups of experts, where routing is limited to some groups"),
    INTEGER("top_groups", struct mixture, top_groups, 0, 1e4, UNSET, "groups that a token may be routed to"),
    INTEGER("expert_ffn", struct mixture, expert_ffn, 1, 1e7, REQUIRED, "feed-forward width of one expert"),
    INTEGER("shared_experts", struct mixture, shared_experts, 0, 1e4, UNSET, "experts that every token passes"),
    INTEGER("shared_ffn", struct mixture, shared_ffn, 0, 1e8, UNSET, "width of the shared experts together"),
    INTEGER("first_dense_layers", struct mixture, first_dense_layers, 0, 1e5, UNSET, "leading layers that stay dense"),
    INTEGER("last_dense_layers", struct mixture, last_dense_layers, 0, 1e5, UNSET, "last layers that stay dense"),
    INTEGER("every", struct mixture, every, 1, 1e5, "1", "after those, one layer in `every` is a mixture"),
    INTEGER("zero_experts", struct mixture, zero_experts, 0, 1e5, UNSET,
            "choices of the router that compute nothing; top_k is less by their share"),
    BOOLEAN("router_bias", struct mixture, router_bias, UNSET, "the router has a balancing bias for each expert"),
    BOOLEAN("shared_gate", struct mixture, shared_gate, UNSET, "the shared expert's output is weighted by a gate"),
};
static const struct schema mixture_schema = SCHEMA("mixture of experts", mixture_rows);

static const struct field windowed_rows[] = {
    INTEGER("heads", struct windowed_heads, heads, 1, 1e5, UNSET, "attention heads"),
    INTEGER("kv_heads", struct windowed_heads, kv_heads, 1, 1e5, UNSET, "key and value heads"),
    INTEGER("head_dim", struct windowed_heads, head_dim, 1, 1e5, UNSET, "width of a head"),
    INTEGER("value_dim", struct windowed_heads, value_dim, 1, 1e5, UNSET, "width of a value's head"),
};
static const struct schema windowed_schema = SCHEMA("heads of layers with a window", windowed_rows);

static const struct field indexer_rows[] = {
    INTEGER("heads", struct key_indexer, heads, 1, 1e5, REQUIRED, "heads that score keys"),
    INTEGER("head_dim", struct key_indexer, head_dim, 1, 1e5, REQUIRED, "width of such a head"),
    INTEGER("top_k", struct key_indexer, top_k, 1, 1e9, REQUIRED, "keys that a query attends to"),
};
static const struct schema indexer_schema = SCHEMA("indexer of sparse attention", indexer_rows);

static const char *const mixers[] = {[MIXER_MAMBA2] = "mamba2",
                                     [MIXER_LIGHTNING] = "lightning",
                                     [MIXER_GATED_DELTA] = "gated_delta",
                                     [MIXER_KIMI_DELTA] = "kimi_delta",
                                     NULL};
static const struct field mixer_rows[] = {
    CHOICE("kind", struct state_mixer, kind, mixers, REQUIRED, "how the state changes with a token"),
    INTEGER("heads", struct state_mixer, heads, 1, 1e5, REQUIRED, "heads, a state each"),
    INTEGER("groups", struct state_mixer, groups, 1, 1e5, UNSET, "groups of heads that share keys and queries (default: heads)"),
    INTEGER("state", struct state_mixer, state, 1, 1e5, REQUIRED, "rows of a state: the width of a key"),
    INTEGER("head_dim", struct state_mixer, head_dim, 1, 1e5, REQUIRED, "its columns: the width of a value"),
    INTEGER("conv", struct state_mixer, conv, 0, 64, UNSET, "taps of the causal convolution; 0 none"),
    INTEGER("chunk", struct state_mixer, chunk, 16, 4096, UNSET, "tokens of a chunk; 64 of the delta rule, 256 of others"),
    BOOLEAN("norm", struct state_mixer, norm, "true", "a norm of the heads' output"),
};
static const struct schema mixer_schema = SCHEMA("mixer with a state", mixer_rows);

static const struct field transformer_rows[] = {
    TEXT("name", struct transformer, name, UNSET, "name"),
    TEXT("source", struct transformer, source, UNSET, "where the shape comes from"),
    INTEGER("layers", struct transformer, layers, 1, 10000, REQUIRED, "transformer layers"),
    INTEGER("hidden", struct transformer, hidden, 1, 1e6, REQUIRED, "width of the residual stream"),
    INTEGER("ffn_hidden", struct transformer, ffn_hidden, 1, 1e7, UNSET, "feed-forward width (default: 4 x hidden)"),
    BOOLEAN("gated_mlp", struct transformer, gated_mlp, "false", "SwiGLU or GeGLU: three matrices"),
    QUANTITY("mlp_limit", struct transformer, mlp_limit, DIM_COUNT, 0, 1e6, UNSET,
             "magnitude that a gated activation's inputs are clamped to; 0 any"),
    INTEGER("heads", struct transformer, heads, 1, 1e5, REQUIRED, "attention heads"),
    INTEGER("kv_heads", struct transformer, kv_heads, 1, 1e5, UNSET, "key and value heads (default: heads)"),
    INTEGER("head_dim", struct transformer, head_dim, 1, 1e5, UNSET, "width of a head (default: hidden / heads)"),
    INTEGER("value_dim", struct transformer, value_dim, 1, 1e5, UNSET, "width of a value's head (default: head_dim)"),
    INTEGER("query_rank", struct transformer, query_rank, 0, 1e6, UNSET, "rank of the queries' product; 0 one matrix"),
    BOOLEAN("values_are_keys", struct transformer, values_are_keys, UNSET,
            "layers without a window have no projection for values"),
    INTEGER("shared_kv_layers", struct transformer, shared_kv_layers, 0, 10000, UNSET,
            "last layers that take keys and values from earlier ones"),
    INTEGER("vocab", struct transformer, vocab, 1, 1e8, REQUIRED, "rows of the embedding table"),
    INTEGER("max_seq_len", struct transformer, max_seq_len, 1, 1e9, REQUIRED,
            "default sequence length; rows of a learned position table"),
    INTEGER("position_offset", struct transformer, position_offset, 0, 1e6, UNSET,
            "rows of a learned position table before that of the first token"),
    INTEGER("layer_embedding", struct transformer, layer_embedding, 0, 1e5, UNSET,
            "width of a token's vector for each layer; 0 none"),
    INTEGER("layer_embedding_vocab", struct transformer, layer_embedding_vocab, 0, 1e8, UNSET,
            "rows of the table of those vectors (default: vocab)"),
    BOOLEAN("tied_embeddings", struct transformer, tied_embeddings, "false", "output projection shares the embedding table"),
    BOOLEAN("linear_bias", struct transformer, linear_bias, "false", "every projection has a bias"),
    BOOLEAN("qkv_bias", struct transformer, qkv_bias, "false", "query, key and value projections have a bias"),
    BOOLEAN("qk_norm", struct transformer, qk_norm, "false", "a norm on queries and keys, per head"),
    BOOLEAN("qk_norm_whole", struct transformer, qk_norm_whole, UNSET, "with qk_norm: over all heads together"),
    BOOLEAN("output_bias", struct transformer, output_bias, UNSET, "the projection behind attention has a bias"),
    BOOLEAN("attention_sinks", struct transformer, attention_sinks, UNSET, "a number of each head takes part in its softmax"),
    INTEGER("layer_norms", struct transformer, layer_norms, 0, 4, UNSET,
            "norms of a layer: 4 with one behind each part, 1 of parts side by side (default: 2)"),
    BOOLEAN("output_gate", struct transformer, output_gate, UNSET, "attention's output is gated by a projection of the input"),
    CHOICE_OR("norm", struct transformer, norm, norms, norm_synonyms, "rms", "kind of norm"),
    CHOICE_OR("position", struct transformer, position, positions, position_synonyms, "rotary", "kind of position encoding"),
    QUANTITY("rope_theta", struct transformer, rope_theta, DIM_COUNT, 1, 1e12, UNSET,
             "base of rotary positions' angles, for exports; it takes no time"),
    CHOICE_OR("attention", struct transformer, attention, attentions, attention_synonyms, "grouped", "grouped-query or latent"),
    GROUP("latent", struct transformer, latent, latent_schema, UNSET, "multi-head latent attention"),
    INTEGER("window", struct transformer, window, 0, 1e9, UNSET, "sliding-window width in tokens; 0 full attention"),
    INTEGER("window_every", struct transformer, window_every, 0, 10000, UNSET, "one layer in this many keeps full attention"),
    GROUP("windowed", struct transformer, windowed, windowed_schema, UNSET, "heads of layers with a window, where they differ"),
    GROUP("indexer", struct transformer, indexer, indexer_schema, UNSET, "picks the keys that a query attends to"),
    GROUP("moe", struct transformer, moe, mixture_schema, UNSET, "mixture of experts"),
    GROUP("mixer", struct transformer, mixer, mixer_schema, UNSET, "mixer with a state, of some layers"),
    TEXT("layer_pattern", struct transformer, layer_pattern, UNSET,
         "a letter a layer, repeated: a m p pairs, * M - E parts alone"),
    INTEGER("mtp_layers", struct transformer, mtp_layers, 0, 8, UNSET, "multi-token-prediction layers"),
    QUANTITY("published_parameters", struct transformer, published_parameters, DIM_COUNT, 1e3, 1e16, UNSET, "as published"),
    QUANTITY("published_active", struct transformer, published_active, DIM_COUNT, 1e3, 1e16, UNSET, "per token, as published"),
};

/* Keys of configurations that others write. */
static const char *model_advice(const char *key, const struct yaml_node *mapping)
{
    static const struct {
        const char *key, *advice;
    } known[] = {
        {"num_experts", "of a mixture write `moe: {experts: ..., top_k: ..., expert_ffn: ...}`"},
        {"num_local_experts", "of a mixture write `moe: {experts: ..., top_k: ..., expert_ffn: ...}`"},
        {"n_routed_experts", "of a mixture write `moe: {experts: ..., top_k: ..., expert_ffn: ...}`"},
        {"num_experts_per_tok", "of a mixture write `moe: {experts: ..., top_k: ..., expert_ffn: ...}`"},
        {"moe_intermediate_size", "of a mixture write `moe: {experts: ..., top_k: ..., expert_ffn: ...}`"},
        {"num_hidden_layers", "write `layers`, or give the whole config.json with its model_type"},
        {"num_layers", "write `layers`"},
        {"hidden_size", "write `hidden`, or give the whole config.json with its model_type"},
        {"intermediate_size", "write `ffn_hidden`, or give the whole config.json with its model_type"},
        {"num_attention_heads", "write `heads`, or give the whole config.json with its model_type"},
        {"num_key_value_heads", "write `kv_heads`, or give the whole config.json with its model_type"},
        {"vocab_size", "write `vocab`, or give the whole config.json with its model_type"},
        {"seq_len", "write `max_seq_len` (a job's own is job.seq_len)"},
        {"max_position_embeddings", "write `max_seq_len`"},
        {"tie_word_embeddings", "write `tied_embeddings`"},
    };
    (void)mapping;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(key, known[i].key) == 0)
            return known[i].advice;
    return NULL;
}
const struct schema transformer_schema = SCHEMA_WITH("model", transformer_rows, model_advice);
