/*
 * calibrate_report.c - the result of msim calibrate: tables, JSON, and the new entry.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/calibrate/calibrate_report.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/spec/json_text.h"

/* --- errors -------------------------------------------------------------------------------------------------------- */

static void error_rows(const struct calibration *c, struct table *table, size_t group, bool held_out)
{
    struct accuracy before = calibration_accuracy(c, group, held_out, false);
    struct accuracy after = calibration_accuracy(c, group, held_out, true);
    if (after.n == 0)
        return;
    table_cell(table, "%s", c->groups[group].label);
    table_cell(table, held_out ? "held out" : "fitted");
    table_cell(table, "%zu", after.n);
    table_cell(table, "%.1f", before.median_ape_pct);
    table_cell(table, "%.1f", after.median_ape_pct);
    table_cell(table, "%.1f", before.p90_ape_pct);
    table_cell(table, "%.1f", after.p90_ape_pct);
    table_cell(table, "%+.1f", before.bias_pct);
    table_cell(table, "%+.1f", after.bias_pct);
}

static void write_errors(const struct calibration *c, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "rows", NULL, ALIGN_LEFT);
    table_column(&table, "part", NULL, ALIGN_LEFT);
    table_column(&table, "n", NULL, ALIGN_RIGHT);
    table_column(&table, "median", "%", ALIGN_RIGHT);
    table_column(&table, "now", "%", ALIGN_RIGHT);
    table_column(&table, "p90", "%", ALIGN_RIGHT);
    table_column(&table, "now", "%", ALIGN_RIGHT);
    table_column(&table, "bias", "%", ALIGN_RIGHT);
    table_column(&table, "now", "%", ALIGN_RIGHT);
    for (size_t g = 0; g < c->n_groups; g++) {
        error_rows(c, &table, g, false);
        error_rows(c, &table, g, true);
    }
    table_write_text(&table, call);
    table_free(&table);
}

/* --- parameters ---------------------------------------------------------------------------------------------------- */

static char *bound_text(const struct calibration_parameter *p, double value, char *buffer, size_t size)
{
    double digits = pow(10, 2 - floor(log10(fabs(value) > 0 ? fabs(value) : 1))); /* three are plenty of a bound */
    return entry_parameter_text(&p->entry, entry_parameter_round(&p->entry, round(value * digits) / digits), buffer, size);
}

/* Why a parameter is what it is. */
static char *reason_text(const struct calibration *c, const struct calibration_parameter *p, char *text, size_t size)
{
    const struct calibrate_estimate *e = &p->estimate;
    switch (e->outcome) {
    case CALIBRATE_FITTED: snprintf(text, size, "%s", p->cast >= 0 ? "fitted beside, not in the entry" : "fitted"); break;
    case CALIBRATE_AT_BOUND: snprintf(text, size, "at its bound: the rows push against it"); break;
    case CALIBRATE_NO_INFLUENCE: snprintf(text, size, "held: no row depends on it"); break;
    case CALIBRATE_TOO_FEW:
        snprintf(text, size, "held: only %zu different case%s", e->n_cases, e->n_cases == 1 ? "" : "s");
        break;
    case CALIBRATE_COLLINEAR:
        snprintf(text, size, "held: the rows cannot tell it from %s",
                 e->with < c->n_parameters ? c->parameters[e->with].entry.path : "others");
        break;
    default: snprintf(text, size, "held: the rows do not determine it");
    }
    return text;
}

