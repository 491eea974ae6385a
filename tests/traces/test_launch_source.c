/* Files that a script sources or names: which are read, which are refused, and what an unread one leaves unknown. The files are
 * written to a folder of the test. */
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/launch_files.h"
#include "traces/launch/launch_read.h"

#define SHAPE                                                                                                                    \
    " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096"              \
    " --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16"
#define TRAIN "torchrun --nproc_per_node 8 pretrain_gpt.py" SHAPE " --tensor-model-parallel-size ${TPX:-2}\n"

static char folder[64];

static void make_folder(void)
{
    char below[96];
    snprintf(folder, sizeof folder, "/tmp/msim-source-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(below, sizeof below, "%s/job", folder);
    ck_assert_int_eq(mkdir(below, 0700), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    ck_assert_int_eq(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void write_file(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

struct reading {
    enum status status;
    int tp;
    char *report;
};

/* The tp of the script job/train.sh, and what reading it reports. */
static struct reading read_job(bool follow)
{
    char path[160];
    const char *paths[] = {path};
    const struct launch_environment environment = {.follow = follow};
    const struct launch_options how = {.frameworks = frameworks_loaded(), .environment = &environment, .warm_up = -1, .gpus = 0};
    struct launch_sources sources;
    struct diags diags = {0};
    struct reading r = {0};
    size_t size;
    snprintf(path, sizeof path, "%s/job/train.sh", folder);
    r.status = launch_sources_read(paths, 1, &how, &sources, &diags);
    if (r.status == STATUS_OK) {
        struct launch_description description;
        launch_describe(&sources, 0, &how, &description, &diags);
        r.tp = description.job.layout.tp;
        launch_sources_free(&sources);
    }
    FILE *out = open_memstream(&r.report, &size);
    for (size_t i = 0; i < diags.n_items; i++)
        fprintf(out, "%d: %s\n", diags.items[i].line, diags.items[i].text);
    fclose(out);
    diags_free(&diags);
    return r;
}

/* Beside the script, below it, by a name of which only the end is known, and through another sourced file. */
START_TEST(a_sourced_file_sets_variables)
{
    static const char *const scripts[] = {
        "source ./env.sh\n" TRAIN,
        ". env.sh; set -a; set +a\n" TRAIN,
        "source \"$(dirname \"$0\")/env.sh\"\n" TRAIN,
        "source ${BASE_FOLDER}/env.sh\n" TRAIN,
        "source outer.sh\n" TRAIN,
        "if [ 1 = 1 ]; then source env.sh; fi\n" TRAIN,
        "bash -c 'source env.sh; "
        "torchrun --nproc_per_node 8 pretrain_gpt.py" SHAPE " --tensor-model-parallel-size ${TPX:-2}'\n",
    };
    write_file("job/env.sh", "# of the cluster\nexport TPX=8\n");
    write_file("job/outer.sh", "source env.sh\n");
    write_file("job/train.sh", scripts[_i]);
    struct reading r = read_job(false);
    ck_assert_msg(r.tp == 8, "tp %d\n%s", r.tp, r.report);
    free(r.report);
}
END_TEST

/* An argument in a sourced file is of that file: its mistakes have its name and line. */
START_TEST(a_sourced_value_has_its_own_place)
{
    struct diags diags = {0};
    struct launch_sources sources;
    char path[160];
    const char *paths[] = {path};
    const struct launch_options how = {.frameworks = frameworks_loaded(), .warm_up = -1};
    write_file("job/env.sh", "\n\nARGS='--tensor-model-parallel-size many'\n");
    write_file("job/train.sh", "source env.sh\ntorchrun --nproc_per_node 8 pretrain_gpt.py" SHAPE " $ARGS\n");
    snprintf(path, sizeof path, "%s/job/train.sh", folder);
    ck_assert_int_eq(launch_sources_read(paths, 1, &how, &sources, &diags), STATUS_OK);
    struct launch_description description;
    launch_describe(&sources, 0, &how, &description, &diags);
    bool placed = false;
    for (size_t i = 0; i < diags.n_items; i++)
        placed |= diags.items[i].file && strstr(diags.items[i].file, "env.sh") && diags.items[i].line == 3;
    ck_assert(placed);
    launch_sources_free(&sources);
    diags_free(&diags);
}
END_TEST

/* What an unread file may set is unknown, with its name; what only prepares the machine matters to nobody. */
START_TEST(an_unread_file_is_named)
{
    static const struct {
        const char *script, *report;
        int tp;
    } cases[] = {
        {"source ./absent.sh\n" TRAIN, "line 1 sources ./absent.sh, which is not here", 0},
        {"source ../secret.sh\n" TRAIN, "lies outside the script's folder; --follow reads it", 0},
        {"source $UNKNOWN\n" TRAIN, "a file whose name is unknown", 0},
        {"TPX=4\nsource ./absent.sh\n" TRAIN, "", 4},
        {"source /opt/conda/etc/profile.d/conda.sh\nsource venv/bin/activate\n" TRAIN, "", 2},
    };
    write_file("secret.sh", "TPX=8\n");
    write_file("job/train.sh", cases[_i].script);
    struct reading r = read_job(false);
    ck_assert_msg(strstr(r.report, cases[_i].report), "%s", r.report);
    if (cases[_i].tp)
        ck_assert_int_eq(r.tp, cases[_i].tp);
    free(r.report);
}
END_TEST

START_TEST(outside_files_need_follow)
{
    write_file("secret.sh", "TPX=8\n");
    write_file("job/train.sh", "source ../secret.sh\n" TRAIN);
    struct reading r = read_job(true);
    ck_assert_int_eq(r.tp, 8);
    free(r.report);
}
END_TEST

/* A link that leads out of the folder is outside; so is a folder that only begins with the same name. */
START_TEST(where_a_named_file_lies)
{
    char path[160], namer[160], link[160], beside[160];
    write_file("secret.sh", "TPX=8\n");
    write_file("job/env.sh", "TPX=8\n");
    snprintf(beside, sizeof beside, "%s/job2", folder);
    ck_assert_int_eq(mkdir(beside, 0700), 0);
    write_file("job2/env.sh", "TPX=8\n");
    snprintf(namer, sizeof namer, "%s/job/train.sh", folder);
    snprintf(link, sizeof link, "%s/job/link.sh", folder);
    snprintf(path, sizeof path, "%s/secret.sh", folder);
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(launch_file_at(namer, link, false), NAMED_OUTSIDE);
    ck_assert_int_eq(launch_file_at(namer, link, true), NAMED_HERE);
    snprintf(path, sizeof path, "%s/job2/env.sh", folder);
    ck_assert_int_eq(launch_file_at(namer, path, false), NAMED_OUTSIDE);
    snprintf(path, sizeof path, "%s/job/env.sh", folder);
    ck_assert_int_eq(launch_file_at(namer, path, false), NAMED_HERE);
    snprintf(path, sizeof path, "%s/job/none.sh", folder);
    ck_assert_int_eq(launch_file_at(namer, path, false), NAMED_ABSENT);
    ck_assert_int_eq(launch_file_at(namer, "/dev/zero", true), NAMED_SPECIAL);
}
END_TEST

/* A FIFO that a script sources or names would wait for a writer for ever. */
START_TEST(a_fifo_is_refused_at_once)
{
    static const char *const scripts[] = {
        "source ./p.json\n" TRAIN,
        "deepspeed --num_gpus 8 train.py --deepspeed p.json --model_name_or_path meta-llama/Meta-Llama-3-8B "
        "--per_device_train_batch_size 1 --bf16 true\n",
    };
    char path[160];
    snprintf(path, sizeof path, "%s/job/p.json", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    write_file("job/train.sh", scripts[_i]);
    struct reading r = read_job(false);
    ck_assert_msg(r.status == STATUS_BAD_INPUT && strstr(r.report, "is a FIFO"), "%s", r.report);
    free(r.report);
}
END_TEST

/* eval reads its line again: quotes within go, and what it sets stays. */
START_TEST(eval_reads_its_line_again)
{
    static const char *const scripts[] = {
        "TPX=8\nCMD='torchrun --nproc_per_node 8 pretrain_gpt.py" SHAPE
        " --tensor-model-parallel-size \"${TPX:-2}\"'\neval $CMD\n",
        "eval \"TPX=8\"\n" TRAIN,
        "eval export TPX='8'\n" TRAIN,
    };
    write_file("job/train.sh", scripts[_i]);
    struct reading r = read_job(false);
    ck_assert_msg(r.tp == 8, "tp %d\n%s", r.tp, r.report);
    free(r.report);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_source");
    TCase *tests = tcase_create("launch_source");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, a_sourced_file_sets_variables, 0, 7);
    tcase_add_test(tests, a_sourced_value_has_its_own_place);
    tcase_add_loop_test(tests, an_unread_file_is_named, 0, 5);
    tcase_add_test(tests, outside_files_need_follow);
    tcase_add_test(tests, where_a_named_file_lies);
    tcase_add_loop_test(tests, a_fifo_is_refused_at_once, 0, 2);
    tcase_add_loop_test(tests, eval_reads_its_line_again, 0, 3);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
