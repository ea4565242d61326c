// SPDX-License-Identifier: Apache-2.0
// InitProducerId: an id for an idempotent producer, from the block that the controller gave us (KIP-730).
//
// Transactional ids are refused: there is no transaction coordinator in this release.
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/init_producer_id_request.h"
#include "core/protocol/gen/init_producer_id_response.h"
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/broker.h"

#define VERSION_MAX 5 // version 6 is not stable

static void reply(struct request *rq, int16_t error, int64_t producer_id, int16_t epoch)
{
    struct kp_init_producer_id_response out;
    kp_init_producer_id_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.error_code = error;
    out.producer_id = producer_id;
    out.producer_epoch = epoch;
    REQUEST_REPLY(rq, init_producer_id_response, &out);
}

static void got_id(struct request *rq, int16_t error, int64_t producer_id)
{
    reply(rq, error, error == KE_NONE ? producer_id : -1, error == KE_NONE ? 0 : -1);
}

static void handle(struct request *rq)
{
    struct kp_init_producer_id_request *in = REQUEST_DECODE(rq, init_producer_id_request);
    if (in == NULL) {
        return;
    }
    struct broker *b = request_broker(rq);
    if (!slice_is_null(in->transactional_id)) {
        reply(rq, in->transactional_id.len == 0 ? KE_INVALID_REQUEST : KE_UNSUPPORTED_VERSION, -1, -1);
    } else if (!authorize(rq->ctx, ACL_IDEMPOTENT_WRITE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        reply(rq, KE_CLUSTER_AUTHORIZATION_FAILED, -1, -1);
    } else if (b->ops == NULL || b->ops->next_producer_id == NULL) {
        reply(rq, KE_COORDINATOR_NOT_AVAILABLE, -1, -1);
    } else {
        // An idempotent producer that gives its old id gets a new one: there is nothing to resume.
        b->ops->next_producer_id(b, rq, got_id);
    }
}

const struct request_api api_init_producer_id = {
    .key = KP_API_INIT_PRODUCER_ID, .version_min = 0, .version_max = VERSION_MAX, .on_broker = handle};
