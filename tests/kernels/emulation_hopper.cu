/* What emulation_hopper.cuh declares: barriers, tensor copies and products by warpgroups of the block that runs. */
#include <vector>

#include "tests/kernels/emulation.cuh"

namespace emulation
{
enum { M = 64, K = 16, MOST_COLUMNS = 256, WINDOW = 1024, ADDRESS_BITS = 18 };

bool copies_eager, layouts_differ;

/* --- barriers */

/* mbarrier: opaque 8 bytes. Poisoned memory has every bit set, which no barrier has. */
struct barrier_state {
    uint64_t phase : 1, expected : 20, pending : 20;
    int64_t bytes : 23;
};
static_assert(sizeof(barrier_state) == sizeof(uint64_t), "a barrier is 8 bytes");

static bool unfenced; /* a barrier was made and copies do not know yet */

/* The block's barriers, as emulation_races.cuh numbers them, and how many phases of each have ended. */
struct known_barrier {
    const uint64_t *at;
    uint32_t phases;
};
static std::vector<known_barrier> known;

static int number_of(const uint64_t *barrier)
{
    for (size_t i = 0; i < known.size(); i++)
        if (known[i].at == barrier)
            return (int)i;
    fail("mbarrier: it was not made");
}

/* Byte addresses as instructions see them: the block's memory begins after what the system keeps. */
uint32_t shared_offset(const void *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    if (byte < shared || byte >= shared + MOST_SHARED)
        fail("an address is not one of shared memory");
    return (uint32_t)(byte - shared) + WINDOW;
}

static barrier_state barrier_at(const uint64_t *barrier)
{
    barrier_state state;
    if (shared_offset(barrier) % sizeof state)
        fail("mbarrier: not aligned to 8 bytes");
    memcpy(&state, barrier, sizeof state);
    if (state.expected == 0 || state.expected == (1 << 20) - 1)
        fail("mbarrier: it was not made");
    return state;
}

static void put_barrier(uint64_t *barrier, barrier_state state)
{
    if (state.pending == 0 && state.bytes == 0) {
        state.phase ^= 1;
        state.pending = state.expected;
        races_complete(POINT_BARRIERS + number_of(barrier));
        known[(size_t)number_of(barrier)].phases++;
    }
    memcpy(barrier, &state, sizeof state);
}

void barrier_set(uint64_t *barrier, int arrivals)
{
    barrier_state state = {};
    if (shared_offset(barrier) % sizeof state)
        fail("mbarrier: not aligned to 8 bytes");
    state.expected = state.pending = (unsigned)arrivals;
    if (known.size() == MOST_BARRIERS)
        fail("mbarrier: a block has more than are emulated");
    known.push_back({barrier, 0});
    races_access(barrier, sizeof state, true);
    memcpy(barrier, &state, sizeof state);
    unfenced = true;
}

void barrier_fence(void)
{
    unfenced = false;
    races_fence();
}

void barrier_arrival(uint64_t *barrier, int bytes, bool ordering)
{
    barrier_state state = barrier_at(barrier);
    races_access(barrier, sizeof state, false); /* they are atomic: only how they were made has to come before */
    if (ordering)
        races_arrive(POINT_BARRIERS + number_of(barrier));
    state.bytes += bytes;
    state.pending--; /* above 0: the phase would have ended else */
    put_barrier(barrier, state);
}

static void barrier_bytes(uint64_t *barrier, int bytes)
{
    barrier_state state = barrier_at(barrier);
    state.bytes -= bytes;
    put_barrier(barrier, state);
}

struct phase {
    const uint64_t *barrier;
    int parity;
};

static bool phase_ended(const void *what)
{
    const phase *p = (const phase *)what;
    return (int)barrier_at(p->barrier).phase != p->parity;
}

void barrier_pass(uint64_t *barrier, int parity, site here)
{
    const phase p = {barrier, parity};
    if (parity != 0 && parity != 1)
        fail("mbarrier: a parity is 0 or 1");
    races_access(barrier, sizeof(barrier_state), false);
    wait_until(phase_ended, &p);
    if (!left_out(here))
        races_pass(POINT_BARRIERS + number_of(barrier));
}

/* --- tensor copies */

struct box {
    tensor_map map;
    int64_t column, row, plane;
    unsigned char *to;
    uint64_t *barrier;
};

static std::vector<box> boxes; /* under way, in the order of their issue */

/* Bits 4-6, 4-5 or 4 of an address xor those three above. */
static const uint32_t swizzle_bits[] = {0, 0x70, 0x30, 0x10};

static uint32_t swizzled(uint32_t address, enum swizzle swizzle)
{
    return address ^ (address >> 3 & swizzle_bits[swizzle]);
}

/* The number of the work that the barrier's phase waits for. */
static uint32_t work_of(const uint64_t *barrier)
{
    return known[(size_t)number_of(barrier)].phases + 1;
}

/* The box is written from now on, until the phase ends. */
static void begin_box(const box &b)
{
    enum { PIECE_BYTES = 16 };
    const uint32_t to = shared_offset(b.to);
    for (int i = 0; i < b.map.box[0] * b.map.box[1] * 2; i += PIECE_BYTES)
        races_begun(agent_boxes(number_of(b.barrier)), work_of(b.barrier),
                    shared + swizzled(to + (uint32_t)i, b.map.swizzle) - WINDOW, PIECE_BYTES, true);
}

static void carry_out(const box &b)
{
    const tensor_map &map = b.map;
    const uint32_t to = shared_offset(b.to);
    for (int r = 0; r < map.box[1]; r++)
        for (int c = 0; c < map.box[0]; c++) {
            const int64_t column = b.column + c, row = b.row + r;
            const bool inside =
                column >= 0 && column < map.sizes[0] && row >= 0 && row < map.sizes[1] && b.plane >= 0 && b.plane < map.sizes[2];
            const uint32_t at = swizzled(to + (uint32_t)(r * map.box[0] + c) * 2, map.swizzle);
            const uint16_t value = inside ? map.base[(b.plane * map.sizes[1] + row) * map.sizes[0] + column] : (uint16_t)0;
            memcpy(shared + at - WINDOW, &value, sizeof value);
        }
    races_report(POINT_BARRIERS + number_of(b.barrier), agent_boxes(number_of(b.barrier)), work_of(b.barrier));
    barrier_bytes(b.barrier, map.box[0] * map.box[1] * 2);
}

static bool copy_step(void)
{
    if (boxes.empty())
        return false;
    const box latest = boxes.back(); /* copies keep no order: who waits for a later one may not count on an earlier one */
    boxes.pop_back();
    carry_out(latest);
    return true;
}

void box_copy(void *to, const tensor_map *map, int column, int row, int plane, uint64_t *barrier)
{
    if (unfenced)
        fail("tensor copy: no fence since a barrier was made");
    if (shared_offset(to) % 128)
        fail("tensor copy: not aligned to 128 bytes");
    (void)barrier_at(barrier);
    boxes.push_back({*map, column, row, plane, (unsigned char *)to, barrier});
    begin_box(boxes.back());
    if (copies_eager)
        copy_step();
}

/* --- products */

struct thread_products {
    std::vector<product> issued;
    std::vector<size_t> groups; /* how many were issued when each was committed */
    size_t done;
    int pending;
    bool fenced;
};

/* The threads of a warpgroup that wait for products: all have to. */
struct rendezvous {
    int waiting;
    unsigned times; /* they went on */
};

static std::vector<thread_products> products;
static std::vector<rendezvous> waits;

void hopper_begin(unsigned threads)
{
    boxes.clear();
    known.clear();
    unfenced = false;
    products.assign(threads, thread_products());
    waits.assign(threads / WARPGROUP, rendezvous());
}

void hopper_end(void)
{
    if (!boxes.empty())
        fail("a block ended before its tensor copies");
    for (const thread_products &t : products)
        if (t.done != t.issued.size())
            fail("a block ended before its products");
}

void product_fence(void)
{
    products[own.thread.x].fenced = true;
}

void product_commit(void)
{
    thread_products &mine = products[own.thread.x];
    mine.groups.push_back(mine.issued.size());
    mine.fenced = false;
}

/* Byte offset of an operand's element before the swizzle: canonical layouts of the PTX ISA, of elements of 2 bytes. `wide`: along
 * the rows of a or columns of b; they are contiguous, or k is. */
static uint32_t element_offset(enum swizzle swizzle, bool wide_contiguous, uint32_t leading, uint32_t stride, uint32_t wide,
                               uint32_t k)
{
    static const uint32_t pattern[] = {16, 128, 64, 32}; /* bytes that are contiguous */
    const uint32_t bytes = pattern[swizzle], elements = bytes / 2;
    if (wide_contiguous) {
        const uint32_t next = swizzle == SWIZZLE_NONE ? stride : leading, eight = swizzle == SWIZZLE_NONE ? leading : stride;
        return wide % elements * 2 + wide / elements * next + k % 8 * bytes + k / 8 * eight;
    }
    const uint32_t along = swizzle == SWIZZLE_NONE ? k % 8 * 2 + k / 8 * leading : k * 2;
    return wide % 8 * bytes + wide / 8 * stride + along;
}

/* Where an element of an operand lies. */
static const unsigned char *element_at(uint64_t descriptor, bool wide_contiguous, uint32_t wide, uint32_t k)
{
    const enum swizzle swizzle = (enum swizzle)(descriptor >> 62);
    const int exchanged = layouts_differ ? 16 : 0;
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4,
                   leading = (uint32_t)(descriptor >> (16 + exchanged) & 0x3fff) << 4,
                   stride = (uint32_t)(descriptor >> (32 - exchanged) & 0x3fff) << 4;
    if (descriptor >> 49 & 7)
        fail("wgmma: base offsets are not emulated");
    if (start >> 3 & swizzle_bits[swizzle])
        fail("wgmma: a matrix begins inside of the swizzle's pattern, and its descriptor has no base offset");
    const uint32_t at = swizzled(start + element_offset(swizzle, wide_contiguous, leading, stride, wide, k), swizzle);
    if (at >= 1u << ADDRESS_BITS || at < WINDOW || at - WINDOW + 2 > MOST_SHARED)
        fail("wgmma: a descriptor leads outside of shared memory");
    return shared + at - WINDOW;
}

static float element_of(uint64_t descriptor, bool wide_contiguous, uint32_t wide, uint32_t k)
{
    uint16_t bits;
    memcpy(&bits, element_at(descriptor, wide_contiguous, wide, k), sizeof bits);
    return float_from_bits((uint32_t)bits << 16);
}

/* The running thread's warp reads its share of a product's tiles from now on, until it is waited for. Eight elements that follow
 * each other lie together in every layout. */
static void begin_reads(const product &p, uint32_t number)
{
    const uint32_t warp = own.thread.x / LANES, first_row = warp % (WARPGROUP / LANES) * K;
    const bool columns = p.a_registers != NULL;
    enum { EIGHT = 8, PIECE_BYTES = 16 };
    for (uint32_t row = 0; row < K && !columns; row++)
        for (uint32_t k = 0; k < K; k += EIGHT)
            races_begun(agent_products(warp), number, element_at(p.a, false, first_row + row, k), PIECE_BYTES, false);
    for (uint32_t column = 0; column < (uint32_t)p.columns; column += columns ? (uint32_t)EIGHT : 1u)
        for (uint32_t k = 0; k < K; k += columns ? 1u : (uint32_t)EIGHT)
            races_begun(agent_products(warp), number, element_at(p.b, columns, column, k), PIECE_BYTES, false);
}

void product_issue(const product &p)
{
    thread_products &mine = products[own.thread.x];
    if (!mine.fenced)
        fail("wgmma: no fence since the last group");
    if (watching && own.thread.x % LANES == 0)
        begin_reads(p, (uint32_t)mine.groups.size() + 1);
    mine.issued.push_back(p);
}

/* Fragments as in primitives.cuh: row of d, and of a, that register `half` of a thread belongs to. */
static int fragment_row(int t, int half)
{
    return t / LANES * 16 + t % LANES / 4 + 8 * half;
}

static void read_a(float a[M][K], const thread_products *threads, size_t index)
{
    const product &first = threads[0].issued[index];
    if (!first.a_registers) {
        for (int row = 0; row < M; row++)
            for (int k = 0; k < K; k++)
                a[row][k] = element_of(first.a, false, (uint32_t)row, (uint32_t)k);
        return;
    }
    for (int t = 0; t < WARPGROUP; t++)
        for (int r = 0; r < 4; r++) {
            const uint32_t pair = threads[t].issued[index].a_registers[r];
            float *to = &a[fragment_row(t, r % 2)][t % 4 * 2 + r / 2 * 8];
            to[0] = float_from_bits(pair << 16);
            to[1] = float_from_bits(pair & 0xffff0000u);
        }
}

/* One product of a warpgroup: threads[128]. */
static void multiply(const thread_products *threads, size_t index)
{
    static float a[M][K], b[K][MOST_COLUMNS], c[M][MOST_COLUMNS];
    const product &first = threads[0].issued[index];
    const int n = first.columns;
    for (int t = 0; t < WARPGROUP; t++) {
        const product &p = threads[t].issued[index];
        if (p.a != first.a || p.b != first.b || p.columns != n || p.accumulate != first.accumulate ||
            !p.a_registers != !first.a_registers)
            fail("wgmma: the threads of a warpgroup disagree");
    }
    read_a(a, threads, index);
    for (int k = 0; k < K; k++)
        for (int column = 0; column < n; column++)
            b[k][column] = element_of(first.b, first.a_registers != NULL, (uint32_t)column, (uint32_t)k);
    memset(c, 0, sizeof c);
    for (int row = 0; row < M; row++)
        for (int k = 0; k < K; k++)
            for (int column = 0; column < n; column++)
                c[row][column] += a[row][k] * b[k][column];
    for (int t = 0; t < WARPGROUP; t++) {
        float *d = threads[t].issued[index].d;
        for (int i = 0; i < n / 2; i++) {
            const float value = c[fragment_row(t, i / 2 % 2)][i / 4 * 8 + t % 4 * 2 + i % 2];
            d[i] = first.accumulate ? d[i] + value : value;
        }
    }
}

/* What all threads of a warpgroup wait for. */
static void finish(unsigned warpgroup)
{
    thread_products *threads = &products[warpgroup * WARPGROUP];
    const size_t groups = threads[0].groups.size(), pending = (size_t)threads[0].pending;
    for (int t = 0; t < WARPGROUP; t++)
        if (threads[t].pending != (int)pending || threads[t].groups != threads[0].groups)
            fail("wgmma: the threads of a warpgroup disagree");
    const size_t until = groups > pending ? threads[0].groups[groups - pending - 1] : 0;
    for (size_t index = threads[0].done; index < until; index++)
        multiply(threads, index);
    for (int t = 0; t < WARPGROUP; t++)
        threads[t].done = until > threads[t].done ? until : threads[t].done;
}

static bool product_step(void)
{
    for (unsigned w = 0; w < waits.size(); w++)
        if (waits[w].waiting == WARPGROUP) {
            finish(w);
            waits[w].waiting = 0;
            waits[w].times++;
            return true;
        }
    return false;
}

struct turn {
    unsigned warpgroup, times;
};

static bool went_on(const void *what)
{
    const turn *t = (const turn *)what;
    return waits[t->warpgroup].times != t->times;
}

void product_wait(int pending, site here)
{
    if (left_out(here))
        return;
    const unsigned warpgroup = own.thread.x / WARPGROUP;
    if (warpgroup >= waits.size())
        fail("wgmma: not all of a warpgroup");
    const turn t = {warpgroup, waits[warpgroup].times};
    products[own.thread.x].pending = pending;
    waits[warpgroup].waiting++;
    wait_until(went_on, &t);
    const thread_products &mine = products[own.thread.x];
    if (mine.groups.size() > (size_t)pending)
        races_done(agent_products(own.thread.x / LANES), (uint32_t)(mine.groups.size() - (size_t)pending));
}

/* Products first: one whose tiles were not waited for reads what was there before. */
bool hopper_step(void)
{
    return product_step() || copy_step();
}
} // namespace emulation

cudaError_t tensor_map_make(tensor_map *map, const void *base, int64_t columns, int64_t rows, int64_t planes, int box_columns,
                            int box_rows, enum swizzle swizzle)
{
    static const int most_bytes[] = {512, 128, 64, 32}; /* of a box's columns: 256 elements, or the swizzle's size */
    const int64_t bytes = columns * 2, most = (int64_t)1 << 32;
    if ((uintptr_t)base % 16 || bytes % 16 || bytes * rows >= (int64_t)1 << 40 || columns > most || rows > most ||
        planes > most || columns < 1 || rows < 1 || planes < 1 || box_columns < 1 || box_columns > 256 || box_rows < 1 ||
        box_rows > 256 || box_columns * 2 % 16 || box_columns * 2 > most_bytes[swizzle])
        return cudaErrorInvalidValue;
    *map = {(const uint16_t *)base, {columns, rows, planes}, {box_columns, box_rows}, swizzle};
    return cudaSuccess;
}
