/*
 * members.h - ranks that meet to exchange numbers, as tests of every backend of comm.h see one: what it brings, what it got, what
 * it said. What exchanges give is worked out by hand once, for all backends.
 */
#ifndef MSIM_TESTS_RUNTIME_MEMBERS_H
#define MSIM_TESTS_RUNTIME_MEMBERS_H

#include "runtime/base/comm.h"

enum { MEMBERS_MOST = 4, MEMBER_NUMBERS = 32, MEMBER_TEXT = 512 };

struct member {
    int rank;
    const nanos *epoch; /* of its world */
    struct world *world;
    struct device *device;
    struct device_stream *stream;
    struct diags diags;
    enum status status; /* of the first that failed; what follows does nothing */
    float in[MEMBER_NUMBERS], out[MEMBER_NUMBERS];
    double wide_in[MEMBER_NUMBERS], wide_out[MEMBER_NUMBERS];
    char text[MEMBER_TEXT]; /* its first sentence */
};

/* With a device in a world that it has joined; it brings 100 rank + i. */
void member_open(struct member *m, struct world *world, const nanos *epoch);
/* Leaves the world; the sentence stays. */
void member_close(struct member *m);

/* Of the `n` ranks from `first` on; NULL for others. */
struct communicator *member_group(struct member *m, int first, int n);
/* Enqueue; what a call leaves out is the member's numbers. Nothing without a communicator. */
void member_begin(struct member *m, struct communicator *among, struct exchange_call call);
void member_finish(struct member *m);
/* Ends the test where a member's sentence lacks a part. */
void member_says(const struct member *m, const char *part);
void member_sleep(nanos duration);

/* What members from rank 0 on do, and what each has got then: every exchange, those that may stand in their own place, parts of
 * different sizes, messages. */
struct exchange_by_hand {
    void (*exchange)(struct member *m);
    void (*check)(const struct member *m);
    int ranks;
};
enum { N_EXCHANGES_BY_HAND = 4 };
extern const struct exchange_by_hand exchanges_by_hand[N_EXCHANGES_BY_HAND];

/* Rank 0 sends rank 1 one message, which waits for a second one. */
void exchange_half(struct member *m);
/* The same of a rank 0 that has failed, "out of order", and so sends nothing. */
void exchange_and_fail(struct member *m);
/* Ranks 0, 1, 2 wait in a collective, for a message, in a barrier; rank 3 goes after a fifth of a second, which says "enough",
 * and once more with another reason. */
void exchange_and_go(struct member *m);

#endif
