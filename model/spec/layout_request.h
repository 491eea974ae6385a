/*
 * layout_request.h - the layout as an experiment asks for it, checked key by key so that a mistake has a position.
 *
 * What the dimensions mean, and whether they fit the model and the cluster, is the business of model/layout; here they are names
 * and numbers. Private to the reader of specifications.
 */
#ifndef MSIM_MODEL_SPEC_LAYOUT_REQUEST_H
#define MSIM_MODEL_SPEC_LAYOUT_REQUEST_H

#include <jansson.h>

#include "model/spec/experiment.h"
#include "model/spec/yaml.h"

/* A text such as "tp=8,pp=8,mb=1" as the mapping that it stands for, with positions inside the text; a mapping with the long
 * names of its keys; "auto" as it is. */
struct yaml_node *layout_request_tree(const struct yaml_node *value, struct arena *arena, struct diags *diags);

/* The long name of a key: "mb" is "micro_batch"; any other is itself. */
const char *layout_request_key(const char *key);

/* That tree into the request. */
void layout_request_read(const struct yaml_node *tree, struct layout_request *request, struct diags *diags);

json_t *layout_request_write(const struct layout_request *request);

#endif
