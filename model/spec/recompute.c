#include "model/spec/recompute.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"

#define FIRST_MODULE_BIT 2
#define ALL_MODULES      (((1 << N_RECOMPUTE_MODULES) - 1) << FIRST_MODULE_BIT)

const char *const recompute_words[N_RECOMPUTES + N_RECOMPUTE_MODULES + 1] = {
    "none", "selective", "full", "core_attn", "layernorm", "mla_up_proj", "mlp_act", "moe_act", "mlp", "shared_experts", "moe"};
/* The brief words, of selective (the other two have theirs) and by module. */
static const char SELECTIVE[] = "sel";
static const char *const BRIEF[N_RECOMPUTE_MODULES] = {"attn", "norm", "mla", "act", "moe_act", "mlp", "shared", "moe"};

static const char *const OF_WORDS[] = {[RECOMPUTE_FIRST] = "", [RECOMPUTE_EVERY] = "every", [RECOMPUTE_GROUPS] = "groups"};

bool recompute_is_known(struct recompute r)
{
    int what = (int)r.what;
    if (what < 0 || (what >= N_RECOMPUTES && (what & ~ALL_MODULES) != 0))
        return false;
    if (r.of == RECOMPUTE_ALL)
        return r.layers == 0;
    return r.what == RECOMPUTE_FULL && r.of > RECOMPUTE_ALL && r.of <= RECOMPUTE_GROUPS && r.layers >= 1 &&
           r.layers <= RECOMPUTE_LAYERS_MAX;
}

/* --- as numbers: what, then of which layers, then of how many */

enum { WHATS = 1 << (FIRST_MODULE_BIT + N_RECOMPUTE_MODULES), COUNTS = RECOMPUTE_LAYERS_MAX + 1 };

int recompute_number(struct recompute r)
{
    return (int)r.what + WHATS * (COUNTS * (int)r.of + r.layers);
}

struct recompute recompute_of_number(int number)
{
    int layers = number / WHATS;
    return (struct recompute){(enum recompute_what)(number % WHATS), (enum recompute_of)(layers / COUNTS), layers % COUNTS};
}

/* --- layers */

int recompute_layers(struct recompute r, int layers)
{
    switch (r.of) {
    case RECOMPUTE_FIRST: return r.layers < layers ? r.layers : layers;
    case RECOMPUTE_EVERY: return layers / r.layers;
    default: return r.what == RECOMPUTE_NONE ? 0 : layers;
    }
}

int recompute_checkpoints(struct recompute r, int layers)
{
    return r.of == RECOMPUTE_GROUPS ? (layers + r.layers - 1) / r.layers : recompute_layers(r, layers);
}

int recompute_kept_behind(struct recompute r, int layers)
{
    return r.of == RECOMPUTE_EVERY ? layers % r.layers : layers - recompute_layers(r, layers);
}

int recompute_group(struct recompute r, int layers, int index, int *first)
{
    *first = index;
    switch (r.of) {
    case RECOMPUTE_FIRST: return index < r.layers;
    case RECOMPUTE_EVERY: return (index + 1) % r.layers == 0;
    case RECOMPUTE_GROUPS: *first = index - index % r.layers; return layers - *first < r.layers ? layers - *first : r.layers;
    default: return r.what != RECOMPUTE_NONE;
    }
}

/* --- text */

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(word, text, length) == 0;
}

/* The number of the word of `length` characters, in full or brief; -1: none. */
static int word_of(const char *text, size_t length)
{
    for (int i = 0; recompute_words[i]; i++)
        if (is_word(text, length, recompute_words[i]) || (i >= N_RECOMPUTES && is_word(text, length, BRIEF[i - N_RECOMPUTES])))
            return i;
    return is_word(text, length, SELECTIVE) ? (int)RECOMPUTE_SELECTIVE : -1;
}

/* Of the first `length` characters of a text, which are none of the modules. */
static void explain(const char *text, size_t length, char *why, size_t size)
{
    char item[48], hint[224];
    snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), text);
    if (strpbrk(item, " \t")) {
        snprintf(why, size, "'%s' has a blank; join words with '+' only, as in layernorm+mlp_act", item);
        return;
    }
    if (word_of(text, length) >= 0) {
        snprintf(why, size, "'%s' cannot be combined with others", item);
        return;
    }
    snprintf(why, size, "%s%s%s; %s", length ? "'" : "a word is missing", item, length ? "' is unknown" : "",
             name_hint(item, recompute_words, N_RECOMPUTES + N_RECOMPUTE_MODULES,
                       "write none, selective, full, or core_attn, layernorm, mla_up_proj, mlp_act, moe_act, mlp, "
                       "shared_experts, moe joined by '+'; for some layers, full:4, full:every2, full:groups4",
                       hint, sizeof hint));
}

