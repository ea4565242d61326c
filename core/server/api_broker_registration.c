// SPDX-License-Identifier: Apache-2.0
// BrokerRegistration (62): a broker makes itself known; its epoch is the offset of the record.
#include "core/server/controller_api.h"

#include "core/protocol/gen/broker_registration_request.h"
#include "core/protocol/gen/broker_registration_response.h"

CONTROLLER_API_DECIDE_VERSION(broker_registration, controller_register_broker)
CONTROLLER_API_FAIL(broker_registration)
CONTROLLER_API(broker_registration, ACL_CLUSTER_ACTION)

const struct request_api api_broker_registration = {.key = KP_API_BROKER_REGISTRATION,
                                                    .version_min = 0,
                                                    .version_max = 4,
                                                    .advertised_min = 0,
                                                    .flags = REQUEST_CLUSTER_ACTION,

                                                    .on_controller = handle_on_controller};
