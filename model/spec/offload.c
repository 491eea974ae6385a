#include "model/spec/offload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"

static const char *const words[N_OFFLOAD_PARTS] = {
    [OFFLOAD_OPTIMIZER] = "optimizer", [OFFLOAD_ACTIVATIONS] = "activations", [OFFLOAD_PARAMETERS] = "parameters"};

#define ALL                                                                                                                      \
    {                                                                                                                            \
        .percent = OFFLOAD_WHOLE                                                                                                 \
    }
const struct offload offload_wholes[N_OFFLOAD_WHOLES] = {
    {.of = {{0}}},
    {.of = {[OFFLOAD_OPTIMIZER] = ALL}},
    {.of = {[OFFLOAD_ACTIVATIONS] = ALL}},
    {.of = {[OFFLOAD_OPTIMIZER] = ALL, [OFFLOAD_ACTIVATIONS] = ALL}},
    {.of = {[OFFLOAD_OPTIMIZER] = ALL, [OFFLOAD_PARAMETERS] = ALL}},
    {.of = {[OFFLOAD_OPTIMIZER] = ALL, [OFFLOAD_ACTIVATIONS] = ALL, [OFFLOAD_PARAMETERS] = ALL}},
};
#undef ALL

struct offload offload_all(enum offload_part part)
{
    struct offload set = {.of = {{0}}};
    set.of[part].percent = OFFLOAD_WHOLE;
    return set;
}

struct offload offload_join(struct offload a, struct offload b)
{
    for (int i = 0; i < N_OFFLOAD_PARTS; i++)
        if (!offload_has(&a, (enum offload_part)i))
            a.of[i] = b.of[i];
    return a;
}

bool offload_is_known(const struct offload *set)
{
    for (int i = 0; i < N_OFFLOAD_PARTS; i++) {
        struct offload_amount amount = set->of[i];
        int most = i == OFFLOAD_ACTIVATIONS && amount.percent == 0 ? OFFLOAD_LAYERS_MAX : 0;
        if (amount.percent < 0 || amount.percent > OFFLOAD_WHOLE || amount.layers < 0 || amount.layers > most)
            return false;
    }
    return true;
}

double offload_share(const struct offload *set, enum offload_part part)
{
    return set->of[part].percent / (double)OFFLOAD_WHOLE;
}

int offload_layers(const struct offload *set, int layers)
{
    struct offload_amount amount = set->of[OFFLOAD_ACTIVATIONS];
    if (amount.layers > 0)
        return amount.layers < layers ? amount.layers : layers;
    return (amount.percent * layers + OFFLOAD_WHOLE - 1) / OFFLOAD_WHOLE;
}

int offload_layers_among(const struct offload *set, int layers, int before, int count)
{
    int leaving = offload_layers(set, layers);
    return layers > 0 ? leaving * (before + count) / layers - leaving * before / layers : 0;
}

/* --- their order: parameters first, then activations, then states */

enum { AMOUNTS = OFFLOAD_WHOLE + OFFLOAD_LAYERS_MAX + 1 };
static const enum offload_part by_weight[N_OFFLOAD_PARTS] = {OFFLOAD_PARAMETERS, OFFLOAD_ACTIVATIONS, OFFLOAD_OPTIMIZER};

int offload_number(const struct offload *set)
{
    int number = 0;
    for (int i = 0; i < N_OFFLOAD_PARTS; i++) {
        struct offload_amount amount = set->of[by_weight[i]];
        number = number * AMOUNTS + (amount.layers > 0 ? OFFLOAD_WHOLE + amount.layers : amount.percent);
    }
    return number;
}

struct offload offload_of_number(int number)
{
    struct offload set = {.of = {{0}}};
    for (int i = N_OFFLOAD_PARTS - 1; i >= 0; i--, number /= AMOUNTS) {
        int16_t amount = (int16_t)(number % AMOUNTS);
        struct offload_amount *at = &set.of[by_weight[i]];
        *(amount > OFFLOAD_WHOLE ? &at->layers : &at->percent) =
            (int16_t)(amount > OFFLOAD_WHOLE ? amount - OFFLOAD_WHOLE : amount);
    }
    return set;
}

/* --- what a search looks at */

/* The next amount of a search in steps; above OFFLOAD_WHOLE: there is none. */
static int next_amount(int amount, int step)
{
    return amount < OFFLOAD_WHOLE && amount + step > OFFLOAD_WHOLE ? OFFLOAD_WHOLE : amount + step;
}

/* "25%" or "0.25" of `length` characters; 0: neither. */
static int percent_of(const char *text, size_t length)
{
    char number[16], *end;
    if (length == 0 || length >= sizeof number)
        return 0;
    memcpy(number, text, length);
    number[length] = '\0';
    bool fraction = strchr(number, '.') && number[length - 1] != '%';
    double value = strtod(number, &end) * (fraction ? 100 : 1);
    bool is_share = fraction ? *end == '\0' : strcmp(end, "%") == 0;
    if (strspn(number, "0123456789.") < length - !fraction || !is_share || !(value >= 1 - 1e-9 && value <= OFFLOAD_WHOLE + 1e-9))
        return 0;
    return fabs(value - rint(value)) < 1e-9 ? (int)rint(value) : 0;
}

