#include "traces/table/date.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Days from 1970-01-01 in the Gregorian calendar; a year is taken to begin in March, so that a leap day is its last one. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, year_of_era = y % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool date_exists(int year, int month, int day)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= lengths[month - 1] + (month == 2 && leap);
}

bool local_time_parse(const char *text, nanos *time)
{
    int year, month, day, hour = 0, minute = 0, second = 0, end = 0;
    char separator = 'T';
    if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3)
        return false;
    const char *rest = text + end;
    if (*rest && sscanf(rest, "%c%2d:%2d%n", &separator, &hour, &minute, &end) != 3)
        return false;
    rest += *rest ? end : 0;
    if (*rest && sscanf(rest, ":%2d%n", &second, &end) == 1)
        rest += end;
    if (*rest || (separator != 'T' && separator != ' ') || !date_exists(year, month, day))
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    int64_t seconds = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    *time = seconds * NANOS_PER_SECOND;
    return true;
}

bool zone_parse(const char *text, nanos *ahead)
{
    unsigned hours, minutes = 0;
    int end = 0;
    *ahead = 0;
    text += *text == ' ';
    if (strcmp(text, "") == 0 || strcmp(text, "Z") == 0 || strcmp(text, "UTC") == 0)
        return true;
    if ((*text != '+' && *text != '-') || !isdigit((unsigned char)text[1]) || sscanf(text + 1, "%2u%n", &hours, &end) != 1)
        return false;
    const char *rest = text + 1 + end;
    rest += *rest == ':';
    if (*rest && (!isdigit((unsigned char)*rest) || sscanf(rest, "%2u%n", &minutes, &end) != 1 || rest[end]))
        return false;
    if (hours > 14 || minutes > 59)
        return false;
    *ahead = (*text == '-' ? -1 : 1) * (nanos)(hours * 60 + minutes) * 60 * NANOS_PER_SECOND;
    return true;
}

bool zoned_time_parse(const char *text, nanos *time, bool *zoned)
{
    char date[20];
    nanos ahead = 0;
    size_t n = strspn(text, "0123456789-"); /* the day */
    if (text[n] == 'T' || (text[n] == ' ' && isdigit((unsigned char)text[n + 1])))
        n += 1 + strspn(text + n + 1, "0123456789:");
    if (n == 0 || n >= sizeof date)
        return false;
    memcpy(date, text, n);
    date[n] = '\0';
    const char *rest = text + n;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!local_time_parse(date, time) || !zone_parse(rest, &ahead))
        return false;
    *zoned = *rest != '\0';
    *time -= ahead;
    return true;
}
