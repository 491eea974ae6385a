#include "traces/table/reconcile.h"

#include "traces/table/reconcile_parts.h"

void measurement_reconcile(struct measurement_table *table, struct diags *diags)
{
    reconcile_dates(table, diags);
    reconcile_micro_batches(table, diags);
    reconcile_recomputation(table, diags);
    reconcile_vocabularies(table, diags);
    reconcile_tell_contradictions(table, diags);
}
