/* emulated_run.h - drawn cases through the kernels in emulation, against the references. */
#ifndef MSIM_TESTS_KERNELS_EMULATED_RUN_H
#define MSIM_TESTS_KERNELS_EMULATED_RUN_H

#include "tests/kernels/kernel_case.h"
#include "tests/kernels/kernel_device.h"

/* Prepares the run, launches and fetches; the test ends where the kernel refuses. */
void emulated_run(struct kernel_case *c, struct kernel_run *result);

/* Whether the case comes out as the reference does, with the same bits twice where `twice`; `why` says what does not. Frees the
 * case. */
bool emulated_agrees(struct kernel_case *c, bool twice, char *why, size_t size);

/* A linear layer of bytes, with one scale or in blocks. */
void emulated_draw_bytes(struct kernel_case *c, enum kernel kernel, bool in_blocks, uint64_t seed);

/* One head, with this place, window and head sizes. */
void emulated_draw_query_range(struct kernel_case *c, enum kernel kernel, uint64_t seed, struct query_range_call range);

/* kernel_case_draw_scan. */
void emulated_draw_scan(struct kernel_case *c, enum kernel kernel, uint64_t seed, struct scan_call scan, bool packed);

/* A case of attention that the kernels of sm_90a do, of few heads, long where `seed` is odd: the emulation takes its time. */
void emulated_draw_attention(struct kernel_case *c, enum kernel kernel, int seed);

#endif
