/*
 * packing.h - the effect of masks between documents on the attention of a whole model.
 *
 * Example: sequences of 8,192 tokens, packed with documents of 2,000 tokens on average, all layers without a window.
 *
 *     struct packing packing = packing_of(&setting, features);
 *     packing.pairs / packing.all_pairs             fraction of the query-key pairs that the masks leave
 *     packing_slowest(&packing, dp, sequences)      0.03: the replica with the most pairs has 3 % more than average
 *
 * A layer sees a whole sequence or a window of it, and in either case only the query's own document. documents.h has the theory
 * and the units for one layer. The work of a sequence is the number of pairs in all its layers.
 */
#ifndef MSIM_MODEL_COST_STEP_PACKING_H
#define MSIM_MODEL_COST_STEP_PACKING_H

#include "model/base/random.h"
#include "model/layout/layout.h"

struct packing {
    struct documents documents;
    double tokens;           /* of a sequence */
    double whole, windowed;  /* number of attention layers without and with a window */
    double window;           /* 0: no layer has one */
    bool skips;              /* attention is fused: masked blocks are not computed */
    double pairs, all_pairs; /* pairs of a sequence in all layers: expected, and without masks */
};

/* For a job with documents; `features`: those of the layout. */
struct packing packing_of(const struct setting *setting, feature_set features);

/* Standard deviation of the pairs of a sequence, relative to their mean. Layers with and without a window are assumed to vary
 * together. Costs some milliseconds. */
double packing_variation(const struct packing *packing);

/* The excess of pairs, relative to the mean, of the replica that has the most in a step; `replicas` have `sequences` sequences
 * each. It is the expected maximum of normals (slowest_of). */
double packing_slowest(const struct packing *packing, int replicas, double sequences);

/* Seconds by which a step is longer on a rank when all its micro-batches have `more` (relative to the mean) more pairs; average
 * over ranks. */
double packing_longer_s(const struct layout *layout, const struct setting *setting, double more);

/* The pairs of one random sequence relative to the mean, drawn document by document. Costs about 0.1 us per document. */
double packing_draw(const struct packing *packing, struct random_stream *stream);

#endif
