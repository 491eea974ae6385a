/* megatron_export_layout.c - the arguments of a layout: pipeline, context parallelism, ZeRO, recomputation, offloading, nodes. */
#include "traces/launch/megatron/megatron_export_internal.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"

/* --- the pipeline --- */

/* Each virtual stage's layers as one text: "Et*3|t*2|...|mL". */
static void write_stage_layout(struct export_writer *w)
{
    const struct launch_job *job = w->job;
    int stages = layout_virtual_stages(&job->layout);
    size_t size = 16 * (size_t)stages + 64;
    char *text = memory_new(size, 1);
    for (int v = 0; v < stages; v++) {
        int n = layout_layers(&job->layout, &job->model, v).count;
        text_append(text, size, "%s%s", v ? "|" : "", v ? "" : "E");
        if (n)
            text_append(text, size, n > 1 ? "t*%d" : "t", n);
    }
    for (int i = 0; i < job->model.mtp_layers; i++)
        text_append(text, size, "m");
    text_append(text, size, "L");
    export_set(w, ARGUMENT_STAGE_LAYOUT, "%s", text);
    free(text);
}

/* Do virtual stages have `each` layers, the first and the last one fewer by these numbers? */
static bool divides_so(const struct launch_job *job, int each, int less)
{
    int stages = layout_virtual_stages(&job->layout);
    for (int v = 0; v < stages; v++)
        if (layout_layers(&job->layout, &job->model, v).count != each - (v == 0 || v == stages - 1 ? less : 0))
            return false;
    return true;
}

static void write_stages(struct export_writer *w)
{
    const struct launch_job *job = w->job;
    const struct layout *l = &job->layout;
    int stages = layout_virtual_stages(l);
    if (l->pp == 1)
        return;
    int ends =
        !job->model.mtp_layers && (job->model.layers + 2) % stages == 0 && divides_so(job, (job->model.layers + 2) / stages, 1);
    bool even = !job->model.mtp_layers && job->model.layers % stages == 0 && divides_so(job, job->model.layers / stages, 0);
    if (!even && !ends) {
        write_stage_layout(w);
        return;
    }
    if (!even) {
        export_flag(w, ARGUMENT_EMBEDDING_COUNTS);
        export_flag(w, ARGUMENT_LOSS_COUNTS);
    }
    if (l->vpp > 1)
        export_set(w, ARGUMENT_CHUNK_LAYERS, "%d", (job->model.layers + (even ? 0 : 2)) / stages);
}

static void write_schedule(struct export_writer *w)
{
    const struct layout *l = &w->job->layout;
    switch (l->schedule) {
    case SCHEDULE_NONE:
    case SCHEDULE_1F1B:
    case SCHEDULE_INTERLEAVED: return;
    case SCHEDULE_ZBV: export_flag(w, ARGUMENT_ZERO_BUBBLE_V); /* fall through */
    case SCHEDULE_ZB1P:
    case SCHEDULE_ZB2P:
        export_flag(w, ARGUMENT_ZERO_BUBBLE);
        if (l->schedule == SCHEDULE_ZB2P)
            export_set(w, ARGUMENT_ZERO_BUBBLE_PENDING, "%d", 2 * l->pp);
        export_lose(w, "schedule %s: only the zero-bubble fork of Megatron-LM has it", schedule_name(l->schedule));
        return;
    default: export_lose(w, "schedule %s: Megatron-LM has no such schedule", schedule_name(l->schedule));
    }
}

/* --- the rest of the layout --- */

/* Of Muon's states Megatron-Core has one division, by whole parameters. */
static void write_muon_zero(struct export_writer *w)
{
    const struct layout *l = &w->job->layout;
    export_set(w, ARGUMENT_OPTIMIZER, "dist_muon");
    if (w->job->job.muon_shard != MUON_LAYER_WISE)
        export_lose(w, "muon_shard elements: one rank has the states of a whole parameter, and gradients are all-reduced");
    if (l->zero >= 2 || l->shard)
        export_lose(w, "zero %d%s: Muon's states alone are divided, among all replicas", l->zero, l->shard ? " with shard" : "");
}

static void write_zero(struct export_writer *w)
{
    int zero = w->job->layout.zero;
    if (zero >= 1 && w->job->job.optimizer == OPTIMIZER_MUON) {
        write_muon_zero(w);
        return;
    }
    if (zero >= 1)
        export_flag(w, ARGUMENT_DISTRIBUTED_OPTIMIZER);
    if (w->job->layout.shard)
        export_set(w, ARGUMENT_OPTIMIZER_INSTANCES, "%d", w->job->layout.dp * w->job->layout.cp / w->job->layout.shard);
    if (zero >= 2) {
        export_flag(w, ARGUMENT_MEGATRON_FSDP);
        export_set(w, ARGUMENT_SHARDING, "%s", megatron_shardings[zero]);
    }
}

