/* Cores divided among ranks, united over processes, limited by a container's quota. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/cores.h"
#include "tests/runtime/toys.h"

/* Ranks that are more than cores have one each in turn, others parts of equal size that no two have. */
START_TEST(cores_are_divided)
{
    for (int n_cores = 1; n_cores <= 9; n_cores++)
        for (int n_ranks = 1; n_ranks <= 20; n_ranks++) {
            int owners[9] = {0};
            for (int r = 0; r < n_ranks; r++) {
                struct core_range range = cores_of_rank(r, n_ranks, n_cores);
                ck_assert_int_ge(range.n, n_cores > n_ranks ? n_cores / n_ranks : 1);
                for (int c = range.first; c < range.first + range.n; c++)
                    owners[c]++;
            }
            for (int c = 0; c < n_cores; c++) {
                ck_assert_int_ge(owners[c], n_ranks / n_cores > 1 ? n_ranks / n_cores : 1);
                ck_assert_int_le(owners[c], (n_ranks + n_cores - 1) / n_cores);
            }
        }
}
END_TEST

/* Processes that a launcher bound to cores of their own have all of these together. */
START_TEST(cores_of_processes_are_united)
{
    unsigned char sets[3][CORE_SET_BYTES] = {{1}, {2}, {2 | 64}};
    ck_assert_int_eq(cores_of_sets(sets[0], 1), 1);
    ck_assert_int_eq(cores_of_sets(sets[0], 2), 2);
    ck_assert_int_eq(cores_of_sets(sets[0], 3), 3);
    cores_allowed(sets[0]);
    ck_assert_int_eq(cores_of_sets(sets[0], 1), cores_here());
    memset(sets, 0, sizeof sets);
    ck_assert_int_ge(cores_of_sets(sets[0], 3), 1);
}
END_TEST

/* --- quotas, of files as a system shows them */

static void write_file(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *at = strchr(name + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        ck_assert(mkdir(name, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static const struct {
    int cores;
    struct {
        const char *path, *text;
    } files[4];
} quotas[] = {
    {INT_MAX, {{"/proc/self/cgroup", "0::/\n"}}},
    {INT_MAX, {{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}}},
    {2, {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}}}, /* a container's own root */
    {1, {{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "40000 100000\n"}}},
    {3, /* of the groups around it the least */
     {{"/proc/self/cgroup", "0::/a/b\n"},
      {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"},
      {"/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n"}}},
    {4, /* version 1 */
     {{"/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/a\n3:cpuset:/\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n"}}},
    {INT_MAX,
     {{"/proc/self/cgroup", "4:cpu:/a\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n"}}},
    {2, /* a container that knows its path outside and has its files at the root */
     {{"/proc/self/cgroup", "4:cpuacct,cpu:/docker/abc\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}},
    {INT_MAX, {{"/proc/self/mounts", ""}}},
};

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *at)
{
    (void)what, (void)kind, (void)at;
    return remove(path);
}

START_TEST(a_quota_counts_whole_cores)
{
    char root[] = "/tmp/msim-quota-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(root));
    for (size_t f = 0; f < COUNT(quotas[_i].files) && quotas[_i].files[f].path; f++)
        write_file(root, quotas[_i].files[f].path, quotas[_i].files[f].text);
    ck_assert_int_eq(cores_quota(root), quotas[_i].cores);
    ck_assert_int_eq(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {cores_are_divided, 1}, {cores_of_processes_are_united, 1}, {a_quota_counts_whole_cores, COUNT(quotas)}};
    return toy_suite("cores", tests, COUNT(tests));
}
