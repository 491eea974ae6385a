/*
 * check.c - decide whether a layout is legal, with the reason if it is not.
 *
 * The search checks every point of the space, so each rule only compares integers. The sentence is written afterwards and only
 * if the caller wants it.
 */
#include <stdio.h>

#include "model/layout/dimension_value.h"

/* Where the sentence goes; NULL text: nobody asks. */
struct reply {
    char *text;
    size_t size;
};

#define SAY(reply, ...) ((reply).text ? (void)snprintf((reply).text, (reply).size, __VA_ARGS__) : (void)0)

/* The smallest number in a struct layout: what may be written, or the 0 of a dimension that is not given. */
#define SMALLEST(least, usual) ((usual) < (least) ? (usual) : (least))
enum { MOST_ZERO = 3 };

static bool in_range(const struct layout *l)
{
#define IN_RANGE_NUMBER(member, least, usual) &&l->member >= SMALLEST(least, usual)
#define IN_RANGE_FLAG(member, least, usual)
#define IN_RANGE_CP_COMM(member, least, usual)                                    &&cp_comm_is_known((int)l->member)
#define IN_RANGE_RECOMPUTE(member, least, usual)                                  &&recompute_is_known(l->member)
#define IN_RANGE_OFFLOAD(member, least, usual)                                    &&offload_is_known(&l->member)
#define IN_RANGE_SCHEDULE(member, least, usual)                                   &&(unsigned)l->member < N_SCHEDULES
#define X(id, type, member, key, word, brief, long_name, least, most, usual, ...) IN_RANGE_##type(member, least, usual)
    return l->zero <= MOST_ZERO LAYOUT_DIMENSIONS(X); /* NOLINT(bugprone-branch-clone): one row a dimension */
#undef X
}

static bool check_range(const struct layout *l, struct reply why)
{
    if (in_range(l))
        return true;
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        const struct layout_dimension_row *row = &layout_dimensions[i];
        if (row->type != DIMENSION_TYPE_NUMBER || i == DIMENSION_ZERO)
            continue;
        int value = dimension_number(l, (enum layout_dimension)i), smallest = SMALLEST(row->least, row->usual);
        if (value < smallest) {
            SAY(why, "%s=%d is below %d", row->word, value, smallest);
            return false;
        }
    }
    if (l->zero < 0 || l->zero > MOST_ZERO)
        SAY(why, "zero=%d is not a ZeRO stage; they are 0 to %d", l->zero, MOST_ZERO);
    else
        SAY(why, "the recomputation, the schedule, how cp exchanges or what is offloaded is not a known one");
    return false;
}

/* Both products are at most 2^62: no overflow. */
static bool check_world(const struct layout *l, const struct setting *s, struct reply why)
{
    int64_t inner = (int64_t)l->tp * l->cp, outer = (int64_t)l->pp * l->dp;
    if (inner <= s->gpus && outer <= s->gpus && inner * outer == s->gpus)
        return true;
    bool divides = inner <= s->gpus && l->pp <= s->gpus && s->gpus % (inner * l->pp) == 0;
    if (divides)
        SAY(why, "tp=%d * cp=%d * pp=%d * dp=%d is not the %d GPUs of the job; dp=%lld is", l->tp, l->cp, l->pp, l->dp, s->gpus,
            (long long)(s->gpus / (inner * l->pp)));
    else
        SAY(why, "tp=%d * cp=%d * pp=%d does not divide the %d GPUs of the job", l->tp, l->cp, l->pp, s->gpus);
    return false;
}

static bool check_heads(const struct layout *l, const struct setting *s, struct reply why)
{
    int windowed = s->model->windowed.heads;
    bool divides = s->model->heads % l->tp == 0;
    if (divides && windowed % l->tp == 0)
        return true;
    SAY(why, "tp=%d does not divide the %d attention heads", l->tp, divides ? windowed : s->model->heads);
    return false;
}

