// SPDX-License-Identifier: Apache-2.0
// ControllerRegistration (70): a controller makes its endpoints and features known (KIP-919).
#include "core/server/controller_api.h"

#include "core/protocol/gen/controller_registration_request.h"
#include "core/protocol/gen/controller_registration_response.h"

CONTROLLER_API_DECIDE(controller_registration, controller_register_controller)
CONTROLLER_API_FAIL(controller_registration)
CONTROLLER_API(controller_registration, ACL_CLUSTER_ACTION)

const struct request_api api_controller_registration = {.key = KP_API_CONTROLLER_REGISTRATION,
                                                        .version_min = 0,
                                                        .version_max = 0,
                                                        .advertised_min = 0,
                                                        .flags = REQUEST_CLUSTER_ACTION,

                                                        .on_controller = handle_on_controller};
