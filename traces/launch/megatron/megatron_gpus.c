/* megatron_gpus.c - the number of GPUs of a job, and how they divide into replicas and shards. */
#include <stdio.h>
#include <string.h>

#include "traces/launch/megatron/megatron_translate_internal.h"

/* Is a number the launcher's default? Others are from a variable or a hostfile, which are named. */
static bool is_own(struct translation *m, enum argument argument)
{
    const char *spelling = m->arguments->of[argument].spelling, *by = translate_text(m, ARGUMENT_LAUNCHER);
    return spelling && by && strcmp(spelling, by) == 0;
}

/* What the program that starts the job's processes does of nodes and GPUs where nothing says them; 0: it says neither. */
static int64_t gpus_launched(struct translation *m, int64_t nodes, int64_t per_node)
{
    const char *by = translate_text(m, ARGUMENT_LAUNCHER), *spelling = m->arguments->of[ARGUMENT_LAUNCHED_NODES].spelling, *own;
    int64_t n = nodes ? nodes : translate_int(m, ARGUMENT_LAUNCHED_NODES, 1, 0);
    int64_t each = per_node ? per_node : translate_int(m, ARGUMENT_LAUNCHED_GPUS, 1, 0);
    bool own_nodes = !nodes && is_own(m, ARGUMENT_LAUNCHED_NODES), own_gpus = !per_node && is_own(m, ARGUMENT_LAUNCHED_GPUS);
    char text[96] = "";
    bool known = !m->arguments->of[ARGUMENT_NODES].unknown && !m->arguments->of[ARGUMENT_NODE_GPUS].unknown;
    const struct megatron_value *visible = &m->arguments->of[ARGUMENT_LAUNCHED_GPUS];
    if (by && known && !per_node && visible->unknown)
        diag_error(m->diags, visible->at, "%s: %s; set the number of GPUs with --gpus", visible->spelling, visible->unknown);
    if (!by || !known || n == 0 || each == 0)
        return 0;
    own = own_nodes && own_gpus ? "s" : own_nodes ? " of nodes" : " of processes";
    if (own_nodes || own_gpus)
        snprintf(text, sizeof text, ", %.30s's default number%s", by, own);
    else if (!nodes)
        snprintf(text, sizeof text, ", as %.40s says", spelling);
    launch_originate(m->description, "cluster.gpus", "%lld node%s of %lld%s", (long long)n, n == 1 ? "" : "s", (long long)each,
                     text);
    if (own_gpus)
        launch_originate(m->description, "cluster.gpus_per_node", "%s's default number of processes per node", by);
    else if (!per_node)
        translate_from(m, "cluster.gpus_per_node", ARGUMENT_LAUNCHED_GPUS);
    m->description->job.gpus_per_node = (int)each;
    return n * each;
}

/* Tasks of Slurm or MPI are GPUs, or programs that start processes on some each. */
static int64_t gpus_of_tasks(struct translation *m, int64_t per_node)
{
    int64_t tasks = translate_int(m, ARGUMENT_TASKS, 1, 0);
    bool launches = translate_has(m, ARGUMENT_LAUNCHER) && per_node;
    translate_from(m, "cluster.gpus", ARGUMENT_TASKS);
    if (launches)
        launch_originate(m->description, "cluster.gpus", "%lld task%s of %s with %lld each", (long long)tasks,
                         tasks == 1 ? "" : "s", translate_text(m, ARGUMENT_LAUNCHER), (long long)per_node);
    return launches ? tasks * per_node : tasks;
}

/* All GPUs that an argument names; a framework's has nodes of the same size. */
static int64_t gpus_of_all(struct translation *m, enum argument argument, int64_t nodes, int64_t per_node)
{
    int64_t all = translate_int(m, argument, 1, 0);
    translate_from(m, "cluster.gpus", argument);
    if (!per_node && nodes && all % nodes == 0 && m->arguments->foreign) { /* accelerate has both */
        m->description->job.gpus_per_node = (int)(all / nodes);
        translate_from(m, "cluster.gpus_per_node", ARGUMENT_NODES);
    }
    return all;
}

/* The allocation of Slurm, unless the command that starts the processes has a number of its own. */
static int64_t gpus_allocated(struct translation *m, int64_t nodes, int64_t per_node)
{
    size_t before = m->diags->n_errors;
    int64_t launched = gpus_launched(m, nodes, per_node);
    return launched || m->diags->n_errors > before ? launched : gpus_of_all(m, ARGUMENT_ALLOCATED, nodes, per_node);
}

