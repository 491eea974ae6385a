/* adapter_modules.c - the names of matrices with adapters, by library. */
#include "traces/launch/megatron/adapter_modules.h"

#include <stdio.h>
#include <string.h>

#include "traces/launch/megatron/module_pattern.h"

/* Names of modules, or what they end in behind a dot. Where two rows have a name, the first whose family begins the model's name
 * in the catalog is meant: GPT-2's layers call two matrices c_proj, StarCoder2's one. Not checked. */
static const struct {
    const char *name;
    unsigned parts;
    const char *family; /* NULL: any */
} modules[] = {
    {"q_proj", PART_Q, NULL},
    {"k_proj", PART_K, NULL},
    {"v_proj", PART_V, NULL},
    {"o_proj", PART_O, NULL},
    {"gate_proj", PART_GATE, NULL},
    {"up_proj", PART_UP, NULL},
    {"down_proj", PART_DOWN, NULL},
    {"q_a_proj", PART_Q, NULL},
    {"q_b_proj", PART_Q, NULL},
    {"kv_a_proj_with_mqa", PART_K | PART_V, NULL},
    {"kv_b_proj", PART_K | PART_V, NULL},
    {"qkv_proj", PART_QKV, NULL},
    {"gate_up_proj", PART_MLP_UP, NULL},
    {"query_key_value", PART_QKV, NULL}, /* GPT-NeoX, Falcon, BLOOM, ChatGLM */
    {"dense", PART_O, NULL},             /* theirs, and Phi's */
    {"dense_h_to_4h", PART_MLP_UP, NULL},
    {"dense_4h_to_h", PART_DOWN, NULL},
    {"Wqkv", PART_QKV, NULL}, /* MPT, DBRX */
    {"out_proj", PART_O, NULL},
    {"v1", PART_UP, NULL},
    {"fc1", PART_MLP_UP, NULL}, /* OPT, Phi */
    {"fc2", PART_DOWN, NULL},
    {"fc_in", PART_MLP_UP, NULL}, /* GPT-J */
    {"fc_out", PART_DOWN, NULL},
    {"c_attn", PART_QKV, NULL}, /* GPT-2, Qwen */
    {"c_fc", PART_MLP_UP, NULL},
    {"attn.c_proj", PART_O, NULL},
    {"mlp.c_proj", PART_DOWN, NULL},
    {"c_proj", PART_DOWN, "starcoder2"},
    {"c_proj", PART_O | PART_DOWN, NULL},
    {"w1", PART_GATE, NULL}, /* Meta's own names, InternLM2 */
    {"w2", PART_DOWN, NULL},
    {"w3", PART_UP, NULL},
    {"wq", PART_Q, NULL},
    {"wk", PART_K, NULL},
    {"wv", PART_V, NULL},
    {"wo", PART_O, NULL},
    {"wqkv", PART_QKV, NULL},
    {"W_pack", PART_QKV, NULL}, /* Baichuan */
    {"linear_qkv", PART_QKV, NULL},
    {"linear_q", PART_Q, NULL},
    {"linear_k", PART_K, NULL},
    {"linear_v", PART_V, NULL},
    {"linear_q_proj", PART_Q, NULL},
    {"linear_q_down_proj", PART_Q, NULL},
    {"linear_q_up_proj", PART_Q, NULL},
    {"linear_kv_down_proj", PART_K | PART_V, NULL},
    {"linear_kv_up_proj", PART_K | PART_V, NULL},
    {"linear_proj", PART_O, NULL},
    {"linear_fc1", PART_MLP_UP, NULL},
    {"linear_fc1_gate", PART_GATE, NULL},
    {"linear_fc1_up", PART_UP, NULL},
    {"linear_fc2", PART_DOWN, NULL},
    {"attention_qkv", PART_QKV, NULL},
    {"attention_dense", PART_O, NULL},
    {"mlp_fc1", PART_MLP_UP, NULL},
    {"mlp_fc2", PART_DOWN, NULL},
    {"attention", PART_QKV | PART_O, NULL},
    {"mlp", PART_MLP_UP | PART_DOWN, NULL},
    {"all", PART_QKV | PART_O | PART_MLP_UP | PART_DOWN, NULL},
    {"all-linear", PART_QKV | PART_O | PART_MLP_UP | PART_DOWN, NULL},
};

bool adapter_is_called(const char *name, const char *ending)
{
    size_t n = strlen(name), end = strlen(ending);
    return n >= end && strcmp(name + n - end, ending) == 0 && (n == end || name[n - end - 1] == '.' || name[n - end - 1] == '*');
}

unsigned adapter_parts(const struct transformer *model, const char *name)
{
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        const char *family = modules[i].family;
        if (adapter_is_called(name, modules[i].name) && (!family || strncmp(model->name, family, strlen(family)) == 0))
            return modules[i].parts;
    }
    return 0;
}

/* --- full names --- */

enum { MODULES = 12 };

