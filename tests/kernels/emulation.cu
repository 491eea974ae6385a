/* The coroutines behind emulation.cuh. One grid at a time, on the thread that launches it. */
#include <map>
#include <mutex>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <vector>

#include "tests/kernels/emulation.cuh"

namespace emulation
{
own_memory own;
unsigned char *shared;

enum { STACK_BYTES = 128 * 1024, MOST_THREADS = 1024, NAMED = 16 };

/* A warp, or the block: who is in it, who waits, how often it went on. */
struct meeting {
    int point; /* emulation_races.cuh */
    int members, waiting;
    unsigned generation;
    bool any[3];
};

struct pending_copy {
    void *to;
    const void *from; /* NULL: zeros */
    int group;
};

struct coroutine {
    std::vector<pending_copy> copies;
    int group;          /* copies begun belong to it */
    unsigned exchanges; /* parity chooses the slots */
    unsigned votes;
    meeting *at;                 /* waits there, NULL: runnable */
    unsigned generation;         /* until the meeting's differs */
    bool (*ready)(const void *); /* or waits until it says so, NULL: does not */
    const void *what;
    bool done;
};

/* A stack and where what runs on it goes on. It serves the threads of that index of one block after the other: to make a context
 * takes system calls, to jump into it none. */
struct resting {
    jmp_buf place;
    bool begun;
};

static std::vector<coroutine> coroutines;
static resting *restings;
static std::vector<meeting> warps;
static meeting whole, named[NAMED];
static jmp_buf scheduler_place;
static unsigned current;
static void (*body_now)(void *);
static void *argument_now;
static unsigned char *stacks;

void fail(const char *what)
{
    fprintf(stderr, "emulation: block %u %u %u thread %u: %s\n", own.block.x, own.block.y, own.block.z, current, what);
    exit(EXIT_FAILURE);
}

static void to_scheduler(void)
{
    if (_setjmp(restings[current].place) == 0)
        _longjmp(scheduler_place, 1);
}

static void coroutine_main(void);

static void begin(void)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)current * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL; /* it never returns */
    makecontext(&context, coroutine_main, 0);
    restings[current].begun = true;
    setcontext(&context);
}

static void go_on(void)
{
    if (_setjmp(scheduler_place) != 0)
        return;
    if (restings[current].begun)
        _longjmp(restings[current].place, 1);
    begin();
}

static meeting *my_warp(void)
{
    return &warps[current / LANES];
}

static void go_on_if_complete(meeting *m)
{
    if (m->waiting > 0 && m->waiting == m->members) {
        m->waiting = 0;
        m->generation++;
        races_complete(m->point);
    }
}

/* `ordering`: what the members did before comes before what they do after. */
static void wait_at(meeting *m, bool ordering)
{
    coroutine *self = &coroutines[current];
    if (ordering)
        races_arrive(m->point);
    self->at = m;
    self->generation = m->generation;
    m->waiting++;
    go_on_if_complete(m);
    to_scheduler();
    if (ordering)
        races_pass(m->point);
}

void wait_until(bool (*ready)(const void *), const void *what)
{
    coroutine *self = &coroutines[current];
    if (ready(what))
        return;
    self->ready = ready;
    self->what = what;
    to_scheduler();
}

void named_meet(int id, int threads, bool wait, site here)
{
    if (id < 1 || id >= NAMED || threads % LANES)
        fail("a named barrier is one of 1 to 15, for whole warps");
    meeting *m = &named[id];
    if (m->waiting > 0 && m->members != threads)
        fail("a named barrier expects different numbers of threads in two places");
    m->members = threads;
    const bool ordering = !left_out(here);
    if (wait) {
        wait_at(m, ordering);
    } else {
        if (ordering)
            races_arrive(m->point);
        m->waiting++;
        go_on_if_complete(m);
    }
}

void block_wait(site here)
{
    wait_at(&whole, !left_out(here));
}

void warp_wait(site here)
{
    wait_at(my_warp(), !left_out(here));
}

const unsigned char *warp_exchange(const void *mine, size_t bytes)
{
    unsigned char(*slots)[SLOT_BYTES] = own.slots[current / LANES][coroutines[current].exchanges++ % 2];
    memcpy(slots[current % LANES], mine, bytes);
    wait_at(my_warp(), false);
    return slots[0];
}

bool block_or(bool condition, site here)
{
    unsigned vote = coroutines[current].votes++ % 3;
    whole.any[vote] |= condition;
    wait_at(&whole, !left_out(here));
    bool any = whole.any[vote];
    whole.any[(vote + 2) % 3] = false; /* the vote before: everybody has read it, or would not be here */
    return any;
}

void copy_begin(void *to, const void *from)
{
    const int group = coroutines[current].group;
    coroutines[current].copies.push_back({to, from, group});
    races_begun(agent_copies(current), (uint32_t)group + 1, to, 16, true);
    if (from)
        races_begun(agent_copies(current), (uint32_t)group + 1, from, 16, false);
}

