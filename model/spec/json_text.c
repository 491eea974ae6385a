#include "model/spec/json_text.h"

#include <stdlib.h>

#include "model/base/utf8.h"

json_t *json_text(const char *text)
{
    json_t *json = json_string(text);
    if (json)
        return json;
    char *copy = utf8_copy(text);
    json = json_string(copy);
    free(copy);
    return json;
}
