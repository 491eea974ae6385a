/* framework_lines.c - writes the keys of an export as YAML, TOML or assignments in Python. */
#include "traces/launch/frameworks/framework_lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool framework_lines_have(const struct framework_lines *lines, const char *path)
{
    for (int i = 0; i < lines->n; i++)
        if (strcmp(lines->items[i].path, path) == 0)
            return true;
    return false;
}

struct framework_line *framework_lines_add(struct framework_lines *lines, const char *path, const char *value)
{
    assert(lines->n < LINES_MAX);
    struct framework_line *line = &lines->items[lines->n++];
    *line = (struct framework_line){
        .path = path, .value = arena_copy_text(&lines->arena, value), .is_list = strchr(value, ' ') != NULL};
    return line;
}

void framework_lines_free(struct framework_lines *lines)
{
    arena_free(&lines->arena);
}

/* --- values --- */

/* A truth or nothing as a language writes it; NULL: the word is neither. */
static const char *constant_of(const char *word, enum framework_form form)
{
    static const struct {
        const char *word, *yaml, *toml, *python;
    } words[] = {{"True", "True", "true", "True"},
                 {"true", "true", "true", "True"},
                 {"False", "False", "false", "False"},
                 {"false", "false", "false", "False"},
                 {"None", "null", NULL, "None"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].word, word) == 0)
            return form == FORM_TOML ? words[i].toml : form == FORM_PYTHON ? words[i].python : words[i].yaml;
    return NULL;
}

static bool is_number(const char *word)
{
    char *end;
    strtod(word, &end);
    return end != word && !*end && strspn(word, "+-.0123456789eE") == strlen(word);
}

/* n letters. What is too long for a number or a constant is neither. */
static void write_word(const char *text, size_t n, bool is_text, enum framework_form form, FILE *out)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", n < sizeof word ? (int)n : 0, text);
    const char *constant = constant_of(word, form);
    bool plain = form == FORM_YAML || constant || (is_number(word) && !is_text);
    if (constant)
        fputs(constant, out);
    else
        fprintf(out, plain ? "%.*s" : "\"%.*s\"", (int)n, text);
}

static void write_plain(const struct framework_line *line, enum framework_form form, FILE *out)
{
    if (line->verbatim) {
        fputs(line->verbatim, out);
        return;
    }
    fputs(line->is_list ? "[" : "", out);
    for (const char *p = line->value, *comma = ""; *p; comma = ", ") {
        size_t n = line->is_list ? strcspn(p, " ") : strlen(p);
        fputs(comma, out);
        write_word(p, n, line->is_text, form, out);
        p += n + (p[n] == ' ');
    }
    fputs(line->is_list ? "]" : "", out);
}

static void write_value(const struct framework_line *line, enum framework_form form, FILE *out)
{
    write_plain(line, form, out);
    fputc('\n', out);
}

/* --- files --- */

/* Closes and opens mappings between two paths. */
static void open_mappings(const char *before, const char *path, FILE *out)
{
    int depth = 0;
    size_t at = 0;
    for (const char *dot; (dot = strchr(path + at, '.')); at = (size_t)(dot - path) + 1, depth++) {
        size_t n = (size_t)(dot - path) + 1;
        if (strncmp(before, path, n) != 0)
            fprintf(out, "%*s%.*s:\n", 2 * depth, "", (int)(n - 1 - at), path + at);
    }
}

static void write_yaml(const struct framework_line *line, const char *before, FILE *out)
{
    const char *dot = strrchr(line->path, '.');
    int depth = 0;
    for (const char *p = line->path; *p; p++)
        depth += *p == '.';
    open_mappings(before, line->path, out);
    fprintf(out, "%*s%s: ", 2 * depth, "", dot ? dot + 1 : line->path);
}

/* How much of a path is its table. */
static size_t table_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static void write_toml(const struct framework_line *line, const char *before, FILE *out)
{
    size_t n = table_of(line->path);
    if (table_of(before) != n || strncmp(before, line->path, n) != 0)
        fprintf(out, "%s[%.*s]\n", *before ? "\n" : "", (int)n, line->path);
    fprintf(out, "%s = ", line->path + n + 1);
}

/* By table, and in it by key: what is inside another table does not stand between its keys. */
static int compare_lines(const void *a, const void *b)
{
    const struct framework_line *x = a, *y = b;
    size_t n = table_of(x->path), m = table_of(y->path);
    int order = strncmp(x->path, y->path, n < m ? n : m);
    return order ? order : n != m ? (n > m) - (n < m) : strcmp(x->path, y->path);
}

static int compare_paths(const void *a, const void *b)
{
    const struct framework_line *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static bool is_made(const struct framework_object *object, const char *path)
{
    return strlen(object->made) == table_of(path) && strncmp(path, object->made, table_of(path)) == 0;
}

/* cfg.a.b = 1, or within cfg.a = Made( its b=1. */
static void write_python(const struct framework_lines *lines, int i, const struct framework_object *object, FILE *out)
{
    const struct framework_line *line = &lines->items[i];
    if (!is_made(object, line->path)) {
        fprintf(out, "%s.%s = ", object->name, line->path);
        write_value(line, FORM_PYTHON, out);
        return;
    }
    if (i == 0 || !is_made(object, lines->items[i - 1].path))
        fprintf(out, "%s.%s%s\n", object->name, object->made, object->before);
    fprintf(out, "    %s=", line->path + table_of(line->path) + 1);
    write_plain(line, FORM_PYTHON, out);
    fputs(",\n", out);
    if (i + 1 == lines->n || !is_made(object, lines->items[i + 1].path))
        fprintf(out, "%s\n", object->after);
}

void framework_lines_write(struct framework_lines *lines, enum framework_form form, const struct framework_object *object,
                           FILE *out)
{
    qsort(lines->items, (size_t)lines->n, sizeof *lines->items, form == FORM_YAML ? compare_paths : compare_lines);
    for (int i = 0; i < lines->n; i++) {
        const struct framework_line *line = &lines->items[i];
        const char *before = i ? lines->items[i - 1].path : "";
        if (form == FORM_PYTHON) {
            write_python(lines, i, object, out);
            continue;
        }
        if (form == FORM_YAML)
            write_yaml(line, before, out);
        else
            write_toml(line, before, out);
        write_value(line, form, out);
    }
}
