/* megatron_mesh.c - translates the axes of a mesh of devices to a layout: MaxText's, by its base.yml and sharding rules (not
 * checked against them).
 *
 * Each axis has a size within a slice (ici) and one between slices (dcn), and their product is its degree. One axis of either
 * kind may be -1: the remaining devices. Weights are sharded over fsdp, context and expert; batches over data, fsdp and expert.
 * Activations are divided along hidden dimensions by tensor axes, along the sequence by tensor_sequence. A slice is taken as a
 * node. */
#include "traces/launch/megatron/megatron_translate_internal.h"

bool translate_has_mesh(struct translation *m)
{
    return megatron_given(m->arguments, ARGUMENT_DCN_DATA);
}

/* A size; 0: the remaining devices, by default replicas between slices and shards within. */
static int64_t size_of(struct translation *m, enum argument axis)
{
    int64_t size = translate_int(m, axis, -1, axis == ARGUMENT_DCN_DATA || axis == ARGUMENT_ICI_FSDP ? -1 : 1);
    return size < 0 ? 0 : size > 0 ? size : 1;
}

/* At the most what no cluster has. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > INT32_MAX ? INT32_MAX : product;
}

/* Over both kinds of links, of an axis whose rows follow one another; 0: what is left. */
static int64_t axis_of(struct translation *m, enum argument within)
{
    return times(size_of(m, within), size_of(m, (enum argument)(within + 1)));
}

/* A degree of the layout by its axes, of which those that are open are taken for one. */
static int degree_of(struct translation *m, const char *key, const enum argument *axes, int n)
{
    enum { DEGREE_MAX = 16384 };
    int64_t degree = 1;
    enum argument spelling = axes[0];
    for (int i = 0; i < n; i++) {
        int64_t size = axis_of(m, axes[i]);
        if (size == 0)
            translate_not_modelled(m, axes[i], "all remaining devices; msim assumes one");
        if (size > 1)
            spelling = size_of(m, axes[i]) > 1 ? axes[i] : (enum argument)(axes[i] + 1);
        degree = times(degree, size > 0 ? size : 1);
    }
    translate_from(m, key, spelling);
    if (degree <= DEGREE_MAX)
        return (int)degree;
    diag_error(m->diags, m->arguments->of[spelling].at, "%s: %lld is more than %d", key, (long long)degree, DEGREE_MAX);
    return 1;
}

void translate_mesh(struct translation *m)
{
    static const enum argument tensor[] = {ARGUMENT_ICI_TENSOR, ARGUMENT_ICI_TENSOR_TRANSPOSE, ARGUMENT_ICI_TENSOR_SEQUENCE};
    static const enum argument context[] = {ARGUMENT_ICI_CONTEXT, ARGUMENT_ICI_SEQUENCE};
    static const enum argument pipeline[] = {ARGUMENT_ICI_PIPELINE}, expert[] = {ARGUMENT_ICI_EXPERT};
    struct layout *l = &m->description->job.layout;
    l->tp = degree_of(m, "layout.tp", tensor, 3);
    l->cp = degree_of(m, "layout.cp", context, 2);
    l->pp = degree_of(m, "layout.pp", pipeline, 1);
    l->ep = degree_of(m, "layout.ep", expert, 1);
    l->sequence_parallel = axis_of(m, ARGUMENT_ICI_TENSOR_SEQUENCE) > 1;
    translate_from(m, "layout.sequence_parallel", ARGUMENT_ICI_TENSOR_SEQUENCE);
    if (l->pp > 1)
        translate_not_modelled(m, size_of(m, ARGUMENT_ICI_PIPELINE) > 1 ? ARGUMENT_ICI_PIPELINE : ARGUMENT_DCN_PIPELINE,
                               "a circular pipeline, all forward passes first; msim assumes GPipe");
}

/* How many ranks have a batch of their own and no weights in common; 0: what is left. */
static int64_t data_of(struct translation *m)
{
    return axis_of(m, ARGUMENT_ICI_DATA);
}

static int64_t fsdp_of(struct translation *m)
{
    return times(axis_of(m, ARGUMENT_ICI_FSDP), axis_of(m, ARGUMENT_ICI_FSDP_TRANSPOSE));
}

/* Of the sizes that shards have on either kind of links those that are said. */
static int64_t said_of_fsdp(struct translation *m)
{
    static const enum argument axes[] = {ARGUMENT_ICI_FSDP, ARGUMENT_DCN_FSDP, ARGUMENT_ICI_FSDP_TRANSPOSE,
                                         ARGUMENT_DCN_FSDP_TRANSPOSE};
    int64_t spelling = 1;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        spelling = times(spelling, size_of(m, axes[i]) > 0 ? size_of(m, axes[i]) : 1);
    return spelling;
}

