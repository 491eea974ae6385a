#include "cli/output/progress.h"

#include <string.h>

#include "model/base/clock.h"

static const double first_s = 1.0;   /* shorter work shows nothing */
static const double between_s = 0.1; /* ten pictures a second */

struct progress progress_begin(const struct invocation *call, const char *what)
{
    return (struct progress){.what = call->progress ? what : NULL, .stream = stderr, .started_s = clock_seconds()};
}

void progress_turn(struct progress *progress, const char *what)
{
    if (!progress->what || strcmp(progress->what, what) == 0)
        return;
    progress->what = what;
    progress->turned_s = clock_seconds();
}

/* "  40 s left": no more digits than such a guess is worth; nothing at the end. */
static void format_left(double seconds, char *text, size_t size)
{
    if (seconds < 0.5)
        snprintf(text, size, "%s", "");
    else if (seconds < 90)
        snprintf(text, size, "  %.0f s left", seconds);
    else if (seconds < 90 * 60)
        snprintf(text, size, "  %.0f min left", seconds / 60);
    else
        snprintf(text, size, "  %.1f h left", seconds / 3600);
}

char *progress_text(const char *what, double done, double total, double elapsed_s, char *buffer, size_t size)
{
    double fraction = total > 0 ? done / total : 0;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    char left[32] = "";
    if (fraction >= 0.005) /* before that the beginning is all there is to go by */
        format_left(elapsed_s * (1 - fraction) / fraction, left, sizeof left);
    if (total > 0)
        snprintf(buffer, size, "%s  %.0f %%%s", what, fraction * 100, left);
    else
        snprintf(buffer, size, "%s  %.0f", what, done);
    return buffer;
}

void progress_update(void *progress, double done, double total)
{
    struct progress *p = progress;
    if (!p->what)
        return;
    double now = clock_seconds();
    if (now - p->started_s < first_s || now - p->shown_s < between_s)
        return;
    double part_s = now - (p->turned_s > 0 ? p->turned_s : p->started_s);
    char line[160];
    fprintf(p->stream, "\r%s\033[K", progress_text(p->what, done, total, part_s, line, sizeof line));
    fflush(p->stream);
    p->shown_s = now;
    p->visible = true;
}

void progress_end(struct progress *progress)
{
    if (progress->visible)
        fputs("\r\033[K", progress->stream);
    progress->visible = false;
}
