/*
 * Every order that the kernels need (emulation_races.cuh): over drawn cases no access is unordered, and without any one of their
 * barriers and waits one is, or a number is wrong. First that the watch sees what it should. The short tier runs one small case
 * of each kernel and leaves nothing out.
 */
#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include "kernels/cuda_operations.h"
#include "tests/kernels/emulated_run.h"
}
#include "kernels/hopper_tile.cuh"
#include "kernels/vector.cuh"
#include "tests/suite.h"

using emulation::n_sites;
using emulation::site;
using emulation::sites;

/* --- what the watch sees, in two blocks of two warps */

enum { THREADS = 64, BLOCKS = 2 };

enum order {
    BARRIER,        /* between a write and a neighbour's read */
    BARRIER_AROUND, /* and before the next write */
    WARP_BARRIER,   /* the neighbour is in the same warp */
    COPIES,         /* a copy, its wait, a barrier */
    BLOCKS_APART,   /* each block writes its own global memory */
    N_RIGHT,        /* --- from here on wrong */
    NO_BARRIER = N_RIGHT,
    NO_BARRIER_AFTER,  /* the next write comes while others still read */
    WARP_IS_NOT_BLOCK, /* a warp's barrier between two warps */
    SHUFFLE,           /* exchanges, and orders nothing */
    COPY_NOT_WAITED,   /* by the thread that copies */
    COPY_NOT_SHARED,   /* waited for by the thread that copies, and read by another */
    COPY_TOO_EARLY,    /* into what others still read */
    BLOCKS_TOGETHER,   /* two blocks write one number */
    BYTES_OF_ONE_WORD, /* two threads write one byte; neighbours may */
    NEVER_WRITTEN,
    N_ORDERS
};

static void order_kernel(order o, int32_t *global)
{
    alignas(16) __shared__ int32_t words[THREADS * 4];
    __shared__ volatile uint8_t bytes[THREADS];
    const int me = threadIdx.x, other = (me + (o == WARP_BARRIER || o == SHUFFLE ? me % 2 ? -1 : 1 : WARP)) % THREADS;
    const bool copies = o == COPIES || o == COPY_NOT_WAITED || o == COPY_NOT_SHARED || o == COPY_TOO_EARLY;
    const int32_t *from = global + 4 * THREADS * BLOCKS + 4 * me;
    if (o == COPY_TOO_EARLY) {
        words[4 * me] = me;
        __syncthreads();
        global[blockIdx.x * THREADS + me] = words[4 * other];
    }
    if (copies) {
        copy_async(&words[4 * me], from, true);
        copy_async_commit();
        if (o != COPY_NOT_WAITED)
            copy_async_wait<0>();
    } else if (o != NEVER_WRITTEN) {
        words[4 * me] = me;
    }
    if (o == WARP_BARRIER || o == WARP_IS_NOT_BLOCK)
        warp_barrier();
    else if (o == SHUFFLE)
        global[4 * THREADS * BLOCKS + me * 4] = (int)shuffle_xor((float)me, 1);
    else if (o != NO_BARRIER && o != COPY_NOT_WAITED && o != COPY_NOT_SHARED)
        __syncthreads();
    const int32_t seen = words[4 * (o == COPY_NOT_WAITED ? me : other)];
    if (o == BARRIER_AROUND)
        __syncthreads();
    if (o == BARRIER_AROUND || o == NO_BARRIER_AFTER)
        words[4 * me] = seen;
    volatile uint8_t *mine = &bytes[o == BYTES_OF_ONE_WORD ? me / 2 : me];
    *mine = (uint8_t)seen;
    if (o != SHUFFLE)
        global[o == BLOCKS_TOGETHER ? me : (int)blockIdx.x * THREADS + me] = *mine;
}

static void run_order(order o)
{
    static int32_t global[8 * THREADS * BLOCKS] __attribute__((aligned(16)));
    emulation::watching = true;
    ck_assert_int_eq(launch_kernel(order_kernel, dim3(o == SHUFFLE ? 1 : BLOCKS), dim3(THREADS), 0, NULL, o, global), 0);
    emulation::watching = false;
}

