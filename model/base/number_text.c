/* number_text.c - numbers as people read them. */
#include "model/base/number_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *plural(int64_t number)
{
    return number == 1 ? "" : "s";
}

char *grouped(int64_t number, char *buffer, size_t size)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%" PRId64, number);
    size_t used = 0;

    for (int i = 0; i < n && used + 2 < size; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
            buffer[used++] = ',';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

char *three_digits(double number, char *buffer, size_t size)
{
    double magnitude = fabs(number);

    if (magnitude >= 999.5)
        return grouped(llround(number), buffer, size);
    snprintf(buffer, size, magnitude >= 99.95 || magnitude <= 0 ? "%.0f" : "%#.3g", number);
    return buffer;
}

char *ratio_text(double ratio, char *buffer, size_t size)
{
    snprintf(buffer, size, ratio < 999.5 ? "%.3g" : "%.0f", ratio);
    return buffer;
}
