/* figure_cells.c - numbers and texts of results, as cells of gnuplot's data blocks. */
#include <string.h>

#include "plots/figure_data.h"

double figure_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void figure_write_text(FILE *out, const char *text)
{
    for (; *text; text++)
        putc(*text == '"' ? '\'' : (unsigned char)*text < ' ' ? ' ' : *text, out);
}

char *figure_short_name(const char *path, char *buffer, size_t size)
{
    static const char *const endings[] = {".gz", ".csv", ".json"};
    const char *slash = strrchr(path, '/');
    snprintf(buffer, size, "%s", slash && slash[1] ? slash + 1 : path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(buffer), ending = strlen(endings[i]);
        if (n > ending && strcmp(buffer + n - ending, endings[i]) == 0)
            buffer[n - ending] = '\0';
    }
    return buffer;
}