static void write_parameters(const struct calibration *c, const struct invocation *call)
{
    struct table table = {0};
    char text[64], low[64], high[64], reason[160];
    table_column(&table, "parameter", NULL, ALIGN_LEFT);
    table_column(&table, "before", NULL, ALIGN_RIGHT);
    table_column(&table, "after", NULL, ALIGN_RIGHT);
    table_column(&table, "low", NULL, ALIGN_RIGHT);
    table_column(&table, "high", NULL, ALIGN_RIGHT);
    table_column(&table, "rows", NULL, ALIGN_RIGHT);
    table_column(&table, "outcome", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < c->n_parameters; i++) {
        const struct calibration_parameter *p = &c->parameters[i];
        bool fitted = p->estimate.outcome == CALIBRATE_FITTED;
        table_cell(&table, "%s", p->entry.path);
        table_cell(&table, "%s", entry_parameter_text(&p->entry, p->before, text, sizeof text));
        table_tint(&table, fitted ? TINT_STRONG : TINT_NONE);
        table_cell(&table, "%s", entry_parameter_text(&p->entry, p->after, text, sizeof text));
        table_cell(&table, "%s", fitted ? bound_text(p, p->estimate.low, low, sizeof low) : "");
        table_cell(&table, "%s", fitted ? bound_text(p, p->estimate.high, high, sizeof high) : "");
        table_cell(&table, "%zu", p->estimate.n_rows);
        table_cell(&table, "%s", reason_text(c, p, reason, sizeof reason));
    }
    table_write(&table, call);
    table_free(&table);
}

void calibration_write_report(const struct calibration *c, struct invocation *call)
{
    bool text = call->format == FORMAT_TEXT;
    if (text)
        fprintf(call->out, "%sParameters of %s%s (95 %% intervals, given the model)\n", tint_start(TINT_STRONG, call->colour),
                c->base, tint_end(TINT_STRONG, call->colour));
    write_parameters(c, call);
    if (!text)
        return;
    fprintf(call->out, "\n%sError of %s, before and after%s\n", tint_start(TINT_STRONG, call->colour), c->gpu,
            tint_end(TINT_STRONG, call->colour));
    write_errors(c, call);
    calibration_write_worst(c, call);
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

void calibration_write_residuals(const struct calibration *c, FILE *out)
{
    fputs("rows,case,part,measured_s,before_s,after_s\n", out);
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct calibration_row *row = &c->rows[i];
        char text[CALIBRATION_TEXT];
        if (row->kernel)
            calibration_kernel_text(row->kernel, text);
        csv_write_cell(out, true, c->groups[row->group].label);
        csv_write_cell(out, false, row->kernel ? text : row->run->name);
        csv_write_cell(out, false, row->held_out ? "held_out" : "fitted");
        csv_write_number(out, false, row->measured);
        csv_write_number(out, false, row->before);
        csv_write_number(out, false, row->after);
        fputc('\n', out);
    }
}

/* --- JSON ---------------------------------------------------------------------------------------------------------- */

static json_t *json_parameter(const struct calibration *c, const struct calibration_parameter *p)
{
    const struct calibrate_estimate *e = &p->estimate;
    char reason[160], text[64];
    json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:I, s:I, s:f, s:b, s:f}", "name", p->entry.path,
                               "before", p->before, "after", p->after, "low", e->low, "high", e->high, "text",
                               entry_parameter_text(&p->entry, p->after, text, sizeof text), "outcome",
                               calibrate_outcome_name(e->outcome), "reason", reason_text(c, p, reason, sizeof reason), "rows",
                               (json_int_t)e->n_rows, "cases", (json_int_t)e->n_cases, "sensitivity", e->sensitivity, "nuisance",
                               p->cast >= 0, "standard_errors_moved", e->moved);
    if (e->outcome == CALIBRATE_COLLINEAR && e->with < c->n_parameters)
        json_object_set_new(object, "with", json_string(c->parameters[e->with].entry.path));
    return object;
}

static json_t *json_accuracy(const struct accuracy *a)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "mape_pct", a->mape_pct, "median_ape_pct", a->median_ape_pct, "p90_ape_pct",
                     a->p90_ape_pct, "bias_pct", a->bias_pct);
}

