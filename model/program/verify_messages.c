/*
 * verify_messages.c - check that every send meets its receive, with the same bytes.
 *
 * The messages between two neighbours follow from their scripts and from the roles that lead from one to the other and back. So
 * each such combination is matched once, however many ranks it holds for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/program/verify.h"

/* One end of a message, in matching order: by tag, then as it stands in the script. */
struct message_end {
    uint32_t tag, op;
};

struct message_list {
    struct message_end *items;
    size_t n_items, capacity;
};

static int compare_ends(const void *a, const void *b)
{
    const struct message_end *x = a, *y = b;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* A script's sends to, or receives from, the peer that `roles` (a set of bits) lead to. */
static struct message_list list_messages(const struct script_view *view, enum op_kind kind, unsigned roles)
{
    struct message_list list = {0};
    for (uint32_t i = 0; i < view->n_ops; i++) {
        const struct op *op = &view->ops[i];
        if (op->kind != kind || !(roles >> op->role & 1))
            continue;
        list.items = memory_grow(list.items, &list.capacity, list.n_items + 1, sizeof *list.items);
        list.items[list.n_items++] = (struct message_end){op->tag, i};
    }
    if (list.n_items)
        qsort(list.items, list.n_items, sizeof *list.items, compare_ends);
    return list;
}

static unsigned roles_leading_to(const struct program_rank *from, int32_t rank)
{
    unsigned roles = 0;
    for (int p = 0; p < N_PEERS; p++)
        roles |= from->peers[p] == rank ? 1u << p : 0;
    return roles;
}

static void report_lonely(struct verifier *v, int32_t rank, const struct script_view *view, uint32_t i, int32_t peer)
{
    const struct op *op = &view->ops[i];
    char text[OP_TEXT_SIZE];
    VERIFY_ERROR(v, "program: rank %" PRId32 ", %s, tag %" PRIu32 ": rank %" PRId32 " %s", rank, op_text(op, i, text), op->tag,
                 peer, op->kind == OP_SEND ? "never receives it" : "never sends it");
}

static bool match_pair(struct verifier *v, int32_t sender, int32_t receiver, uint32_t send, uint32_t recv)
{
    const struct script_view *from = &v->views[v->program->ranks[sender].script],
                             *to = &v->views[v->program->ranks[receiver].script];
    char text[OP_TEXT_SIZE];
    if (from->ops[send].bytes == to->ops[recv].bytes)
        return true;
    VERIFY_ERROR(v, "program: rank %" PRId32 ", %s receives %.0f bytes, but op %" PRIu32 " of rank %" PRId32 " sends %.0f",
                 receiver, op_text(&to->ops[recv], recv, text), to->ops[recv].bytes, send, sender, from->ops[send].bytes);
    return false;
}

/* Match what `sender` sends with what `receiver` receives from it; send_of belongs to the receiver's script. */
static bool match_lists(struct verifier *v, int32_t sender, int32_t receiver, const struct message_list *sends,
                        const struct message_list *recvs, uint32_t *send_of)
{
    const struct script_view *from = &v->views[v->program->ranks[sender].script],
                             *to = &v->views[v->program->ranks[receiver].script];
    size_t i = 0, j = 0;
    int wrong = 0;
    while ((i < sends->n_items || j < recvs->n_items) && wrong < REPORTS_MAX) {
        bool no_recv = j == recvs->n_items || (i < sends->n_items && sends->items[i].tag < recvs->items[j].tag);
        bool no_send = !no_recv && (i == sends->n_items || recvs->items[j].tag < sends->items[i].tag);
        if (no_recv || no_send) {
            wrong++;
            if (no_recv)
                report_lonely(v, sender, from, sends->items[i++].op, receiver);
            else
                report_lonely(v, receiver, to, recvs->items[j++].op, sender);
            continue;
        }
        wrong += !match_pair(v, sender, receiver, sends->items[i].op, recvs->items[j].op);
        send_of[recvs->items[j++].op] = sends->items[i++].op;
    }
    return wrong == 0;
}

/* What `receiver` gets from the peer in role p. Peers in two roles at once are matched in the first. */
static bool match_peer(struct verifier *v, struct matching *matching, int32_t receiver, int p)
{
    int32_t sender = v->program->ranks[receiver].peers[p];
    if (matching->own[p] & ((1u << p) - 1))
        return true;
    struct message_list recvs = list_messages(&v->views[matching->script], OP_RECV, matching->own[p]);
    struct message_list sends = {0};
    if (sender >= 0)
        sends = list_messages(&v->views[matching->peers[p]], OP_SEND, matching->its[p]);
    bool right = sender >= 0 || recvs.n_items == 0;
    if (sender >= 0)
        right = match_lists(v, sender, receiver, &sends, &recvs, matching->send_of);
    else if (!right)
        report_lonely(v, receiver, &v->views[matching->script], recvs.items[0].op, -1);
    free(sends.items);
    free(recvs.items);
    return right;
}

/* A rank that sends to a peer which does not name it back would not be found from the receiver's side. */
static bool verify_answered(struct verifier *v, const struct matching *matching, int32_t rank, int p)
{
    if (matching->its[p])
        return true;
    struct message_list sends = list_messages(&v->views[matching->script], OP_SEND, 1u << p);
    bool right = sends.n_items == 0;
    if (!right)
        report_lonely(v, rank, &v->views[matching->script], sends.items[0].op, v->program->ranks[rank].peers[p]);
    free(sends.items);
    return right;
}

static struct matching matching_key(const struct program *program, int32_t r)
{
    const struct program_rank *rank = &program->ranks[r];
    struct matching key = {.script = rank->script};
    for (int p = 0; p < N_PEERS; p++) {
        int32_t peer = rank->peers[p];
        key.peers[p] = peer >= 0 ? program->ranks[peer].script : -1;
        key.own[p] = (uint8_t)(peer >= 0 ? roles_leading_to(rank, peer) : 1u << p);
        key.its[p] = (uint8_t)(peer >= 0 ? roles_leading_to(&program->ranks[peer], r) : 0);
    }
    return key;
}

static bool same_key(const struct matching *a, const struct matching *b)
{
    return a->script == b->script && memcmp(a->peers, b->peers, sizeof a->peers) == 0 &&
           memcmp(a->own, b->own, sizeof a->own) == 0 && memcmp(a->its, b->its, sizeof a->its) == 0;
}

static bool add_matching(struct verifier *v, struct matching key, int32_t rank)
{
    uint32_t n = v->views[key.script].n_ops;
    key.send_of = memory_new(n, sizeof *key.send_of);
    for (uint32_t i = 0; i < n; i++)
        key.send_of[i] = NO_OP;
    v->matchings = memory_grow(v->matchings, &v->matching_capacity, v->n_matchings + 1, sizeof *v->matchings);
    v->matchings[v->n_matchings++] = key;
    bool right = true;
    for (int p = 0; p < N_PEERS; p++) {
        right = match_peer(v, &v->matchings[v->n_matchings - 1], rank, p) && right;
        right = verify_answered(v, &key, rank, p) && right;
    }
    return right;
}

bool verify_messages(struct verifier *v)
{
    v->matching_of = memory_new((size_t)v->program->n_ranks, sizeof *v->matching_of);
    int wrong = 0;
    for (int32_t r = 0; r < v->program->n_ranks && wrong < REPORTS_MAX; r++) {
        struct matching key = matching_key(v->program, r);
        size_t i = r > 0 ? (size_t)v->matching_of[r - 1] : 0; /* neighbours in rank are mostly alike */
        if (i >= v->n_matchings || !same_key(&v->matchings[i], &key))
            for (i = 0; i < v->n_matchings && !same_key(&v->matchings[i], &key); i++)
                ;
        if (i == v->n_matchings)
            wrong += !add_matching(v, key, r);
        v->matching_of[r] = (int32_t)i;
    }
    return wrong == 0;
}
