/* measurement_cells.c - numbers as people write them: groups of digits, units, percent signs, and intervals behind a mean. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "traces/table/measurement_internal.h"

enum { NUMBER_TEXT = 48 };

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

/* Does a mark at p group digits in threes, `run` of them since the last one? Never behind a zero alone, nor behind four. */
static bool groups_threes(const char *p, size_t run, bool first, char leading)
{
    bool threes = is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]) && !is_digit(p[4]);
    return threes && (first ? run >= 1 && run <= 3 && leading != '0' : run == 3);
}

/* Reads a number whose decimal character is `point`; skips the characters that group its digits in threes. Returns the text
 * behind it, or NULL where there is no number. */
static const char *take_number(const char *text, char point, bool commas_group, double *value)
{
    char digits[NUMBER_TEXT], *end;
    const char *p = text;
    const char grouping = point == ',' ? '.' : ',';
    size_t n = 0, run = 0;
    bool first = true, fraction = false;
    char leading = '\0';
    for (; *p && n + 1 < sizeof digits; p++) {
        bool may_group = *p == ' ' || *p == '_' || *p == '\'' || *p == grouping || (*p == ',' && commas_group);
        if (may_group && !fraction && groups_threes(p, run, first, leading)) {
            first = false;
            run = 0;
            continue;
        }
        bool sign = (*p == '-' || *p == '+') && (n == 0 || tolower((unsigned char)digits[n - 1]) == 'e');
        bool exponent = tolower((unsigned char)*p) == 'e' && n && p[1] && (is_digit(p[1]) || strchr("+-", p[1]));
        if (!is_digit(*p) && *p != point && !sign && !exponent)
            break;
        fraction |= *p == point || exponent;
        leading = run == 0 && first ? *p : leading;
        run += is_digit(*p);
        digits[n++] = *p == point ? '.' : *p;
    }
    digits[n] = '\0';
    *value = strtod(digits, &end);
    return end == digits || *end || !isfinite(*value) ? NULL : p;
}

/* --- what a table's comma is --------------------------------------------------------------------------------------- */

enum evidence { SAYS_NOTHING, SAYS_POINT, SAYS_COMMA, IS_OPEN };

/* The mark before a fraction, as one cell tells it: the last of two kinds, the one that cannot group threes, not the one that
 * comes twice or stands in a whole number. One mark before three digits of another number leaves it open. */
static enum evidence evidence_of(const char *text, bool whole)
{
    size_t marks = 0, before = 0, behind = 0;
    char mark = '\0', first = '\0';
    bool kinds = false;
    const char *start = text + strcspn(text, "0123456789.,"), *p = start;
    for (; is_digit(*p) || *p == '.' || *p == ',' || ((*p == ' ' || *p == '_' || *p == '\'') && is_digit(p[1])); p++) {
        if (*p != '.' && *p != ',') {
            behind += is_digit(*p);
            continue;
        }
        before = marks++ ? before : behind;
        kinds |= mark && mark != *p;
        first = mark ? first : *start;
        mark = *p;
        behind = 0;
    }
    enum evidence itself = mark == ',' ? SAYS_COMMA : SAYS_POINT, other = mark == ',' ? SAYS_POINT : SAYS_COMMA;
    if (!marks || !behind)
        return SAYS_NOTHING;
    if (kinds || marks > 1)
        return kinds ? itself : other;
    if (behind != 3 || before < 1 || before > 3 || first == '0' || tolower((unsigned char)*p) == 'e')
        return itself;
    return whole && strncmp(p - 3, "000", 3) != 0 ? other : IS_OPEN;
}

static bool is_whole_column(enum column column)
{
    static const enum column others[] = {COLUMN_NIC_GBPS,      COLUMN_STEP_TIME_S, COLUMN_TOKENS_PER_S, COLUMN_TOKENS_PER_S_GPU,
                                         COLUMN_SAMPLES_PER_S, COLUMN_TFLOPS_GPU,  COLUMN_MFU_PCT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] == column)
            return false;
    return true;
}

static bool is_text_column(enum column column)
{
    static const enum column texts[] = {COLUMN_CASE,
                                        COLUMN_MODEL,
                                        COLUMN_GPU,
                                        COLUMN_CP_COMM,
                                        COLUMN_RECOMPUTE,
                                        COLUMN_PRECISION,
                                        COLUMN_GRADIENT_PRECISION,
                                        COLUMN_SCHEDULE,
                                        COLUMN_FEATURES,
                                        COLUMN_OUTCOME,
                                        COLUMN_ASSUMED,
                                        COLUMN_SOURCE};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] == column)
            return true;
    return false;
}

void cells_find_point(struct measurement_parser *parser)
{
    const struct csv_table *csv = parser->csv;
    bool said[IS_OPEN + 1] = {false};
    for (size_t row = 0; row < csv->n_rows; row++)
        for (int c = 0; c < N_COLUMNS; c++)
            if (parser->columns[c] >= 0 && !is_text_column((enum column)c)) {
                const char *text = csv_cell(csv, row, parser->columns[c]);
                said[evidence_of(text, is_whole_column((enum column)c))] = true;
            }
    parser->point_known = said[SAYS_POINT] != said[SAYS_COMMA];
    bool comma = parser->point_known ? said[SAYS_COMMA] : csv->separator == ';';
    parser->point = comma ? ',' : '.';
}

