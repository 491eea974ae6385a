/* figure_links.c - the load of the links of a fabric, from the table of `--link-map`. */
#include <stdlib.h>
#include <string.h>

#include "plots/figure_data.h"

enum { N_MAPS = 6, LAYERS_MAX = 32, GROUPS_MAX = 1024 };
/* A layer that is drawn link by link: its name, and that of the layer the other way, whose links go up. */
static const struct map {
    const char *name, *up;
} clos_maps[N_MAPS] = {{"nic_up", "nic_up"},   {"tor_up", "tor_up"},   {"agg_up", "agg_up"},
                       {"nic_down", "nic_up"}, {"tor_down", "tor_up"}, {"agg_down", "agg_up"}};
/* Of a dragonfly both ways between groups are one map, group by group. */
static const struct map dragonfly_maps[N_MAPS] = {{"nic_up", "nic_up"},   {"local_out", "local_out"}, {"global_", NULL},
                                                  {"nic_down", "nic_up"}, {"local_in", "local_out"},  {"none", "none"}};

enum column { LAYER, LINK, UTILISATION, NAME, N_COLUMNS };
static const struct csv_column expected[N_COLUMNS] = {{"layer", true}, {"link", true}, {"utilisation", true}, {"name", true}};

struct links {
    const struct csv_table *table;
    int columns[N_COLUMNS];
    const struct map *maps;
    int64_t *link;       /* [rows] its number in its layer */
    double *utilisation; /* [rows] */
};

struct layer_use {
    const char *name;
    size_t links;
    double sum, most;
};

static enum status links_read(struct links *links, struct diags *diags)
{
    const struct csv_table *t = links->table;
    bool good = true;

    links->link = calloc(t->n_rows + 1, sizeof *links->link);
    links->utilisation = calloc(t->n_rows + 1, sizeof *links->utilisation);
    if (links->link == NULL || links->utilisation == NULL) {
        diag_error(diags, (struct place){.file = t->name}, "no memory for a figure");
        return STATUS_FAILED;
    }
    for (size_t row = 0; row < t->n_rows; row++) {
        good &= csv_cell_integer(t, row, links->columns[LINK], 0, 1 << 24, &links->link[row], diags) == STATUS_OK;
        good &= csv_cell_number(t, row, links->columns[UTILISATION], 0, 1e6, &links->utilisation[row], diags) == STATUS_OK;
    }
    return good ? STATUS_OK : STATUS_BAD_INPUT;
}

/* The number behind a word in the name of a link, plus 1; 1 without that word. */
static int number_after(const char *name, const char *word)
{
    const char *at = strstr(name, word);
    const char *arrow = strstr(name, " -> ");

    return at != NULL && (arrow == NULL || at < arrow) ? (int)strtol(at + strlen(word), NULL, 10) + 1 : 1;
}

/* Links that go up from one host or switch: the largest numbers in "host 3 nic 5 port 0 -> ..." and "tor 17 port 31 -> ...". */
static int ports_of(const struct links *links, const char *layer)
{
    int nics = 1, ports = 1;

    for (size_t row = 0; row < links->table->n_rows; row++) {
        const char *name = csv_cell(links->table, row, links->columns[NAME]);
        if (strcmp(csv_cell(links->table, row, links->columns[LAYER]), layer) != 0)
            continue;
        int nic = number_after(name, " nic "), port = number_after(name, " port ");
        nics = nic > nics ? nic : nics;
        ports = port > ports ? port : ports;
    }
    return nics * ports;
}

static const char *layer_of(const struct links *links, size_t row)
{
    return csv_cell(links->table, row, links->columns[LAYER]);
}

/* The groups that a link of a dragonfly leads from and to, from "group 3 switch 1 port 50 -> group 7 switch 2"; -1: no group. */
static int group_from(const struct links *links, size_t row)
{
    const char *name = csv_cell(links->table, row, links->columns[NAME]);
    return strncmp(name, "group ", 6) == 0 ? (int)strtol(name + 6, NULL, 10) : -1;
}
static int group_to(const struct links *links, size_t row)
{
    const char *to = strstr(csv_cell(links->table, row, links->columns[NAME]), " -> group ");
    return to != NULL ? (int)strtol(to + 10, NULL, 10) : -1;
}