/* Fewer key/value heads than tp are replicated, so either may divide the other. Latent attention has none to divide. */
static bool check_kv_heads(const struct layout *l, const struct setting *s, struct reply why)
{
    int g = s->model->kv_heads;
    if (s->model->attention == ATTENTION_LATENT || g <= 0 || g % l->tp == 0 || l->tp % g == 0)
        return true;
    SAY(why, "tp=%d and the %d key/value heads do not divide one another", l->tp, g);
    return false;
}

/* A group's heads stay together; between the exchanges of context parallelism a rank has whole heads. */
static bool check_mixer(const struct layout *l, const struct setting *s, struct reply why)
{
    const struct state_mixer *m = &s->model->mixer;
    int64_t ranks = (int64_t)l->tp * l->cp;
    if (!m->heads || (m->groups % l->tp == 0 && m->heads % ranks == 0))
        return true;
    if (m->groups % l->tp)
        SAY(why, "tp=%d does not divide the %d groups of heads of the mixers with a state", l->tp, m->groups);
    else
        SAY(why, "tp=%d * cp=%d does not divide the %d heads of the mixers with a state", l->tp, l->cp, m->heads);
    return false;
}

static bool check_hidden(const struct layout *l, const struct setting *s, struct reply why)
{
    const struct transformer *model = s->model;
    int64_t expert = model->moe.experts ? model->moe.expert_ffn : 0;
    if (model->hidden % l->tp) {
        SAY(why, "tp=%d does not divide the hidden width %lld", l->tp, (long long)model->hidden);
        return false;
    }
    if (model->ffn_hidden % l->tp) {
        SAY(why, "tp=%d does not divide the feed-forward width %lld", l->tp, (long long)model->ffn_hidden);
        return false;
    }
    if (expert && expert % layout_expert_tp(l)) {
        SAY(why, "tp=%d does not divide the experts' width %lld", l->tp, (long long)expert);
        return false;
    }
    return true;
}

/* The vocabulary is padded to a multiple of tp, as Megatron does; only a share of nothing is refused. */
static bool check_vocab(const struct layout *l, const struct setting *s, struct reply why)
{
    if (s->model->vocab >= l->tp)
        return true;
    SAY(why, "tp=%d is larger than the vocabulary of %lld", l->tp, (long long)s->model->vocab);
    return false;
}

bool layout_head_exchange_legal(const struct layout *l, const struct transformer *m, char *text, size_t size)
{
    const struct reply why = {text, size};
    char comm[CP_COMM_TEXT];
    int parts = layout_cp_heads(l), heads = m->heads / l->tp, kv_heads = layout_kv_heads(l, m);
    if (l->cp % parts == 0 && heads % parts == 0 && (kv_heads % parts == 0 || parts % kv_heads == 0))
        return true;
    if (!text)
        return false;
    cp_comm_format(l->cp_comm, comm, sizeof comm);
    if (l->cp % parts)
        SAY(why, "cp_comm=%s: %d ranks that exchange heads do not divide cp=%d", comm, parts, l->cp);
    else if (heads % parts)
        SAY(why, "cp_comm=%s: the %d of %d heads that tp=%d leaves a rank cannot be divided among %d", comm, heads, m->heads,
            l->tp, parts);
    else
        SAY(why, "cp_comm=%s: %d ranks and the %d key/value heads that tp=%d leaves each do not divide one another", comm, parts,
            kv_heads, l->tp);
    return false;
}

static bool check_cp_comm(const struct layout *l, const struct setting *s, struct reply why)
{
    return l->cp_comm == CP_RING || layout_cp_heads(l) == 1 || layout_head_exchange_legal(l, s->model, why.text, why.size);
}

static bool check_sequence(const struct layout *l, const struct setting *s, struct reply why)
{
    int64_t tokens = s->job->seq_len;
    if (l->cp > 1) {
        if (tokens % (2 * (int64_t)l->cp)) {
            SAY(why,
                "cp=%d needs a sequence length that is a multiple of %lld (two pieces per rank balance causal attention), not "
                "%lld",
                l->cp, 2LL * l->cp, (long long)tokens);
            return false;
        }
        tokens /= l->cp;
    }
    if (l->sequence_parallel && tokens % l->tp) {
        SAY(why, "sequence parallelism over tp=%d does not divide the %lld tokens of a rank's sequence", l->tp,
            (long long)tokens);
        return false;
    }
    return true;
}

