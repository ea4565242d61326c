// SPDX-License-Identifier: Apache-2.0
// Worker pools: threads for jobs that block. The only condition variables of the project are here and in
// node.c.
#include "net/world.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

struct node_pool *node_pool_create(struct node *n, const char *name, unsigned threads)
{
    MUST(threads > 0);
    struct node_pool *p = mem_zalloc(sizeof *p);
    p->node = n;
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    p->threads_max = threads;
    p->ids = mem_calloc(threads, sizeof *p->ids);
    p->end = &p->head;
    (void)pthread_mutex_init(&p->mutex, NULL);
    (void)pthread_cond_init(&p->work, NULL);
    pthread_mutex_lock(&n->mutex);
    list_add_tail(&n->pools, &p->link);
    pthread_mutex_unlock(&n->mutex);
    return p;
}

static void job_finish(struct node_job *j)
{
    struct node_loop *l = j->loop;
    struct node_job *head = atomic_load(&l->jobs_done);
    do
        j->next = head;
    while (!atomic_compare_exchange_weak(&l->jobs_done, &head, j));
    loop_wake(l);
}

static void *pool_main(void *arg)
{
    struct node_pool *p = arg;
    (void)pthread_setname_np(pthread_self(), p->name);
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        struct node_job *j = p->head;
        if (!j) {
            if (p->stopping)
                break;
            p->idle++;
            pthread_cond_wait(&p->work, &p->mutex);
            p->idle--;
            continue;
        }
        p->head = j->next;
        if (!p->head)
            p->end = &p->head;
        pthread_mutex_unlock(&p->mutex);
        bool has_done = j->done != NULL;
        j->work(j);
        if (has_done)
            job_finish(j);
        else
            net_pending_add(p->node, -1); // `j` may be gone
        pthread_mutex_lock(&p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

void node_pool_run(struct node_pool *p, struct node_job *j)
{
    MUST(!j->done || j->loop);
    net_pending_add(p->node, 1);
    j->next = NULL;
    pthread_mutex_lock(&p->mutex);
    *p->end = j;
    p->end = &j->next;
    int err = 0;
    if (p->idle == 0 && p->threads < p->threads_max) {
        err = pthread_create(&p->ids[p->threads], NULL, pool_main, p);
        if (!err)
            p->threads++;
    } else {
        pthread_cond_signal(&p->work);
    }
    bool none = p->threads == 0;
    pthread_mutex_unlock(&p->mutex);
    if (err && none)
        node_stop(p->node, "cannot start a thread: %s", strerror(err));
}

void pool_stop_join(struct node_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
    for (unsigned i = 0; i < p->threads; i++)
        pthread_join(p->ids[i], NULL);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_mutex_destroy(&p->mutex);
    mem_free(p->ids);
    mem_free(p);
}
