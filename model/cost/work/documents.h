/*
 * documents.h - what masks between documents leave of attention's query-key pairs.
 *
 * Theory. Documents of lengths L (mean m tokens, log-normal with spread S) stand one behind another, and the stream is cut into
 * sequences of s tokens wherever they end: borders between documents are a stationary renewal process. Two tokens d apart are of
 * one document if no border lies between them,
 *
 *     q(d) = integral from d to infinity of P(L > x) dx / m = E[max(L - d, 0)] / m
 *          = N((u + S^2) / S) - (d / m) N(u / S),   u = log(m / d) - S^2 / 2,   N the normal distribution,
 *
 * which is also the probability that a token is at least d tokens behind its document's first (the stationary age). For S = 0 it
 * is max(1 - d / m, 0). A query at offset t of its sequence sees itself and the tokens before it in its sequence, its document
 * and its window w (no window: w = s), so that of one head
 *
 *     pairs(s, w) = sum over t < s, d <= min(t, w - 1) of q(d) = sum over d < min(s, w) of (s - d) q(d).
 *
 * A sequence is cut into pieces, each of one document. A piece of n > j tokens has n - j pairs of tokens j apart, so f(j) = (s -
 * j) q(j) of them are expected, and f(j) - f(j + 1) pieces of more than j tokens: 1 + s / m, about, of more than none.
 *
 * Variance. The pieces of a sequence follow one another: the rest of a document, whole ones, a beginning. First and second
 * moments of what is left of the sequence behind a border satisfy renewal equations, which are solved on a grid
 * (documents_variation).
 *
 * Units: tokens; pairs of one head and sequence. Errors: q to rounding; sums below 1e-6, where m S is more than a token or S = 0.
 * Lengths are real numbers: of log-normal ones rounded to whole tokens the pairs differ by about 1 / m. Assumed: lengths do not
 * depend on one another, and a sequence takes what comes (loaders that pick documents to fill sequences without cutting them, or
 * pad them, see other pieces). Sources: renewal theory (Cox 1962); masks as in Llama 3 (arXiv:2407.21783, section 3.2).
 */
#ifndef MSIM_MODEL_COST_WORK_DOCUMENTS_H
#define MSIM_MODEL_COST_WORK_DOCUMENTS_H

#include "model/spec/job.h"

/* q(distance). A few tens of nanoseconds. */
double documents_together(const struct documents *documents, double distance);

/* Query-key pairs of the first `tokens` of a sequence, in a band of `window` tokens if that is above 0; of a mean of 0 those of a
 * causal mask alone. A few microseconds, however long it is. */
double documents_pairs(const struct documents *documents, double tokens, double window);

/* Pieces of a sequence with more than `tokens` tokens. */
double documents_pieces(const struct documents *documents, double tokens, double longer_than);

/* What a kernel that begins its tiles anew with every piece walks over: a tile is `tile` queries, a block as many keys. */
struct document_tiles {
    double tiles;  /* of a sequence and head */
    double blocks; /* of all of them, of those that neither mask hides whole */
};
struct document_tiles documents_tiles(const struct documents *documents, double tokens, double window, int tile);

/* The longest piece of `sequences` sequences: half of the times there is a longer one (pieces taken as independent). */
double documents_longest(const struct documents *documents, double tokens, double sequences);

/* Both for one kernel. They depend on few things, and a search asks for them of every layout: a memo, all zero when empty, keeps
 * the last answers; it belongs to one thread. NULL: none. */
struct documents_question {
    double mean, spread; /* of documents */
    double tokens, window;
    double sequences; /* of one call */
    int64_t tile;
};
struct documents_walk {
    struct document_tiles tiles;
    double longest; /* tokens */
};
enum { DOCUMENTS_KEPT = 16 };
struct documents_memo {
    struct documents_kept {
        struct documents_question question;
        struct documents_walk walk;
    } kept[DOCUMENTS_KEPT];
    int n, next;
};
struct documents_walk documents_walk(struct documents_memo *memo, const struct documents_question *question);

/* Standard deviation of a sequence's pairs, relative to their mean; within about 1 %, but of log-normal lengths that differ by
 * less than the grid's tokens / 1,024, when it is too high. Some milliseconds: once a report, not in a search. */
double documents_variation(const struct documents *documents, double tokens, double window);

#endif
