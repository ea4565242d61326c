// SPDX-License-Identifier: Apache-2.0
// The cluster image: all that the metadata log says up to one offset, as an immutable counted value.
//
// An image never changes once it is made. Any thread may read one it holds a reference to, without a lock,
// and everything reached from it (topics, partitions, brokers, slices) lives as long as that reference. Image
// N+1 shares with image N whatever did not change. State changes only by replay of records through a builder
// (core/metadata/replay.h).
#ifndef KRAFT_METADATA_IMAGE_H
#define KRAFT_METADATA_IMAGE_H

#include <stdatomic.h>
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/base/uuid.h"

struct image;       // one version of the cluster's metadata
struct image_topic; // one topic with its partitions

// ---- life
// ----------------------------------------------------------------------------------------------------
struct image *image_empty(void); // offset -1, epoch -1, nothing in it; one reference, the caller's
struct image *image_ref(const struct image *img); // one more reference; any thread
void image_unref(
    const struct image *img); // any thread; NULL is allowed; the last one frees what is not shared

log_offset image_offset(const struct image *img);  // offset of the last record it contains; -1: none
leader_epoch image_epoch(const struct image *img); // epoch of that record's batch; -1: none

// The image that readers may see: `img` itself, or, while a metadata transaction (KIP-868) is open in it, the
// image from before the transaction began. Borrowed: lives as long as `img`.
const struct image *image_visible(const struct image *img);
bool image_in_transaction(const struct image *img);

// ---- brokers and controllers
// ---------------------------------------------------------------------------------
struct image_endpoint {
    struct slice name;         // listener name
    struct slice host;         // host that clients dial
    uint16_t port;             // port that clients dial
    int16_t security_protocol; // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
};

struct image_feature_range {
    struct slice name; // feature
    int16_t min;       // lowest level that the node supports
    int16_t max;       // highest level that the node supports
};

struct image_broker {
    atomic_uint refs;                           // images that share it
    broker_id id;                               // node.id
    broker_epoch epoch;                         // offset of its RegisterBrokerRecord
    struct uuid incarnation;                    // new at every start of the process
    struct slice rack;                          // broker.rack; null = none
    const struct image_endpoint *endpoints;     // advertised listeners
    const struct image_feature_range *features; // what it supports, sorted by name
    const struct uuid *log_dirs;                // ids of its online log directories, sorted
    const struct uuid *cordoned_dirs;           // ids that take no new replica, sorted
    int32_t endpoints_count, features_count, log_dirs_count, cordoned_dirs_count;
    bool fenced;                 // may not lead, not in any ISR, not shown to clients
    bool in_controlled_shutdown; // is handing over its leaderships
    bool migrating;              // IsMigratingZkBroker, kept for what reads our log
};

struct image_controller {
    atomic_uint refs;                           // images that share it
    node_id id;                                 // node.id
    struct uuid incarnation;                    // new at every start of the process
    const struct image_endpoint *endpoints;     // controller listeners
    const struct image_feature_range *features; // what it supports, sorted by name
    int32_t endpoints_count, features_count;
    bool zk_migration_ready; // kept for what reads our log
};

const struct image_broker *image_broker(const struct image *img, broker_id id); // NULL: not registered
// Walks in order of id: pass NULL first, then the last answer; NULL at the end.
const struct image_broker *image_broker_next(const struct image *img, const struct image_broker *after);
int32_t image_broker_count(const struct image *img);
bool image_broker_active(
    const struct image_broker *b); // registered (not NULL), unfenced, not in controlled shutdown
// Whether directory `dir` of the broker is usable: listed as online, or one of the reserved ids other than
// "lost". A broker that registered without directories has every directory.
bool image_broker_dir_online(const struct image_broker *b, struct uuid dir);

const struct image_controller *image_controller(const struct image *img, node_id id); // NULL: not registered
const struct image_controller *image_controller_next(const struct image *img,
                                                     const struct image_controller *after);

// ---- topics and partitions
// -----------------------------------------------------------------------------------
#define LEADER_NONE (-1)      // no leader
#define LEADER_NO_CHANGE (-2) // in a PartitionChangeRecord: leader stays, leader epoch stays
#define RECOVERY_RECOVERED 0  // LeaderRecoveryState: leader was in sync when elected
#define RECOVERY_RECOVERING 1 // elected uncleanly, has not yet reported that it recovered
#define IMAGE_REPLICAS_MAX                                                                                   \
    1000 // most replicas that a partition record may list; more is refused as senseless

// Directories of a partition's replicas (KIP-858): one for each, or all the same reserved id, which takes no
// room.
enum partition_dirs {
    PARTITION_DIRS_STORED,     // listed
    PARTITION_DIRS_MIGRATING,  // all UUID_DIR_MIGRATING (written before directories were known)
    PARTITION_DIRS_UNASSIGNED, // all UUID_DIR_UNASSIGNED
};