int64_t translate_mesh_replicas(struct translation *m)
{
    return times(times(data_of(m), fsdp_of(m)), m->description->job.layout.ep);
}

/* Where both are open: all of a slice that other axes leave. */
static int64_t shards_of_slice(struct translation *m)
{
    enum { SLICE = 8 };
    const struct layout *l = &m->description->job.layout;
    static const enum argument others[] = {ARGUMENT_ICI_DATA,
                                           ARGUMENT_ICI_FSDP_TRANSPOSE,
                                           ARGUMENT_ICI_TENSOR,
                                           ARGUMENT_ICI_TENSOR_TRANSPOSE,
                                           ARGUMENT_ICI_TENSOR_SEQUENCE,
                                           ARGUMENT_ICI_SEQUENCE,
                                           ARGUMENT_ICI_CONTEXT,
                                           ARGUMENT_ICI_PIPELINE,
                                           ARGUMENT_ICI_EXPERT};
    int64_t inner = 1, node = m->description->job.gpus_per_node, slice = node ? node : SLICE;
    int64_t gpus = (int64_t)l->dp * l->tp * l->cp * l->pp;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        inner = times(inner, size_of(m, others[i]) > 0 ? size_of(m, others[i]) : 1);
    if (!node && gpus > slice)
        translate_not_modelled(m, ARGUMENT_ICI_FSDP, "all devices of a slice, whose number is not specified; msim assumes %lld",
                               (long long)slice);
    slice = slice < gpus ? slice : gpus;
    int64_t fsdp = slice % inner == 0 ? slice / inner : 1;
    return times(times(fsdp, size_of(m, ARGUMENT_ICI_FSDP_TRANSPOSE)),
                 times(size_of(m, ARGUMENT_DCN_FSDP), size_of(m, ARGUMENT_DCN_FSDP_TRANSPOSE)));
}

void translate_mesh_shards(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    int64_t data = data_of(m), fsdp = fsdp_of(m), ranks = (int64_t)l->dp;
    if (l->dp == 0)
        return;
    if (fsdp == 0)
        fsdp = data == 0 ? shards_of_slice(m) : ranks / times(data, l->ep);
    if (fsdp > 0 && fsdp % said_of_fsdp(m) != 0) /* what is open is no whole number then */
        fsdp = said_of_fsdp(m);
    if (fsdp < 1 || ranks % times(fsdp, l->ep) != 0 || (data && times(data, times(fsdp, l->ep)) != ranks)) {
        diag_error(m->diags, m->arguments->of[ARGUMENT_ICI_FSDP].at,
                   "the axes of the mesh, data %lld, fsdp %lld and expert %d, do not make the %d replicas of the GPUs",
                   (long long)data, (long long)fsdp, l->ep, l->dp);
        return;
    }
    int64_t together = times(times(fsdp, l->ep), l->cp);
    l->zero = together == 1 ? 0 : l->pp > 1 ? 2 : 3;
    translate_from(m, "layout.zero", ARGUMENT_ICI_FSDP);
    if (l->zero == 0 || together == ranks * l->cp)
        return;
    l->shard = (int)together;
    translate_from(m, "layout.shard", ARGUMENT_ICI_FSDP);
}

void translate_device_batch(struct translation *m)
{
    struct launch_job *job = &m->description->job;
    struct layout *l = &job->layout;
    const struct megatron_value *value = &m->arguments->of[ARGUMENT_DEVICE_BATCH];
    double each;
    if (!translate_has(m, ARGUMENT_DEVICE_BATCH) || !l->dp ||
        !megatron_number(value, &megatron_rows[ARGUMENT_DEVICE_BATCH], 0, 1 << 20, &each, m->diags))
        return;
    int64_t pieces = translate_int(m, ARGUMENT_ACCUMULATION, 1, 1);
    int64_t streams = l->pp > 1 ? translate_int(m, ARGUMENT_PP_MICRO_BATCHES, -1, -1) : 1;
    double replica = each * l->tp * l->cp * l->pp, micro = replica / (double)(streams > 0 ? streams : l->pp);
    if (micro < 1 || micro > 1 << 20 || micro > (double)(int)micro) {
        diag_error(m->diags, value->at, "%s: %s per device make %g sequences per micro-batch, no whole number", value->spelling,
                   value->text, micro);
        return;
    }
    double batch = replica * l->dp * (double)pieces;
    l->micro_batch = (int)micro;
    job->job.global_batch = batch <= 1e9 ? (int64_t)batch : 1000000000;
    translate_from(m, "layout.micro_batch", ARGUMENT_DEVICE_BATCH);
    launch_originate(m->description, "job.global_batch", "a device's batch x devices%s", pieces > 1 ? " x accumulation" : "");
}
