/* Numbers as people write them into tables: with groups of digits, units, percent signs and what a mean is said to be within. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/units.h"
#include "traces/measurement_reading.h"

enum { NUMBER_TEXT = 48 };

/* The digits of a number without what groups them in threes, with a point before its fraction; what stands behind, or NULL where
 * there is no number. In tables between semicolons a comma is such a point. */
static const char *take_number(const char *text, bool comma_is_point, bool whole, double *value)
{
    char digits[NUMBER_TEXT], *end;
    size_t n = 0;
    const char *p = text;
    while (*p && n + 1 < sizeof digits) {
        bool threes = n && isdigit((unsigned char)p[1]) && isdigit((unsigned char)p[2]) && isdigit((unsigned char)p[3]) &&
                      !isdigit((unsigned char)p[4]);
        bool groups = *p == ' ' || *p == '_' || *p == '\'' || (*p == ',' && !(comma_is_point && !whole)) ||
                      (*p == '.' && comma_is_point && whole);
        if (threes && groups && isdigit((unsigned char)p[-1])) {
            p++;
            continue;
        }
        bool point = *p == ',' && comma_is_point && !whole;
        bool sign = (*p == '-' || *p == '+') && (n == 0 || tolower((unsigned char)digits[n - 1]) == 'e');
        bool exponent = tolower((unsigned char)*p) == 'e' && n && (isdigit((unsigned char)p[1]) || strchr("+-", p[1])) && p[1];
        if (!isdigit((unsigned char)*p) && *p != '.' && !point && !sign && !exponent)
            break;
        digits[n++] = point ? '.' : *p;
        p++;
    }
    digits[n] = '\0';
    *value = strtod(digits, &end);
    return end == digits || *end || !isfinite(*value) ? NULL : p;
}

/* What a number's last word makes of it; 0: nothing that is known. */
static double unit_of(const char *word, enum column column)
{
    static const struct {
        const char *word;
        double time, count;
    } units[] = {{"", 1, 1},        {"s", 1, 0},     {"sec", 1, 0},     {"secs", 1, 0}, {"second", 1, 0}, {"seconds", 1, 0},
                 {"ms", 1e-3, 0},   {"min", 60, 0},  {"%", 0, 1},       {"gpus", 0, 1}, {"gpu", 0, 1},    {"tokens", 0, 1},
                 {"layers", 0, 1},  {"heads", 0, 1}, {"gbps", 0, 1},    {"gb/s", 0, 0}, {"x", 0, 1},      {"tflops", 0, 1},
                 {"tflop/s", 0, 1}, {"tok/s", 0, 1}, {"tokens/s", 0, 1}};
    bool binary = column == COLUMN_SEQ_LEN, time = column == COLUMN_STEP_TIME_S;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(word, units[i].word) == 0)
            return time ? units[i].time : units[i].count;
    if (time)
        return 0;
    if (strcmp(word, "k") == 0 || strcmp(word, "K") == 0 || strcasecmp(word, "ki") == 0)
        return binary || word[1] ? 1024 : 1e3;
    if (strcmp(word, "m") == 0 || strcmp(word, "M") == 0)
        return binary ? 1048576 : 1e6;
    return 0;
}

/* What stands behind a number, and behind what its mean is within: its unit; false where that is too long for one. */
static bool take_word(const char *behind, bool comma_is_point, char *word, size_t size)
{
    static const char within[] = "±";
    double spread;
    behind += strspn(behind, " ");
    if (strncmp(behind, within, strlen(within)) == 0) {
        behind += strlen(within);
        behind += strspn(behind, " ");
        const char *end = take_number(behind, comma_is_point, false, &spread);
        behind = end ? end + strspn(end, " ") : behind;
    }
    snprintf(word, size, "%s", behind);
    return strlen(behind) < size;
}

/* A truth as 1 or 0; -1: no such word. */
static int truth_of(const char *text)
{
    static const char *const no[] = {"no", "false", "off", "n"}, *const yes[] = {"yes", "true", "on", "y"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, no[i]) == 0)
            return 0;
        if (strcasecmp(text, yes[i]) == 0)
            return 1;
    }
    return -1;
}

/* "3", "ZeRO-3", "stage 3", "FSDP", "DDP". */
static int stage_of(const char *text)
{
    static const struct {
        const char *word;
        int stage;
    } words[] = {{"none", 0},
                 {"no", 0},
                 {"ddp", 0},
                 {"no_shard", 0},
                 {"distributed_optimizer", 1},
                 {"optim", 1},
                 {"fsdp", 3},
                 {"fsdp1", 3},
                 {"fsdp2", 3},
                 {"full_shard", 3},
                 {"shard_grad_op", 2},
                 {"optim_grads", 2},
                 {"zero", -1},
                 {"optim_grads_params", 3}};
    char plain[32];
    words_plain(text, plain, sizeof plain);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(plain, words[i].word) == 0)
            return words[i].stage;
    size_t n = strlen(plain);
    bool said = strncmp(plain, "zero", 4) == 0 || strncmp(plain, "stage", 5) == 0 || strncmp(plain, "z", 1) == 0;
    return said && n > 1 && plain[n - 1] >= '0' && plain[n - 1] <= '3' ? plain[n - 1] - '0' : -1;
}

/* Columns of which a word is a number. */
static int word_number(enum column column, const char *text)
{
    if (column == COLUMN_ZERO)
        return stage_of(text);
    return column == COLUMN_SEQUENCE_PARALLEL || column == COLUMN_GATED_MLP ? truth_of(text) : -1;
}

bool cell_number(struct measurement_reading *reading, enum column column, bool whole, double *value)
{
    const char *text = reading_text(reading, column), about[] = "≈";
    char word[16];
    double number;
    int said = word_number(column, text);
    if (said >= 0) {
        *value = said;
        return true;
    }
    const char *start = text + strspn(text, "~ ");
    start += strncmp(start, about, strlen(about)) == 0 ? strlen(about) : 0;
    bool comma_is_point = reading->csv->separator == ';';
    const char *behind = take_number(start, comma_is_point, whole, &number);
    if (!behind || !take_word(behind, comma_is_point, word, sizeof word))
        return false;
    double unit = unit_of(word, column);
    if (!(unit > 0))
        return false;
    *value = number * (*word ? unit : reading->factors[column]);
    if (unit > 1 && column != COLUMN_STEP_TIME_S)
        reading_tell_once(reading, column, text, "%s '%.40s' is taken for %.0f", measurement_columns[column].name, text, *value);
    return true;
}
