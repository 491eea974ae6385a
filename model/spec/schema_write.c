/* schema_write.c - write a struct as a mapping by the rows of a schema. */
#include <stdio.h>
#include <string.h>

#include "model/spec/json_text.h"
#include "model/spec/schema.h"

static json_t *write_quantity(const struct field *row, const double *value)
{
    char text[64];
    if (row->dimension == DIM_COUNT || row->dimension == DIM_FRACTION)
        return json_real(*value);
    return json_string(quantity_write(*value, row->dimension, text, sizeof text));
}

static json_t *write_field(const struct field *row, const void *object)
{
    const char *at = (const char *)object + row->offset;
    switch (row->type) {
    case FIELD_TEXT: return json_text(at);
    case FIELD_INT: return json_integer(*(const int *)at);
    case FIELD_INT64: return json_integer(*(const int64_t *)at);
    case FIELD_QUANTITY: return write_quantity(row, (const double *)at);
    case FIELD_BOOL: return json_boolean(*(const bool *)at);
    case FIELD_CHOICE: return json_string(row->choices[*(const int *)at]);
    case FIELD_GROUP: return schema_write(row->group, at);
    case FIELD_CUSTOM: return row->write(row, at);
    }
    return json_null();
}

/* Left at zero by a row that may be: the reader would put the same back. */
static bool is_unset(const struct field *row, const void *object)
{
    const unsigned char *at = (const unsigned char *)object + row->offset;
    if (!row->fallback || *row->fallback || row->size == 0 || row->stated)
        return false;
    if (row->type == FIELD_TEXT)
        return !*at;
    for (size_t i = 0; i < row->size; i++)
        if (at[i])
            return false;
    return true;
}

json_t *schema_write(const struct schema *schema, const void *object)
{
    json_t *mapping = json_object();
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct field *row = &schema->rows[i];
        if (is_unset(row, object))
            continue;
        json_t *value = write_field(row, object);
        bool empty_group = row->type == FIELD_GROUP && row->fallback && json_object_size(value) == 0;
        if (empty_group)
            json_decref(value);
        else
            json_object_set_new(mapping, row->key, value);
    }
    return mapping;
}
