/*
 * compare_repeats.c - report cases that occur more than once in the tables of `msim compare`.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "model/base/memory.h"

/* Orders rows by case, then by line. */
static int compare_cases(const void *a, const void *b)
{
    const struct measurement *x = *(const struct measurement *const *)a, *y = *(const struct measurement *const *)b;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : (x->at.line > y->at.line) - (x->at.line < y->at.line);
}

/* Warns of the first row that has the case of an earlier row, and counts the other rows that do. */
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
        diag_warning(diags, repeat->at, "line %d has the case '%.60s' too; both rows count", first->at.line, repeat->name);
    else if (repeats > 1)
        diag_warning(diags, repeat->at,
                     "line %d has the case '%.60s' too, and %zu more row%s of this table repeat%s a case; all rows count",
                     first->at.line, repeat->name, repeats - 1, repeats == 2 ? "" : "s", repeats == 2 ? "s" : "");
    free(rows);
}

void compare_warn_of_repeats(const struct comparison_set *set, struct diags *diags)
{
    for (size_t t = 0; t < set->n_tables; t++)
        warn_of_table(&set->tables[t], diags);
}

void compare_note_others(const struct comparison_set *set, struct diags *diags)
{
    if (set->n_rows < 2)
        return;
    const struct compared *shown = &set->rows[0], *other = &set->rows[1];
    diag_note(diags, PLACE_NONE, "--explain: %zu rows have the case '%.60s'; msim explains %s:%d, but not %s:%d%s", set->n_rows,
              shown->run->name, shown->table, shown->run->at.line, other->table, other->run->at.line,
              set->n_rows > 2 ? " and others" : "");
}
