/* megatron_torch.c - translates arguments that only PyTorch stacks have: models by name, replication and sharding, schedules. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/spec/catalog.h"
#include "traces/launch/megatron/megatron_translate_internal.h"

/* --- a model by its name --- */

bool translate_names_model(struct translation *m)
{
    return translate_has(m, ARGUMENT_MODEL);
}

void translate_named_model(struct translation *m)
{
    const struct megatron_value *value = &m->arguments->of[ARGUMENT_MODEL];
    struct diags why = {0};
    if (catalog_model(value->text, &m->description->job.model, &why) != STATUS_OK)
        diag_error(m->diags, value->at, "%s: %s", value->spelling, why.n_items ? why.items[0].text : "no model of the catalog");
    diags_free(&why);
    translate_from(m, "model", ARGUMENT_MODEL);
}

/* --- schedules --- */

/* As PyTorch's classes are called (ScheduleInterleaved1F1B), without the first word, or in small letters with underscores. */
static bool is_schedule(const char *name, const char *known)
{
    static const char first[] = "Schedule";
    name += strncasecmp(name, first, sizeof first - 1) == 0 ? sizeof first - 1 : 0;
    for (;; name++, known++) {
        name += strspn(name, "_-");
        if (tolower((unsigned char)*name) != tolower((unsigned char)*known))
            return false;
        if (!*name)
            return true;
    }
}

/* Are as many chunks as stages are named on each rank what a schedule can have? One has one, others two, the interleaved one more
 * if need be. */
static bool chunks_fit(struct translation *m, int usual)
{
    const struct layout *l = &m->description->job.layout;
    if (l->vpp == usual || (l->schedule == SCHEDULE_INTERLEAVED && l->vpp > 1))
        return true;
    translate_not_modelled(m, ARGUMENT_STAGE_LAYOUT, "%d stage%s per rank of a schedule that has %d; msim assumes even ones",
                           l->vpp, l->vpp == 1 ? "" : "s", usual);
    return false;
}

static const struct torch_schedule {
    const char *name;
    enum schedule schedule;
    int chunks; /* per rank, by default */
    bool other; /* msim takes the one beside it for it */
} torch_schedules[] = {
    {"1F1B", SCHEDULE_1F1B, 1, false},
    {"GPipe", SCHEDULE_GPIPE, 1, false},
    {"Interleaved1F1B", SCHEDULE_INTERLEAVED, 2, false},
    {"ZBVZeroBubble", SCHEDULE_ZBV, 2, false},
    {"DualPipeV", SCHEDULE_DUALPIPEV, 2, false},
    {"LoopedBFS", SCHEDULE_INTERLEAVED, 2, true},
    {"FlexibleInterleaved1F1B", SCHEDULE_INTERLEAVED, 2, true},
    {"InterleavedZeroBubble", SCHEDULE_INTERLEAVED, 2, true},
};

static const struct torch_schedule *torch_schedule_of(const char *name)
{
    for (size_t i = 0; i < sizeof torch_schedules / sizeof torch_schedules[0]; i++)
        if (is_schedule(name, torch_schedules[i].name))
            return &torch_schedules[i];
    return NULL;
}

/* Chunks on each rank. The interleaved schedule has the number that the arguments specify, or that follows from the layers per
 * stage, where each end of the model counts as a layer. Other schedules have a fixed number. */
static void set_chunks(struct translation *m, const struct torch_schedule *known)
{
    struct layout *l = &m->description->job.layout;
    bool interleaved = known->schedule == SCHEDULE_INTERLEAVED;
    l->vpp = known->chunks;
    if (interleaved && translate_int(m, ARGUMENT_PP_CHUNKS, 1, 1) > 1) {
        l->vpp = (int)translate_int(m, ARGUMENT_PP_CHUNKS, 1, 1);
        translate_from(m, "layout.vpp", ARGUMENT_PP_CHUNKS);
        return;
    }
    int64_t each = translate_int(m, ARGUMENT_STAGE_LAYERS, 1, 0), layers = m->description->job.model.layers + 2;
    if (interleaved && each) {
        int64_t stages = (layers + each - 1) / each;
        l->vpp = stages % l->pp == 0 && stages > l->pp ? (int)(stages / l->pp) : l->vpp;
        translate_from(m, "layout.vpp", ARGUMENT_STAGE_LAYERS);
    } else if (l->vpp > 1) {
        launch_originate(m->description, "layout.vpp", "two chunks on each rank, as PyTorch's schedules have them");
    }
}

