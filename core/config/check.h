// SPDX-License-Identifier: Apache-2.0
// Reads and judges single values by their key's type and what it allows.
#ifndef KRAFT_CONFIG_CHECK_H
#define KRAFT_CONFIG_CHECK_H

#include "core/config/key.h"

// Values are trimmed before they are read, as Kafka does. False: not such a value.
bool config_read_bool(struct slice text, bool *out);     // "true", "false", any case
bool config_read_long(struct slice text, int64_t *out);  // decimal, optional sign
bool config_read_double(struct slice text, double *out); // finite
struct slice config_trim(struct slice text);

// Takes the next element off a list "a, b,c"; elements are trimmed, empty ones at the end are skipped. False
// at the end.
bool config_list_next(struct slice *list, struct slice *out);
bool config_list_has(struct slice list, const char *element);

// Judges a value: type, range, allowed words. 0 or ERR_INVALID with a sentence that names key, value and what
// is allowed. `value` null is refused where the key is required.
int config_check(const struct config_key *key, struct slice value, struct errmsg *msg);

#endif
