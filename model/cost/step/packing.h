/*
 * packing.h - what masks between documents do to the attention of a whole model: sequences together, layer by layer.
 *
 * Layers see a sequence whole or through a window, and either of the documents; theory and units are those of documents.h. A
 * sequence's work is the pairs of all its layers.
 */
#ifndef MSIM_MODEL_COST_STEP_PACKING_H
#define MSIM_MODEL_COST_STEP_PACKING_H

#include "model/base/random.h"
#include "model/layout/layout.h"

struct packing {
    struct documents documents;
    double tokens;           /* of a sequence */
    double whole, windowed;  /* layers with attention that see all of it, or a window */
    double window;           /* 0: no layer has one */
    bool skips;              /* attention is fused: what is masked is not computed */
    double pairs, all_pairs; /* of a sequence, expected, and without documents; all layers */
};

/* Of a job with documents; `features`: those used. */
struct packing packing_of(const struct setting *setting, feature_set features);

/* Standard deviation of a sequence's pairs, relative to their mean; of layers with and without a window as if they rose together.
 * Some milliseconds. */
double packing_variation(const struct packing *packing);

/* How many pairs more than the average one the replica has that has most of them in a step, of `replicas` with n sequences
 * each: the expected maximum of normals (slowest_of), relative. */
double packing_slowest(const struct packing *packing, int replicas, double sequences);

/* Seconds that a rank computes longer in a step where all its micro-batches have that many more pairs, relative to the mean; the
 * mean of ranks. */
double packing_longer_s(const struct layout *layout, const struct setting *setting, double more);

/* The pairs of one sequence relative to the mean, drawn document by document; about 0.1 us a document. */
double packing_draw(const struct packing *packing, struct random_stream *stream);

#endif