bool translate_torch_schedule(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    const char *name = translate_text(m, ARGUMENT_PP_SCHEDULE);
    if (!name || l->pp == 1)
        return false;
    const struct torch_schedule *known = torch_schedule_of(name);
    if (!known) {
        translate_not_modelled(m, ARGUMENT_PP_SCHEDULE, "msim does not know %.40s", name);
        return false;
    }
    l->schedule = known->schedule;
    if (!translate_has(m, ARGUMENT_STAGE_LAYOUT) || !chunks_fit(m, known->chunks)) {
        if (known->other)
            translate_not_modelled(m, ARGUMENT_PP_SCHEDULE, "%s; msim assumes interleaved 1F1B", name);
        set_chunks(m, known);
    }
    translate_from(m, "layout.schedule", ARGUMENT_PP_SCHEDULE);
    return true;
}

/* --- replicas and shards --- */

/* How many ranks share the weights of a replica; 0: all that are left, -1: nothing is said. */
static int64_t shard_degree(struct translation *m)
{
    const char *text = translate_text(m, ARGUMENT_SHARD_DEGREE);
    if (!text)
        return -1;
    char *end;
    long degree = strtol(text, &end, 10);
    if (end != text && !*end && (degree == -1 || (degree >= 1 && degree <= 1 << 20)))
        return degree == -1 ? 0 : degree;
    diag_error(m->diags, m->arguments->of[ARGUMENT_SHARD_DEGREE].at, "%s: '%.20s' is neither -1 nor a number of ranks",
               m->arguments->of[ARGUMENT_SHARD_DEGREE].spelling, text);
    return -1;
}

/* The number of replicas of such shards; 0: by the remaining ranks. */
static int64_t replicate_degree(struct translation *m)
{
    return translate_is(m, ARGUMENT_REPLICATE_DEGREE, "-1") ? 0 : translate_int(m, ARGUMENT_REPLICATE_DEGREE, 1, 1);
}

int64_t translate_torch_replicas(struct translation *m)
{
    int64_t shards = shard_degree(m);
    return shards > 0 ? shards * replicate_degree(m) : 0;
}

bool translate_torch_zero(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    int64_t shards = shard_degree(m);
    if (shards < 0)
        return false;
    bool always = translate_is(m, ARGUMENT_RESHARD, "always"), never = translate_is(m, ARGUMENT_RESHARD, "never");
    l->zero = shards == 1 && l->cp == 1 ? 0 : never || l->pp > 1 ? 2 : 3;
    if (always && l->pp > 1)
        translate_not_modelled(m, ARGUMENT_RESHARD, "always, with a pipeline; msim assumes once per step");
    translate_from(m, "layout.zero", ARGUMENT_SHARD_DEGREE);
    return true;
}

void translate_torch_shards(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    int64_t replicas = replicate_degree(m), shards = shard_degree(m);
    int64_t spelling = translate_torch_replicas(m);
    if (shards < 0 || l->dp == 0)
        return;
    if (replicas == 0)
        replicas = shards == 0 ? 1 : shards < l->dp ? l->dp / shards : 1;
    if ((spelling && spelling != l->dp) || l->dp % replicas != 0) {
        diag_error(m->diags, m->arguments->of[ARGUMENT_SHARD_DEGREE].at,
                   "%s: %lld replications of shards of %s do not make the %d replicas of the GPUs",
                   m->arguments->of[ARGUMENT_SHARD_DEGREE].spelling, (long long)replicas,
                   m->arguments->of[ARGUMENT_SHARD_DEGREE].text, l->dp);
        return;
    }
    if (replicas == 1 || l->zero == 0)
        return;
    l->shard = (int)(l->dp / replicas * l->cp);
    translate_from(m, "layout.shard", ARGUMENT_REPLICATE_DEGREE);
}

/* Among this number of neighbours, or among those of a node, if there are more replicas. */
void translate_shards_within(struct translation *m)
{
    enum { NODE = 8, SHARDS_MAX = 1 << 20 };
    struct layout *l = &m->description->job.layout;
    const char *text = translate_text(m, ARGUMENT_SHARDS_WITHIN);
    int node = m->description->job.gpus_per_node, ranks = l->dp * l->cp, inner = l->tp * l->pp;
    char *end;
    if (!text || strcmp(text, "-1") == 0 || l->zero == 0 || l->dp == 0)
        return;
    bool of_node = strcmp(text, "node") == 0;
    long n = of_node ? (node ? node : NODE) / l->tp : strtol(text, &end, 10);
    if (!of_node && (end == text || *end || n < 1 || n > SHARDS_MAX)) {
        diag_error(m->diags, m->arguments->of[ARGUMENT_SHARDS_WITHIN].at, "%s: '%.20s' is neither -1 nor a number of ranks",
                   m->arguments->of[ARGUMENT_SHARDS_WITHIN].spelling, text);
        return;
    }
    if (of_node && !node && (int64_t)ranks * inner > NODE)
        translate_not_modelled(m, ARGUMENT_SHARDS_WITHIN,
                               "weights are sharded within a node, whose number of GPUs is not specified; msim assumes %d", NODE);
    if (n >= ranks)
        return;
    if (n < 1 || ranks % n != 0) {
        translate_not_modelled(m, ARGUMENT_SHARDS_WITHIN,
                               "weights are sharded among %ld ranks, which do not divide %d; msim assumes all", n, ranks);
        return;
    }
    l->shard = (int)n;
    translate_from(m, "layout.shard", ARGUMENT_SHARDS_WITHIN);
}

