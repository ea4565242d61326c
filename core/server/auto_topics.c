// SPDX-License-Identifier: Apache-2.0
// Auto-created topics: one CreateTopics request for all names, sent in an Envelope with the client's
// principal.
#include "core/server/auto_topics.h"

#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/config/server_config.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/header.h"
#include "core/server/forward.h"
#include "core/server/outbound.h"

#define CREATE_VERSION 7        // of the CreateTopics request that we make
#define CREATE_TIMEOUT_MS 30000 // what it says to the controller

struct auto_creation {
    void (*done)(struct request *rq, const int16_t *errors, unsigned count);
    unsigned count;       // names
    int16_t *errors;      // one a name; behind `names`
    struct slice names[]; // copies
};

static void creation_done(struct request *rq, int16_t error, struct slice answer, void *data)
{
    struct auto_creation *c = data;
    struct slice body;
    struct arena arena;
    arena_init(&arena);
    for (unsigned i = 0; i < c->count; i++)
        c->errors[i] = error != KE_NONE ? error : KE_UNKNOWN_SERVER_ERROR;
    if (!slice_is_null(answer) &&
        outbound_response_body(answer, KP_API_CREATE_TOPICS, CREATE_VERSION, &body) == 0) {
        struct kp_create_topics_response a;
        struct kp_reader reader;
        kp_create_topics_response_init(&a);
        kp_reader_init(&reader, body, &arena, NULL);
        int32_t n = kp_create_topics_response_decode(&a, &reader, CREATE_VERSION) == 0 ? a.topics_count : 0;
        for (int32_t i = 0; i < n; i++)
            for (unsigned k = 0; k < c->count; k++)
                if (slice_equal(a.topics[i].name, c->names[k]))
                    c->errors[k] = a.topics[i].error_code;
    }
    c->done(rq, c->errors, c->count);
    arena_fini(&arena);
    mem_free(c);
}

// Broker defaults, but for the internal topics, which have keys of their own (KIP-590).
static void fill_topic(struct kp_create_topics_request_creatable_topic *t, const struct server_config *config,
                       struct slice name, struct arena *arena)
{
    kp_create_topics_request_creatable_topic_init(t);
    t->name = name;
    t->num_partitions = config->num_partitions;
    t->replication_factor = config->replication_factor;
    if (!slice_equal_str(name, "__consumer_offsets"))
        return;
    const struct {
        const char *key, *value;
    } configs[] = {
        {"cleanup.policy", "compact"},
        {"compression.type", "producer"},
        {"segment.bytes", arena_printf(arena, "%d", config->offsets_segment_bytes)},
    };
    size_t n = sizeof configs / sizeof *configs;
    t->num_partitions = config->offsets_partitions;
    t->replication_factor = config->offsets_replication_factor;
    t->configs = arena_alloc(arena, n * sizeof *t->configs);
    for (size_t i = 0; i < n; i++) {
        struct kp_create_topics_request_creatable_topic_config *k = &t->configs[t->configs_count++];
        kp_create_topics_request_creatable_topic_config_init(k);
        k->name = slice_str(configs[i].key);
        k->value = slice_str(configs[i].value);
    }
}

void auto_topics_create(struct forwarder *fw, const struct server_config *config, struct request *rq,
                        const struct slice *names, unsigned count,
                        void (*done)(struct request *rq, const int16_t *errors, unsigned count))
{
    size_t text = 0;
    for (unsigned i = 0; i < count; i++)
        text += names[i].len;
    struct auto_creation *c = mem_zalloc(sizeof *c + count * (sizeof *c->names + sizeof *c->errors) + text);
    c->done = done;
    c->count = count;
    c->errors = (int16_t *)(void *)(c->names + count);
    uint8_t *at = (uint8_t *)(c->errors + count);
    struct arena arena;
    arena_init(&arena);
    struct kp_create_topics_request q;
    kp_create_topics_request_init(&q);
    q.timeout_ms = CREATE_TIMEOUT_MS;
    q.topics = arena_alloc(&arena, (count + 1) * sizeof *q.topics);
    for (unsigned i = 0; i < count; i++) {
        memcpy(at, names[i].data, names[i].len);
        c->names[i] = slice_of(at, names[i].len);
        at += names[i].len;
        fill_topic(&q.topics[q.topics_count++], config, c->names[i], &arena);
    }
    struct kp_request_header h;
    kp_request_header_init(&h);
    h.request_api_key = KP_API_CREATE_TOPICS;
    h.request_api_version = CREATE_VERSION;
    h.correlation_id = rq->correlation_id;
    h.client_id = rq->client_id;
    struct rope bytes;
    rope_init(&bytes);
    int err = kp_header_write_request(&bytes, &h);
    if (err == 0)
        err = kp_create_topics_request_encode(&q, &bytes, CREATE_VERSION);
    uint8_t *flat = arena_alloc(&arena, bytes.len + 1);
    if (err == 0)
        err = rope_flatten(&bytes, flat);
    size_t len = err == 0 ? bytes.len : 0; // an empty one is refused by the controller
    forward_bytes(fw, rq, slice_of(flat, len), creation_done, c);
    rope_clear(&bytes);
    arena_fini(&arena);
}
