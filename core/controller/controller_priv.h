// SPDX-License-Identifier: Apache-2.0
// What the operations of the controller share; for the files of core/controller only.
#ifndef KRAFT_CONTROLLER_PRIV_H
#define KRAFT_CONTROLLER_PRIV_H

#include "core/base/err.h"
#include "core/controller/controller.h"
#include "core/metadata/metadata_version.h"
#include "core/metadata/replay.h"
#include "core/protocol/gen/errors.h"

// A refusal: code and a sentence for the user. code KE_NONE: all is well.
struct refusal {
    enum kafka_error code; // KE_NONE: no refusal
    struct slice text;     // in the arena; null with KE_NONE
};
#define NO_REFUSAL ((struct refusal){KE_NONE, SLICE_NULL})
struct refusal controller__refuse(struct controller *c, enum kafka_error code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH or KE_NONE.
enum kafka_error controller__check_epoch(const struct controller *c, broker_id id, broker_epoch epoch);
uint64_t controller__random(struct controller *c, uint64_t below); // evenly spread over [0, below); below > 0
static inline const struct metadata_version *controller__mv(const struct controller *c)
{
    return metadata_version_writing(image_metadata_version(c->image));
}
bool controller__elr_enabled(const struct image *img);
bool controller__unclean_allowed(const struct controller *c, const struct image_topic *t);
int32_t controller__min_isr(const struct controller *c,
                            const struct image_topic *t); // configured, not yet bounded
// Whether a set of names (or ids) has this one already; adds it. `set` is an initialised HMAP_SLICE map.
bool controller__seen(struct hmap *set, struct slice name);

// Runs several decisions in one batch: after each, `controller__staged` puts an image with its records in
// c->image, so that the next one sees them. controller__stage_end puts the caller's image back.
struct stage {
    const struct image *original; // the caller's image
    struct image *staged;         // owned; NULL before the first
    uint32_t replayed;            // records that `staged` has
};
void controller__stage_begin(struct controller *c, struct stage *s, const struct record_list *records);
void controller__staged(struct controller *c, struct stage *s, const struct record_list *records);
void controller__stage_end(struct controller *c, struct stage *s);

// ---- placement (controller_placement.c)
// ---------------------------------------------------------------------------
struct placement {
    broker_id *brokers; // count * factor ids, replica lists one after the other, leaders first
    int32_t count;      // partitions
    int32_t factor;     // replicas of each
};
// Places `count` partitions of `factor` replicas; `topic` NULL for a new topic, else its striping goes on.
struct refusal controller__place(struct controller *c, const struct image_topic *topic, int32_t count,
                                 int32_t factor, struct placement *out);
// Directory that a new replica on the broker gets.
struct uuid controller__default_dir(const struct image *img, broker_id id);
// Appends the record of a new partition on `replicas`. False: none of them may lead.
bool controller__add_partition(struct controller *c, struct record_list *records, struct uuid topic,
                               partition_id index, const broker_id *replicas, int32_t count);
// Judges replicas that a user has listed; `factor` -1 = any, else the number that other partitions have.
struct refusal controller__check_assignment(struct controller *c, const broker_id *ids, int32_t count,
                                            int32_t factor);
// The release's limit on replicas.
struct refusal controller__check_factor(struct controller *c, int32_t factor);

// ---- change of a partition (partition_change.c)
// ----------------------------------------------------------------------
enum election {
    ELECTION_ONLINE,    // any replica that is in sync
    ELECTION_PREFERRED, // the preferred one if it is in sync, else leave it
    ELECTION_UNCLEAN    // any in sync, else any that is alive
};
struct partition_change {
    struct controller *c;            // image, sessions, options
    const struct image_topic *topic; // whose partition
    const struct image_partition *p; // as it is
    partition_id index;              // which
    enum election election;          // how a leader is found
    bool zk_epoch_bump;              // metadata.version below 3.6-IV0: a smaller ISR bumps the leader epoch
    broker_id removed;               // broker that must not lead now; -1 none
    broker_id added;                 // broker that may lead although the image does not say so; -1 none
    broker_id unclean;               // broker that came back without its data: out of ISR, ELR; -1 none
    broker_id *replicas, *isr, *elr, *last_elr, *removing, *adding; // targets, in the arena
    int32_t replicas_count, isr_count, elr_count, last_elr_count, removing_count, adding_count; // sizes
    int8_t recovery;                                                                            // target
    struct uuid *directories; // target, one for each replica; NULL: no change
};
void partition_change__init(struct partition_change *b, struct controller *c, const struct image_topic *t,
                            partition_id index, const struct image_partition *p);
void partition_change__set_isr(struct partition_change *b, const broker_id *ids, int32_t count);
void partition_change__remove_from_isr(struct partition_change *b, broker_id id);
void partition_change__set_directory(struct partition_change *b, broker_id id, struct uuid dir);
// Whether the broker may lead the partition: registered, unfenced, not shutting down, directory online, not
// `removed`.
bool partition_change__acceptable(const struct partition_change *b, broker_id id);
// Elects, completes a reassignment that is done, and appends the record if anything changes. True: a record
// was added.
bool partition_change__finish(struct partition_change *b, struct record_list *records);

// Takes a broker out of ISRs and leaderships (removed, unclean) or lets it lead what nobody leads (added).
void controller__remove_from_isrs(struct controller *c, broker_id id, bool unclean,
                                  struct record_list *records);
void controller__elect_leaderless(struct controller *c, broker_id added, struct record_list *records);
// The broker's directories `dirs` are no longer usable: leave the ISRs of the partitions on them.
void controller__leave_directories(struct controller *c, broker_id id, const struct uuid *dirs, int32_t count,
                                   struct record_list *records);

// ---- configs (controller_configs.c)
// ------------------------------------------------------------------------------------ Judges the configs of
// a topic that is being made. Entries go to `entries` (room for `count`), sorted by key.
struct refusal controller__check_configs(struct controller *c, int8_t type, struct slice name,
                                         const struct image_config_entry *entries, int32_t count);

#endif