/* A number that nothing in the table says how to read. */
static void tell_open(struct measurement_parser *parser, enum column column, bool whole, const char *text, double value)
{
    bool usual = strchr(text, '.') && parser->csv->separator != ';';
    if (parser->point_known || usual || evidence_of(text, whole) != IS_OPEN)
        return;
    parser_warn_once(parser, column, "mark",
                     "%s '%.40s' is taken for %.10g: nothing here says whether its '%c' groups digits; write it without",
                     measurement_columns[column].name, text, value, strchr(text, ',') ? ',' : '.');
}

/* The point of a cell's number. A whole number has none; where only points are said of in a table between semicolons, a point is
 * one. */
static char point_of(const struct measurement_parser *parser, const char *text, bool whole)
{
    bool lone = !whole && !parser->point_known && strchr(text, '.') && !strchr(text, ',');
    return lone ? '.' : parser->point;
}

/* What stands behind a number, and behind what its mean is within: its unit; false where that is too long for one. */
static bool take_word(const char *behind, char point, char *word, size_t size)
{
    static const char within[] = "±";
    double spread;
    behind += strspn(behind, " ");
    if (strncmp(behind, within, strlen(within)) == 0) {
        behind += strlen(within);
        behind += strspn(behind, " ");
        const char *end = take_number(behind, point, false, &spread);
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
    bool digit = n > 1 && plain[n - 1] >= '0' && plain[n - 1] <= '3' && (n < 2 || !is_digit(plain[n - 2]));
    return digit && (plain[0] == 'z' || strncmp(plain, "stage", 5) == 0) ? plain[n - 1] - '0' : -1;
}

/* Columns of which a word is a number. */
static int word_number(enum column column, const char *text)
{
    if (column == COLUMN_ZERO)
        return stage_of(text);
    return column == COLUMN_SEQUENCE_PARALLEL || column == COLUMN_GATED_MLP ? truth_of(text) : -1;
}

bool cell_number(struct measurement_parser *parser, enum column column, bool whole, double *value)
{
    const char *text = parser_text(parser, column), about[] = "≈";
    char word[16];
    double number;
    int said = word_number(column, text);
    if (said >= 0) {
        *value = said;
        return true;
    }
    const char *start = text + strspn(text, "~ ");
    start += strncmp(start, about, strlen(about)) == 0 ? strlen(about) : 0;
    char point = point_of(parser, start, whole);
    const char *behind = take_number(start, point, whole && !parser->point_known, &number);
    if (!behind || !take_word(behind, point, word, sizeof word))
        return false;
    double unit = cell_unit(column, word);
    if (!(unit > 0))
        return false;
    *value = number * (*word && strcmp(word, "%") != 0 ? unit : parser->factors[column]);
    if (unit > 1 && column != COLUMN_STEP_TIME_S)
        parser_warn_once(parser, column, word, "%s '%.40s' is taken for %.0f", measurement_columns[column].name, text, *value);
    tell_open(parser, column, whole, text, *value);
    return true;
}

/* --- cells as numbers ---------------------------------------------------------------------------------------------- */

/* The row is skipped for a cell that cannot be read. */
static void refuse_cell(struct measurement_parser *parser, enum column column, const char *what, const char *range)
{
    diag_warning(parser->diags, parser_place(parser, column), "row skipped: %s '%.40s' is not %s%s",
                 measurement_columns[column].name, parser_text(parser, column), what, range);
    parser->unusable = parser->bad_cell = true;
}

int64_t parser_whole(struct measurement_parser *parser, enum column column, int64_t low, int64_t high, int64_t unknown)
{
    char range[80] = "";
    double value = 0;
    if (*parser_text(parser, column) == '\0')
        return unknown;
    if (!cell_number(parser, column, true, &value) || value > floor(value)) {
        refuse_cell(parser, column, "a whole number", "");
        return unknown;
    }
    if (value >= (double)low && value <= (double)high)
        return (int64_t)value;
    if (high == INT_MAX)
        snprintf(range, sizeof range, " of at least %" PRId64, low);
    else
        snprintf(range, sizeof range, " from %" PRId64 " to %" PRId64, low, high);
    refuse_cell(parser, column, "a whole number", range);
    return unknown;
}

double parser_number(struct measurement_parser *parser, enum column column, double low, double high)
{
    char range[80] = "";
    double value = 0;
    if (*parser_text(parser, column) == '\0')
        return 0;
    if (!cell_number(parser, column, false, &value)) {
        bool ran = *parser_text(parser, COLUMN_OUTCOME) != '\0';
        refuse_cell(parser, column, "a number", column == COLUMN_NIC_GBPS ? "" : ran ? ", though it ran" : ", nor OOM");
        return 0;
    }
    if (value >= low && value <= high)
        return value;
    if (isinf(high))
        snprintf(range, sizeof range, " of at least %g", low);
    else
        snprintf(range, sizeof range, " from %g to %g", low, high);
    refuse_cell(parser, column, "a number", range);
    return 0;
}
