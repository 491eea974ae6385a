/*
 * units.h - quantities with units, as users write them.
 *
 * Example: quantity_parse("400Gbps", DIM_RATE, &value, why, size) sets value = 50e9, in B/s.
 *
 * Each dimension has one canonical SI unit in which the program computes. A bare number is refused where a dimension
 * exists ("30" is not a time; "30min" is). Decimal prefixes are powers of 1,000 and binary ones (KiB MiB GiB TiB) of
 * 1,024. A network rate in bits (Gbps, Gb/s) is divided by eight.
 *
 *   DIM_COUNT      a number: 6144, 12_288, 1e9, 300B (10^9), 1.4T, 2M, 12k, 4Mi (4 x 2^20)
 *   DIM_TIME       s       ns us ms s min h d (and wk)
 *   DIM_BYTES      bytes   B kB KB MB GB TB PB KiB MiB GiB TiB PiB
 *   DIM_RATE       B/s     B/s kB/s ... TB/s, GiB/s ..., bps kbps Mbps Gbps Tbps (also Gb/s, Gbit/s, Gbit, Gb/sec, GbE;
 *                          GBps, GB/sec)
 *   DIM_FLOPS      FLOP/s  GFLOPS TFLOPS PFLOPS (also TFLOP/s)
 *   DIM_FREQUENCY  Hz      kHz MHz GHz
 *   DIM_POWER      W       W kW MW
 *   DIM_FRACTION   1       0.85 or 85%
 */
#ifndef MSIM_MODEL_BASE_UNITS_H
#define MSIM_MODEL_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/status.h"

enum dimension {
    DIM_COUNT,
    DIM_TIME,
    DIM_BYTES,
    DIM_RATE,
    DIM_FLOPS,
    DIM_FREQUENCY,
    DIM_POWER,
    DIM_FRACTION,
};

/* Simulated time, everywhere: nanoseconds, range 292 years. */
typedef int64_t nanos;
#define NANOS_PER_SECOND INT64_C(1000000000)
#define GIB              0x1p30 /* bytes */

/* Seconds to nanoseconds, rounded to nearest; saturates. */
nanos nanos_from_seconds(double seconds);

static inline double nanos_to_seconds(nanos time)
{
    return (double)time / 1e9;
}

static inline nanos nanos_earlier(nanos a, nanos b)
{
    return a < b ? a : b;
}

static inline nanos nanos_later(nanos a, nanos b)
{
    return a > b ? a : b;
}

/* Parses all of `text` as a finite quantity of `dimension`. On failure `why` (size bytes) gets the problem and a suggestion,
 * and *value does not change. */
MUST_CHECK enum status quantity_parse(const char *text, enum dimension dimension, double *value, char *why, size_t size);

/* Parses "12.5" up to `end`, in units of `unit` nanoseconds, exactly (a double may not hold it); digits beyond the nanosecond
 * are cut off. False: not plain decimal, or too large. */
bool nanos_parse_decimal(const char *text, const char *end, nanos unit, nanos *value);

/* The longest allowed time of a run, or of a wait in one: 36,500 days, about 100 of the 292 years above. */
#define TIME_LONGEST_S (36500 * 86400.0)

/* The quantity for people, three significant digits: "14.8 s", "79.3 GiB", "25 GB/s". Returns buffer. */
char *quantity_format(double value, enum dimension dimension, char *buffer, size_t size);

/* The shortest text with a unit (times: none above days) that quantity_parse reads back as exactly this value: "2.039TB/s".
 * Returns buffer; 48 bytes are enough. */
char *quantity_write(double value, enum dimension dimension, char *buffer, size_t size);

/* Edit distance without regard to case: omitted, added, replaced or swapped neighbouring letters (optimal string alignment).
 * Names longer than 64 characters are not compared and have a larger distance. */
int name_distance(const char *a, const char *b);
/* The nearest of n names within an edit distance that makes a slip likely, else the shortest name that begins with the text,
 * else NULL. Of equally near names: the one with the longest common beginning, then the first with the length of the text. */
const char *nearest_name(const char *text, const char *const *names, size_t n_names);
/* "did you mean 'x'?" if a name is near, else `otherwise`. Returns buffer. */
const char *name_hint(const char *text, const char *const *names, size_t n_names, const char *otherwise, char *buffer,
                      size_t size);

#endif
