/* offloaded.h - what a text says that a test knows to be right. */
#ifndef MSIM_TESTS_LAYOUT_OFFLOADED_H
#define MSIM_TESTS_LAYOUT_OFFLOADED_H

#include <check.h>

#include "model/spec/offload.h"

static inline struct offload offloaded(const char *text)
{
    char why[OFFLOAD_WHY] = "";
    struct offload set = offload_wholes[0];
    ck_assert_msg(offload_parse(text, &set, why, sizeof why), "%s: %s", text, why);
    return set;
}

#endif
