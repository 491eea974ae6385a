/* module_pattern.c - compiles and matches patterns of module names. */
#include "traces/launch/megatron/module_pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often counts may repeat in all: the C library writes repetitions out. */
enum { REPEATS_MAX = 1000, TRANSLATED = 8 * MODULE_PATTERN_LENGTH };

struct translation {
    const char *text, *p, *end; /* of Python's, all of it, and what is translated */
    char *to;
    size_t n;
    long repeats;
    char *why;
    size_t size;
};

static bool refuse(struct translation *t, const char *at, const char *what)
{
    snprintf(t->why, t->size, "%s, at letter %zu", what, (size_t)(at - t->text) + 1);
    return false;
}

static void put(struct translation *t, const char *bytes, size_t n)
{
    if (t->n + n < TRANSLATED) {
        memcpy(t->to + t->n, bytes, n);
        t->n += n;
    }
    t->to[t->n] = '\0';
}

/* What a backslash and a letter mean, outside of brackets and within; NULL: no class. */
static const char *class_of(char letter, bool within)
{
    static const struct {
        char letter;
        const char *alone, *within;
    } classes[] = {{'d', "[0-9]", "0-9"},
                   {'D', "[^0-9]", NULL},
                   {'w', "[[:alnum:]_]", "[:alnum:]_"},
                   {'W', "[^[:alnum:]_]", NULL},
                   {'s', "[[:space:]]", "[:space:]"},
                   {'S', "[^[:space:]]", NULL},
                   {'b', "\\b", NULL},
                   {'A', "^", NULL},
                   {'Z', "$", NULL}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].letter == letter)
            return within ? classes[i].within : classes[i].alone;
    return NULL;
}

static bool take_escape(struct translation *t)
{
    char letter = t->p + 1 < t->end ? t->p[1] : '\0';
    const char *class = class_of(letter, false);
    if (!letter || (isalnum((unsigned char)letter) && !class))
        return refuse(t, t->p, "a backslash before what is not known");
    if (class)
        put(t, class, strlen(class));
    else
        put(t, strchr(".[]()*+?{}|^$\\", letter) ? t->p : t->p + 1, strchr(".[]()*+?{}|^$\\", letter) ? 2 : 1);
    t->p += 2;
    return true;
}

/* [a-z\d_.]; a backslash is a letter to POSIX here. */
static bool take_bracket(struct translation *t)
{
    const char *open = t->p;
    put(t, t->p++, 1);
    if (t->p < t->end && *t->p == '^')
        put(t, t->p++, 1);
    if (t->p < t->end && *t->p == ']')
        put(t, t->p++, 1);
    while (t->p < t->end && *t->p != ']') {
        char next = t->p + 1 < t->end ? t->p[1] : '\0';
        const char *class = *t->p == '\\' ? class_of(next, true) : NULL;
        bool special = *t->p == '[' && strchr(":.=", next);
        if (special || (*t->p == '\\' && !class && (!ispunct((unsigned char)next) || strchr("]^-", next))))
            return refuse(t, t->p, "what brackets hold is not known");
        if (class)
            put(t, class, strlen(class));
        else
            put(t, t->p + (*t->p == '\\'), 1);
        t->p += *t->p == '\\' ? 2 : 1;
    }
    if (t->p >= t->end)
        return refuse(t, open, "a bracket that never closes");
    put(t, t->p++, 1);
    return true;
}

/* {2}, {1,}, {1,3} */
static bool take_count(struct translation *t)
{
    char *end;
    const char *open = t->p;
    long low = isdigit((unsigned char)t->p[1]) ? strtol(t->p + 1, &end, 10) : -1, high = low;
    if (low >= 0 && *end == ',')
        high = isdigit((unsigned char)end[1]) ? strtol(end + 1, &end, 10) : (end++, low + 1);
    if (low < 0 || *end != '}' || end >= t->end)
        return refuse(t, open, "a brace that counts nothing");
    t->repeats *= high > 1 ? high < REPEATS_MAX ? high : REPEATS_MAX + 1 : 1;
    if (t->repeats > REPEATS_MAX)
        return refuse(t, open, "it repeats too often");
    put(t, open, (size_t)(end + 1 - open));
    t->p = end + 1;
    return true;
}

static bool take_group(struct translation *t)
{
    const char *open = t->p++, *named;
    put(t, "(", 1);
    if (t->p >= t->end || *t->p != '?')
        return true;
    if (t->p + 1 < t->end && t->p[1] == ':') {
        t->p += 2;
        return true;
    }
    named = t->p + 2 < t->end && t->p[1] == 'P' && t->p[2] == '<' ? memchr(t->p, '>', (size_t)(t->end - t->p)) : NULL;
    if (!named)
        return refuse(t, open, "a look ahead or behind, or a flag, which msim does not follow here");
    t->p = named + 1;
    return true;
}

