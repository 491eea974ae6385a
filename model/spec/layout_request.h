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

/* A text such as "tp=8,pp=8,mb=1", "auto" or "auto,pp=2" as the mapping that it stands for ("auto" is a key, which is true), with
 * positions inside the text; a mapping with the long names of its keys. */
struct yaml_node *layout_request_tree(const struct yaml_node *value, struct arena *arena, struct diags *diags);

/* The long name of a key: "mb" is "micro_batch"; any other is itself. */
const char *layout_request_key(const char *key);

/* Whether that tree leaves what it does not name to the search. */
bool layout_request_searches(const struct yaml_node *tree);

/* That tree into the request. */
void layout_request_read(const struct yaml_node *tree, struct layout_request *request, struct diags *diags);

json_t *layout_request_write(const struct layout_request *request);

#endif
