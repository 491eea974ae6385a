#include <ctype.h>
#include <string.h>

#include "cli/experiment_options.h"
#include "cli/plan_sweep.h"
#include "cli/table.h"
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
    memcpy(word, key->word, sizeof word);
    memcpy(name, key->word, sizeof name);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    for (const struct option_row *row = experiment_options; row->name; row++)
        if (strcmp(row->name, name) == 0 && row->type != OPTION_REPEAT) {
            snprintf(key->path, sizeof key->path, "%s", row->key ? row->key : row->name);
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
        snprintf(why, size, "an experiment has no key '%s'; such as gpus, global-batch, seq-len, precision, cluster, model",
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

/* A..B: A and its doubles up to B. */
static bool add_doubles(struct sweep_key *key, int *n, const char *low, const char *dots, size_t length, char *why, size_t size)
{
    char texts[2][SWEEP_TEXT], value[32];
    double ends[2];
    size_t first = (size_t)(dots - low), second = length - first - 2;
    if (first >= SWEEP_TEXT || second >= SWEEP_TEXT)
        return false;
    snprintf(texts[0], sizeof texts[0], "%.*s", (int)first, low);
    snprintf(texts[1], sizeof texts[1], "%.*s", (int)second, dots + 2);
    for (int i = 0; i < 2; i++)
        if (quantity_parse(texts[i], DIM_COUNT, &ends[i], why, size) != STATUS_OK)
            return false;
    if (ends[0] < 1 || ends[1] < ends[0] || ends[1] > 1e15) {
        snprintf(why, size, "%s..%s: doubling goes from a count of at least 1 to a larger one", texts[0], texts[1]);
        return false;
    }
    for (double x = ends[0]; x <= ends[1]; x *= 2) {
        int written = snprintf(value, sizeof value, "%.0f", x);
        if (!add_value(key, n, value, (size_t)written))
            return false;
    }
    return true;
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

/* One value, or the doubles that A..B stands for. */
static bool read_value(struct sweep_key *key, int *n, const char *text, size_t length, char *why, size_t size)
{
    const char *dots = NULL;
    bool braced = take_braces(&text, &length);
    for (const char *q = text + 1; q + 2 < text + length && !braced && !dots; q++)
        dots = q[0] == '.' && q[1] == '.' && q[2] != '/' ? q : NULL;
    return dots ? add_doubles(key, n, text, dots, length, why, size) : add_value(key, n, text, length);
}

/* The values between commas of one key; their number, 0 with *why when they cannot be read. */
static int read_values(struct sweep_key *key, const char *text, size_t length, char *why, size_t size)
{
    const char *end = text + length;
    int n = 0;
    for (const char *p = text; p <= end; p++) {
        const char *stop = value_end(p, end);
        snprintf(why, size, "%s: 1 to %d values between commas, each of up to %d printable letters", key->word, SWEEP_VALUES,
                 SWEEP_TEXT - 1);
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
            snprintf(why, size, "at most %d keys change together", SWEEP_KEYS);
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
            snprintf(why, size, "%s=%s: a GPU has a name; did you mean 'gpus'?", key->word, key->values[0]);
            return STATUS_BAD_INPUT;
        }
        if (axis->n_keys > 0 && n != axis->n_values) {
            snprintf(why, size, "%s has %d value%s and %s %d; keys joined by + change together", axis->keys[0].word,
                     axis->n_values, plural(axis->n_values), key->word, n);
            return STATUS_BAD_INPUT;
        }
        axis->n_values = n;
        axis->n_keys++;
        p += length;
    } while (*p++ == '+');
    return STATUS_OK;
}

/* Whether a key stands on two axes, or twice on one. */
static const char *repeated_key(const struct plan_axes *axes)
{
    const struct sweep_key *keys[SWEEP_AXES * SWEEP_KEYS];
    int n = 0;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++) {
            keys[n] = &axes->axes[a].keys[k];
            for (int other = 0; other < n; other++)
                if (strcmp(keys[other]->path, keys[n]->path) == 0)
                    return keys[n]->word;
            n++;
        }
    return NULL;
}

enum status plan_axes_read(struct invocation *call, struct plan_axes *axes)
{
    const struct place nowhere = {0};
    char why[256];
    int n;
    const char *const *texts = option_list(call, "sweep", &n);
    axes->n_points = 1;
    for (axes->n_axes = 0; axes->n_axes < n; axes->n_axes++) {
        struct sweep_axis *axis = &axes->axes[axes->n_axes];
        if (axes->n_axes == SWEEP_AXES) {
            diag_error(&call->diags, nowhere, "--sweep: at most %d of them; keys joined by + change together", SWEEP_AXES);
            return STATUS_USAGE;
        }
        if (sweep_axis_parse(texts[axes->n_axes], axis, why, sizeof why) != STATUS_OK) {
            diag_error(&call->diags, nowhere, "--sweep: %s", why);
            return STATUS_USAGE;
        }
        axes->n_points *= axis->n_values;
        if (axes->n_points > MOST_POINTS) {
            diag_error(&call->diags, nowhere, "--sweep: more than %d combinations", MOST_POINTS);
            return STATUS_USAGE;
        }
    }
    const char *twice = repeated_key(axes);
    if (twice)
        diag_error(&call->diags, nowhere, "--sweep: %s twice", twice);
    return twice ? STATUS_USAGE : STATUS_OK;
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
