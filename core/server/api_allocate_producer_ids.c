// SPDX-License-Identifier: Apache-2.0
// AllocateProducerIds (67): hands a block of producer ids to a broker (KIP-730).
#include "core/server/controller_api.h"

#include "core/protocol/gen/allocate_producer_ids_request.h"
#include "core/protocol/gen/allocate_producer_ids_response.h"

CONTROLLER_API_DECIDE(allocate_producer_ids, controller_allocate_producer_ids)
CONTROLLER_API_FAIL(allocate_producer_ids)
CONTROLLER_API(allocate_producer_ids, ACL_CLUSTER_ACTION)

const struct request_api api_allocate_producer_ids = {.key = KP_API_ALLOCATE_PRODUCER_IDS,
                                                      .version_min = 0,
                                                      .version_max = 0,
                                                      .advertised_min = 0,
                                                      .flags = REQUEST_CLUSTER_ACTION,

                                                      .on_controller = handle_on_controller};
