// SPDX-License-Identifier: Apache-2.0
// Feature levels: what each metadata.version allows in records, and the levels, dependencies and defaults of
// all features.
//
// A record is never written at a version above what the finalized metadata.version allows.
#ifndef KRAFT_METADATA_METADATA_VERSION_H
#define KRAFT_METADATA_METADATA_VERSION_H

#include "core/base/slice.h"
#include "core/base/types.h"

#define METADATA_VERSION_MIN 7      // 3.3-IV3
#define METADATA_VERSION_MAX 33     // 4.4-IV2
#define METADATA_VERSION_DEFAULT 33 // what a cluster is formatted at

// First level at which something exists.
#define METADATA_VERSION_SCRAM 11                   // 3.5-IV2
#define METADATA_VERSION_NO_EPOCH_BUMP_ON_SHRINK 12 // 3.6-IV0
#define METADATA_VERSION_TRANSACTIONS 13            // 3.6-IV1
#define METADATA_VERSION_TOKENS 14                  // 3.6-IV2
#define METADATA_VERSION_CONTROLLERS 15             // 3.7-IV0: controller registration
#define METADATA_VERSION_DIRECTORIES 17             // 3.7-IV2
#define METADATA_VERSION_ELR 23                     // 4.0-IV1: records with ELR fields
#define METADATA_VERSION_CORDONED 30                // 4.3-IV0
#define METADATA_VERSION_UNREGISTER_CONTROLLER 33   // 4.4-IV2

struct metadata_version {
    int16_t level;               // feature level
    const char *name;            // "4.4-IV2"
    bool changes_metadata;       // a downgrade across it could lose fields
    int16_t register_broker;     // version of RegisterBrokerRecord
    int16_t registration_change; // version of BrokerRegistrationChangeRecord
    int16_t partition;           // version of PartitionRecord
    int16_t partition_change;    // version of PartitionChangeRecord
    int16_t fetch;               // version of Fetch that nodes use among themselves
    int16_t list_offsets;        // version of ListOffsets "
};
// The level's row; NULL for a level that does not exist.
const struct metadata_version *metadata_version_of(int16_t level);
// The row to write records by: that of `level`, or of the lowest version where none is finalized yet (0).
const struct metadata_version *metadata_version_writing(int16_t level);
// Reads "4.4-IV2", or "4.4" for the newest level of a release; 0: there is no such version.
int16_t metadata_version_parse(struct slice text);

// A feature that this release knows.
struct feature_level {
    const char *name;       // "group.version"
    int16_t level;          // one level of it
    int16_t bootstrap;      // metadata.version from which a new cluster has this level by default
    int16_t needs_metadata; // lowest metadata.version that allows it; 0: any
};
struct feature_range {
    const char *name; // feature
    int16_t min, max; // levels that this release supports
};
// All features, metadata.version and kraft.version included, sorted by name. Constant.
const struct feature_range *feature_ranges(int32_t *count);
// The range of one feature; NULL: unknown.
const struct feature_range *feature_range_of(struct slice name);
// Dependencies and default of a level of a feature other than metadata.version; NULL: no such level.
const struct feature_level *feature_level_of(struct slice name, int16_t level);
// Level that a new cluster of `metadata_version` has by default; 0: none.
int16_t feature_default(struct slice name, int16_t metadata_version);

#endif
