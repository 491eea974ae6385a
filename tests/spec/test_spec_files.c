/* Files that are not what they should be, where files are looked for, and a catalog that cannot be read. */
#include <check.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/spec/catalog.h"
#include "tests/spec/said.h"
#include "tests/suite.h"

static struct experiment e;

static char *said_of_file(const char *path)
{
    struct diags diags = {0};
    struct experiment_flags flags = {.file = path};
    ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    diags_free(&diags);
    return words;
}

static char *said_of_gpu(const char *name)
{
    struct diags diags = {0};
    struct gpu gpu;
    ck_assert_int_eq(catalog_gpu(name, &gpu, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    diags_free(&diags);
    return words;
}

static void assert_contains(char *words, const char *part)
{
    ck_assert_msg(strstr(words, part) != NULL, "%.500s lacks %s", words, part);
    free(words);
}

START_TEST(a_file_that_cannot_be_read)
{
    assert_contains(said_of_file("/nonexistent/x.yaml"), "/nonexistent/x.yaml: error: cannot read: No such file");
    assert_contains(said_of_file("/tmp"), "/tmp: error: cannot read: is a directory");
    assert_contains(said_of_file("/dev/null"), "/dev/null: error: the file is empty");
    assert_contains(said_of_file(temporary_file("x.yaml",
                                                "\x7f"
                                                "ELF\x02\x01",
                                                6)),
                    ":1:1: error: byte 0x7f is not text; is this a binary file?");
}
END_TEST

START_TEST(a_file_that_is_too_large)
{
    size_t n = 3 << 20;
    char *bytes = malloc(n);
    memset(bytes, '#', n);
    assert_contains(said_of_file(temporary_file("large.yaml", bytes, n)), "larger than 2 MiB of text; is this the right file?");
    free(bytes);
}
END_TEST

START_TEST(a_truncated_compressed_file)
{
    static const unsigned char start[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0xcc};
    assert_contains(said_of_file(temporary_file("x.yaml.gz", (const char *)start, sizeof start)), "error: ");
}
END_TEST

/* Every beginning of a good file is either an experiment or explained. */
START_TEST(every_truncation_is_explained)
{
    FILE *in = fopen(TEST_DATA "/megascale.yaml", "rb");
    char text[4096];
    size_t n = fread(text, 1, sizeof text, in);
    fclose(in);
    ck_assert_uint_gt(n, 200);
    for (size_t length = 0; length < n; length++) {
        struct diags diags = {0};
        enum status status = experiment_parse_text("t", text, length, &e, &diags);
        ck_assert_int_eq(status, diags_status(&diags));
        diags_free(&diags);
    }
}
END_TEST

START_TEST(a_file_named_in_a_file)
{
    static const char text[] = "model: nowhere/model.yaml\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n";
    assert_contains(said_of_file(temporary_file("e.yaml", text, strlen(text))),
                    "e.yaml:1:8: error: there is no file 'nowhere/model.yaml'");
}
END_TEST

/* Two lines make a cluster, whose source is that of its base. A cluster without a base has to name its own. */
START_TEST(a_cluster_of_two_lines)
{
    static const char two[] = "base: dgx-h100\nnodes: 4\n", none[] = "gpu: h100-sxm\nnodes: 4\n";
    struct diags diags = {0};
    struct cluster cluster;
    ck_assert_int_eq(catalog_cluster(temporary_file("two.yaml", two, strlen(two)), &cluster, &diags), STATUS_OK);
    ck_assert_str_eq(cluster.source, "dgx-h100, changed in two.yaml");
    ck_assert_int_eq(cluster.nodes, 4);
    ck_assert_int_eq(catalog_cluster(temporary_file("none.yaml", none, strlen(none)), &cluster, &diags), STATUS_BAD_INPUT);
    assert_contains(said(&diags), "'source' is missing");
    diags_free(&diags);
}
END_TEST

START_TEST(an_entry_without_a_source_is_refused)
{
    static const char plain[] = "base: a100-80g-sxm\nhbm: 40GiB\n";
    static const char empty[] = "source:\nbase: a100-80g-sxm\n";
    static const char group[] = "source: x\nbase: a100-80g-sxm\ngemm: {source: }\n";
    assert_contains(said_of_gpu(temporary_file("g.yaml", plain, strlen(plain))),
                    ":1:1: error: 'source' is missing; an entry must name the source of its numbers");
    assert_contains(said_of_gpu(temporary_file("g.yaml", empty, strlen(empty))), "'source' is missing");
    assert_contains(said_of_gpu(temporary_file("g.yaml", group, strlen(group))), ":3:8: error: 'source' has no value");
    /* Other mistakes are reported too. */
    static const char more[] = "base: a100-80g-sxm\nhbm: 40\nhmb_rate: 2TB/s\n";
    char *words = said_of_gpu(temporary_file("g.yaml", more, strlen(more)));
    ck_assert_msg(strstr(words, ":1:1: error: 'source' is missing") && strstr(words, ":2:6: error: hbm: '40' has no unit") &&
                      strstr(words, ":3:1: error: unknown key 'hmb_rate' in gpu; did you mean 'hbm_rate'?"),
                  "%s", words);
    free(words);
}
END_TEST

/* Collectives cannot be faster than the links that the entry gives itself: 200 of 450 GB/s leave 4/9 of 382.9 GB/s. */
START_TEST(rates_of_collectives_follow_the_links)
{
    static const char slower[] = "source: x\nbase: h100-sxm\nnvlink_rate: 200GB/s\n";
    static const char measured[] = "source: x\nbase: h100-sxm\nnvlink_rate: 200GB/s\nnccl: {rate: 150GB/s}\n";
    struct diags diags = {0};
    struct gpu base, gpu;
    ck_assert_int_eq(catalog_gpu("h100-sxm", &base, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_gpu(temporary_file("g.yaml", slower, strlen(slower)), &gpu, &diags), STATUS_OK);
    ck_assert_double_eq_tol(gpu.nccl_rate, base.nccl_rate * 200 / 450, 1e-3 * base.nccl_rate);
    ck_assert_double_eq_tol(gpu.nvls_rate, base.nvls_rate * 200 / 450, 1e-3 * base.nvls_rate);
    ck_assert_ptr_nonnull(strstr(gpu.nccl_source, "rates scaled with nvlink_rate"));
    ck_assert_int_eq(catalog_gpu(temporary_file("g.yaml", measured, strlen(measured)), &gpu, &diags), STATUS_OK);
    ck_assert_double_eq_tol(gpu.nccl_rate, 150e9, 1);
    diags_free(&diags);
}
END_TEST

/* A node's published power is that of its GPUs, too: what is laid over a base, and what is left of it. */
static const struct {
    const char *over;
    double node_w, pue;
    const char *note;
} nodes_of_base[] = {
    {"nodes: 3", 10200, 1.3, ""},
    {"gpu: h100-sxm", 10200, 1.3, ""},
    {"gpu: {power: 500W}", 10200, 1.3, ""},
    {"node_power: 5600W", 5600, 1.3, ""},
    {"node_power: 5.5kW", 5500, 1.3,
     "warning: node_power: 5500 W is less than the board power of its 8 GPUs, 5600 W; are the GPUs capped?"},
    {"gpu: b200", 0, 1.3, "10.2kW is that of the base, not of a node with another GPU"},
    {"gpu: {base: b200, hbm: 100GiB}", 0, 1.3, "with another GPU"},
    {"gpus_per_node: 4\nnics_per_node: 4", 0, 1.3, "of a node with this number of GPUs"},
    {"gpu: b200\nnode_power: 14.3kW\npue: null", 14300, 0, ""},
};

START_TEST(the_power_of_a_node_is_of_its_gpus)
{
    static const char dgx[] = "source: x\ngpu: h100-sxm\nnodes: 2\ngpus_per_node: 8\nnode_power: 10.2kW\npue: 1.3\n";
    static struct cluster cluster;
    struct diags diags = {0};
    char text[512];
    snprintf(text, sizeof text, "source: x\nbase: %s\n%s\n", temporary_file("x.yaml", dgx, strlen(dgx)), nodes_of_base[_i].over);
    ck_assert_int_eq(catalog_cluster(temporary_file("over.yaml", text, strlen(text)), &cluster, &diags), STATUS_OK);
    ck_assert_double_eq(cluster.node_power_w, nodes_of_base[_i].node_w);
    ck_assert_double_eq(cluster.pue, nodes_of_base[_i].pue);
    char *words = said(&diags);
    diags_free(&diags);
    ck_assert_int_eq(*words != 0, nodes_of_base[_i].note[0] != 0);
    assert_contains(words, nodes_of_base[_i].note);
}
END_TEST

START_TEST(a_gpu_that_leaves_out_what_is_fitted)
{
    static const char text[] = "source: x\npeak: {bf16: 200TFLOPS}\n";
    assert_contains(said_of_gpu(temporary_file("g.yaml", text, strlen(text))), "note: `base: NAME` takes missing keys");
}
END_TEST

START_TEST(bases_that_go_round)
{
    static const char text[] = "source: x\nbase: ./loop.yaml\n";
    const char *path = temporary_file("loop.yaml", text, strlen(text));
    assert_contains(said_of_gpu(path), "too many entries refer to each other (does `base` form a loop?)");
    static const char wrong[] = "source: x\nbase: {a: b}\n";
    assert_contains(said_of_gpu(temporary_file("g.yaml", wrong, strlen(wrong))), ":2:7: error: base is a mapping");
}
END_TEST

START_TEST(names_that_are_none)
{
    assert_contains(said_of_gpu(""), "error: the name of the GPU is missing");
    assert_contains(said_of_gpu("a100-80g-smx"), "error: unknown GPU 'a100-80g-smx'; did you mean 'a100-80g-sxm'?");
    assert_contains(said_of_gpu("wombat"), "error: unknown GPU 'wombat'; `msim catalog` lists them");
    assert_contains(said_of_gpu("../gpus/b200"), "error: there is no file '../gpus/b200'");
}
END_TEST

START_TEST(kinds_are_told_apart)
{
    static const char gpu[] = "source: x\nbase: b200\nhbm: 100GiB\n", cluster[] = "source: x\nbase: dgx-h100\n",
                      what[] = "a: b\n";
    static struct catalog_entry entry;
    struct diags diags = {0};
    ck_assert_int_eq(catalog_entry("llama3-8b", &entry, &diags), STATUS_OK);
    ck_assert_int_eq(entry.kind, CATALOG_MODELS);
    ck_assert_int_eq(catalog_entry("b200-node", &entry, &diags), STATUS_OK);
    ck_assert_int_eq(entry.kind, CATALOG_CLUSTERS);
    ck_assert_int_eq(catalog_entry(temporary_file("g.yaml", gpu, strlen(gpu)), &entry, &diags), STATUS_OK);
    ck_assert_int_eq(entry.kind, CATALOG_GPUS);
    ck_assert_int_eq(catalog_entry(temporary_file("c.yaml", cluster, strlen(cluster)), &entry, &diags), STATUS_OK);
    ck_assert_int_eq(entry.kind, CATALOG_CLUSTERS);
    ck_assert_int_eq(catalog_entry(TEST_DATA "/hf/gpt2/config.json", &entry, &diags), STATUS_OK);
    ck_assert_int_eq(entry.kind, CATALOG_MODELS);
    struct transformer file = entry.model;
    for (const char *const *folder = (const char *const[]){TEST_DATA "/hf/gpt2", TEST_DATA "/hf/gpt2/", NULL}; *folder;
         folder++) {
        ck_assert_int_eq(catalog_entry(*folder, &entry, &diags), STATUS_OK);
        ck_assert_int_eq(entry.kind, CATALOG_MODELS);
        ck_assert_mem_eq(&entry.model, &file, sizeof file);
    }
    ck_assert_int_eq(catalog_entry(temporary_file("w.yaml", what, strlen(what)), &entry, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq(catalog_entry(TEST_DATA "/megascale.yaml", &entry, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq(catalog_entry(TEST_DATA "/hf", &entry, &diags), STATUS_BAD_INPUT);
    assert_contains(said(&diags), "is a folder without a config.json, and not a model of the catalog");
    ck_assert_int_eq(catalog_entry("b300-nodes", &entry, &diags), STATUS_BAD_INPUT);
    assert_contains(said(&diags), "the catalog has no 'b300-nodes'; did you mean 'b300-node'?");
    diags_free(&diags);
}
END_TEST

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static void remove_tree(const char *folder)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* MSIM_DATA comes first; what it lacks is found elsewhere; a folder that cannot be read is a diagnostic. */
START_TEST(msim_data_comes_first)
{
    char folder[] = "/tmp/msim-data-XXXXXX", path[256];
    struct diags diags = {0};
    struct gpu gpu;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/catalog", folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/catalog/gpus", folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/catalog/gpus/mine.yaml", folder);
    FILE *out = fopen(path, "w");
    fputs("source: x\nbase: b200\nsms: 3\n", out);
    fclose(out);
    char **names;
    size_t n_before, n;
    ck_assert_int_eq(catalog_names(CATALOG_GPUS, &names, &n_before, &diags), STATUS_OK);
    names_free(names);
    setenv("MSIM_DATA", folder, 1);
    ck_assert_int_eq(catalog_gpu("mine", &gpu, &diags), STATUS_OK);
    ck_assert_int_eq(gpu.sms, 3);
    ck_assert_int_eq(catalog_names(CATALOG_GPUS, &names, &n, &diags), STATUS_OK);
    ck_assert_uint_eq(n, n_before + 1);
    bool listed = false;
    for (size_t i = 0; i < n; i++)
        listed = listed || strcmp(names[i], "mine") == 0;
    ck_assert(listed);
    names_free(names);
    setenv("MSIM_DATA", "", 1);
    ck_assert_int_eq(catalog_gpu("mine", &gpu, &diags), STATUS_BAD_INPUT);
    diags_free(&diags);
    remove_tree(folder);
}
END_TEST

START_TEST(an_unreadable_catalog)
{
    char folder[] = "/tmp/msim-data-XXXXXX", path[256];
    struct diags diags = {0};
    char **names;
    size_t n;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/catalog", folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/catalog/models", folder); /* a file where a folder should be */
    fclose(fopen(path, "w"));
    setenv("MSIM_DATA", folder, 1);
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n, &diags), STATUS_BAD_INPUT);
    assert_contains(said(&diags), "catalog/models: error: cannot read the catalog: Not a directory; set MSIM_DATA to its folder");
    diags_free(&diags);
    setenv("MSIM_DATA", "", 1);
    remove_tree(folder);
}
END_TEST

START_TEST(names_are_sorted_and_load)
{
    for (int kind = 0; kind < N_CATALOG_KINDS; kind++) {
        struct diags diags = {0};
        static struct catalog_entry entry;
        char **names;
        size_t n;
        ck_assert_int_eq(catalog_names((enum catalog_kind)kind, &names, &n, &diags), STATUS_OK);
        ck_assert_ptr_null(names[n]);
        for (size_t i = 0; i < n; i++) {
            ck_assert(i == 0 || strcmp(names[i - 1], names[i]) < 0);
            ck_assert_msg(catalog_entry(names[i], &entry, &diags) == STATUS_OK, "%s", names[i]);
            ck_assert_int_eq((int)entry.kind, kind);
        }
        ck_assert_uint_eq(diags.n_items, 0);
        names_free(names);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, a_file_that_cannot_be_read);
    tcase_add_test(tests, a_file_that_is_too_large);
    tcase_add_test(tests, a_truncated_compressed_file);
    tcase_add_test(tests, every_truncation_is_explained);
    tcase_add_test(tests, a_file_named_in_a_file);
    tcase_add_test(tests, a_cluster_of_two_lines);
    tcase_add_test(tests, an_entry_without_a_source_is_refused);
    tcase_add_test(tests, rates_of_collectives_follow_the_links);
    tcase_add_loop_test(tests, the_power_of_a_node_is_of_its_gpus, 0, (int)(sizeof nodes_of_base / sizeof *nodes_of_base));
    tcase_add_test(tests, a_gpu_that_leaves_out_what_is_fitted);
    tcase_add_test(tests, bases_that_go_round);
    tcase_add_test(tests, names_that_are_none);
    tcase_add_test(tests, kinds_are_told_apart);
    tcase_add_test(tests, msim_data_comes_first);
    tcase_add_test(tests, an_unreadable_catalog);
    tcase_add_test(tests, names_are_sorted_and_load);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
