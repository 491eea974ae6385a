#include "model/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/order.h"

struct unit {
    const char *name;
    double factor; /* canonical units in one of this */
};

static const struct unit count_units[] = {{"", 1},     {"k", 1e3},     {"M", 1e6},     {"B", 1e9},
                                          {"T", 1e12}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}};
static const struct unit time_units[] = {{"s", 1},    {"ms", 1e-3}, {"us", 1e-6},     {"ns", 1e-9},
                                         {"min", 60}, {"h", 3600},  {"d", 24 * 3600}, {"wk", 7 * 24 * 3600}};
static const struct unit bytes_units[] = {
    {"B", 1},     {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},     {"TB", 1e12},
    {"PB", 1e15}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 0x1p40}, {"PiB", 0x1p50},
};
static const struct unit rate_units[] = {
    {"B/s", 1},        {"kB/s", 1e3},     {"KB/s", 1e3},   {"MB/s", 1e6},   {"GB/s", 1e9},     {"TB/s", 1e12},
    {"GiB/s", 0x1p30}, {"TiB/s", 0x1p40}, {"bps", 0.125},  {"kbps", 125},   {"Mbps", 125e3},   {"Gbps", 125e6},
    {"Tbps", 125e9},   {"Mb/s", 125e3},   {"Gb/s", 125e6}, {"Tb/s", 125e9}, {"MiB/s", 0x1p20},
};
static const struct unit flops_units[] = {{"FLOPS", 1},     {"GFLOPS", 1e9},   {"TFLOPS", 1e12}, {"PFLOPS", 1e15},
                                          {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
static const struct unit frequency_units[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
static const struct unit power_units[] = {{"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
static const struct unit fraction_units[] = {{"", 1}, {"%", 0.01}};

struct dimension_row {
    const char *what;
    const char *example;
    const struct unit *units;
    size_t n_units, n_written; /* those behind are only read: 6144 is no 6Ki */
};

#define ROW(what, example, units, only_read)                                                                                     \
    {                                                                                                                            \
        what, example, units, sizeof(units) / sizeof((units)[0]), sizeof(units) / sizeof((units)[0]) - only_read                 \
    }
static const struct dimension_row dimensions[] = {
    [DIM_COUNT] = ROW("a number", "6144 or 300B", count_units, 3),
    [DIM_TIME] = ROW("a time", "30min, 900s or 14d", time_units, 1),
    [DIM_BYTES] = ROW("a size", "80GiB or 512MB", bytes_units, 0),
    [DIM_RATE] = ROW("a data rate", "200Gbps or 900GB/s", rate_units, 0),
    [DIM_FLOPS] = ROW("a computing rate", "312TFLOPS", flops_units, 0),
    [DIM_FREQUENCY] = ROW("a frequency", "1.41GHz", frequency_units, 0),
    [DIM_POWER] = ROW("a power", "700W", power_units, 0),
    [DIM_FRACTION] = ROW("a fraction", "0.85 or 85%", fraction_units, 0),
};

bool nanos_parse_decimal(const char *text, const char *end, nanos unit, nanos *value)
{
    nanos whole = 0, part = 0, place = unit;
    if (!isdigit((unsigned char)*text))
        return false;
    for (; text < end && isdigit((unsigned char)*text); text++) {
        if (whole > (INT64_MAX / unit - 10) / 10)
            return false;
        whole = whole * 10 + (*text - '0');
    }
    if (text < end && *text == '.')
        for (text++; text < end && isdigit((unsigned char)*text); text++)
            part += (place /= 10) * (*text - '0');
    *value = whole * unit + part;
    return text == end;
}

nanos nanos_from_seconds(double seconds)
{
    double ns = seconds * 1e9;
    if (ns >= 0x1p63)
        return INT64_MAX;
    if (ns <= -0x1p63)
        return INT64_MIN;
    return (nanos)llround(ns);
}

/* The number at the start of text, with '_' allowed between digits; *rest is what follows. */
static bool number_parse(const char *text, long double *value, const char **rest)
{
    char digits[64];
    size_t n = 0;
    const char *p = text;
    if (*p == '+' || *p == '-')
        digits[n++] = *p++;
    while (n < sizeof digits - 1) {
        bool exponent_sign = (*p == '+' || *p == '-') && n > 0 && (digits[n - 1] == 'e' || digits[n - 1] == 'E');
        bool exponent = (*p == 'e' || *p == 'E') &&
                        (isdigit((unsigned char)p[1]) || ((p[1] == '+' || p[1] == '-') && isdigit((unsigned char)p[2])));
        if (*p == '_' && n > 0 && isdigit((unsigned char)digits[n - 1]) && isdigit((unsigned char)p[1])) {
            p++;
            continue;
        }
        if (!isdigit((unsigned char)*p) && *p != '.' && !exponent && !exponent_sign)
            break;
        digits[n++] = *p++;
    }
    digits[n] = '\0';
    char *end;
    errno = 0;
    long double parsed = strtold(digits, &end);
    if (n == 0 || end == digits || *end || !isfinite(parsed))
        return false;
    *value = parsed;
    *rest = p;
    return true;
}

/* Rates as tools and data sheets spell them ("400 Gb/sec" of ibstat, 400Gbit/s, 400GbE, 900GBps), by the units above: a prefix
 * and what says bits or bytes. NULL: none of them. Read only: what is written has one spelling. */
static const char *rate_spelt(const char *unit, char buffer[8])
{
    static const char *const bits[] = {"bit/s", "bit", "bits/s", "b/sec", "bE"}, *const bytes[] = {"B/sec", "Bps", "byte/s"};
    if (!*unit || !strchr("kMGT", *unit))
        return NULL;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (strcmp(unit + 1, bits[i]) == 0) {
            snprintf(buffer, 8, "%cbps", *unit);
            return buffer;
        }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (strcmp(unit + 1, bytes[i]) == 0) {
            snprintf(buffer, 8, "%cB/s", *unit);
            return buffer;
        }
    return NULL;
}

/* 400G: a speed of a port means bits, one of NVLink bytes. */
static bool rate_is_open(const char *unit)
{
    return *unit && strchr("kMGT", *unit) && (!unit[1] || strcmp(unit + 1, "/s") == 0);
}

static enum status quantity_refuse(const struct dimension_row *row, const char *text, const char *unit, char *why, size_t size)
{
    if (unit && row == &dimensions[DIM_RATE] && rate_is_open(unit)) {
        int digits = (int)(unit - text);
        snprintf(why, size, "'%.40s' could be bits or bytes; write %.*s%cbps or %.*s%cB/s", text, digits, text, *unit, digits,
                 text, *unit);
    } else if (unit && !*unit)
        snprintf(why, size, "'%.40s' has no unit; write %s such as %s", text, row->what, row->example);
    else if (unit)
        snprintf(why, size, "'%.20s' is not a unit of %s; write for example %s", unit, row->what, row->example);
    else
        snprintf(why, size, "'%.40s' is not %s; write for example %s", text, row->what, row->example);
    return STATUS_BAD_INPUT;
}

enum status quantity_parse(const char *text, enum dimension dimension, double *value, char *why, size_t size)
{
    const struct dimension_row *row = &dimensions[dimension];
    long double number;
    const char *unit;
    if (!number_parse(text, &number, &unit))
        return quantity_refuse(row, text, NULL, why, size);
    while (*unit == ' ')
        unit++;
    char spelt[8];
    const char *given = unit, *usual = dimension == DIM_RATE ? rate_spelt(unit, spelt) : NULL;
    unit = usual ? usual : given;
    for (size_t i = 0; i < row->n_units; i++) {
        if (strcmp(unit, row->units[i].name) == 0) {
            /* In extended precision, by whole numbers, rounded once: 0.4us is the double nearest to 4e-7. */
            double factor = row->units[i].factor;
            double scaled = (double)(factor < 1 ? number / (long double)round(1 / factor) : number * (long double)factor);
            if (!isfinite(scaled)) {
                snprintf(why, size, "'%.40s' is out of range; write %s such as %s", text, row->what, row->example);
                return STATUS_BAD_INPUT;
            }
            *value = scaled;
            return STATUS_OK;
        }
    }
    return quantity_refuse(row, text, given, why, size);
}

/* `value` in one unit with the fewest digits that give it back; false when this unit cannot. */
static bool write_in_unit(double value, enum dimension dimension, const struct unit *unit, char *buffer, size_t size)
{
    char why[120];
    double back;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g%s", digits, value / unit->factor, unit->name);
        bool plain = !strchr(buffer, 'e');
        if (plain && quantity_parse(buffer, dimension, &back, why, sizeof why) == STATUS_OK && back == value)
            return true;
    }
    return false;
}

/* `value` in the first unit of its dimension, whose factor is 1: 17 digits give every value back, with an exponent if need be. */
static void write_shortest(double value, enum dimension dimension, const char *unit, char *buffer, size_t size)
{
    char why[120];
    double back;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g%s", digits, value, unit);
        if (quantity_parse(buffer, dimension, &back, why, sizeof why) == STATUS_OK && back == value)
            return;
    }
}

char *quantity_write(double value, enum dimension dimension, char *buffer, size_t size)
{
    const struct dimension_row *row = &dimensions[dimension];
    char text[64];
    size_t best = SIZE_MAX;
    double best_factor = 0;
    write_shortest(value, dimension, row->units[0].name, buffer, size);
    for (size_t i = 0; i < row->n_written; i++) {
        double shown = fabs(value / row->units[i].factor);
        bool day = dimension == DIM_TIME && row->units[i].factor == 86400; /* the largest that is written */
        bool readable = shown == 0 || (shown >= 1 && shown < (day ? 1e5 : 1e4));
        if (!readable || !write_in_unit(value, dimension, &row->units[i], text, sizeof text) || strlen(text) >= size)
            continue;
        bool bits = dimension == DIM_RATE && strchr(row->units[i].name, 'b'); /* no shorter than bytes, and less usual */
        bool larger_unit = value != 0 && strlen(text) == best && row->units[i].factor > best_factor && !bits;
        if (strlen(text) < best || larger_unit) {
            best = strlen(text);
            best_factor = row->units[i].factor;
            memcpy(buffer, text, best + 1);
        }
    }
    return buffer;
}

struct scale {
    double from; /* smallest magnitude shown in this unit */
    double factor;
    const char *unit;
};

static char *format_scaled(double value, const struct scale *scales, size_t n, char *buffer, size_t size)
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) < scales[i].from)
        i++;
    double shown = value / scales[i].factor;
    int decimals = fabs(shown) >= 99.95 || shown == 0 ? 0 : fabs(shown) >= 9.995 ? 1 : 2;
    char number[32];
    if (fabs(shown) < 1e6)
        snprintf(number, sizeof number, "%.*f", decimals, shown);
    else
        snprintf(number, sizeof number, "%.3g", shown); /* beyond the largest unit, and what is not finite */
    snprintf(buffer, size, "%s%s%s", number, *scales[i].unit ? " " : "", scales[i].unit);
    return buffer;
}

