/*
 * NCCL's topology of a node: a tree of CPUs, PCI devices, GPUs and NICs in XML, read by expat.
 *
 *     <cpu numaid="0"><pci busid="..." link_speed="32.0 GT/s PCIe" link_width="16"><pci ...><gpu dev="0" sm="90" .../></pci> ...
 */
#include "traces/topology/topology_internal.h"

#ifdef MSIM_EXPAT
#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"

enum { DEPTH_MAX = 32, DEVICES_MAX = 256, HOSTS_MAX = 64 };

/* Where a device is: the CPUs and PCI devices above it, the outermost first. */
struct device {
    int above[DEPTH_MAX], n_above;
    double rate, root_rate; /* B/s: of its lanes; of the outermost PCI switch above it. Of a NIC: its port */
};

struct parser {
    XML_Parser xml;
    const char *name;
    struct diags *diags;
    int above[DEPTH_MAX];    /* CPUs and PCI devices that are open */
    double rates[DEPTH_MAX]; /* their links up */
    int depth, n_elements;   /* n_elements: CPUs and PCI devices so far */
    bool deep;               /* too deep, or too many */
    struct device gpus[DEVICES_MAX], nics[DEVICES_MAX];
    int n_gpus, n_nics;
    char hosts[HOSTS_MAX][24];
    int n_hosts;
    int sm;
    char gcn[16];
};

static const char *attribute(const XML_Char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return "";
}

/* "32.0 GT/s PCIe" and 16 lanes: 63 GB/s with 128 bits in 130; up to 5 GT/s 8 in 10. */
static double link_rate(const XML_Char **attributes)
{
    double speed = strtod(attribute(attributes, "link_speed"), NULL), width = strtod(attribute(attributes, "link_width"), NULL);
    if (!(speed > 0 && speed < 1000 && width > 0 && width <= 64))
        return 0;
    return speed * 1e9 * width / 8 * (speed > 5.5 ? 128.0 / 130 : 0.8);
}

static void push(struct parser *parser, double rate)
{
    if (parser->depth == DEPTH_MAX) {
        parser->deep = true;
        return;
    }
    parser->above[parser->depth] = parser->n_elements++;
    parser->rates[parser->depth++] = rate;
}

static void add_device(struct parser *parser, struct device *devices, int *n, double rate)
{
    if (*n == DEVICES_MAX) {
        parser->deep = true;
        return;
    }
    struct device *device = &devices[(*n)++];
    memcpy(device->above, parser->above, sizeof device->above);
    device->n_above = parser->depth;
    device->rate = rate;
    device->root_rate = parser->depth > 2 ? parser->rates[1] : 0; /* CPU, switch, ..., the device itself */
}

static void add_host(struct parser *parser, const char *hash)
{
    for (int i = 0; i < parser->n_hosts; i++)
        if (strncmp(parser->hosts[i], hash, sizeof parser->hosts[i] - 1) == 0)
            return;
    if (parser->n_hosts < HOSTS_MAX)
        snprintf(parser->hosts[parser->n_hosts++], sizeof parser->hosts[0], "%s", hash);
}

static void XMLCALL on_begin(void *data, const XML_Char *element, const XML_Char **attributes)
{
    struct parser *parser = data;
    if (strcmp(element, "cpu") == 0) {
        add_host(parser, attribute(attributes, "host_hash"));
        push(parser, 0);
    } else if (strcmp(element, "pci") == 0) {
        push(parser, link_rate(attributes));
    } else if (strcmp(element, "gpu") == 0) {
        int sm = (int)strtol(attribute(attributes, "sm"), NULL, 10);
        parser->sm = sm > 0 && sm < 1000 ? sm : parser->sm;
        snprintf(parser->gcn, sizeof parser->gcn, "%s", attribute(attributes, "gcn"));
        add_device(parser, parser->gpus, &parser->n_gpus, parser->depth > 0 ? parser->rates[parser->depth - 1] : 0);
    } else if (strcmp(element, "net") == 0) {
        double megabits = strtod(attribute(attributes, "speed"), NULL);
        if (megabits > 0 && megabits < 1e8)
            add_device(parser, parser->nics, &parser->n_nics, megabits * 1e6 / 8);
    }
}

static void XMLCALL on_end(void *data, const XML_Char *element)
{
    struct parser *parser = data;
    if ((strcmp(element, "cpu") == 0 || strcmp(element, "pci") == 0) && parser->depth > 0)
        parser->depth--;
}

/* NICs of less than half the rate of the fastest are for management. */
static void drop_slow_nics(struct parser *parser)
{
    double fastest = 0;
    int kept = 0;
    for (int i = 0; i < parser->n_nics; i++)
        fastest = fmax(fastest, parser->nics[i].rate);
    for (int i = 0; i < parser->n_nics; i++)
        if (parser->nics[i].rate >= fastest / 2)
            parser->nics[kept++] = parser->nics[i];
    if (kept < parser->n_nics)
        diag_note(parser->diags, (struct place){.file = parser->name},
                  "left out: %d NIC%s of less than half the rate of the others", parser->n_nics - kept,
                  parser->n_nics - kept == 1 ? "" : "s");
    parser->n_nics = kept;
}

static int common(const struct device *a, const struct device *b)
{
    int n = 0;
    while (n < a->n_above && n < b->n_above && a->above[n] == b->above[n])
        n++;
    return n;
}

