// SPDX-License-Identifier: Apache-2.0
// AllocateProducerIds: blocks of producer ids for brokers, each id once for ever.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/allocate_producer_ids_request.h"
#include "core/protocol/gen/allocate_producer_ids_response.h"

void controller_allocate_producer_ids(struct controller *c, const struct kp_allocate_producer_ids_request *in,
                                      struct kp_allocate_producer_ids_response *out,
                                      struct record_list *records)
{
    kp_allocate_producer_ids_response_init(out);
    enum kafka_error err = controller__check_epoch(c, in->broker_id, in->broker_epoch);
    int64_t start = image_next_producer_id(c->image);
    if (err == KE_NONE && start > INT64_MAX - CONTROLLER_PRODUCER_IDS_BLOCK)
        err = KE_UNKNOWN_SERVER_ERROR; // 2^63 ids are used up
    out->error_code = (int16_t)err;
    if (err != KE_NONE)
        return;
    struct kp_producer_ids_record *r = &record_list_add(records, METADATA_PRODUCER_IDS, 0)->body.producer_ids;
    r->broker_id = in->broker_id;
    r->broker_epoch = in->broker_epoch;
    r->next_producer_id = start + CONTROLLER_PRODUCER_IDS_BLOCK;
    out->producer_id_start = start;
    out->producer_id_len = CONTROLLER_PRODUCER_IDS_BLOCK;
}