static bool check_layers(const struct layout *l, const struct setting *s, struct reply why)
{
    int64_t stages = l->schedule == SCHEDULE_DUALPIPE ? l->pp : (int64_t)l->pp * l->vpp;
    if (stages <= s->model->layers + s->model->mtp_layers || stages == s->model->layers + 2)
        return true;
    SAY(why, "pp=%d * vpp=%d is more virtual stages than the %d layers", l->pp, l->schedule == SCHEDULE_DUALPIPE ? 1 : l->vpp,
        s->model->layers);
    return false;
}

static bool check_batch(const struct layout *l, const struct setting *s, struct reply why)
{
    int64_t samples = (int64_t)l->dp * l->micro_batch;
    if (s->job->global_batch >= samples && s->job->global_batch % samples == 0)
        return true;
    SAY(why, "dp=%d * mb=%d does not divide the global batch of %lld", l->dp, l->micro_batch, (long long)s->job->global_batch);
    return false;
}

static bool check_schedule(const struct layout *l, struct reply why)
{
    switch (l->schedule) {
    case SCHEDULE_NONE:
        if (l->pp == 1 && l->vpp == 1)
            return true;
        SAY(why, "schedule=none has no pipeline, but pp=%d and vpp=%d", l->pp, l->vpp);
        return false;
    case SCHEDULE_INTERLEAVED:
        if (l->pp > 1 && l->vpp > 1)
            return true;
        SAY(why, "schedule=interleaved needs pp and vpp of at least 2, not pp=%d and vpp=%d", l->pp, l->vpp);
        return false;
    case SCHEDULE_ZBV:
    case SCHEDULE_DUALPIPE:
    case SCHEDULE_DUALPIPEV:
        if (l->pp > 1 && l->vpp == 2 && (l->pp % 2 == 0 || l->schedule != SCHEDULE_DUALPIPE))
            return true;
        SAY(why, "schedule=%s needs %s pp of at least 2 and vpp=2, not pp=%d and vpp=%d", schedule_name(l->schedule),
            l->schedule == SCHEDULE_DUALPIPE ? "an even" : "a", l->pp, l->vpp);
        return false;
    default:
        if (l->pp > 1 && l->vpp == 1)
            return true;
        SAY(why, "schedule=%s needs pp of at least 2 and vpp=1, not pp=%d and vpp=%d", schedule_name(l->schedule), l->pp, l->vpp);
        return false;
    }
}

/* Both ends, or both arms of the V, are filled before the steady phase. */
static bool check_both_ways(const struct layout *l, int64_t m, struct reply why)
{
    bool halves = l->schedule == SCHEDULE_DUALPIPE && m % 2;
    if (m >= 2 * (int64_t)l->pp && !halves)
        return true;
    SAY(why, "schedule=%s needs %s of at least 2 * pp=%d micro-batches, not %lld", schedule_name(l->schedule),
        l->schedule == SCHEDULE_DUALPIPE ? "an even number" : "a number", 2 * l->pp, (long long)m);
    return false;
}

static bool check_interleave(const struct layout *l, const struct setting *s, struct reply why)
{
    if (l->schedule == SCHEDULE_DUALPIPE || l->schedule == SCHEDULE_DUALPIPEV)
        return check_both_ways(l, layout_micro_batches(l, s->job), why);
    return true;
}

static bool check_experts(const struct layout *l, const struct setting *s, struct reply why)
{
    if (l->etp > 1 && l->etp != l->tp) {
        SAY(why, "etp=%d: an expert is whole (etp=1) or split like the rest of its layer (tp=%d)", l->etp, l->tp);
        return false;
    }
    if (l->ep == 1)
        return true;
    int experts = s->model->moe.experts;
    if (!experts) {
        SAY(why, "ep=%d, but the model has no experts", l->ep);
        return false;
    }
    if (experts % l->ep) {
        SAY(why, "ep=%d does not divide the %d experts", l->ep, experts);
        return false;
    }
    if ((int64_t)l->tp * l->cp * l->dp % ((int64_t)l->ep * layout_expert_tp(l))) {
        SAY(why, "ep=%d ranks of %d for each expert do not divide the tp * cp * dp = %d of a stage", l->ep, layout_expert_tp(l),
            l->tp * l->cp * l->dp);
        return false;
    }
    return true;
}

