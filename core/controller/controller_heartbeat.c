// SPDX-License-Identifier: Apache-2.0
// Heartbeats: how a broker goes from fenced to unfenced, into controlled shutdown and out; expiry of
// sessions.
//
//                    wants no fence, has its own registration
//        FENCED  ------------------------------------------------>  UNFENCED
//          |  ^                wants fence, or silent                   |
//          |  +---------------------------------------------------------+
//          | wants to stop                       wants to stop, leads partitions
//          v                                                            v
//     SHUTDOWN_NOW  <--------------------------------------  CONTROLLED_SHUTDOWN
//       (fenced)      leads nothing, and every active broker has
//                     replayed what moved its leaders
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/broker_heartbeat_request.h"
#include "core/protocol/gen/broker_heartbeat_response.h"

enum state { FENCED, UNFENCED, CONTROLLED_SHUTDOWN, SHUTDOWN_NOW };

static enum state state_of(const struct image_broker *b)
{
    if (b->fenced)
        return FENCED;
    return b->in_controlled_shutdown ? CONTROLLED_SHUTDOWN : UNFENCED;
}

// The least that an active broker is known to have replayed; none active: everything.
static log_offset lowest_active_offset(struct controller *c)
{
    log_offset lowest = INT64_MAX;
    for (const struct image_broker *b = NULL; (b = image_broker_next(c->image, b)) != NULL;) {
        if (!image_broker_active(b))
            continue;
        log_offset offset = controller_session_of(c->sessions, b->id, b->epoch)->metadata_offset;
        lowest = offset < lowest ? offset : lowest;
    }
    return lowest;
}

static enum state next_state(struct controller *c, const struct image_broker *b,
                             const struct kp_broker_heartbeat_request *in,
                             const struct controller_session *session)
{
    bool leads = image_set_count(c->image, IMAGE_SET_LEADER, b->id) > 0;
    switch (state_of(b)) {
    case FENCED:
        if (in->want_shut_down)
            return SHUTDOWN_NOW;
        // A process that has begun to stop does not come back: only a new registration does.
        return !in->want_fence && !b->in_controlled_shutdown && in->current_metadata_offset >= b->epoch
                   ? UNFENCED
                   : FENCED;
    case UNFENCED:
        if (in->want_fence)
            return in->want_shut_down ? SHUTDOWN_NOW : FENCED;
        if (!in->want_shut_down)
            return UNFENCED;
        return leads ? CONTROLLED_SHUTDOWN : SHUTDOWN_NOW;
    case CONTROLLED_SHUTDOWN:
        return !leads && session->shutdown_offset <= lowest_active_offset(c) ? SHUTDOWN_NOW
                                                                             : CONTROLLED_SHUTDOWN;
    case SHUTDOWN_NOW:
        break;
    }
    return SHUTDOWN_NOW;
}

static struct kp_broker_registration_change_record *
change_record(struct controller *c, const struct image_broker *b, struct record_list *records)
{
    struct kp_broker_registration_change_record *r =
        &record_list_add(records, METADATA_BROKER_REGISTRATION_CHANGE, controller__mv(c)->registration_change)
             ->body.broker_registration_change;
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    return r;
}

// Moves leaders and ISRs away, then fences. False: one batch did not hold it all, the fence comes with a
// later one.
static bool fence(struct controller *c, const struct image_broker *b, struct record_list *records)
{
    controller__remove_from_isrs(c, b->id, false, records);
    if (records->count + 1 >= CONTROLLER_RECORDS_MAX)
        return false;
    change_record(c, b, records)->fenced = 1;
    return true;
}

static enum state enter(struct controller *c, const struct image_broker *b, enum state next,
                        struct controller_session *session, struct record_list *records)
{
    switch (next) {
    case UNFENCED:
        change_record(c, b, records)->fenced = -1;
        controller__elect_leaderless(c, b->id, records);
        break;
    case CONTROLLED_SHUTDOWN:
        if (!b->in_controlled_shutdown)
            change_record(c, b, records)->in_controlled_shutdown = 1;
        controller__remove_from_isrs(c, b->id, false, records);
        if (records->count > 0)
            session->shutdown_offset = c->next_offset + records->count - 1;
        break;
    case FENCED:
    case SHUTDOWN_NOW:
        if (!b->fenced && !fence(c, b, records))
            return state_of(b);
        break;
    }
    return next;
}

static bool listed(const struct uuid *ids, int32_t count, struct uuid id)
{
    for (int32_t i = 0; i < count; i++)
        if (uuid_equal(ids[i], id))
            return true;
    return false;
}

