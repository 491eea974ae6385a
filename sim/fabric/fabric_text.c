/* fabric_text.c - read a fabric from its text. */
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "sim/fabric/fabric.h"

enum { WORD_MAX = 256 };

/* How a word's value is written, and where its parts go: count and rate, or those down and those up. */
enum form { COUNT_FORM, RATE_FORM, PORTS_FORM, TIER_FORM, AFFINITY_FORM, LATENCY_FORM };
enum { CLOS = 1 << TOPOLOGY_CLOS, DRAGONFLY = 1 << TOPOLOGY_DRAGONFLY, BOTH = CLOS | DRAGONFLY };
#define AT(member) offsetof(struct fabric_shape, member)

/* X(id, word, fabrics that have it, form, members). Hints name words in this order. */
#define FABRIC_WORDS(X)                                                                                                          \
    X(HOSTS, "hosts", BOTH, COUNT_FORM, AT(hosts))                                                                               \
    X(GPUS, "gpus", BOTH, COUNT_FORM, AT(gpus_per_host))                                                                         \
    X(NICS, "nics", BOTH, PORTS_FORM, AT(nics_per_host), AT(nic_rate))                                                           \
    X(PORTS, "ports", BOTH, COUNT_FORM, AT(ports_per_nic))                                                                       \
    X(TORS, "tors", CLOS, COUNT_FORM, AT(tors_per_set))                                                                          \
    X(PLANES, "planes", CLOS, COUNT_FORM, AT(planes))                                                                            \
    X(TOR, "tor", CLOS, TIER_FORM, AT(tor_down), AT(tor_down_rate), AT(tor_up), AT(tor_up_rate))                                 \
    X(AGG, "agg", CLOS, TIER_FORM, AT(agg_down), AT(agg_down_rate), AT(agg_up), AT(agg_up_rate))                                 \
    X(AGGS, "aggs", CLOS, COUNT_FORM, AT(aggs_per_pod))                                                                          \
    X(CORE, "core", CLOS, PORTS_FORM, AT(core_down), AT(core_rate))                                                              \
    X(SWITCH, "switch", DRAGONFLY, PORTS_FORM, AT(tor_down), AT(tor_down_rate))                                                  \
    X(RAILS, "rails", DRAGONFLY, COUNT_FORM, AT(tors_per_set))                                                                   \
    X(GROUP, "group", DRAGONFLY, COUNT_FORM, AT(switches_per_group))                                                             \
    X(GROUPS, "groups", DRAGONFLY, COUNT_FORM, AT(groups))                                                                       \
    X(LOCAL, "local", DRAGONFLY, PORTS_FORM, AT(local_links), AT(local_rate))                                                    \
    X(GLOBAL, "global", DRAGONFLY, PORTS_FORM, AT(global_per_switch), AT(global_rate))                                           \
    X(PAIR, "pair", DRAGONFLY, COUNT_FORM, AT(global_links))                                                                     \
    X(NVLINK, "nvlink", BOTH, PORTS_FORM, AT(nvlink_domain), AT(nvlink_rate))                                                    \
    X(PCIE, "pcie", BOTH, RATE_FORM, 0, AT(pcie_rate))                                                                           \
    X(PCIE_SWITCHES, "pcie_switches", BOTH, PORTS_FORM, AT(pcie_switches), AT(root_rate))                                        \
    X(SOCKETS, "sockets", BOTH, PORTS_FORM, AT(sockets), AT(socket_rate))                                                        \
    X(AFFINITY, "affinity", BOTH, AFFINITY_FORM, 0)                                                                              \
    X(LATENCY, "latency", BOTH, LATENCY_FORM, 0)

enum key {
#define X(id, ...) id,
    FABRIC_WORDS(X)
#undef X
        N_KEYS
};

static const struct word {
    const char *key;
    unsigned fabrics;
    enum form form;
    size_t at[4]; /* of a count, its rate; the same upwards */
} words[N_KEYS] = {
#define X(id, key, fabrics, form, ...) {key, fabrics, form, {__VA_ARGS__}},
    FABRIC_WORDS(X)
#undef X
};

