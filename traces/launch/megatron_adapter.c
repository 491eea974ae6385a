/* Adapters, in the words of those who train them: Hugging Face's peft, LLaMA-Factory, Axolotl, NeMo and Megatron-Bridge. */
#include <ctype.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/megatron_reading.h"

/* Matrices as they are apart. */
enum { Q = 1, K = 2, V = 4, O = 8, GATE = 16, UP = 32, DOWN = 64 };
enum { QKV = Q | K | V, MLP_UP = GATE | UP };

static const struct {
    const char *name;
    unsigned parts;
} modules[] = {
    {"q_proj", Q},
    {"k_proj", K},
    {"v_proj", V},
    {"o_proj", O},
    {"gate_proj", GATE},
    {"up_proj", UP},
    {"down_proj", DOWN},
    {"q_a_proj", Q},
    {"q_b_proj", Q},
    {"kv_a_proj_with_mqa", K | V},
    {"kv_b_proj", K | V},
    {"qkv_proj", QKV},
    {"query_key_value", QKV},
    {"Wqkv", QKV},
    {"c_attn", QKV},
    {"gate_up_proj", MLP_UP},
    {"linear_qkv", QKV},
    {"linear_q_proj", Q},
    {"linear_q_down_proj", Q},
    {"linear_q_up_proj", Q},
    {"linear_kv_down_proj", K | V},
    {"linear_kv_up_proj", K | V},
    {"linear_proj", O},
    {"linear_fc1", MLP_UP},
    {"linear_fc2", DOWN},
    {"attention_qkv", QKV},
    {"attention_dense", O},
    {"mlp_fc1", MLP_UP},
    {"mlp_fc2", DOWN},
    {"attention", QKV | O},
    {"mlp", MLP_UP | DOWN},
    {"all", QKV | O | MLP_UP | DOWN},
    {"all-linear", QKV | O | MLP_UP | DOWN},
};

static unsigned parts_of(struct meaning *m, const char *name)
{
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (strcmp(modules[i].name, name) == 0)
            return modules[i].parts;
    meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "'%s' is none of the matrices that have adapters in msim", name);
    return 0;
}

/* All that a target is made of, or, where that is more than what was said, all of it, which is told. */
static uint32_t target_of(struct meaning *m, unsigned parts, unsigned whole, enum adapter_target target)
{
    if (parts & whole && (parts & whole) != whole)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "beside some of what %s is made of; beside all of it is taken",
                             adapter_target_names[target]);
    return parts & whole ? (uint32_t)1 << target : 0;
}

static uint32_t read_targets(struct meaning *m)
{
    static const char between[] = " ,;'\"[]";
    const struct transformer *model = &m->description->job.model;
    const char *text = meaning_text(m, ARGUMENT_ADAPTER_TARGETS);
    unsigned parts = 0;
    for (const char *p = text ? text : ""; *(p += strspn(p, between));) {
        char name[64];
        size_t n = strcspn(p, between);
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        parts |= parts_of(m, name);
        p += n;
    }
    uint32_t targets = target_of(m, parts, QKV, ADAPT_QKV) | target_of(m, parts, O, ADAPT_PROJECTION);
    uint32_t feed = target_of(m, parts, model->gated_mlp ? MLP_UP : UP, ADAPT_MLP_UP) | target_of(m, parts, DOWN, ADAPT_MLP_DOWN);
    if (feed && model->moe.experts)
        meaning_not_modelled(m, ARGUMENT_ADAPTER_TARGETS, "adapters of experts; those of attention are taken");
    return targets | (model->moe.experts ? 0 : feed);
}

/* lora, qlora, or a class: nemo.collections.llm.peft.lora.LoRA. */
static bool is_lora(const char *text)
{
    const char *dot = strrchr(text, '.');
    char word[16];
    snprintf(word, sizeof word, "%s", dot ? dot + 1 : text);
    for (char *p = word; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return strcmp(word, "lora") == 0 || strcmp(word, "qlora") == 0;
}

/* Why msim cannot have adapters in this job; NULL: it can. */
static const char *obstacle_of(const struct launch_job *job, const struct adapter *adapter)
{
    if (adapter->rank == 0 || adapter->targets == 0)
        return "its rank, or beside which matrices, is not said";
    if (job->model.mtp_layers)
        return "it is not modelled beside prediction modules";
    if (transformer_is_hybrid(&job->model))
        return "it is not modelled for models with a pattern of layers";
    if (precision_is_narrow(job->job.precision))
        return "it is not modelled beside weights in so few bits";
    if (job->job.optimizer == OPTIMIZER_MUON)
        return "it is not modelled with Muon";
    if (!offload_is_none(&job->layout.offload))
        return "it is not modelled with offloading";
    return adapter->rank % job->layout.tp ? "tp does not divide its rank" : NULL;
}

void meaning_adapter(struct meaning *m)
{
    const char *text = meaning_has(m, ARGUMENT_ADAPTER) ? meaning_text(m, ARGUMENT_ADAPTER) : NULL;
    if (!text || !*text || strcmp(text, "None") == 0 || strcmp(text, "none") == 0 || strcmp(text, "null") == 0)
        return;
    if (!is_lora(text)) {
        meaning_not_modelled(m, ARGUMENT_ADAPTER, "only an adapter's weights are trained");
        return;
    }
    const struct adapter adapter = {.rank = meaning_int(m, ARGUMENT_ADAPTER_RANK, 1, 0), .targets = read_targets(m)};
    const char *obstacle = obstacle_of(&m->description->job, &adapter);
    if (obstacle) {
        meaning_not_modelled(m, ARGUMENT_ADAPTER, "only an adapter's weights are trained; %s, so all are taken for trained",
                             obstacle);
        return;
    }
    m->description->job.job.adapter = adapter;
    meaning_from(m, "job.adapter.rank", ARGUMENT_ADAPTER_RANK);
    meaning_from(m, "job.adapter.targets", ARGUMENT_ADAPTER_TARGETS);
}
