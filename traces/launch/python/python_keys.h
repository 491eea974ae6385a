/*
 * python_keys.h - what a Python program assigns to a recipe, as a tree (model/spec/yaml.h). The program is read and never run.
 *
 *     cfg.model.tensor_model_parallel_size = 8
 *     cfg["train"].micro_batch_size, cfg.train.global_batch_size = 1, 8 * NODES
 *     setattr(cfg.dataset, "sequence_length", 8192)
 *     m = cfg.model; m.sequence_parallel: bool = True
 *     cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
 *     recipe.trainer.callbacks.append(run.Config(TimingCallback))
 *
 * Assignments to fields are read at any depth of functions, whatever the object is called; the last one counts. If the object
 * begins as the call of a recipe's function (its name has pretrain, finetune, sft or peft, and recipe or config), that call is
 * its _recipe_.
 *
 * Values are numbers, booleans, None, strings, lists and dictionaries of these, [0]*3+[1]*29 as written, constants of modules and
 * classes (torch.bfloat16), whole numbers with + - * // % **, names and fields that were assigned such a value above, and calls.
 * A call is a mapping of its named arguments, with _target_ (the function, or the first argument of run.Config and run.Partial)
 * and _args_ (the other arguments). Any other value is computed: it is reported and left out, and so is the old value of the
 * field. A call of a lower-case name that does not sound like a configuration, a recipe or a precision (int(x), max(4, n)) is
 * computed, too. An assignment under a condition or in a loop (but under __name__) may not happen: it is reported and left out,
 * and the field keeps its value.
 *
 * Names are those of the function around them, or of one further out. They stand for other objects or their fields (m =
 * cfg.model), for the result of a function of the program, or for an object that a call made, which belongs to another object
 * once it is assigned to it. Of several recipes the one with the most assignments is taken, the first of equals; the others are
 * reported and left out. Assignments to names from outside (parameters) belong to the recipe if there is one. All other
 * statements are ignored.
 *
 * Everything lives in the caller's arena. Cost: linear in the text, times the number of names and fields (at most 4,096; more are
 * an error).
 */
#ifndef MSIM_TRACES_LAUNCH_PYTHON_PYTHON_KEYS_H
#define MSIM_TRACES_LAUNCH_PYTHON_PYTHON_KEYS_H

#include "model/spec/yaml.h"

/* Parses n bytes. `name` is the name of the text in diagnostics and must outlive the tree. The result is a mapping, possibly
 * empty. */
struct yaml_node *python_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

#endif
