/* megatron_export_values.c - sets arguments of an export, and notes what no argument can express. */
#include <stdarg.h>
#include <stdio.h>

#include "traces/launch/megatron/megatron_export_internal.h"

void export_set(struct export_writer *w, enum argument argument, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = arena_new(&w->to->arena, (size_t)n + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    w->to->arguments.of[argument].text = text;
}

void export_flag(struct export_writer *w, enum argument argument)
{
    export_set(w, argument, "%s", megatron_rows[argument].type == ARGUMENT_FALSE ? "false" : "true");
}

void export_leave_out(struct export_writer *w, enum argument argument)
{
    w->to->arguments.of[argument].text = NULL;
}

static void lose_all(struct megatron_export *e, const char *format, va_list arguments)
{
    if (e->n_lost < EXPORT_LOST)
        vsnprintf(e->lost[e->n_lost++], EXPORT_TEXT, format, arguments);
}

void export_lose(struct export_writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lose_all(w->to, format, arguments);
    va_end(arguments);
}

void megatron_export_lose(struct megatron_export *export_, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lose_all(export_, format, arguments);
    va_end(arguments);
}

void megatron_export_free(struct megatron_export *export_)
{
    arena_free(&export_->arena);
}
