// SPDX-License-Identifier: Apache-2.0
// What an image is made of; for the files of core/metadata only.
//
// Every counted object has its `atomic_uint refs` as first member. A builder owns a `struct image` that
// nobody else sees and changes its maps in place; everything in the maps may be shared and is replaced, never
// written to.
#ifndef KRAFT_METADATA_IMAGE_PRIV_H
#define KRAFT_METADATA_IMAGE_PRIV_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/pmap.h"
#include "core/metadata/image.h"
#include "core/metadata/imap.h"
#include "core/metadata/replay.h"
#include "core/protocol/metadata_record.h"

// What never changes in a topic's life.
struct topic_info {
    atomic_uint refs;  // topics and maps that share it
    uint64_t ordinal;  // number in this image's line of descent, in order of creation; never used again, not
                       // in any record
    struct uuid id;    // topic id
    struct slice name; // lies behind the struct
};

struct image_topic {
    atomic_uint refs;        // images that share it
    int32_t count;           // one past the highest partition index
    struct topic_info *info; // owned
    struct imap partitions;  // index -> struct image_partition
};

// What one broker (or "no leader", id -1) has to do with partitions. A word holds 64 partitions of a topic;
// see set_key.
struct broker_sets {
    atomic_uint refs;                 // images that share it
    struct imap set[IMAGE_SET_COUNT]; // set_key -> word
    int64_t count[IMAGE_SET_COUNT];   // bits in each
    int64_t preferred;                // partitions with replicas[0] = this broker
};

struct image_features {
    atomic_uint refs;             // images that share it
    int32_t count;                // entries
    struct image_feature items[]; // sorted by name; the names lie behind
};

struct config_key {
    struct slice name; // resource name
    int8_t type;       // enum config_resource_type
};
struct scram_key {
    struct slice user; // user name
    int8_t mechanism;  // mechanism code
};

struct image {
    atomic_uint refs;                // owners
    leader_epoch epoch;              // of the last record
    log_offset offset;               // of the last record
    struct image *base;              // owned: the image from before the open transaction; NULL: none is open
    struct imap brokers;             // id -> struct image_broker
    struct imap controllers;         // id -> struct image_controller
    struct imap topics;              // ordinal -> struct image_topic
    struct pmap topic_ids;           // uuid -> struct topic_info
    struct pmap topic_names;         // name -> struct topic_info
    struct imap sets;                // broker id as uint32 -> struct broker_sets
    struct imap reassigning;         // set_key -> word
    struct pmap configs;             // (type, name) -> struct image_config
    struct pmap acls;                // uuid -> struct image_acl
    struct pmap scram;               // (mechanism, user) -> struct image_scram
    struct pmap quotas;              // entity -> struct image_quota
    struct pmap tokens;              // token id -> struct image_token
    struct image_features *features; // NULL: none
    int64_t next_producer_id;        // 0 at first
    int64_t reassigning_count;       // bits in `reassigning`
    int64_t partition_count;         // partitions of all topics
    uint64_t next_ordinal;           // of the next topic
    int32_t broker_count;            // registered brokers
    int16_t metadata_version;        // copy of the feature's level; 0: none
};

struct image_builder {
    struct image *img; // owned, refs 1, seen by nobody else
};

// A second, independent image of the same content.
struct image *image__copy(const struct image *img);
// Takes over the content of `from` (which is freed), keeps offset and epoch.
void image__replace(struct image *img, struct image *from);

static inline void *image__ref(const void *object)
{
    atomic_fetch_add_explicit((atomic_uint *)(uintptr_t)object, 1, memory_order_relaxed);
    return (void *)(uintptr_t)object;
}
// True: the caller was the last owner and frees.
static inline bool image__unref(void *object)
{
    return atomic_fetch_sub_explicit((atomic_uint *)object, 1, memory_order_acq_rel) == 1;
}

