/*
 * narrow_gradients.h - what runs of tables reduce gradients in, where a job of the same layout does not unless it says so.
 */
#ifndef MSIM_CLI_OUTPUT_NARROW_GRADIENTS_H
#define MSIM_CLI_OUTPUT_NARROW_GRADIENTS_H

#include "model/base/diag.h"
#include "model/spec/gpu.h"

/* A note where any of the runs does: `runs` of each precision that gradients are reduced in. */
void narrow_gradients_note(const size_t runs[N_PRECISIONS], struct diags *diags);

#endif
