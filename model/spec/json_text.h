/*
 * json_text.h - JSON strings of external text, which may not be UTF-8.
 *
 * Example: json_text("caf\xe9.log") is the string "caf\ufffd.log"; json_string would return NULL.
 */
#ifndef MSIM_MODEL_SPEC_JSON_TEXT_H
#define MSIM_MODEL_SPEC_JSON_TEXT_H

#include <jansson.h>

/* Like json_string, for any bytes: those of a file name or of a line of a log that are not UTF-8 become U+FFFD. */
json_t *json_text(const char *text);

#endif
