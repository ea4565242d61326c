// SPDX-License-Identifier: Apache-2.0
// kraft-admin consume: records of a topic to standard output.
//
// Every leader has one fetch in flight; answers are taken in turn. No group is joined and nothing is
// committed.
#include <time.h>
#include <unistd.h>

#include "core/base/base64.h"
#include "core/base/mem.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/record/batch.h"
#include "core/record/builder.h"
#include "tools/kraft-admin/topics.h"

#define FETCH_VERSION_MAX 12      // the last version that names topics
#define FETCH_WAIT_MS 500         // longest that a leader keeps a fetch without records
#define FETCH_BYTES (32 << 20)    // of one fetch
#define PARTITION_BYTES (4 << 20) // of one partition in a fetch
#define RETRY_PAUSE_MS 200        // before asking again for leaders
#define LEADERS_MAX 256           // brokers that are asked in one round

enum format { FORMAT_VALUE, FORMAT_KEY_VALUE, FORMAT_JSON };

struct source_partition {
    int32_t index;     // in the topic
    int32_t leader;    // broker to ask; -1: none
    int64_t next;      // offset of the next record to print
    bool at_end;       // the last answer ended at the log's end
    int64_t *aborted;  // producer ids whose open transaction is aborted; owned
    int aborted_count; // of them
};

