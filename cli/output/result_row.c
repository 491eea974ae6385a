#include "cli/output/result_row.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/terminal.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/spec/json_text.h"
#include "traces/table/csv.h"

/* --- values --- */

struct value as_real(double number)
{
    return (struct value){.kind = VALUE_REAL, .real = number};
}

struct value as_number(double number)
{
    return known_if(isfinite(number), as_real(number));
}

struct value as_count(int64_t number)
{
    return (struct value){.kind = VALUE_INTEGER, .integer = number};
}

struct value as_flag(bool flag)
{
    return (struct value){.kind = VALUE_FLAG, .integer = flag};
}

struct value as_text(const char *text)
{
    return text ? (struct value){.kind = VALUE_TEXT, .text = memory_copy_text(text)} : unknown();
}

struct value as_json(json_t *json)
{
    return json ? (struct value){.kind = VALUE_JSON, .json = json} : (struct value){0};
}

struct value as_classes(const struct cost_by_class *classes)
{
    return (struct value){.kind = VALUE_CLASSES, .classes = classes};
}

struct value as_classes_among(const struct cost_by_class *classes, const struct cost_by_class *among)
{
    return (struct value){.kind = VALUE_CLASSES, .classes = classes, .among = among};
}

struct value unknown(void)
{
    return (struct value){.kind = VALUE_UNKNOWN};
}

static void value_free(struct value *value)
{
    free(value->text);
    free(value->shown);
    json_decref(value->json);
    *value = (struct value){0};
}

struct value known_if(bool known, struct value value)
{
    if (known)
        return value;
    /* The classes stay: a heading has their names. */
    const struct cost_by_class *classes = value.classes;
    value_free(&value);
    return (struct value){.kind = VALUE_UNKNOWN, .classes = classes};
}

struct value present_if(bool present, struct value value)
{
    if (!present)
        value_free(&value);
    return value;
}

struct value tinted(struct value value, enum tint tint)
{
    value.tint = tint;
    return value;
}

struct value shown_as(struct value value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    free(value.shown);
    if (vasprintf(&value.shown, format, args) < 0)
        value.shown = NULL;
    va_end(args);
    return value;
}

struct value in_text_if(bool shown, struct value value)
{
    value.hidden = !shown;
    return value;
}

struct value in_json_if(bool shown, struct value value)
{
    value.keyless = !shown;
    return value;
}

const struct result_row *row_of(const struct result_row *rows, const char *key)
{
    while (strcmp(rows->key, key) != 0)
        rows++;
    return rows;
}

const struct result_row *rows_pick(const struct result_row *rows, const char *const *keys, struct result_row picked[MAX_PICKED])
{
    int n = 0;
    for (; *keys && n < MAX_PICKED - 1; keys++)
        if (**keys)
            picked[n++] = *row_of(rows, *keys);
    picked[n] = (struct result_row){0};
    return picked;
}

/* --- JSON --- */

json_t *cost_by_class_json(const struct cost_by_class *by)
{
    json_t *json = json_object();
    for (int i = 0; i < N_WORK_CLASSES; i++)
        json_object_set_new(json, work_class_name((enum work_class)i), json_real(by->s[i]));
    return json;
}

static json_t *value_json(struct value *value)
{
    switch (value->kind) {
    case VALUE_REAL: return json_real(value->real);
    case VALUE_INTEGER: return json_integer(value->integer);
    case VALUE_FLAG: return json_boolean(value->integer);
    case VALUE_TEXT: return json_text(value->text);
    case VALUE_JSON: return json_incref(value->json);
    case VALUE_CLASSES: return cost_by_class_json(value->classes);
    default: return json_null();
    }
}

/* The object `name` of another, made where there is none; the other itself without a name. */
static json_t *object_inside(json_t *object, const char *name)
{
    if (name && !json_object_get(object, name))
        json_object_set_new(object, name, json_object());
    return name ? json_object_get(object, name) : object;
}

