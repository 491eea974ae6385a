/*
 * schema.h - the YAML form of a struct: one row per key.
 *
 * Example:
 *
 *     static const struct field rows[] = {
 *         TEXT("source", struct gpu, source, REQUIRED, "where the numbers come from"),
 *         QUANTITY("hbm_rate", struct gpu, hbm_rate, DIM_RATE, 1e9, 1e15, REQUIRED, "HBM bandwidth"),
 *         GROUP("memory", struct gpu, memory, memory_schema, REQUIRED, "kernels limited by memory bandwidth"),
 *     };
 *     const struct schema gpu_schema = SCHEMA("gpu", rows);
 *
 * A row has the key, the type of the value (and its dimension), its place in the struct, its bounds, its default, and one line
 * of help. The reader with all its messages, the writer of the effective configuration, and the catalog's tables follow from
 * the rows. To give a struct a new parameter, add the member and one row.
 *
 * The default is text in the user's syntax and goes through the user's parser; REQUIRED has none, UNSET leaves zero.
 */
#ifndef MSIM_MODEL_SPEC_SCHEMA_H
#define MSIM_MODEL_SPEC_SCHEMA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/base/units.h"
#include "model/spec/yaml.h"

enum field_type {
    FIELD_TEXT,     /* char[size] */
    FIELD_INT,      /* int, written as a count */
    FIELD_INT64,    /* int64_t, written as a count */
    FIELD_QUANTITY, /* double, in `dimension` */
    FIELD_BOOL,     /* bool: true or false */
    FIELD_CHOICE,   /* an enum (int-sized): one of `choices`, NULL-terminated, indexed by value */
    FIELD_GROUP,    /* a nested mapping, by `group`; offsets of its rows count from this row's */
    FIELD_CUSTOM,   /* read and written by functions */
};

struct field;
struct schema;

typedef void field_read_function(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags);
typedef json_t *field_write_function(const struct field *row, const void *at);

struct field {
    const char *key;
    enum field_type type;
    enum dimension dimension;
    size_t offset, size;
    double min, max;      /* inclusive */
    bool binary;          /* k and M may also mean 1,024 and its square */
    bool port;            /* a port rate: 400G means 400 Gbps */
    const char *fallback; /* text; REQUIRED (NULL) or UNSET ("") */
    bool stated;          /* written even if zero, because an absent key means something else */
    const char *const *choices, *const *synonyms;
    const struct schema *group;
    field_read_function *read;
    field_write_function *write;
    const char *help;
};

/* Advice for an unknown key: "leaf_oversubscription, down : up at the leaf"; NULL: none. */
typedef const char *key_advice_function(const char *key, const struct yaml_node *mapping);

struct schema {
    const char *what; /* "gpu", for messages */
    const struct field *rows;
    size_t n_rows;
    key_advice_function *advice; /* NULL: none */
};

#define REQUIRED NULL
#define UNSET    ""

/* `member` may be any designator, such as gemm[PRECISION_BF16].peak_fraction. */
#define FIELD_AT(T, member) .offset = offsetof(T, member), .size = sizeof(((T *)0)->member)
#define TEXT(k, T, member, def, what)                                                                                            \
    {                                                                                                                            \
        .key = k, .type = FIELD_TEXT, FIELD_AT(T, member), .fallback = def, .help = what                                         \
    }
#define INTEGER(k, T, member, lo, hi, def, what)                                                                                 \
    {                                                                                                                            \
        .key = k, .type = sizeof(((T *)0)->member) == 8 ? FIELD_INT64 : FIELD_INT, FIELD_AT(T, member), .min = lo, .max = hi,    \
        .fallback = def, .help = what                                                                                            \
    }
#define LENGTH(k, T, member, lo, hi, def, what)                                                                                  \
    {                                                                                                                            \
        .key = k, .type = sizeof(((T *)0)->member) == 8 ? FIELD_INT64 : FIELD_INT, FIELD_AT(T, member), .min = lo, .max = hi,    \
        .binary = true, .fallback = def, .help = what                                                                            \
    }