static const char *const kinds[] = {[TOPOLOGY_CLOS] = "clos", [TOPOLOGY_DRAGONFLY] = "dragonfly"};

struct reader {
    struct place at; /* of the word being read */
    struct diags *diags;
    const char *word;
    struct fabric_shape shape;
    unsigned given; /* bit per key */
};

/* ---- values */

static bool count_read(struct reader *r, const char *text, int *count)
{
    double value;
    char why[160];

    if (quantity_parse(text, DIM_COUNT, &value, why, sizeof why) != STATUS_OK)
        diag_error(r->diags, r->at, "%s: %s", r->word, why);
    else if (value < 1 || value > 1 << 20 || value != (double)(int)value)
        diag_error(r->diags, r->at, "%s: '%s' is not a whole number between 1 and %d", r->word, text, 1 << 20);
    else {
        *count = (int)value;
        return true;
    }
    return false;
}

/* Rates may leave out what every network rate ends in: 200G is 200Gbps. */
static bool rate_read(struct reader *r, const char *text, double *rate)
{
    char full[WORD_MAX + 8], why[160];
    size_t n = strlen(text);
    bool terse = n > 1 && isdigit((unsigned char)text[n - 2]) && strchr("GMT", text[n - 1]) != NULL;

    snprintf(full, sizeof full, "%s%s", text, terse ? "bps" : "");
    if (quantity_parse(full, DIM_RATE, rate, why, sizeof why) == STATUS_OK && *rate > 0)
        return true;
    diag_error(r->diags, r->at, "%s: '%s' is not a rate above 0; write for example 200Gbps or 25GB/s", r->word, text);
    return false;
}

/* COUNTxRATE; `text` is cut. */
static bool ports_read(struct reader *r, char *text, int *count, double *rate)
{
    char *x = strchr(text, 'x');

    if (x == NULL) {
        diag_error(r->diags, r->at, "%s: '%s' is not COUNTxRATE; write for example 64x200Gbps", r->word, text);
        return false;
    }
    *x = '\0';
    return count_read(r, text, count) && rate_read(r, x + 1, rate);
}

static void tier_read(struct reader *r, char *text, int *down, double *down_rate, int *up, double *up_rate)
{
    char *slash = strchr(text, '/');

    /* The slash of GB/s is not the one between down and up. */
    while (slash != NULL && slash[1] == 's')
        slash = strchr(slash + 1, '/');
    if (slash != NULL)
        *slash = '\0';
    if (ports_read(r, text, down, down_rate) && slash != NULL)
        ports_read(r, slash + 1, up, up_rate);
}

static void latency_read(struct reader *r, char *text)
{
    char *slash = strchr(text, '/'), why[160];

    if (slash != NULL)
        *slash++ = '\0';
    if (quantity_parse(text, DIM_TIME, &r->shape.latency_s, why, sizeof why) != STATUS_OK)
        diag_error(r->diags, r->at, "%s: %s", r->word, why);
    if (slash != NULL && quantity_parse(slash, DIM_TIME, &r->shape.hop_latency_s, why, sizeof why) != STATUS_OK)
        diag_error(r->diags, r->at, "%s: %s", r->word, why);
}

enum status fabric_affinity_parse(const char *text, struct fabric_shape *shape)
{
    struct fabric_shape read = *shape;

    for (read.n_affinity = 0;; text++) {
        char *end;
        long nic = strtol(text, &end, 10);
        if (!isdigit((unsigned char)*text) || nic > UINT8_MAX || (*end != ',' && *end != '\0') || read.n_affinity == AFFINITY_MAX)
            return STATUS_BAD_INPUT;
        read.affinity[read.n_affinity++] = (uint8_t)nic;
        text = end;
        if (*text == '\0')
            break;
    }
    *shape = read;
    return STATUS_OK;
}

static void affinity_read(struct reader *r, const char *text)
{
    if (fabric_affinity_parse(text, &r->shape) != STATUS_OK)
        diag_error(r->diags, r->at,
                   "affinity: '%s' is not a list of NICs, one per GPU of a host (at most %d); write for example 0,0,1,1", text,
                   AFFINITY_MAX);
}

