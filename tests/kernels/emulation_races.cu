/* What emulation_races.cuh declares: vector clocks of agents, and the last accesses to every word of memory. */
#include <algorithm>
#include <link.h>
#include <stdio.h>
#include <unordered_map>
#include <vector>

#include "tests/kernels/emulation.cuh"

namespace emulation
{
enum { MOST_THREADS = 1024, MOST_WARPS = MOST_THREADS / LANES, MOST_AGENTS = 2 * MOST_THREADS + MOST_WARPS + MOST_BARRIERS };

bool watching;
site without, sites[MOST_SITES];
int n_sites;

bool left_out(site here)
{
    if (!watching)
        return false;
    int i = 0;
    while (i < n_sites && (sites[i].line != here.line || strcmp(sites[i].file, here.file) != 0))
        i++;
    if (i == n_sites && n_sites < MOST_SITES)
        sites[n_sites++] = here;
    return without.file && without.line == here.line && strcmp(without.file, here.file) == 0;
}

/* --- clocks: agents are threads, their copies, warps' products, barriers' boxes */

static std::vector<uint32_t> clocks;  /* [threads][MOST_AGENTS] */
static uint32_t fenced[MOST_THREADS]; /* up to which number what a thread wrote is there for the other proxy */
static struct {
    uint32_t gathered[MOST_AGENTS], passed[MOST_AGENTS];
    unsigned block; /* for which they stand */
} points[POINTS];

static unsigned threads_now, launch_first, block_now; /* blocks are numbered through all launches */
static int agents_used;                               /* those behind have done nothing in this block */
static int running = NOBODY;

int agent_copies(unsigned thread)
{
    return (int)(threads_now + thread);
}

int agent_products(unsigned warp)
{
    return (int)(2 * threads_now + warp);
}

int agent_boxes(int barrier)
{
    return (int)(2 * threads_now + threads_now / LANES) + 1 + barrier;
}

static uint32_t *clock_of(int thread)
{
    return &clocks[(size_t)thread * MOST_AGENTS];
}

static void join(uint32_t *into, const uint32_t *from)
{
    for (int i = 0; i < agents_used; i++)
        into[i] = std::max(into[i], from[i]);
}

/* All of its kind are in use from now on. */
static void use_agent(int agent)
{
    if (agent >= agents_used)
        agents_used = agent < agent_products(0) ? agent_products(0) : agent_boxes(MOST_BARRIERS);
}

static bool nobody(void)
{
    return !watching || running == NOBODY;
}

static void renew(int point)
{
    if (points[point].block == block_now)
        return;
    memset(points[point].gathered, 0, sizeof points[point].gathered);
    memset(points[point].passed, 0, sizeof points[point].passed);
    points[point].block = block_now;
}

void races_arrive(int point)
{
    if (nobody())
        return;
    renew(point);
    join(points[point].gathered, clock_of(running));
    clock_of(running)[running]++; /* what follows is not part of it */
}

void races_complete(int point)
{
    if (!watching)
        return;
    renew(point);
    if (point < POINT_BARRIERS) /* all that pass have arrived; at an mbarrier one may pass later, and others have gone on */
        memset(points[point].passed, 0, (size_t)agents_used * sizeof(uint32_t));
    join(points[point].passed, points[point].gathered);
    memset(points[point].gathered, 0, (size_t)agents_used * sizeof(uint32_t));
}

void races_pass(int point)
{
    if (nobody())
        return;
    renew(point);
    join(clock_of(running), points[point].passed);
}

void races_done(int agent, uint32_t until)
{
    if (nobody())
        return;
    use_agent(agent);
    clock_of(running)[agent] = std::max(clock_of(running)[agent], until);
}

void races_report(int point, int agent, uint32_t until)
{
    if (!watching)
        return;
    renew(point);
    use_agent(agent);
    points[point].gathered[agent] = std::max(points[point].gathered[agent], until);
}

void races_fence(void)
{
    if (nobody())
        return;
    fenced[running] = clock_of(running)[running]++;
}

/* --- accesses */

struct access {
    unsigned block;
    uint32_t number;
    uint32_t from; /* code address, from the program's beginning */
    uint16_t agent;
    uint8_t bytes; /* of the word, a bit each */
    bool write;
};

enum { WORD = 4, PAGE_WORDS = 1024, RECENT = 64 };
typedef std::vector<access> word_accesses;
static std::unordered_map<uintptr_t, word_accesses *> pages;
static struct {
    uintptr_t page;
    word_accesses *words;
} recent[RECENT];

struct memory_range {
    uintptr_t begin, bytes;
    bool has(uintptr_t at) const
    {
        return at - begin < bytes;
    }
};

static memory_range stacks_of_threads, of_emulation, dynamic_range, static_range;
static uintptr_t program_begin;

/* Where the program's code begins, and this thread's copies of what is thread-local in it: variables that are __shared__. */
static int find_program(struct dl_phdr_info *info, size_t, void *)
{
    program_begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data)
            static_range = {(uintptr_t)info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz};
    return 1; /* the first is the program itself */
}