#define QUANTITY(k, T, member, dim, lo, hi, def, what)                                                                           \
    {                                                                                                                            \
        .key = k, .type = FIELD_QUANTITY, .dimension = dim, FIELD_AT(T, member), .min = lo, .max = hi, .fallback = def,          \
        .help = what                                                                                                             \
    }
#define PORT_RATE(k, T, member, lo, hi, def, what)                                                                               \
    {                                                                                                                            \
        .key = k, .type = FIELD_QUANTITY, .dimension = DIM_RATE, FIELD_AT(T, member), .min = lo, .max = hi, .port = true,        \
        .fallback = def, .help = what                                                                                            \
    }
#define BOOLEAN(k, T, member, def, what)                                                                                         \
    {                                                                                                                            \
        .key = k, .type = FIELD_BOOL, FIELD_AT(T, member), .fallback = def, .help = what                                         \
    }
/* `synonyms`: pairs of a synonym and the choice that it means, NULL-terminated. */
#define CHOICE_OR(k, T, member, names, others, def, what)                                                                        \
    {                                                                                                                            \
        .key = k, .type = FIELD_CHOICE, FIELD_AT(T, member), .choices = names, .synonyms = others, .fallback = def, .help = what \
    }
#define CHOICE(k, T, member, names, def, what)                                                                                   \
    {                                                                                                                            \
        .key = k, .type = FIELD_CHOICE, FIELD_AT(T, member), .choices = names, .fallback = def, .help = what                     \
    }
#define GROUP(k, T, member, schema, def, what)                                                                                   \
    {                                                                                                                            \
        .key = k, .type = FIELD_GROUP, FIELD_AT(T, member), .group = &(schema), .fallback = def, .help = what                    \
    }
/* Keys grouped under one name whose members are in the enclosing struct itself. */
#define SECTION(k, schema, def, what)                                                                                            \
    {                                                                                                                            \
        .key = k, .type = FIELD_GROUP, .group = &(schema), .fallback = def, .help = what                                         \
    }
#define CUSTOM(k, T, member, reader, writer, def, what)                                                                          \
    {                                                                                                                            \
        .key = k, .type = FIELD_CUSTOM, FIELD_AT(T, member), .read = reader, .write = writer, .fallback = def, .help = what      \
    }
#define SCHEMA(name, table)                                                                                                      \
    {                                                                                                                            \
        .what = name, .rows = table, .n_rows = sizeof(table) / sizeof((table)[0])                                                \
    }

#define SCHEMA_WITH(name, table, adviser)                                                                                        \
    {                                                                                                                            \
        .what = name, .rows = table, .n_rows = sizeof(table) / sizeof((table)[0]), .advice = adviser                             \
    }

/*
 * Reads a mapping into *object (zeroed by the caller) and reports every mistake: unknown keys (with the group that has them,
 * the advice of the schema, or the nearest known key), repeated keys, wrong types and units, values out of bounds, missing
 * required keys. Members with mistakes keep their value.
 */
void schema_read(const struct schema *schema, const struct yaml_node *mapping, void *object, struct diags *diags);

/* Reads one value by its row, for readers that iterate over keys themselves. `object` is the struct. */
void field_read(const struct field *row, const struct yaml_node *value, void *object, struct diags *diags);

/* The mapping that schema_read reads into an equal struct. Keys with the value UNSET are left out. */
json_t *schema_write(const struct schema *schema, const void *object);

/* The row of a key, NULL if there is none. */
static inline const struct field *schema_find(const struct schema *schema, const char *key)
{
    for (size_t i = 0; i < schema->n_rows; i++)
        if (strcmp(schema->rows[i].key, key) == 0)
            return &schema->rows[i];
    return NULL;
}

#endif
