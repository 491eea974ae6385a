/* Whole files in and out, diagnostics, and memory. Each test works in a folder of its own. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "tests/suite.h"

static char folder[64];

static void enter_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/msim-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    char *const argv[] = {"rm", "-rf", folder, NULL};
    ck_assert_int_eq(chdir("/"), 0);
    execvp("rm", argv); /* the test's own process: nothing comes after */
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void expect_content(const char *path, const char *text)
{
    struct diags diags = {0};
    char *bytes;
    size_t n;
    ck_assert_int_eq(file_read(path, 1 << 20, &bytes, &n, &diags), STATUS_OK);
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_str_eq(bytes, text);
    free(bytes);
}

static void expect_refusal(const char *path, size_t limit, const char *why)
{
    struct diags diags = {0};
    char *bytes = NULL;
    size_t n = 7;
    ck_assert_int_eq(file_read(path, limit, &bytes, &n, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_null(bytes);
    ck_assert_uint_eq(n, 7);
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_str_eq(diags.items[0].file, path);
    ck_assert_msg(strstr(diags.items[0].text, why), "%s", diags.items[0].text);
    diags_free(&diags);
}

START_TEST(a_file_is_read_whole)
{
    put("a", "one\ntwo");
    expect_content("a", "one\ntwo");
    put("empty", "");
    expect_content("empty", "");
    put("wide", "\xff\xfeh\n");
    expect_refusal("wide", 1 << 20, "is UTF-16 text; save it as UTF-8");
    expect_refusal("missing", 100, "No such file");
    expect_refusal(".", 100, "is a directory");
    expect_refusal("a", 3, "larger than");
}
END_TEST

START_TEST(compressed_files_are_read_and_truncation_is_noticed)
{
    gzFile gz = gzopen("a.gz", "wb");
    for (int i = 0; i < 5000; i++)
        gzprintf(gz, "%d %d\n", i, i * 7919 % 1000);
    gzclose(gz);
    struct diags diags = {0};
    char *bytes;
    size_t n;
    ck_assert_int_eq(file_read("a.gz", 1 << 20, &bytes, &n, &diags), STATUS_OK);
    ck_assert_int_eq(strncmp(bytes, "0 0\n1 919\n", 10), 0);
    free(bytes);
    struct stat st;
    stat("a.gz", &st);
    ck_assert_int_eq(truncate("a.gz", st.st_size / 2), 0);
    expect_refusal("a.gz", 1 << 20, "");
}
END_TEST

struct told {
    double done, total;
    int n;
};

static void note(void *context, double done, double total)
{
    struct told *told = context;
    ck_assert_double_ge(done, told->done);
    *told = (struct told){done, total, told->n + 1};
}

/* Told are bytes of the file, also of a compressed one, and the last time all of them. */
START_TEST(who_watches_is_told_of_every_byte)
{
    const char *const names[] = {"plain", "packed.gz"};
    enum { LINES = 400000 };
    FILE *plain = fopen(names[0], "wb");
    gzFile packed = gzopen(names[1], "wb");
    for (int i = 0; i < LINES; i++) {
        fprintf(plain, "%d %d\n", i, i * 79 % 1000);
        gzprintf(packed, "%d %d\n", i, i * 79 % 1000);
    }
    fclose(plain);
    gzclose(packed);
    for (int i = 0; i < 2; i++) {
        struct told told = {0};
        struct watch watch = {note, &told};
        struct diags diags = {0};
        struct stat st;
        char *bytes;
        size_t n;
        stat(names[i], &st);
        ck_assert_int_eq(file_read_watched(names[i], FILE_TEXT_MAX, "", &watch, &bytes, &n, &diags), STATUS_OK);
        ck_assert_double_eq(told.done, (double)st.st_size);
        ck_assert_double_eq(told.total, (double)st.st_size);
        ck_assert_int_ge(told.n, (int)(n / WATCH_BYTES));
        ck_assert_int_gt(told.n, 3);
        free(bytes);
    }
}
END_TEST

START_TEST(an_output_appears_when_it_is_whole)
{
    struct diags diags = {0};
    struct file_output out;
    put("result", "old");
    ck_assert_int_eq(file_output_open(&out, "result", &diags), STATUS_OK);
    fputs("new", out.stream);
    expect_content("result", "old");
    ck_assert_int_eq(file_output_commit(&out, &diags), STATUS_OK);
    expect_content("result", "new");
    file_output_abandon(&out); /* harmless */
    expect_content("result", "new");
}
END_TEST

START_TEST(an_abandoned_output_leaves_nothing)
{
    struct diags diags = {0};
    struct file_output out;
    ck_assert_int_eq(file_output_open(&out, "result", &diags), STATUS_OK);
    fputs("new", out.stream);
    char *aside = memory_copy_text(out.aside);
    ck_assert_int_eq(access(aside, F_OK), 0);
    file_output_abandon(&out);
    ck_assert_int_ne(access(aside, F_OK), 0);
    ck_assert_int_ne(access("result", F_OK), 0);
    free(aside);
}
END_TEST

START_TEST(unwritable_outputs_are_reported)
{
    struct diags diags = {0};
    struct file_output out;
    ck_assert_int_eq(file_output_open(&out, "nowhere/result", &diags), STATUS_FAILED);
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_int_eq(file_output_open(&out, ".", &diags), STATUS_FAILED);
    ck_assert_uint_eq(diags.n_errors, 2);
    ck_assert_int_eq(file_output_open(&out, "/dev/full", &diags), STATUS_OK);
    fputs("new", out.stream);
    ck_assert_int_eq(file_output_commit(&out, &diags), STATUS_FAILED);
    ck_assert_uint_eq(diags.n_errors, 3);
    diags_free(&diags);
}
END_TEST

/* By whatever path; what is no ordinary file has no rows to take twice nor a place to take. */
START_TEST(one_file_is_the_same_by_any_path)
{
    put("a", "same");
    put("b", "same");
    ck_assert_int_eq(link("a", "hard"), 0);
    ck_assert_int_eq(symlink("hard", "soft"), 0);
    ck_assert(file_is_same("a", "a") && file_is_same("a", "./a") && file_is_same("a", "hard") && file_is_same("soft", "a"));
    ck_assert(!file_is_same("a", "b") && !file_is_same("a", "nowhere") && !file_is_same("nowhere", "nowhere"));
    ck_assert(!file_is_same("/dev/null", "/dev/null") && !file_is_same(".", ".") && !file_is_same("-", "-"));
}
END_TEST

/* Outputs need not be there yet: the same name in the same folder, also through a link, is the same output. */
START_TEST(one_output_is_the_same_by_any_path)
{
    put("a", "here");
    ck_assert_int_eq(symlink("later", "soft"), 0);
    ck_assert_int_eq(mkdir("folder", 0700), 0);
    ck_assert(file_is_same_target("a", "./a") && file_is_same_target("new", "./new") &&
              file_is_same_target("new", "folder/../new"));
    ck_assert(file_is_same_target("soft", "later"));
    ck_assert(!file_is_same_target("new", "folder/new") && !file_is_same_target("new", "old"));
}
END_TEST

/* The file that is replaced keeps its mode, and a link goes on leading to it. */
START_TEST(an_output_keeps_mode_and_links)
{
    struct diags diags = {0};
    struct file_output out;
    struct stat st;
    ck_assert_int_eq(mkdir("folder", 0700), 0);
    put("folder/real", "old");
    ck_assert_int_eq(chmod("folder/real", 0640), 0);
    ck_assert_int_eq(symlink("folder/real", "link"), 0);
    ck_assert_int_eq(symlink("folder/new", "dangling"), 0);
    const char *const links[] = {"link", "dangling"}, *const targets[] = {"folder/real", "folder/new"};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(file_output_open(&out, links[i], &diags), STATUS_OK);
        fputs("new", out.stream);
        ck_assert_int_eq(file_output_commit(&out, &diags), STATUS_OK);
        ck_assert(lstat(links[i], &st) == 0 && S_ISLNK(st.st_mode));
        expect_content(targets[i], "new");
    }
    ck_assert(stat("folder/real", &st) == 0 && (st.st_mode & 07777) == 0640);
}
END_TEST

/* A process that is killed leaves its temporary file; the next output of that name removes it, and not one that is still written.
 */
START_TEST(what_a_killed_process_left_is_removed)
{
    struct diags diags = {0};
    struct file_output out, other;
    put("result.msim-abcdef", "left");
    put("result.msim-abcdefg", "of another name");
    ck_assert_int_eq(file_output_open(&other, "result", &diags), STATUS_OK);
    ck_assert_int_ne(access("result.msim-abcdef", F_OK), 0);
    ck_assert_int_eq(access("result.msim-abcdefg", F_OK), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(file_output_open(&out, "result", &diags) == STATUS_OK && access(other.aside, F_OK) == 0 ? 0 : 1);
    int status;
    ck_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    file_output_abandon(&other);
}
END_TEST

/* Ranks of one job open the same results at once. None may take another's file, which it is about to lock, for abandoned. */
START_TEST(processes_open_one_output_at_once)
{
    enum { PROCESSES = 4, TIMES = 100 };
    pid_t children[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        for (int i = 0; children[p] == 0 && i < TIMES; i++) {
            struct diags diags = {0};
            struct file_output out;
            if (file_output_open(&out, "result", &diags) != STATUS_OK || file_output_commit(&out, &diags) != STATUS_OK)
                _exit(1);
        }
        if (children[p] == 0)
            _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        ck_assert_int_eq(waitpid(children[p], &status, 0), children[p]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(unlink("result"), 0);
}
END_TEST

/* stdio does not keep why an earlier write failed: it is found again. */
START_TEST(a_full_device_is_said_to_be_full)
{
    struct diags diags = {0};
    struct file_output out;
    ck_assert_int_eq(file_output_open(&out, "/dev/full", &diags), STATUS_OK);
    for (int i = 0; i < 100000; i++)
        fputc('x', out.stream);
    errno = 0;
    ck_assert_int_eq(file_output_commit(&out, &diags), STATUS_FAILED);
    ck_assert_msg(strstr(diags.items[0].text, "No space left on device"), "%s", diags.items[0].text);
    diags_free(&diags);
}
END_TEST

/* A sparse file above the limit is refused without being read; a gz that unpacks to more than the limit, after that much. */
START_TEST(the_limit_is_of_text)
{
    FILE *sparse = fopen("sparse", "wb");
    gzFile packed = gzopen("packed.gz", "wb");
    static char zeros[1 << 16];
    ck_assert_int_eq(ftruncate(fileno(sparse), (off_t)1 << 40), 0);
    fclose(sparse);
    for (int i = 0; i < 64; i++)
        gzwrite(packed, zeros, sizeof zeros);
    gzclose(packed);
    expect_refusal("sparse", FILE_TEXT_MAX, "larger than 1024 MiB of text");
    expect_refusal("packed.gz", 1 << 20, "larger than 1 MiB of text");
}
END_TEST

START_TEST(diagnostics_print_where_and_what)
{
    struct diags diags = {0};
    diag_error(&diags, (struct place){"a.yaml", 3, 7}, "unknown key '%s'", "x");
    diag_warning(&diags, (struct place){"a.yaml", 4, 0}, "odd");
    diag_note(&diags, PLACE_NONE, "no place");
    ck_assert_int_eq(diags_status(&diags), STATUS_BAD_INPUT);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    diags_print(&diags, out, false);
    fclose(out);
    ck_assert_str_eq(text, "a.yaml:3:7: error: unknown key 'x'\na.yaml:4: warning: odd\nnote: no place\n");
    free(text);
    diags_free(&diags);
    ck_assert_int_eq(diags_status(&diags), STATUS_OK);
}
END_TEST

START_TEST(diagnostics_beyond_the_limit_are_counted)
{
    struct diags diags = {0};
    for (int i = 0; i < DIAGS_MAX + 5; i++)
        diag_error(&diags, PLACE_NONE, "%d", i);
    ck_assert_uint_eq(diags.n_items, DIAGS_MAX);
    ck_assert_uint_eq(diags.n_errors, DIAGS_MAX + 5);
    ck_assert_uint_eq(diags.n_dropped, 5);
    diags_free(&diags);
}
END_TEST

START_TEST(an_arena_keeps_what_it_gave)
{
    struct arena arena = {0};
    int *numbers[200];
    for (int i = 0; i < 200; i++) {
        numbers[i] = arena_new(&arena, 1000, sizeof *numbers[i]);
        ck_assert_uint_eq((uintptr_t)numbers[i] % 16, 0);
        for (int k = 0; k < 1000; k++) {
            ck_assert_int_eq(numbers[i][k], 0);
            numbers[i][k] = i;
        }
    }
    char *text = arena_copy_text(&arena, "kept");
    for (int i = 0; i < 200; i++)
        ck_assert(numbers[i][0] == i && numbers[i][999] == i);
    ck_assert_str_eq(text, "kept");
    ck_assert_uint_ge(arena.bytes, 200 * 4000);
    arena_free(&arena);
    ck_assert_uint_eq(arena.bytes, 0);
}
END_TEST

START_TEST(growing_keeps_the_items)
{
    int *items = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        items = memory_grow(items, &capacity, (size_t)i + 1, sizeof *items);
        items[i] = i;
    }
    ck_assert_uint_ge(capacity, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(items[i], i);
    free(items);
}
END_TEST

/* About one file in the order of its lines; what has no line, and other files, stay where they are. */
START_TEST(diagnostics_follow_the_lines)
{
    struct diags diags = {0};
    static const struct place places[] = {{"a", 5, 1}, {"a", 2, 9},  {"a", 2, 3}, {"b", 1, 1},
                                          {"a", 1, 1}, {NULL, 0, 0}, {"a", 0, 0}};
    static const char *const order[] = {"2", "1", "0", "3", "4", "5", "6"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        diag_error(&diags, places[i], "%zu", i);
    diags_sort(&diags);
    for (size_t i = 0; i < diags.n_items; i++)
        ck_assert_str_eq(diags.items[i].text, order[i]);
    diags_free(&diags);
}
END_TEST

/* Without memory the handler is called, with what was asked for; without a handler the process aborts. Both in a process of
 * their own, as neither returns. */
static void leave(size_t bytes)
{
    _exit(bytes == SIZE_MAX ? 42 : 43);
}

static int ended_without_memory(void (*handler)(size_t bytes))
{
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        memory_set_handler(handler);
        free(memory_new(SIZE_MAX / 2, 4));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    return how;
}

START_TEST(memory_that_is_not_there)
{
    int how = ended_without_memory(leave);
    ck_assert(WIFEXITED(how));
    ck_assert_int_eq(WEXITSTATUS(how), 42);
    how = ended_without_memory(NULL);
    ck_assert(WIFSIGNALED(how));
    ck_assert_int_eq(WTERMSIG(how), SIGABRT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, enter_folder, leave_folder);
    tcase_add_test(files, a_file_is_read_whole);
    tcase_add_test(files, compressed_files_are_read_and_truncation_is_noticed);
    tcase_add_test(files, who_watches_is_told_of_every_byte);
    tcase_add_test(files, an_output_appears_when_it_is_whole);
    tcase_add_test(files, an_abandoned_output_leaves_nothing);
    tcase_add_test(files, unwritable_outputs_are_reported);
    tcase_add_test(files, one_file_is_the_same_by_any_path);
    tcase_add_test(files, one_output_is_the_same_by_any_path);
    tcase_add_test(files, an_output_keeps_mode_and_links);
    tcase_add_test(files, what_a_killed_process_left_is_removed);
    tcase_add_test(files, processes_open_one_output_at_once);
    tcase_add_test(files, a_full_device_is_said_to_be_full);
    tcase_add_test(files, the_limit_is_of_text);
    suite_add_tcase(suite, files);
    TCase *others = tcase_create("diagnostics and memory");
    tcase_add_test(others, memory_that_is_not_there);
    tcase_add_test(others, diagnostics_print_where_and_what);
    tcase_add_test(others, diagnostics_beyond_the_limit_are_counted);
    tcase_add_test(others, an_arena_keeps_what_it_gave);
    tcase_add_test(others, growing_keeps_the_items);
    tcase_add_test(others, diagnostics_follow_the_lines);
    suite_add_tcase(suite, others);
    return suite_run(suite);
}
