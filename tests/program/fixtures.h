/* fixtures.h - small models and settings for tests of programs. */
#ifndef MSIM_TESTS_PROGRAM_FIXTURES_H
#define MSIM_TESTS_PROGRAM_FIXTURES_H

#include "model/program/program.h"

/* A setting that owns what it points to. */
struct fixture {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
};

/* `layers` equal layers (a mixture of 8 experts each when `mixture`), no layout yet; all dimensions 1, schedule none, its data
 * there before the step (async_data). */
struct fixture fixture_of(int layers, bool mixture);
/* A pipeline of p stages with v chunks and m micro-batches, two layers per virtual stage, nothing else parallel. */
struct fixture fixture_pipeline(enum schedule schedule, int p, int v, int m);

struct setting fixture_setting(const struct fixture *fixture);
/* Build; on refusal print why and abort the test. */
struct program fixture_build(const struct fixture *fixture, enum detail detail, bool folded);

const struct op *rank_ops(const struct program *program, int rank, uint32_t *n_ops);
/* Bytes of all collectives of a rank over a kind of group. */
double collective_bytes(const struct program *program, int rank, enum collective collective, enum group_kind kind);

#endif
