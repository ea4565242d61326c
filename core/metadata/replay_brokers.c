// SPDX-License-Identifier: Apache-2.0
// Replay of the records of brokers and controllers.
#include "core/metadata/image_priv.h"

int replay__register_broker(struct image *img, const struct kp_register_broker_record *r, struct errmsg *msg)
{
    if (r->broker_id < 0 || r->broker_epoch < 0)
        return err_set(msg, ERR_INVALID, "broker id %d with epoch %lld", r->broker_id,
                       (long long)r->broker_epoch);
    if (!image_broker(img, r->broker_id))
        img->broker_count++;
    imap_put(&img->brokers, (uint64_t)r->broker_id, broker__from_record(r));
    return 0;
}

// The registration that a record means: it must be there and of that epoch.
static int find_broker(const struct image *img, broker_id id, broker_epoch epoch,
                       const struct image_broker **out, struct errmsg *msg)
{
    const struct image_broker *b = image_broker(img, id);
    if (!b)
        return err_set(msg, ERR_INVALID, "broker %d is not registered", id);
    if (b->epoch != epoch)
        return err_set(msg, ERR_INVALID, "broker %d has epoch %lld, the record says %lld", id,
                       (long long)b->epoch, (long long)epoch);
    *out = b;
    return 0;
}

int replay__unregister_broker(struct image *img, const struct kp_unregister_broker_record *r,
                              struct errmsg *msg)
{
    const struct image_broker *b;
    int err = find_broker(img, r->broker_id, r->broker_epoch, &b, msg);
    if (err)
        return err;
    (void)imap_remove(&img->brokers, (uint64_t)r->broker_id);
    img->broker_count--;
    return 0;
}

int replay__fence_broker(struct image *img, broker_id id, broker_epoch epoch, bool fenced, struct errmsg *msg)
{
    const struct image_broker *b;
    int err = find_broker(img, id, epoch, &b, msg);
    if (err)
        return err;
    imap_put(&img->brokers, (uint64_t)id,
             broker__changed(b, fenced, b->in_controlled_shutdown, NULL, 0, NULL, 0));
    return 0;
}

int replay__change_broker(struct image *img, const struct kp_broker_registration_change_record *r,
                          struct errmsg *msg)
{
    const struct image_broker *b;
    int err = find_broker(img, r->broker_id, r->broker_epoch, &b, msg);
    if (err)
        return err;
    if (r->fenced < -1 || r->fenced > 1 || r->in_controlled_shutdown < 0 || r->in_controlled_shutdown > 1)
        return err_set(msg, ERR_INVALID, "changes of fenced by %d and of controlled shutdown by %d",
                       r->fenced, r->in_controlled_shutdown);
    bool fenced = r->fenced == 0 ? b->fenced : r->fenced == 1;
    bool shutdown = b->in_controlled_shutdown || r->in_controlled_shutdown == 1;
    const struct uuid none = UUID_ZERO;
    const struct uuid *cordoned = r->cordoned_log_dirs_count == 0 ? &none : r->cordoned_log_dirs;
    if (r->cordoned_log_dirs_count < 0)
        cordoned = NULL;
    imap_put(&img->brokers, (uint64_t)r->broker_id,
             broker__changed(b, fenced, shutdown, r->log_dirs_count > 0 ? r->log_dirs : NULL,
                             r->log_dirs_count, cordoned, r->cordoned_log_dirs_count));
    return 0;
}

int replay__register_controller(struct image *img, const struct kp_register_controller_record *r,
                                struct errmsg *msg)
{
    if (r->controller_id < 0)
        return err_set(msg, ERR_INVALID, "controller id %d", r->controller_id);
    imap_put(&img->controllers, (uint64_t)r->controller_id, controller__from_record(r));
    return 0;
}

int replay__unregister_controller(struct image *img, const struct kp_unregister_controller_record *r,
                                  struct errmsg *msg)
{
    if (r->controller_id < 0 || !imap_remove(&img->controllers, (uint64_t)r->controller_id))
        return err_set(msg, ERR_INVALID, "controller %d is not registered", r->controller_id);
    return 0;
}
