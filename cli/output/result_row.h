/*
 * result_row.h - one table of rows says what a result holds; loops over it write JSON, CSV and text.
 *
 * A row has a key, a value of some subject, the key's unit, the formats that have it, and its meaning. A list of rows is a macro:
 *
 *     #define DISK_ROWS(ROW)                                                                                     \
 *         ROW(disk, name, as_text(s->name), "", JSON | CSV, "name of the file system")                        \
 *         ROW(disk, size_gib, as_real(s->bytes / GIB), "GiB", JSON | CSV, "its size", .title = "size", .show = "%.1f")
 *     RESULT_ROWS(disk_rows, DISK_ROWS)
 *
 *     rows_json(disk_rows, &disk, object);              {"name": ..., "size_gib": ...}
 *     rows_csv_heading(disk_rows, &disk, true, out);    name,size_gib
 *     rows_csv_cells(disk_rows, &disk, true, out);      scratch,931.3
 *
 * The first word of a row is the tag of its subject's struct. The value is an expression of `s`, here a `const struct disk *`;
 * its getter is named `disk_name`. Rows with .show are columns of a text table as well. A table with other columns or another
 * order names their keys:
 *
 *     static const char *const columns[] = {"size_gib", "name", NULL};
 *     struct result_row picked[MAX_PICKED];
 *     rows_columns(rows_pick(disk_rows, columns, picked), &disk, table);
 */
#ifndef MSIM_CLI_OUTPUT_RESULT_ROW_H
#define MSIM_CLI_OUTPUT_RESULT_ROW_H

#include <jansson.h>

#include "cli/output/table.h"
#include "model/cost/work/cost.h"

/* A result that this subject does not have (VALUE_ABSENT) has no key and no column; an unknown one is null or an empty cell. */
enum value_kind { VALUE_ABSENT, VALUE_UNKNOWN, VALUE_REAL, VALUE_INTEGER, VALUE_FLAG, VALUE_TEXT, VALUE_JSON, VALUE_CLASSES };

struct value {
    enum value_kind kind;
    double real;
    int64_t integer;                     /* or a flag */
    char *text;                          /* a copy, which the writer frees */
    char *shown;                         /* what text has instead, and CSV of JSON; NULL: nothing else */
    json_t *json;                        /* released or taken over by the writer */
    const struct cost_by_class *classes; /* JSON: {class: seconds}; CSV and text: a column of each class */
    const struct cost_by_class *among;   /* text has only classes with some time here; NULL: all */
    enum tint tint;
    bool hidden;  /* not in text */
    bool keyless; /* not in JSON */
};

enum result_format { JSON = 1, CSV = 2, TEXT = 4 };

struct result_row {
    const char *key;
    struct value (*get)(const void *subject);
    const char *unit; /* of the key's value; "": none */
    unsigned formats;
    const char *meaning;
    const char *inside;    /* the object of JSON that has the key; NULL: the result itself */
    const char *column;    /* the name in CSV, where that is not the key */
    const char *digits;    /* the number in CSV, such as "%.12g"; NULL: the shortest text that reads back equal */
    const char *title;     /* in text; NULL: the key */
    const char *text_unit; /* the unit in text, where it is another one; NULL: `unit` */
    const char *show;      /* the number in text, such as "%.1f", or the text, such as "%.60s"; NULL: not in text */
    double scale;          /* text shows the value times this; 0: 1 */
    enum column_view view; /* of its column in a text table */
};

/* What a command writes, for `msim help --keys`: the rows of one kind of object; ends with NULL rows. */
struct result_table {
    const char *path; /* of the object in JSON: "", "plans[]", "a, b, difference" */
    const struct result_row *rows;
};

struct value as_real(double number);
struct value as_number(double number); /* unknown where it is no finite number */
struct value as_count(int64_t number);
struct value as_flag(bool flag);
struct value as_text(const char *text); /* copied; NULL: unknown */
struct value as_json(json_t *json);     /* NULL: absent */
struct value as_classes(const struct cost_by_class *classes);
/* Only classes that take some of `among` in text. */
struct value as_classes_among(const struct cost_by_class *classes, const struct cost_by_class *among);
struct value unknown(void);
struct value known_if(bool known, struct value value);     /* unknown otherwise */
struct value present_if(bool present, struct value value); /* absent otherwise */
struct value tinted(struct value value, enum tint tint);
/* Text shows this instead of the value. */
struct value shown_as(struct value value, const char *format, ...) PRINTF_LIKE(2, 3);
struct value in_text_if(bool shown, struct value value);
struct value in_json_if(bool shown, struct value value);

/* The row of a key, which must be there. */
const struct result_row *row_of(const struct result_row *rows, const char *key);
/* The rows of these keys in their order, copied to `picked`, which it returns. NULL ends the keys, "" is none. */
enum { MAX_PICKED = 48 };
const struct result_row *rows_pick(const struct result_row *rows, const char *const *keys, struct result_row picked[MAX_PICKED]);

/* {class: seconds}, every class. */
json_t *cost_by_class_json(const struct cost_by_class *by);
void rows_json(const struct result_row *rows, const void *subject, json_t *object);
json_t *rows_object(const struct result_row *rows, const void *subject);
/* Columns and cells of CSV: `first` begins a line; the caller ends it. A heading leaves out what its subject does not have.
 * Without a subject (NULL): every column, and empty cells; in text "-". Rows with classes need one. */
void rows_csv_heading(const struct result_row *rows, const void *subject, bool first, FILE *out);
void rows_csv_cells(const struct result_row *rows, const void *subject, bool first, FILE *out);
/* Columns and cells of a text table: the rows with .show that the subject has. */
void rows_columns(const struct result_row *rows, const void *subject, struct table *table);
void rows_cells(const struct result_row *rows, const void *subject, struct table *table);
/* A line of a text table "quantity, value, meaning" (table_value_row), unless the value is absent or unknown. */
void rows_line(const struct result_row *rows, const char *key, const void *subject, struct table *table);

/* msim help --keys: the keys of each command's results, or of one command's. */
void result_keys_write(const struct command *const *commands, const struct command *only, FILE *out);

#define TWELVE_DIGITS .digits = "%.12g"

#define RESULT_GETTER(SUBJECT, KEY, VALUE, ...)                                                                                  \
    static struct value SUBJECT##_##KEY(const void *subject) {                                                                   \
        const struct SUBJECT *s = subject;                                                                                       \
        (void)s;                                                                                                                 \
        return VALUE;                                                                                                            \
    }
#define RESULT_ROW(SUBJECT, KEY, VALUE, UNIT, FORMATS, ...)                                                                      \
    {.key = #KEY, .get = SUBJECT##_##KEY, .unit = UNIT, .formats = FORMATS, .meaning = __VA_ARGS__},
/* Defines the getters of a list and the array of its rows, which ends with a row without key. */
#define RESULT_ROWS(NAME, LIST)                                                                                                  \
    LIST(RESULT_GETTER)                                                                                                          \
    const struct result_row NAME[] = {LIST(RESULT_ROW){0}};

#endif