// Directories that the broker reports as failed: they leave its registration, and it leaves the ISRs of what
// lies there.
static void offline_dirs(struct controller *c, const struct image_broker *b,
                         const struct kp_broker_heartbeat_request *in, struct record_list *records)
{
    struct uuid *left = arena_alloc(c->arena, (size_t)b->log_dirs_count * sizeof *left + 1);
    struct uuid *lost = arena_alloc(c->arena, (size_t)b->log_dirs_count * sizeof *lost + 1);
    int32_t left_count = 0, lost_count = 0;
    for (int32_t i = 0; i < b->log_dirs_count; i++) {
        if (listed(in->offline_log_dirs, in->offline_log_dirs_count, b->log_dirs[i]))
            lost[lost_count++] = b->log_dirs[i];
        else
            left[left_count++] = b->log_dirs[i];
    }
    if (lost_count == 0 || left_count == 0 || controller__mv(c)->registration_change < 2)
        return; // a broker without any directory stops by itself
    controller__leave_directories(c, b->id, lost, lost_count, records);
    if (records->count + 1 >= CONTROLLER_RECORDS_MAX)
        return;
    struct kp_broker_registration_change_record *r = change_record(c, b, records);
    r->log_dirs = left;
    r->log_dirs_count = left_count;
}

static void cordoned_dirs(struct controller *c, const struct image_broker *b,
                          const struct kp_broker_heartbeat_request *in, struct record_list *records)
{
    if (in->cordoned_log_dirs_count < 0 || controller__mv(c)->registration_change < 3)
        return;
    bool same = in->cordoned_log_dirs_count == b->cordoned_dirs_count;
    for (int32_t i = 0; same && i < b->cordoned_dirs_count; i++)
        same = listed(in->cordoned_log_dirs, in->cordoned_log_dirs_count, b->cordoned_dirs[i]);
    if (same)
        return;
    struct kp_broker_registration_change_record *r = change_record(c, b, records);
    r->cordoned_log_dirs = in->cordoned_log_dirs_count ? in->cordoned_log_dirs : arena_alloc(c->arena, 1);
    r->cordoned_log_dirs_count = in->cordoned_log_dirs_count;
}

void controller_broker_heartbeat(struct controller *c, const struct kp_broker_heartbeat_request *in,
                                 struct kp_broker_heartbeat_response *out, struct record_list *records)
{
    kp_broker_heartbeat_response_init(out);
    enum kafka_error err = controller__check_epoch(c, in->broker_id, in->broker_epoch);
    if (err != KE_NONE) {
        out->error_code = (int16_t)err;
        return;
    }
    const struct image_broker *b = image_broker(c->image, in->broker_id);
    struct controller_session *session = controller_session_of(c->sessions, b->id, b->epoch);
    session->heard = c->now;
    session->gone = false;
    session->metadata_offset = in->current_metadata_offset;
    enum state now = state_of(b), next = next_state(c, b, in, session);
    if (next != now || now == CONTROLLED_SHUTDOWN)
        next = enter(c, b, next, session, records);
    struct stage stage;
    controller__stage_begin(c, &stage, records);
    stage.replayed = 0; // what follows must see what was just decided
    controller__staged(c, &stage, records);
    offline_dirs(c, image_broker(c->image, in->broker_id), in, records);
    controller__staged(c, &stage, records);
    cordoned_dirs(c, image_broker(c->image, in->broker_id), in, records);
    out->is_caught_up = in->current_metadata_offset >= in->broker_epoch;
    controller__stage_end(c, &stage);
    out->is_fenced = next == FENCED || next == SHUTDOWN_NOW;
    out->should_shut_down = next == SHUTDOWN_NOW;
}

void controller_expire_sessions(struct controller *c, struct record_list *records)
{
    struct stage stage;
    controller__stage_begin(c, &stage, records);
    if (c->sessions->repair) {
        c->sessions->repair = false;
        controller__elect_leaderless(c, LEADER_NONE, records);
        controller__staged(c, &stage, records);
    }
    struct image_broker before = {.id =
                                      -1}; // the last one looked at: where it was may be gone with its image
    const struct image_broker *b;
    while (records->count + 1 < CONTROLLER_RECORDS_MAX &&
           (b = image_broker_next(c->image, &before)) != NULL) {
        before.id = b->id;
        if (b->fenced ||
            controller_session_valid(c->sessions, b->id, b->epoch, c->now, c->opts->session_timeout_ms))
            continue;
        (void)fence(c, b, records);
        controller__staged(c, &stage, records);
    }
    controller__stage_end(c, &stage);
}

void controller_fence_gone_broker(struct controller *c, broker_id id, broker_epoch epoch,
                                  struct record_list *records)
{
    const struct image_broker *b = image_broker(c->image, id);
    if (!b || b->epoch != epoch)
        return;
    controller_session_of(c->sessions, id, epoch)->gone = true;
    if (!b->fenced)
        (void)fence(c, b, records);
}