/* Sharded weights would be gathered again for every micro-batch and stage; no framework pairs ZeRO-3 with a pipeline so. */
static bool check_zero(const struct layout *l, struct reply why)
{
    if (l->zero < 3 || l->pp == 1)
        return true;
    SAY(why, "zero=3 gathers the weights of every layer for every micro-batch and does not work with a pipeline (pp=%d)", l->pp);
    return false;
}

/* All experts are among the ranks that hold a stage between them, or an expert's copies could not be divided alike. */
static bool check_shard(const struct layout *l, struct reply why)
{
    int replicas = l->dp * l->cp, experts = l->ep * layout_expert_tp(l);
    if (!l->shard)
        return true;
    if (l->zero == 0)
        SAY(why, "shard=%d, but zero=0 shards nothing", l->shard);
    else if (l->shard == 1 || l->shard >= replicas || replicas % l->shard)
        SAY(why, "shard=%d does not divide the dp * cp = %d replicas into several groups of 2 or more", l->shard, replicas);
    else if ((int64_t)l->tp * l->shard % experts)
        SAY(why, "the ep * etp = %d ranks of the experts do not divide the tp * shard = %d that hold a stage between them",
            experts, l->tp * l->shard);
    else
        return true;
    return false;
}

/* An owner has whole parameters, and of each the whole gradient. */
static bool check_owners(const struct layout *l, const struct setting *s, struct reply why)
{
    char shard[32] = "";
    if (s->job->optimizer != OPTIMIZER_MUON || s->job->muon_shard != MUON_LAYER_WISE || (l->zero < 2 && !l->shard))
        return true;
    if (l->shard)
        snprintf(shard, sizeof shard, ", shard=%d", l->shard);
    SAY(why,
        "zero=%d%s divides elements, and job.muon_shard=layer_wise gives whole parameters to owners among all replicas; set "
        "zero=1%s, or muon_shard to elements",
        l->zero, shard, l->shard ? " without shard" : "");
    return false;
}

/* Groups are Megatron-LM's, whose layers are there together; and it has none that go through prediction modules. */
static bool check_recomputed_groups(const struct layout *l, const struct setting *s, struct reply why)
{
    int n = l->recompute.layers;
    if (l->zero == 3)
        SAY(why, "recompute=full:groups%d repeats %d layers together, and zero=3 has the weights of one at a time; write full", n,
            n);
    else if (layout_recomputes_by_need(l))
        SAY(why, "recompute=full:groups%d is Megatron-LM's; compile without fused_ops repeats layers one by one; write full", n);
    else if (s->model->mtp_layers)
        SAY(why, "recompute=full:groups%d does not work with the %d prediction modules of %s; write full", n,
            s->model->mtp_layers, s->model->name);
    else
        return true;
    return false;
}

static bool check_recomputed_layers(const struct layout *l, const struct setting *s, struct reply why)
{
    char text[RECOMPUTE_TEXT];
    int most = layout_most_layers(l, s->model);
    recompute_format(l->recompute, text, sizeof text);
    if (transformer_is_hybrid(s->model))
        SAY(why, "recompute=%s counts layers that are alike; those of %s have kinds by a pattern; write full", text,
            s->model->name);
    else if (l->recompute.layers > most)
        SAY(why, "recompute=%s: the virtual stages have %d layers or fewer; write %s", text, most,
            l->recompute.of == RECOMPUTE_EVERY ? "none" : "full");
    else if (layout_offloads(l, OFFLOAD_ACTIVATIONS))
        SAY(why, "recompute=%s: layers that are repeated and layers that are not do not keep the same; offload no activations",
            text);
    else
        return !layout_recomputes_groups(l) || check_recomputed_groups(l, s, why);
    return false;
}

