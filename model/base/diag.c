#include "model/base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

static char *format_text(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        length = 0;
    char *text = memory_new((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

/* Names and values come from files: what they hold must not move a terminal's cursor or begin another line. */
static char *without_controls(char *text)
{
    for (char *c = text; c && *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    return text;
}

static void diag_add(struct diags *diags, enum severity severity, struct place at, const char *format, va_list args)
{
    if (severity == SEVERITY_ERROR)
        diags->n_errors++;
    if (diags->n_items >= DIAGS_MAX) {
        diags->n_dropped++;
        return;
    }
    diags->items = memory_grow(diags->items, &diags->capacity, diags->n_items + 1, sizeof *diags->items);
    diags->items[diags->n_items++] = (struct diag){
        .severity = severity,
        .file = at.file ? without_controls(memory_copy_text(at.file)) : NULL,
        .line = at.line,
        .column = at.column,
        .text = without_controls(format_text(format, args)),
    };
}

void diag_error(struct diags *diags, struct place at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diags, SEVERITY_ERROR, at, format, args);
    va_end(args);
}

/* Is the last one there already? */
static bool is_repeated(const struct diags *diags)
{
    const struct diag *last = &diags->items[diags->n_items - 1];
    for (const struct diag *d = diags->items; d < last; d++)
        if (d->severity == last->severity && d->line == last->line && d->column == last->column &&
            strcmp(d->file ? d->file : "", last->file ? last->file : "") == 0 && strcmp(d->text, last->text) == 0)
            return true;
    return false;
}

/* What is looked at for every point of a grid is said once. */
static void add_once(struct diags *diags, enum severity severity, struct place at, const char *format, va_list args)
{
    size_t before = diags->n_items;
    diag_add(diags, severity, at, format, args);
    if (diags->n_items > before && is_repeated(diags)) {
        diags->n_items--;
        free(diags->items[before].file);
        free(diags->items[before].text);
    }
}

void diag_warning(struct diags *diags, struct place at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_once(diags, SEVERITY_WARNING, at, format, args);
    va_end(args);
}

void diag_note(struct diags *diags, struct place at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_once(diags, SEVERITY_NOTE, at, format, args);
    va_end(args);
}

enum status diags_status(const struct diags *diags)
{
    return diags->n_errors ? STATUS_BAD_INPUT : STATUS_OK;
}

/* Whether b stands before a in the same file. */
static bool is_before(const struct diag *b, const struct diag *a)
{
    bool placed = a->file && b->file && a->line > 0 && b->line > 0 && strcmp(a->file, b->file) == 0;
    return placed && (b->line < a->line || (b->line == a->line && b->column < a->column));
}

void diags_sort(struct diags *diags)
{
    for (size_t i = 1; i < diags->n_items; i++) {
        struct diag item = diags->items[i];
        size_t j = i;
        for (; j > 0 && is_before(&item, &diags->items[j - 1]); j--)
            diags->items[j] = diags->items[j - 1];
        diags->items[j] = item;
    }
}

void diags_print(const struct diags *diags, FILE *out, bool colour)
{
    static const char *const words[] = {"error", "warning", "note"};
    static const char *const codes[] = {"\033[1;31m", "\033[1;33m", "\033[1;36m"};

    for (size_t i = 0; i < diags->n_items; i++) {
        const struct diag *d = &diags->items[i];
        if (d->file)
            fprintf(out, "%s:", d->file);
        if (d->file && d->line)
            fprintf(out, "%d:", d->line);
        if (d->file && d->line && d->column)
            fprintf(out, "%d:", d->column);
        fprintf(out, "%s%s%s:%s %s\n", d->file ? " " : "", colour ? codes[d->severity] : "", words[d->severity],
                colour ? "\033[0m" : "", d->text);
    }
    if (diags->n_dropped)
        fprintf(out, "(%zu more)\n", diags->n_dropped);
}

void diags_free(struct diags *diags)
{
    for (size_t i = 0; i < diags->n_items; i++) {
        free(diags->items[i].file);
        free(diags->items[i].text);
    }
    free(diags->items);
    *diags = (struct diags){0};
}