void rows_json(const struct result_row *rows, const void *subject, json_t *object)
{
    for (; rows->key; rows++) {
        if (!(rows->formats & JSON))
            continue;
        struct value value = rows->get(subject);
        if (value.kind != VALUE_ABSENT && !value.keyless)
            json_object_set_new(object_inside(object, rows->inside), rows->key, value_json(&value));
        value_free(&value);
    }
}

json_t *rows_object(const struct result_row *rows, const void *subject)
{
    json_t *object = json_object();
    rows_json(rows, subject, object);
    return object;
}

/* --- CSV --- */

/* Unknown without a subject. */
static struct value value_of(const struct result_row *row, const void *subject)
{
    return subject ? row->get(subject) : unknown();
}

void rows_csv_heading(const struct result_row *rows, const void *subject, bool first, FILE *out)
{
    char name[64];
    for (; rows->key; rows++) {
        if (!(rows->formats & CSV))
            continue;
        struct value value = value_of(rows, subject);
        for (int c = 0; c < N_WORK_CLASSES && value.classes; c++) {
            snprintf(name, sizeof name, "%s_s", work_class_name((enum work_class)c));
            csv_write_cell(out, first, name);
            first = false;
        }
        if (value.kind != VALUE_ABSENT && !value.classes) {
            csv_write_cell(out, first, rows->column ? rows->column : rows->key);
            first = false;
        }
        value_free(&value);
    }
}

static void csv_number(const char *digits, double number, bool first, FILE *out)
{
    char text[64];
    if (!digits) {
        csv_write_number(out, first, number);
        return;
    }
    snprintf(text, sizeof text, digits, number); // NOLINT(format-nonliteral): a row's own
    drop_sign_of_zero(text, false);
    csv_write_cell(out, first, text);
}

static void csv_value(const struct result_row *row, const struct value *value, bool first, FILE *out)
{
    switch (value->kind) {
    case VALUE_REAL: csv_number(row->digits, value->real, first, out); break;
    case VALUE_INTEGER:
    case VALUE_FLAG: csv_write_integer(out, first, value->integer); break;
    case VALUE_TEXT: csv_write_cell(out, first, value->text); break;
    case VALUE_JSON: csv_write_cell(out, first, value->shown ? value->shown : ""); break;
    default: csv_write_cell(out, first, ""); break;
    }
}

void rows_csv_cells(const struct result_row *rows, const void *subject, bool first, FILE *out)
{
    for (; rows->key; rows++) {
        if (!(rows->formats & CSV))
            continue;
        struct value value = value_of(rows, subject);
        for (int c = 0; c < N_WORK_CLASSES && value.classes; c++) {
            bool known = value.kind == VALUE_CLASSES;
            csv_value(rows, &(struct value){known ? VALUE_REAL : VALUE_UNKNOWN, .real = value.classes->s[c]}, first, out);
            first = false;
        }
        if (value.kind != VALUE_ABSENT && !value.classes) {
            csv_value(rows, &value, first, out);
            first = false;
        }
        value_free(&value);
    }
}

/* --- text --- */

/* The value for a text table; absent where that does not have the row. */
static struct value text_value(const struct result_row *row, const void *subject)
{
    return row->show ? value_of(row, subject) : (struct value){0};
}

static bool is_shown(const struct value *value)
{
    return value->kind != VALUE_ABSENT && !value->hidden;
}

static const char *title_of(const struct result_row *row)
{
    return row->title ? row->title : row->key;
}

static const char *unit_of(const struct result_row *row)
{
    return row->text_unit ? row->text_unit : row->unit;
}

/* "%s", "%.60s". */
static bool shows_text(const struct result_row *row)
{
    return row->show[strlen(row->show) - 1] == 's';
}

