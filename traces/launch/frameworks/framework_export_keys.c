/* framework_export_keys.c - what the exports of single frameworks share: changed arguments, the command in a comment. */
#include <stdarg.h>
#include <stdio.h>

#include "traces/launch/frameworks/framework_export_internal.h"

void config_set(struct config *c, enum argument argument, const char *format, ...)
{
    enum { TEXT_SIZE = 128 };
    va_list values;
    char *text = arena_new(&c->exported.arena, TEXT_SIZE, 1);
    va_start(values, format);
    vsnprintf(text, TEXT_SIZE, format, values);
    va_end(values);
    c->exported.arguments.of[argument].text = text;
}

void config_write_command(const struct config *c, const char *program, FILE *out)
{
    int per_node = config_node_gpus(c);
    fprintf(out, "# torchrun --nproc_per_node %d --nnodes %d %s\n", per_node, per_node ? c->job->gpus / per_node : 0, program);
}
