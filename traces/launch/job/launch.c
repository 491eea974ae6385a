/* launch.c - the origins of a job's values. */
#include "traces/launch/job/launch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void launch_originate(struct launch_description *description, const char *key, const char *format, ...)
{
    int i = 0;
    while (i < description->n_origins && strcmp(description->origins[i].key, key) != 0)
        i++;
    if (i == LAUNCH_ORIGINS)
        return;
    if (i == description->n_origins)
        description->n_origins++;
    struct launch_origin *origin = &description->origins[i];
    origin->key = key;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(origin->text, sizeof origin->text, format, arguments);
    va_end(arguments);
}

const char *launch_origin_of(const struct launch_description *description, const char *key)
{
    for (int i = 0; i < description->n_origins; i++)
        if (strcmp(description->origins[i].key, key) == 0)
            return description->origins[i].text;
    return NULL;
}
