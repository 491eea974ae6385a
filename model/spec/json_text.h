/*
 * json_text.h - texts from outside in JSON.
 */
#ifndef MSIM_MODEL_SPEC_JSON_TEXT_H
#define MSIM_MODEL_SPEC_JSON_TEXT_H

#include <jansson.h>

/* json_string of anything: of the name of a file or the line of a log what is no UTF-8 becomes U+FFFD. */
json_t *json_text(const char *text);

#endif
