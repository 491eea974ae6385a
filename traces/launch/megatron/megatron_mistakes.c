/* megatron_mistakes.c - reports flags and values that Megatron-LM would refuse. */
#include "traces/launch/megatron/megatron_mistakes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "traces/launch/job/name_typo.h"

/* --- names --- */

const char *megatron_meant(const char *name)
{
    const char *flags[N_ARGUMENTS];
    for (int i = 0; i < N_ARGUMENTS; i++)
        flags[i] = megatron_rows[i].flag;
    const char *near = strlen(name) < 6 ? NULL : nearest_name(name, flags, N_ARGUMENTS);
    size_t length = strlen(name), found = near ? strlen(near) : 0;
    return near && found + 2 >= length && length + 2 >= found && strncmp(near, name, 3) == 0 ? near : NULL;
}

/* Rows without a release are other frameworks' words, which no flag of a script is. */
bool megatron_refuse(const struct launch_word *word, struct diags *diags)
{
    const char *meant = NULL;
    int nearest = 0;
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        int typo = row->key && row->since ? name_typo(word->name, row->flag, false) : 0;
        if (typo > 0 && (!meant || typo < nearest)) {
            meant = row->flag;
            nearest = typo;
        }
    }
    if (meant)
        diag_error(diags, word->at, "--%.100s is no argument; did you mean --%s?", word->name, meant);
    return meant != NULL;
}

/* --- values --- */

static const char *choice_named(const struct argument_row *row, const char *text)
{
    for (int i = 0; row->accepts[i]; i++)
        if (strcmp(row->accepts[i], text) == 0)
            return row->accepts[i];
    return NULL;
}

/* A configuration's or a log's word for a choice, whatever its capitals, or behind the name of an enumeration
 * ("AttnBackend.auto"). */
static const char *choice_meant(const struct argument_row *row, const char *text)
{
    const char *dot = strrchr(text, '.'), *word = dot ? dot + 1 : text;
    for (int i = 0; row->accepts[i]; i++)
        if (strcasecmp(row->accepts[i], word) == 0)
            return row->accepts[i];
    return NULL;
}

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

static const char *near_choice(const struct argument_row *row, const char *text)
{
    size_t n = 0;
    while (row->accepts[n])
        n++;
    return nearest_name(text, row->accepts, n);
}

static const char *refusal(struct launch_words *words, const struct argument_row *row, const char *text)
{
    char why[320];
    const char *near = near_choice(row, text);
    snprintf(why, sizeof why, "'%.40s' is not one of ", text);
    for (int i = 0; row->accepts[i]; i++)
        text_append(why, sizeof why, "%s%s", i ? ", " : "", row->accepts[i]);
    if (near)
        text_append(why, sizeof why, " (did you mean '%s'?)", near);
    return launch_text(words, why, strlen(why));
}

/* Plain yes and no switch what they are said of; with what is left to the program. */
static const char *wrong_key(struct launch_words *words, const struct argument_row *row, const struct launch_word *word,
                             const char **text, struct diags *diags)
{
    static const char *const no[] = {"", "false", "False", "no", "off", "0", "null", "none", "None"};
    static const char *const yes[] = {"true", "True", "auto"};
    const char *meant = choice_meant(row, *text);
    if (meant || is_one_of(*text, no, sizeof no / sizeof no[0])) {
        *text = meant;
        return NULL;
    }
    if (is_one_of(*text, yes, sizeof yes / sizeof yes[0]))
        return NULL;
    if (word->spelling && near_choice(row, *text)) /* a log's program took it */
        return refusal(words, row, *text);
    if (row->map != MAP_CHOICE) { /* those are reported where they are read */
        diag_warning(diags, word->at, "%.60s=%.40s is unknown to msim and left out", word->spelling ? word->spelling : word->name,
                     *text);
        *text = NULL;
    }
    return NULL;
}

const char *megatron_wrong(struct launch_words *words, const struct argument_row *row, const struct launch_word *word,
                           const char **text, struct diags *diags)
{
    bool one = row->type == ARGUMENT_INT || row->type == ARGUMENT_REAL || row->type == ARGUMENT_TEXT;
    if (word->unknown || !one)
        return word->unknown;
    if (!word->by_dest && !word->value) {
        *text = "";
        return "no value follows it";
    }
    if (!*text || !row->accepts || choice_named(row, *text))
        return NULL;
    if (!word->by_dest)
        return refusal(words, row, *text);
    return wrong_key(words, row, word, text, diags);
}