static bool check_recompute(const struct layout *l, const struct setting *s, struct reply why)
{
    if (job_adapts(s->job) && l->recompute.what == RECOMPUTE_SELECTIVE && layout_recomputes_by_need(l)) {
        SAY(why,
            "recompute=selective keeps every second product, and which those are beside adapters is not modelled; write full "
            "or none");
        return false;
    }
    if (l->recompute.of != RECOMPUTE_ALL)
        return check_recomputed_layers(l, s, why);
    if ((int)l->recompute.what < N_RECOMPUTES)
        return true;
    struct recompute has = {.what = layout_modules_of(s->model)};
    struct recompute missing = {.what = (enum recompute_what)((int)l->recompute.what & ~(int)has.what)};
    char names[2][RECOMPUTE_TEXT];
    if (missing.what)
        SAY(why, "%s has no %s to recompute; it has %s", s->model->name, recompute_format(missing, names[0], sizeof names[0]),
            recompute_format(has, names[1], sizeof names[1]));
    return !missing.what;
}

/* Weights are fetched where they are gathered, and come from where they are updated. */
static bool check_offloaded_parameters(const struct layout *l, struct reply why)
{
    char text[OFFLOAD_TEXT];
    if (!layout_offloads(l, OFFLOAD_PARAMETERS))
        return true;
    if (l->zero < 3 || l->dp * l->cp == 1) {
        SAY(why, "offload=%s fetches parameters for each gather of ZeRO-3 (zero=3, dp * cp above 1); here zero=%d and dp * cp=%d",
            offload_format(&l->offload, text, sizeof text), l->zero, l->dp * l->cp);
        return false;
    }
    if (offload_share(&l->offload, OFFLOAD_PARAMETERS) <= offload_share(&l->offload, OFFLOAD_OPTIMIZER))
        return true;
    SAY(why, "offload=%s: parameters are in the host's memory where they are updated there; add optimizer",
        offload_format(&l->offload, text, sizeof text));
    return false;
}

/* What a layer keeps has come back for its backward pass and goes when that is over: so a backward pass in two parts would need
 * it twice, and passes side by side are not cut into layers. */
static bool check_offload(const struct layout *l, const struct setting *s, struct reply why)
{
    char text[OFFLOAD_TEXT];
    if (offload_is_none(&l->offload))
        return true;
    if (job_adapts(s->job)) {
        SAY(why, "offload=%s is not modelled where adapters are trained; set it to none",
            offload_format(&l->offload, text, sizeof text));
        return false;
    }
    if (s->job->optimizer == OPTIMIZER_MUON && layout_offloads(l, OFFLOAD_OPTIMIZER)) {
        SAY(why,
            "offload=%s: Muon makes matrices orthogonal by products, which the host's cores are too slow for; set it to none "
            "or activations",
            offload_format(&l->offload, text, sizeof text));
        return false;
    }
    if (!check_offloaded_parameters(l, why))
        return false;
    bool splits = l->schedule >= SCHEDULE_ZB1P;
    bool pairs = l->schedule == SCHEDULE_INTERLEAVED && (l->features & FEATURE_BIT(EP_OVERLAP));
    if (!layout_offloads(l, OFFLOAD_ACTIVATIONS) || (!splits && !pairs))
        return true;
    SAY(why, "offload=%s does not work with %s, whose backward passes are %s", offload_format(&l->offload, text, sizeof text),
        splits ? schedule_name(l->schedule) : "ep_overlap", splits ? "divided or paired" : "paired");
    return false;
}

/* A's rows are divided beside matrices that are divided by their outputs. */
static bool check_adapter(const struct layout *l, const struct setting *s, struct reply why)
{
    int64_t rank = s->job->adapter.rank;
    if (rank % l->tp == 0)
        return true;
    SAY(why, "tp=%d does not divide the rank of the adapters, %lld", l->tp, (long long)rank);
    return false;
}

