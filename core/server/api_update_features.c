// SPDX-License-Identifier: Apache-2.0
// UpdateFeatures (57): raises or lowers finalized feature levels (KIP-584).
#include "core/server/controller_api.h"

#include "core/protocol/gen/update_features_request.h"
#include "core/protocol/gen/update_features_response.h"

CONTROLLER_API_DECIDE_VERSION(update_features, controller_update_features)
CONTROLLER_API_FAIL(update_features)
CONTROLLER_API(update_features, ACL_ALTER)

const struct request_api api_update_features = {.key = KP_API_UPDATE_FEATURES,
                                                .version_min = 0,
                                                .version_max = 2,
                                                .advertised_min = 0,
                                                .on_broker = forward_handler,
                                                .on_controller = handle_on_controller};
