#include "model/spec/cp_comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/units.h"

enum { RANKS_MAX = 1 << 20 };

static const struct {
    const char *name;
    enum cp_comm comm;
} words[] = {
    {"ring", CP_RING},   {"all_gather", CP_ALL_GATHER}, {"a2a", CP_A2A}, {"p2p", CP_RING}, {"allgather", CP_ALL_GATHER},
    {"ulysses", CP_A2A}, {"all_to_all", CP_A2A},
};
enum { N_WORDS = sizeof words / sizeof words[0] };

/* Twice the number of ranks that exchange heads, and one more where keys and values are gathered. */
enum cp_comm cp_comm_of(int a2a, bool gathers)
{
    return (enum cp_comm)((a2a > 1 ? 2 * a2a : 0) + gathers);
}

int cp_comm_heads(enum cp_comm comm, int cp)
{
    int ranks = (int)comm / 2;
    return comm == CP_A2A ? cp : ranks > 1 ? ranks : 1;
}

bool cp_comm_gathers(enum cp_comm comm)
{
    return (int)comm % 2 != 0;
}

enum cp_comm cp_comm_settled(enum cp_comm comm, int cp)
{
    if (cp <= 1)
        return CP_RING;
    return cp_comm_heads(comm, cp) == cp ? CP_A2A : comm;
}

bool cp_comm_is_known(int value)
{
    return value >= 0 && value <= (int)CP_A2A && value / 2 != 1;
}

static int word_of(const char *text)
{
    for (int i = 0; i < N_WORDS; i++)
        if (strcmp(text, words[i].name) == 0)
            return (int)words[i].comm;
    return -1;
}

/* "a2a:8", with "+ring" or "+all_gather" behind it. */
static int divided_of(const char *text)
{
    size_t prefix = strcspn(text, ":");
    char head[CP_COMM_TEXT], *end;
    if (text[prefix] != ':' || prefix >= sizeof head)
        return -1;
    memcpy(head, text, prefix);
    head[prefix] = '\0';
    const char *number = text + prefix + 1;
    errno = 0;
    long ranks = strtol(number, &end, 10);
    int rest = *end == '+' ? word_of(end + 1) : *end ? -1 : (int)CP_RING;
    bool counts = end > number && number[0] != '+' && number[0] != ' ' && !errno && ranks > 1 && ranks < RANKS_MAX;
    if (word_of(head) != (int)CP_A2A || !counts || rest < 0 || rest == (int)CP_A2A)
        return -1;
    return (int)cp_comm_of((int)ranks, cp_comm_gathers((enum cp_comm)rest));
}

int cp_comm_parse(const char *text, char *why, size_t size)
{
    const char *names[N_WORDS];
    int found = word_of(text);
    if (found < 0)
        found = divided_of(text);
    if (found >= 0 || why == NULL)
        return found;
    for (int i = 0; i < N_WORDS; i++)
        names[i] = words[i].name;
    const char *near = nearest_name(text, names, N_WORDS);
    if (near)
        snprintf(why, size, "'%.40s' is unknown; did you mean '%s'? (ring, all_gather, a2a, a2a:8+ring)", text, near);
    else
        snprintf(why, size, "'%.40s' is unknown; write ring, all_gather, a2a, or both as a2a:8+ring or a2a:8+all_gather", text);
    return -1;
}

char *cp_comm_format(enum cp_comm comm, char *buffer, size_t size)
{
    const char *keys = cp_comm_gathers(comm) ? "all_gather" : "ring";
    if (comm == CP_A2A)
        snprintf(buffer, size, "a2a");
    else if ((int)comm / 2 > 1)
        snprintf(buffer, size, "a2a:%d+%s", (int)comm / 2, keys);
    else
        snprintf(buffer, size, "%s", keys);
    return buffer;
}