/* Layers of families by the beginning of their names in the catalog, and the modules of one. The last is the usual one. */
static const struct family {
    const char *begins[4]; /* NULL behind the last */
    const char *layer;     /* in front of its number; behind it a dot */
    const char *table;     /* of tokens */
    const char *modules[MODULES];
} families[] = {
    {{"gpt2", "starcoder-", "santacoder"},
     "transformer.h",
     "transformer.wte",
     {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}},
    {{"gpt-neox", "pythia"},
     "gpt_neox.layers",
     "gpt_neox.embed_in",
     {"attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"}},
    {{"falcon-", "bloom"},
     "transformer.h",
     "transformer.word_embeddings",
     {"self_attention.query_key_value", "self_attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"}},
    {{"chatglm3"},
     "transformer.encoder.layers",
     "transformer.embedding.word_embeddings",
     {"self_attention.query_key_value", "self_attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"}},
    {{"mpt"}, "transformer.blocks", "transformer.wte", {"attn.Wqkv", "attn.out_proj", "ffn.up_proj", "ffn.down_proj"}},
    {{"opt-"},
     "model.decoder.layers",
     "model.decoder.embed_tokens",
     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "fc1", "fc2"}},
    {{"phi-1", "phi-2"},
     "model.layers",
     "model.embed_tokens",
     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.dense", "mlp.fc1", "mlp.fc2"}},
    {{"phi-3-", "phi-4"},
     "model.layers",
     "model.embed_tokens",
     {"self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj"}},
    {{"gpt-j"},
     "transformer.h",
     "transformer.wte",
     {"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj", "mlp.fc_in", "mlp.fc_out"}},
    {{"starcoder2"},
     "model.layers",
     "model.embed_tokens",
     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.c_fc", "mlp.c_proj"}},
    {{"internlm2"},
     "model.layers",
     "model.tok_embeddings",
     {"attention.wqkv", "attention.wo", "feed_forward.w1", "feed_forward.w3", "feed_forward.w2"}},
    {{"baichuan"},
     "model.layers",
     "model.embed_tokens",
     {"self_attn.W_pack", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}},
    {{"mixtral"},
     "model.layers",
     "model.embed_tokens",
     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "block_sparse_moe.experts.0.w1",
      "block_sparse_moe.experts.0.w3", "block_sparse_moe.experts.0.w2"}},
    {{NULL}, "model.layers", "model.embed_tokens", {NULL}},
};

static const struct family *family_of(const struct transformer *model)
{
    const struct family *f = families;
    for (; f->begins[0]; f++)
        for (const char *const *begin = f->begins; *begin; begin++)
            if (strncmp(model->name, *begin, strlen(*begin)) == 0)
                return f;
    return f;
}

/* Those of LLaMA's kin: with latent attention, with experts, without a gate. How many. */
static int usual_modules(const struct transformer *model, const char **names)
{
    bool latent = model->attention == ATTENTION_LATENT, factored = latent && model->latent.q_lora_rank > 0;
    const struct {
        bool there;
        const char *name;
    } all[] = {{!factored, "self_attn.q_proj"},
               {factored, "self_attn.q_a_proj"},
               {factored, "self_attn.q_b_proj"},
               {!latent, "self_attn.k_proj"},
               {!latent, "self_attn.v_proj"},
               {latent, "self_attn.kv_a_proj_with_mqa"},
               {latent, "self_attn.kv_b_proj"},
               {true, "self_attn.o_proj"},
               {!model->moe.experts && model->gated_mlp, "mlp.gate_proj"},
               {!model->moe.experts, "mlp.up_proj"},
               {!model->moe.experts, "mlp.down_proj"},
               {model->moe.experts && model->gated_mlp, "mlp.experts.0.gate_proj"},
               {model->moe.experts, "mlp.experts.0.up_proj"},
               {model->moe.experts, "mlp.experts.0.down_proj"}};
    int n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && n < MODULES; i++)
        if (all[i].there)
            names[n++] = all[i].name;
    return n;
}

bool adapter_match(const struct transformer *model, const char *text, struct adapter_match *match, char *why, size_t size)
{
    const struct family *family = family_of(model);
    const char *names[MODULES];
    struct module_pattern pattern;
    int n = 0;
    while (n < MODULES && family->modules[n]) {
        names[n] = family->modules[n];
        n++;
    }
    n = n ? n : usual_modules(model, names);
    if (!module_pattern_read(text, &pattern, why, size))
        return false;
    *match = (struct adapter_match){.everywhere = model->layers > 0 ? ~0u : 0};
    snprintf(match->example, sizeof match->example, "%s.0.%s", family->layer, names[0]);
    for (int layer = 0; layer < model->layers; layer++) {
        unsigned parts = 0;
        for (int i = 0; i < n; i++) {
            char name[96];
            snprintf(name, sizeof name, "%s.%d.%s", family->layer, layer, names[i]);
            parts |= module_pattern_matches(&pattern, name) ? adapter_parts(model, name) : 0;
        }
        match->everywhere &= parts;
        match->somewhere |= parts;
    }
    match->table = module_pattern_matches(&pattern, "lm_head") || module_pattern_matches(&pattern, family->table);
    module_pattern_free(&pattern);
    return true;
}
