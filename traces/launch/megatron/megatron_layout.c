/* megatron_layout.c - translates arguments that divide the work: context and expert parallelism, ZeRO, batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/megatron/megatron_translate_internal.h"

/* Megatron's default is to split each expert over tp. msim's default (etp 0) is 1 with expert parallelism, tp without. */
static void read_expert_split(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    if (!m->description->job.model.moe.experts || l->tp == 1)
        return;
    int etp = (int)translate_int(m, ARGUMENT_ETP, 1, l->tp), by_default = l->ep == 1 ? l->tp : 1;
    if (etp == by_default)
        return;
    l->etp = etp;
    if (translate_has(m, ARGUMENT_ETP))
        translate_from(m, "layout.etp", ARGUMENT_ETP);
    else
        launch_originate(m->description, "layout.etp", "tp, the default of --expert-tensor-parallel-size");
}

#define LIST_SEPARATORS " ,'\"[]"

/* Two sizes, those who exchange heads first: "2 4", or as a log has them: [2, 4]. */
static enum cp_comm levels_of(struct translation *m)
{
    const char *text = translate_text(m, ARGUMENT_CP_LEVELS);
    long long sizes[2] = {0};
    int n = 0, cp = m->description->job.layout.cp;
    for (const char *p = text ? text : ""; *(p += strspn(p, LIST_SEPARATORS)); p += strcspn(p, LIST_SEPARATORS), n++)
        if (n < 2)
            sizes[n] = strtoll(p, NULL, 10);
    if (n == 2 && sizes[0] > 0 && sizes[0] <= cp && sizes[1] > 0 && sizes[1] <= cp && sizes[0] * sizes[1] == cp)
        return cp_comm_of((int)sizes[0], false);
    if (translate_has(m, ARGUMENT_CP_LEVELS))
        translate_not_modelled(m, ARGUMENT_CP_LEVELS, "it needs two sizes whose product is cp; msim assumes a ring");
    else
        translate_not_modelled(m, ARGUMENT_CP_COMM,
                               "the number of ranks that exchange heads is not specified; msim assumes a ring");
    return CP_RING;
}

/* One word for all layers, or one for each. */
static enum cp_comm exchange_of(struct translation *m)
{
    const char *text = translate_text(m, ARGUMENT_CP_COMM);
    char first[CP_COMM_TEXT] = "";
    bool differ = false;
    for (const char *p = text ? text : ""; *(p += strspn(p, LIST_SEPARATORS));) {
        size_t n = strcspn(p, LIST_SEPARATORS);
        if (!*first)
            snprintf(first, sizeof first, "%.*s", (int)n, p);
        else
            differ |= strlen(first) != n || strncmp(first, p, n) != 0;
        p += n;
    }
    if (differ)
        translate_not_modelled(m, ARGUMENT_CP_COMM, "layers that exchange in different ways; msim assumes %s for all", first);
    int found = cp_comm_parse(first, NULL, 0);
    if (strcmp(first, "a2a+p2p") == 0)
        return levels_of(m);
    if (found < 0)
        translate_not_modelled(m, ARGUMENT_CP_COMM, "'%s' is none of p2p, all_gather, a2a, a2a+p2p; msim assumes a ring", first);
    return found < 0 ? CP_RING : (enum cp_comm)found;
}

/* DeepSpeed's sequence parallelism is context parallelism whose ranks exchange heads. */
static void read_context(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    int ulysses = (int)translate_int(m, ARGUMENT_ULYSSES, 1, 1);
    if (ulysses > 1 && l->cp == 1) {
        l->cp = ulysses;
        l->cp_comm = CP_A2A;
        translate_from(m, "layout.cp", ARGUMENT_ULYSSES);
        translate_from(m, "layout.cp_comm", ARGUMENT_ULYSSES);
        return;
    }
    if (ulysses > 1)
        translate_not_modelled(m, ARGUMENT_ULYSSES, "together with --context-parallel-size; msim takes the latter");
    if (l->cp == 1)
        return;
    l->cp_comm = cp_comm_settled(exchange_of(m), l->cp);
    translate_from(m, "layout.cp_comm", ARGUMENT_CP_COMM);
}

static void read_zero(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    enum argument by = ARGUMENT_DISTRIBUTED_OPTIMIZER;
    bool fsdp = translate_true(m, ARGUMENT_MEGATRON_FSDP) || translate_true(m, ARGUMENT_CUSTOM_FSDP);
    if (translate_torch_zero(m))
        return;
    if (translate_has(m, ARGUMENT_ZERO_STAGE) && translate_int(m, ARGUMENT_ZERO_STAGE, 0, 0) > 0) {
        by = ARGUMENT_ZERO_STAGE;
        l->zero = (int)translate_int(m, by, 0, 0);
    } else if (translate_true(m, ARGUMENT_FSDP2)) {
        by = ARGUMENT_FSDP2;
        l->zero = translate_usual(m, ARGUMENT_FSDP2_KEEPS) ? 3 : 2;
    } else if (fsdp) {
        by = ARGUMENT_SHARDING;
        for (int i = 0; megatron_shardings[i]; i++)
            l->zero = translate_is(m, by, megatron_shardings[i]) ? i : l->zero;
    } else if (translate_is(m, ARGUMENT_OPTIMIZER, "dist_muon")) {
        by = ARGUMENT_OPTIMIZER;
        l->zero = 1;
        m->description->job.job.muon_shard = MUON_LAYER_WISE;
        translate_from(m, "job.muon_shard", by);
    } else if (translate_deepspeed_alone(m)) {
        l->zero = 1;
        launch_originate(m->description, "layout.zero", "without a stage DeepSpeed's optimizer of bf16 weights shards states");
        return;
    } else {
        l->zero = translate_true(m, by);
    }
    translate_from(m, "layout.zero", by);
}

void translate_layout(struct translation *m)
{
    struct launch_job *job = &m->description->job;
    struct layout *l = &job->layout;
    int *const dimensions[] = {&l->tp, &l->pp, &l->cp, &l->ep};
    if (translate_has_mesh(m))
        translate_mesh(m);
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++)
        *dimensions[i] = *dimensions[i] < 1 ? 1 : *dimensions[i];
    read_context(m);
    translate_chunks(m);
    translate_schedule(m);
    read_expert_split(m);
    read_zero(m);
    if (l->tp == 1 && l->sequence_parallel) {
        l->sequence_parallel = false;
        launch_originate(m->description, "layout.sequence_parallel", "nothing to divide with tp 1");
    }
    translate_gpus(m);
    translate_torch_shards(m);
    translate_shards_within(m);
    if (translate_has_mesh(m))
        translate_mesh_shards(m);
    translate_torch_batches(m);
    translate_device_batch(m);
    if (!l->micro_batch)
        translate_missing(m, ARGUMENT_MICRO_BATCH, "the micro-batch (--micro-batch-size)");
    if (!job->job.global_batch && l->micro_batch && l->dp && !m->arguments->of[ARGUMENT_GLOBAL_BATCH].unknown) {
        job->job.global_batch = (int64_t)l->micro_batch * l->dp;
        launch_originate(m->description, "job.global_batch", "micro-batch x dp, the default of --global-batch-size");
    }
}
