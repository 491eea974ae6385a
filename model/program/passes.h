/*
 * passes.h - the pieces of a pass: its work tree cut into operations (private to the program folder).
 *
 * Example: a forward pass over two layers and the embedding.
 *
 *     chunk detail     1 piece
 *     layer detail     3 pieces: embedding, layer, layer
 *     kernel detail    one piece per kernel and per exchange: norm, qkv, attention, ...
 *
 * Passes over equal layers share their works and pieces: 48 equal chunks of a model cost as much as one.
 *
 * A chunk is cut into segments: runs of layers between which gradients and parameters can be exchanged while the next segment
 * is computed. A stage without such exchanges runs the chunk whole.
 */
#ifndef MSIM_MODEL_PROGRAM_PASSES_H
#define MSIM_MODEL_PROGRAM_PASSES_H

#include "model/program/program.h"

struct piece {
    int32_t work;  /* computation: its work; exchange that overlaps with one: the pair; else -1 */
    int32_t layer; /* relative to the first of the range; -1: none */
    double bytes;  /* of an exchange */
    uint8_t class; /* enum work_class */
    uint8_t collective, group;
    bool exchange;
    bool beside; /* overlaps with the piece before it */
};

/* A run of layers, with the embedding and the head where it has them. */
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
    struct passage passage, beside; /* the passage it was first built for; the passage with which it is paired */
    bool paired;
};

struct passes {
    const struct layout *layout;
    const struct setting *setting;
    enum detail detail;
    struct work_table *works;   /* of the program */
    struct pass_pieces **known; /* one per shape; pointers stay valid */
    size_t n_known, capacity;
};
void passes_free(struct passes *passes);

/* The pieces of a pass over a segment, built at the first call. `beside`: the pass with which it is paired, NULL none. At
 * kernel detail a pair is two passes one after the other. */
const struct pass_pieces *passes_of(struct passes *passes, struct passage passage, const struct passage *beside);

/* Virtual stage v as one segment. */
struct segment segment_of_stage(const struct layout *layout, const struct setting *setting, int virtual_stage);
/* Cut i of n of a segment, in the order of the layers, which are divided as evenly as possible. */
struct segment segment_cut(const struct segment *whole, int i, int n);

#endif
