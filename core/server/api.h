// SPDX-License-Identifier: Apache-2.0
// The served APIs: each is defined in the file of its name, core/server/api_*.c.
#ifndef KRAFT_SERVER_API_H
#define KRAFT_SERVER_API_H

#include "core/server/request.h"

extern const struct request_api api_api_versions;
extern const struct request_api api_describe_cluster;
extern const struct request_api api_fetch;
extern const struct request_api api_metadata;
extern const struct request_api api_produce;

#endif
