/* launch_hosts.c - the hosts of deepspeed, and the number of GPUs on each (launcher/runner.py, from memory). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/launch_programs.h"

/* Nodes, and the GPUs that are taken of them. */
struct hosts {
    size_t nodes, gpus, most;
};

static const char *number_text(struct launch_words *words, size_t n)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%zu", n);
    return launch_text(words, text, (size_t)length);
}

static void add(struct launch_words *words, const char *name, size_t n, const char *spelling, struct place at)
{
    launch_words_add(words, (struct launch_word){.name = name, .value = number_text(words, n), .spelling = spelling, .at = at});
}

static void take(struct hosts *hosts, size_t gpus)
{
    hosts->nodes++;
    hosts->gpus += gpus;
    hosts->most = gpus > hosts->most ? gpus : hosts->most;
}

/* --- --include and --exclude --- */

/* One host of NAME@NAME:0,2 and the like. */
struct choice {
    const char *name;
    size_t n_name, slots; /* 0: all of the host */
    bool wrong;           /* no list of numbers stands behind the colon */
};

/* The host that begins at *p, which goes on to the next; false: none is left. */
static bool next_choice(const char **p, struct choice *choice)
{
    if (!**p)
        return false;
    size_t n = strcspn(*p, "@");
    const char *colon = memchr(*p, ':', n), *end = *p + n;
    *choice = (struct choice){.name = *p, .n_name = colon ? (size_t)(colon - *p) : n};
    choice->wrong = choice->n_name == 0;
    for (const char *slot = colon ? colon + 1 : end; colon && slot <= end; slot++) {
        size_t digits = strspn(slot, "0123456789");
        slot += digits;
        choice->wrong |= digits == 0 || (slot < end && *slot != ',');
        choice->slots++;
        slot += strcspn(slot, ",@");
    }
    *p = end + (*end == '@');
    return true;
}

static const char *text_of(struct launch_words *words, const struct launch_word *word)
{
    return word->first ? launch_text(words, word->value, word->first) : word->value;
}

void launch_hosts_included(struct launch_word include, struct launch_words *words)
{
    struct hosts hosts = {0};
    struct choice choice;
    bool all = false, wrong = false;
    const char *value = text_of(words, &include);
    for (const char *p = value; next_choice(&p, &choice);) {
        all |= choice.slots == 0;
        wrong |= choice.wrong;
        take(&hosts, choice.slots);
    }
    if (wrong) {
        char why[128];
        snprintf(why, sizeof why, "'%.60s' is no list of hosts and GPUs, such as worker-0@worker-1:0,2", value);
        include.name = "launched-gpus";
        include.unknown = launch_text(words, why, strlen(why));
        launch_words_add(words, include);
        return;
    }
    if (hosts.nodes == 0)
        return;
    if (!all && hosts.gpus != hosts.nodes * hosts.most) {
        add(words, "world-size", hosts.gpus, include.spelling, include.at);
        return;
    }
    add(words, "launched-nodes", hosts.nodes, include.spelling, include.at);
    if (!all)
        add(words, "launched-gpus", hosts.most, include.spelling, include.at);
}

/* The last flag of this name with a value that is known; NULL: none. */
static const struct launch_word *flag_of(const struct launch_words *words, const char *name)
{
    for (size_t i = words->n; i-- > 0;)
        if (!words->items[i].by_dest && strcmp(words->items[i].name, name) == 0)
            return words->items[i].value && !words->items[i].unknown ? &words->items[i] : NULL;
    return NULL;
}

/* --- a file of hosts --- */

/* What a list says of a host; false: it does not name it. */
static bool is_chosen(const char *list, const char *name, struct choice *choice)
{
    bool named = false;
    struct choice other;
    for (const char *p = list; p && next_choice(&p, &other);)
        if (!other.wrong && other.n_name == strlen(name) && memcmp(other.name, name, other.n_name) == 0) {
            *choice = other;
            named = true;
        }
    return named;
}

/* Hosts of the file, and those that are taken. */
struct selection {
    const char *include, *exclude; /* NULL: all are taken */
    struct hosts all, taken;
    bool unsized; /* a host that is taken does not say how many GPUs it has */
};

static void add_host(struct selection *s, const char *name, size_t slots)
{
    struct choice choice = {0};
    take(&s->all, slots);
    if (s->include) {
        if (!is_chosen(s->include, name, &choice))
            return;
        slots = choice.slots ? choice.slots : slots;
    } else if (s->exclude && is_chosen(s->exclude, name, &choice)) {
        if (choice.slots == 0 || (slots && choice.slots >= slots))
            return;
        slots = slots ? slots - choice.slots : 0;
    }
    s->unsized |= slots == 0;
    take(&s->taken, slots);
}

static void read_hosts(struct selection *s, const char *bytes, size_t n)
{
    for (const char *p = bytes, *end = bytes + n; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        char line[256];
        size_t length = (size_t)(stop - p) < sizeof line - 1 ? (size_t)(stop - p) : sizeof line - 1;
        memcpy(line, p, length);
        line[length] = '\0';
        line[strcspn(line, "#\r")] = '\0';
        const char *count = strstr(line, "slots=");
        size_t slots = count ? (size_t)strtoul(count + strlen("slots="), NULL, 10) : 0;
        char *name = line + strspn(line, " \t");
        name[strcspn(name, " \t")] = '\0';
        if (*name)
            add_host(s, name, slots);
        p = stop < end ? stop + 1 : end;
    }
}

void launch_programs_hosts(const char *path, const char *bytes, size_t n, struct launch_words *words, struct diags *diags)
{
    struct place at = {.file = path, .line = 1, .column = 1};
    const struct launch_word *include = flag_of(words, "include"), *exclude = flag_of(words, "exclude");
    const struct launch_word *by = include ? include : exclude;
    struct selection s = {.include = include ? text_of(words, include) : NULL,
                          .exclude = exclude ? text_of(words, exclude) : NULL};
    struct place chosen = by ? by->at : at;
    const char *spelling = by ? by->spelling : launch_base(path);
    read_hosts(&s, bytes, n);
    struct hosts *h = &s.taken;
    bool even = h->gpus == h->nodes * h->most;
    if (s.all.nodes == 0)
        diag_warning(diags, at, "this file names no host");
    else if (h->nodes == 0)
        diag_warning(diags, chosen, "%.80s: %s leaves no host", launch_base(path), by->spelling);
    else if (!even && by && !s.unsized)
        add(words, "world-size", h->gpus, spelling, chosen);
    else if (!even)
        diag_warning(diags, at, "hosts have different numbers of slots, %zu in all; set the job's number with --gpus", h->gpus);
    else if (h->gpus)
        add(words, "launched-gpus", h->most, by ? spelling : "slots", by ? chosen : at);
    if (h->nodes && even)
        add(words, "launched-nodes", h->nodes, spelling, chosen);
}
