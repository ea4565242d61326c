// SPDX-License-Identifier: Apache-2.0
// From the error codes of the rooms below to the error codes of the Kafka protocol.
#ifndef KRAFT_SERVER_ERROR_MAP_H
#define KRAFT_SERVER_ERROR_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/err.h"
#include "core/protocol/gen/errors.h"
#include "core/record/validate.h"
#include "storage/producer_state.h"

enum kafka_error error_map(int err);                                // ERR_ code; 0 gives KE_NONE
enum kafka_error error_map_validate(enum validate_verdict verdict); // outcome of a batch's checks
enum kafka_error
error_map_producer(enum producer_verdict verdict); // PRODUCER_OK and PRODUCER_DUPLICATE give KE_NONE

// Does Kafka tell the log start offset with this error of a Produce answer? (else -1)
bool error_map_tells_log_start(int16_t error);

#endif
