/*
 * oversubscribed.h - a word on a fabric that is narrower above its leaves or pods than below, where the analytic network meets
 * it.
 *
 * All-to-all among leaves or pods is charged for it (model/cost/collective.h), rings are not: of a ring over d NVLink domains in
 * l leaves, in order, l hops of d leave a leaf, and with every NIC of the leaf in such a ring the links above carry l/d of what
 * NICs send. At k:1 that is k l/d of what they can: 1/8 for one ring over 64 nodes of leaves of 16 at 2:1, where fair flows take
 * as long; but 2 for rings over every eighth of them (replicas of experts) at 4:1, where they take far longer. Messages between
 * the stages of a pipeline go from leaf to leaf as a ring does, but for its end: from stages of whole leaves all of them leave,
 * and while all are sent at once k:1 makes them k times as long. Only the flow network knows how long, and what paths that
 * collide cost, and ranks that are not in order.
 */
#ifndef MSIM_CLI_OVERSUBSCRIBED_H
#define MSIM_CLI_OVERSUBSCRIBED_H

#include <stddef.h>

#include "model/layout/layout.h"

enum { OVERSUBSCRIBED_TEXT = 256 };

/* How full rings, or a pipeline's messages, of the kind that fills them most make the links above leaves or pods, of what those
 * can carry; 0: none leaves a leaf, or nothing is oversubscribed. */
double oversubscribed_load(const struct layout *layout, const struct cluster *cluster, enum group_kind *kind);
/* "the fabric is oversubscribed (2:1 above the leaves): ..."; no full stop. "" where the load is 0. Returns buffer. */
char *oversubscribed_text(const struct layout *layout, const struct cluster *cluster, char *buffer, size_t size);

#endif
