/*
 * layout_json.h - a layout and its times by class as every command's JSON writes them.
 */
#ifndef MSIM_CLI_OUTPUT_LAYOUT_JSON_H
#define MSIM_CLI_OUTPUT_LAYOUT_JSON_H

#include <jansson.h>

#include "cli/output/result_row.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/cost.h"
#include "model/layout/layout.h"

/* The dimensions with which every layout in a result begins, in JSON and CSV. JSON shows others only where they are not usual. */
enum { N_RESULT_DIMENSIONS = 11 };
extern const enum layout_dimension result_dimensions[N_RESULT_DIMENSIONS];

/* {tp pp vpp cp dp ep zero micro_batch recompute schedule sequence_parallel}: the keys of an experiment's `layout`, so that it
 * can be given back as one. The software features it uses are no part of it. */
json_t *layout_json(const struct layout *layout);
/* The dimensions of every layout as columns and cells of CSV; empty cells without a layout. */
void layout_csv_heading(bool first, FILE *out);
void layout_csv_cells(const struct layout *layout, bool first, FILE *out);
/* Its text, as options take it. */
struct value as_layout(const struct layout *layout);
/* Their names, in a fixed order. */
json_t *features_json(feature_set features);

/* What is in the memory of a GPU, by use, in bytes; the parts sum to footprint.total. */
enum { N_MEMORY_PARTS = 6 };
struct memory_part {
    const char *name;
    double bytes;
};
void memory_parts(const struct footprint *memory, struct memory_part parts[N_MEMORY_PARTS]);
/* {part: GiB}, without the total; memory_part_rows. */
extern const struct result_row memory_part_rows[];
json_t *memory_parts_json(const struct footprint *memory);

#endif
