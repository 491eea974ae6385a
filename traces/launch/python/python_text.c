/* python_text.c - the text of a program: places, marks, blanks, comments, strings. */
#include <ctype.h>
#include <string.h>

#include "traces/launch/python/python_internal.h"

const char python_computed[] = "the program computes its value",
           python_in_doubt[] = "it is not known whether the program reaches this";

struct place python_place(const struct python *y, const char *at)
{
    return (struct place){.file = y->name, .line = y->line, .column = (int)(at - y->line_start) + 1};
}

void python_leave_out(struct python *y, struct place at, const char *field, const char *why)
{
    diag_warning(y->diags, at, "%.80s is left out: %s", field, why);
}

struct python_mark python_mark(const struct python *y)
{
    return (struct python_mark){y->p, y->line_start, y->line, y->brackets};
}

void python_return(struct python *y, struct python_mark mark)
{
    y->p = mark.p;
    y->line_start = mark.line_start;
    y->line = mark.line;
    y->brackets = mark.brackets;
}

bool python_at(const struct python *y, char c)
{
    return y->p < y->end && *y->p == c;
}

void python_skip_line_end(struct python *y)
{
    y->p++;
    y->line++;
    y->line_start = y->p;
}

static void skip_comment(struct python *y)
{
    while (y->p < y->end && *y->p != '\n')
        y->p++;
}

void python_skip_blanks(struct python *y)
{
    while (y->p < y->end) {
        if (*y->p == ' ' || *y->p == '\t' || *y->p == '\r' || *y->p == '\f')
            y->p++;
        else if (*y->p == '\\' && y->p + 1 < y->end && y->p[1] == '\n') {
            y->p++;
            python_skip_line_end(y);
        } else if (y->brackets && *y->p == '#')
            skip_comment(y);
        else if (y->brackets && *y->p == '\n')
            python_skip_line_end(y);
        else
            return;
    }
}

static bool is_name_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

void python_skip_string(struct python *y)
{
    char quote = *y->p;
    bool three = y->end - y->p >= 3 && y->p[1] == quote && y->p[2] == quote;
    y->p += three ? 3 : 1;
    while (y->p < y->end) {
        if (*y->p == '\n' && !three)
            return;
        if (*y->p == '\\' && y->p + 1 < y->end)
            y->p += 1 + (y->p[1] == '\r' && y->p + 2 < y->end && y->p[2] == '\n');
        else if (*y->p == quote && (!three || (y->end - y->p >= 3 && y->p[1] == quote && y->p[2] == quote))) {
            y->p += three ? 3 : 1;
            return;
        }
        if (*y->p == '\n')
            python_skip_line_end(y);
        else
            y->p++;
    }
}

void python_skip_to(struct python *y, const char *stops)
{
    int outside = y->brackets;
    struct place opened = python_place(y, y->p);
    while (y->p < y->end) {
        python_skip_blanks(y);
        if (y->p == y->end || (y->brackets <= outside && (strchr(stops, *y->p) || (!outside && strchr("\n;", *y->p)))))
            break;
        if (*y->p == '"' || *y->p == '\'') {
            python_skip_string(y);
            continue;
        }
        if (*y->p == '#') {
            skip_comment(y);
            continue;
        }
        if (*y->p == '\n') { /* behind a bracket that closes none */
            python_skip_line_end(y);
            continue;
        }
        if (strchr("([{", *y->p) && y->brackets++ == outside)
            opened = python_place(y, y->p);
        if (strchr(")]}", *y->p) && y->brackets > 0)
            y->brackets--;
        y->p++;
    }
    if (y->p == y->end && y->brackets > outside)
        diag_warning(y->diags, opened, "this bracket is not closed: the rest is not read");
    y->brackets = outside;
}

void python_skip_brackets(struct python *y)
{
    y->p++;
    y->brackets++;
    python_skip_to(y, ")]}");
    y->brackets--;
    y->p += y->p < y->end;
}

bool python_at_end(const struct python *y)
{
    return y->p == y->end || strchr("\n#;", *y->p);
}

bool python_read_name(struct python *y, char name[PYTHON_NAME_SIZE])
{
    size_t n = 0;
    if (y->p == y->end || !(isalpha((unsigned char)*y->p) || *y->p == '_'))
        return false;
    while (y->p < y->end && (is_name_letter(*y->p) || (*y->p == '.' && y->p + 1 < y->end && is_name_letter(y->p[1])))) {
        if (n + 1 == PYTHON_NAME_SIZE)
            return false;
        name[n++] = *y->p++;
    }
    name[n] = '\0';
    return true;
}

bool python_is_one_of(const char *name, const char *const *words)
{
    while (*words && strcmp(*words, name) != 0)
        words++;
    return *words != NULL;
}

const char *python_copy(struct python *y, const char *text, size_t n)
{
    char *copied = arena_new(y->arena, n + 1, 1);
    memcpy(copied, text, n);
    copied[n] = '\0';
    return copied;
}
