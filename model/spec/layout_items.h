/*
 * layout_items.h - read the text form of a layout item by item.
 *
 * Example: "tp8 z1/16" gives three items: tp = 8, zero = 1, shard = 16.
 *
 *     struct layout_items items = {.text = "tp8 z1/16"};
 *     while (layout_items_next(&items, &item, why) != LAYOUT_ITEM_NONE)
 *         ... item.key, item.value ...
 *
 * Items are separated by commas, blanks, or both. Each is key=value (blanks around '=' are allowed) or one of the short forms
 * that tables print:
 *
 *     tp8           a key and its number: tp=8
 *     z1, z1/16     zero=1; zero=1 and shard=16
 *     norm+act      recompute=norm+act (full, full:4 and sel too; none is never written)
 *     a2a:4+ring    cp_comm=a2a:4+ring
 *     zb-v          schedule=zb-v
 *     auto          auto=true: dimensions that are not given are searched
 *     ~             the mark of uneven stages; ignored
 *
 * Words joined by '+' are one item; a blank next to '+' is a special error.
 *
 * So "tp=8,pp=8,zero=1" and "tp8 pp8 z1" are the same layout. All readers of layouts use this function; they check keys and
 * values themselves.
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

/* A reader of a text; start with {.text = text}. */
struct layout_items {
    const char *text;
    size_t at;        /* offset of the next item */
    size_t shard_at;  /* offset of the N of a "z1/N", which is the next item; 0: none */
    bool after_comma; /* an item must follow */
};

enum layout_item_found { LAYOUT_ITEM_NONE, LAYOUT_ITEM_READ, LAYOUT_ITEM_WRONG };

/* Reads the next item; LAYOUT_ITEM_NONE at the end. For a wrong item `why` gets the problem and a suggestion, and item->key_at
 * its offset; reading continues after it. */
enum layout_item_found layout_items_next(struct layout_items *items, struct layout_item *item, char why[LAYOUT_ITEM_WHY]);

/* Whether a text begins with a short form of a number: "tp8 pp8". */
bool layout_items_are_brief(const char *text);

#endif
