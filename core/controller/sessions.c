// SPDX-License-Identifier: Apache-2.0
// The table of heartbeat sessions.
#include "core/controller/sessions.h"

#include "core/base/mem.h"

void controller_sessions_init(struct controller_sessions *s, mono_us now)
{
    hmap_init(&s->by_id, HMAP_U64);
    s->started = now;
}

void controller_sessions_reset(struct controller_sessions *s, mono_us now)
{
    size_t at = 0;
    for (const struct hmap_slot *slot; (slot = hmap_next(&s->by_id, &at)) != NULL;)
        mem_free(slot->value);
    hmap_clear(&s->by_id);
    s->started = now;
}

void controller_sessions_fini(struct controller_sessions *s)
{
    controller_sessions_reset(s, 0);
    hmap_fini(&s->by_id);
}

struct controller_session *controller_session_of(struct controller_sessions *s, broker_id id,
                                                 broker_epoch epoch)
{
    struct controller_session *session = hmap_get_u64(&s->by_id, (uint32_t)id);
    if (!session) {
        session = mem_zalloc(sizeof *session);
        session->epoch = -1;
        (void)hmap_put_u64(&s->by_id, (uint32_t)id, session);
    }
    if (session->epoch != epoch)
        *session = (struct controller_session){
            .id = id, .epoch = epoch, .heard = s->started, .metadata_offset = -1, .shutdown_offset = -1};
    return session;
}

bool controller_session_valid(struct controller_sessions *s, broker_id id, broker_epoch epoch, mono_us now,
                              uint32_t timeout_ms)
{
    const struct controller_session *session = controller_session_of(s, id, epoch);
    return !session->gone && (now < session->heard || now - session->heard < (mono_us)timeout_ms * 1000);
}

void controller_session_forget(struct controller_sessions *s, broker_id id)
{
    mem_free(hmap_remove_u64(&s->by_id, (uint32_t)id));
}