static json_t *json_errors(const struct calibration *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < 2 * c->n_groups; i++) {
        size_t group = i / 2;
        bool held_out = i % 2;
        struct accuracy before = calibration_accuracy(c, group, held_out, false);
        struct accuracy after = calibration_accuracy(c, group, held_out, true);
        if (after.n)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:o, s:o}", "rows", c->groups[group].label, "part",
                                                  held_out ? "held_out" : "fitted", "n", (json_int_t)after.n, "before",
                                                  json_accuracy(&before), "after", json_accuracy(&after)));
    }
    return list;
}

/* --- the entry ----------------------------------------------------------------------------------------------------- */

/* The tables that a section's rows come from. */
static void append_tables(const struct calibration *c, const char *section, char *text, size_t size)
{
    const char *last = NULL, *between = "";
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct calibration_row *row = &c->rows[i];
        if (strcmp(c->groups[row->group].section, section) != 0 || row->table == last || strlen(text) > size / 3)
            continue;
        text_append(text, size, "%s%.80s", between, calibration_title(row->table));
        last = row->table;
        between = ", ";
    }
}

/* " gemm bf16 4.0 / 11.2 % (held out 4.1 / 11.5 %), ..." */
static void append_errors(const struct calibration *c, const char *section, char *text, size_t size)
{
    const char *between = "";
    for (size_t g = 0; g < c->n_groups; g++) {
        struct accuracy fitted = calibration_accuracy(c, g, false, true), held = calibration_accuracy(c, g, true, true);
        if (strcmp(c->groups[g].section, section) != 0 || fitted.n + held.n == 0)
            continue;
        text_append(text, size, "%s %s", between, c->groups[g].label);
        if (fitted.n)
            text_append(text, size, " %.1f / %.1f %%", fitted.median_ape_pct, fitted.p90_ape_pct);
        if (held.n)
            text_append(text, size, " (held out %.1f / %.1f %%)", held.median_ape_pct, held.p90_ape_pct);
        between = ",";
    }
}

/* "fitted by msim calibrate to 3674 rows of gemm.csv.gz, 3670 held out; median / 90th percentile error ..." */
static bool section_source(const struct calibration *c, const char *section, char *text, size_t size)
{
    size_t n = 0, held = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        bool mine = strcmp(c->groups[c->rows[i].group].section, section) == 0;
        n += mine;
        held += mine && c->rows[i].held_out;
    }
    text[0] = '\0';
    text_append(text, size, "fitted by msim calibrate to %zu rows of ", n - held);
    append_tables(c, section, text, size);
    text_append(text, size, held ? ", %zu held out; median / 90th percentile error" : "; median / 90th percentile error", held);
    append_errors(c, section, text, size);
    return n > 0;
}

static const char *section_of(const char *path)
{
    static const char *const sections[] = {"gemm", "attention", "memory", "nccl"};
    if (strncmp(path, "gpu.", 4) == 0)
        path += 4;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strncmp(path, sections[i], strlen(sections[i])) == 0 && path[strlen(sections[i])] == '.')
            return sections[i];
    return "";
}

/* A base in a file is found from the new entry's directory by its name alone, or from anywhere by its whole path. */
static char *base_text(const char *base, const char *entry_path, char *text, size_t size)
{
    const char *slash = strrchr(base, '/'), *entry_slash = strrchr(entry_path, '/');
    size_t folder = slash ? (size_t)(slash - base) + 1 : 0,
           entry_folder = entry_slash ? (size_t)(entry_slash - entry_path) + 1 : 0;
    bool file = slash || strstr(base, ".yaml") || strstr(base, ".yml") || strstr(base, ".json");
    char *whole = file ? realpath(base, NULL) : NULL;
    if (whole && (folder != entry_folder || strncmp(base, entry_path, folder) != 0))
        snprintf(text, size, "%s", whole);
    else
        snprintf(text, size, "%s", file ? base + folder : base);
    free(whole);
    return text;
}

