/* What the links of a fabric carried, from the table of `--link-map`. */
#include <stdlib.h>
#include <string.h>

#include "plots/figure_data.h"

/* A layer that is drawn link by link: its name, and that of the layer the other way, whose links go up. */
static const struct {
    const char *name, *up;
} maps[] = {{"nic_up", "nic_up"},   {"tor_up", "tor_up"},   {"agg_up", "agg_up"},
            {"nic_down", "nic_up"}, {"tor_down", "tor_up"}, {"agg_down", "agg_up"}};
enum { N_MAPS = sizeof maps / sizeof maps[0], LAYERS_MAX = 32 };

enum column { LAYER, LINK, UTILISATION, NAME, N_COLUMNS };
static const struct csv_column expected[N_COLUMNS] = {{"layer", true}, {"link", true}, {"utilisation", true}, {"name", true}};

struct links {
    const struct csv_table *table;
    int columns[N_COLUMNS];
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

/* The number behind a word in the name of a link, plus 1; 1 where it does not stand there. */
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

static void map_write(const struct links *links, int map, FILE *out)
{
    int ports = ports_of(links, maps[map].up), n = 0;
    double sum = 0, most = 0;

    fprintf(out, "$map%d << EOD\n", map + 1);
    for (size_t row = 0; row < links->table->n_rows; row++) {
        if (strcmp(csv_cell(links->table, row, links->columns[LAYER]), maps[map].name) != 0)
            continue;
        fprintf(out, "%d\t%d\t%.6g\n", (int)(links->link[row] % ports), (int)(links->link[row] / ports),
                100 * links->utilisation[row]);
        sum += links->utilisation[row];
        most = links->utilisation[row] > most ? links->utilisation[row] : most;
        n++;
    }
    fprintf(out, "EOD\nlinks%d = %d\nports%d = %d\nmean%d = %.6g\nmost%d = %.6g\n", map + 1, n, map + 1, ports, map + 1,
            n > 0 ? 100 * sum / n : 0, map + 1, 100 * most);
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
        for (int map = 0; map < N_MAPS; map++)
            map_write(&links, map, out);
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
