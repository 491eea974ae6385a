/*
 * update_muon.h - the parts of Muon's step that operations of the program stand for (private to the runtime).
 */
#ifndef MSIM_RUNTIME_UPDATE_UPDATE_MUON_H
#define MSIM_RUNTIME_UPDATE_UPDATE_MUON_H

#include "runtime/base/rank.h"

/* Whether matrices of this kind are Muon's; others have Adam. */
bool muon_has(enum parameter_kind kind);
/* Of what is owned of a unit the elements with a second moment. */
int64_t muon_adam_elements(const struct unit_state *unit);

enum muon_part { MUON_UPDATE, MUON_PRODUCTS, MUON_APPLY };
void muon_compute(struct rank *rank, enum muon_part part, struct device_stream *stream);
/* Updates to owners or, the next time, back from there. */
void muon_exchange(struct rank *rank, const struct op *op, struct device_stream *stream);
void muon_close(struct rank *rank);

#endif
