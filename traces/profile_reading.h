/* profile_reading.h - between the files of the profile's reader. */
#ifndef MSIM_TRACES_PROFILE_READING_H
#define MSIM_TRACES_PROFILE_READING_H

#include "traces/profile.h"

/* What is told of an exchange; "" and 0 where it is not. */
struct exchange_words {
    const char *kernel, *operation, *group;
    int ranks;
};
enum profile_kind profile_exchange_kind(const struct exchange_words *words, const struct layout *layout);

#endif
