/*
 * layout_items.h - the text form of a layout, one item after the other.
 *
 * Items stand between commas, blanks, or both. Each is key=value (blanks around '=' are allowed) or, as tables print layouts,
 * what is short for one:
 *
 *     tp8           a key and its number: tp=8
 *     z1, z1/16     zero=1; zero=1 and shard=16
 *     norm+act      recompute=norm+act: none is never written, as full, full:4 and sel are
 *     a2a:4+ring    cp_comm=a2a:4+ring
 *     zb-v          schedule=zb-v
 *     auto          auto=true: what is not given is searched
 *     ~             the mark of uneven stages, which says nothing of the layout itself
 *
 * Words joined by '+' are one: a blank beside the '+' is an error of its own.
 *
 * So "tp=8,pp=8,zero=1" and "tp8 pp8 z1" are one text. Everything that reads layouts reads its items here; which keys there are
 * and which values they take is checked by who asks.
 */
#ifndef MSIM_MODEL_SPEC_LAYOUT_ITEMS_H
#define MSIM_MODEL_SPEC_LAYOUT_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

enum { LAYOUT_KEY_SIZE = 32, LAYOUT_VALUE_SIZE = 128, LAYOUT_ITEM_WHY = 384 };

struct layout_item {
    char key[LAYOUT_KEY_SIZE], value[LAYOUT_VALUE_SIZE];
    size_t key_at, value_at; /* in the text */
};

/* A text under the reader; {.text = text} at first. */
struct layout_items {
    const char *text;
    size_t at;        /* of what comes next */
    size_t shard_at;  /* of the N of a "z1/N" that is still to be told; 0: none */
    bool after_comma; /* something has to follow */
};

enum layout_item_found { LAYOUT_ITEM_NONE, LAYOUT_ITEM_READ, LAYOUT_ITEM_WRONG };

/* The next item; none at the end. Wrong ones leave in `why` what is wrong with them and what would be right, in item->key_at
 * where they stand, and reading goes on behind them. */
enum layout_item_found layout_items_next(struct layout_items *items, struct layout_item *item, char why[LAYOUT_ITEM_WHY]);

/* Whether a text begins with what is short for a number: "tp8 pp8". */
bool layout_items_are_brief(const char *text);

#endif