/* Links of a layer for each of its groups. */
static int links_of_group(const struct links *links, const char *layer)
{
    int n = 0, groups = 1;

    for (size_t row = 0; row < links->table->n_rows; row++) {
        if (strcmp(layer_of(links, row), layer) != 0)
            continue;
        int group = group_from(links, row);
        groups = group >= groups ? group + 1 : groups;
        n++;
    }
    return n / groups > 0 ? n / groups : 1;
}

/* A map's numbers that are not cells. */
struct seen {
    int links;
    double sum, most;
};

static void seen_add(struct seen *seen, double utilisation)
{
    seen->links++;
    seen->sum += utilisation;
    seen->most = utilisation > seen->most ? utilisation : seen->most;
}

static int seen_write(const struct seen *seen, int map, int ports, int units, FILE *out)
{
    fprintf(out, "EOD\nlinks%d = %d\nports%d = %d\nunits%d = %d\nmean%d = %.6g\nmost%d = %.6g\n", map + 1, seen->links, map + 1,
            ports, map + 1, units, map + 1, seen->links > 0 ? 100 * seen->sum / seen->links : 0, map + 1, 100 * seen->most);
    return seen->links;
}

/* A map with too many groups states what it has no room for. */
static void say_left_out(const struct links *links, size_t left_out, struct diags *diags)
{
    if (left_out > 0)
        diag_warning(diags, (struct place){.file = links->table->name},
                     "the map between groups has room for %d: %zu link%s of groups from number %d on are left out of it",
                     GROUPS_MAX, left_out, left_out == 1 ? "" : "s", GROUPS_MAX);
}

/* Between groups: the mean of the cables from one to another. */
static enum status groups_write(const struct links *links, int map, int *drawn, FILE *out, struct diags *diags)
{
    struct seen seen = {0};
    size_t n = 0, left_out = 0, name_length = strlen(links->maps[map].name);

    for (size_t row = 0; row < links->table->n_rows; row++)
        if (strncmp(layer_of(links, row), links->maps[map].name, name_length) == 0) {
            int from = group_from(links, row), to = group_to(links, row), higher = from > to ? from : to;
            n = higher >= 0 && higher < GROUPS_MAX && (size_t)higher >= n ? (size_t)higher + 1 : n;
            left_out += higher >= GROUPS_MAX;
        }
    say_left_out(links, left_out, diags);
    struct cell {
        double sum;
        int links;
    } *cells = calloc(n * n + 1, sizeof *cells);
    if (cells == NULL)
        return STATUS_FAILED;
    for (size_t row = 0; row < links->table->n_rows; row++) {
        int from = group_from(links, row), to = group_to(links, row);
        if (strncmp(layer_of(links, row), links->maps[map].name, name_length) != 0 || from < 0 || to < 0 || from >= GROUPS_MAX ||
            to >= GROUPS_MAX)
            continue;
        struct cell *cell = &cells[(size_t)from * n + (size_t)to];
        cell->sum += links->utilisation[row];
        cell->links++;
        seen_add(&seen, links->utilisation[row]);
    }
    fprintf(out, "$map%d << EOD\n", map + 1);
    for (size_t i = 0; i < n * n; i++)
        fprintf(out, "%zu\t%zu\t%.6g\n", i % n, i / n, cells[i].links > 0 ? 100 * cells[i].sum / cells[i].links : 0);
    *drawn = seen_write(&seen, map, n > 0 ? (int)n : 1, (int)n, out);
    free(cells);
    return STATUS_OK;
}

/* How many links it has. */
static int map_write(const struct links *links, int map, FILE *out)
{
    const struct map *drawn = &links->maps[map];
    bool local = strncmp(drawn->name, "local", 5) == 0;
    int ports = local ? links_of_group(links, drawn->up) : ports_of(links, drawn->up);
    struct seen seen = {0};

    fprintf(out, "$map%d << EOD\n", map + 1);
    for (size_t row = 0; row < links->table->n_rows; row++) {
        if (strcmp(layer_of(links, row), drawn->name) != 0)
            continue;
        fprintf(out, "%d\t%d\t%.6g\n", (int)(links->link[row] % ports), (int)(links->link[row] / ports),
                100 * links->utilisation[row]);
        seen_add(&seen, links->utilisation[row]);
    }
    return seen_write(&seen, map, ports, (seen.links + ports - 1) / ports, out);
}

