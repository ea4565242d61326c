// SPDX-License-Identifier: Apache-2.0
// Heartbeat sessions of the registered brokers, as the active controller sees them.
//
// Not replicated: a controller that becomes active starts an empty table, in which every broker counts as
// heard of at that moment. Belongs to the controller loop.
#ifndef KRAFT_CONTROLLER_SESSIONS_H
#define KRAFT_CONTROLLER_SESSIONS_H

#include "core/base/hmap.h"
#include "core/base/types.h"

struct controller_session {
    broker_id id;               // whose
    broker_epoch epoch;         // registration that it belongs to
    mono_us heard;              // time of the last valid heartbeat (or of the table's start)
    log_offset metadata_offset; // what the broker has replayed, from its heartbeats; -1 not heard yet
    bool gone; // its process is known to be dead: no session, however recent the last heartbeat
    log_offset
        shutdown_offset; // offset that all active brokers must have replayed before it may stop; -1 none
};
struct controller_sessions {
    struct hmap by_id; // broker id -> struct controller_session
    mono_us started;   // when this controller became active
    bool repair;       // elections may be left over: the next tick looks for them
};

void controller_sessions_init(struct controller_sessions *s, mono_us now);
void controller_sessions_fini(struct controller_sessions *s);
// Forgets all and starts at zero idle time: on becoming active.
void controller_sessions_reset(struct controller_sessions *s, mono_us now);
// The session of a broker's registration; made, as heard of when the table started, where there is none or it
// is an older one's.
struct controller_session *controller_session_of(struct controller_sessions *s, broker_id id,
                                                 broker_epoch epoch);
// Whether the broker has been heard of within the timeout and is not known to be gone.
bool controller_session_valid(struct controller_sessions *s, broker_id id, broker_epoch epoch, mono_us now,
                              uint32_t timeout_ms);
void controller_session_forget(struct controller_sessions *s, broker_id id);

#endif
