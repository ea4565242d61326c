// SPDX-License-Identifier: Apache-2.0
// The parts of the table of keys, each sorted by name; for core/config only.
#ifndef KRAFT_CONFIG_TABLE_H
#define KRAFT_CONFIG_TABLE_H

#include "core/config/key.h"

extern const struct config_key config__broker_a[], config__broker_i[], config__broker_r[]; // in this order
extern const struct config_key config__topic[], config__group[], config__client_metrics[];
extern const struct config_key config__quota_client[], config__quota_ip[];
extern const size_t config__broker_a_count, config__broker_i_count, config__broker_r_count;
extern const size_t config__topic_count, config__group_count, config__client_metrics_count;
extern const size_t config__quota_client_count, config__quota_ip_count;

#endif
