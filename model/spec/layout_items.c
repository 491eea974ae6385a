#include "model/spec/layout_items.h"

#include <stdio.h>
#include <string.h>

#include "model/base/units.h"
#include "model/spec/cp_comm.h"
#include "model/spec/layout_dimensions.h"
#include "model/spec/recompute.h"

#define BLANKS    " \t\r\n"
#define UNEVEN    "~"
#define KEY_CHARS "abcdefghijklmnopqrstuvwxyz_"
#define DIGITS    "0123456789"

/* What stands alone in a text, and where. */
struct word {
    char text[LAYOUT_VALUE_SIZE];
    size_t at;
};

static void item_set(struct layout_item *item, const char *key, const char *value, size_t key_at, size_t value_at)
{
    snprintf(item->key, sizeof item->key, "%s", key);
    snprintf(item->value, sizeof item->value, "%s", value);
    item->key_at = key_at;
    item->value_at = value_at;
}

/* --- what is short for an item --- */

/* Letters before the number of "tp8"; 0 where the word is not of that form. */
static size_t letters_of_number(const char *word)
{
    size_t letters = strspn(word, KEY_CHARS), digits = strspn(word + letters, DIGITS);
    return digits > 0 && word[letters + digits] == '\0' ? letters : 0;
}

static bool read_number(const struct word *word, struct layout_item *item)
{
    size_t letters = letters_of_number(word->text);
    if (letters == 0 || letters >= sizeof item->key)
        return false;
    char key[LAYOUT_KEY_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)letters, word->text);
    const struct layout_dimension_row *zero = &layout_dimensions[DIMENSION_ZERO];
    item_set(item, strcmp(key, zero->brief) == 0 ? zero->word : key, word->text + letters, word->at, word->at + letters);
    return true;
}

/* "z1/16": the stage now, the ranks it shards over next. */
static bool read_sharding(struct layout_items *items, const struct word *word, struct layout_item *item)
{
    size_t digits = strspn(word->text + 1, DIGITS), slash = 1 + digits;
    size_t ranks = word->text[0] == 'z' && digits > 0 && word->text[slash] == '/' ? strspn(word->text + slash + 1, DIGITS) : 0;
    if (ranks == 0 || word->text[slash + 1 + ranks] != '\0')
        return false;
    char stage[LAYOUT_VALUE_SIZE];
    snprintf(stage, sizeof stage, "%.*s", (int)digits, word->text + 1);
    item_set(item, "zero", stage, word->at, word->at + 1);
    items->shard_at = word->at + slash + 1;
    return true;
}

/* The key of a value that names itself; NULL. "none" could be of several. */
static const char *key_of_word(const char *word)
{
    struct recompute recompute;
    if (strcmp(word, "none") == 0)
        return NULL;
    if (cp_comm_parse(word, NULL, 0) >= 0)
        return "cp_comm";
    if (recompute_parse(word, &recompute, NULL, 0))
        return "recompute";
    return schedule_parse(word) >= 0 ? "schedule" : NULL;
}

/* Writes which words are possible instead of an unknown one. */
static void explain_word(const char *word, char *why)
{
    static const char form[] = "write for example tp=8,pp=8,vpp=6,mb=1, or tp8 pp8 vpp6 mb1, or auto, or auto,pp=2";
    enum { N_OTHERS = 4, N_NAMES = N_OTHERS + N_RECOMPUTES + N_RECOMPUTE_MODULES };
    const char *names[N_NAMES + N_SCHEDULES] = {"auto", "ring", "all_gather", "ulysses"};
    char reason[RECOMPUTE_WHY], hint[160];
    struct recompute recompute;
    if (strncmp(word, "a2a", 3) == 0 && cp_comm_parse(word, reason, sizeof reason) < 0)
        snprintf(why, LAYOUT_ITEM_WHY, "cp_comm=%.40s: %s", word, reason);
    else if (strpbrk(word, "+:") && !recompute_parse(word, &recompute, reason, sizeof reason))
        snprintf(why, LAYOUT_ITEM_WHY, "recompute=%.40s: %s", word, reason);
    else if (strcmp(word, "none") == 0)
        snprintf(why, LAYOUT_ITEM_WHY, "'none' is ambiguous; write recompute=none, schedule=none or offload=none");
    else {
        memcpy(names + N_OTHERS, recompute_words, (N_NAMES - N_OTHERS) * sizeof *names);
        memcpy(names + N_NAMES, schedule_names, N_SCHEDULES * sizeof *names);
        snprintf(why, LAYOUT_ITEM_WHY, "'%.40s' is neither key=value nor a short form of one; %s", word,
                 name_hint(word, names, sizeof names / sizeof names[0], form, hint, sizeof hint));
    }
}

static enum layout_item_found read_word(struct layout_items *items, const struct word *word, struct layout_item *item, char *why)
{
    const char *key = key_of_word(word->text);
    if (strcmp(word->text, "auto") == 0)
        item_set(item, "auto", "true", word->at, word->at);
    else if (key)
        item_set(item, key, word->text, word->at, word->at);
    else if (!read_number(word, item) && !read_sharding(items, word, item)) {
        explain_word(word->text, why);
        return LAYOUT_ITEM_WRONG;
    }
    return LAYOUT_ITEM_READ;
}

/* --- items --- */

static enum layout_item_found wrong(struct layout_item *item, size_t at)
{
    item_set(item, "", "", at, at);
    return LAYOUT_ITEM_WRONG;
}