void copy_commit(site here)
{
    if (!left_out(here))
        coroutines[current].group++;
}

void copy_wait(int pending, site here)
{
    coroutine *self = &coroutines[current];
    size_t left = 0;
    if (left_out(here))
        return;
    if (self->group > pending)
        races_done(agent_copies(current), (uint32_t)(self->group - pending));
    for (const pending_copy &copy : self->copies) {
        if (copy.group >= self->group - pending) {
            self->copies[left++] = copy;
            continue;
        }
        if (copy.from)
            memcpy(copy.to, copy.from, 16);
        else
            memset(copy.to, 0, 16);
    }
    self->copies.resize(left);
}

static void coroutine_main(void)
{
    for (;;) { /* a block after the other */
        body_now(argument_now);
        coroutines[current].done = true;
        whole.members--;
        my_warp()->members--;
        go_on_if_complete(&whole);
        go_on_if_complete(my_warp());
        to_scheduler();
    }
}

static void start_block(unsigned threads)
{
    coroutines.assign(threads, coroutine());
    warps.assign((threads + LANES - 1) / LANES, meeting());
    for (size_t w = 0; w < warps.size(); w++)
        warps[w].point = POINT_WARPS + (int)w;
    for (int i = 0; i < NAMED; i++) {
        named[i] = meeting();
        named[i].point = POINT_NAMED + i;
    }
    whole = meeting();
    whole.point = POINT_BLOCK;
    races_begin_block(threads);
    hopper_begin(threads);
    whole.members = (int)threads;
    memset(shared, 0xff, MOST_SHARED); /* NaN */
    for (unsigned i = 0; i < threads; i++)
        warps[i / LANES].members++;
}

static bool runnable(const coroutine &c)
{
    return !c.done && (!c.at || c.at->generation != c.generation) && (!c.ready || c.ready(c.what));
}

static void run_block(unsigned threads)
{
    start_block(threads);
    for (bool progress = true; progress;) {
        progress = false;
        for (current = 0; current < threads; current++) {
            coroutine *next = &coroutines[current];
            if (!runnable(*next))
                continue;
            next->at = NULL;
            next->ready = NULL;
            own.thread = dim3(current, 0, 0);
            progress = true;
            races_thread((int)current);
            go_on();
            races_thread(NOBODY);
        }
        progress = progress || hopper_step();
    }
    if (whole.members > 0)
        fail("some threads wait for others that never come");
    for (const meeting &m : named)
        if (m.waiting > 0)
            fail("a block ended with arrivals at a named barrier that nobody waits for");
    hopper_end();
}

/* Bytes of a kernel's block: without asking, at most. */
enum { UNASKED_SHARED = 48 * 1024, MOST_BLOCKS_DOWN = 65535 };
size_t most_shared = SHARED_OF_SM_80;
static thread_local std::map<const void *, size_t> asked; /* by a thread, which stands for a process */

cudaError_t allow_answer(const void *kernel, size_t shared_bytes)
{
    if (shared_bytes > most_shared)
        return cudaErrorInvalidValue;
    asked[kernel] = shared_bytes;
    return cudaSuccess;
}

cudaError_t launch_answer(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes)
{
    const auto found = asked.find(kernel);
    const size_t most = found == asked.end() ? (size_t)UNASKED_SHARED : found->second;
    if (grid.x < 1 || grid.x > INT32_MAX || grid.y < 1 || grid.y > MOST_BLOCKS_DOWN || grid.z < 1 || grid.z > MOST_BLOCKS_DOWN)
        return cudaErrorInvalidConfiguration;
    if (block.x < 1 || block.x > MOST_THREADS || block.x % LANES || block.y != 1 || block.z != 1)
        return cudaErrorInvalidConfiguration; /* parts of warps, and blocks of rows, are what CUDA would take and no kernel has */
    return shared_bytes <= most ? cudaSuccess : cudaErrorInvalidValue;
}

void run(dim3 grid, dim3 block_dim, size_t shared_bytes, void (*body)(void *), void *argument)
{
    static const size_t stack_bytes = (size_t)MOST_THREADS * STACK_BYTES;
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> alone(one_at_a_time);
    if (!stacks) {
        stacks = (unsigned char *)malloc(stack_bytes);
        restings = (resting *)calloc(MOST_THREADS, sizeof *restings);
        shared = (unsigned char *)aligned_alloc(1024, MOST_SHARED);
    }
    if (!stacks || !restings || !shared || shared_bytes + SHARED_START > MOST_SHARED)
        fail("no memory");
    body_now = body;
    argument_now = argument;
    own.grid_size = grid;
    own.block_size = block_dim;
    races_begin_launch(stacks, stack_bytes);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                own.block = dim3(x, y, z);
                run_block(block_dim.x);
            }
}
} // namespace emulation
