/*
 * python_keys.h - what a Python program says of a recipe, as the same tree as YAML's (model/spec/yaml.h). It is read and not run.
 *
 * Read are assignments to fields of an object, whatever it is called,
 *
 *     cfg.model.tensor_model_parallel_size = 8
 *     cfg["train"].micro_batch_size, cfg.train.global_batch_size = 1, 8 * NODES
 *     setattr(cfg.dataset, "sequence_length", 8192)
 *     m = cfg.model; m.sequence_parallel: bool = True
 *     cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
 *     recipe.trainer.callbacks.append(run.Config(TimingCallback))
 *
 * and what such an object begins as, where that is the call of a recipe's function (pretrain, finetune, sft or peft in its name,
 * and recipe or config), which is _recipe_. They are read at any depth of functions; of what is said twice the last counts.
 *
 * Values. Numbers, truths, None, strings, lists and dictionaries of these, [0]*3+[1]*29 as it is written, constants of modules
 * and classes (torch.bfloat16), whole numbers that are added, multiplied, divided whole (//, %) or raised, names to which the
 * program has assigned such a value above, fields that it has said above, and calls: a mapping of what the call names, _target_
 * being what is called, or what run.Config or run.Partial is told to call, and _args_ its other values without a name. A call
 * that makes no such thing (of a name in small letters that says nothing of a configuration, a recipe or a precision: int(x),
 * max(4, n)) is computed, as is all else that stands behind a field: that is told and left out, together with what the field was
 * before. So is what stands under a condition or in a loop (but under __name__), where nobody knows whether it is done: a field
 * is what it was.
 *
 * Objects. Names are those of the function in which they stand, or of one around it; they stand for other objects or fields of
 * such (m = cfg.model), for what a function of the program gives back, or for an object that a call has made, which is part of
 * another from where it is given to it. Of several recipes the one is meant that most is said of, the first of these; the others
 * are told and left out with what is said of them. What is said of names from outside (parameters) is the recipe's where there is
 * one. All other statements mean nothing here.
 *
 * Everything lives in the caller's arena. Cost: linear in the text, times the names and fields that there are (4,096 at most;
 * more are an error).
 */
#ifndef MSIM_TRACES_LAUNCH_PYTHON_PYTHON_KEYS_H
#define MSIM_TRACES_LAUNCH_PYTHON_PYTHON_KEYS_H

#include "model/spec/yaml.h"

/* Parse n bytes; `name` is what diagnostics call the text, and must outlive the tree. A mapping, empty where nothing is said. */
struct yaml_node *python_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

#endif