// One partition, packed: the lists follow in `ids` (replicas, ISR, removing, adding, ELR, last known ELR),
// then the directories at 16 bytes each. Read through the functions below.
struct image_partition {
    atomic_uint refs;        // images that share it
    broker_id leader;        // LEADER_NONE or a broker
    leader_epoch epoch;      // leader epoch
    int32_t partition_epoch; // raised by every change; the token of AlterPartition
    uint16_t replicas_count; // > 0
    uint16_t isr_count;      // may be 0 (with ELR)
    uint16_t removing_count; // replicas that a reassignment takes away
    uint16_t adding_count;   // replicas that a reassignment brings
    uint16_t elr_count;      // eligible leader replicas
    uint16_t last_elr_count; // last known eligible leader replicas
    int8_t recovery;         // RECOVERY_RECOVERED or RECOVERY_RECOVERING
    uint8_t dirs;            // enum partition_dirs
    broker_id ids[];         // see above
};

static inline const broker_id *partition_replicas(const struct image_partition *p)
{
    return p->ids;
}
static inline const broker_id *partition_isr(const struct image_partition *p)
{
    return p->ids + p->replicas_count;
}
static inline const broker_id *partition_removing(const struct image_partition *p)
{
    return partition_isr(p) + p->isr_count;
}
static inline const broker_id *partition_adding(const struct image_partition *p)
{
    return partition_removing(p) + p->removing_count;
}
static inline const broker_id *partition_elr(const struct image_partition *p)
{
    return partition_adding(p) + p->adding_count;
}
static inline const broker_id *partition_last_elr(const struct image_partition *p)
{
    return partition_elr(p) + p->elr_count;
}
// Directory of replica number `i` (an index into the replicas).
struct uuid partition_directory(const struct image_partition *p, uint32_t i);
// Directory of broker `id`, or UUID_DIR_UNASSIGNED where it is no replica.
struct uuid partition_directory_of(const struct image_partition *p, broker_id id);
bool partition_has_replica(const struct image_partition *p, broker_id id);
bool partition_in_isr(const struct image_partition *p, broker_id id);
bool partition_reassigning(const struct image_partition *p); // adding or removing is not empty
static inline broker_id partition_preferred(const struct image_partition *p)
{
    return p->ids[0];
}

const struct image_topic *image_topic(const struct image *img, struct uuid id); // NULL: no such topic
const struct image_topic *image_topic_named(const struct image *img,
                                            struct slice name); // NULL: no such topic
// A topic whose name is `name` or differs from it only in '.' and '_'; NULL: none.
const struct image_topic *image_topic_colliding(const struct image *img, struct slice name);
// Walks all topics in order of creation (of appearance in the snapshot): NULL first, then the last answer;
// NULL at the end.
const struct image_topic *image_topic_next(const struct image *img, const struct image_topic *after);
int64_t image_topic_count(const struct image *img);
int64_t image_partition_count(const struct image *img); // over all topics

struct uuid topic_id(const struct image_topic *t);
struct slice topic_name(const struct image_topic *t); // lives as long as the topic
int32_t topic_partition_count(const struct image_topic *t);
// NULL where there is none. Indexes run from 0 to topic_partition_count() - 1, whatever a sane controller
// wrote.
const struct image_partition *topic_partition(const struct image_topic *t, partition_id index);
const struct image_partition *image_partition(const struct image *img, struct uuid topic, partition_id index);

// ---- sets of partitions that the deciders go through
// ---------------------------------------------------------- Each walk is deterministic and costs what it
// yields. Fill `pos` with zero first.
struct image_walk {
    const struct image_topic *topic;         // where the walk stands
    const struct image_partition *partition; // "
    partition_id index;                      // "
    partition_id base;                       // owned by the walk
    uint64_t next_key;                       // owned by the walk
    uint64_t rest;                           // owned by the walk
};
enum image_set {
    IMAGE_SET_ISR,           // partitions that have the broker in their ISR
    IMAGE_SET_LEADER,        // partitions that the broker leads; broker -1: partitions without a leader
    IMAGE_SET_ELR,           // partitions that have the broker in their ELR or last known ELR
    IMAGE_SET_NOT_PREFERRED, // partitions that prefer the broker (replicas[0]) and are led by another or by
                             // nobody
    IMAGE_SET_REPLICA,       // partitions that the broker is a replica of
    IMAGE_SET_COUNT
};
// Steps to the next partition of the set; false at the end.
bool image_walk_next(const struct image *img, enum image_set set, broker_id broker, struct image_walk *w);
int64_t image_set_count(const struct image *img, enum image_set set,
                        broker_id broker); // partitions in the set; at once
