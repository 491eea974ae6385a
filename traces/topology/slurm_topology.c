/*
 * Slurm's topology.conf.
 *
 *     SwitchName=leaf1 Nodes=gpu[001-032]           the plugin topology/tree
 *     SwitchName=spine Switches=leaf[1-2]
 *     BlockName=rack1 Nodes=gpu[001-018]            the plugin topology/block
 *     BlockSizes=18,36
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/memory.h"
#include "traces/table/node_list.h"
#include "traces/topology/topology_internal.h"

enum { LEVELS_MAX = 8, NODES_MAX = 1000000, CHILDREN_MAX = 100000 };

struct unit {
    char *name;     /* of a switch or a block */
    char *children; /* switches below it; NULL: none */
    int64_t nodes;  /* right below it, later all */
    int level;      /* 1: leaf; 0: not known yet */
    bool is_child;
};

struct parser {
    const char *name;
    struct unit *switches;
    size_t n_switches, capacity;
    int64_t block_nodes, all_block_nodes;
    int blocks;
    struct diags *diags;
};

static int unit_compare(const void *a, const void *b)
{
    return strcmp(((const struct unit *)a)->name, ((const struct unit *)b)->name);
}

static struct unit *unit_find(const struct parser *parser, char *name)
{
    struct unit key = {.name = name};
    return bsearch(&key, parser->switches, parser->n_switches, sizeof key, unit_compare);
}

static void add_unit(struct parser *parser, int line, char *name, char *nodes, char *children, bool block)
{
    int64_t n = nodes ? node_list_count(nodes) : 0;
    if (n > NODES_MAX || (nodes && n == 0)) {
        diag_error(parser->diags, (struct place){.file = parser->name, .line = line}, "'%.60s' is no list of nodes", nodes);
        return;
    }
    if (block) {
        parser->blocks++;
        parser->all_block_nodes += n;
        parser->block_nodes = n > parser->block_nodes ? n : parser->block_nodes;
        return;
    }
    parser->switches = memory_grow(parser->switches, &parser->capacity, parser->n_switches + 1, sizeof *parser->switches);
    parser->switches[parser->n_switches++] =
        (struct unit){.name = name, .children = children, .nodes = n, .level = children ? 0 : 1};
}

/* The value of KEY=VALUE, where the word is that key. */
static char *value_of(char *word, const char *key)
{
    size_t n = strlen(key);
    return strncasecmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static void read_line(struct parser *parser, char *line, int number)
{
    char *comment = strchr(line, '#'), *rest = line, *word, *name = NULL, *nodes = NULL, *children = NULL;
    bool block = false;
    if (comment)
        *comment = '\0';
    while ((word = strsep(&rest, " \t")) != NULL) {
        char *value;
        if ((value = value_of(word, "SwitchName")) != NULL)
            name = value;
        else if ((value = value_of(word, "BlockName")) != NULL)
            name = value, block = true;
        else if ((value = value_of(word, "Nodes")) != NULL)
            nodes = value;
        else if ((value = value_of(word, "Switches")) != NULL)
            children = value;
    }
    if (name)
        add_unit(parser, number, name, nodes, children, block);
}

/* Level and nodes of a switch from those below it; false: some of them have none yet. */
static bool settle(struct parser *parser, struct unit *unit)
{
    char name[NODE_NAME_SIZE];
    int64_t n = node_list_count(unit->children), nodes = unit->nodes;
    int level = 0;
    for (int64_t i = 0; i < n && n <= CHILDREN_MAX; i++) {
        struct unit *child = node_list_name(unit->children, i, name) ? unit_find(parser, name) : NULL;
        if (!child || child->level == 0)
            return false;
        child->is_child = true;
        level = child->level > level ? child->level : level;
        nodes += child->nodes;
    }
    unit->level = level + 1;
    unit->nodes = nodes;
    return n > 0 && n <= CHILDREN_MAX;
}

static void settle_all(struct parser *parser)
{
    for (int pass = 0; pass < LEVELS_MAX; pass++)
        for (size_t i = 0; i < parser->n_switches; i++)
            if (parser->switches[i].level == 0)
                (void)settle(parser, &parser->switches[i]);
    for (size_t i = 0; i < parser->n_switches; i++)
        if (parser->switches[i].level == 0) {
            diag_error(parser->diags, (struct place){.file = parser->name},
                       "switch '%.60s': a switch below it is not described, or they form a circle", parser->switches[i].name);
            return;
        }
}

static int capped(int64_t n)
{
    return n > NODES_MAX ? NODES_MAX : (int)n;
}

static void finish_tree(struct parser *parser, struct topology_seen *t)
{
    int64_t nodes = 0, leaf = 0, pod = 0;
    int levels = 0, roots = 0;
    for (size_t i = 0; i < parser->n_switches; i++) {
        const struct unit *unit = &parser->switches[i];
        nodes += unit->level == 1 ? unit->nodes : 0;
        leaf = unit->level == 1 && unit->nodes > leaf ? unit->nodes : leaf;
        pod = unit->level == 2 && unit->nodes > pod ? unit->nodes : pod;
        levels = unit->level > levels ? unit->level : levels;
        roots += !unit->is_child;
    }
    struct place at = {.file = parser->name};
    if (nodes == 0)
        diag_error(parser->diags, at, "no switch has nodes");
    if (roots > 1 && levels == 1) {
        diag_note(parser->diags, at, "no switch joins the %d leaves; msim assumes spines above them", roots);
        levels = 2;
    }
    if (levels > 3)
        diag_note(parser->diags, at, "%d layers of switches; msim has three at most", levels);
    t->nodes = capped(nodes);
    t->leaf_nodes = capped(leaf);
    t->layers = levels < 3 ? levels : 3;
    t->pod_nodes = levels >= 3 ? capped(pod) : 0;
}

void slurm_topology_parse(const char *name, char *bytes, struct topology_seen *topology, struct diags *diags)
{
    struct parser parser = {.name = name, .diags = diags};
    size_t errors = diags->n_errors;
    int number = 1;
    for (char *text = bytes, *line; (line = topology_line(&text)) != NULL; number++)
        read_line(&parser, line, number);
    if (parser.n_switches > 0) {
        qsort(parser.switches, parser.n_switches, sizeof *parser.switches, unit_compare);
        settle_all(&parser);
        if (diags->n_errors == errors)
            finish_tree(&parser, topology);
    }
    if (parser.blocks > 0) {
        topology->nodes = topology->nodes > 0 ? topology->nodes : capped(parser.all_block_nodes);
        topology->block_nodes = capped(parser.block_nodes);
    }
    if (diags->n_errors == errors && topology->nodes == 0)
        diag_error(diags, (struct place){.file = name}, "describes no nodes");
    free(parser.switches);
}
