#include <ctype.h>
#include <math.h>
#include <string.h>

#include "cli/options/experiment_options.h"
#include "cli/options/sweep_values.h"
#include "cli/output/table.h"
#include "cli/plan/plan_sweep.h"
#include "model/base/append.h"
#include "model/spec/experiment.h"

enum { MOST_POINTS = 1000 };

static const char KEY_LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

/* Where the first of the keys that change together ends: at a plus before another KEY=, in no braces. */
static size_t part_length(const char *text)
{
    const char *p = text;
    for (int depth = 0; *p; p++) {
        size_t key = strspn(p + 1, KEY_LETTERS);
        if (*p == '+' && depth == 0 && key > 0 && p[1 + key] == '=')
            break;
        depth += (*p == '{') - (*p == '}');
    }
    return (size_t)(p - text);
}

/* What the word means: an option's name, a key of the experiment's parts, or a key in full. */
static bool find_path(struct sweep_key *key)
{
    char word[sizeof key->word], name[sizeof key->word];
    key->option = NULL;
    memcpy(word, key->word, sizeof word);
    memcpy(name, key->word, sizeof name);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    for (const struct option_row *row = experiment_options; row->name; row++)
        if (strcmp(row->name, name) == 0 && row->type != OPTION_REPEAT) {
            snprintf(key->path, sizeof key->path, "%s", row->key ? row->key : row->name);
            key->option = row->name;
            return true;
        }
    if (!strchr(word, '.'))
        return experiment_key_path(word, key->path, sizeof key->path) != NULL;
    snprintf(key->path, sizeof key->path, "%s", word);
    return true;
}

/* No key is called so; one that nearly is. */
static void explain_word(const char *word, char *why, size_t size)
{
    const char *names[64], *near;
    char dashed[96];
    size_t n = 0;
    for (const struct option_row *row = experiment_options; row->name && n < sizeof names / sizeof names[0]; row++)
        if (row->type != OPTION_REPEAT)
            names[n++] = row->name;
    snprintf(dashed, sizeof dashed, "%s", word);
    for (char *p = dashed; *p; p++)
        *p = *p == '_' ? '-' : *p;
    near = nearest_name(dashed, names, n);
    near = near ? near : experiment_key_nearest(word);
    if (near)
        snprintf(why, size, "an experiment has no key '%s'; did you mean '%s'?", word, near);
    else
        snprintf(why, size, "an experiment has no key '%s'; examples are gpus, global-batch, seq-len, precision, cluster, model",
                 word);
}

/* Of gpu=8..64 it is their number that is meant. */
static bool is_number_of_gpus(const struct sweep_key *key)
{
    const char *value = key->values[0];
    return strcmp(key->path, "gpu") == 0 && *value && strspn(value, "0123456789") == strlen(value);
}

/* Tables and JSON show what is printable, in UTF-8. */
static bool is_printable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)text[i]))
            return false;
    json_t *json = json_stringn(text, length);
    json_decref(json);
    return json != NULL;
}

static bool add_value(struct sweep_key *key, int *n, const char *text, size_t length)
{
    if (*n >= SWEEP_VALUES || length == 0 || length >= SWEEP_TEXT || !is_printable(text, length))
        return false;
    memcpy(key->values[*n], text, length);
    key->values[(*n)++][length] = '\0';
    return true;
}

/* A range of a key that is counted: whole numbers, each once. */
static bool add_counts(struct sweep_key *key, int *n, const char *text, size_t length, char *why, size_t size)
{
    struct sweep_range range;
    char value[32] = "", before[32];
    if (sweep_range_parse(text, length, DIM_COUNT, SWEEP_VALUES, &range, why, size) != STATUS_OK)
        return false;
    if (range.low < 1 || range.high > 1e15) {
        snprintf(why, size, "%.*s: a range must start at 1 or more and end at a larger count", length < 60 ? (int)length : 60,
                 text);
        return false;
    }
    for (int i = 0; i < range.n; i++) {
        memcpy(before, value, sizeof before);
        int written = snprintf(value, sizeof value, "%.0f", sweep_range_value(&range, i));
        if (strcmp(before, value) != 0 && !add_value(key, n, value, (size_t)written))
            return false;
    }
    return true;
}

/* Of any other: as they are, in the unit of the first. */
static bool add_quantities(struct sweep_key *key, enum dimension dimension, int *n, const char *text, size_t length, char *why,
                           size_t size)
{
    struct sweep_range range;
    char one[sizeof range.unit + 1], value[SWEEP_TEXT];
    double unit;
    if (sweep_range_parse(text, length, dimension, SWEEP_VALUES, &range, why, size) != STATUS_OK)
        return false;
    snprintf(one, sizeof one, "1%s", range.unit);
    if (quantity_parse(one, dimension, &unit, why, size) != STATUS_OK)
        return false;
    for (int i = 0; i < range.n; i++) {
        double x = sweep_range_value(&range, i) / unit;
        const char *form = x == floor(x) && x < 1e15 ? "%.0f%s" : "%.12g%s";
        int written = snprintf(value, sizeof value, form, x, range.unit);
        if (!add_value(key, n, value, (size_t)written))
            return false;
    }
    return true;
}

