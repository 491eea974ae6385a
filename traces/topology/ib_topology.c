/*
 * The output of ibnetdiscover: every switch and NIC of an InfiniBand network, with the peer of each port.
 *
 *     Switch  41 "S-0001"   # "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 3 lmc 0
 *     [1]     "H-0011"[1](0011)    # "gpu001 mlx5_0" lid 5 4xHDR
 *     Ca      1 "H-0011"    # "gpu001 mlx5_0"
 *     [1](0011)  "S-0001"[1]       # lid 5 lmc 0 "MF0;leaf1:MQM8700/U1" lid 3 4xHDR
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/topology/topology_internal.h"

enum { ID_SIZE = 32, NAME_SIZE_MAX = 64, FAR = 1000 };

struct ib_switch {
    char id[ID_SIZE];
    int level; /* 0: has NICs; FAR: not reached */
    int pod;   /* of switches below the top layer: the lowest number of those it is joined with */
    int hosts; /* of a leaf */
};
struct ib_nic {
    char id[ID_SIZE], host[NAME_SIZE_MAX], leaf[ID_SIZE];
    double rate; /* B/s */
};
struct ib_cable { /* between switches, from both ends */
    char from[ID_SIZE], to[ID_SIZE];
    double rate;
};

struct parser {
    struct ib_switch *switches;
    struct ib_nic *nics;
    struct ib_cable *cables;
    size_t n_switches, n_nics, n_cables, switch_capacity, nic_capacity, cable_capacity;
    char id[ID_SIZE]; /* of the switch or NIC whose ports follow */
    bool is_switch, is_nic;
};

/* The text in the first quotes at or behind `text`; false: there are none. */
static bool quoted(const char *text, char *out, size_t size)
{
    const char *begin = strchr(text, '"'), *end = begin ? strchr(begin + 1, '"') : NULL;
    if (!end)
        return false;
    snprintf(out, size, "%.*s", (int)(end - begin - 1), begin + 1);
    return true;
}