START_TEST(orders_that_hold)
{
    run_order((order)_i);
}
END_TEST

/* The emulation ends the process. */
START_TEST(orders_that_do_not)
{
    run_order((order)_i);
}
END_TEST

/* What a warpgroup writes by ordinary stores, and a product or a tensor copy then touches. */
enum proxy_case {
    PRODUCT_FENCED,
    N_PROXIES_RIGHT, /* --- from here on wrong */
    PRODUCT_UNFENCED = N_PROXIES_RIGHT,
    PRODUCT_FENCED_EARLY, /* and written to afterwards */
    COPY_UNFENCED,
    N_PROXIES
};

static void proxy_kernel(proxy_case p, tensor_map map)
{
    unsigned char *tile = dynamic_shared() + (EIGHT_ROWS_BYTES - emulation::SHARED_START);
    uint64_t *here = (uint64_t *)(tile + BOX_BYTES);
    float d[BOX / 8][4] = {};
    if (threadIdx.x == 0 && p == COPY_UNFENCED) {
        barrier_init(here, 1);
        barrier_init_fence();
    }
    if (p == PRODUCT_FENCED_EARLY)
        barrier_init_fence();
    for (int i = threadIdx.x; i < BOX_BYTES / 4; i += WARPGROUP)
        ((volatile uint32_t *)tile)[i] = 0;
    if (p == PRODUCT_FENCED)
        barrier_init_fence();
    __syncthreads();
    if (p == COPY_UNFENCED) {
        if (threadIdx.x == 0)
            copy_tile<BOX, BOX>(tile, &map, 0, 0, 0, here);
        barrier_wait(here, 0);
        return;
    }
    wgmma_fence();
    wgmma_shared<BOX>(d, rows_descriptor(tile), rows_descriptor(tile), true);
    wgmma_commit();
    wgmma_wait<0>();
}

static void run_proxies(proxy_case p)
{
    static bf16 numbers[BOX * BOX] __attribute__((aligned(16)));
    tensor_map map;
    ck_assert_int_eq(tensor_map_make(&map, numbers, BOX, BOX, 1, BOX, BOX, SWIZZLE_128B), cudaSuccess);
    emulation::watching = true;
    ck_assert_int_eq(launch_kernel(proxy_kernel, dim3(1), dim3(WARPGROUP), 2 * BOX_BYTES, NULL, p, map), cudaSuccess);
    emulation::watching = false;
}

START_TEST(proxies_that_are_fenced)
{
    run_proxies((proxy_case)_i);
}
END_TEST

START_TEST(proxies_that_are_not)
{
    run_proxies((proxy_case)_i);
}
END_TEST

/* --- the kernels */

enum draw_kind { PLAIN, BYTES, HOPPER, UNSEEN, CHUNKS, MAXIMA, TRANSPOSE };

struct drawn {
    enum draw_kind kind;
    enum kernel kernel;
    int seed;
    int64_t size;
};

enum { MOST_CASES = 400 };
static drawn cases[MOST_CASES];
static int n_cases;

static void add_cases(enum draw_kind kind, enum kernel kernel, int seeds, int64_t size)
{
    for (int seed = 0; seed < seeds; seed++) {
        ck_assert_int_lt(n_cases, MOST_CASES);
        cases[n_cases++] = {kind, kernel, seed, size};
    }
}

