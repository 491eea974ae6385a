/*
 * emulation_hopper.cuh - kernels/hopper.cuh on the CPU: barriers in shared memory, tensor copies and products by warpgroups.
 *
 * What the hardware may do late is done as late as it may be, when no thread can go on without it: products that are waited for,
 * and tensor copies, the latest first (or, with copies_eager, when they are issued: then a buffer that is filled while it is
 * still used shows). Barriers live in shared memory, 8 bytes as there. Descriptors and tensor maps are taken at their word:
 * addresses, distances and swizzles as the PTX ISA defines them, so that a wrong one reads other elements. What it refuses, with
 * a message: misaligned addresses, warps of a warpgroup that disagree, a product without a fence, barriers that were not made,
 * not announced, or get more than they expect, and work that is under way when the block ends. Registers do not run out here.
 */
#ifndef MSIM_TESTS_KERNELS_EMULATION_HOPPER_CUH
#define MSIM_TESTS_KERNELS_EMULATION_HOPPER_CUH
#define MSIM_KERNELS_HOPPER_CUH
#define MSIM_HOPPER 1

#define __grid_constant__

enum { WARPGROUP = 128, NO_THREADS = 32 };
enum swizzle { SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_64B, SWIZZLE_32B };

/* What the driver would encode: bf16[planes][rows][columns], and a box of rows x columns of one plane. */
struct tensor_map {
    const uint16_t *base;
    int64_t sizes[3]; /* columns, rows, planes */
    int box[2];       /* columns, rows */
    enum swizzle swizzle;
};

namespace emulation
{
extern bool copies_eager;
extern bool layouts_differ; /* the instructions read another layout than the kernels believe: leading and stride are exchanged */

struct product {
    float *d;
    const uint32_t *a_registers; /* NULL: from shared memory */
    uint64_t a, b;
    int columns;
    bool accumulate;
};

void hopper_begin(unsigned threads);
bool hopper_step(void); /* one copy or what one warpgroup waits for; false: nothing is under way */
void hopper_end(void);

uint32_t shared_offset(const void *at);
void barrier_set(uint64_t *barrier, int arrivals);
void barrier_fence(void);
/* `ordering`: what the thread did before comes before what those do that wait. */
void barrier_arrival(uint64_t *barrier, int bytes, bool ordering);
void barrier_pass(uint64_t *barrier, int parity, site here);
void box_copy(void *to, const tensor_map *map, int column, int row, int plane, uint64_t *barrier);
void product_issue(const product &p);
void product_fence(void);
void product_commit(void);
void product_wait(int pending, site here);
} // namespace emulation

cudaError_t tensor_map_make(tensor_map *map, const void *base, int64_t columns, int64_t rows, int64_t planes, int box_columns,
                            int box_rows, enum swizzle swizzle);

template <auto kernel> static bool kernel_takes(int threads, size_t shared_bytes)
{
    return threads <= 1024 && allow_shared(kernel, shared_bytes) == cudaSuccess;
}

static inline uint32_t shared_address(const void *at)
{
    return emulation::shared_offset(at);
}

static inline int warp_uniform(int value)
{
    const unsigned char *lanes = emulation::warp_exchange(&value, sizeof value);
    memcpy(&value, lanes, sizeof value);
    return value;
}

template <int registers> static inline void registers_shrink(void)
{
    static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "setmaxnreg");
}

template <int registers> static inline void registers_grow(void)
{
    static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "setmaxnreg");
}

static inline void named_wait(int id, int threads, emulation::site here = emulation::site::here())
{
    emulation::named_meet(id, threads, true, here);
}

static inline void named_arrive(int id, int threads, emulation::site here = emulation::site::here())
{
    emulation::named_meet(id, threads, false, here);
}

static inline void barrier_init(uint64_t *barrier, int arrivals)
{
    emulation::barrier_set(barrier, arrivals);
}

static inline void barrier_init_fence(void)
{
    emulation::barrier_fence();
}

static inline void barrier_arrive(uint64_t *barrier, emulation::site here = emulation::site::here())
{
    emulation::barrier_arrival(barrier, 0, !emulation::left_out(here));
}

static inline void barrier_expect(uint64_t *barrier, int bytes)
{
    emulation::barrier_arrival(barrier, bytes, true);
}

static inline void barrier_wait(uint64_t *barrier, int parity, emulation::site here = emulation::site::here())
{
    emulation::barrier_pass(barrier, parity, here);
}

static inline void copy_box(void *to, const tensor_map *map, int column, int row, int plane, uint64_t *barrier)
{
    emulation::box_copy(to, map, column, row, plane, barrier);
}

static inline void wgmma_fence(void)
{
    emulation::product_fence();
}

static inline void wgmma_commit(void)
{
    emulation::product_commit();
}

template <int pending> static inline void wgmma_wait(emulation::site here = emulation::site::here())
{
    emulation::product_wait(pending, here);
}

template <int N> static inline void in_order(float (*)[4])
{
}

static inline void computed(float *place, float value)
{
    *place = value;
}

template <int N> static inline void wgmma_shared(float (*d)[4], uint64_t a, uint64_t b, bool accumulate)
{
    emulation::product_issue({d[0], NULL, a, b, N, accumulate});
}

template <int N> static inline void wgmma_registers(float (*d)[4], const uint32_t a[4], uint64_t b)
{
    emulation::product_issue({d[0], a, 0, b, N, true});
}

#endif
