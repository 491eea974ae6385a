/*
 * documents.h - the query-key pairs of attention that masks between documents leave.
 *
 * Example: documents of 1,000 tokens each (spread 0), sequences of 4,096 tokens, no window.
 *
 *     documents_together(&documents, 250)            0.75: two tokens 250 apart are in one document
 *     documents_pairs(&documents, 4096, 0)           about 1.9 million of the 8.4 million pairs of a causal mask
 *
 * Theory. Documents of lengths L (mean m tokens, log-normal with spread S) follow one another. The stream is cut into sequences
 * of s tokens wherever they end, so borders between documents are a stationary renewal process. Two tokens d apart are in one
 * document if no border lies between them,
 *
 *     q(d) = integral from d to infinity of P(L > x) dx / m = E[max(L - d, 0)] / m
 *          = N((u + S^2) / S) - (d / m) N(u / S),   u = log(m / d) - S^2 / 2,   N the normal distribution,
 *
 * which is also the probability that a token is at least d tokens after the first of its document (the stationary age). For S =
 * 0 it is max(1 - d / m, 0). A query at offset t of its sequence sees itself and the tokens before it in its sequence, its
 * document and its window w (no window: w = s). So one head has
 *
 *     pairs(s, w) = sum over t < s, d <= min(t, w - 1) of q(d) = sum over d < min(s, w) of (s - d) q(d).
 *
 * A sequence is cut into pieces, each of one document. A piece of n > j tokens has n - j pairs of tokens j apart. So f(j) = (s
 * - j) q(j) such pairs are expected, and f(j) - f(j + 1) pieces of more than j tokens; for j = 0 this is about 1 + s / m.
 *
 * Variance. The pieces of a sequence follow one another: the rest of a document, whole documents, a beginning. First and second
 * moments of the rest of the sequence after a border satisfy renewal equations, which are solved on a grid
 * (documents_variation).
 *
 * Units: tokens; pairs of one head and sequence. Errors: q to rounding; sums below 1e-6, where m S is more than a token or S =
 * 0. Lengths are real numbers; with log-normal lengths rounded to whole tokens, pairs differ by about 1 / m. Assumptions:
 * lengths are independent, and a sequence takes the next tokens of the stream (loaders that choose documents to fill sequences
 * without cutting them, or pad them, produce other pieces). Sources: renewal theory (Cox 1962); masks as in Llama 3
 * (arXiv:2407.21783, section 3.2).
 */
#ifndef MSIM_MODEL_COST_WORK_DOCUMENTS_H
#define MSIM_MODEL_COST_WORK_DOCUMENTS_H

#include "model/spec/job.h"

/* q(distance), the probability that two tokens are in one document. Costs a few tens of nanoseconds. */
double documents_together(const struct documents *documents, double distance);

/* Query-key pairs of the first `tokens` tokens of a sequence, in a band of `window` tokens if that is above 0. A mean of 0
 * stands for a causal mask alone. Costs a few microseconds, for any length. */
double documents_pairs(const struct documents *documents, double tokens, double window);

/* Expected number of pieces of a sequence with more than `longer_than` tokens. */
double documents_pieces(const struct documents *documents, double tokens, double longer_than);

/* The tiles and blocks that a kernel walks over if it begins its tiles anew with every piece. A tile has `tile` queries, a
 * block `tile` keys. */
struct document_tiles {
    double tiles;  /* per sequence and head */
    double blocks; /* blocks of all tiles, without those that either mask hides completely */
};
struct document_tiles documents_tiles(const struct documents *documents, double tokens, double window, int tile);

/* The longest piece of `sequences` sequences: the median of its length (pieces taken as independent). */
double documents_longest(const struct documents *documents, double tokens, double sequences);

/* Both of these for one kernel. They depend on few values, and a search needs them for every layout. A memo keeps the last
 * results; all zero is empty, and it belongs to one thread. NULL: no memo. */
struct documents_question {
    double mean, spread; /* of documents */
    double tokens, window;
    double sequences; /* in one call */
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

/* Standard deviation of the pairs of a sequence, relative to their mean. Accurate to about 1 %, but too high for log-normal
 * lengths that differ by less than tokens / 1,024, the step of the grid. Costs some milliseconds: call it once per report and
 * not in a search. */
double documents_variation(const struct documents *documents, double tokens, double window);

#endif
