/*
 * tiny_program.h - programs written by hand for tests: scripts of operations with their durations.
 *
 *     struct tiny tiny = {0};
 *     tiny_script(&tiny);
 *     uint32_t forward = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10);
 *     tiny_after(&tiny, tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 0, 4), forward);
 *     tiny_rank(&tiny, 0, -1, 1);
 */
#ifndef MSIM_TESTS_TINY_PROGRAM_H
#define MSIM_TESTS_TINY_PROGRAM_H

#include "sim/step/step_executor.h"

struct tiny {
    struct program program;
    size_t op_capacity, script_capacity, rank_capacity, group_capacity, member_capacity, cost_capacity;
    struct step_costs costs;
};

void tiny_script(struct tiny *tiny); /* the operations that follow belong to it */
uint32_t tiny_compute(struct tiny *tiny, enum stream stream, enum work_class class, nanos duration);
uint32_t tiny_send(struct tiny *tiny, enum stream stream, enum peer peer, uint32_t tag, nanos duration);
uint32_t tiny_receive(struct tiny *tiny, enum stream stream, enum peer peer, uint32_t tag, nanos duration);
uint32_t tiny_collective(struct tiny *tiny, enum stream stream, enum group_kind kind, enum work_class class, nanos duration);
void tiny_after(struct tiny *tiny, uint32_t op, uint32_t dependency); /* of the current script */
int32_t tiny_rank(struct tiny *tiny, int32_t script, int32_t previous, int32_t next);
void tiny_group(struct tiny *tiny, enum group_kind kind, const int32_t *members, int n);
void tiny_free(struct tiny *tiny);

#endif