static bool check_features(const struct layout *l, const struct setting *s, struct reply why)
{
    feature_set foreign = l->features & ~s->job->features;
    if (foreign) {
        SAY(why, "the layout uses a feature that the job does not allow (%s)",
            feature_name((enum feature)__builtin_ctz(foreign)));
        return false;
    }
    int newest = gpu_flash_attention(&s->cluster->gpu);
    if ((l->features & FEATURE_BIT(FLASH_ATTENTION3)) && newest < 3) {
        SAY(why, "flash_attention3 needs the asynchronous tensor cores that the %s does not have", s->cluster->gpu.name);
        return false;
    }
    if ((l->features & FEATURE_BIT(FLASH_ATTENTION2)) && newest < 2) {
        SAY(why, "flash_attention2 has no kernels for the %s; flash_attention stands for those it has", s->cluster->gpu.name);
        return false;
    }
    return true;
}

static bool check_precision(const struct setting *s, struct reply why)
{
    if (s->cluster->gpu.peak_flops[s->job->precision] > 0)
        return true;
    SAY(why, "the %s does not have %s", s->cluster->gpu.name, precision_name(s->job->precision));
    return false;
}

/* In the order of the reasons. */
static enum layout_reason check_division(const struct layout *layout, const struct setting *setting, struct reply reply)
{
    if (!check_range(layout, reply))
        return LAYOUT_RANGE;
    if (!check_world(layout, setting, reply))
        return LAYOUT_WORLD;
    if (!check_heads(layout, setting, reply))
        return LAYOUT_HEADS;
    if (!check_kv_heads(layout, setting, reply))
        return LAYOUT_KV_HEADS;
    if (!check_mixer(layout, setting, reply))
        return LAYOUT_MIXER;
    if (!check_hidden(layout, setting, reply))
        return LAYOUT_HIDDEN;
    if (!check_vocab(layout, setting, reply))
        return LAYOUT_VOCAB;
    if (!check_cp_comm(layout, setting, reply))
        return LAYOUT_CP_COMM;
    if (!check_sequence(layout, setting, reply))
        return LAYOUT_SEQUENCE;
    if (!check_layers(layout, setting, reply))
        return LAYOUT_LAYERS;
    if (!check_batch(layout, setting, reply))
        return LAYOUT_BATCH;
    if (!check_schedule(layout, reply))
        return LAYOUT_SCHEDULE;
    if (!check_interleave(layout, setting, reply))
        return LAYOUT_INTERLEAVE;
    if (!check_experts(layout, setting, reply))
        return LAYOUT_EXPERTS;
    return LAYOUT_LEGAL;
}

static enum layout_reason check_states(const struct layout *layout, const struct setting *setting, struct reply reply)
{
    if (!check_zero(layout, reply))
        return LAYOUT_ZERO;
    if (!check_shard(layout, reply))
        return LAYOUT_SHARD;
    if (!check_owners(layout, setting, reply))
        return LAYOUT_OWNERS;
    if (!check_recompute(layout, setting, reply))
        return LAYOUT_RECOMPUTE;
    if (!check_offload(layout, setting, reply))
        return LAYOUT_OFFLOAD;
    if (!check_adapter(layout, setting, reply))
        return LAYOUT_ADAPTER;
    if (!check_features(layout, setting, reply))
        return LAYOUT_FEATURE;
    if (!check_precision(setting, reply))
        return LAYOUT_PRECISION;
    SAY(reply, "legal");
    return LAYOUT_LEGAL;
}

enum layout_reason layout_check_division(const struct layout *layout, const struct setting *setting)
{
    return check_division(layout, setting, (struct reply){NULL, 0});
}

enum layout_reason layout_check_states(const struct layout *layout, const struct setting *setting)
{
    return check_states(layout, setting, (struct reply){NULL, 0});
}

enum layout_reason layout_check(const struct layout *layout, const struct setting *setting, char *why, size_t size)
{
    const struct reply reply = {size ? why : NULL, size};
    enum layout_reason reason = check_division(layout, setting, reply);
    return reason == LAYOUT_LEGAL ? check_states(layout, setting, reply) : reason;
}