#define YEAR_S        (365.25 * 86400)
#define FORMAT(table) format_scaled(value, table, sizeof(table) / sizeof((table)[0]), buffer, size)
char *quantity_format(double value, enum dimension dimension, char *buffer, size_t size)
{
    static const struct scale counts[] = {{1e12, 1e12, "T"}, {1e9, 1e9, "B"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}, {0, 1, ""}};
    static const struct scale times[] = {{3 * YEAR_S, YEAR_S, "years"},
                                         {2 * 86400.0, 86400, "d"},
                                         {2 * 3600.0, 3600, "h"},
                                         {180, 60, "min"},
                                         {1, 1, "s"},
                                         {1e-3, 1e-3, "ms"},
                                         {1e-6, 1e-6, "us"},
                                         {0, 1e-9, "ns"}};
    static const struct scale no_time[] = {{0, 1, "s"}};
    static const struct scale sizes[] = {
        {0x1p40, 0x1p40, "TiB"}, {0x1p30, 0x1p30, "GiB"}, {0x1p20, 0x1p20, "MiB"}, {0x1p10, 0x1p10, "KiB"}, {0, 1, "B"}};
    static const struct scale rates[] = {
        {1e12, 1e12, "TB/s"}, {1e9, 1e9, "GB/s"}, {1e6, 1e6, "MB/s"}, {1e3, 1e3, "kB/s"}, {0, 1, "B/s"}};
    static const struct scale flops[] = {
        {1e18, 1e18, "EFLOPS"}, {1e15, 1e15, "PFLOPS"}, {1e12, 1e12, "TFLOPS"}, {0, 1e9, "GFLOPS"}};
    static const struct scale hertz[] = {{1e9, 1e9, "GHz"}, {1e6, 1e6, "MHz"}, {0, 1, "Hz"}};
    static const struct scale watts[] = {{1e6, 1e6, "MW"}, {1e4, 1e3, "kW"}, {0, 1, "W"}};

    switch (dimension) {
    case DIM_COUNT: return FORMAT(counts);
    case DIM_TIME: return value == 0 ? FORMAT(no_time) : FORMAT(times);
    case DIM_BYTES: return FORMAT(sizes);
    case DIM_RATE: return FORMAT(rates);
    case DIM_FLOPS: return FORMAT(flops);
    case DIM_FREQUENCY: return FORMAT(hertz);
    case DIM_POWER: return FORMAT(watts);
    case DIM_FRACTION: snprintf(buffer, size, "%.1f %%", value * 100); return buffer;
    }
    return buffer;
}

