/*
 * launch_drawn.h - jobs drawn at random, and what becomes of one that is exported and imported again: whatever is said comes
 * back.
 */
#ifndef MSIM_TESTS_LAUNCH_DRAWN_H
#define MSIM_TESTS_LAUNCH_DRAWN_H

#include "model/base/random.h"
#include "model/spec/cluster.h"
#include "traces/launch/job/launch.h"

void draw_launch_layout(struct random_stream *random, const struct transformer *model, struct layout *l);
/* The rest, of a model and a layout. */
void draw_launch_job(struct random_stream *random, struct launch_job *x);
/* A legal job on a GPU that can do everything; false when what was drawn is none. */
bool draw_launch(struct random_stream *random, char **names, size_t n_names, const struct cluster *cluster, struct launch_job *x);

/* By Megatron-LM's arguments. */
void through_a_script(const struct launch_job *x);
/* What the program's own log would say: every argument, by its name there. */
void through_a_log(const struct launch_job *x);
/* Whether the framework has words for all of it; if so it must come back. */
bool through_a_config(const struct launch_job *x, const char *framework);

#endif
