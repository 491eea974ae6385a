/* megatron_arguments.c - gives each word of a job to its argument, and reports unknown words. */
#include "traces/launch/megatron/megatron_arguments.h"

#include <string.h>

#include "model/base/append.h"
#include "traces/launch/megatron/megatron_mistakes.h"

static bool describes(const struct launch_word *word)
{
    int row = megatron_find(word->name, word->by_dest);
    const char *key = row >= 0 ? megatron_rows[row].key : NULL;
    return key && strncmp(key, "cluster.", 8) != 0;
}

size_t megatron_count(const struct launch_words *words)
{
    size_t n = 0;
    for (size_t i = 0; i < words->n; i++)
        n += describes(&words->items[i]);
    return n;
}

size_t megatron_count_flags(const struct launch_words *words)
{
    size_t n = 0;
    for (size_t i = 0; i < words->n; i++)
        n += !words->items[i].by_dest && !launch_word_sets(&words->items[i]) && describes(&words->items[i]);
    return n;
}

/* --- from words to values --- */

static bool is_truth(const char *text, bool *truth)
{
    static const char *const words[] = {"false", "False", "0", "no", "true", "True", "1", "yes"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *truth = i >= 4;
            return true;
        }
    return false;
}

static bool is_flag(const struct argument_row *row)
{
    return row->type == ARGUMENT_TRUE || row->type == ARGUMENT_FALSE;
}

/* What a word says of a row: flags have no value in a script, a truth in a log; None is nothing. */
static const char *value_of(const struct argument_row *row, const struct launch_word *word)
{
    bool truth, flag = is_flag(row);
    if (!word->value && !word->unknown)
        return flag ? row->type == ARGUMENT_TRUE ? "true" : "false" : NULL;
    if (word->by_dest && (!word->value || strcmp(word->value, "None") == 0))
        return NULL;
    if (!flag)
        return word->value ? word->value : "";
    if (!word->by_dest)
        return row->type == ARGUMENT_TRUE ? "true" : "false";
    return is_truth(word->value, &truth) && truth ? "true" : "false";
}

/* Arguments that msim does not know, in the order in which they stand. */
struct unknown_arguments {
    char list[4096];
    size_t n;
    struct place first;
};

static void add_unknown(struct unknown_arguments *unknown, const struct launch_word *word, bool flag)
{
    const char *meant = flag ? megatron_meant(word->name) : NULL;
    text_append(unknown->list, sizeof unknown->list, " %s%.100s", flag ? "--" : "", word->name);
    if (meant)
        text_append(unknown->list, sizeof unknown->list, " (did you mean --%s?)", meant);
    if (unknown->n++ == 0)
        unknown->first = word->at;
}

static void tell_unknown(const struct unknown_arguments *unknown, bool all, struct diags *diags)
{
    enum { FEW = 6 };
    if (unknown->n && (all || unknown->n <= FEW))
        diag_note(diags, unknown->first, "unknown to msim, left out:%s", unknown->list);
    else if (unknown->n)
        diag_note(diags, unknown->first, "%zu arguments are unknown to msim and left out; -v lists them", unknown->n);
}

/* Behind a flag that has no value, or behind one's value, stands what may be any arguments. */
static bool tell_untold(const struct launch_word *word, bool flag, struct diags *diags)
{
    bool untold = word->unknown && !word->by_dest && (flag || !*word->name);
    if (untold)
        diag_warning(diags, word->at, "further arguments may be here: %s", word->unknown);
    return untold && !*word->name;
}

/* DeepSpeed itself asks its file for the stage of ZeRO, whatever Megatron-DeepSpeed's and accelerate's commands say (from
 * memory); what --with says wins. */
static bool keeps_stage(const struct megatron_value *kept, const struct launch_word *word, const char *text, struct diags *diags)
{
    static const char file[] = "zero_optimization.stage";
    bool by_file = kept->text && kept->spelling && strcmp(kept->spelling, file) == 0;
    bool besides =
        word->spelling && strcmp(word->spelling, file) != 0 && !(word->at.file && strcmp(word->at.file, "--with") == 0);
    if (by_file && besides && !word->unknown && text && strcmp(text, kept->text) != 0)
        diag_warning(diags, word->at,
                     "%s %s is left out: DeepSpeed uses %s of its file's %s; --with \"--zero-stage N\" wins over it",
                     word->spelling, text, kept->text, file);
    return by_file && besides;
}

/* Do words of a framework's configuration stand among these? Its program has flags of its own. */
static bool is_foreign(const struct launch_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (words->items[i].by_dest && words->items[i].spelling)
            return true;
    return false;
}

/* Of an argument that no row has: the script's own, or one written wrong where no other program's flags stand. */
static void read_stranger(const struct launch_word *word, const char *const *ignored, bool foreign,
                          struct unknown_arguments *unknown, struct diags *diags)
{
    bool flag = !word->spelling || *word->spelling == '-';
    if (word->by_dest || megatron_ignores(ignored, word->name) || (flag && !foreign && megatron_refuse(word, diags)))
        return;
    add_unknown(unknown, word, flag);
}

static void read_argument(struct launch_words *words, const struct launch_word *word, int found,
                          struct megatron_arguments *arguments, struct diags *diags)
{
    const struct argument_row *row = &megatron_rows[found];
    const char *text = value_of(row, word);
    bool one = row->type == ARGUMENT_INT || row->type == ARGUMENT_REAL || row->type == ARGUMENT_TEXT;
    if (text && one && word->first) /* positional arguments stand behind */
        text = launch_text(words, text, word->first);
    const char *wrong = megatron_wrong(words, row, word, &text, diags);
    if (found == ARGUMENT_ZERO_STAGE && keeps_stage(&arguments->of[found], word, text, diags))
        return;
    arguments->of[found] = (struct megatron_value){.text = text,
                                                   .unknown = is_flag(row) ? NULL : wrong,
                                                   .spelling = word->spelling ? word->spelling : word->name,
                                                   .at = word->at,
                                                   .by_flag = !word->by_dest,
                                                   .commanded = word->commanded};
    arguments->foreign |= word->by_dest && word->spelling;
    arguments->logged |= word->by_dest && !word->spelling; /* a configuration says how it calls it */
}

void megatron_read(struct launch_words *words, const char *const *ignored, bool all, struct megatron_arguments *arguments,
                   struct diags *diags)
{
    struct unknown_arguments unknown = {.n = 0};
    bool foreign = is_foreign(words);
    for (size_t i = 0; i < words->n; i++) {
        const struct launch_word *word = &words->items[i];
        int found = megatron_find(word->name, word->by_dest);
        if (tell_untold(word, found >= 0 && is_flag(&megatron_rows[found]), diags))
            continue;
        if (word->strange)
            diag_warning(diags, word->at, "%.100s is unknown to msim and left out", word->name);
        else if (found < 0)
            read_stranger(word, ignored, foreign, &unknown, diags);
        else
            read_argument(words, word, found, arguments, diags);
    }
    tell_unknown(&unknown, all, diags);
}