enum { NAME_MAX_COMPARED = 63 };

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

int name_distance(const char *a, const char *b)
{
    uint8_t d[NAME_MAX_COMPARED + 1][NAME_MAX_COMPARED + 1]; /* [i][j]: of the first i letters of a and the first j of b */
    int n_a = (int)strnlen(a, NAME_MAX_COMPARED + 1), n_b = (int)strnlen(b, NAME_MAX_COMPARED + 1);
    if (n_a > NAME_MAX_COMPARED || n_b > NAME_MAX_COMPARED)
        return NAME_MAX_COMPARED + 1;
    for (int i = 0; i <= n_a; i++) {
        for (int j = 0; j <= n_b; j++) {
            int best = i + j; /* where one of them is empty */
            if (i > 0 && j > 0) {
                best = int_min(d[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]), int_min(d[i - 1][j], d[i][j - 1]) + 1);
                if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                    best = int_min(best, d[i - 2][j - 2] + 1);
            }
            d[i][j] = (uint8_t)best;
        }
    }
    return d[n_a][n_b];
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && tolower((unsigned char)a[n]) == tolower((unsigned char)b[n]))
        n++;
    return n;
}

/* The shortest of the names that begin with `text`; NULL: none does, or the text is too short to mean one. */
static const char *name_begun(const char *text, const char *const *names, size_t n_names)
{
    const char *best = NULL;
    size_t length = strlen(text);
    for (size_t i = 0; i < n_names && length >= 3; i++)
        if (common_prefix(text, names[i]) == length && (!best || strlen(names[i]) < strlen(best)))
            best = names[i];
    return best;
}

/* Of two names as near to a text, is `name` the likelier? Slips are rarer in the first letters, and most keep the length. */
static bool likelier(const char *text, const char *name, const char *best)
{
    size_t shared = common_prefix(text, name), best_shared = common_prefix(text, best), length = strlen(text);
    if (shared != best_shared)
        return shared > best_shared;
    return strlen(name) == length && strlen(best) != length;
}

const char *nearest_name(const char *text, const char *const *names, size_t n_names)
{
    const char *best = NULL;
    int best_distance = (int)strnlen(text, NAME_MAX_COMPARED) / 4 + 2;
    for (size_t i = 0; i < n_names; i++) {
        int distance = name_distance(text, names[i]);
        bool closer = distance < best_distance;
        if (!closer && best && distance == best_distance)
            closer = likelier(text, names[i], best);
        if (closer) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best ? best : name_begun(text, names, n_names);
}

const char *name_hint(const char *text, const char *const *names, size_t n_names, const char *otherwise, char *buffer,
                      size_t size)
{
    const char *near = nearest_name(text, names, n_names);
    snprintf(buffer, size, near ? "did you mean '%s'?" : "%s", near ? near : otherwise);
    return buffer;
}
