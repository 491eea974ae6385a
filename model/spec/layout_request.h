/*
 * layout_request.h - read the requested layout of an experiment key by key, so that mistakes have positions. Private to the
 * reader of specifications.
 *
 * Example: the text "tp8 pp8 auto" becomes the mapping {tp: 8, pp: 8, auto: true}.
 *
 * The meaning of dimensions, and whether they fit the model and the cluster, belong to model/layout; here they are names and
 * numbers.
 */
#ifndef MSIM_MODEL_SPEC_LAYOUT_REQUEST_H
#define MSIM_MODEL_SPEC_LAYOUT_REQUEST_H

#include <jansson.h>

#include "model/spec/experiment.h"
#include "model/spec/yaml.h"

/* The mapping of a text such as "tp=8,pp=8,mb=1", "auto" or "auto,pp=2" ("auto" is a key with the value true), with positions
 * inside the text. A mapping is returned with long key names. */
struct yaml_node *layout_request_tree(const struct yaml_node *value, struct arena *arena, struct diags *diags);

/* The long name of a key: "mb" is "micro_batch"; any other is itself. */
const char *layout_request_key(const char *key);

/* Whether dimensions that this tree does not name are searched. */
bool layout_request_searches(const struct yaml_node *tree);

/* Reads this tree into the request. */
void layout_request_read(const struct yaml_node *tree, struct layout_request *request, struct diags *diags);

json_t *layout_request_write(const struct layout_request *request);

#endif
