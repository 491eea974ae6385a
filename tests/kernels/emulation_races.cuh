/*
 * emulation_races.cuh - accesses of a block's threads to the same memory that nothing orders.
 *
 * The order in which coroutines run hides races: a thread that runs to its next barrier leaves complete results behind. So
 * accesses are watched. The kernels are compiled with -fsanitize=thread, whose calls before each access come here instead of to
 * the sanitizer, and every agent has a vector clock: of each agent the number up to which what it did came before (Lamport 1978;
 * Mattern 1989). Two accesses of the same bytes, one of which writes, are a race when neither came before the other, in whatever
 * order they ran here (Flanagan and Freund, FastTrack, 2009; here all concurrent reads are kept, not one). So one run of a case
 * shows every race among what the case executes, and no order of threads has to be drawn.
 *
 * Agents are threads and what works beside them: a thread's cp.async copies (until it waited for them), a warp's share of wgmma
 * (reads tiles from issue to wait), the tensor copies that report to a barrier (until its phase ends). What orders, as the PTX
 * ISA has it: __syncthreads and its votes, __syncwarp, bar.sync and bar.arrive, mbarriers, waits for asynchronous work by the
 * thread that waits. What does not: shuffles, ldmatrix and mma.sync, though all lanes take part. Different blocks of a grid are
 * never ordered: the kernels have no atomics. Reading shared memory that the block has not written is refused too.
 *
 * Tensor copies and wgmma reach shared memory by the asynchronous proxy: what a thread wrote there is refused to them, ordered
 * or not, unless that thread has since fenced its proxies; what cp.async brought always is. The other way the end of their work
 * is enough.
 *
 * Whether a barrier is needed shows the other way round: with `without` set to its place in the source, threads still meet there
 * but nothing is ordered by it, and asynchronous work is not waited for; a race, or a wrong number, has to come of it.
 *
 * Not seen: what a compiler moves across a place where it should not.
 */
#ifndef MSIM_TESTS_KERNELS_EMULATION_RACES_CUH
#define MSIM_TESTS_KERNELS_EMULATION_RACES_CUH

#include <stddef.h>
#include <stdint.h>

namespace emulation
{
/* Where a kernel orders something: the place of the call, as a default argument of what is called. */
struct site {
    const char *file;
    int line;
    static constexpr site here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return {file, line};
    }
};

/* What tests say and learn. */
extern bool watching; /* else nothing is recorded, at a comparison per access */
extern site without;  /* file NULL: nothing is left out */
enum { MOST_SITES = 200 };
extern site sites[MOST_SITES]; /* that threads came to while watching */
extern int n_sites;

/* The rest is for the emulation. Whether this is the place to be left out; notes that it was come to. */
bool left_out(site here);
void races_begin_launch(const void *stacks, size_t stack_bytes);
void races_begin_block(unsigned threads);
/* Who runs from now on; NOBODY: the emulation itself. */
enum { NOBODY = -1 };
void races_thread(int thread);

/* What agents meet at: what came before an arrival comes before what follows a pass, once the meeting is complete. */
enum {
    POINT_BLOCK,
    POINT_WARPS,
    POINT_NAMED = POINT_WARPS + 32,
    POINT_BARRIERS = POINT_NAMED + 16,
    MOST_BARRIERS = 32,
    POINTS = POINT_BARRIERS + MOST_BARRIERS
};
void races_arrive(int point);
void races_complete(int point);
void races_pass(int point);

/* Asynchronous work, by agents. An agent's work has numbers that grow. */
int agent_copies(unsigned thread);
int agent_products(unsigned warp);
int agent_boxes(int barrier);
/* The running thread begins work that touches these bytes. */
void races_begun(int agent, uint32_t number, const void *at, size_t bytes, bool write);
/* The running thread knows that work up to a number is done, or what completes a meeting does. */
void races_done(int agent, uint32_t until);
void races_report(int point, int agent, uint32_t until);
/* What the running thread has written so far is there for tensor copies and products too (fence.proxy.async). */
void races_fence(void);
/* An access by the running thread. */
void races_access(const void *at, size_t bytes, bool write);
} // namespace emulation

#endif
