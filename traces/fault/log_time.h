/*
 * log_time.h - when a line of a kernel log is from, as dmesg (also -T, -x, --raw, --time-format iso), syslog and journalctl
 * (short, -iso, -precise, -full) write it.
 */
#ifndef MSIM_TRACES_FAULT_LOG_TIME_H
#define MSIM_TRACES_FAULT_LOG_TIME_H

#include <stdbool.h>

#include "model/base/diag.h"
#include "model/base/units.h"

enum log_time {
    LOG_NO_TIME,    /* the line has none */
    LOG_SINCE_BOOT, /* of its host */
    LOG_YEARLESS,   /* a date without its year: each is taken for one of 366 days, the first for 2024 */
    LOG_DATED,
};

/* Beyond it a time is a mistake: the end of 2199. */
#define LOG_LATEST_S 7.25e9
#define LOG_YEAR     ((nanos)366 * 86400 * NANOS_PER_SECOND)

/* Of the yearless lines of one file, in its order. All zero at its start. */
struct log_clock {
    int years;      /* that have begun since the first of them */
    nanos latest;   /* of those before; 0: none */
    bool told;      /* that a year began: once is enough for all files */
    bool told_zone; /* of a zone whose hours are unknown, likewise */
};

/* "Z", "UTC", "+08:00", "+0800", "-05", "": how far a clock is ahead of universal time; false: not such a text. */
bool log_zone(const char *text, nanos *ahead);

/* The time at the start of a line, in seconds since boot or since 1970, and what stands behind it: at universal time where the
 * line names a zone by its hours, local otherwise. Of yearless lines one that is more than half a year before those above it
 * begins a new year, which is told at `at`, once. *time and *rest are written where there is a time. */
enum log_time log_line_time(const char *line, struct log_clock *clock, struct place at, nanos *time, const char **rest,
                            struct diags *diags);

#endif
