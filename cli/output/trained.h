/*
 * trained.h - what of a model is trained, where that is not all of it.
 */
#ifndef MSIM_CLI_OUTPUT_TRAINED_H
#define MSIM_CLI_OUTPUT_TRAINED_H

#include <jansson.h>
#include <stdio.h>

#include "model/layout/layout.h"

/* "trains   44.6 M of 69.0 B parameters: adapters of rank 16 beside qkv, projection" in a line; nothing where all weights are. */
void trained_write(const struct setting *setting, feature_set features, FILE *out);
/* The same as keys of an object: parameters, trained_parameters (counts). */
void trained_json(const struct setting *setting, feature_set features, json_t *object);

#endif