/* The values that a range stands for. */
static bool add_range(struct sweep_key *key, int *n, const char *text, size_t length, char *why, size_t size)
{
    enum dimension dimension;
    return experiment_key_quantity(key->path, &dimension) ? add_quantities(key, dimension, n, text, length, why, size)
                                                          : add_counts(key, n, text, length, why, size);
}

/* Where a value ends: at a comma that stands in no list [a, b] and in no braces {tp=8,pp=2}. */
static const char *value_end(const char *p, const char *end)
{
    int depth = 0;
    for (; p < end && (*p != ',' || depth > 0); p++)
        depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
    return p;
}

/* As YAML has it: a blank behind a colon. offload=optimizer:50% is none. */
static bool is_mapping(const char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (text[i] == ':' && text[i + 1] == ' ')
            return true;
    return false;
}

/* Of a value in braces what they hold. A mapping keeps its own: {base: NAME, nodes: 4}. */
static bool take_braces(const char **text, size_t *length)
{
    bool braced = *length >= 2 && (*text)[0] == '{' && (*text)[*length - 1] == '}' && !is_mapping(*text, *length);
    if (braced) {
        (*text)++;
        *length -= 2;
    }
    return braced;
}

/* One value, or those that a range stands for. */
static bool read_value(struct sweep_key *key, int *n, const char *text, size_t length, char *why, size_t size)
{
    bool braced = take_braces(&text, &length);
    return !braced && sweep_is_range(text, length) ? add_range(key, n, text, length, why, size) : add_value(key, n, text, length);
}

/* The values between commas of one key; their number, 0 with *why when they cannot be read. */
static int read_values(struct sweep_key *key, const char *text, size_t length, char *why, size_t size)
{
    const char *end = text + length;
    int n = 0;
    for (const char *p = text; p <= end; p++) {
        const char *stop = value_end(p, end);
        snprintf(why, size, "%s: write 1 to %d values, separated by commas, each with at most %d printable characters", key->word,
                 SWEEP_VALUES, SWEEP_TEXT - 1);
        if (!read_value(key, &n, p, (size_t)(stop - p), why, size))
            return 0;
        p = stop;
    }
    return n;
}

enum status sweep_axis_parse(const char *text, struct sweep_axis *axis, char *why, size_t size)
{
    const char *p = text;
    axis->n_keys = 0;
    do {
        size_t letters = strspn(p, KEY_LETTERS), length = part_length(p);
        struct sweep_key *key = &axis->keys[axis->n_keys];
        if (letters == 0 || letters >= sizeof key->word || p[letters] != '=' || letters >= length) {
            snprintf(why, size, "'%.60s' is not KEY=VALUES; write for example gpus=256..4096 or precision=bf16,fp8", p);
            return STATUS_BAD_INPUT;
        }
        if (axis->n_keys == SWEEP_KEYS) {
            snprintf(why, size, "too many keys joined by +; at most %d can change together", SWEEP_KEYS);
            return STATUS_BAD_INPUT;
        }
        snprintf(key->word, sizeof key->word, "%.*s", (int)letters, p);
        if (!find_path(key)) {
            explain_word(key->word, why, size);
            return STATUS_BAD_INPUT;
        }
        int n = read_values(key, p + letters + 1, length - letters - 1, why, size);
        if (n == 0)
            return STATUS_BAD_INPUT;
        if (is_number_of_gpus(key)) {
            snprintf(why, size, "%s=%s: this is not the name of a GPU; did you mean 'gpus'?", key->word, key->values[0]);
            return STATUS_BAD_INPUT;
        }
        if (axis->n_keys > 0 && n != axis->n_values) {
            snprintf(why, size, "%s has %d value%s, but %s has %d; keys joined by + need the same number of values",
                     axis->keys[0].word, axis->n_values, plural(axis->n_values), key->word, n);
            return STATUS_BAD_INPUT;
        }
        axis->n_values = n;
        axis->n_keys++;
        p += length;
    } while (*p++ == '+');
    return STATUS_OK;
}

/* A key that stands on two axes, or twice on one; or one that says in another way what another does. */
static bool complain_of_repeated(struct invocation *call, const struct plan_axes *axes)
{
    const struct sweep_key *keys[SWEEP_AXES * SWEEP_KEYS];
    const char *both;
    int n = 0;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            keys[n++] = &axes->axes[a].keys[k];
    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++) {
            const char *instead = experiment_key_instead(keys[i]->path, &both);
            bool twice = strcmp(keys[i]->path, keys[k]->path) == 0;
            if (twice)
                diag_error(&call->diags, PLACE_NONE,
                           "--sweep: %s is given twice; give all its values at once, separated by commas", keys[i]->word);
            else if (instead && strcmp(instead, keys[k]->path) == 0)
                diag_error(&call->diags, PLACE_NONE, "--sweep: %s and %s %s; keep one", keys[k]->word, keys[i]->word, both);
        }
    return call->diags.n_errors > 0;
}