/* Small sizes first: what they show need not be shown by larger ones. */
static void add_all_cases(void)
{
    static const enum kernel rows[] = {KERNEL_NORM_FORWARD,      KERNEL_NORM_BACKWARD,    KERNEL_COLUMN_SUM,
                                       KERNEL_COMBINE_FORWARD,   KERNEL_COMBINE_BACKWARD, KERNEL_HEAD_NORM_FORWARD,
                                       KERNEL_HEAD_NORM_BACKWARD};
    add_cases(MAXIMA, N_KERNELS, 1, 0);
    add_cases(TRANSPOSE, N_KERNELS, 1, 0);
    add_cases(UNSEEN, KERNEL_QUERY_RANGE_FORWARD, 1, 130);
    add_cases(UNSEEN, KERNEL_QUERY_RANGE_BACKWARD, 1, 130);
    for (int k = 0; k < N_KERNELS; k++)
        if (k == KERNEL_LINEAR_FORWARD || k == KERNEL_LINEAR_BACKWARD_INPUT || k == KERNEL_LINEAR_BACKWARD_WEIGHT)
            add_cases(BYTES, (enum kernel)k, 2, 0);
        else
            add_cases(PLAIN, (enum kernel)k, 3, 90);
    for (enum kernel kernel : rows)
        add_cases(PLAIN, kernel, 2, 900);
    add_cases(PLAIN, KERNEL_NORM_BACKWARD, 6, 901);
    add_cases(PLAIN, KERNEL_GROUPED_BACKWARD_WEIGHT, 12, 50);
    for (int k = KERNEL_GROUPED_FORWARD; k <= KERNEL_GROUPED_BACKWARD_WEIGHT; k++)
        add_cases(PLAIN, (enum kernel)k, 1, 500);
    add_cases(PLAIN, KERNEL_QUERY_RANGE_FORWARD, 3, 200);
    add_cases(PLAIN, KERNEL_QUERY_RANGE_BACKWARD, 1, 200);
    add_cases(CHUNKS, KERNEL_SCAN_FORWARD, 4, 200);
    add_cases(CHUNKS, KERNEL_SCAN_BACKWARD, 4, 200);
    add_cases(HOPPER, KERNEL_ATTENTION_FORWARD, 2, 0);
    add_cases(HOPPER, KERNEL_ATTENTION_BACKWARD, 2, 0);
}

static void add_small_cases(void)
{
    add_cases(MAXIMA, N_KERNELS, 1, 0);
    for (int k = 0; k < N_KERNELS; k++)
        if (k == KERNEL_LINEAR_FORWARD || k == KERNEL_LINEAR_BACKWARD_INPUT || k == KERNEL_LINEAR_BACKWARD_WEIGHT)
            add_cases(BYTES, (enum kernel)k, 1, 0);
        else
            add_cases(PLAIN, (enum kernel)k, 1, 90);
    add_cases(CHUNKS, KERNEL_SCAN_FORWARD, 1, 200);
    add_cases(CHUNKS, KERNEL_SCAN_BACKWARD, 1, 200);
    add_cases(HOPPER, KERNEL_ATTENTION_FORWARD, 1, 0);
    add_cases(HOPPER, KERNEL_ATTENTION_BACKWARD, 1, 0);
}

/* Of UNSEEN, queries so far behind their keys that they see none: nothing is gone over, and results are written all the same. */
static void draw_case(struct kernel_case *c, const drawn &d)
{
    struct random_stream random = random_stream_named((uint64_t)d.seed, 19, (uint64_t)d.kernel);
    struct query_range_call unseen = {};
    unseen.queries = unseen.keys = d.size, unseen.first = 2 * d.size, unseen.window = 3;
    unseen.head_dim = 192, unseen.value_dim = 128;
    struct scan_call scan = {};
    scan.batch = scan.groups = 1, scan.seq_len = d.size, scan.chunk = 64;
    scan.state = d.seed % 2 ? 136 : 16, scan.head_dim = 16; /* one chunk's tiles, or two, at a time */
    scan.delta = d.seed >= 2;
    if (d.kind == CHUNKS)
        emulated_draw_scan(c, d.kernel, (uint64_t)d.seed, scan, true);
    else if (d.kind == HOPPER)
        emulated_draw_attention(c, d.kernel, d.seed);
    else if (d.kind == BYTES)
        emulated_draw_bytes(c, d.kernel, d.seed % 2, (uint64_t)d.seed);
    else if (d.kind == UNSEEN)
        emulated_draw_query_range(c, d.kernel, (uint64_t)d.seed, unseen);
    else
        kernel_case_draw(c, d.kernel, &random, d.size);
    kernel_case_align(c);
}