/* --- batches --- */

/* A replica's sequences are one micro-batch, unless a pipeline divides them. */
static void divide_local_batch(struct translation *m, int64_t local)
{
    struct layout *l = &m->description->job.layout;
    int64_t pieces = translate_int(m, ARGUMENT_PP_MICRO_BATCHES, 1, 0);
    enum argument by = l->pp == 1 ? ARGUMENT_LOCAL_BATCH : pieces ? ARGUMENT_PP_MICRO_BATCHES : ARGUMENT_MICRO_BATCH;
    if (by == ARGUMENT_MICRO_BATCH && translate_has(m, by))
        return;
    int64_t each = by == ARGUMENT_LOCAL_BATCH ? local : pieces && pieces <= local ? local / pieces : 1;
    l->micro_batch = each <= 1 << 20 ? (int)each : 1 << 20;
    if (by == ARGUMENT_MICRO_BATCH)
        launch_originate(m->description, "layout.micro_batch", "one sequence, the default micro-batch of a pipeline");
    else
        translate_from(m, "layout.micro_batch", by);
}

/* DeepSpeed's configuration can have the batch and all of its factors. */
static void compare_batches(struct translation *m, int64_t times)
{
    const struct layout *l = &m->description->job.layout;
    int64_t batch = m->description->job.job.global_batch, made;
    if (!times || !l->micro_batch || !l->dp || !batch || __builtin_mul_overflow(times * l->micro_batch, (int64_t)l->dp, &made))
        return;
    const struct megatron_value *steps = &m->arguments->of[ARGUMENT_ACCUMULATION];
    if (made != batch)
        diag_warning(m->diags, steps->at,
                     "%s: %lld micro-batches of %d on each of %d replicas are %lld sequences; %s, %lld, is taken",
                     steps->spelling, (long long)times, l->micro_batch, l->dp, (long long)made,
                     m->arguments->of[ARGUMENT_GLOBAL_BATCH].spelling, (long long)batch);
}

void translate_torch_batches(struct translation *m)
{
    const struct layout *l = &m->description->job.layout;
    struct job *job = &m->description->job.job;
    int64_t local = translate_int(m, ARGUMENT_LOCAL_BATCH, 1, 0), times = translate_int(m, ARGUMENT_ACCUMULATION, 1, 0), batch;
    if (local)
        divide_local_batch(m, local);
    else
        compare_batches(m, times);
    if (job->global_batch || !l->dp || !(local || (times && l->micro_batch)))
        return;
    int64_t each = local && times ? local * times : local ? local : times * l->micro_batch;
    if (__builtin_mul_overflow(each, (int64_t)l->dp, &batch))
        return;
    job->global_batch = batch;
    launch_originate(m->description, "job.global_batch", "%s x dp",
                     !local  ? "micro-batch x accumulation steps"
                     : times ? "a replica's batch x accumulation steps"
                             : "a replica's batch");
}

/* After DeepSpeed's _do_optimizer_sanity_check, from memory. Sums are in fp32, unless the configuration specifies their type; the
 * optimizer of bf16 weights and fp32 sums shards states. With sums in bf16 it does so only in DeepSpeed's pipeline, which
 * Megatron-DeepSpeed uses; elsewhere each rank has all states, in fp32. */
bool translate_deepspeed_alone(struct translation *m)
{
    const char *sums = m->arguments->of[ARGUMENT_GRADIENTS_BF16].spelling;
    bool staged = translate_has(m, ARGUMENT_ZERO_STAGE) && translate_int(m, ARGUMENT_ZERO_STAGE, 0, 0) > 0;
    bool trainer = !translate_true(m, ARGUMENT_DEEPSPEED) && translate_true(m, ARGUMENT_BY_DEEPSPEED);
    bool narrow = translate_true(m, ARGUMENT_GRADIENTS_BF16) && sums && strstr(sums, "grad_accum_dtype");
    return !staged && (trainer || translate_true(m, ARGUMENT_DEEPSPEED)) && translate_true(m, ARGUMENT_BF16) &&
           !(trainer && narrow);
}