static bool fits(const char *start, size_t length, size_t room, char *why)
{
    if (length >= room)
        snprintf(why, LAYOUT_ITEM_WHY, "'%.40s...' is too long for a key=value", start);
    return length < room;
}

/* Where a text ends whose words have a '+' between them and blanks beside that: "norm + act". `end` is that of the
 * first without blanks, and of all where nothing is joined to it. */
static size_t end_of_joined(const char *text, size_t end)
{
    for (;;) {
        size_t next = end + strspn(text + end, BLANKS);
        bool joins = text[next] == '+' || (text[end - 1] == '+' && !strchr("," UNEVEN, text[next])); /* nor the end */
        if (!joins)
            return end;
        end = next + strcspn(text + next, BLANKS ",");
    }
}

/* Is what begins at `value`, and is read up to its first blank, one of them? Then it is passed over whole. */
static bool is_parted(struct layout_items *items, size_t value, char *why)
{
    size_t end = items->at > value ? end_of_joined(items->text, items->at) : items->at, n = 0;
    if (end == items->at)
        return false;
    char joined[LAYOUT_VALUE_SIZE];
    for (size_t i = value; i < end && n + 1 < sizeof joined; i++)
        if (!strchr(BLANKS, items->text[i]))
            joined[n++] = items->text[i];
    joined[n] = '\0';
    snprintf(why, LAYOUT_ITEM_WHY, "'%.*s' has a blank next to a '+', but blanks separate items; write %.80s",
             (int)(end - value < 80 ? end - value : 80), items->text + value, joined);
    items->at = end;
    return true;
}

/* "=value", from the '=' at items->at on, behind a key of `length` characters. */
static enum layout_item_found read_pair(struct layout_items *items, size_t key_at, size_t length, struct layout_item *item,
                                        char *why)
{
    const char *text = items->text;
    size_t value_at = items->at + 1 + strspn(text + items->at + 1, BLANKS), value_length = strcspn(text + value_at, BLANKS ",");
    items->at = value_at + value_length;
    if (length == 0) {
        snprintf(why, LAYOUT_ITEM_WHY, "'=%.40s' is not a key=value: it has no key", text + value_at);
        return wrong(item, key_at);
    }
    if (is_parted(items, value_at, why))
        return wrong(item, value_at);
    if (!fits(text + key_at, length, sizeof item->key, why) || !fits(text + key_at, value_length, sizeof item->value, why))
        return wrong(item, key_at);
    char key[LAYOUT_KEY_SIZE], value[LAYOUT_VALUE_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)length, text + key_at);
    snprintf(value, sizeof value, "%.*s", (int)value_length, text + value_at);
    item_set(item, key, value, key_at, value_at);
    return LAYOUT_ITEM_READ;
}

static enum layout_item_found read_item(struct layout_items *items, struct layout_item *item, char *why)
{
    const char *text = items->text;
    size_t start = items->at, length = strcspn(text + start, BLANKS ",=");
    items->at = start + length;
    size_t behind = items->at + strspn(text + items->at, BLANKS);
    if (text[behind] == '=') {
        items->at = behind;
        return read_pair(items, start, length, item, why);
    }
    struct word word = {.at = start};
    if (is_parted(items, start, why))
        return wrong(item, start);
    if (!fits(text + start, length, sizeof word.text, why))
        return wrong(item, start);
    snprintf(word.text, sizeof word.text, "%.*s", (int)length, text + start);
    item_set(item, "", "", start, start);
    return read_word(items, &word, item, why);
}

/* Over blanks, one comma, and marks. */
static void skip_to_next(struct layout_items *items)
{
    const char *text = items->text;
    for (;;) {
        items->at += strspn(text + items->at, BLANKS);
        if (text[items->at] == ',' && !items->after_comma) {
            items->after_comma = true;
            items->at++;
        } else if (strncmp(text + items->at, UNEVEN, 1) == 0) {
            items->after_comma = false;
            items->at++;
        } else {
            return;
        }
    }
}

enum layout_item_found layout_items_next(struct layout_items *items, struct layout_item *item, char why[LAYOUT_ITEM_WHY])
{
    const char *text = items->text;
    if (items->shard_at > 0) {
        char ranks[LAYOUT_VALUE_SIZE];
        snprintf(ranks, sizeof ranks, "%.*s", (int)strspn(text + items->shard_at, DIGITS), text + items->shard_at);
        item_set(item, "shard", ranks, items->shard_at, items->shard_at);
        items->shard_at = 0;
        return LAYOUT_ITEM_READ;
    }
    items->after_comma |= items->at == 0; /* a comma cannot be the first */
    skip_to_next(items);
    if (text[items->at] == ',') {
        snprintf(why, LAYOUT_ITEM_WHY, "'%.60s' has a comma with nothing before it", text);
        return wrong(item, items->at++);
    }
    bool missing = items->after_comma && text[items->at] == '\0' && text[strspn(text, BLANKS)] != '\0';
    items->after_comma = false;
    if (missing) {
        snprintf(why, LAYOUT_ITEM_WHY, "'%.60s' ends with a comma", text);
        return wrong(item, items->at);
    }
    return text[items->at] == '\0' ? LAYOUT_ITEM_NONE : read_item(items, item, why);
}

bool layout_items_are_brief(const char *text)
{
    char word[LAYOUT_KEY_SIZE];
    text += strspn(text, BLANKS);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, BLANKS ","), text);
    return letters_of_number(word) > 0;
}
