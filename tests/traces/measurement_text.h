/* measurement_text.h - measurement tables from a text, for tests. */
#ifndef MSIM_TESTS_TRACES_MEASUREMENT_TEXT_H
#define MSIM_TESTS_TRACES_MEASUREMENT_TEXT_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "traces/table/measurement.h"

#define HEADER                                                                                                                   \
    "case,model,layers,hidden,ffn_hidden,gated_mlp,heads,kv_heads,seq_len,vocab,gpu,gpus,gpus_per_node,nic_gbps,tp,pp,vpp,cp,"   \
    "dp,ep,zero,sequence_parallel,micro_batch,global_batch,recompute,precision,schedule,features,outcome,step_time_s,mfu_pct,"   \
    "assumed,source\n"

static inline enum status build(const char *text, struct measurement_table *table, struct diags *diags)
{
    struct csv_table csv;
    ck_assert_int_eq(csv_table_parse("m.csv", text, strlen(text), &csv, diags), STATUS_OK);
    return measurement_table_build(&csv, table, diags);
}

/* A table that has been read, and its first row. */
struct reading {
    struct measurement_table table;
    struct diags diags;
    const struct measurement *row;
};

/* Of a text that is a table; `row` is NULL where no row can be used. */
static inline struct reading read_table(const char *text)
{
    struct reading r;
    memset(&r, 0, sizeof r);
    ck_assert_int_eq(build(text, &r.table, &r.diags), STATUS_OK);
    r.row = r.table.n_items > 0 ? &r.table.items[0] : NULL;
    return r;
}

static inline void reading_free(struct reading *r)
{
    measurement_table_free(&r->table);
    diags_free(&r->diags);
}

static inline size_t reading_warnings(const struct reading *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->diags.n_items; i++)
        n += r->diags.items[i].severity == SEVERITY_WARNING;
    return n;
}

static inline void expect_diag(const struct diags *diags, size_t index, enum severity severity, int line, int column,
                               const char *part)
{
    ck_assert_uint_lt(index, diags->n_items);
    const struct diag *d = &diags->items[index];
    ck_assert_msg(strstr(d->text, part) != NULL, "'%s' has no '%s'", d->text, part);
    ck_assert_int_eq(d->severity, severity);
    ck_assert_int_eq(d->line, line);
    ck_assert_int_eq(d->column, column);
}

static inline bool says(const struct diags *diags, enum severity severity, const char *part)
{
    bool found = false;
    for (size_t i = 0; i < diags->n_items; i++)
        found |= diags->items[i].severity == severity && strstr(diags->items[i].text, part);
    return found;
}

#endif
