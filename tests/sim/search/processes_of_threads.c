#include "tests/sim/search/processes_of_threads.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct play {
    int n;
    pthread_barrier_t all;
    const void *given[PLAYED_MAX];
    void (*work)(void *context, const struct processes *processes);
    void *context;
};

struct player {
    struct play *play;
    int rank;
};

static void gather(void *context, const void *own, size_t bytes, void *all)
{
    struct player *player = context;
    struct play *play = player->play;
    play->given[player->rank] = own;
    pthread_barrier_wait(&play->all);
    for (int r = 0; r < play->n; r++)
        memcpy((char *)all + (size_t)r * bytes, play->given[r], bytes);
    pthread_barrier_wait(&play->all);
}

static void sum(void *context, int64_t *words, size_t n)
{
    struct player *player = context;
    int64_t *all = calloc((size_t)player->play->n * n + 1, sizeof *all);
    gather(context, words, n * sizeof *words, all);
    for (size_t i = 0; i < n; i++) {
        words[i] = 0;
        for (int r = 0; r < player->play->n; r++)
            words[i] += all[(size_t)r * n + i];
    }
    free(all);
}

static void broadcast(void *context, void *bytes, size_t n)
{
    struct player *player = context;
    char *all = calloc((size_t)player->play->n * n + 1, 1);
    gather(context, bytes, n, all);
    memcpy(bytes, all, n);
    free(all);
}

static void *play_one(void *context)
{
    struct player *player = context;
    const struct processes processes = {
        .rank = player->rank, .size = player->play->n, .context = player, .sum = sum, .gather = gather, .broadcast = broadcast};
    player->play->work(player->play->context, &processes);
    return NULL;
}

void play_processes(int n, void (*work)(void *context, const struct processes *processes), void *context)
{
    struct play play = {.n = n, .work = work, .context = context};
    struct player players[PLAYED_MAX];
    pthread_t threads[PLAYED_MAX];
    ck_assert_int_eq(pthread_barrier_init(&play.all, NULL, (unsigned)n), 0);
    for (int r = 0; r < n; r++) {
        players[r] = (struct player){&play, r};
        ck_assert_int_eq(pthread_create(&threads[r], NULL, play_one, &players[r]), 0);
    }
    for (int r = 0; r < n; r++)
        pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&play.all);
}