/* Two maxima of a block by one scratch, as the comparison of attention_trial.cu takes them. */
static void maxima_kernel(float *most)
{
    __shared__ float scratch[WARP];
    const float x = (float)threadIdx.x, first = block_max(x, scratch), second = block_max(-x, scratch);
    if (threadIdx.x == 0)
        most[0] = first, most[1] = second;
}

static bool maxima_agree(void)
{
    static float most[2];
    return launch_kernel(maxima_kernel, dim3(1), dim3(THREADS), 0, NULL, (float *)most) == cudaSuccess &&
           most[0] == THREADS - 1 && most[1] == 0;
}

/* Bytes whose rows are not whole pieces of 16, which no linear layer has. */
static bool transpose_agrees(void)
{
    enum { ROWS = 37, COLS = 70 };
    static uint8_t from[ROWS * COLS], to[ROWS * COLS];
    const struct cuda_launch launch = {};
    for (int i = 0; i < ROWS * COLS; i++)
        from[i] = (uint8_t)(i * 31 % 251);
    bool right = transpose_bytes_cuda(&launch, from, ROWS, COLS, to) == cudaSuccess;
    for (int i = 0; i < ROWS * COLS; i++)
        right = right && to[i % COLS * ROWS + i / COLS] == from[i];
    return right;
}

/* Ends the process where an access is unordered. */
static bool runs_right(const drawn &d, char *why, size_t size)
{
    struct kernel_case c;
    const bool direct = d.kind == MAXIMA || d.kind == TRANSPOSE;
    if (!direct)
        draw_case(&c, d);
    emulation::watching = true;
    const bool right = d.kind == MAXIMA      ? maxima_agree()
                       : d.kind == TRANSPOSE ? transpose_agrees()
                                             : emulated_agrees(&c, false, why, size);
    emulation::watching = false;
    return right;
}

