#include "model/cost/step/packing.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#include "model/cost/kernel/machine.h"
#include "model/cost/work/documents.h"

/* Layers of multi-token prediction are like the last one. */
static void count_layers(struct packing *p, const struct setting *setting, feature_set features)
{
    const struct transformer *m = setting->model;
    for (int i = 0; i < m->layers + m->mtp_layers; i++) {
        int layer = i < m->layers ? i : m->layers - 1;
        double window = sliding_window_width(setting, features, layer);
        if (!(layer_kind_of(m, layer).mixers & MIXES_BY_ATTENTION))
            continue;
        if (window > 0 && window < p->tokens) {
            p->windowed++;
            p->window = window;
        } else {
            p->whole++;
        }
    }
}

static double pairs_of(const struct packing *p, const struct documents *documents)
{
    double windowed = p->windowed > 0 ? p->windowed * documents_pairs(documents, p->tokens, p->window) : 0;
    return p->whole * documents_pairs(documents, p->tokens, 0) + windowed;
}

struct packing packing_of(const struct setting *setting, feature_set features)
{
    static const struct documents none = {0};
    struct packing p = {
        .documents = setting->job->documents, .tokens = (double)setting->job->seq_len, .skips = (features & FEATURES_FLASH) != 0};
    count_layers(&p, setting, features);
    p.pairs = pairs_of(&p, &p.documents);
    p.all_pairs = pairs_of(&p, &none);
    return p;
}

double packing_variation(const struct packing *p)
{
    double deviation = 0;
    if (p->whole > 0)
        deviation += p->whole * documents_variation(&p->documents, p->tokens, 0) * documents_pairs(&p->documents, p->tokens, 0);
    if (p->windowed > 0)
        deviation += p->windowed * documents_variation(&p->documents, p->tokens, p->window) *
                     documents_pairs(&p->documents, p->tokens, p->window);
    return p->pairs > 0 ? deviation / p->pairs : 0;
}

double packing_slowest(const struct packing *p, int replicas, double sequences)
{
    return slowest_of(replicas, packing_variation(p) / sqrt(sequences)) - 1;
}

/* Both passes of one layer and micro-batch, what is recomputed among them. */
static double layer_seconds(const struct layout *layout, const struct setting *setting, int layer, double more)
{
    struct machine machine = machine_of(layout, setting);
    struct work_table table = {0};
    double seconds = 0;
    machine.documents = more;
    for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        int32_t work = work_add_pass(&table, layout, setting, pass, (struct layer_range){layer, 1}, false, false);
        seconds += cost_seconds(work_cost(&machine, &table, work));
    }
    work_table_free(&table);
    return seconds;
}

double packing_longer_s(const struct layout *layout, const struct setting *setting, double more)
{
    const struct transformer *m = setting->model;
    struct layer_kinds kinds = layer_kinds_of(m, 0, m->layers);
    double seconds = 0;
    kinds.count[layer_kind_index(layer_kind_of(m, m->layers - 1))] += m->mtp_layers;
    for (int kind = 0; kind < N_LAYER_KINDS; kind++)
        if (kinds.count[kind] > 0)
            seconds += kinds.count[kind] * (layer_seconds(layout, setting, kinds.one[kind], more) -
                                            layer_seconds(layout, setting, kinds.one[kind], 0));
    return seconds * (double)layout_micro_batches(layout, setting->job) / layout->pp;
}

/* --- one sequence */

static double piece_pairs(const struct packing *p, double tokens)
{
    double pairs = p->whole * 0.5 * tokens * (tokens + 1), w = p->window;
    return pairs + p->windowed * (tokens > w ? w * tokens - 0.5 * w * (w - 1) : 0.5 * tokens * (tokens + 1));
}

/* Log-normal with this logarithm of the median. */
static double length_drawn(const struct documents *d, double logarithm, struct random_stream *stream)
{
    return d->spread > 0 ? exp(logarithm + d->spread * gsl_cdf_ugaussian_Pinv(random_uniform(stream))) : d->mean;
}

/* The document that a sequence begins in is as likely as it is long, which of log-normal ones moves the logarithm by S^2; and it
 * begins anywhere in it. Tokens are where whole numbers are. */
double packing_draw(const struct packing *p, struct random_stream *stream)
{
    const struct documents *d = &p->documents;
    double variance = d->spread * d->spread, logarithm = log(d->mean) - 0.5 * variance;
    double border = random_uniform(stream) * length_drawn(d, logarithm + variance, stream);
    double pairs = 0, begin = 0;
    while (begin < p->tokens) {
        double end = fmin(ceil(border), p->tokens);
        pairs += piece_pairs(p, end - begin);
        begin = end;
        border += length_drawn(d, logarithm, stream);
    }
    return p->pairs > 0 ? pairs / p->pairs : 1;
}
