/* Processes find each other through a folder, notice other versions, who gave up and who is gone; launchers' variables. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "runtime/cuda/cuda_comm.h"
#include "runtime/cuda/cuda_meeting.h"
#include "tests/suite.h"

static char folder[] = "/tmp/msim-meeting-XXXXXX";

static void setup(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    static const char *const names[] = {"id", "rank.0", "rank.1", "abandoned"};
    char path[128];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left */
}

static struct cuda_meeting entered(int rank, nanos timeout)
{
    struct cuda_meeting meeting;
    struct diags diags = {0};
    ck_assert_int_eq(meeting_enter(&meeting, folder, rank, 2, timeout, &diags), STATUS_OK);
    return meeting;
}

START_TEST(others_get_what_rank_0_gives)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND), one = entered(1, NANOS_PER_SECOND);
    struct diags diags = {0};
    char given[128], got[128] = {0};
    for (int i = 0; i < 128; i++)
        given[i] = (char)(i * 7);
    ck_assert_int_eq(meeting_share(&zero, "NCCL 1", given, sizeof given, NULL, &diags), STATUS_OK);
    ck_assert_int_eq(meeting_share(&one, "NCCL 1", got, sizeof got, NULL, &diags), STATUS_OK);
    ck_assert_int_eq(memcmp(given, got, sizeof got), 0);
}
END_TEST

START_TEST(other_versions_are_refused)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND), one = entered(1, NANOS_PER_SECOND);
    struct diags diags = {0};
    char id[8] = "id";
    ck_assert_int_eq(meeting_share(&zero, "NCCL 1", id, sizeof id, NULL, &diags), STATUS_OK);
    ck_assert_int_eq(meeting_share(&one, "NCCL 2", id, sizeof id, NULL, &diags), STATUS_FAILED);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "rank 1 runs NCCL 2, but rank 0 runs NCCL 1"));
    diags_free(&diags);
}
END_TEST

START_TEST(a_missing_rank_0_is_named_in_time)
{
    struct cuda_meeting one = entered(1, NANOS_PER_SECOND / 20);
    struct diags diags = {0};
    char id[8];
    ck_assert_int_eq(meeting_share(&one, "NCCL 1", id, sizeof id, NULL, &diags), STATUS_FAILED);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "rank 0 did not come"));
    diags_free(&diags);
}
END_TEST

START_TEST(the_first_to_give_up_is_remembered)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND), one = entered(1, NANOS_PER_SECOND);
    char why[MEETING_REASON];
    ck_assert(!meeting_abandoned(&zero, why));
    meeting_abandon(&one, "rank 1: out of memory");
    meeting_abandon(&zero, "rank 0: gone too");
    ck_assert(meeting_abandoned(&zero, why));
    ck_assert_str_eq(why, "rank 1: out of memory");
}
END_TEST

START_TEST(a_process_that_ended_is_gone)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND);
    char text[160];
    pid_t child = fork();
    if (child == 0) {
        struct cuda_meeting one;
        struct diags diags = {0};
        _exit(meeting_enter(&one, folder, 1, 2, NANOS_PER_SECOND, &diags) == STATUS_OK ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    meeting_gone(&zero, text, sizeof text);
    char expected[64];
    snprintf(expected, sizeof expected, "rank 1 (process %ld) is gone", (long)child);
    ck_assert_str_eq(text, expected);
}
END_TEST

/* A rank gave up before rank 0 came: no other waits for it. */
START_TEST(who_gave_up_is_not_waited_for)
{
    struct cuda_meeting one = entered(1, 1200 * NANOS_PER_SECOND);
    struct diags diags = {0};
    char id[8];
    nanos began = clock_monotonic();
    meeting_abandon(&one, "rank 2: no GPU");
    ck_assert_int_eq(meeting_share(&one, "NCCL 1", id, sizeof id, NULL, &diags), STATUS_FAILED);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "the job was given up: rank 2: no GPU"));
    ck_assert_int_lt(clock_monotonic() - began, 600 * NANOS_PER_SECOND);
    diags_free(&diags);
}
END_TEST

START_TEST(ids_of_another_size_are_refused)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND), one = entered(1, NANOS_PER_SECOND);
    struct diags diags = {0};
    char given[8] = "id", got[16] = "untouched";
    ck_assert_int_eq(meeting_share(&zero, "NCCL 1", given, sizeof given, NULL, &diags), STATUS_OK);
    ck_assert_int_eq(meeting_share(&one, "NCCL 1", got, sizeof got, NULL, &diags), STATUS_FAILED);
    ck_assert_str_eq(got, "untouched");
    diags_free(&diags);
}
END_TEST

