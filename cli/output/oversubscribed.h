/*
 * oversubscribed.h - a word on a fabric that is narrower above its leaves or pods than below, where the analytic network meets
 * it.
 *
 * How full exchanges make the links above leaves and pods, and what that adds to their time, is
 * model/cost/kernel/oversubscription.h; here it is said of the kind of groups that fills them most. Each kind is charged by
 * itself, for ranks in order on paths that are used evenly: what kinds that meet cost, paths that collide, and ranks that are not
 * in order, only the flow network knows.
 */
#ifndef MSIM_CLI_OUTPUT_OVERSUBSCRIBED_H
#define MSIM_CLI_OUTPUT_OVERSUBSCRIBED_H

#include <stddef.h>

#include "model/layout/layout.h"

enum { OVERSUBSCRIBED_TEXT = 480 };

/* How full rings, all-to-all, or a pipeline's messages, of the kind that fills them most make the links above leaves or pods, of
 * what those can carry; 0: none leaves a leaf, or nothing is oversubscribed. */
double oversubscribed_load(const struct layout *layout, const struct cluster *cluster, enum group_kind *kind);
/* "the fabric is oversubscribed (2:1 above the leaves): ..."; no full stop. Returns the load; "" where that is 0. */
double oversubscribed_text(const struct layout *layout, const struct cluster *cluster, char *buffer, size_t size);

#endif
