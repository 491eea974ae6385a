#include "traces/launch/job/launch_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool launch_word_sets(const struct launch_word *word)
{
    return word->spelling && *word->spelling != '-' && strcmp(word->spelling, word->name) == 0;
}

void launch_words_add(struct launch_words *words, struct launch_word word)
{
    words->items = memory_grow(words->items, &words->capacity, words->n + 1, sizeof *words->items);
    words->items[words->n++] = word;
}

void launch_words_free(struct launch_words *words)
{
    free(words->items);
    arena_free(&words->arena);
    *words = (struct launch_words){0};
}

char *launch_text(struct launch_words *words, const char *bytes, size_t n)
{
    char *text = arena_new(&words->arena, n + 1, 1);
    memcpy(text, bytes, n);
    return text;
}

/* Behind the plus signs of key.of.a.configuration=value, as Hydra and NeMo-Run take it; NULL where a text is none. */
static const char *override_of(const char *text)
{
    const char *name = text + strspn(text, "+"), *p = name;
    int parts = isalpha((unsigned char)*p) != 0;
    while (isalnum((unsigned char)*p) || *p == '_' || *p == '.')
        parts += *p++ == '.';
    return parts > 1 && *p == '=' ? name : NULL;
}

static bool has_dashes(const char *text)
{
    return text[0] == '-' && text[1] == '-' && isalpha((unsigned char)text[2]);
}

/* A program of Python, or one of those that are installed, or the configuration that it reads. */
static bool is_program(const struct launch_field *fields, size_t i)
{
    static const char *const endings[] = {".py", ".yaml", ".yml", ".json", ".toml"};
    static const char *const installed[] = {"nemo", "maxtext", "llamafactory-cli"};
    const char *text = fields[i].text, *dot = strrchr(text, '.');
    if (i > 0 && strcmp(fields[i - 1].text, "-m") == 0)
        return true;
    for (size_t k = 0; k < sizeof installed / sizeof installed[0]; k++)
        if (strcmp(text, installed[k]) == 0)
            return true;
    for (size_t k = 0; dot && !strchr(text, '=') && k < sizeof endings / sizeof endings[0]; k++)
        if (strcmp(dot, endings[k]) == 0)
            return true;
    return false;
}

static bool looks_like_setting(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && islower((unsigned char)text[0]) && text[n] == '=';
}

/* From where on key=value sets a key: behind the last program, or configuration, that has any behind it. What stands in front are
 * variables (env A=1) and arguments of what starts it. Words without a program, such as --with's, set keys from the beginning. */
static size_t settings_begin(const struct launch_field *fields, size_t n)
{
    size_t behind = 0, last = n;
    while (last > 0 && !looks_like_setting(fields[last - 1].text))
        last--;
    for (size_t i = 0; i < last; i++)
        if (is_program(fields, i))
            behind = i + 1;
    bool bare = n && (fields[0].text[0] == '-' || override_of(fields[0].text) || looks_like_setting(fields[0].text));
    return behind || bare ? behind : n;
}

/* key=value, where it is not the value of the flag in front: MaxText's keys have no points. */
static bool is_setting(const struct launch_field *fields, size_t i)
{
    bool of_flag = i > 0 && fields[i - 1].text[0] == '-' && !strchr(fields[i - 1].text, '=');
    return !of_flag && looks_like_setting(fields[i].text);
}

/* `settings`: from where on key=value is one. */
static bool is_flag(const struct launch_field *fields, size_t i, size_t settings)
{
    return has_dashes(fields[i].text) || override_of(fields[i].text) || (i >= settings && is_setting(fields, i));
}

/* How many of a flag's n fields are its value: behind it may stand more arguments from outside, such as $EXTRA. */
static size_t known_values(const struct launch_field *fields, size_t n)
{
    while (n > 1 && fields[n - 1].unknown && strcmp(fields[n - 1].text, UNKNOWN_TEXT) == 0)
        n--;
    return n;
}

/* What follows a flag, as one text. */
static void take_values(struct launch_words *words, struct launch_word *word, const struct launch_field *fields, size_t n)
{
    size_t length = 0, used = 0;
    for (size_t i = 0; i < n; i++)
        length += strlen(fields[i].text) + 1;
    char *value = arena_new(&words->arena, length + 1, 1);
    for (size_t i = 0; i < n; i++) {
        size_t part = strlen(fields[i].text);
        if (used)
            value[used++] = ' ';
        memcpy(value + used, fields[i].text, part);
        used += part;
        if (fields[i].unknown && !word->unknown)
            word->unknown = fields[i].unknown;
    }
    word->value = value;
    word->first = n > 1 ? strlen(fields[0].text) : 0;
}

/* A flag's name. Of --table.some-key, which is the key table.some_key, it is the key's. */
static const char *name_of_flag(struct launch_words *words, const char *spelling)
{
    const char *dot = strchr(spelling, '.');
    if (!dot || !strchr(dot, '-'))
        return spelling + strlen("--");
    char *name = launch_text(words, spelling + strlen("--"), strlen(spelling) - strlen("--"));
    for (char *p = strchr(name, '.'); p && *p; p++)
        *p = *p == '-' ? '_' : *p;
    return name;
}

void launch_words_of_fields(struct launch_words *words, const struct launch_field *fields, size_t n)
{
    size_t settings = settings_begin(fields, n);
    for (size_t i = 0; i < n; i++) {
        if (!is_flag(fields, i, settings))
            continue;
        const char *spelling = fields[i].text, *equals = strchr(spelling, '=');
        struct launch_word word = {.spelling = spelling, .at = fields[i].at, .unknown = equals ? fields[i].unknown : NULL};
        size_t values = 0, known = 0;
        if (equals) {
            word.spelling = launch_text(words, spelling, (size_t)(equals - spelling));
            word.value = equals + 1;
        } else {
            while (i + 1 + values < n && !is_flag(fields, i + 1 + values, settings) &&
                   !(values > 0 && is_program(fields, i + 1 + values))) /* --nnodes 2 $FOLDER/train.py */
                values++;
            known = known_values(&fields[i + 1], values);
            if (known)
                take_values(words, &word, &fields[i + 1], known);
        }
        word.name = *word.spelling == '-'   ? name_of_flag(words, word.spelling)
                    : override_of(spelling) ? word.spelling + strspn(word.spelling, "+")
                                            : word.spelling;
        launch_words_add(words, word);
        for (; known < values; known++)
            launch_words_add(words, (struct launch_word){
                                        .name = "", .unknown = fields[i + 1 + known].unknown, .at = fields[i + 1 + known].at});
        i += values;
    }
}

const char *launch_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
