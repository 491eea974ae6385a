/*
 * measured_tables.h - every usable row of the measured tables under MSIM_SHARED, for tests of what real runs must satisfy.
 */
#ifndef MSIM_TESTS_TRACES_MEASURED_TABLES_H
#define MSIM_TESTS_TRACES_MEASURED_TABLES_H

#include "traces/table/measurement.h"

/* Calls `check` for every row, `index` counting within its table. Says that it skips where there are no tables; ends the test
 * where there are fewer rows than there were. */
void measured_tables_each(void (*check)(const struct measurement *run, size_t index));

#endif
