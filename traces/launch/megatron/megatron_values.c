/* megatron_values.c - values of arguments, and where a key of the job came from. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "traces/launch/megatron/megatron_translate_internal.h"

double translate_largest(enum argument argument)
{
    const char *key = megatron_rows[argument].key;
    return key && strncmp(key, "layout.", 7) == 0 ? 16384 : 1e9;
}

/* --- values --- */

bool translate_has(struct translation *m, enum argument argument)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    return value->text && !value->unknown;
}

const char *translate_text(struct translation *m, enum argument argument)
{
    if (translate_has(m, argument))
        return m->arguments->of[argument].text;
    return m->arguments->of[argument].unknown ? NULL : megatron_rows[argument].fallback;
}

bool translate_is(struct translation *m, enum argument argument, const char *text)
{
    const char *given = translate_text(m, argument);
    return given && strcmp(given, text) == 0;
}

bool translate_true(struct translation *m, enum argument argument)
{
    if (m->arguments->logged && !m->arguments->of[argument].text)
        return false;
    return megatron_true(m->arguments, argument);
}

bool translate_usual(struct translation *m, enum argument argument)
{
    return megatron_true(m->arguments, argument);
}

int64_t translate_int(struct translation *m, enum argument argument, int64_t low, int64_t otherwise)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    double number;
    if (value->unknown || (!value->text && !megatron_rows[argument].fallback))
        return otherwise;
    return megatron_number(value, &megatron_rows[argument], (double)low, translate_largest(argument), &number, m->diags)
               ? (int64_t)number
               : otherwise;
}

/* --- where from --- */

static void place_text(struct place at, char *text, size_t size)
{
    const char *slash = at.file ? strrchr(at.file, '/') : NULL;
    text[0] = '\0';
    if (at.file && at.line)
        snprintf(text, size, ", %.60s:%d", slash ? slash + 1 : at.file, at.line);
    else if (at.file)
        snprintf(text, size, ", %.60s", slash ? slash + 1 : at.file);
}

void translate_from(struct translation *m, const char *key, enum argument argument)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    char place[80];
    place_text(value->at, place, sizeof place);
    if (!value->text && m->arguments->foreign)
        launch_originate(m->description, key, "not specified");
    else if (!value->text)
        launch_originate(m->description, key, "default of --%s", megatron_rows[argument].flag);
    else
        launch_originate(m->description, key, "%.60s%s", value->spelling, place);
}

void translate_missing(struct translation *m, enum argument argument, const char *what)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    if (!value->text && !value->unknown && m->description->n_missing < LAUNCH_MISSING)
        m->description->missing[m->description->n_missing++] = what;
}

void translate_not_modelled(struct translation *m, enum argument argument, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct megatron_value *value = &m->arguments->of[argument];
    const char *dashes = value->spelling ? "" : "--", *name = value->spelling ? value->spelling : megatron_rows[argument].flag;
    diag_warning(m->diags, value->at, "not modelled: %s%.60s (%s)", dashes, name, text);
}
