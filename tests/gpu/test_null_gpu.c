/* The null GPU refuses what a GPU would, and its NCCL compares the ranks' exchanges. */
#include <check.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/null_cuda.h"
#include "tests/gpu/null_cuda_internal.h"
#include "tests/suite.h"

/* What nvcc's code calls. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): names of the CUDA runtime
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread,
                            uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp_size);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

static const char stand_in[] = "a kernel";

static void launch(dim3 grid, dim3 block, size_t shared)
{
    cudaKernel_t kernel;
    __cudaRegisterFunction(NULL, stand_in, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
    ck_assert_int_eq(__cudaGetKernel(&kernel, stand_in), cudaSuccess);
    ck_assert_int_eq(cudaFuncSetAttribute(stand_in, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10), cudaSuccess);
    ck_assert_int_eq(__cudaLaunchKernel(kernel, grid, block, NULL, shared, NULL), cudaSuccess);
}

static const struct {
    dim3 grid, block;
    size_t shared;
} bad_launches[] = {
    {{1, 65536, 1}, {32, 1, 1}, 0}, {{1, 1, 65536}, {32, 1, 1}, 0},  {{0, 1, 1}, {32, 1, 1}, 0},
    {{1, 1, 1}, {1025, 1, 1}, 0},   {{1, 1, 1}, {1, 1, 65}, 0},      {{1, 1, 1}, {32, 64, 1}, 0},
    {{1, 1, 1}, {0, 1, 1}, 0},      {{1, 1, 1}, {32, 1, 1}, 102401}, {{2147483648, 1, 1}, {32, 1, 1}, 0},
};

START_TEST(legal_launches_pass)
{
    launch((dim3){2147483647, 65535, 65535}, (dim3){1024, 1, 1}, 100 << 10);
    ck_assert_int_eq(null_counts.launches, 1);
    ck_assert_int_eq(cudaFuncSetAttribute(stand_in, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
                     cudaErrorInvalidValue);
}
END_TEST

START_TEST(launches_beyond_the_limits_end_the_process)
{
    launch(bad_launches[_i].grid, bad_launches[_i].block, bad_launches[_i].shared);
}
END_TEST

static void bad_memory(int i)
{
    char *memory = NULL, host[512] = {0};
    ck_assert_int_eq(cudaMalloc((void **)&memory, 256), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(memory, host, 256, cudaMemcpyHostToDevice), cudaSuccess);
    switch (i) {
    case 0: (void)cudaMemcpy(memory, host, 257, cudaMemcpyHostToDevice); break;
    case 1: (void)cudaMemcpy(host, memory + 1, 256, cudaMemcpyDeviceToHost); break;
    case 2: (void)cudaMemsetAsync(memory - 1, 0, 1, NULL); break;
    case 3: (void)cudaFree(memory + 1); break;
    case 4: (void)cudaFree(memory), (void)cudaFree(memory); break;
    default: (void)cudaMemcpy(memory, host, 256, cudaMemcpyDeviceToDevice);
    }
}

START_TEST(accesses_outside_of_allocations_end_the_process)
{
    bad_memory(_i);
}
END_TEST

START_TEST(memory_ends)
{
    void *most = NULL, *more = NULL;
    ck_assert_int_eq(cudaMalloc(&most, (size_t)140 << 30), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&more, (size_t)1 << 30), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaFree(most), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&more, (size_t)1 << 30), cudaSuccess);
}
END_TEST

static bool first_passes;

static bool passes_when_told(void *context)
{
    (void)context;
    return first_passes;
}

/* A stream waits, another one for it, and an event behind that. */
START_TEST(streams_wait)
{
    cudaStream_t first, second;
    cudaEvent_t between, behind;
    float ms = 0;
    cudaStreamCreate(&first), cudaStreamCreate(&second), cudaEventCreate(&between), cudaEventCreate(&behind);
    null_stream_expect(first, passes_when_told, NULL);
    null_stream_spend(first, 5);
    cudaEventRecord(between, first);
    cudaStreamWaitEvent(second, between, 0);
    cudaStreamWaitEvent(second, between, 0);
    cudaEventRecord(behind, second);
    ck_assert_int_eq(cudaEventQuery(behind), cudaErrorNotReady);
    ck_assert_int_eq(cudaStreamQuery(second), cudaErrorNotReady);
    first_passes = true;
    ck_assert_int_eq(cudaEventQuery(behind), cudaSuccess);
    ck_assert_int_eq(cudaStreamQuery(first), cudaSuccess);
    ck_assert_int_eq(cudaEventElapsedTime(&ms, between, behind), cudaSuccess);
    ck_assert(ms > 0 && ms < 1);
}
END_TEST

/* --- NCCL: this process is rank 0, a child is rank 1 */

static ncclComm_t joined(ncclUniqueId id, int rank)
{
    ncclComm_t all = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ck_assert_int_eq(ncclCommInitRankConfig(&all, 2, id, rank, &config), ncclSuccess);
    return all;
}

/* Both ranks send to each other in a group, and sum up `count` numbers in a communicator that was split off. */
static void exchange(ncclUniqueId id, int rank, size_t count)
{
    ncclComm_t all = joined(id, rank), split = NULL;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    ck_assert_int_eq(ncclCommSplit(all, 7, -rank, &split, NULL), ncclSuccess);
    ncclGroupStart();
    ncclSend(NULL, 3, ncclFloat, 1 - rank, all, stream);
    ncclRecv(NULL, 3, ncclFloat, 1 - rank, all, stream);
    ncclGroupEnd();
    ncclAllReduce(NULL, NULL, count, ncclFloat, ncclSum, split, stream);
    cudaDeviceSynchronize();
}

/* How the child ended whose rank 0 summed up 1000 numbers. */
static int status_of_exchange(size_t count_of_child)
{
    ncclUniqueId id;
    int status = 0;
    ck_assert_int_eq(ncclGetUniqueId(&id), ncclSuccess);
    const pid_t child = fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        exchange(id, 1, count_of_child);
        _exit(0);
    }
    const pid_t other = fork();
    if (other == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        exchange(id, 0, 1000);
        _exit(0);
    }
    waitpid(child, &status, 0);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return status;
}

START_TEST(equal_exchanges_meet)
{
    ck_assert_int_eq(status_of_exchange(1000), 0);
}
END_TEST

START_TEST(exchanges_that_differ_end_the_process)
{
    const int status = status_of_exchange(999);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("null GPU");
    TCase *cuda = tcase_create("cuda"), *nccl = tcase_create("nccl");
    tcase_add_test(cuda, legal_launches_pass);
    tcase_add_loop_test_raise_signal(cuda, launches_beyond_the_limits_end_the_process, SIGABRT, 0,
                                     (int)(sizeof bad_launches / sizeof *bad_launches));
    tcase_add_loop_test_raise_signal(cuda, accesses_outside_of_allocations_end_the_process, SIGABRT, 0, 6);
    tcase_add_test(cuda, memory_ends);
    tcase_add_test(cuda, streams_wait);
    tcase_add_test(nccl, equal_exchanges_meet);
    tcase_add_test(nccl, exchanges_that_differ_end_the_process);
    suite_add_tcase(suite, cuda);
    suite_add_tcase(suite, nccl);
    return suite_run(suite);
}
