/* Numbers as people write them into tables: with groups of digits, units, percent signs and what a mean is said to be within. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/units.h"
#include "traces/table/measurement_reading.h"

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

/* The digits of a number without what groups them in threes, with a point before its fraction; what stands behind, or NULL where
 * there is no number. */
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

void cells_find_point(struct measurement_reading *reading)
{
    const struct csv_table *csv = reading->csv;
    bool said[IS_OPEN + 1] = {false};
    for (size_t row = 0; row < csv->n_rows; row++)
        for (int c = 0; c < N_COLUMNS; c++)
            if (reading->columns[c] >= 0 && !is_text_column((enum column)c)) {
                const char *text = csv_cell(csv, row, reading->columns[c]);
                said[evidence_of(text, is_whole_column((enum column)c))] = true;
            }
    reading->point_said = said[SAYS_POINT] != said[SAYS_COMMA];
    bool comma = reading->point_said ? said[SAYS_COMMA] : csv->separator == ';';
    reading->point = comma ? ',' : '.';
}

/* A number that nothing in the table says how to read. */
static void tell_open(struct measurement_reading *reading, enum column column, bool whole, const char *text, double value)
{
    bool usual = strchr(text, '.') && reading->csv->separator != ';';
    if (reading->point_said || usual || evidence_of(text, whole) != IS_OPEN)
        return;
    reading_tell_once(reading, column, "mark",
                      "%s '%.40s' is taken for %.10g: nothing here says whether its '%c' groups digits; write it without",
                      measurement_columns[column].name, text, value, strchr(text, ',') ? ',' : '.');
}

/* The point of a cell's number. A whole number has none; where only points are said of in a table between semicolons, a point is
 * one. */
static char point_of(const struct measurement_reading *reading, const char *text, bool whole)
{
    bool lone = !whole && !reading->point_said && strchr(text, '.') && !strchr(text, ',');
    return lone ? '.' : reading->point;
}

/* --- units --------------------------------------------------------------------------------------------------------- */

/* Plain words behind numbers and in the names of columns, between blanks. */
static const struct {
    enum column column;
    double factor;
    const char *names;
} units[] = {
    {COLUMN_STEP_TIME_S, 1, "s sec secs second seconds s_step s_iter s_it"},
    {COLUMN_STEP_TIME_S, 1e-3, "ms msec millisecond milliseconds ms_step ms_iter ms_it"},
    {COLUMN_STEP_TIME_S, 1e-6, "us usec microseconds"},
    {COLUMN_STEP_TIME_S, 60, "min mins minute minutes"},
    {COLUMN_STEP_TIME_S, 3600, "h hr hour hours"},
    {COLUMN_MFU_PCT, 1, "percent pct"},
    {COLUMN_SEQ_LEN, 1, "tokens"},
    {COLUMN_BATCH_TOKENS, 1, "tokens tokens_step"},
    {COLUMN_GLOBAL_BATCH, 1, "samples sequences seqs"},
    {COLUMN_MICRO_BATCH, 1, "samples sequences seqs per_gpu"},
    {COLUMN_VOCAB, 1, "tokens words"},
    {COLUMN_GPUS, 1, "gpu gpus total count"},
    {COLUMN_GPUS_PER_NODE, 1, "gpu gpus"},
    {COLUMN_TP, 1, "gpu gpus"},
    {COLUMN_PP, 1, "gpu gpus stages"},
    {COLUMN_CP, 1, "gpu gpus"},
    {COLUMN_DP, 1, "gpu gpus"},
    {COLUMN_EP, 1, "gpu gpus"},
    {COLUMN_LAYERS, 1, "layers"},
    {COLUMN_HEADS, 1, "heads"},
    {COLUMN_KV_HEADS, 1, "heads"},
    {COLUMN_NIC_GBPS, 1, "gbps gbit_s per_gpu gbps_per_gpu"},
    {COLUMN_TOKENS_PER_S, 1, "tok_s tokens_s total"},
    {COLUMN_TOKENS_PER_S_GPU, 1, "tok_s tokens_s tok_s_gpu tokens_s_gpu per_gpu"},
    {COLUMN_SAMPLES_PER_S, 1, "samples_s sequences_s seq_s total"},
    {COLUMN_TFLOPS_GPU, 1, "tflops tflop_s tflops_gpu tflop_s_gpu per_gpu gpu per_device"},
};

/* Thousands and millions: k, ki, M alone or before another word, which *rest becomes. Sequences are counted in powers of two. */
static double scale_of(const char *plain, enum column column, const char **rest)
{
    static const struct {
        const char *letters;
        double decimal, binary;
    } scales[] = {{"ki", 1024, 1024}, {"k", 1e3, 1024}, {"m", 1e6, 1048576}, {"million", 1e6, 1e6}};
    *rest = plain;
    size_t n = strcspn(plain, "_");
    for (size_t i = 0; i < sizeof scales / sizeof *scales && column != COLUMN_STEP_TIME_S && column != COLUMN_MFU_PCT; i++)
        if (strlen(scales[i].letters) == n && strncmp(plain, scales[i].letters, n) == 0) {
            *rest = plain[n] ? plain + n + 1 : "";
            return column == COLUMN_SEQ_LEN ? scales[i].binary : scales[i].decimal;
        }
    return 1;
}

double cell_unit(enum column column, const char *word)
{
    char plain[32];
    const char *rest;
    if (strncmp(word, "µs", strlen("µs")) == 0 || strncmp(word, "μs", strlen("μs")) == 0)
        word = "us";
    for (const char *c = word; *c; c++)
        if ((unsigned char)*c >= 0x80)
            return 0;
    if (strchr(word, '%'))
        return column == COLUMN_MFU_PCT && strcmp(word, "%") == 0 ? 1 : 0;
    if (strcasecmp(word, "x") == 0)
        return column == COLUMN_STEP_TIME_S ? 0 : 1;
    if (strlen(word) >= sizeof plain || (*word && !*words_plain(word, plain, sizeof plain)))
        return 0;
    double scale = scale_of(words_plain(word, plain, sizeof plain), column, &rest);
    if (!*rest)
        return scale;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].column == column && words_list(units[i].names, rest))
            return scale * units[i].factor;
    return 0;
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
    char point = point_of(reading, start, whole);
    const char *behind = take_number(start, point, whole && !reading->point_said, &number);
    if (!behind || !take_word(behind, point, word, sizeof word))
        return false;
    double unit = cell_unit(column, word);
    if (!(unit > 0))
        return false;
    *value = number * (*word && strcmp(word, "%") != 0 ? unit : reading->factors[column]);
    if (unit > 1 && column != COLUMN_STEP_TIME_S)
        reading_tell_once(reading, column, word, "%s '%.40s' is taken for %.0f", measurement_columns[column].name, text, *value);
    tell_open(reading, column, whole, text, *value);
    return true;
}