static void write_rank_1(const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/rank.1", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Processes of another machine are not looked for here. */
START_TEST(nobody_is_gone_from_another_host)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND);
    char text[160];
    write_rank_1("another.host 999999999\n");
    meeting_gone(&zero, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

/* Nor is a process gone that one may not ask. */
START_TEST(a_process_of_another_user_is_alive)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND);
    char host[64] = "", record[96], text[160];
    int status = -1;
    ck_assert_int_eq(gethostname(host, sizeof host - 1), 0);
    snprintf(record, sizeof record, "%s 1\n", host); /* init */
    write_rank_1(record);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(0); /* may not become nobody */
        meeting_gone(&zero, text, sizeof text);
        _exit(text[0] ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void end_process(const char *text)
{
    _exit(strstr(text, "rank 1: out of memory") ? EXIT_FAILURE : EXIT_SUCCESS);
}

START_TEST(who_stays_behind_is_ended)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND);
    int status = 0;
    meeting_abandon(&zero, "rank 1: out of memory");
    pid_t child = fork();
    if (child == 0) {
        (void)!meeting_guard_new(&zero, NANOS_PER_SECOND / 100, end_process);
        sleep(600);
        _exit(EXIT_SUCCESS);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), EXIT_FAILURE);
}
END_TEST

START_TEST(who_leaves_in_time_is_not)
{
    struct cuda_meeting zero = entered(0, NANOS_PER_SECOND);
    struct meeting_guard *guard = meeting_guard_new(&zero, 60 * NANOS_PER_SECOND, end_process);
    ck_assert_ptr_nonnull(guard);
    meeting_abandon(&zero, "rank 1: out of memory");
    usleep(300000);
    meeting_guard_free(guard);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_said)
{
    struct cuda_meeting meeting;
    struct diags diags = {0};
    ck_assert_int_eq(meeting_enter(&meeting, "/nowhere/at/all", 0, 2, NANOS_PER_SECOND, &diags), STATUS_FAILED);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "/nowhere/at/all"));
    diags_free(&diags);
}
END_TEST

static const struct launch_case {
    const char *names[5], *values[5], *launcher;
    int rank, n_ranks, local, n_local;
    bool good;
} launch_cases[] = {
    {{NULL}, {NULL}, "none", 0, 1, 0, 1, true},
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"9", "16", "1", "8"},
     "mpirun",
     9,
     16,
     1,
     8,
     true},
    {{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, {"5", "8", "1", "4"}, "mpiexec", 5, 8, 1, 4, true},
    {{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}, {"3", "4", "3"}, "srun", 3, 4, 3, 4, true},
    {{"PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
     {"3", "4", "3", "4", "1"},
     "srun",
     3,
     4,
     1,
     4,
     true},
    /* the batch script's count per node may be of another step */
    {{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"},
     {"17", "20", "1", "8(x2),4", "2"},
     "srun",
     17,
     20,
     1,
     4,
     true},
    {{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"},
     {"9", "20", "1", "8(x2),4", "1"},
     "srun",
     9,
     20,
     1,
     8,
     true},
    {{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"},
     {"9", "20", "1", "8(y2)", "1"},
     "srun",
     0,
     0,
     0,
     0,
     false},
    {{"MSIM_RANK", "MSIM_RANKS"}, {"1", "2"}, "MSIM_RANK", 1, 2, 1, 2, true},
    {{"MSIM_RANK", "MSIM_RANKS"}, {"2", "2"}, "MSIM_RANK", 0, 0, 0, 0, false},
    {{"MSIM_RANK", "MSIM_RANKS"}, {"x", "2"}, "MSIM_RANK", 0, 0, 0, 0, false},
};

START_TEST(launchers_say_who_we_are)
{
    const struct launch_case *launch = &launch_cases[_i];
    struct cuda_place place = {0};
    struct diags diags = {0};
    for (int i = 0; i < 5 && launch->names[i]; i++)
        setenv(launch->names[i], launch->values[i], 1);
    enum status status = cuda_place_read(&place, &diags);
    ck_assert_int_eq(status, launch->good ? STATUS_OK : STATUS_BAD_INPUT);
    if (launch->good) {
        ck_assert_str_eq(place.launcher, launch->launcher);
        ck_assert_int_eq(place.rank, launch->rank);
        ck_assert_int_eq(place.n_ranks, launch->n_ranks);
        ck_assert_int_eq(place.local, launch->local);
        ck_assert_int_eq(place.n_local, launch->n_local);
    }
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("processes with GPUs meet");
    TCase *tcase = tcase_create("meeting");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, others_get_what_rank_0_gives);
    tcase_add_test(tcase, other_versions_are_refused);
    tcase_add_test(tcase, a_missing_rank_0_is_named_in_time);
    tcase_add_test(tcase, the_first_to_give_up_is_remembered);
    tcase_add_test(tcase, a_process_that_ended_is_gone);
    tcase_add_test(tcase, who_stays_behind_is_ended);
    tcase_add_test(tcase, who_leaves_in_time_is_not);
    tcase_add_test(tcase, who_gave_up_is_not_waited_for);
    tcase_add_test(tcase, ids_of_another_size_are_refused);
    tcase_add_test(tcase, nobody_is_gone_from_another_host);
    tcase_add_test(tcase, a_process_of_another_user_is_alive);
    tcase_add_test(tcase, a_folder_that_is_not_there_is_said);
    tcase_add_loop_test(tcase, launchers_say_who_we_are, 0, sizeof launch_cases / sizeof *launch_cases);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