enum status plan_axes_read(struct invocation *call, struct plan_axes *axes)
{
    char why[256];
    int n;
    const char *const *texts = option_list(call, "sweep", &n);
    axes->n_points = 1;
    for (axes->n_axes = 0; axes->n_axes < n; axes->n_axes++) {
        struct sweep_axis *axis = &axes->axes[axes->n_axes];
        if (axes->n_axes == SWEEP_AXES) {
            diag_error(&call->diags, PLACE_NONE, "--sweep is given more than %d times; keys joined by + change together",
                       SWEEP_AXES);
            return STATUS_USAGE;
        }
        if (sweep_axis_parse(texts[axes->n_axes], axis, why, sizeof why) != STATUS_OK) {
            diag_error(&call->diags, PLACE_NONE, "--sweep: %s", why);
            return STATUS_USAGE;
        }
        axes->n_points *= axis->n_values;
        if (axes->n_points > MOST_POINTS) {
            diag_error(&call->diags, PLACE_NONE, "--sweep: too many combinations; at most %d", MOST_POINTS);
            return STATUS_USAGE;
        }
    }
    return complain_of_repeated(call, axes) ? STATUS_USAGE : STATUS_OK;
}

const struct sweep_key *sweep_key_at(const struct plan_axes *axes, int axis, int key)
{
    return &axes->axes[axis].keys[key];
}

const char *sweep_value_at(const struct plan_axes *axes, int axis, int key, int point)
{
    return sweep_key_at(axes, axis, key)->values[plan_axes_index(axes, axis, point)];
}

int plan_axes_index(const struct plan_axes *axes, int axis, int point)
{
    for (int a = 0; a < axis; a++)
        point /= axes->axes[a].n_values;
    return point % axes->axes[axis].n_values;
}

int plan_axes_gpus(const struct plan_axes *axes)
{
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            if (strcmp(axes->axes[a].keys[k].path, "cluster.gpus") == 0)
                return a;
    return -1;
}

int plan_axes_first(const struct plan_axes *axes, int axis, int point)
{
    int stride = 1;
    for (int a = 0; a < axis; a++)
        stride *= axes->axes[a].n_values;
    return point - stride * plan_axes_index(axes, axis, point);
}

char *plan_axes_text(const struct plan_axes *axes, int point, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            text_append(buffer, size, "%s%s=%s", buffer[0] ? ", " : "", axes->axes[a].keys[k].word,
                        axes->axes[a].keys[k].values[plan_axes_index(axes, a, point)]);
    return buffer;
}

/* --- values as a column shows them --- */

/* The next item of a list, brackets and blanks left out; false: there is none. */
static bool next_item(const char **text, const char **item, size_t *length)
{
    const char *p = *text + strspn(*text, "[{, ]}");
    size_t n = strcspn(p, ",");
    *text = p + n;
    while (n > 0 && strchr(" ]}", p[n - 1]))
        n--;
    *item = p;
    *length = n;
    return n > 0;
}

static bool has_item(const char *list, const char *item, size_t length)
{
    const char *other;
    size_t n;
    while (next_item(&list, &other, &n))
        if (n == length && strncmp(other, item, n) == 0)
            return true;
    return false;
}

/* Do all values have it? One value alone has nothing in common with others. */
static bool all_have(const struct sweep_key *key, int n_values, const char *item, size_t length)
{
    bool lists = false, all = n_values > 1;
    for (int i = 0; i < n_values; i++) {
        lists |= strchr(key->values[i], ',') != NULL;
        all &= has_item(key->values[i], item, length);
    }
    return all && lists;
}

char *sweep_value_brief(const struct sweep_key *key, int n_values, int value, char *buffer, size_t size)
{
    const char *list = key->values[value], *item;
    size_t length;
    char common[SWEEP_TEXT];
    if (sweep_values_common(key, n_values, common, sizeof common) == 0) {
        snprintf(buffer, size, "%s", key->values[value]);
        return buffer;
    }
    buffer[0] = '\0';
    while (next_item(&list, &item, &length))
        if (!all_have(key, n_values, item, length))
            text_append(buffer, size, "%s%.*s", buffer[0] ? "," : "", (int)length, item);
    if (!buffer[0])
        snprintf(buffer, size, "-");
    return buffer;
}

int sweep_values_common(const struct sweep_key *key, int n_values, char *buffer, size_t size)
{
    const char *list = key->values[0], *item;
    size_t length;
    int n = 0;
    buffer[0] = '\0';
    while (next_item(&list, &item, &length))
        if (all_have(key, n_values, item, length))
            text_append(buffer, size, "%s%.*s", n++ ? "," : "", (int)length, item);
    return n;
}