/* Columns of the figure, up above down: one for each pair of maps that has links. */
static void columns_write(const int n_of[N_MAPS], FILE *out)
{
    int n = 0;

    for (int map = 0; map < N_MAPS / 2; map++) {
        fprintf(out, "place%d = %d\n", map + 1, n);
        n += n_of[map] + n_of[map + N_MAPS / 2] > 0;
    }
    fprintf(out, "n_columns = %d\n", n > 0 ? n : 1);
}

/* Every layer of the topology whose names the table has. */
static enum status maps_write(struct links *links, FILE *out, struct diags *diags)
{
    bool dragonfly = false;
    int n_of[N_MAPS] = {0};
    enum status status = STATUS_OK;

    for (size_t row = 0; row < links->table->n_rows && !dragonfly; row++)
        dragonfly = strcmp(layer_of(links, row), "local_out") == 0 || strcmp(layer_of(links, row), "global_out") == 0;
    links->maps = dragonfly ? dragonfly_maps : clos_maps;
    fprintf(out, "dragonfly = %d\n", dragonfly);
    for (int map = 0; map < N_MAPS && status == STATUS_OK; map++) {
        if (links->maps[map].up == NULL)
            status = groups_write(links, map, &n_of[map], out, diags);
        else
            n_of[map] = map_write(links, map, out);
    }
    columns_write(n_of, out);
    return status;
}

/* Layers in the order in which they first appear. */
static int layers_sum(const struct links *links, struct layer_use layers[LAYERS_MAX])
{
    int n = 0, at;

    for (size_t row = 0; row < links->table->n_rows; row++) {
        const char *name = csv_cell(links->table, row, links->columns[LAYER]);
        for (at = 0; at < n && strcmp(layers[at].name, name) != 0; at++)
            ;
        if (at == LAYERS_MAX)
            continue;
        if (at == n)
            layers[n++] = (struct layer_use){.name = name};
        layers[at].links++;
        layers[at].sum += links->utilisation[row];
        layers[at].most = links->utilisation[row] > layers[at].most ? links->utilisation[row] : layers[at].most;
    }
    return n;
}

static void layers_write(const struct links *links, FILE *out)
{
    struct layer_use layers[LAYERS_MAX];
    int n = layers_sum(links, layers);

    fputs("$layers << EOD\n", out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "%d\t%.6g\t%.6g\t%zu\t", i, 100 * layers[i].sum / (double)layers[i].links, 100 * layers[i].most,
                layers[i].links);
        figure_write_text(out, layers[i].name);
        fputc('\n', out);
    }
    fprintf(out, "EOD\nn_rows = %d\ntext_lines = %d\n", n, n + 6);
}

enum status figure_data_links(const struct figure_input *input, FILE *out, struct diags *diags)
{
    struct links links = {.table = &input->csv};
    enum status status;

    if (input->result != NULL) {
        diag_error(diags, (struct place){.file = input->name}, "a figure of kind links needs the table of --link-map");
        return STATUS_BAD_INPUT;
    }
    status = csv_table_columns(links.table, expected, N_COLUMNS, links.columns, diags);
    if (status == STATUS_OK)
        status = links_read(&links, diags);
    if (status == STATUS_OK && links.table->n_rows == 0) {
        diag_error(diags, (struct place){.file = input->name}, "no links in this table");
        status = STATUS_BAD_INPUT;
    }
    if (status == STATUS_OK) {
        layers_write(&links, out);
        status = maps_write(&links, out, diags);
        if (status != STATUS_OK)
            diag_error(diags, (struct place){.file = input->name}, "no memory for a figure");
    }
    free(links.link);
    free(links.utilisation);
    return status;
}

bool figure_is_links(const struct figure_input *input)
{
    return input->result == NULL && csv_table_column(&input->csv, "link") >= 0 &&
           csv_table_column(&input->csv, "utilisation") >= 0;
}