// ---- image_partition.c
// ----------------------------------------------------------------------------------------- A partition as
// loose lists, to make a packed one from.
struct partition_draft {
    const broker_id *replicas, *isr, *removing, *adding, *elr, *last_elr; // borrowed
    const struct uuid *directories;                                       // borrowed; NULL: `dirs` says which
    int32_t replicas_count, isr_count, removing_count, adding_count, elr_count, last_elr_count,
        directories_count;
    broker_id leader;         // as in image_partition
    leader_epoch epoch;       // "
    int32_t partition_epoch;  // "
    int8_t recovery;          // "
    enum partition_dirs dirs; // where `directories` is NULL
};
// ERR_INVALID with the reason for lists that make no sense. *out gets one reference.
int partition__build(const struct partition_draft *d, struct image_partition **out, struct errmsg *msg);
void partition__unref(void *p);

// ---- image_sets.c
// ------------------------------------------------------------------------------------------------
void sets__unref(void *s);
// Moves the bits of one partition from what `before` says (NULL: new) to what `after` says (NULL: gone).
void sets__update(struct image *img, uint64_t ordinal, partition_id index,
                  const struct image_partition *before, const struct image_partition *after);

// ---- image_objects.c
// ---------------------------------------------------------------------------------------------
void broker__unref(void *b);
void controller__unref(void *c);
struct image_broker *broker__from_record(const struct kp_register_broker_record *r);
// A changed copy; NULL lists stay as they are.
struct image_broker *broker__changed(const struct image_broker *b, bool fenced, bool in_controlled_shutdown,
                                     const struct uuid *log_dirs, int32_t log_dirs_count,
                                     const struct uuid *cordoned, int32_t cordoned_count);
struct image_controller *controller__from_record(const struct kp_register_controller_record *r);
struct topic_info *topic_info__create(struct slice name, struct uuid id, uint64_t ordinal);
void topic_info__unref(void *info);
void topic__unref(void *t);
struct image_topic *topic__create(struct topic_info *info); // takes over the reference
struct image_topic *topic__copy(const struct image_topic *t);
// The topic as the builder may change it: the one in the map, or a fresh copy put there.
struct image_topic *topic__writable(struct image *img, const struct image_topic *t);

// ---- image_config.c: configs, quotas, features
// ---------------------------------------------------------------------
extern const struct pmap_type config__map, acl__map, scram__map, quota__map, token__map, topic_id__map,
    topic_name__map;
void config__set(struct image *img, int8_t type, struct slice name, struct slice key, struct slice value);
void config__remove_all(struct image *img, int8_t type, struct slice name);
void feature__set(struct image *img, struct slice name, int16_t level);
void features__unref(struct image_features *f);
int quota__apply(struct image *img, const struct kp_client_quota_record *r, struct errmsg *msg);

// ---- image_credentials.c
// -------------------------------------------------------------------------------------------
int acl__add(struct image *img, const struct kp_access_control_entry_record *r, struct errmsg *msg);
void scram__add(struct image *img, const struct kp_user_scram_credential_record *r);
void token__add(struct image *img, const struct kp_delegation_token_record *r);

// ---- replay_brokers.c, replay_topics.c
// -----------------------------------------------------------------------------
int replay__register_broker(struct image *img, const struct kp_register_broker_record *r, struct errmsg *msg);
int replay__unregister_broker(struct image *img, const struct kp_unregister_broker_record *r,
                              struct errmsg *msg);
int replay__fence_broker(struct image *img, broker_id id, broker_epoch epoch, bool fenced,
                         struct errmsg *msg);
int replay__change_broker(struct image *img, const struct kp_broker_registration_change_record *r,
                          struct errmsg *msg);
int replay__register_controller(struct image *img, const struct kp_register_controller_record *r,
                                struct errmsg *msg);
int replay__unregister_controller(struct image *img, const struct kp_unregister_controller_record *r,
                                  struct errmsg *msg);
int replay__topic(struct image *img, const struct kp_topic_record *r, struct errmsg *msg);
int replay__remove_topic(struct image *img, const struct kp_remove_topic_record *r, struct errmsg *msg);
int replay__partition(struct image *img, const struct kp_partition_record *r, int16_t version,
                      struct errmsg *msg);
int replay__change_partition(struct image *img, const struct kp_partition_change_record *r,
                             struct errmsg *msg);
int replay__clear_elr(struct image *img, const struct kp_clear_elr_record *r, struct errmsg *msg);

#endif
