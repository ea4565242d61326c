// SPDX-License-Identifier: Apache-2.0
// The broker half: makes its parts, publishes images to its loops.
#include "core/server/broker.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/metadata/delta.h"
#include "core/server/data_plane.h"
#include "core/server/fetch_session.h"
#include "core/server/replica_manager.h"

static void take_image(struct node_task *t)
{
    struct broker_loop *l =
        (struct broker_loop *)(void *)((char *)t - offsetof(struct broker_loop, image_task));
    atomic_store(&l->image_task_posted, false);
    const struct image *newest = broker_image(l->broker);
    image_unref(l->image);
    l->image = newest;
}

const struct image *broker_image(struct broker *b)
{
    mutex_lock(&b->image_lock);
    const struct image *image = b->image != NULL ? image_ref(b->image) : NULL;
    mutex_unlock(&b->image_lock);
    return image;
}

void broker_publish(struct broker *b, const struct image *image, const struct image_delta *delta)
{
    // Partitions first: a loop that sees a partition in its image finds it.
    replica_manager_apply(b->replicas, image, delta);
    mutex_lock(&b->image_lock);
    const struct image *old = b->image;
    b->image = image_ref(image);
    mutex_unlock(&b->image_lock);
    image_unref(old);
    for (unsigned i = 0; i < b->loops_count; i++) {
        if (!atomic_exchange(&b->loops[i].image_task_posted, true)) {
            node_loop_post(b->loops[i].requests.loop, &b->loops[i].image_task);
        }
    }
}

int broker_init(struct broker *b, struct node_loop *const *loops, unsigned loops_count, struct errmsg *msg)
{
    MUST(loops_count > 0);
    b->magic = BROKER_MAGIC;
    atomic_store(&b->epoch, -1);
    mutex_init(&b->image_lock);
    b->image = image_empty();
    b->loops_count = loops_count;
    b->loops = mem_calloc(loops_count, sizeof *b->loops);
    for (unsigned i = 0; i < loops_count; i++) {
        struct broker_loop *l = &b->loops[i];
        l->broker = b;
        l->index = i;
        l->image = image_ref(b->image);
        l->image_task.run = take_image;
        l->requests.loop = loops[i];
        l->data = data_plane_create(l); // its hook makes replies: before the one that sends them
        request_loop_init(&l->requests, loops[i], l, b->log);
    }
    b->sessions = fetch_sessions_create(b->settings.fetch_sessions_max);
    return replica_manager_open(b, &b->replicas, msg);
}

static void start_upkeep(struct node_task *t)
{
    struct broker *b = (struct broker *)(void *)((char *)t - offsetof(struct broker, upkeep_task));
    replica_manager_start_upkeep(b->replicas);
}

static void stop_upkeep(struct node_task *t)
{
    struct broker *b = (struct broker *)(void *)((char *)t - offsetof(struct broker, upkeep_task));
    replica_manager_stop_upkeep(b->replicas);
}

void broker_start(struct broker *b)
{
    b->upkeep_task.run = start_upkeep;
    node_loop_post(b->loops[0].requests.loop, &b->upkeep_task);
}

void broker_stop(struct broker *b)
{
    b->upkeep_task.run = stop_upkeep;
    node_loop_post(b->loops[0].requests.loop, &b->upkeep_task);
}

void broker_fini(struct broker *b)
{
    MUST(b->magic == BROKER_MAGIC);
    struct errmsg why = {""};
    if (b->replicas != NULL && replica_manager_close(b->replicas, atomic_load(&b->epoch), &why) != 0) {
        log_error(b->log, "log", "the logs could not be closed cleanly", "reason=%s", why.text);
    }
    fetch_sessions_destroy(b->sessions);
    for (unsigned i = 0; i < b->loops_count; i++) {
        data_plane_destroy(b->loops[i].data);
        request_loop_fini(&b->loops[i].requests);
        image_unref(b->loops[i].image);
    }
    mem_free(b->loops);
    image_unref(b->image);
    mutex_fini(&b->image_lock);
    b->magic = 0;
}
