/*
 * python_keys.h - what a Python program says of a recipe, as the same tree as YAML's (model/spec/yaml.h). It is read and not run.
 *
 * Read are plain assignments to fields of an object, whatever it is called,
 *
 *     cfg.model.tensor_model_parallel_size = 8
 *     cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
 *     recipe.trainer.callbacks.append(run.Config(TimingCallback))
 *
 * and what such an object begins as, where that is the call of a recipe (a name that has pretrain or finetune in it): _recipe_.
 * They are read at any depth of functions; of what is said twice the last counts. Values are numbers, truths, None, strings,
 * lists of these, [0]*3+[1]*29 as it is written, names with dots (torch.bfloat16), and calls: a mapping of what the call names,
 * _target_ being what is called, or what run.Config is told to call, and _args_ its other values without a name. What else stands
 * behind a field the program computes: that is told and left out, as is what stands under a condition or in a loop (but under
 * __name__), where nobody knows whether it is done. All other statements mean nothing here.
 *
 * Everything lives in the caller's arena. Cost: linear in the text, times the keys of a mapping.
 */
#ifndef MSIM_TRACES_PYTHON_KEYS_H
#define MSIM_TRACES_PYTHON_KEYS_H

#include "model/spec/yaml.h"

/* Parse n bytes; `name` is what diagnostics call the text, and must outlive the tree. A mapping, empty where nothing is said. */
struct yaml_node *python_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

#endif
