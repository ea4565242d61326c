// SPDX-License-Identifier: Apache-2.0
// Replay of records of every type; metadata transactions.
#include "core/metadata/image_priv.h"

#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/metadata/metadata_version.h"

struct image_builder *image_builder_create(const struct image *from)
{
    struct image_builder *b = mem_alloc(sizeof *b);
    b->img = image__copy(from);
    return b;
}

struct image *image_builder_finish(struct image_builder *b)
{
    struct image *img = b->img;
    mem_free(b);
    return img;
}

void image_builder_drop(struct image_builder *b)
{
    if (!b)
        return;
    image_unref(b->img);
    mem_free(b);
}

const struct image *image_builder_peek(struct image_builder *b)
{
    return b->img;
}

void image_replay_offset(struct image_builder *b, log_offset offset, leader_epoch epoch)
{
    b->img->offset = offset;
    b->img->epoch = epoch;
}

static int replay_feature(struct image *img, const struct kp_feature_level_record *r, struct errmsg *msg)
{
    if (slice_equal_str(r->name, FEATURE_KRAFT_VERSION))
        return 0; // the quorum's own records say it
    if (r->name.len == 0 || r->feature_level < 0)
        return err_set(msg, ERR_INVALID, "feature '" SLICE_FMT "' at level %d", SLICE_ARG(r->name),
                       r->feature_level);
    bool metadata_version = slice_equal_str(r->name, FEATURE_METADATA_VERSION);
    if (metadata_version && r->feature_level > METADATA_VERSION_MAX)
        return err_set(
            msg, ERR_UNSUPPORTED,
            "metadata.version %d was finalized by a newer release; this one knows versions up to %d",
            r->feature_level, METADATA_VERSION_MAX);
    if (metadata_version && r->feature_level < METADATA_VERSION_MIN)
        return err_set(msg, ERR_INVALID, "metadata.version %d is below the oldest supported, %d",
                       r->feature_level, METADATA_VERSION_MIN);
    feature__set(img, r->name, r->feature_level);
    return 0;
}

static int replay_producer_ids(struct image *img, const struct kp_producer_ids_record *r, struct errmsg *msg)
{
    if (r->next_producer_id < img->next_producer_id)
        return err_set(msg, ERR_INVALID, "the next producer id would go back from %lld to %lld",
                       (long long)img->next_producer_id, (long long)r->next_producer_id);
    img->next_producer_id = r->next_producer_id;
    return 0;
}

static int replay_config(struct image *img, const struct kp_config_record *r, struct errmsg *msg)
{
    if (r->name.len == 0)
        return err_set(msg, ERR_INVALID, "a config entry without a key");
    config__set(img, r->resource_type, r->resource_name, r->name, r->value);
    return 0;
}

static int replay_remove(struct pmap *map, const void *key, const char *what, struct errmsg *msg)
{
    return pmap_remove(map, key) ? 0 : err_set(msg, ERR_INVALID, "%s is not there", what);
}

static int replay_begin(struct image *img, struct errmsg *msg)
{
    if (img->base)
        return err_set(msg, ERR_INVALID, "a metadata transaction is open already");
    img->base = image__copy(img);
    return 0;
}

static int replay_end(struct image *img, struct errmsg *msg)
{
    if (!img->base)
        return err_set(msg, ERR_INVALID, "no metadata transaction is open");
    image_unref(img->base);
    img->base = NULL;
    return 0;
}

static int replay_abort(struct image *img, struct errmsg *msg)
{
    if (!img->base)
        return err_set(msg, ERR_INVALID, "no metadata transaction is open");
    image__replace(img, image__copy(img->base));
    return 0;
}

static int dispatch(struct image *img, const struct metadata_record *r, struct errmsg *msg)
{
    const union metadata_record_body *b = &r->body;
    switch (r->type) {
    case METADATA_REGISTER_BROKER:
        return replay__register_broker(img, &b->register_broker, msg);
    case METADATA_UNREGISTER_BROKER:
        return replay__unregister_broker(img, &b->unregister_broker, msg);
    case METADATA_TOPIC:
        return replay__topic(img, &b->topic, msg);
    case METADATA_PARTITION:
        return replay__partition(img, &b->partition, r->version, msg);
    case METADATA_CONFIG:
        return replay_config(img, &b->config, msg);
    case METADATA_PARTITION_CHANGE:
        return replay__change_partition(img, &b->partition_change, msg);
    case METADATA_FENCE_BROKER:
        return replay__fence_broker(img, b->fence_broker.id, b->fence_broker.epoch, true, msg);
    case METADATA_UNFENCE_BROKER:
        return replay__fence_broker(img, b->unfence_broker.id, b->unfence_broker.epoch, false, msg);
    case METADATA_REMOVE_TOPIC:
        return replay__remove_topic(img, &b->remove_topic, msg);
    case METADATA_DELEGATION_TOKEN:
        token__add(img, &b->delegation_token);
        return 0;
    case METADATA_REMOVE_DELEGATION_TOKEN:
        return replay_remove(&img->tokens, &b->remove_delegation_token.token_id, "the token", msg);
    case METADATA_USER_SCRAM_CREDENTIAL:
        scram__add(img, &b->user_scram_credential);
        return 0;
    case METADATA_REMOVE_USER_SCRAM_CREDENTIAL: {
        struct scram_key key = {b->remove_user_scram_credential.name,
                                b->remove_user_scram_credential.mechanism};
        return replay_remove(&img->scram, &key, "the credential", msg);
    }
    case METADATA_FEATURE_LEVEL:
        return replay_feature(img, &b->feature_level, msg);
    case METADATA_CLIENT_QUOTA:
        return quota__apply(img, &b->client_quota, msg);
    case METADATA_PRODUCER_IDS:
        return replay_producer_ids(img, &b->producer_ids, msg);
    case METADATA_BROKER_REGISTRATION_CHANGE:
        return replay__change_broker(img, &b->broker_registration_change, msg);
    case METADATA_ACCESS_CONTROL_ENTRY:
        return acl__add(img, &b->access_control_entry, msg);
    case METADATA_REMOVE_ACCESS_CONTROL_ENTRY:
        return replay_remove(&img->acls, &b->remove_access_control_entry.id, "the access control entry", msg);
    case METADATA_NO_OP:
    case METADATA_ZK_MIGRATION_STATE:
        return 0;
    case METADATA_BEGIN_TRANSACTION:
        return replay_begin(img, msg);
    case METADATA_END_TRANSACTION:
        return replay_end(img, msg);
    case METADATA_ABORT_TRANSACTION:
        return replay_abort(img, msg);
    case METADATA_REGISTER_CONTROLLER:
        return replay__register_controller(img, &b->register_controller, msg);
    case METADATA_UNREGISTER_CONTROLLER:
        return replay__unregister_controller(img, &b->unregister_controller, msg);
    case METADATA_CLEAR_ELR:
        return replay__clear_elr(img, &b->clear_elr, msg);
    }
    return err_set(msg, ERR_UNSUPPORTED, "a record of unknown type %u", (unsigned)r->type);
}

int image_replay(struct image_builder *b, const struct metadata_record *r, log_offset offset,
                 leader_epoch epoch, struct errmsg *msg)
{
    int err = dispatch(b->img, r, msg);
    if (err) {
        err_prefix(msg, "%s at offset %lld", metadata_record_type_name(r->type), (long long)offset);
        return err;
    }
    image_replay_offset(b, offset, epoch);
    return 0;
}
