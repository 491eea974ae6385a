/*
 * update_muon.h - the parts of Muon's step, as operations of the program execute them (private to the runtime).
 *
 * Example: the three operations of a step and the exchanges between them.
 *
 *     muon_compute(rank, MUON_UPDATE, stream);          momenta and updates of this rank's slices
 *     muon_exchange(rank, op, stream);                  updates go to the owners of their matrices
 *     muon_compute(rank, MUON_PRODUCTS, stream);        Newton-Schulz iterations on whole matrices
 *     muon_exchange(rank, op, stream);                  results go back
 *     muon_compute(rank, MUON_APPLY, stream);           updates the weights
 */
#ifndef MSIM_RUNTIME_UPDATE_UPDATE_MUON_H
#define MSIM_RUNTIME_UPDATE_UPDATE_MUON_H

#include "runtime/base/rank.h"

/* Whether Muon updates parameters of this kind; Adam updates the others. */
bool muon_has(enum parameter_kind kind);
/* Number of a unit's owned elements that Adam updates, so that have a second moment. */
int64_t muon_adam_elements(const struct unit_state *unit);

enum muon_part { MUON_UPDATE, MUON_PRODUCTS, MUON_APPLY };
void muon_compute(struct rank *rank, enum muon_part part, struct device_stream *stream);
/* Sends updates to the owners of their matrices; the next call of a step sends them back. */
void muon_exchange(struct rank *rank, const struct op *op, struct device_stream *stream);
void muon_close(struct rank *rank);

#endif