void races_begin_launch(const void *stacks, size_t stack_bytes)
{
    if (!watching)
        return;
    launch_first = block_now + 1;
    stacks_of_threads = {(uintptr_t)stacks, stack_bytes};
    of_emulation = {(uintptr_t)&own, sizeof own};
    dynamic_range = {(uintptr_t)shared, MOST_SHARED};
    static_range = {};
    dl_iterate_phdr(find_program, NULL);
    clocks.resize((size_t)MOST_THREADS * MOST_AGENTS);
}

void races_begin_block(unsigned threads)
{
    if (!watching)
        return;
    block_now++;
    threads_now = threads;
    agents_used = (int)threads;
    for (unsigned t = 0; t < threads; t++) {
        memset(clock_of((int)t), 0, (size_t)agent_boxes(MOST_BARRIERS) * sizeof(uint32_t));
        clock_of((int)t)[t] = 1;
        fenced[t] = 0;
    }
}

void races_thread(int thread)
{
    running = thread;
}

static word_accesses *words_of(uintptr_t page)
{
    auto &slot = recent[page % RECENT];
    if (slot.page != page || !slot.words) {
        word_accesses *&words = pages[page];
        if (!words)
            words = new word_accesses[PAGE_WORDS];
        slot = {page, words};
    }
    return slot.words;
}

static const char *who(int agent)
{
    return agent < agent_copies(0)     ? "a thread"
           : agent < agent_products(0) ? "cp.async"
           : agent < agent_boxes(0)    ? "wgmma"
                                       : "a tensor copy";
}

static void refuse(uintptr_t at, bool in_shared, const access &first, const access &then)
{
    static char text[300];
    snprintf(text, sizeof text, "race: %s (%u) %s and then %s (%u) %s %s memory %#lx, unordered; code at %#x and %#x",
             who(first.agent), first.agent, first.write ? "writes" : "reads", who(then.agent), then.agent,
             then.write ? "writes" : "reads", in_shared ? "shared" : "global", (unsigned long)at, first.from, then.from);
    fail(text);
}

/* Whether a thread or its copies wrote what tensor copies or products touch, and the thread fenced nothing since. */
static bool proxies_apart(const access &first, const access &then)
{
    if (then.agent < agent_products(0) || first.agent >= agent_products(0) || !first.write)
        return false;
    return first.agent >= agent_copies(0) || first.number > fenced[first.agent];
}

