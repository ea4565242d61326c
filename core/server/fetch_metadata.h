// SPDX-License-Identifier: Apache-2.0
// Fetch on the controller listener: committed batches of the metadata log, for brokers and stock tools.
#ifndef KRAFT_SERVER_FETCH_METADATA_H
#define KRAFT_SERVER_FETCH_METADATA_H

#include "core/server/request.h"

void fetch_metadata_handle(struct request *rq); // `on_controller` of Fetch

#endif
