/* log_time.c - reads the time at the beginning of a line of a kernel log. */
#include "traces/fault/log_time.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "traces/table/date.h"

/* Jan to Dec as 1 to 12; 0: no month. */
static int month_of(const char *word)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *at = strlen(word) == 3 ? strstr(months, word) : NULL;
    return at && (at - months) % 3 == 0 ? (int)(at - months) / 3 + 1 : 0;
}

/* Behind "<3>" (dmesg --raw) or "kern  :err   : " (dmesg -x), and behind blanks. */
static const char *behind_level(const char *line)
{
    int end = 0;
    line += strspn(line, " \t");
    if (sscanf(line, "<%*d>%n", &end) == 0 && end > 0)
        return line + end;
    if (sscanf(line, "%*[a-z0-9] :%*[a-z] : %n", &end) == 0 && end > 0)
        return line + end;
    return line;
}

static bool within(int value, int low, int high)
{
    return value >= low && value <= high;
}

/* A day that a month does not have is left to local_time_parse. */
static bool calendar_time(int year, int month, int day, const int clock[3], nanos *time)
{
    char date[96];
    if (!within(year, 1970, 2199) || month == 0 || !within(day, 1, 31) || !within(clock[0], 0, 23) || !within(clock[1], 0, 59) ||
        !within(clock[2], 0, 60))
        return false;
    snprintf(date, sizeof date, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, clock[0], clock[1], clock[2]);
    return local_time_parse(date, time);
}

/* "[Mon Nov 23 07:31:08 2026] NVRM", as dmesg -T has it. */
static bool bracketed_date(const char *line, nanos *time, const char **rest)
{
    char month[4];
    int day, year, clock[3], end = 0;
    if (sscanf(line, "[%*3[A-Za-z] %3[A-Za-z] %9d %9d:%9d:%9d %9d]%n", month, &day, &clock[0], &clock[1], &clock[2], &year,
               &end) != 6 ||
        end == 0)
        return false;
    *rest = line + end;
    return calendar_time(year, month_of(month), day, clock, time);
}

/* A large step back in the order of the file is a new year; a line of the old one may still come late. *time is of the first. */
static void place_in_year(struct log_clock *clock, struct place at_line, nanos *time, struct diags *diags)
{
    enum { YEARS_MAX = 101 }; /* more than a trace may span, which is refused at its end */
    /* Lines of several hosts are out of order by seconds, files one behind the other by days, not by half a year. */
    static const nanos DAY = (nanos)86400 * NANOS_PER_SECOND, YEAR = LOG_YEAR;
    nanos at = *time + clock->years * YEAR, latest = clock->latest;
    if (latest > 0 && latest - at > YEAR / 2 && clock->years < YEARS_MAX) {
        at += YEAR;
        clock->years++;
        if (!clock->told)
            diag_note(diags, at_line, "lines without a year step back by %lld days; msim assumes that a new year begins here",
                      (long long)((latest - *time) / DAY));
        clock->told = true;
    } else if (clock->years > 0 && at - latest > YEAR - DAY) {
        at -= YEAR;
    }
    clock->latest = at > latest ? at : latest;
    *time = at;
}

/* "Mar  3 12:01:02 host kernel:" of syslog, with a fraction of journalctl -o short-precise. Neither names the year: each is
 * taken for a leap year, so that every day is one. */
static bool syslog_date(struct log_clock *years, const char *line, struct place at, nanos *time, const char **rest,
                        struct diags *diags)
{
    char month[4];
    int day, clock[3], end = 0;
    if (sscanf(line, "%3[A-Za-z] %9d %9d:%9d:%9d%n", month, &day, &clock[0], &clock[1], &clock[2], &end) != 5 || end == 0)
        return false;
    *rest = line + end + strcspn(line + end, " \t");
    if (!calendar_time(2024, month_of(month), day, clock, time))
        return false;
    place_in_year(years, at, time, diags);
    return true;
}

/* "I0720 11:00:00.123456    1 log_monitor.go:160] ..." of programs in Go, such as node-problem-detector. No host follows. */
static bool klog_date(struct log_clock *years, const char *line, struct place at, nanos *time, const char **rest,
                      struct diags *diags)
{
    int month, day, clock[3], end = 0;
    if (!strchr("IWEF", *line) ||
        sscanf(line, "%*1[IWEF]%2d%2d %2d:%2d:%2d%n", &month, &day, &clock[0], &clock[1], &clock[2], &end) != 5 || end == 0 ||
        line[end] != '.' || !within(month, 1, 12))
        return false;
    *rest = line + strlen(line);
    if (!calendar_time(2024, month, day, clock, time))
        return false;
    place_in_year(years, at, time, diags);
    return true;
}

/* What stands between a date and the next blank or bracket as a zone. */
static bool zone_word(const char **text, nanos *ahead, char *word, size_t size)
{
    size_t n = strcspn(*text, " \t[");
    snprintf(word, size, "%.*s", (int)(n < size ? n : size - 1), *text);
    *text += n;
    return n < size && zone_parse(word, ahead);
}

/* "2024-03-03T12:01:02+01:00 host kernel:" (journalctl -o short-iso, dmesg --time-format iso), "Sun 2024-03-03 12:01:02 UTC host
 * kernel:" (-o short-full), whose zone stands apart and may be a name that says no hours. */
static bool iso_date(struct log_clock *clock, const char *line, struct place at, nanos *time, const char **rest,
                     struct diags *diags)
{
    char date[20], word[16];
    int weekday = 0;
    nanos ahead = 0;
    if (sscanf(line, "%*3[A-Za-z] %n", &weekday) == 0 && weekday > 0)
        line += weekday;
    if (strlen(line) < 19 || isdigit((unsigned char)line[19]))
        return false;
    snprintf(date, sizeof date, "%.19s", line);
    if (!local_time_parse(date, time))
        return false;
    line += 19;
    if (*line == '.' || *line == ',')
        line += 1 + strspn(line + 1, "0123456789");
    line += weekday > 0 ? strspn(line, " \t") : 0;
    bool known = zone_word(&line, &ahead, word, sizeof word);
    if (!known && weekday == 0 && *word != ':')
        return false;
    if (!known && weekday > 0 && !clock->told_zone) {
        diag_note(diags, at, "the hours of zone '%s' are unknown; msim assumes universal time; -o short-iso writes the hours",
                  word);
        clock->told_zone = true;
    }
    *time -= ahead;
    *rest = line;
    return true;
}

enum log_time log_line_time(const char *line, struct log_clock *clock, struct place at, nanos *time, const char **rest,
                            struct diags *diags)
{
    int end = 0;
    double boot;
    line = behind_level(line);
    /* "[  +1.5]" of dmesg -H is since the line above. */
    bool number = *line == '[' && isdigit((unsigned char)line[1 + strspn(line + 1, " ")]);
    if (number && sscanf(line, "[%lf]%n", &boot, &end) == 1 && end > 0 && boot >= 0 && boot < LOG_LATEST_S) {
        *time = nanos_from_seconds(boot);
        *rest = line + end;
        return LOG_SINCE_BOOT;
    }
    if (bracketed_date(line, time, rest))
        return LOG_DATED;
    if (syslog_date(clock, line, at, time, rest, diags) || klog_date(clock, line, at, time, rest, diags))
        return LOG_YEARLESS;
    return iso_date(clock, line, at, time, rest, diags) ? LOG_DATED : LOG_NO_TIME;
}
