/* name_typo.c - compares two names word by word. */
#include "traces/launch/job/name_typo.h"

#include <ctype.h>
#include <string.h>

#include "model/base/units.h"

enum { WORDS_MAX = 12, WORD_SIZE = 24 };

struct name_words {
    char of[WORDS_MAX][WORD_SIZE]; /* small letters */
    int n;
};

static struct name_words words_of(const char *name)
{
    struct name_words w = {.n = 0};
    while (*name && w.n < WORDS_MAX) {
        size_t length = strcspn(name, "_-"), kept = length < WORD_SIZE - 1 ? length : WORD_SIZE - 1;
        for (size_t i = 0; i < kept; i++)
            w.of[w.n][i] = (char)tolower((unsigned char)name[i]);
        w.n += length > 0;
        name += length + (name[length] != '\0');
    }
    return w;
}

/* But for underscores and capitals. */
static bool is_same(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "_-");
        b += strspn(b, "_-");
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
        a++, b++;
    }
}

/* A word for the other, the longer by its beginning; 0: they are different things. */
static int word_typo(const char *x, const char *y, bool alone)
{
    enum { APART = 2, SHORT = 4, LONG = 6, BEGUN = 3, BEGUN_ALONE = 5 };
    size_t n_x = strlen(x), n_y = strlen(y), least = n_x < n_y ? n_x : n_y;
    if (strpbrk(x, "0123456789") || strpbrk(y, "0123456789"))
        return 0;
    if (least >= (alone ? BEGUN_ALONE : BEGUN) && strncmp(x, y, least) == 0)
        return 1;
    int apart = name_distance(x, y);
    return least >= SHORT && *x == *y && apart <= (least < LONG ? 1 : APART) ? apart : 0;
}

/* The same of as many words. */
static int misspelt(const struct name_words *a, const struct name_words *b)
{
    int sum = 0;
    for (int i = 0; i < a->n; i++) {
        bool same = strcmp(a->of[i], b->of[i]) == 0;
        int typo = same ? 0 : word_typo(a->of[i], b->of[i], a->n == 1);
        if (!same && typo == 0)
            return 0;
        sum += typo;
    }
    return sum;
}

/* Words that the known name has beside these, all of which it has in this order; 0: it does not, or they are too few. */
static int left_out(const struct name_words *name, const struct name_words *known)
{
    int found = 0;
    if (known->n > name->n && (strcmp(known->of[0], "disable") == 0 || strcmp(known->of[0], "no") == 0))
        return 0; /* it would say the opposite */
    for (int i = 0; i < known->n && found < name->n; i++)
        found += strcmp(name->of[found], known->of[i]) == 0;
    return found == name->n && name->n >= 2 && 2 * name->n >= known->n ? known->n - name->n : 0;
}

int name_typo(const char *name, const char *meant, bool shortened)
{
    const struct name_words a = words_of(name), b = words_of(meant);
    if (strcmp(name, meant) == 0)
        return 0;
    if (is_same(name, meant))
        return 1;
    return a.n == b.n ? misspelt(&a, &b) : shortened ? 2 * left_out(&a, &b) : 0;
}
