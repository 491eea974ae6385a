#include "traces/reconcile.h"

#include <string.h>

#include "traces/reconcile_parts.h"

bool reconcile_assumes(const struct measurement *row, const char *column)
{
    size_t length = strlen(column);
    for (const char *at = row->assumed; (at = strstr(at, column)) != NULL; at += length) {
        bool begins = at == row->assumed || at[-1] == ';', ends = at[length] == '\0' || at[length] == ';';
        if (begins && ends)
            return true;
    }
    return false;
}

void measurement_reconcile(struct measurement_table *table, struct diags *diags)
{
    reconcile_dates(table, diags);
    reconcile_micro_batches(table, diags);
    reconcile_recomputation(table, diags);
    reconcile_vocabularies(table, diags);
    reconcile_tell_contradictions(table, diags);
}