/* The layers behind "full:"; false where there are none. */
static bool parse_layers(const char *text, struct recompute *r)
{
    char *end;
    enum recompute_of of = RECOMPUTE_FIRST;
    for (int i = RECOMPUTE_EVERY; i <= RECOMPUTE_GROUPS; i++)
        if (strncmp(text, OF_WORDS[i], strlen(OF_WORDS[i])) == 0)
            of = (enum recompute_of)i;
    text += strlen(OF_WORDS[of]);
    long layers = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end != '\0' || layers < 1 || layers > RECOMPUTE_LAYERS_MAX)
        return false;
    bool all = layers == 1 && of != RECOMPUTE_FIRST; /* every layer, each by itself */
    *r = all ? (struct recompute){.what = RECOMPUTE_FULL} : (struct recompute){RECOMPUTE_FULL, of, (int)layers};
    return true;
}

static bool parse_modules(const char *item, struct recompute *r, char *why, size_t size)
{
    int modules = 0;
    for (;;) {
        size_t length = strcspn(item, "+");
        int word = word_of(item, length);
        if (word < N_RECOMPUTES) {
            if (why)
                explain(item, length, why, size);
            return false;
        }
        modules |= 1 << (word - N_RECOMPUTES + FIRST_MODULE_BIT);
        if (item[length] == '\0')
            break;
        item += length + 1;
    }
    *r = (struct recompute){.what = (enum recompute_what)modules};
    return true;
}

bool recompute_parse(const char *text, struct recompute *recompute, char *why, size_t size)
{
    static const char full[] = "full:", selective[] = "selective:";
    int word = word_of(text, strlen(text));
    if (word >= 0 && word < N_RECOMPUTES) {
        *recompute = (struct recompute){.what = (enum recompute_what)word};
        return true;
    }
    if (strncmp(text, full, sizeof full - 1) == 0) {
        if (parse_layers(text + sizeof full - 1, recompute))
            return true;
        if (why)
            snprintf(why, size,
                     "'%.40s' has no number of layers; write full:4 (the first four of each virtual stage), full:every2 or "
                     "full:groups4",
                     text);
        return false;
    }
    bool listed = strncmp(text, selective, sizeof selective - 1) == 0;
    const char *modules = listed ? text + sizeof selective - 1 : text, *colon = strchr(modules, ':');
    if (colon || (listed && isdigit((unsigned char)*modules))) {
        if (why)
            snprintf(why, size,
                     "'%.40s': a number of layers applies to whole layers only, as in full:4; modules are repeated in all layers",
                     text);
        return false;
    }
    return parse_modules(modules, recompute, why, size);
}

/* ":4", ":every2"; nothing of all. */
static char *append_layers(struct recompute r, char *buffer, size_t size)
{
    if (r.of != RECOMPUTE_ALL)
        text_append(buffer, size, ":%s%d", OF_WORDS[r.of], r.layers);
    return buffer;
}

char *recompute_format(struct recompute r, char *buffer, size_t size)
{
    int what = (int)r.what;
    snprintf(buffer, size, "%s", what < N_RECOMPUTES ? recompute_words[what] : "");
    for (int i = 0; i < N_RECOMPUTE_MODULES; i++)
        if (what >= N_RECOMPUTES && what & 1 << (i + FIRST_MODULE_BIT))
            text_append(buffer, size, "%s%s", *buffer ? "+" : "", recompute_words[N_RECOMPUTES + i]);
    return append_layers(r, buffer, size);
}

char *recompute_brief(struct recompute r, char *buffer, size_t size)
{
    if ((int)r.what < N_RECOMPUTES && r.what != RECOMPUTE_SELECTIVE)
        return recompute_format(r, buffer, size);
    snprintf(buffer, size, "%s", r.what == RECOMPUTE_SELECTIVE ? SELECTIVE : "");
    for (int i = 0; i < N_RECOMPUTE_MODULES; i++)
        if ((int)r.what & 1 << (i + FIRST_MODULE_BIT))
            text_append(buffer, size, "%s%s", *buffer ? "+" : "", BRIEF[i]);
    return buffer;
}
