/*
 * compare_repeats.c - report cases that occur more than once in the tables of `msim compare`.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "model/base/memory.h"

/* By case, and among those of one by line. */
static int compare_cases(const void *a, const void *b)
{
    const struct measurement *x = *(const struct measurement *const *)a, *y = *(const struct measurement *const *)b;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : (x->at.line > y->at.line) - (x->at.line < y->at.line);
}

/* Of a table's rows that repeat a case the first, in the order of lines, and the row that it repeats. */
static void warn_of_table(const struct measurement_table *table, struct diags *diags)
{
    const struct measurement **rows = memory_new(table->n_items, sizeof *rows), *repeat = NULL, *first = NULL, *same = NULL;
    size_t n = 0, repeats = 0;
    for (size_t i = 0; i < table->n_items; i++)
        if (table->items[i].named)
            rows[n++] = &table->items[i];
    qsort(rows, n, sizeof *rows, compare_cases);
    for (size_t i = 0; i < n; i++) {
        if (!same || strcmp(rows[i]->name, same->name) != 0) {
            same = rows[i];
            continue;
        }
        repeats++;
        if (!repeat || rows[i]->at.line < repeat->at.line) {
            repeat = rows[i];
            first = same;
        }
    }
    if (repeats == 1)
        diag_warning(diags, repeat->at, "the case '%.60s' also occurs in line %d; both rows count", repeat->name, first->at.line);
    else if (repeats > 1)
        diag_warning(diags, repeat->at, "the case '%.60s' also occurs in line %d, and %zu more row%s repeat%s a case; all count",
                     repeat->name, first->at.line, repeats - 1, repeats == 2 ? "" : "s", repeats == 2 ? "s" : "");
    free(rows);
}

void compare_warn_of_repeats(const struct comparing *comparing, struct diags *diags)
{
    for (size_t t = 0; t < comparing->n_tables; t++)
        warn_of_table(&comparing->tables[t], diags);
}

void compare_note_others(const struct comparing *comparing, struct diags *diags)
{
    if (comparing->n_rows < 2)
        return;
    const struct compared *shown = &comparing->rows[0], *other = &comparing->rows[1];
    diag_note(diags, PLACE_NONE, "--explain: %zu rows have the case '%.60s'; msim shows the one at %s:%d, not %s:%d%s",
              comparing->n_rows, shown->run->name, shown->table, shown->run->at.line, other->table, other->run->at.line,
              comparing->n_rows > 2 ? " and others" : "");
}