int64_t image_preferred_count(const struct image *img,
                              broker_id broker); // partitions with replicas[0] = broker
// Partitions under reassignment, in the same manner.
bool image_walk_reassigning(const struct image *img, struct image_walk *w);
int64_t image_reassigning_count(const struct image *img);

// ---- configs
// -------------------------------------------------------------------------------------------------
enum config_resource_type {
    CONFIG_RESOURCE_UNKNOWN = 0,
    CONFIG_RESOURCE_TOPIC = 2,
    CONFIG_RESOURCE_BROKER = 4, // name: a decimal node id, or empty for the default of all brokers
    CONFIG_RESOURCE_BROKER_LOGGER = 8,
    CONFIG_RESOURCE_CLIENT_METRICS = 16,
    CONFIG_RESOURCE_GROUP = 32
};
struct image_config_entry {
    struct slice key;   // config key
    struct slice value; // never null: a null value deletes the entry
};
struct image_config {
    atomic_uint refs;                         // images that share it
    int8_t type;                              // enum config_resource_type
    struct slice name;                        // resource name
    const struct image_config_entry *entries; // sorted by key
    int32_t entries_count;                    // > 0: a resource without entries is not kept
};
// All entries of one resource; NULL: none is set.
const struct image_config *image_config(const struct image *img, int8_t type, struct slice name);
// One value; null where it is not set on that resource.
struct slice image_config_value(const struct image *img, int8_t type, struct slice name, struct slice key);
// Calls `visit` for each resource that has entries, in no order; stops and returns its answer when that is
// not 0.
int image_config_each(const struct image *img, int (*visit)(const struct image_config *c, void *data),
                      void *data);

// ---- features
// ------------------------------------------------------------------------------------------------
#define FEATURE_METADATA_VERSION "metadata.version"
#define FEATURE_KRAFT_VERSION "kraft.version"
struct image_feature {
    struct slice name; // feature
    int16_t level;     // finalized level, > 0
};
// Finalized metadata.version; 0 while the log has none (before the bootstrap records).
int16_t image_metadata_version(const struct image *img);
int16_t image_feature_level(const struct image *img,
                            struct slice name); // 0: not finalized; also of metadata.version
// All finalized features, metadata.version included, sorted by name. kraft.version is the quorum's and is not
// among them.
const struct image_feature *image_features(const struct image *img, int32_t *count);

// ---- producer ids
// --------------------------------------------------------------------------------------------
int64_t image_next_producer_id(const struct image *img); // first id of the next block; 0 at first

// ---- ACLs, SCRAM credentials, quotas, delegation tokens
// --------------------------------------------------------
struct image_acl {
    atomic_uint refs;       // images that share it
    struct uuid id;         // its own id
    struct slice resource;  // resource name
    struct slice principal; // "User:name"
    struct slice host;      // "*", an address or, from metadata.version 4.4-IV1, a CIDR block
    int8_t resource_type, pattern_type, operation, permission; // codes of the wire protocol
};
struct image_scram {
    atomic_uint refs;                          // images that share it
    struct slice user;                         // user name
    int8_t mechanism;                          // 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    int32_t iterations;                        // PBKDF2 iterations
    struct slice salt, stored_key, server_key; // RFC 5802
};
struct image_quota_part {
    struct slice type; // "user", "client-id" or "ip"
    struct slice name; // null = the default entity
};
struct image_quota_value {
    struct slice key; // "producer_byte_rate", ...
    double value;     // limit
};
struct image_quota {
    atomic_uint refs;                       // images that share it
    const struct image_quota_part *parts;   // the entity, sorted by type
    const struct image_quota_value *values; // sorted by key
    int32_t parts_count, values_count;      // values_count > 0
};
struct image_token {
    atomic_uint refs;                  // images that share it
    struct slice id, owner, requester; // token id, "User:name", "User:name"
    const struct slice *renewers;      // principals that may renew it
    int32_t renewers_count;            // number of them
    time_ms issued, max, expires;      // timestamps
};
const struct image_acl *image_acl(const struct image *img, struct uuid id);
int image_acl_each(const struct image *img, int (*visit)(const struct image_acl *a, void *data), void *data);
const struct image_scram *image_scram(const struct image *img, int8_t mechanism, struct slice user);
int image_scram_each(const struct image *img, int (*visit)(const struct image_scram *s, void *data),
                     void *data);
int image_quota_each(const struct image *img, int (*visit)(const struct image_quota *q, void *data),
                     void *data);
const struct image_token *image_token(const struct image *img, struct slice id);
int image_token_each(const struct image *img, int (*visit)(const struct image_token *t, void *data),
                     void *data);

#endif