struct consume {
    struct admin *a;                  // the command
    struct slice topic;               // its name
    struct source_partition *sources; // the partitions that are read
    int32_t sources_count;            // of them
    enum format format;               // of a record
    const char *separator;            // between key and value
    int64_t left;                     // records still to print
    int64_t printed;                  // records printed
    int64_t timeout_ms;               // ends after so long without a record; -1: never
    int64_t last_ms;                  // when the last record came
    bool exit_eof, committed;         // options
    struct codec_cache *cache;        // for unpacking
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// ---- printing

static json_t *data_json(struct slice s)
{
    if (slice_is_null(s))
        return json_null();
    json_t *text = json_stringn((const char *)s.data, s.len);
    if (text)
        return text;
    char *base64 = mem_alloc(BASE64_ENCODED_BYTES(s.len)); // bytes that are no text
    base64_encode(BASE64_STANDARD, s, base64);
    text = json_pack("{s:s}", "base64", base64);
    mem_free(base64);
    return text;
}

static void print_json(const struct source_partition *s, const struct record *r)
{
    struct slice left = r->headers;
    struct record_header h;
    json_t *headers = json_array();
    while (record_header_next(&left, &h))
        json_array_append_new(headers,
                              json_pack("{s:o, s:o}", "key", data_json(h.key), "value", data_json(h.value)));
    json_t *line = json_pack("{s:i, s:I, s:I, s:o, s:o, s:o}", "partition", s->index, "offset",
                             (json_int_t)r->offset, "timestamp", (json_int_t)r->timestamp, "key",
                             data_json(r->key), "value", data_json(r->value), "headers", headers);
    json_dumpf(line, stdout, JSON_COMPACT);
    json_decref(line);
}

static void print_record(struct consume *c, const struct source_partition *s, const struct record *r)
{
    if (c->format == FORMAT_JSON) {
        print_json(s, r);
    } else {
        if (c->format == FORMAT_KEY_VALUE) {
            fwrite(r->key.data ? (const char *)r->key.data : "null", 1, r->key.data ? r->key.len : 4, stdout);
            fputs(c->separator, stdout);
        }
        fwrite(r->value.data ? (const char *)r->value.data : "null", 1, r->value.data ? r->value.len : 4,
               stdout);
    }
    putchar('\n');
    c->printed++;
    c->left--;
}

// ---- transactions: with read_committed, records of aborted transactions are skipped

static void forget_aborted(struct source_partition *s, int64_t producer)
{
    for (int i = 0; i < s->aborted_count; i++)
        if (s->aborted[i] == producer) {
            s->aborted[i] = s->aborted[--s->aborted_count];
            return;
        }
}

static bool is_aborted(const struct source_partition *s, int64_t producer)
{
    for (int i = 0; i < s->aborted_count; i++)
        if (s->aborted[i] == producer)
            return true;
    return false;
}

// Takes over the transactions of an answer that begin at or before the batch's last offset.
static void note_aborted(struct source_partition *s, const struct kp_fetch_response_partition_data *p,
                         int64_t last)
{
    for (int32_t i = 0; i < p->aborted_transactions_count; i++) {
        const struct kp_fetch_response_aborted_transaction *t = &p->aborted_transactions[i];
        if (t->first_offset > last || t->first_offset < s->next || is_aborted(s, t->producer_id))
            continue;
        s->aborted = mem_realloc(s->aborted, (size_t)(s->aborted_count + 1) * sizeof(*s->aborted));
        s->aborted[s->aborted_count++] = t->producer_id;
    }
}

// ---- records of an answer

static int print_batch(struct consume *c, struct source_partition *s, const uint8_t *batch)
{
    struct record_iter it;
    struct record r;
    bool control = batch_is_control(batch);
    bool skip =
        control || (c->committed && batch_is_transactional(batch) && is_aborted(s, batch_producer_id(batch)));
    int rc = 0;
    if (!skip || control) {
        record_iter_init(&it, batch, c->cache, NULL);
        while (c->left > 0 && (rc = record_iter_next(&it, &r, &c->a->err)) == 0) {
            if (control && control_type_of(r.key) == CONTROL_ABORT)
                forget_aborted(s, batch_producer_id(batch));
            if (!skip && r.offset >= s->next) {
                print_record(c, s, &r);
                s->next = r.offset + 1;
            }
        }
        record_iter_fini(&it);
    }
    if (rc && rc != ERR_NOTFOUND) {
        err_prefix(&c->a->err, SLICE_FMT "-%d, offset %lld", SLICE_ARG(c->topic), s->index,
                   (long long)batch_base_offset(batch));
        return admin_failed(c->a, rc);
    }
    if (c->left > 0 && batch_next_offset(batch) > s->next)
        s->next = batch_next_offset(batch);
    return ADMIN_OK;
}

static int print_records(struct consume *c, struct source_partition *s,
                         const struct kp_fetch_response_partition_data *p)
{
    int64_t before = c->printed;
    for (struct batch_iter it = batch_iter_of(p->records.bytes); c->left > 0 && batch_iter_next(&it);) {
        if (batch_last_offset(it.batch) < s->next)
            continue;
        if (c->committed)
            note_aborted(s, p, batch_last_offset(it.batch));
        int rc = batch_check_crc(it.batch, &c->a->err);
        int status = rc ? admin_failed(c->a, rc) : print_batch(c, s, it.batch);
        if (status)
            return status;
    }
    if (c->printed > before)
        c->last_ms = now_ms();
    s->at_end = s->next >= (c->committed ? p->last_stable_offset : p->high_watermark);
    return ADMIN_OK;
}

static struct source_partition *find_source(struct consume *c, int32_t index)
{
    for (int32_t i = 0; i < c->sources_count; i++)
        if (c->sources[i].index == index)
            return &c->sources[i];
    return NULL;
}

// An error of one partition: ADMIN_OK where it may pass by asking again.
static int partition_error(struct consume *c, struct source_partition *s, int error)
{
    char subject[300];
    if (kafka_error_is_retriable(error) && error != KE_UNKNOWN_TOPIC_OR_PARTITION) {
        s->leader = -1;
        return ADMIN_OK;
    }
    snprintf(subject, sizeof(subject), SLICE_FMT "-%d at offset %lld", SLICE_ARG(c->topic), s->index,
             (long long)s->next);
    return admin_refusal(c->a, slice_str(subject), error, SLICE_NULL);
}

static int take_answer(struct consume *c, const struct kp_fetch_response *r)
{
    if (r->error_code)
        return admin_refusal(c->a, c->topic, r->error_code, SLICE_NULL);
    for (int32_t t = 0; t < r->responses_count; t++)
        for (int32_t i = 0; i < r->responses[t].partitions_count; i++) {
            const struct kp_fetch_response_partition_data *p = &r->responses[t].partitions[i];
            struct source_partition *s = find_source(c, p->partition_index);
            if (!s)
                continue;
            int status = p->error_code ? partition_error(c, s, p->error_code) : print_records(c, s, p);
            if (status)
                return status;
        }
    return ADMIN_OK;
}

// ---- asking

static int send_fetch(struct consume *c, int32_t leader, int *version)
{
    struct kp_fetch_request q;
    struct kp_fetch_request_fetch_topic topic;
    struct kclient_conn *conn;
    struct kp_fetch_request_fetch_partition *rows =
        arena_alloc(&c->a->arena, (size_t)c->sources_count * sizeof(*rows));
    bool ended = true; // all partitions are at their end and nobody wants to wait
    kp_fetch_request_init(&q);
    kp_fetch_request_fetch_topic_init(&topic);
    q.min_bytes = 1;
    q.max_bytes = FETCH_BYTES;
    q.isolation_level = c->committed ? 1 : 0;
    topic.topic = c->topic;
    topic.partitions = rows;
    for (int32_t i = 0; i < c->sources_count; i++)
        if (c->sources[i].leader == leader) {
            struct kp_fetch_request_fetch_partition *row = &rows[topic.partitions_count++];
            kp_fetch_request_fetch_partition_init(row);
            row->partition = c->sources[i].index;
            row->fetch_offset = c->sources[i].next;
            row->partition_max_bytes = PARTITION_BYTES;
            ended &= c->sources[i].at_end;
        }
    q.max_wait_ms = c->exit_eof || !ended ? 0 : FETCH_WAIT_MS;
    q.topics = &topic;
    q.topics_count = 1;
    int rc = kclient_node(c->a->client, leader, &conn, &c->a->err);
    if (rc)
        return rc;
    *version = kclient_version(conn, KP_API_FETCH, FETCH_VERSION_MAX);
    if (*version < 0)
        return err_set(&c->a->err, ERR_UNSUPPORTED, "broker %d has no version of Fetch that we have", leader);
    return kclient_send(conn, KP_API_FETCH, *version, &q, &c->a->err);
}

// One round: a fetch to each leader, then all answers. A broker that is lost loses its partitions.
static int fetch_round(struct consume *c)
{
    struct {
        int32_t leader;
        int version;
        int rc;
    } calls[LEADERS_MAX];
    int count = 0;
    for (int32_t i = 0; i < c->sources_count && count < LEADERS_MAX; i++) {
        bool known = c->sources[i].leader < 0;
        for (int k = 0; k < count; k++)
            known |= calls[k].leader == c->sources[i].leader;
        if (!known)
            calls[count++].leader = c->sources[i].leader;
    }
    for (int k = 0; k < count; k++)
        calls[k].rc = send_fetch(c, calls[k].leader, &calls[k].version);
    for (int k = 0; k < count; k++) {
        struct kp_fetch_response r;
        struct kclient_conn *conn;
        int rc = calls[k].rc;
        if (rc == ERR_UNSUPPORTED)
            return admin_failed(c->a, rc);
        if (rc == 0)
            rc = kclient_node(c->a->client, calls[k].leader, &conn, &c->a->err);
        if (rc == 0)
            rc = kclient_receive(conn, KP_API_FETCH, calls[k].version, &r, &c->a->arena, &c->a->err);
        if (rc == 0) {
            int status = take_answer(c, &r);
            if (status)
                return status;
            continue;
        }
        for (int32_t i = 0; i < c->sources_count; i++)
            if (c->sources[i].leader == calls[k].leader)
                c->sources[i].leader = -1;
    }
    return ADMIN_OK;
}

static int find_leaders(struct consume *c)
{
    struct kp_metadata_response m;
    int status = admin_metadata(c->a, (const char *)c->topic.data, &m);
    if (status)
        return status;
    for (int32_t i = 0; i < m.topics[0].partitions_count; i++) {
        struct source_partition *s = find_source(c, m.topics[0].partitions[i].partition_index);
        if (s)
            s->leader = m.topics[0].partitions[i].leader_id;
    }
    int rc = kclient_refresh(c->a->client, &c->a->err);
    return rc ? admin_failed(c->a, rc) : ADMIN_OK;
}

static bool at_end(const struct consume *c)
{
    for (int32_t i = 0; i < c->sources_count; i++)
        if (!c->sources[i].at_end)
            return false;
    return true;
}

static int consume_loop(struct consume *c)
{
    int64_t lost_ms = -1; // since when a partition has no leader
    c->last_ms = now_ms();
    while (c->left > 0) {
        int status = fetch_round(c);
        arena_reset(&c->a->arena);
        if (status)
            return status;
        fflush(stdout);
        if ((c->exit_eof && at_end(c)) || (c->timeout_ms >= 0 && now_ms() - c->last_ms >= c->timeout_ms))
            break;
        bool lost = false;
        for (int32_t i = 0; i < c->sources_count; i++)
            lost |= c->sources[i].leader < 0;
        if (!lost) {
            lost_ms = -1;
            continue;
        }
        if (lost_ms < 0)
            lost_ms = now_ms();
        else if (now_ms() - lost_ms > c->a->client->opts.timeout_ms)
            return admin_refused(c->a, SLICE_FMT ": some partitions have no leader", SLICE_ARG(c->topic));
        struct timespec pause = {.tv_nsec = RETRY_PAUSE_MS * 1000000L};
        nanosleep(&pause, NULL);
        status = find_leaders(c);
        arena_reset(&c->a->arena);
        if (status)
            return status;
    }
    return ADMIN_OK;
}

// ---- the verb

// Where to start: --offset, --from-beginning, or the end. Fills `sources`.
static int find_start(struct consume *c, int32_t only, int64_t offset, int64_t place)
{
    struct kp_metadata_response m;
    struct partition_offset *start;
    int status = admin_metadata(c->a, (const char *)c->topic.data, &m);
    if (status || (status = offsets_of(c->a, &m.topics[0], place, c->committed, &start)))
        return status;
    c->sources = mem_calloc((size_t)m.topics[0].partitions_count + 1, sizeof(*c->sources));
    for (int32_t i = 0; i < m.topics[0].partitions_count; i++) {
        struct source_partition *s = &c->sources[c->sources_count];
        if (only >= 0 && start[i].partition != only)
            continue;
        if (start[i].error && offset < 0)
            return admin_refused(c->a, SLICE_FMT "-%d: %s: %s", SLICE_ARG(c->topic), start[i].partition,
                                 kafka_error_name(start[i].error), kafka_error_text(start[i].error));
        *s = (struct source_partition){.index = start[i].partition,
                                       .leader = start[i].leader,
                                       .next = offset >= 0 ? offset : start[i].offset};
        c->sources_count++;
    }
    if (c->sources_count == 0)
        return admin_refused(c->a, SLICE_FMT " has no partition %d", SLICE_ARG(c->topic), only);
    return ADMIN_OK;
}

static int read_options(struct consume *c, int32_t *only, int64_t *offset, int64_t *place)
{
    struct args *args = &c->a->args;
    int64_t partition, max;
    const char *where = args_value(args, "offset"), *format = args_value(args, "format");
    if (!admin_need(c->a, "topic"))
        return ADMIN_USAGE;
    c->topic = slice_str(args_value(args, "topic"));
    *offset = -1;
    *place = args_flag(args, "from-beginning") ? OFFSET_EARLIEST : OFFSET_LATEST;
    if (where && strcmp(where, "earliest") == 0)
        *place = OFFSET_EARLIEST;
    else if (where && strcmp(where, "latest") == 0)
        *place = OFFSET_LATEST;
    else if (where && !args_number(args, "offset", 0, INT64_MAX, -1, offset))
        return admin_usage(c->a, "--offset is a number, earliest or latest");
    if (!args_number(args, "partition", 0, INT32_MAX, -1, &partition) ||
        !args_number(args, "max-messages", 0, INT64_MAX, INT64_MAX, &max) ||
        !args_number(args, "idle-timeout", 0, INT32_MAX, -1, &c->timeout_ms))
        return admin_usage(c->a, "%s", args->error);
    if (*offset >= 0 && partition < 0)
        return admin_usage(c->a, "--offset NUMBER needs --partition");
    if (c->a->json || (format && strcmp(format, "json") == 0))
        c->format = FORMAT_JSON;
    else if (format && strcmp(format, "key-value") == 0)
        c->format = FORMAT_KEY_VALUE;
    else if (format && strcmp(format, "value") != 0)
        return admin_usage(c->a, "--format is value, key-value or json");
    c->separator = args_value(args, "key-separator") ? args_value(args, "key-separator") : "\t";
    c->left = max;
    c->exit_eof = args_flag(args, "exit-eof");
    c->committed = args_flag(args, "committed");
    *only = (int32_t)partition;
    return ADMIN_OK;
}

static int consume(struct admin *a)
{
    struct consume c = {.a = a};
    int32_t only = -1;
    int64_t offset = -1, place = OFFSET_LATEST;
    int status = read_options(&c, &only, &offset, &place);
    if (status)
        return status;
    static const size_t output_bytes = 256 << 10;
    char *buffer = mem_alloc(output_bytes);
    setvbuf(stdout, buffer, _IOFBF, output_bytes);
    c.cache = codec_cache_create();
    status = find_start(&c, only, offset, place);
    arena_reset(&a->arena);
    if (status == ADMIN_OK)
        status = consume_loop(&c);
    fflush(stdout);
    setvbuf(stdout, NULL, _IONBF, 0);
    mem_free(buffer);
    codec_cache_destroy(c.cache);
    for (int32_t i = 0; i < c.sources_count; i++)
        mem_free(c.sources[i].aborted);
    mem_free(c.sources);
    return status;
}

static const char *const options[] = {
    "topic=",         "from-beginning", "partition=", "offset=", "max-messages=", "idle-timeout=", "format=",
    "key-separator=", "exit-eof",       "committed",  NULL};

const struct admin_verb consume_verbs[] = {
    {"consume", options, "print records",
     "  --topic NAME\n"
     "  --from-beginning       from the first record (only records that come from now on)\n"
     "  --partition N          (all)\n"
     "  --offset WHERE         a number (with --partition), earliest or latest\n"
     "  --max-messages N       end after so many\n"
     "  --idle-timeout MS      end after so long without a record\n"
     "  --exit-eof             end when the ends of all partitions are reached\n"
     "  --format FORMAT        value, key-value or json, one record a line (value)\n"
     "  --key-separator TEXT   between key and value (a tab)\n"
     "  --committed            leave out aborted transactions, and wait for open ones\n"
     "\n"
     "Example:\n"
     "  kraft-admin consume --topic orders --from-beginning --exit-eof --format json\n",
     consume},
    {NULL, NULL, NULL, NULL, NULL},
};
