/*
 * packed.h - what masks between documents leave of attention, where a job has them.
 */
#ifndef MSIM_CLI_OUTPUT_PACKED_H
#define MSIM_CLI_OUTPUT_PACKED_H

#include <jansson.h>
#include <stdio.h>

#include "model/layout/layout.h"

/* "packs    documents of 1,200 tokens (spread 1.1): masks between them leave 31.3 % of attention's pairs" in a line; nothing
 * where sequences are attended to whole. */
void packed_write(const struct setting *setting, feature_set features, FILE *out);
/* The same as key `documents` of an object: {pairs_left_pct, computed_pct}. */
void packed_json(const struct setting *setting, feature_set features, json_t *object);
/* What MFU counts beyond what is computed, under tables of it where attention is masked between documents. */
#define PACKED_MFU_NOTE "MFU counts what masks between documents leave out, too, so that it can pass 100 %.\n"

#endif
