#include "sim/base/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct thread_pool {
    const struct parallel_task *task;
    atomic_llong next;
    atomic_bool stop;
    pthread_mutex_t lock; /* protects status, diags and the callback */
    enum status status;
    struct diags *diags;
};

static void report(struct thread_pool *pool, int64_t i, enum status status, const struct diags *found)
{
    const struct parallel_task *task = pool->task;
    pthread_mutex_lock(&pool->lock);
    if (status != STATUS_OK && pool->status == STATUS_OK) {
        pool->status = status;
        for (size_t k = 0; k < found->n_items; k++)
            diag_error(pool->diags, PLACE_NONE, "%s", found->items[k].text);
    }
    bool go_on = status == STATUS_OK;
    if (go_on && task->finished)
        go_on = task->finished(task->context, i);
    if (!go_on)
        atomic_store(&pool->stop, true);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *data)
{
    struct thread_pool *pool = data;
    const struct parallel_task *task = pool->task;
    int64_t stride = task->stride > 0 ? task->stride : 1;
    while (!atomic_load(&pool->stop)) {
        int64_t i = task->first + stride * atomic_fetch_add(&pool->next, 1);
        if (i >= task->n)
            break;
        if (task->wanted && !task->wanted(task->context, i))
            continue;
        struct diags found = {0};
        enum status status = task->work(task->context, i, &found);
        report(pool, i, status, &found);
        diags_free(&found);
    }
    return NULL;
}

enum status parallel_for(const struct parallel_task *task, struct diags *diags)
{
    enum { MAX_THREADS = 256 };
    pthread_t threads[MAX_THREADS];
    struct thread_pool pool = {.task = task, .diags = diags};
    int n = 0, wanted = task->threads < MAX_THREADS ? task->threads : MAX_THREADS;
    pthread_mutex_init(&pool.lock, NULL);
    while (n + 1 < wanted && pthread_create(&threads[n], NULL, work, &pool) == 0)
        n++;
    work(&pool); /* this thread works as well */
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&pool.lock);
    return pool.status;
}