bool offload_sets_of(const char *text, struct offload sets[OFFLOAD_SETS], int *n)
{
    static const char automatic[] = "auto";
    size_t length = sizeof automatic - 1;
    if (strncmp(text, automatic, length) != 0 || (text[length] != '\0' && text[length] != ':'))
        return false;
    int step = text[length] ? percent_of(text + length + 1, strlen(text + length + 1)) : OFFLOAD_WHOLE, of_each = 1;
    for (int i = 0; step > 0 && i < OFFLOAD_WHOLE; i += step)
        of_each++;
    if (step == 0 || of_each * (of_each + 1) > OFFLOAD_SETS)
        return false;
    *n = 0;
    for (int parameters = 0; parameters <= OFFLOAD_WHOLE; parameters += OFFLOAD_WHOLE)
        for (int a = 0; a <= OFFLOAD_WHOLE; a = next_amount(a, step))
            for (int o = parameters ? OFFLOAD_WHOLE : 0; o <= OFFLOAD_WHOLE; o = next_amount(o, step))
                sets[(*n)++] = (struct offload){.of = {[OFFLOAD_OPTIMIZER] = {.percent = (int16_t)o},
                                                       [OFFLOAD_ACTIVATIONS] = {.percent = (int16_t)a},
                                                       [OFFLOAD_PARAMETERS] = {.percent = (int16_t)parameters}}};
    return true;
}

/* --- text */

static int word_of(const char *text, size_t length)
{
    for (int i = 0; i < N_OFFLOAD_PARTS; i++)
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
            return i;
    return -1;
}

/* What stands behind the colon; nothing where it is no amount. */
static struct offload_amount amount_of(const char *text, size_t length, enum offload_part part)
{
    bool counts = part == OFFLOAD_ACTIVATIONS && length > 0 && length <= 3 && strspn(text, "0123456789") == length;
    if (!counts)
        return (struct offload_amount){.percent = (int16_t)percent_of(text, length)};
    long layers = strtol(text, NULL, 10);
    return (struct offload_amount){.layers = (int16_t)(layers <= OFFLOAD_LAYERS_MAX ? layers : 0)};
}

static void explain_word(const char *text, size_t length, char *why, size_t size)
{
    static const char *const known[] = {"none", "optimizer", "activations", "parameters"};
    char item[48], hint[192];
    snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), text);
    if (strcmp(item, "none") == 0)
        snprintf(why, size, "'none' cannot be combined with others");
    else if (strcmp(item, "auto") == 0)
        snprintf(why, size, "auto (all of a part or nothing) and auto:25%% (steps of at least 25 %%) need a search");
    else
        snprintf(why, size, "unknown '%s'; %s", item,
                 name_hint(item, known, sizeof known / sizeof *known,
                           "write none, or optimizer, activations, parameters joined by '+', each with an amount if it is not "
                           "all, as in optimizer:50%; auto only in a layout that is auto",
                           hint, sizeof hint));
}

/* One part of `length` characters added to *set; false with a reason. */
static bool parse_part(const char *text, size_t length, struct offload *set, char *why, size_t size)
{
    const char *colon = memchr(text, ':', length);
    size_t word_length = colon ? (size_t)(colon - text) : length;
    int word = word_of(text, word_length);
    if (word < 0) {
        explain_word(text, word_length, why, size);
        return false;
    }
    enum offload_part part = (enum offload_part)word;
    struct offload given = offload_all(part);
    if (colon)
        given.of[part] = amount_of(colon + 1, length - word_length - 1, part);
    if (!offload_has(&given, part)) {
        snprintf(why, size, "'%.*s' is not an amount of %s; write %s", (int)(length < 48 ? length : 48), text, words[word],
                 part == OFFLOAD_ACTIVATIONS ? "a share in whole percents (activations:25%) or a number of a stage's layers "
                                               "(activations:16)"
                                             : "a share in whole percents, as in optimizer:50%");
        return false;
    }
    if (offload_has(set, part)) {
        snprintf(why, size, "%s is given twice", words[word]);
        return false;
    }
    *set = offload_join(*set, given);
    return true;
}

bool offload_parse(const char *text, struct offload *set, char *why, size_t size)
{
    char unread[OFFLOAD_WHY];
    struct offload found = {.of = {{0}}};
    if (strcmp(text, "none") != 0) {
        for (;;) {
            size_t length = strcspn(text, "+");
            if (!parse_part(text, length, &found, why ? why : unread, why ? size : sizeof unread))
                return false;
            if (text[length] == '\0')
                break;
            text += length + 1;
        }
    }
    *set = found;
    return true;
}

char *offload_format(const struct offload *set, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", offload_is_none(set) ? "none" : "");
    for (int i = 0; i < N_OFFLOAD_PARTS; i++) {
        struct offload_amount amount = set->of[i];
        if (!offload_has(set, (enum offload_part)i))
            continue;
        text_append(buffer, size, "%s%s", *buffer ? "+" : "", words[i]);
        if (amount.layers > 0)
            text_append(buffer, size, ":%d", amount.layers);
        else if (amount.percent < OFFLOAD_WHOLE)
            text_append(buffer, size, ":%d%%", amount.percent);
    }
    return buffer;
}