/* "4xHDR" at the end of a line: lanes of 50 Gbps. */
static double rate_of(const char *line)
{
    static const struct {
        const char *name;
        double gbps;
    } speeds[] = {{"SDR", 2.5}, {"DDR", 5},  {"QDR", 10},  {"FDR10", 10.3125}, {"FDR", 14.0625},
                  {"EDR", 25},  {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
    const char *word = strrchr(line, ' ');
    char *end;
    long lanes = word ? strtol(word + 1, &end, 10) : 0;
    if (lanes < 1 || lanes > 12 || *end != 'x')
        return 0;
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (strcmp(end + 1, speeds[i].name) == 0)
            return (double)lanes * speeds[i].gbps * 1e9 / 8;
    return 0;
}

/* Switches have NICs of their own, for reductions in the network. */
static bool is_of_switch(const char *name)
{
    return strstr(name, "Aggregation Node") != NULL;
}

static void read_heading(struct parser *parser, const char *line)
{
    const char *comment = strchr(line, '#');
    char name[NAME_SIZE_MAX] = "";
    parser->is_switch = strncmp(line, "Switch", 6) == 0;
    parser->is_nic = strncmp(line, "Ca", 2) == 0;
    if (!quoted(line, parser->id, sizeof parser->id)) {
        parser->is_switch = parser->is_nic = false;
        return;
    }
    if (comment)
        (void)quoted(comment, name, sizeof name);
    if (parser->is_switch) {
        parser->switches =
            memory_grow(parser->switches, &parser->switch_capacity, parser->n_switches + 1, sizeof *parser->switches);
        struct ib_switch *s = &parser->switches[parser->n_switches++];
        *s = (struct ib_switch){.level = FAR};
        memcpy(s->id, parser->id, sizeof s->id);
    }
    if (parser->is_nic && is_of_switch(name))
        parser->is_nic = false;
    if (!parser->is_nic)
        return;
    parser->nics = memory_grow(parser->nics, &parser->nic_capacity, parser->n_nics + 1, sizeof *parser->nics);
    struct ib_nic *nic = &parser->nics[parser->n_nics++];
    *nic = (struct ib_nic){.rate = 0};
    memcpy(nic->id, parser->id, sizeof nic->id);
    snprintf(nic->host, sizeof nic->host, "%.*s", (int)strcspn(name, " "), name);
}

static void read_port(struct parser *parser, const char *line)
{
    char peer[ID_SIZE];
    if (!quoted(line, peer, sizeof peer))
        return;
    if (parser->is_nic && parser->n_nics > 0 && peer[0] == 'S') {
        struct ib_nic *nic = &parser->nics[parser->n_nics - 1];
        memcpy(nic->leaf, peer, sizeof nic->leaf);
        nic->rate = fmax(nic->rate, rate_of(line));
    }
    if (parser->is_switch && peer[0] == 'S') {
        parser->cables = memory_grow(parser->cables, &parser->cable_capacity, parser->n_cables + 1, sizeof *parser->cables);
        struct ib_cable *cable = &parser->cables[parser->n_cables++];
        memcpy(cable->from, parser->id, sizeof cable->from);
        memcpy(cable->to, peer, sizeof cable->to);
        cable->rate = rate_of(line);
    }
}

static int switch_compare(const void *a, const void *b)
{
    return strcmp(((const struct ib_switch *)a)->id, ((const struct ib_switch *)b)->id);
}

static struct ib_switch *find_switch(const struct parser *parser, const char *id)
{
    struct ib_switch key = {.level = 0};
    if (parser->n_switches == 0)
        return NULL;
    memcpy(key.id, id, sizeof key.id);
    return bsearch(&key, parser->switches, parser->n_switches, sizeof key, switch_compare);
}

static int nic_compare(const void *a, const void *b)
{
    const struct ib_nic *x = a, *y = b;
    int host = strcmp(x->host, y->host);
    return host ? host : strcmp(x->leaf, y->leaf);
}

/* Leaves have NICs; each layer of switches is one cable further from them. */
static int find_levels(struct parser *parser)
{
    int deepest = 0;
    for (size_t i = 0; i < parser->n_nics; i++) {
        struct ib_switch *leaf = find_switch(parser, parser->nics[i].leaf);
        if (leaf)
            leaf->level = 0;
    }
    for (int level = 0; level < 8; level++)
        for (size_t i = 0; i < parser->n_cables; i++) {
            struct ib_switch *a = find_switch(parser, parser->cables[i].from), *b = find_switch(parser, parser->cables[i].to);
            if (a && b && a->level == level && b->level > level + 1)
                b->level = deepest = level + 1;
        }
    return deepest + 1;
}

static double oversubscription(const struct parser *parser)
{
    double down = 0, up = 0;
    for (size_t i = 0; i < parser->n_nics; i++)
        down += parser->nics[i].rate;
    for (size_t i = 0; i < parser->n_cables; i++) {
        const struct ib_switch *a = find_switch(parser, parser->cables[i].from), *b = find_switch(parser, parser->cables[i].to);
        up += a && b && a->level == 0 && b->level == 1 ? parser->cables[i].rate : 0;
    }
    return up > 0 ? round(100 * down / up) / 100 : 0;
}

/* NICs in order of host and leaf: hosts, NICs of the first, whether each is at a leaf of its own, hosts of each leaf. */
static void count_hosts(struct parser *parser, struct topology_seen *t)
{
    int nics = 0, leaves = 0, most_nics = 0, most_leaves = 0;
    for (size_t i = 0; i < parser->n_nics; i++) {
        const struct ib_nic *nic = &parser->nics[i], *before = i > 0 ? nic - 1 : NULL;
        bool new_host = !before || strcmp(before->host, nic->host) != 0;
        bool new_leaf = new_host || strcmp(before->leaf, nic->leaf) != 0;
        struct ib_switch *leaf = find_switch(parser, nic->leaf);
        t->nodes += new_host;
        nics = new_host ? 1 : nics + 1;
        leaves = new_host ? 1 : leaves + new_leaf;
        most_nics = nics > most_nics ? nics : most_nics;
        most_leaves = leaves > most_leaves ? leaves : most_leaves;
        if (leaf && new_leaf)
            leaf->hosts++;
        t->nic_rate = fmax(t->nic_rate, nic->rate);
    }
    t->nics_per_node = most_nics;
    t->rails = most_nics < 2 ? 0 : most_leaves == most_nics ? 1 : most_leaves == 1 ? -1 : 0;
    for (size_t i = 0; i < parser->n_switches; i++)
        t->leaf_nodes = parser->switches[i].hosts > t->leaf_nodes ? parser->switches[i].hosts : t->leaf_nodes;
}

/* Of three layers: hosts of the leaves that switches of the second layer join. */
static int pod_hosts(struct parser *parser)
{
    int most = 0;
    for (size_t i = 0; i < parser->n_switches; i++)
        parser->switches[i].pod = (int)i;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < parser->n_cables; i++) {
            struct ib_switch *a = find_switch(parser, parser->cables[i].from), *b = find_switch(parser, parser->cables[i].to);
            if (!a || !b || a->level > 1 || b->level > 1 || a->pod >= b->pod)
                continue;
            b->pod = a->pod;
            moved = true;
        }
    }
    for (size_t i = 0; i < parser->n_switches; i++) {
        int hosts = 0;
        for (size_t j = 0; j < parser->n_switches; j++)
            hosts += parser->switches[j].pod == (int)i && parser->switches[j].level == 0 ? parser->switches[j].hosts : 0;
        most = hosts > most ? hosts : most;
    }
    return most;
}

static void finish(struct parser *parser, const char *name, struct topology_seen *t, struct diags *diags)
{
    size_t kept = 0;
    for (size_t i = 0; i < parser->n_nics; i++) /* a NIC without a cable is no part of the network */
        if (*parser->nics[i].leaf && *parser->nics[i].host)
            parser->nics[kept++] = parser->nics[i];
    parser->n_nics = kept;
    if (parser->n_nics == 0) {
        diag_error(diags, (struct place){.file = name}, "has no NIC at a switch");
        return;
    }
    qsort(parser->nics, parser->n_nics, sizeof *parser->nics, nic_compare);
    if (parser->n_switches > 1)
        qsort(parser->switches, parser->n_switches, sizeof *parser->switches, switch_compare);
    int layers = find_levels(parser);
    count_hosts(parser, t);
    t->layers = layers < 3 ? layers : 3;
    if (layers > 3)
        diag_note(diags, (struct place){.file = name}, "%d layers of switches; msim has three at most", layers);
    if (layers > 1)
        t->leaf_oversubscription = oversubscription(parser);
    if (layers == 3)
        t->pod_nodes = pod_hosts(parser);
}

void ib_topology_parse(const char *name, char *bytes, struct topology_seen *topology, struct diags *diags)
{
    struct parser parser = {.n_nics = 0};
    for (char *text = bytes, *line; (line = topology_line(&text)) != NULL;) {
        if (*line == '[')
            read_port(&parser, line);
        else if (isalpha((unsigned char)*line) && strchr(line, '"'))
            read_heading(&parser, line);
    }
    finish(&parser, name, topology, diags);
    free(parser.switches);
    free(parser.nics);
    free(parser.cables);
}