static int64_t gpus_said(struct translation *m)
{
    struct launch_job *job = &m->description->job;
    int64_t per_node = translate_int(m, ARGUMENT_NODE_GPUS, 1, 0), nodes = translate_int(m, ARGUMENT_NODES, 1, 0);
    int64_t inner = (int64_t)job->layout.tp * job->layout.pp * job->layout.cp;
    job->gpus_per_node = (int)per_node;
    if (per_node)
        translate_from(m, "cluster.gpus_per_node", ARGUMENT_NODE_GPUS);
    if (m->known->gpus) {
        launch_originate(m->description, "cluster.gpus", "--gpus");
        return m->known->gpus;
    }
    if (translate_has(m, ARGUMENT_WORLD))
        return gpus_of_all(m, ARGUMENT_WORLD, nodes, per_node);
    if (per_node && translate_has(m, ARGUMENT_NODES)) {
        launch_originate(m->description, "cluster.gpus", "%lld node%s of %lld", (long long)nodes, nodes == 1 ? "" : "s",
                         (long long)per_node);
        return nodes * per_node;
    }
    if (translate_has(m, ARGUMENT_TASKS))
        return gpus_of_tasks(m, per_node);
    if (translate_has(m, ARGUMENT_ALLOCATED))
        return gpus_allocated(m, nodes, per_node);
    if (translate_torch_replicas(m)) {
        translate_from(m, "cluster.gpus", ARGUMENT_SHARD_DEGREE);
        return inner * translate_torch_replicas(m);
    }
    if (translate_has_mesh(m) && translate_mesh_replicas(m)) {
        launch_originate(m->description, "cluster.gpus", "the axes of the mesh");
        return inner * translate_mesh_replicas(m);
    }
    if (translate_has(m, ARGUMENT_DP_LOGGED)) {
        translate_from(m, "cluster.gpus", ARGUMENT_DP_LOGGED);
        return inner * translate_int(m, ARGUMENT_DP_LOGGED, 1, 0);
    }
    return gpus_launched(m, nodes, per_node);
}

static void read_gpus(struct translation *m)
{
    enum { GPUS_MAX = 16000000 };
    struct launch_job *job = &m->description->job;
    struct layout *l = &job->layout;
    size_t before = m->diags->n_errors;
    int64_t gpus = gpus_said(m), inner = (int64_t)l->tp * l->pp * l->cp;
    if (m->diags->n_errors > before)
        return;
    if (gpus == 0) {
        if (!m->arguments->of[ARGUMENT_NODES].unknown && !m->arguments->of[ARGUMENT_NODE_GPUS].unknown)
            translate_missing(m, ARGUMENT_WORLD, "how many GPUs (--gpus)");
        return;
    }
    if (gpus > GPUS_MAX || gpus % inner != 0) {
        diag_error(m->diags, m->arguments->of[ARGUMENT_TP].at, "%lld GPUs are not a multiple of tp %d x pp %d x cp %d%s",
                   (long long)gpus, l->tp, l->pp, l->cp, m->known->gpus ? "" : "; set another number with --gpus");
        return;
    }
    job->gpus = (int)gpus;
    l->dp = (int)(gpus / inner);
    launch_originate(m->description, "layout.dp", "%lld GPUs / (tp pp cp)", (long long)gpus);
}

/* So many instances of the optimizer each shard over a part of the replicas. */
static void read_shards(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    int64_t instances = translate_int(m, ARGUMENT_OPTIMIZER_INSTANCES, 1, 1), ranks = (int64_t)l->dp * l->cp;
    if (instances == 1 || l->zero == 0 || l->dp == 0)
        return;
    if (ranks % instances != 0) {
        diag_error(m->diags, m->arguments->of[ARGUMENT_OPTIMIZER_INSTANCES].at,
                   "--num-distributed-optimizer-instances: %lld ranks are not %lld equal groups", (long long)ranks,
                   (long long)instances);
        return;
    }
    l->shard = (int)(ranks / instances);
    translate_from(m, "layout.shard", ARGUMENT_OPTIMIZER_INSTANCES);
}

void translate_gpus(struct translation *m)
{
    read_gpus(m);
    read_shards(m);
}