static char *value_text(const struct result_row *row, const struct value *value, char *buffer, size_t size)
{
    double number = value->kind == VALUE_REAL ? value->real : (double)value->integer;
    if (value->kind == VALUE_UNKNOWN)
        snprintf(buffer, size, "-");
    else if (value->shown)
        snprintf(buffer, size, "%s", value->shown);
    else if (value->text)
        snprintf(buffer, size, shows_text(row) ? row->show : "%s", value->text); // NOLINT: a row's own
    else
        snprintf(buffer, size, row->show, number * (row->scale > 0 ? row->scale : 1)); // NOLINT: a row's own
    drop_sign_of_zero(buffer, row->show[1] == '+');
    return buffer;
}

/* Has the text a column of this class? */
static bool has_class(const struct value *value, int c)
{
    return value->classes && (!value->among || value->among->s[c] > 0);
}

void rows_columns(const struct result_row *rows, const void *subject, struct table *table)
{
    for (; rows->key; rows++) {
        struct value value = text_value(rows, subject);
        bool shown = is_shown(&value);
        const char *unit = *unit_of(rows) ? unit_of(rows) : NULL;
        for (int c = 0; c < N_WORK_CLASSES && shown; c++)
            if (has_class(&value, c))
                table_column(table, work_class_name((enum work_class)c), unit, ALIGN_RIGHT);
        if (shown && !value.classes) {
            table_column(table, title_of(rows), unit, shows_text(rows) ? ALIGN_LEFT : ALIGN_RIGHT);
            table_column_view(table, rows->view);
        }
        value_free(&value);
    }
}

void rows_cells(const struct result_row *rows, const void *subject, struct table *table)
{
    char text[512];
    for (; rows->key; rows++) {
        struct value value = text_value(rows, subject);
        bool shown = is_shown(&value);
        for (int c = 0; c < N_WORK_CLASSES && shown; c++)
            if (has_class(&value, c))
                table_cell(table, rows->show, value.classes->s[c]); // NOLINT: a row's own
        if (shown && !value.classes) {
            table_tint(table, value.tint);
            table_cell(table, "%s", value_text(rows, &value, text, sizeof text));
        }
        value_free(&value);
    }
}

void rows_line(const struct result_row *rows, const char *key, const void *subject, struct table *table)
{
    char text[512];
    const struct result_row *row = row_of(rows, key);
    struct value value = text_value(row, subject);
    if (is_shown(&value) && value.kind != VALUE_UNKNOWN)
        table_value_row(table, title_of(row), row->meaning, "%s", value_text(row, &value, text, sizeof text));
    value_free(&value);
}

/* --- keys --- */

static void describe_row(const char *path, const struct result_row *row, struct table *table)
{
    char formats[32] = "";
    const char *name = row->column && !(row->formats & JSON) ? row->column : row->key;
    table_cell(table, "%s%s%s%s%s", path, *path ? "." : "", row->inside ? row->inside : "", row->inside ? "." : "", name);
    table_cell(table, "%s", row->unit);
    if (row->formats & JSON)
        text_append(formats, sizeof formats, "json");
    if (row->formats & CSV)
        text_append(formats, sizeof formats, "%scsv", *formats ? ", " : "");
    if (row->show)
        text_append(formats, sizeof formats, "%stext", *formats ? ", " : "");
    table_cell(table, "%s", formats);
    table_cell(table, "%s", row->meaning);
}

static void describe_command(const struct command *command, FILE *out)
{
    struct table table = {0};
    struct invocation call = {.out = out, .width = terminal_width(out)};
    static const char *const titles[] = {"key", "unit", "formats", "meaning"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&table, titles[i], NULL, ALIGN_LEFT);
    for (const struct result_table *rows = command->keys; rows->rows; rows++)
        for (const struct result_row *row = rows->rows; row->key; row++)
            describe_row(rows->path, row, &table);
    fprintf(out, "msim %s\n\n", command->name);
    table_write_text(&table, &call);
    table_free(&table);
}

void result_keys_write(const struct command *const *commands, const struct command *only, FILE *out)
{
    const char *before = "";
    for (; *commands; commands++) {
        if (!(*commands)->keys || (only && *commands != only))
            continue;
        fputs(before, out);
        describe_command(*commands, out);
        before = "\n";
    }
}