static void value_read(struct reader *r, const struct word *word, char *text)
{
    char *shape = (char *)&r->shape;
    int *down = (int *)(void *)(shape + word->at[0]), *up = (int *)(void *)(shape + word->at[2]);
    double *down_rate = (double *)(void *)(shape + word->at[1]), *up_rate = (double *)(void *)(shape + word->at[3]);

    switch (word->form) {
    case COUNT_FORM: count_read(r, text, down); break;
    case RATE_FORM: rate_read(r, text, down_rate); break;
    case PORTS_FORM: ports_read(r, text, down, down_rate); break;
    case TIER_FORM: tier_read(r, text, down, down_rate, up, up_rate); break;
    case AFFINITY_FORM: affinity_read(r, text); break;
    case LATENCY_FORM: latency_read(r, text); break;
    }
}

/* ---- words */

static bool is_word_of(const struct word *word, enum topology topology)
{
    return word->fabrics >> topology & 1u;
}

static void key_unknown(struct reader *r, const char *key)
{
    const char *known[N_KEYS];
    char list[256] = "words are", hint[sizeof list];
    size_t n = 0;

    for (int k = 0; k < N_KEYS; k++) {
        if (is_word_of(&words[k], r->shape.topology)) {
            known[n++] = words[k].key;
            text_append(list, sizeof list, " %s", words[k].key);
        } else if (strcmp(key, words[k].key) == 0) {
            diag_error(r->diags, r->at, "fabric: '%s' belongs to a %s, not to a %s", key, kinds[!r->shape.topology],
                       kinds[r->shape.topology]);
            return;
        }
    }
    text_append(list, sizeof list, ", each followed by a colon and a value");
    diag_error(r->diags, r->at, "fabric: unknown word '%s'; %s", key, name_hint(key, known, n, list, hint, sizeof hint));
}

static void word_read(struct reader *r, const char *text, size_t length)
{
    char word[WORD_MAX];
    char *colon;

    if (length >= sizeof word) {
        diag_error(r->diags, r->at, "fabric: a word has %zu letters; at most %d are allowed", length, WORD_MAX - 1);
        return;
    }
    memcpy(word, text, length);
    word[length] = '\0';
    colon = strchr(word, ':');
    if (colon != NULL)
        *colon = '\0';
    for (int key = 0; key < N_KEYS; key++) {
        if (strcmp(word, words[key].key) != 0 || !is_word_of(&words[key], r->shape.topology))
            continue;
        r->word = words[key].key;
        if (colon == NULL)
            diag_error(r->diags, r->at, "fabric: '%s' has no value; write %s:...", word, word);
        else if (r->given >> key & 1u)
            diag_error(r->diags, r->at, "fabric: '%s' is given twice", word);
        else
            value_read(r, &words[key], colon + 1);
        r->given |= 1u << key;
        return;
    }
    key_unknown(r, word);
}

/* ---- defaults */

static bool is_given(const struct reader *r, enum key key)
{
    return r->given >> key & 1u;
}

static void hosts_default(struct fabric_shape *s)
{
    double ports = (double)s->nics_per_host * s->ports_per_nic / s->tors_per_set; /* of a host at one ToR */
    double tors = s->tors_per_set / s->planes;                                    /* of a plane */

    if (s->agg_down > 0 && s->aggs_per_pod > 0 && s->tor_up >= s->aggs_per_pod)
        tors = (double)(s->agg_down / (s->tor_up / s->aggs_per_pod));
    if (s->core_down > 0)
        tors *= s->core_down;
    double hosts = floor(tors * s->planes / s->tors_per_set * s->tor_down / ports);
    s->hosts = hosts < 1 ? 1 : hosts <= 1 << 20 ? (int)hosts : (1 << 20) + 1;
}

/* Groups that one cable, or `pair`, between each two can join, unless said: two at least, refused later where ports do not do for
 * them; hosts that fill them. */
