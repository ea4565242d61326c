// SPDX-License-Identifier: Apache-2.0
// The one lock: held for short critical sections, never across a callback, a message or an fsync.
//
// There is no condition variable outside net/: waiting is posting. Lock order is written down in
// docs/architecture.md.
#ifndef KRAFT_BASE_MUTEX_H
#define KRAFT_BASE_MUTEX_H

#include <pthread.h>

struct mutex {
    pthread_mutex_t m;
};
static inline void mutex_init(struct mutex *m)
{
    (void)pthread_mutex_init(&m->m, NULL);
}
static inline void mutex_fini(struct mutex *m)
{
    (void)pthread_mutex_destroy(&m->m);
}
static inline void mutex_lock(struct mutex *m)
{
    (void)pthread_mutex_lock(&m->m);
}
static inline void mutex_unlock(struct mutex *m)
{
    (void)pthread_mutex_unlock(&m->m);
}

#endif
