// SPDX-License-Identifier: Apache-2.0
// One image read, hashed, compared and released by four threads while a fifth makes the next ones; for the
// thread sanitizer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <stdatomic.h>

#include "core/base/mutex.h"
#include "core/metadata/delta.h"
#include "core/metadata/metadata_version.h"
#include "tests/unit/core/metadata/history.h"

#define READERS 4
#define IMAGES 400

struct shared {
    struct mutex lock;       // guards `newest`
    struct image *newest;    // published image; owned
    atomic_bool done;        // no more images come
    atomic_uint comparisons; // of all readers
};

static struct image *take(struct shared *s)
{
    mutex_lock(&s->lock);
    struct image *img = image_ref(s->newest);
    mutex_unlock(&s->lock);
    return img;
}

static void *reader(void *data)
{
    struct shared *s = data;
    struct arena arena;
    arena_init(&arena);
    struct image *last = take(s);
    while (!atomic_load(&s->done)) {
        struct image *img = take(s);
        struct image_delta d;
        image_diff(last, img, &arena, &d);
        struct image_hash a = image_hash_of(img), b = image_hash_of(img);
        if (a.low != b.low || a.high != b.high)
            abort();
        struct image_walk w = {0};
        while (image_walk_next(img, IMAGE_SET_ISR, 1, &w))
            if (!partition_in_isr(w.partition, 1))
                abort();
        arena_reset(&arena);
        image_unref(last);
        last = img;
        atomic_fetch_add(&s->comparisons, 1);
    }
    image_unref(last);
    arena_fini(&arena);
    return NULL;
}

static void readers_never_see_a_change(void **state)
{
    (void)state;
    struct history h;
    history_init(&h, 3);
    assert_int_equal(history_feature(&h, FEATURE_METADATA_VERSION, METADATA_VERSION_MAX), 0);
    struct shared s = {.newest = image_ref(h.img)};
    mutex_init(&s.lock);
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, &s), 0);
    for (int i = 0; i < IMAGES || atomic_load(&s.comparisons) < READERS * 10; i++) {
        for (int step = 0; step < 10; step++)
            (void)history_step(&h);
        mutex_lock(&s.lock);
        image_unref(s.newest);
        s.newest = image_ref(h.img);
        mutex_unlock(&s.lock);
    }
    atomic_store(&s.done, true);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    image_unref(s.newest);
    mutex_fini(&s.lock);
    history_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_never_see_a_change)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
