/*
 * verify.h - the parts of the program verifier (private to the program folder).
 *
 * Example of a report: "op 12 (send of forward 3, chunk 1)" has no receive.
 *
 * Thousands of ranks share a handful of scripts, so whatever holds for a script is checked once:
 *
 *     verify_tables.c      indices are in range, dependencies point backwards; per script
 *     verify_collectives.c members of a group enter equal collectives in one order; per script and kind, then per member
 *     verify_messages.c    sends match receives; per pair of neighbouring scripts
 *     verify_copies.c      all that layers give to the host comes back, once; per script
 *     verify_progress.c    nothing waits in a circle: the program is run without times; per rank and operation
 *
 * Each part needs the parts before it to have found nothing. A rank's streams are queues; `struct script_view` has the position
 * of each operation in its queue.
 */
#ifndef MSIM_MODEL_PROGRAM_VERIFY_H
#define MSIM_MODEL_PROGRAM_VERIFY_H

#include "model/base/diag.h"
#include "model/program/program.h"

enum { REPORTS_MAX = 10 }; /* mistakes reported before a part of the verifier stops looking */

/* Indices over a script, for fast lookup. */
struct script_view {
    const struct op *ops;
    uint32_t n_ops;
    uint32_t *position;         /* [n_ops] in the queue of its stream */
    uint32_t *queue[N_STREAMS]; /* operations of a stream in order */
    uint32_t n_queue[N_STREAMS];
    uint32_t *collectives[N_GROUP_KINDS]; /* operations over groups of a kind in order */
    uint32_t n_collectives[N_GROUP_KINDS];
    uint32_t *storage;
};

/* The sends that complete the receives of a script. Ranks with the same script and the same scripts around them share it. */
struct matching {
    int32_t script, peers[N_PEERS];     /* scripts, -1 none */
    uint8_t own[N_PEERS], its[N_PEERS]; /* roles that lead to the peer, and from the peer back */
    uint32_t *send_of;                  /* [n_ops of script] the peer's send that completes a receive */
};

struct verifier {
    const struct program *program;
    struct diags *diags;
    struct script_view *views; /* [n_scripts] */
    struct matching *matchings;
    size_t n_matchings, matching_capacity;
    int32_t *matching_of; /* [n_ranks] */
};

bool verify_tables(struct verifier *verifier);
bool verify_collectives(struct verifier *verifier);
bool verify_messages(struct verifier *verifier);
bool verify_copies(struct verifier *verifier);
bool verify_progress(struct verifier *verifier);

#define VERIFY_ERROR(verifier, ...) diag_error((verifier)->diags, PLACE_NONE, __VA_ARGS__)

#endif