/* How much a repetition takes says nothing of whether there is a match. */
static bool pass_manner(struct translation *t)
{
    if (t->p < t->end && *t->p == '+')
        return refuse(t, t->p, "a repetition that gives nothing back");
    t->p += t->p < t->end && *t->p == '?';
    return true;
}

static bool translate(struct translation *t)
{
    while (t->p < t->end) {
        bool repeats = strchr("*+?{", *t->p) != NULL, taken = true;
        if (*t->p == '\\')
            taken = take_escape(t);
        else if (*t->p == '[')
            taken = take_bracket(t);
        else if (*t->p == '(')
            taken = take_group(t);
        else if (*t->p == '{')
            taken = take_count(t);
        else
            put(t, t->p++, 1);
        if (!taken || (repeats && !pass_manner(t)))
            return false;
    }
    return true;
}

/* From p to end, as all of a name or (`front`) as its beginning. */
static bool compile(const char *text, const char *p, const char *end, bool front, int flags, regex_t *to, char *why, size_t size)
{
    char translated[TRANSLATED + 8];
    struct translation t = {.text = text, .p = p, .end = end, .to = translated, .repeats = 1, .why = why, .size = size};
    put(&t, "^(", 2);
    if (!translate(&t))
        return false;
    put(&t, front ? ")" : ")$", front ? 1 : 2);
    int wrong = t.n + 2 >= TRANSLATED ? REG_ESPACE : regcomp(to, translated, REG_EXTENDED | REG_NOSUB | flags);
    if (wrong)
        snprintf(why, size, "it is no pattern");
    return wrong == 0;
}

/* Behind the parenthesis that closes the one at p; NULL: none does. */
static const char *group_end(const char *p, const char *end)
{
    int depth = 0;
    for (bool bracket = false; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (bracket)
            bracket = *p != ']';
        else if (*p == '[')
            bracket = true;
        else if (*p == '(')
            depth++;
        else if (*p == ')' && --depth == 0)
            return p + 1;
    }
    return NULL;
}

/* Is there a choice that stands in no group? Looks in front belong to its first part alone. */
static bool has_choice(const char *p, const char *end)
{
    while (p < end && *p != '|') {
        const char *behind = *p == '(' ? group_end(p, end) : p + 1 + (*p == '\\');
        p = behind ? behind : end;
    }
    return p < end;
}

static void free_looks(struct module_pattern *pattern)
{
    for (int i = 0; i < pattern->n_looks; i++)
        regfree(&pattern->looks[i]);
}

bool module_pattern_read(const char *text, struct module_pattern *pattern, char *why, size_t size)
{
    const char *p = text, *end = text + strnlen(text, MODULE_PATTERN_LENGTH + 1);
    int flags = 0;
    *pattern = (struct module_pattern){0};
    if (end - text > MODULE_PATTERN_LENGTH) {
        snprintf(why, size, "it is longer than %d letters", MODULE_PATTERN_LENGTH);
        return false;
    }
    if (strncmp(p, "(?i)", 4) == 0) {
        flags = REG_ICASE;
        p += 4;
    }
    p += *p == '^';
    for (int i = 0; i < MODULE_PATTERN_LOOKS && (strncmp(p, "(?!", 3) == 0 || strncmp(p, "(?=", 3) == 0); i++) {
        const char *behind = group_end(p, end);
        if (!behind || has_choice(behind, end)) {
            snprintf(why, size, "a look ahead that msim does not follow, at letter %zu", (size_t)(p - text) + 1);
            free_looks(pattern);
            return false;
        }
        pattern->denied[i] = p[2] == '!';
        if (!compile(text, p + 3, behind - 1, true, flags, &pattern->looks[i], why, size)) {
            free_looks(pattern);
            return false;
        }
        pattern->n_looks++;
        p = behind;
    }
    if (compile(text, p, end, false, flags, &pattern->whole, why, size))
        return true;
    free_looks(pattern);
    return false;
}

bool module_pattern_matches(const struct module_pattern *pattern, const char *name)
{
    for (int i = 0; i < pattern->n_looks; i++)
        if ((regexec(&pattern->looks[i], name, 0, NULL, 0) == 0) == pattern->denied[i])
            return false;
    return regexec(&pattern->whole, name, 0, NULL, 0) == 0;
}

void module_pattern_free(struct module_pattern *pattern)
{
    free_looks(pattern);
    regfree(&pattern->whole);
}