/* Megatron-LM counts recomputed layers per chunk, too; it cannot recompute every N-th layer. */
static void write_recomputed_layers(struct export_writer *w)
{
    struct recompute r = w->job->layout.recompute;
    if (r.of == RECOMPUTE_EVERY)
        export_lose(w, "one layer in %d is recomputed: Megatron-LM recomputes the first ones of each chunk, or all", r.layers);
    export_set(w, ARGUMENT_RECOMPUTE_METHOD, r.of == RECOMPUTE_FIRST ? "block" : "uniform");
    export_set(w, ARGUMENT_RECOMPUTE_LAYERS, "%d", r.of == RECOMPUTE_FIRST || r.of == RECOMPUTE_GROUPS ? r.layers : 1);
}

static void write_recompute(struct export_writer *w)
{
    enum recompute_what recompute = w->job->layout.recompute.what;
    char modules[RECOMPUTE_TEXT];
    if (recompute == RECOMPUTE_NONE)
        return;
    export_set(w, ARGUMENT_RECOMPUTE, recompute == RECOMPUTE_FULL ? "full" : "selective");
    if (recompute == RECOMPUTE_FULL) {
        write_recomputed_layers(w);
    } else if (recompute != RECOMPUTE_SELECTIVE) {
        if (recompute & RECOMPUTE_MLP_ACT)
            export_lose(w, "recompute mlp_act: Megatron-LM has no such module");
        recompute_format((struct recompute){.what = (enum recompute_what)((int)recompute & ~RECOMPUTE_MLP_ACT)}, modules,
                         sizeof modules);
        for (char *p = modules; *p; p++)
            *p = *p == '+' ? ' ' : *p;
        if ((int)recompute & ~RECOMPUTE_MLP_ACT)
            export_set(w, ARGUMENT_RECOMPUTE_MODULES, "%s", modules);
        else
            export_leave_out(w, ARGUMENT_RECOMPUTE);
    }
}

/* Those who exchange heads stand together; the others' keys and values go around. */
static void write_context(struct export_writer *w)
{
    const struct layout *l = &w->job->layout;
    char text[CP_COMM_TEXT];
    int parts = layout_cp_heads(l);
    if (l->cp == 1 || l->cp_comm == CP_RING)
        return;
    if (parts == 1 || parts == l->cp) {
        export_set(w, ARGUMENT_CP_COMM, "%s", cp_comm_format(l->cp_comm, text, sizeof text));
        return;
    }
    export_set(w, ARGUMENT_CP_COMM, "a2a+p2p");
    export_set(w, ARGUMENT_CP_LEVELS, "%d %d", parts, layout_cp_keys(l));
    if (cp_comm_gathers(l->cp_comm))
        export_lose(w, "cp_comm %s: with an exchange of heads Megatron-LM has a ring",
                    cp_comm_format(l->cp_comm, text, sizeof text));
}

void export_layout(struct export_writer *w)
{
    const struct launch_job *job = w->job;
    const struct layout *l = &job->layout;
    write_context(w);
    write_schedule(w);
    write_stages(w);
    write_zero(w);
    write_recompute(w);
    if (job->model.moe.experts && layout_expert_tp(l) != l->tp)
        export_set(w, ARGUMENT_ETP, "%d", layout_expert_tp(l));
    if (layout_offloads(l, OFFLOAD_OPTIMIZER)) {
        export_flag(w, ARGUMENT_OFFLOAD_OPTIMIZER);
        export_flag(w, ARGUMENT_PRECISE_OPTIMIZER);
        if (offload_share(&l->offload, OFFLOAD_OPTIMIZER) < 1)
            export_set(w, ARGUMENT_OFFLOAD_FRACTION, "%.2f", offload_share(&l->offload, OFFLOAD_OPTIMIZER));
    }
    if (layout_offloads(l, OFFLOAD_ACTIVATIONS)) { /* of a stage; of all, the last one's stay */
        bool all = l->offload.of[OFFLOAD_ACTIVATIONS].percent == OFFLOAD_WHOLE;
        int but_last = job->model.layers > 1 ? job->model.layers - 1 : 1;
        int layers = offload_layers(&l->offload, (job->model.layers + l->pp - 1) / l->pp);
        export_set(w, ARGUMENT_OFFLOAD_LAYERS, "%d", all ? but_last : layers);
    }
    if (layout_offloads(l, OFFLOAD_PARAMETERS))
        export_lose(w, "offload parameters: Megatron-LM keeps weights on the GPU");
    if (job->model.moe.experts && l->tp > 1 && !l->sequence_parallel)
        export_lose(w, "no sequence_parallel: its mixtures of experts require it with tensor parallelism");
    if (job->gpus) {
        int per_node = job->gpus_per_node && job->gpus_per_node < job->gpus ? job->gpus_per_node : job->gpus;
        export_set(w, ARGUMENT_NODE_GPUS, "%d", per_node);
        export_set(w, ARGUMENT_NODES, "%d", job->gpus / per_node);
    }
}