/* The value, and in `notes` its interval. */
static void put(json_t *tree, json_t *notes, const struct calibration *c, const struct calibration_parameter *p,
                const struct entry_parameter *entry)
{
    char text[64], source[SOURCE_SIZE], path[ENTRY_PATH_SIZE];
    const char *section = section_of(entry->path);
    bool of_gpu = strncmp(entry->path, "gpu.", 4) == 0;
    if (*section) { /* the source comes first among its keys */
        bool own = section_source(c, section, source, sizeof source);
        if (!own)
            section_source(c, "", source, sizeof source);
        snprintf(path, sizeof path, "%s%s.source", of_gpu ? "gpu." : "", section);
        entry_tree_set(tree, path, source);
    }
    entry_tree_set(tree, entry->path, entry_parameter_text(entry, p->after, text, sizeof text));
    char low[64], note[160];
    if (p->estimate.outcome == CALIBRATE_FITTED)
        snprintf(note, sizeof note, "%s to %s", bound_text(p, p->estimate.low, low, sizeof low),
                 bound_text(p, p->estimate.high, text, sizeof text));
    else
        snprintf(note, sizeof note, "at its bound");
    entry_tree_set(notes, entry->path, note);
}

static json_t *entry_tree(const struct calibration *c, const char *path, json_t *notes)
{
    char source[SOURCE_SIZE], fit[SOURCE_SIZE], base[PATH_MAX];
    json_t *tree = json_object();
    snprintf(source, sizeof source, "%.100s, with parameters", calibration_title(c->base));
    if (section_source(c, "", fit, sizeof fit))
        text_append(source, sizeof source, " %s", fit);
    else
        text_append(source, sizeof source, " fitted by msim calibrate; each section names its data");
    entry_tree_set(tree, "base", base_text(c->base, path, base, sizeof base));
    entry_tree_set(tree, "source", source);
    for (size_t i = 0; i < c->n_parameters; i++) {
        const struct calibration_parameter *p = &c->parameters[i];
        if (p->cast >= 0 || p->estimate.outcome > CALIBRATE_AT_BOUND)
            continue;
        put(tree, notes, c, p, &p->entry);
        if (p->twin.row)
            put(tree, notes, c, p, &p->twin);
    }
    return tree;
}

void calibration_write_entry(const struct calibration *c, const char *path, FILE *out)
{
    json_t *notes = json_object(), *tree = entry_tree(c, path, notes);
    fputs("# A comment after each fitted value shows its 95 % interval, given the model.\n", out);
    entry_write_yaml(tree, notes, out);
    json_decref(tree);
    json_decref(notes);
}

enum status calibration_write_json(const struct calibration *c, struct invocation *call)
{
    json_t *result = result_create(call, NULL), *tables = json_array(), *parameters = json_array();
    for (size_t t = 0; t < c->n_tables; t++)
        json_array_append_new(tables, json_text(c->tables[t].path));
    for (size_t i = 0; i < c->n_parameters; i++)
        json_array_append_new(parameters, json_parameter(c, &c->parameters[i]));
    json_object_set_new(result, "config",
                        json_pack("{s:o, s:o, s:o, s:f, s:b, s:b}", "tables", tables, "base", json_text(c->base), "gpu",
                                  json_text(c->gpu), "holdout", c->holdout, "with_cast", c->casts, "with_cache", c->cache));
    json_object_set_new(result, "parameters", parameters);
    json_object_set_new(result, "errors", json_errors(c));
    json_object_set_new(result, "worst", calibration_json_worst(c));
    json_object_set_new(result, "rows",
                        json_pack("{s:I, s:I, s:I}", "used", (json_int_t)c->n_rows, "other_gpus", (json_int_t)c->n_other_gpus,
                                  "unusable", (json_int_t)c->n_unusable));
    json_t *notes = json_object(); /* intervals are among the parameters already */
    json_object_set_new(result, "entry", entry_tree(c, "", notes));
    json_decref(notes);
    return result_write(call, result);
}
