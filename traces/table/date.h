/*
 * date.h - dates in records: without a zone they are local time, with one they become universal time.
 *
 *     2017-10-03T07:15:00+08:00   2017-10-03 07:15   2017-10-03T07:15:00.25Z
 */
#ifndef MSIM_TRACES_TABLE_DATE_H
#define MSIM_TRACES_TABLE_DATE_H

#include <stdbool.h>

#include "model/base/units.h"

/* "2003-01-01" or "2003-01-01T07:15[:30]" as time since 1970-01-01 00:00, until 2199; false: the text is no such date. */
bool local_time_parse(const char *text, nanos *time);

/* The offset of a clock from universal time: "Z", "UTC", "+08:00", "+0800", "-05", ""; false: the text is no offset. */
bool zone_parse(const char *text, nanos *ahead);

/* A date, perhaps with a fraction of a second, which is ignored, and a zone, which is applied. */
bool zoned_time_parse(const char *text, nanos *time, bool *zoned);

#endif
