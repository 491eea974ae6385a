/*
 * compare.h - the rows that `msim compare` has predicted, and their reports.
 */
#ifndef MSIM_CLI_COMPARE_COMPARE_H
#define MSIM_CLI_COMPARE_COMPARE_H

#include <jansson.h>

#include "cli/output/result_row.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/cost.h"
#include "traces/table/accuracy.h"
#include "traces/table/measurement.h"

/* How step times are predicted. */
enum compare_method { COMPARE_SIMULATION, COMPARE_FORMULA };

/* What a line of CSV is. */
enum compare_by { COMPARE_BY_ROW, COMPARE_BY_TABLE, COMPARE_BY_GPU, COMPARE_BY_KIND, COMPARE_AS_ONE };

/* One row and what was predicted for it. */
struct compared {
    const struct measurement *run;
    const struct comparison *item;     /* as statistics take it */
    const char *table;                 /* path of its file */
    bool legal;                        /* the layout can be simulated; false: no prediction */
    double predicted_s, predicted_mfu; /* 0: not predicted (also for runs that ended out of memory) */
    struct cost_by_class breakdown;    /* of predicted_s */
    struct footprint memory;
    double capacity; /* bytes a rank may use */
};

struct comparison_set {
    enum compare_method method;
    struct measurement_table *tables;
    const char **paths;
    size_t n_tables;
    struct compared *rows;
    struct comparison *items; /* the rows as statistics take them */
    size_t n_rows;
    size_t n_skipped; /* rows of the tables that could not be used */
    size_t n_illegal; /* rows whose layout cannot be simulated */
    double seconds;   /* predicting */
    double tolerance; /* percent; negative: none asked for */
    int worst;        /* rows shown of the worst */
    bool all_rows;
    enum compare_by by;
    const char *base; /* of rows that are predicted on another entry than the table's; NULL none */
};

/* --base: puts the rows of its GPU on it, before they are collected. */
MUST_CHECK enum status compare_take_base(struct comparison_set *set, struct invocation *call);

/* Warns of each table in which a case stands twice: which line, and how many there are. */
void compare_warn_of_repeats(const struct comparison_set *set, struct diags *diags);
/* --explain: which of several rows of its case is shown. */
void compare_note_others(const struct comparison_set *set, struct diags *diags);

extern const struct result_table compare_keys[];

void compare_write_text(const struct comparison_set *set, const struct invocation *call);
void compare_write_csv(const struct comparison_set *set, FILE *out);
/* The keys of a JSON result: summary, sources, gpus, kinds, rows. */
void compare_fill_json(const struct comparison_set *set, json_t *result);
/* One row in full, as text or under the key "explain". */
void compare_explain_text(const struct compared *row, const struct invocation *call);
void compare_explain_json(const struct compared *row, json_t *result);

#endif
