/* Which layers attend, to how much, and which ones keep a state instead. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/families/hf_internal.h"

/* A letter of layer_pattern for each layer; 'w' attends to a window. */
struct letters {
    char text[PATTERN_SIZE];
    int n;
    const struct yaml_node *from;
};

/* The letter of a word, by the family's words or those of all; '?': of no kind here. */
static char letter_of(const struct hf_reading *r, const char *word)
{
    const struct yaml_node *own = yaml_find(yaml_find(r->row, "layer_words"), word);
    const struct yaml_node *letter = own ? own : yaml_find(yaml_find(yaml_find(r->rows, "_keys"), "layer_words"), word);
    return letter && letter->kind == YAML_SCALAR ? letter->text[0] : '?';
}

/* From a list with an item for each layer; what a file lists behind the last layer is of prediction layers. */
static void letters_of_list(const struct hf_reading *r, const struct yaml_node *list, int layers, struct letters *to)
{
    to->from = list;
    for (const struct yaml_node *t = list->first; t && to->n < layers; t = t->next, to->n++) {
        to->text[to->n] = letter_of(r, t->kind == YAML_SCALAR ? t->text : "");
        if (to->text[to->n] == '?')
            diag_error(r->diags, t->at,
                       "%s: layer %d is of an unknown kind, '%.40s'; msim reads full_attention, sliding_attention, "
                       "linear_attention and mamba",
                       hf_name(list), to->n, t->kind == YAML_SCALAR ? t->text : "");
    }
}

/* "LLLG", repeated: local and global. */
static void letters_of_word(const struct yaml_node *word, int layers, struct letters *to)
{
    size_t period = strlen(word->text);
    to->from = word;
    for (; period > 0 && to->n < layers; to->n++)
        to->text[to->n] = strchr("Ll", word->text[(size_t)to->n % period]) ? 'w' : 'a';
}

/* The layers that attend, the first of all being number `base`. */
static void letters_of_layers(const struct hf_reading *r, const struct yaml_node *attending, int base, struct letters *to)
{
    to->from = attending;
    for (const struct yaml_node *t = attending->first; t; t = t->next) {
        long layer = t->kind == YAML_SCALAR ? strtol(t->text, NULL, 10) - base : -1;
        if (layer >= 0 && layer < to->n)
            to->text[layer] = 'a';
        else
            diag_error(r->diags, t->at, "%s: there is no such layer; the model has %d", hf_name(attending), to->n);
    }
}

static bool has(const struct letters *letters, const char *set)
{
    return letters->n > 0 && strpbrk(letters->text, set) != NULL;
}

/* How far "one in `every` is full" is from a list: the difference in number first, then layers that are of the other kind. */
static int distance(const struct letters *letters, int every, int *others)
{
    int more = 0;
    *others = 0;
    for (int i = 0; i < letters->n; i++) {
        bool full = letters->text[i] != 'w', said = (i + 1) % every == 0;
        more += full - said;
        *others += full != said;
    }
    return abs(more) > 1 ? letters->n * abs(more) + *others : *others;
}

/* Windows of a list as msim knows them: one layer in n is full. */
static void window_of_letters(struct hf_reading *r, const struct letters *letters)
{
    int best = 0, least = INT_MAX, others = 0;
    hf_remove(r, "window_every");
    if (!has(letters, "w")) {
        hf_remove(r, "window");
        return;
    }
    for (int every = 2; every <= letters->n + 1; every++) {
        int off, far = distance(letters, every, &off);
        if (far < least)
            least = far, best = every, others = off;
    }
    if (best <= letters->n)
        hf_set_integer(r, "window_every", best, letters->from);
    if (others > 0)
        diag_warning(r->diags, letters->from->at,
                     "%s: the full layers are not one in n; msim assumes one in %d, as if %d of %d layers were of the other kind",
                     hf_name(letters->from), best, others, letters->n);
}

static void set_pattern(struct hf_reading *r, struct letters *letters)
{
    for (int i = 0; i < letters->n; i++)
        letters->text[i] = letters->text[i] == 'w' ? 'a' : letters->text[i];
    layer_pattern_shorten(letters->text);
    hf_set_text(r, "layer_pattern", letters->text, letters->from ? letters->from : r->config);
}

/* A family that has a mixer says in its own way which layers attend. */
static void mixed_layers(struct hf_reading *r, struct letters *letters)
{
    const struct yaml_node *indices = hf_take(r, "@attend_at"), *counted = hf_take(r, "@attend_at_1"),
                           *every = hf_take_single(r, "@attend_every");
    int n = (int)hf_integer(r->entry, "layers");
    if (letters->n > 0) {
        set_pattern(r, letters);
        return;
    }
    letters->n = n;
    memset(letters->text, 'm', (size_t)n);
    if (indices || counted)
        letters_of_layers(r, indices ? indices : counted, indices ? 0 : 1, letters);
    else if (hf_number(every) >= 1 && hf_number(every) < PATTERN_SIZE)
        for (int step = (int)hf_number(every), i = step - 1; i < n; i += step)
            letters->text[i] = 'a';
    else
        diag_error(r->diags, r->config->at, "'layer_types' is missing; this model_type needs it");
    set_pattern(r, letters);
}

static void windowed_layers(struct hf_reading *r, const struct letters *letters, const struct yaml_node *every)
{
    if (!hf_find(r->entry, "window") || hf_integer(r->entry, "window") <= 0) {
        hf_remove(r, "window");
        hf_remove(r, "windowed");
    } else if (letters->n > 0) {
        window_of_letters(r, letters);
    } else if (hf_number(every) > 1) {
        hf_set(r, "window_every", every, hf_name(every));
    } else if (hf_number(every) >= 1) {
        hf_remove(r, "window");
    }
    if (!hf_find(r->entry, "window"))
        hf_remove(r, "windowed");
}

void hf_layers(struct hf_reading *r)
{
    struct letters letters = {0};
    const struct yaml_node *list = hf_take(r, "@layers"), *every = hf_take(r, "@window_every");
    int layers = (int)hf_integer(r->entry, "layers");
    bool mixes = hf_find(r->entry, "mixer") != NULL;
    if (layers < 1)
        return;
    if (layers >= PATTERN_SIZE) {
        if (mixes)
            diag_error(r->diags, r->config->at, "num_hidden_layers: a hybrid model has 1 to %d", PATTERN_SIZE - 1);
        return;
    }
    if (list && list->kind == YAML_SEQUENCE && list->first)
        letters_of_list(r, list, layers, &letters);
    else if (every && every->kind == YAML_SCALAR && strpbrk(every->text, "LGlg"))
        letters_of_word(every, layers, &letters);
    if (letters.n > 0 && letters.n < layers) {
        diag_error(r->diags, letters.from->at, "%s: has %d items, and the model %d layers", hf_name(letters.from), letters.n,
                   layers);
        return;
    }
    windowed_layers(r, &letters, every);
    if (mixes && !hf_find(r->entry, "layer_pattern"))
        mixed_layers(r, &letters);
    else if (has(&letters, "mM") && !hf_find(r->entry, "layer_pattern"))
        diag_error(r->diags, letters.from->at, "%s: some layers keep a state, which this model_type has none of",
                   hf_name(letters.from));
    hf_take(r, "@attend_at"), hf_take(r, "@attend_at_1"), hf_take(r, "@attend_every");
}
