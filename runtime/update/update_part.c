/* update_part.c - one update of some elements of a unit: the arguments of Adam or SGD, on the device or on the host. */
#include "runtime/update/update_internal.h"

static struct clipping clipping_by(const struct rank *rank, const float *norm)
{
    return rank->clip > 0 ? (struct clipping){norm, rank->clip} : (struct clipping){0};
}

struct clipping update_clipping(const struct rank *rank)
{
    return clipping_by(rank, rank->norm);
}

struct update_part update_part_of_device(const struct rank *rank, const struct unit_state *u)
{
    void *weights = unit_kept_weights(rank, u);
    return (struct update_part){.n = u->owned - u->host.n,
                                .p = u->master,
                                .m = u->m,
                                .v = u->v,
                                .g = u->owned_gradients + (rank_gradients_leave(rank) ? 0 : u->host.n),
                                .compute = (void *)u->master == weights ? NULL : weights,
                                .clip = clipping_by(rank, rank->norm)};
}

struct update_part update_part_of_host(const struct rank *rank, const struct unit_state *u)
{
    const struct host_share *host = &u->host;
    return (struct update_part){.n = host->n,
                                .p = host->master,
                                .m = host->m,
                                .v = host->v,
                                .g = host->gradients,
                                .compute = (void *)host->master == host->weights ? NULL : host->weights,
                                .clip = clipping_by(rank, rank->host_norm)};
}

static struct kernel_call adam_call(const struct rank *rank, const struct update_part *part)
{
    return (struct kernel_call){.kernel = KERNEL_ADAM,
                                .adam = {.n = part->n,
                                         .p = part->p,
                                         .m = part->m,
                                         .v = part->v,
                                         .g = part->g,
                                         .compute = part->compute,
                                         .rate = rank->rate,
                                         .beta1 = OPTIMIZER_BETA1,
                                         .beta2 = OPTIMIZER_BETA2,
                                         .epsilon = OPTIMIZER_EPSILON,
                                         .gradient_scale = 1,
                                         .clip = part->clip,
                                         .step = rank->step + 1}};
}

static struct kernel_call sgd_call(const struct rank *rank, const struct update_part *part)
{
    return (struct kernel_call){.kernel = KERNEL_SGD,
                                .sgd = {.n = part->n,
                                        .p = part->p,
                                        .m = part->m,
                                        .g = part->g,
                                        .compute = part->compute,
                                        .rate = rank->rate,
                                        .momentum = OPTIMIZER_BETA1,
                                        .clip = part->clip}};
}

struct element_range owned_range(const struct unit_state *u, int64_t first, int64_t n)
{
    int64_t begin = first > u->first ? first : u->first;
    int64_t end = first + n < u->first + u->owned ? first + n : u->first + u->owned;
    return (struct element_range){begin - u->first, end > begin ? end - begin : 0};
}

void update_adam(struct rank *rank, const struct unit_state *u, struct element_range s, int64_t second_moment,
                 struct device_stream *stream)
{
    struct update_part part = update_part_of_device(rank, u);
    part.n = s.n;
    part.p += s.first, part.m += s.first, part.g += s.first, part.v += second_moment;
    if (part.compute)
        part.compute = (char *)part.compute + (size_t)s.first * device_element_bytes(rank->device);
    struct kernel_call call = adam_call(rank, &part);
    rank_launch(rank, stream, &call);
}

struct kernel_call update_call(const struct rank *rank, struct update_part part)
{
    return rank->setting->job->optimizer == OPTIMIZER_SGD ? sgd_call(rank, &part) : adam_call(rank, &part);
}
