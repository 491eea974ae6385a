#include "model/cost/fit/calibrate_entry.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

/* --- names --------------------------------------------------------------------------------------------------------- */

struct listing {
    struct entry_parameter *items;
    size_t n, capacity;
};

/* Recursion follows the schema's nesting, which is a few levels. */
static void list(const struct schema *schema, const char *prefix, size_t offset, struct listing *listing)
{
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct field *row = &schema->rows[i];
        char path[ENTRY_PATH_SIZE];
        int n = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", row->key);
        if (n < 0 || (size_t)n >= sizeof path)
            continue;
        if (row->type == FIELD_GROUP)
            list(row->group, path, offset + row->offset, listing);
        if (row->type != FIELD_QUANTITY)
            continue;
        listing->items = memory_grow(listing->items, &listing->capacity, listing->n + 1, sizeof *listing->items);
        struct entry_parameter *p = &listing->items[listing->n++];
        *p = (struct entry_parameter){.row = row, .offset = offset + row->offset};
        memcpy(p->path, path, sizeof path);
    }
}

struct entry_parameter *entry_parameters(const struct schema *schema, size_t *n)
{
    struct listing listing = {0};
    list(schema, "", 0, &listing);
    *n = listing.n;
    return listing.items;
}

bool entry_parameter_find(const struct schema *schema, const char *path, struct entry_parameter *parameter, struct diags *diags)
{
    size_t n;
    bool found = false;
    struct entry_parameter *all = entry_parameters(schema, &n);
    const char **names = memory_new(n, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        names[i] = all[i].path;
        if (strcmp(all[i].path, path) != 0)
            continue;
        *parameter = all[i];
        found = true;
    }
    const char *near = found ? NULL : nearest_name(path, names, n);
    if (!found)
        diag_error(diags, PLACE_NONE, "a %s has no quantity '%.80s'%s%s%s", schema->what, path,
                   near ? "; did you mean '" : "; 'msim catalog show' lists an entry's keys", near ? near : "", near ? "'?" : "");
    free(names);
    free(all);
    return found;
}

/* --- values -------------------------------------------------------------------------------------------------------- */

double entry_parameter_get(const struct entry_parameter *parameter, const void *entry)
{
    double value;
    memcpy(&value, (const char *)entry + parameter->offset, sizeof value);
    return value;
}

void entry_parameter_set(const struct entry_parameter *parameter, void *entry, double value)
{
    memcpy((char *)entry + parameter->offset, &value, sizeof value);
}

double entry_parameter_round(const struct entry_parameter *parameter, double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.4g", value);
    return fmin(fmax(strtod(digits, NULL), parameter->row->min), parameter->row->max);
}

char *entry_parameter_text(const struct entry_parameter *parameter, double value, char *buffer, size_t size)
{
    enum dimension dimension = parameter->row->dimension;
    switch (dimension) { /* one unit for values in one row */
    case DIM_FRACTION:
    case DIM_COUNT: snprintf(buffer, size, "%.12g", value); break;
    case DIM_TIME: snprintf(buffer, size, "%.12gus", value * 1e6); break;
    case DIM_RATE: snprintf(buffer, size, "%.12gGB/s", value / 1e9); break;
    default: quantity_write(value, dimension, buffer, size);
    }
    return buffer;
}

/* --- YAML ---------------------------------------------------------------------------------------------------------- */

void entry_tree_set(json_t *tree, const char *path, const char *text)
{
    const char *dot = strchr(path, '.');
    while (dot) {
        char key[ENTRY_PATH_SIZE];
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        json_t *child = json_object_get(tree, key);
        if (!child) {
            child = json_object();
            json_object_set_new(tree, key, child);
        }
        tree = child;
        path = dot + 1;
        dot = strchr(path, '.');
    }
    json_object_set_new(tree, path, json_string(text));
}

static void write_text(const char *text, FILE *out)
{
    bool plain = *text && (isalnum((unsigned char)*text) || *text == '/' || *text == '.');
    for (const char *c = text; *c; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("./_+-", *c));
    if (plain) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++)
        fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    fputc('"', out);
}

static void write_braces(const json_t *tree, FILE *out)
{
    const char *key, *between = "";
    json_t *child;
    fputc('{', out);
    json_object_foreach((json_t *)tree, key, child)
    {
        fprintf(out, "%s%s: ", between, key);
        if (json_is_object(child))
            write_braces(child, out);
        else
            write_text(json_string_value(child), out);
        between = ", ";
    }
    fputc('}', out);
}

/* " # 1.2us to 1.4us", or of a mapping in braces " # fixed 1.2us to 1.4us, droop 0.1 to 0.2". */
static void write_note(const json_t *note, FILE *out)
{
    const char *key, *between = "";
    json_t *child;
    if (!note)
        return;
    fputs(" # ", out);
    if (json_is_string(note))
        fputs(json_string_value(note), out);
    json_object_foreach((json_t *)note, key, child)
    {
        fprintf(out, "%s%s %s", between, key, json_string_value(child));
        between = ", ";
    }
}

static void write_lines(const json_t *tree, const json_t *notes, int level, FILE *out)
{
    enum { LEVELS = 2, INDENT = 2 };
    const char *key;
    json_t *child;
    json_object_foreach((json_t *)tree, key, child)
    {
        const json_t *note = json_object_get(notes, key);
        fprintf(out, "%*s%s:", level * INDENT, "", key);
        if (json_is_object(child) && level + 1 < LEVELS) {
            fputc('\n', out);
            write_lines(child, note, level + 1, out);
            continue;
        }
        fputc(' ', out);
        if (json_is_object(child))
            write_braces(child, out);
        else
            write_text(json_string_value(child), out);
        write_note(note, out);
        fputc('\n', out);
    }
}

void entry_write_yaml(const json_t *tree, const json_t *notes, FILE *out)
{
    write_lines(tree, notes, 0, out);
}
