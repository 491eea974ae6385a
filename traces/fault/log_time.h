/*
 * log_time.h - the time of a line of a kernel log, from dmesg (also -T, -x, --raw, --time-format iso), syslog and journalctl
 * (short, -iso, -precise, -full), and of programs in Go (klog).
 *
 *     [ 8123.456789] NVRM: Xid ...                     seconds since boot
 *     Mar  3 12:01:02 n17 kernel: NVRM: Xid ...        a date without a year
 *     2024-03-03T12:01:02+0100 n17 kernel: ...         a date with a zone
 */
#ifndef MSIM_TRACES_FAULT_LOG_TIME_H
#define MSIM_TRACES_FAULT_LOG_TIME_H

#include <stdbool.h>

#include "model/base/diag.h"
#include "model/base/units.h"

enum log_time {
    LOG_NO_TIME,    /* none */
    LOG_SINCE_BOOT, /* since the boot of its host */
    LOG_YEARLESS,   /* a date without its year: every year is taken to have 366 days, the first to be 2024 */
    LOG_DATED,
};

/* Later times are mistakes: the end of 2199. */
#define LOG_LATEST_S 7.25e9
#define LOG_YEAR     ((nanos)366 * 86400 * NANOS_PER_SECOND)

/* State across the yearless lines of one file, in order. All zero at the start. */
struct log_clock {
    int years;      /* years that have begun since the first line */
    nanos latest;   /* the line before; 0: none */
    bool told;      /* a new year was reported: once for all files */
    bool told_zone; /* a zone with unknown hours was reported, likewise */
};

/* The time at the start of a line, in seconds since boot or since 1970, and the rest of the line. It is universal time if the
 * line names a zone by its hours, else local time. A yearless line that is more than half a year before the one above it begins
 * a new year; a note says so at `at`, once. *time and *rest are written if there is a time. */
enum log_time log_line_time(const char *line, struct log_clock *clock, struct place at, nanos *time, const char **rest,
                            struct diags *diags);

#endif