/* Drops what the access comes after and covers, refuses what it is not ordered with, and adds it. */
static void access_word(uintptr_t at, const access &a, bool in_shared)
{
    word_accesses &words = words_of(at / WORD / PAGE_WORDS)[at / WORD % PAGE_WORDS];
    const uint32_t *seen = clock_of(running);
    unsigned written = 0, other_blocks = 0;
    size_t kept = 0;
    for (const access &e : words) {
        if (e.block < (in_shared ? block_now : launch_first))
            continue;
        const bool same_block = e.block == block_now, ordered = same_block && seen[e.agent] >= e.number;
        if ((e.bytes & a.bytes) && !ordered && (e.write || a.write))
            refuse(at, in_shared, e, a);
        if (in_shared && (e.bytes & a.bytes) && proxies_apart(e, a))
            fail("shared memory that a thread wrote is touched by a tensor copy or wgmma, with no fence between the proxies");
        written |= e.write ? e.bytes : 0;
        if (ordered && (e.bytes & ~a.bytes) == 0 && (a.write || !e.write))
            continue;
        if (!same_block && !e.write && (e.bytes & ~other_blocks) == 0)
            continue; /* another block's read says the same */
        other_blocks |= same_block || e.write ? 0 : e.bytes;
        words[kept++] = e;
    }
    words.resize(kept);
    words.push_back(a);
    if (in_shared && !a.write && (a.bytes & ~written))
        fail("shared memory is read that no thread of the block has written");
}

static void access_bytes(int agent, uint32_t number, const void *begin, size_t bytes, bool write, const void *code)
{
    const uintptr_t first = (uintptr_t)begin, end = first + bytes;
    if (stacks_of_threads.has(first) || of_emulation.has(first))
        return;
    const bool in_shared = dynamic_range.has(first) || static_range.has(first);
    access a = {block_now, number, (uint32_t)((uintptr_t)code - program_begin), (uint16_t)agent, 0, write};
    for (uintptr_t at = first / WORD * WORD; at < end; at += WORD) {
        const unsigned from = at < first ? (unsigned)(first - at) : 0,
                       until = end - at < WORD ? (unsigned)(end - at) : (unsigned)WORD;
        a.bytes = (uint8_t)((1u << until) - (1u << from));
        access_word(at, a, in_shared);
    }
}

void races_begun(int agent, uint32_t number, const void *at, size_t bytes, bool write)
{
    if (nobody())
        return;
    use_agent(agent);
    access_bytes(agent, number, at, bytes, write, __builtin_return_address(0));
}

static void accessed(const void *at, size_t bytes, bool write, const void *code)
{
    if (!nobody())
        access_bytes(running, clock_of(running)[running], at, bytes, write, code);
}

void races_access(const void *at, size_t bytes, bool write)
{
    accessed(at, bytes, write, __builtin_return_address(0));
}
} // namespace emulation

/* --- what the compiler calls, in place of the sanitizer's library */

#define ACCESSES(bytes)                                                                                                          \
    extern "C" void __tsan_read##bytes(void *at)                                                                                 \
    {                                                                                                                            \
        emulation::accessed(at, bytes, false, __builtin_return_address(0));                                                      \
    }                                                                                                                            \
    extern "C" void __tsan_write##bytes(void *at)                                                                                \
    {                                                                                                                            \
        emulation::accessed(at, bytes, true, __builtin_return_address(0));                                                       \
    }                                                                                                                            \
    extern "C" void __tsan_unaligned_read##bytes(void *at)                                                                       \
    {                                                                                                                            \
        emulation::accessed(at, bytes, false, __builtin_return_address(0));                                                      \
    }                                                                                                                            \
    extern "C" void __tsan_unaligned_write##bytes(void *at)                                                                      \
    {                                                                                                                            \
        emulation::accessed(at, bytes, true, __builtin_return_address(0));                                                       \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" {
void __tsan_read_range(void *at, size_t bytes)
{
    emulation::accessed(at, bytes, false, __builtin_return_address(0));
}

void __tsan_write_range(void *at, size_t bytes)
{
    emulation::accessed(at, bytes, true, __builtin_return_address(0));
}

/* Clang's: the program's own, which clang calls where gcc copies by itself. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    emulation::accessed(from, bytes, false, __builtin_return_address(0));
    emulation::accessed(to, bytes, true, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes)
{
    emulation::accessed(to, bytes, true, __builtin_return_address(0));
    return memset(to, value, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    emulation::accessed(from, bytes, false, __builtin_return_address(0));
    emulation::accessed(to, bytes, true, __builtin_return_address(0));
    return memmove(to, from, bytes);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *)
{
}

void __tsan_func_exit(void)
{
}
}
