/*
 * status.h - the outcome of a function that can fail.
 *
 * Example: enum status status = file_read(path, limit, &bytes, &n, diags); if (status != STATUS_OK) return status;
 *
 * One table serves the library and the process: the numbers are msim's exit codes. The first function that knows the cause of a
 * failure reports it (in a struct diags); its callers only pass the status up.
 */
#ifndef MSIM_MODEL_BASE_STATUS_H
#define MSIM_MODEL_BASE_STATUS_H

enum status {
    STATUS_OK = 0,
    STATUS_FAILED = 1,    /* failed while running: I/O, memory, a device */
    STATUS_USAGE = 2,     /* wrong command line */
    STATUS_BAD_INPUT = 3, /* a file or a value is wrong; diagnostics say where */
    STATUS_MISSING = 4,   /* a capability this machine or build does not have */
    STATUS_CHECK = 5,     /* a check or comparison did not hold, or no plan fits */
};

/* On functions whose result may not be ignored. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* printf-like argument checking: `fmt` and `args` are 1-based parameter positions. */
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

#endif
