/*
 * progress.h - how far a long command is: one line on stderr, with the time left.
 *
 * Shown only on a terminal, only when the work takes longer than a second, at most ten times a second; erased at the end. Safe to
 * call from a hot loop of one thread: a call between two pictures costs one read of the clock.
 *
 *     struct progress progress = progress_begin(call, "layouts");
 *     ... progress_update(&progress, done, total) ...
 *     progress_end(&progress);
 *
 * progress_update has the shape of a callback (context first), for libraries that report how far they are.
 */
#ifndef MSIM_CLI_OUTPUT_PROGRESS_H
#define MSIM_CLI_OUTPUT_PROGRESS_H

#include "cli/options/command.h"

struct progress {
    const char *what; /* NULL: silent */
    FILE *stream;
    double started_s, shown_s; /* monotonic clock */
    double turned_s;           /* when this part of the work began; 0: with the whole */
    bool visible;
};

struct progress progress_begin(const struct invocation *call, const char *what);
/* The work comes to another part, whose time left is its own; nothing where it is at it already. */
void progress_turn(struct progress *progress, const char *what);
void progress_update(void *progress, double done, double total);
void progress_end(struct progress *progress);

/* The line, without escape codes: "layouts  42 %  3 s left"; where the total is not known (0): "layouts  4200". Returns buffer.
 */
char *progress_text(const char *what, double done, double total, double elapsed_s, char *buffer, size_t size);

#endif