static void dragonfly_hosts_default(struct fabric_shape *s)
{
    double ports = (double)s->nics_per_host * s->ports_per_nic, a = s->switches_per_group;
    double groups = s->groups > 0              ? s->groups
                    : s->global_per_switch > 0 ? fmax(1, floor(a * s->global_per_switch / fmax(1, s->global_links))) + 1
                                               : 1;
    double hosts = fmax(1, floor(groups * a * s->tor_down / ports));

    s->hosts = hosts <= 1 << 20 ? (int)hosts : (1 << 20) + 1;
}

static void dragonfly_defaults_fill(struct reader *r)
{
    struct fabric_shape *s = &r->shape;

    if (!is_given(r, GROUP))
        s->switches_per_group = 2 * s->tor_down;
    if (!is_given(r, LOCAL)) {
        s->local_links = 1;
        s->local_rate = s->tor_down_rate;
    }
    if (!is_given(r, GLOBAL))
        s->global_rate = s->tor_down_rate;
    if (!is_given(r, GLOBAL) && (!is_given(r, PAIR) || (!is_given(r, HOSTS) && !is_given(r, GROUPS))))
        s->global_per_switch = s->tor_down;
    if (!is_given(r, HOSTS))
        dragonfly_hosts_default(s);
}

static void defaults_fill(struct reader *r)
{
    struct fabric_shape *s = &r->shape;

    if (!is_given(r, NICS)) {
        s->nics_per_host = s->gpus_per_host;
        s->nic_rate = s->tor_down_rate * s->ports_per_nic;
    }
    if (s->topology == TOPOLOGY_DRAGONFLY) {
        dragonfly_defaults_fill(r);
        return;
    }
    if (!is_given(r, AGGS) && s->agg_down > 0)
        s->aggs_per_pod = s->tor_up;
    if (s->agg_down == 0)
        s->tor_up = 0;
    if (s->core_down == 0)
        s->agg_up = 0;
    if (!is_given(r, HOSTS))
        hosts_default(s);
}

/* The first word, which says the kind of fabric; NULL: none that is known. */
static const char *kind_read(const char *word, enum topology *topology)
{
    for (int k = TOPOLOGY_CLOS; k <= TOPOLOGY_DRAGONFLY; k++) {
        size_t n = strlen(kinds[k]);
        if (strncmp(word, kinds[k], n) != 0 || (word[n] != '\0' && !isspace((unsigned char)word[n])))
            continue;
        *topology = (enum topology)k;
        return word + n;
    }
    return NULL;
}

enum status fabric_parse(const char *text, struct place at, struct fabric *fabric, struct diags *diags)
{
    struct reader r = {
        .at = at,
        .diags = diags,
        .shape =
            {.gpus_per_host = 1, .ports_per_nic = 1, .tors_per_set = 1, .planes = 1, .latency_s = 3e-6, .hop_latency_s = 0.7e-6},
    };
    size_t before = diags->n_errors;
    const char *word = kind_read(text + strspn(text, " \t\r\n"), &r.shape.topology);

    if (word == NULL) {
        diag_error(diags, at,
                   "a fabric must start with its kind: clos hosts:... tor:... agg:... core:..., or dragonfly hosts:... group:... "
                   "switch:... pair:...");
        return STATUS_BAD_INPUT;
    }
    for (; *(word += strspn(word, " \t\r\n")) != '\0'; word += strcspn(word, " \t\r\n")) {
        r.at.column = at.column > 0 ? at.column + (int)(word - text) : 0;
        word_read(&r, word, strcspn(word, " \t\r\n"));
    }
    if (diags->n_errors == before && r.shape.topology == TOPOLOGY_CLOS && !is_given(&r, TOR))
        diag_error(diags, at, "a fabric needs ToR switches, such as tor:64x200Gbps/32x400Gbps");
    if (diags->n_errors == before && r.shape.topology == TOPOLOGY_DRAGONFLY && !is_given(&r, SWITCH))
        diag_error(diags, at, "a dragonfly needs switches, as NIC ports x rate, such as switch:16x200Gbps");
    if (diags->n_errors != before)
        return STATUS_BAD_INPUT;
    defaults_fill(&r);
    return fabric_build(&r.shape, at, fabric, diags);
}