/* The NICs nearest to a GPU, as bits; their number. */
static int nearest(const struct parser *parser, int gpu, bool *near)
{
    int best = -1, n = 0;
    for (int i = 0; i < parser->n_nics; i++)
        best = common(&parser->gpus[gpu], &parser->nics[i]) > best ? common(&parser->gpus[gpu], &parser->nics[i]) : best;
    for (int i = 0; i < parser->n_nics; i++) {
        near[i] = common(&parser->gpus[gpu], &parser->nics[i]) == best;
        n += near[i];
    }
    return n;
}

/* GPUs with the same nearest NICs share them in order. */
static int nic_of(const struct parser *parser, int gpu)
{
    bool near[DEVICES_MAX], other[DEVICES_MAX];
    int n = nearest(parser, gpu, near), before = 0, alike = 0, at;
    for (int i = 0; i < parser->n_gpus; i++) {
        (void)nearest(parser, i, other);
        bool same = memcmp(near, other, sizeof *near * (size_t)parser->n_nics) == 0;
        alike += same;
        before += same && i < gpu;
    }
    at = before * n / alike;
    for (int i = 0; i < parser->n_nics; i++)
        if (near[i] && at-- == 0)
            return i;
    return 0;
}

static void find_affinity(const struct parser *parser, int gpus, int nics, struct topology_seen *t)
{
    bool usual = true;
    char text[sizeof t->nic_affinity] = "";
    for (int gpu = 0; gpu < gpus; gpu++) {
        int nic = nic_of(parser, gpu);
        usual &= nic == gpu * nics / gpus;
        text_append(text, sizeof text, "%s%d", gpu > 0 ? "," : "", nic);
    }
    if (!usual && nics <= gpus && gpus <= 64)
        memcpy(t->nic_affinity, text, sizeof text);
}

/* The number of the PCI switch above a device, in the order of seen[*n]; -1: it has none. */
static int switch_of(const struct device *device, int *seen, int *n)
{
    if (device->n_above < 3)
        return -1;
    for (int i = 0; i < *n; i++)
        if (seen[i] == device->above[1])
            return i;
    seen[*n] = device->above[1];
    return (*n)++;
}

/* PCI switches right below CPUs, if GPUs and NICs are spread over them evenly and in order, as msim takes them to be; else 0. */
static int count_switches(const struct parser *parser)
{
    int seen[2 * DEVICES_MAX], of_gpu[DEVICES_MAX], of_nic[DEVICES_MAX], n = 0;
    for (int i = 0; i < parser->n_gpus; i++)
        of_gpu[i] = switch_of(&parser->gpus[i], seen, &n);
    for (int i = 0; i < parser->n_nics; i++)
        of_nic[i] = switch_of(&parser->nics[i], seen, &n);
    if (n == 0 || parser->n_gpus % n != 0 || parser->n_nics % n != 0)
        return 0;
    for (int i = 0; i < parser->n_gpus; i++)
        if (of_gpu[i] != i * n / parser->n_gpus)
            return 0;
    for (int i = 0; i < parser->n_nics; i++)
        if (of_nic[i] != i * n / parser->n_nics)
            return 0;
    return n;
}

static void finish(struct parser *parser, struct topology_seen *t)
{
    int hosts = parser->n_hosts > 0 ? parser->n_hosts : 1;
    drop_slow_nics(parser);
    if (parser->n_gpus == 0) {
        diag_error(parser->diags, (struct place){.file = parser->name}, "contains no GPU");
        return;
    }
    t->gpus_per_node = parser->n_gpus / hosts > 0 ? parser->n_gpus / hosts : 1;
    t->nics_per_node = parser->n_nics / hosts;
    t->nic_rate = parser->n_nics > 0 ? parser->nics[0].rate : 0;
    t->sm = parser->sm;
    memcpy(t->gcn, parser->gcn, sizeof t->gcn);
    t->pcie_rate = parser->gpus[0].rate;
    int switches = count_switches(parser) / hosts;
    if (switches > 0 && parser->gpus[0].root_rate > 0 && t->pcie_rate > 0) {
        t->pcie_switches = switches;
        t->pcie_root_rate = parser->gpus[0].root_rate;
    }
    if (parser->n_nics > 0 && hosts == 1)
        find_affinity(parser, parser->n_gpus, parser->n_nics, t);
}

void nccl_topology_parse(const char *name, const char *bytes, size_t n, struct topology_seen *topology, struct diags *diags)
{
    struct parser parser = {.name = name, .diags = diags, .xml = XML_ParserCreate(NULL)};
    XML_SetUserData(parser.xml, &parser);
    XML_SetElementHandler(parser.xml, on_begin, on_end);
    if (XML_Parse(parser.xml, bytes, (int)n, 1) != XML_STATUS_OK)
        diag_error(diags,
                   (struct place){.file = name,
                                  .line = (int)XML_GetCurrentLineNumber(parser.xml),
                                  .column = (int)XML_GetCurrentColumnNumber(parser.xml) + 1},
                   "is not XML: %s", XML_ErrorString(XML_GetErrorCode(parser.xml)));
    else if (parser.deep)
        diag_error(diags, (struct place){.file = name}, "has more than %d GPUs or NICs, or PCI devices more than %d deep",
                   DEVICES_MAX, DEPTH_MAX);
    else
        finish(&parser, topology);
    XML_ParserFree(parser.xml);
}

#else

void nccl_topology_parse(const char *name, const char *bytes, size_t n, struct topology_seen *topology, struct diags *diags)
{
    (void)bytes, (void)n, (void)topology;
    diag_error(diags, (struct place){.file = name}, "this msim was built without expat, which reads XML (libexpat1-dev)");
}

#endif
