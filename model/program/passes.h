/*
 * passes.h - what a slot consists of: the work tree of a pass cut into pieces (private to the program folder).
 *
 * A pass over a range of layers is a sequence of pieces, one operation each. At chunk detail it is one piece, at layer detail one
 * per layer (and for the embedding and the loss head), at kernel detail one per kernel and exchange. Passes over equal layers
 * share their works and pieces: 48 equal chunks of a model cost what one does.
 *
 * A chunk is cut into segments, runs of layers between which gradients and parameters can be exchanged while the next one is
 * computed. Whoever does not exchange then runs the chunk whole.
 */
#ifndef MSIM_MODEL_PROGRAM_PASSES_H
#define MSIM_MODEL_PROGRAM_PASSES_H

#include "model/program/program.h"

struct piece {
    int32_t work;  /* of a computation; of an exchange beside one, the pair; -1 otherwise */
    int32_t layer; /* relative to the range's first; -1: none */
    double bytes;  /* of an exchange */
    uint8_t class; /* enum work_class */
    uint8_t collective, group;
    bool exchange;
    bool beside; /* runs beside the piece before it */
};

/* Layers with the work before and after them. */
struct segment {
    struct layer_range range;
    bool embedding, head;
};

/* A pass over a segment. */
struct passage {
    struct segment segment;
    enum pass pass;
};

struct pass_pieces {
    struct piece *items;
    size_t n_items, capacity;
    struct passage passage, beside; /* it was first made for; what it runs side by side with */
    bool paired;
};

struct passes {
    const struct layout *layout;
    const struct setting *setting;
    enum detail detail;
    struct work_table *works;   /* of the program */
    struct pass_pieces **known; /* by shape; pointers stay valid */
    size_t n_known, capacity;
};
void passes_free(struct passes *passes);

/* The pieces of a pass over a segment, made when first asked for. `beside`: the pass that it is paired with, NULL none; at kernel
 * detail a pair is two passes one after the other. */
const struct pass_pieces *passes_of(struct passes *passes, struct passage passage, const struct passage *beside);

/* Virtual stage v as one segment. */
struct segment segment_of_stage(const struct layout *layout, const struct setting *setting, int virtual_stage);
/* The i-th of n cuts of a segment, layers divided as evenly as can be, in the order of the layers. */
struct segment segment_cut(const struct segment *whole, int i, int n);

#endif
