#include "model/spec/offload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"

enum { AMOUNT_BITS = 10, AMOUNT_MASK = (1 << AMOUNT_BITS) - 1 };

static const enum offload parts[N_OFFLOAD_PARTS] = {OFFLOAD_OPTIMIZER, OFFLOAD_ACTIVATIONS, OFFLOAD_PARAMETERS};
static const char *const words[N_OFFLOAD_PARTS] = {"optimizer", "activations", "parameters"};

const enum offload offload_wholes[N_OFFLOAD_WHOLES] = {
    OFFLOAD_NONE,
    OFFLOAD_OPTIMIZER,
    OFFLOAD_ACTIVATIONS,
    OFFLOAD_OPTIMIZER | OFFLOAD_ACTIVATIONS,
    OFFLOAD_OPTIMIZER | OFFLOAD_PARAMETERS,
    OFFLOAD_OPTIMIZER | OFFLOAD_ACTIVATIONS | OFFLOAD_PARAMETERS,
};

static int shift_of(enum offload part)
{
    return part == OFFLOAD_OPTIMIZER ? 0 : part == OFFLOAD_ACTIVATIONS ? AMOUNT_BITS : 2 * AMOUNT_BITS;
}

int offload_amount(enum offload set, enum offload part)
{
    return (int)set >> shift_of(part) & AMOUNT_MASK;
}

enum offload offload_of(enum offload part, int amount)
{
    return (enum offload)(amount << shift_of(part));
}

bool offload_is_known(int set)
{
    return set >= 0 && set <= OFFLOAD_MOST && offload_amount((enum offload)set, OFFLOAD_OPTIMIZER) <= OFFLOAD_WHOLE &&
           offload_amount((enum offload)set, OFFLOAD_PARAMETERS) <= OFFLOAD_WHOLE;
}

double offload_share(enum offload set, enum offload part)
{
    return offload_amount(set, part) / (double)OFFLOAD_WHOLE;
}

int offload_layers(enum offload set, int layers)
{
    int amount = offload_amount(set, OFFLOAD_ACTIVATIONS);
    if (amount > OFFLOAD_WHOLE)
        return amount - OFFLOAD_WHOLE < layers ? amount - OFFLOAD_WHOLE : layers;
    return (amount * layers + OFFLOAD_WHOLE - 1) / OFFLOAD_WHOLE;
}

int offload_layers_among(enum offload set, int layers, int before, int count)
{
    int leaving = offload_layers(set, layers);
    return layers > 0 ? leaving * (before + count) / layers - leaving * before / layers : 0;
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

bool offload_sets_of(const char *text, enum offload sets[OFFLOAD_SETS], int *n)
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
    for (int parameters = 0; parameters <= OFFLOAD_PARAMETERS; parameters += OFFLOAD_PARAMETERS)
        for (int a = 0; a <= OFFLOAD_WHOLE; a = next_amount(a, step))
            for (int o = parameters ? OFFLOAD_WHOLE : 0; o <= OFFLOAD_WHOLE; o = next_amount(o, step))
                sets[(*n)++] = (enum offload)(parameters + (int)offload_of(OFFLOAD_ACTIVATIONS, a) + o);
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

/* What stands behind the colon; 0: none of that. */
static int amount_of(const char *text, size_t length, enum offload part)
{
    bool counts = part == OFFLOAD_ACTIVATIONS && length > 0 && length <= 3 && strspn(text, "0123456789") == length;
    if (!counts)
        return percent_of(text, length);
    int layers = (int)strtol(text, NULL, 10);
    return layers >= 1 && layers <= OFFLOAD_LAYERS_MAX ? OFFLOAD_WHOLE + layers : 0;
}

static void explain_word(const char *text, size_t length, char *why, size_t size)
{
    static const char *const known[] = {"none", "optimizer", "activations", "parameters"};
    char item[48], hint[192];
    snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), text);
    if (strcmp(item, "none") == 0)
        snprintf(why, size, "'none' stands alone");
    else if (strcmp(item, "auto") == 0)
        snprintf(why, size,
                 "only a search takes auto (all of a part or nothing), or auto:25%% (in such steps, of at least 25 %%)");
    else
        snprintf(why, size, "unknown '%s'; %s", item,
                 name_hint(item, known, sizeof known / sizeof *known,
                           "known are none, and joined by '+' optimizer, activations, parameters, each with an amount where not "
                           "all of it goes, as optimizer:50%; auto in a layout that is auto",
                           hint, sizeof hint));
}

/* One part of `length` characters added to *set; false with a reason. */
static bool parse_part(const char *text, size_t length, int *set, char *why, size_t size)
{
    const char *colon = memchr(text, ':', length);
    size_t word_length = colon ? (size_t)(colon - text) : length;
    int word = word_of(text, word_length);
    if (word < 0) {
        explain_word(text, word_length, why, size);
        return false;
    }
    int amount = colon ? amount_of(colon + 1, length - word_length - 1, parts[word]) : OFFLOAD_WHOLE;
    if (amount == 0) {
        snprintf(why, size, "'%.*s' says no amount of %s; write %s", (int)(length < 48 ? length : 48), text, words[word],
                 parts[word] == OFFLOAD_ACTIVATIONS
                     ? "a share in whole percents (activations:25%) or a number of a stage's layers "
                       "(activations:16)"
                     : "a share in whole percents, as in optimizer:50%");
        return false;
    }
    if (offload_amount((enum offload) * set, parts[word]) > 0) {
        snprintf(why, size, "%s stands there twice", words[word]);
        return false;
    }
    *set |= (int)offload_of(parts[word], amount);
    return true;
}

int offload_parse(const char *text, char *why, size_t size)
{
    char unread[OFFLOAD_WHY];
    int set = 0;
    if (strcmp(text, "none") == 0)
        return OFFLOAD_NONE;
    for (;;) {
        size_t length = strcspn(text, "+");
        if (!parse_part(text, length, &set, why ? why : unread, why ? size : sizeof unread))
            return -1;
        if (text[length] == '\0')
            return set;
        text += length + 1;
    }
}

char *offload_format(enum offload set, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", set == OFFLOAD_NONE ? "none" : "");
    for (int i = 0; i < N_OFFLOAD_PARTS; i++) {
        int amount = offload_amount(set, parts[i]);
        if (amount == 0)
            continue;
        text_append(buffer, size, "%s%s", *buffer ? "+" : "", words[i]);
        if (amount > OFFLOAD_WHOLE)
            text_append(buffer, size, ":%d", amount - OFFLOAD_WHOLE);
        else if (amount < OFFLOAD_WHOLE)
            text_append(buffer, size, ":%d%%", amount);
    }
    return buffer;
}
