/*
 * null_memory.c - memory of the null GPU: address space, copies and fills that must lie inside of an allocation.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/gpu/null_cuda.h"
#include "tests/gpu/null_cuda_internal.h"

enum { PAGE = 4096, COPIED_BYTES = 1 << 16 };
static const double COPY_MS = 0.002, COPY_RATE = 2e9; /* bytes per ms */

struct block {
    char *at;
    size_t bytes, mapped;
};

static struct block *blocks;
static size_t n_blocks, capacity, in_use;

static struct block *block_of(const void *memory)
{
    for (size_t i = n_blocks; i-- > 0;)
        if ((const char *)memory >= blocks[i].at && (const char *)memory < blocks[i].at + blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

static void must_hold(const char *what, const void *memory, size_t bytes)
{
    const struct block *block = bytes ? block_of(memory) : NULL;
    if (bytes && (!block || (const char *)memory + bytes > block->at + block->bytes))
        null_broken("%s: %zu bytes at %p lie outside of what was allocated on the device", what, bytes, memory);
}

/* A page behind it may not be touched, not even by the host. */
cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
    null_counts.allocations++;
    if (bytes == 0 || in_use + mapped > NULL_MEMORY_BYTES)
        return bytes ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
    char *at = mmap(NULL, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at, mapped, PROT_READ | PROT_WRITE) != 0)
        return cudaErrorMemoryAllocation;
    if (n_blocks == capacity) {
        capacity = 2 * capacity + 64;
        blocks = realloc(blocks, capacity * sizeof *blocks);
    }
    blocks[n_blocks++] = (struct block){at, bytes, mapped + PAGE};
    in_use += mapped;
    *memory = at;
    return cudaSuccess;
}

/* Waits for the whole device, as CUDA does. */
cudaError_t cudaFree(void *memory)
{
    struct block *block = memory ? block_of(memory) : NULL;
    if (!memory)
        return cudaSuccess;
    if (!block || block->at != memory)
        null_broken("%p is freed, which was not allocated", memory);
    (void)cudaDeviceSynchronize();
    in_use -= block->mapped - PAGE;
    munmap(block->at, block->mapped);
    *block = blocks[--n_blocks];
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    *memory = calloc(1, bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = NULL_MEMORY_BYTES - in_use;
    *total = NULL_MEMORY_BYTES;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    (void)value;
    must_hold("cudaMemsetAsync", memory, bytes);
    null_counts.copies++;
    null_stream_spend(stream, COPY_MS + (double)bytes / COPY_RATE);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
        must_hold("a copy to the device", to, bytes);
    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
        must_hold("a copy from the device", from, bytes);
    if (bytes <= COPIED_BYTES)
        memmove(to, from, bytes);
    null_counts.copies++;
    null_stream_spend(stream, COPY_MS + (double)bytes / COPY_RATE);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}