/* Whether a process of its own notices that the place is left out. */
static bool notices(const drawn &d, site left_out)
{
    const pid_t child = fork();
    int status = 0;
    ck_assert(child >= 0);
    if (child == 0) {
        char why[200];
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        emulation::without = left_out;
        _exit(runs_right(d, why, sizeof why) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    ck_assert(waitpid(child, &status, 0) == child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
}

/* The file's name without its folder: a compiler may have been told a relative path, or a shorter one. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The line of the source. */
static const char *text_of(site at)
{
    static char line[300], path[4096];
    snprintf(path, sizeof path, KERNELS_FOLDER "/%s", name_of(at.file));
    FILE *file = fopen(path, "r");
    ck_assert(file != NULL);
    for (int i = 0; i < at.line; i++)
        ck_assert(fgets(line, sizeof line, file) != NULL);
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* The warpgroups' turns at issuing products: what is ordered is who goes first, and nobody reads what the other wrote. */
static bool orders_no_memory(const char *text)
{
    return strstr(text, "FIRST_TURN") || strstr(text, "next_turn");
}

/* --- places in the source */

static site all_sites[emulation::MOST_SITES];
static int n_all;
static bool came_to[MOST_CASES][emulation::MOST_SITES];

static int place_of(site at)
{
    int i = 0;
    while (i < n_all && (all_sites[i].line != at.line || strcmp(name_of(all_sites[i].file), name_of(at.file)) != 0))
        i++;
    return i;
}

/* Runs the cases, which are right; to which places each came. */
static void run_cases(void)
{
    char why[200] = "";
    for (int i = 0; i < n_cases; i++) {
        n_sites = 0;
        ck_assert_msg(runs_right(cases[i], why, sizeof why), "%s: %s", kernel_name(cases[i].kernel), why);
        for (int s = 0; s < n_sites; s++) {
            const int place = place_of(sites[s]);
            all_sites[place] = sites[s];
            n_all = place == n_all ? n_all + 1 : n_all;
            came_to[i][place] = true;
        }
    }
}

/* Whether the line calls what orders. */
static bool is_order(const char *line)
{
    static const char *const names[] = {"__syncthreads()",  "warp_barrier()", "any_thread(",   "copy_async_commit()",
                                        "copy_async_wait<", "named_wait(",    "named_arrive(", "barrier_wait(",
                                        "barrier_arrive(",  "wgmma_wait<"};
    const char *text = line + strspn(line, " ");
    for (const char *name : names)
        if (strstr(text, name) && *text != '*' && strncmp(text, "/*", 2) != 0)
            return true;
    return false;
}

/* Appends the lines that order and that no case came to. */
static void add_missing(const char *path, char *missing, size_t size)
{
    char line[300];
    FILE *file = fopen(path, "r");
    ck_assert(file != NULL);
    for (int i = 1; fgets(line, sizeof line, file); i++)
        if (is_order(line) && place_of({path, i}) == n_all)
            snprintf(missing + strlen(missing), size - strlen(missing), "\n%s:%d: %s", path, i, line);
    fclose(file);
}

static void find_missing(char *missing, size_t size)
{
    glob_t paths;
    ck_assert_int_eq(glob(KERNELS_FOLDER "/*.cu*", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        if (!strstr(paths.gl_pathv[i], "/primitives.cuh") && !strstr(paths.gl_pathv[i], "/hopper.cuh"))
            add_missing(paths.gl_pathv[i], missing, size);
    globfree(&paths);
}

/* Whether a case shows that the place is left out: the one that showed the last is tried first. */
static bool any_notices(int place)
{
    static int last;
    if (came_to[last][place] && notices(cases[last], all_sites[place]))
        return true;
    for (int i = 0; i < n_cases; i++)
        if (i != last && came_to[i][place] && notices(cases[i], all_sites[place])) {
            last = i;
            return true;
        }
    return false;
}

START_TEST(small_cases_are_ordered)
{
    add_small_cases();
    run_cases();
}
END_TEST

/* Once for all parts below. */
static void run_all_cases(void)
{
    char missing[4000] = "";
    add_all_cases();
    run_cases();
    find_missing(missing, sizeof missing);
    ck_assert_msg(!*missing, "no case comes to:%s", missing);
}

/* Leaves out one in PARTS of the places, so that no test takes long. */
enum { PARTS = 4 };

START_TEST(orders_suffice_and_none_is_idle)
{
    char idle[4000] = "";
    for (int s = _i; s < n_all; s += PARTS)
        if (!orders_no_memory(text_of(all_sites[s])) && !any_notices(s))
            snprintf(idle + strlen(idle), sizeof idle - strlen(idle), "\n%s:%d: %s", all_sites[s].file, all_sites[s].line,
                     text_of(all_sites[s]));
    ck_assert_msg(!*idle, "nothing shows without:%s", idle);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accesses of the CUDA kernels, emulated");
    TCase *tcase = tcase_create("the watch");
    tcase_add_loop_test(tcase, orders_that_hold, 0, N_RIGHT);
    tcase_add_loop_exit_test(tcase, orders_that_do_not, EXIT_FAILURE, N_RIGHT, N_ORDERS);
    tcase_add_loop_test(tcase, proxies_that_are_fenced, 0, N_PROXIES_RIGHT);
    tcase_add_loop_exit_test(tcase, proxies_that_are_not, EXIT_FAILURE, N_PROXIES_RIGHT, N_PROXIES);
    if (!suite_is_long())
        tcase_add_test(tcase, small_cases_are_ordered);
    suite_add_tcase(suite, tcase);
    if (suite_is_long()) {
        tcase = tcase_create("places");
        tcase_add_unchecked_fixture(tcase, run_all_cases, NULL);
        tcase_add_loop_test(tcase, orders_suffice_and_none_is_idle, 0, PARTS);
        suite_add_tcase(suite, tcase);
    }
    return suite_run(suite);
}
