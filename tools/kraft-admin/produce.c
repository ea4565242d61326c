// SPDX-License-Identifier: Apache-2.0
// kraft-admin produce: lines of a file or of standard input become records.
//
// Lines are gathered into one batch per partition. When one is full, or when the input makes us wait, all of
// them are sent: one request per leader, to all leaders at once, then all answers are awaited. So at most one
// request per leader is in flight, order within a partition is kept, and what failed with an error that may
// pass is sent again as it was.
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/protocol/gen/init_producer_id_request.h"
#include "core/protocol/gen/init_producer_id_response.h"
#include "core/protocol/gen/produce_request.h"
#include "core/protocol/gen/produce_response.h"
#include "core/record/builder.h"
#include "tools/kraft-admin/admin.h"
#include "tools/kraft-admin/lines.h"

#define PRODUCE_VERSION_MAX 12 // the last version that names topics
#define IDLE_MS 20             // input silent for so long: send what there is
#define RETRY_PAUSE_MS 100     // before sending again what failed
#define PROGRESS_MS 1000       // between progress lines
#define REQUEST_BATCHES 64     // partitions whose batches may be gathered before all are sent

struct lane {               // one partition
    struct builder builder; // records not yet sent
    struct slice batch;     // the finished batch, until it is acknowledged; borrowed from the builder
    int32_t leader;         // broker to send to; -1: none known
    int32_t sequence;       // of the next batch
    int64_t records;        // in the batch
    int16_t error;          // of the last try
};

struct produce {
    struct admin *a;              // the command
    struct slice topic;           // its name
    struct lane *lanes;           // one per partition
    int32_t lanes_count;          // partitions
    int32_t only;                 // partition of --partition; -1: by key or in turn
    int32_t turn;                 // partition that lines without key go to now
    struct builder_options opts;  // of every batch
    const char *separator;        // between key and value; NULL: no keys
    int16_t acks;                 // as on the wire
    bool quiet;                   // no progress lines
    size_t batch_bytes;           // a batch is sent when it has so many
    int64_t records, bytes;       // acknowledged so far
    int64_t started_ms, shown_ms; // for the rate
};

static int64_t now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void show_progress(struct produce *p, bool last)
{
    int64_t now = now_ms(CLOCK_MONOTONIC);
    if (p->quiet || p->records == 0 || (!last && now - p->shown_ms < PROGRESS_MS))
        return;
    double seconds = (double)(now - p->started_ms) / 1000.0 + 0.0005;
    p->shown_ms = now;
    fprintf(stderr, "%lld records, %.1f MB in %.1f s: %.0f records/s, %.1f MB/s\n", (long long)p->records,
            (double)p->bytes / 1e6, seconds, (double)p->records / seconds, (double)p->bytes / 1e6 / seconds);
}

// ---- where the partitions are

static int find_leaders(struct produce *p)
{
    struct kp_metadata_response m;
    int status = admin_metadata(p->a, (const char *)p->topic.data, &m);
    if (status)
        return status;
    if (!p->lanes) {
        p->lanes_count = m.topics[0].partitions_count;
        p->lanes = mem_calloc((size_t)p->lanes_count + 1, sizeof(*p->lanes));
        for (int32_t i = 0; i < p->lanes_count; i++)
            builder_init(&p->lanes[i].builder, &p->opts);
    }
    for (int32_t i = 0; i < p->lanes_count; i++)
        p->lanes[i].leader = -1;
    for (int32_t i = 0; i < m.topics[0].partitions_count; i++) {
        int32_t index = m.topics[0].partitions[i].partition_index;
        if (index >= 0 && index < p->lanes_count)
            p->lanes[index].leader = m.topics[0].partitions[i].leader_id;
    }
    int rc = kclient_refresh(p->a->client, &p->a->err);
    return rc ? admin_failed(p->a, rc) : ADMIN_OK;
}

// ---- sending

static int finish_batches(struct produce *p)
{
    for (int32_t i = 0; i < p->lanes_count; i++) {
        struct lane *l = &p->lanes[i];
        l->error = KE_NONE;
        if (l->builder.count == 0)
            continue;
        l->records = l->builder.count;
        l->builder.opts.base_sequence = p->opts.producer_id >= 0 ? l->sequence : -1;
        int rc = builder_finish(&l->builder, &l->batch, &p->a->err);
        if (rc)
            return admin_failed(p->a, rc);
        if (p->opts.producer_id >= 0)
            l->sequence = (int32_t)(((int64_t)l->sequence + l->records) & INT32_MAX);
    }
    return ADMIN_OK;
}

// Sends the batches that `leader` is to get. 0: sent (or nothing to send); else the connection's error.
static int send_to(struct produce *p, int32_t leader, int *version)
{
    struct kp_produce_request q;
    struct kp_produce_request_topic_produce_data topic;
    struct kclient_conn *conn;
    struct kp_produce_request_partition_produce_data *rows =
        arena_alloc(&p->a->arena, (size_t)p->lanes_count * sizeof(*rows));
    kp_produce_request_init(&q);
    kp_produce_request_topic_produce_data_init(&topic);
    q.acks = p->acks;
    q.timeout_ms = p->a->client->opts.timeout_ms;
    topic.name = p->topic;
    topic.partition_data = rows;
    for (int32_t i = 0; i < p->lanes_count; i++)
        if (p->lanes[i].leader == leader && p->lanes[i].batch.data) {
            struct kp_produce_request_partition_produce_data *row = &rows[topic.partition_data_count++];
            kp_produce_request_partition_produce_data_init(row);
            row->index = i;
            row->records.bytes = p->lanes[i].batch;
        }
    q.topic_data = &topic;
    q.topic_data_count = 1;
    int rc = kclient_node(p->a->client, leader, &conn, &p->a->err);
    if (rc)
        return rc;
    *version = kclient_version(conn, KP_API_PRODUCE, PRODUCE_VERSION_MAX);
    if (*version < 0)
        return err_set(&p->a->err, ERR_UNSUPPORTED, "broker %d has no version of Produce that we have",
                       leader);
    return kclient_send(conn, KP_API_PRODUCE, *version, &q, &p->a->err);
}

static void acknowledge(struct produce *p, struct lane *l)
{
    p->records += l->records;
    p->bytes += (int64_t)l->batch.len;
    l->batch = SLICE_NULL;
    l->records = 0;
    builder_reset(&l->builder, &p->opts);
}

static int take_answer(struct produce *p, int32_t leader, int version)
{
    struct kp_produce_response r;
    struct kclient_conn *conn;
    int rc = kclient_node(p->a->client, leader, &conn, &p->a->err);
    if (rc || (rc = kclient_receive(conn, KP_API_PRODUCE, version, &r, &p->a->arena, &p->a->err)))
        return rc;
    for (int32_t t = 0; t < r.responses_count; t++)
        for (int32_t i = 0; i < r.responses[t].partition_responses_count; i++) {
            const struct kp_produce_response_partition_produce_response *row =
                &r.responses[t].partition_responses[i];
            if (row->index < 0 || row->index >= p->lanes_count)
                continue;
            struct lane *l = &p->lanes[row->index];
            l->error = row->error_code;
            if (row->error_code == KE_NONE || row->error_code == KE_DUPLICATE_SEQUENCE_NUMBER) {
                l->error = KE_NONE;
                acknowledge(p, l);
            } else if (!kafka_error_is_retriable(row->error_code)) {
                char subject[300];
                snprintf(subject, sizeof(subject), SLICE_FMT "-%d", SLICE_ARG(p->topic), row->index);
                return admin_refusal(p->a, slice_str(subject), row->error_code, row->error_message)
                           ? ERR_INVALID
                           : 0;
            }
        }
    return 0;
}

// One try: sends to all leaders, then takes all answers. ADMIN_OK, also where some batches remain; else an
// exit code.
static int try_once(struct produce *p)
{
    struct {
        int32_t leader;
        int version;
        bool sent;
    } calls[REQUEST_BATCHES];
    int count = 0;
    for (int32_t i = 0; i < p->lanes_count && count < REQUEST_BATCHES; i++) {
        bool known = p->lanes[i].leader < 0 || !p->lanes[i].batch.data;
        for (int k = 0; k < count; k++)
            known |= calls[k].leader == p->lanes[i].leader;
        if (!known)
            calls[count++].leader = p->lanes[i].leader;
    }
    for (int k = 0; k < count; k++)
        calls[k].sent = send_to(p, calls[k].leader, &calls[k].version) == 0;
    for (int k = 0; k < count; k++) {
        if (!calls[k].sent)
            continue;
        if (p->acks == 0) {
            for (int32_t i = 0; i < p->lanes_count; i++)
                if (p->lanes[i].leader == calls[k].leader && p->lanes[i].batch.data)
                    acknowledge(p, &p->lanes[i]);
        } else if (take_answer(p, calls[k].leader, calls[k].version) == ERR_INVALID) {
            return ADMIN_REFUSED;
        }
    }
    return ADMIN_OK;
}

static int32_t first_unsent(const struct produce *p)
{
    for (int32_t i = 0; i < p->lanes_count; i++)
        if (p->lanes[i].batch.data)
            return i;
    return -1;
}

// Sends all that is gathered and waits until it is acknowledged.
static int send_all(struct produce *p)
{
    int64_t deadline = now_ms(CLOCK_MONOTONIC) + p->a->client->opts.timeout_ms;
    int32_t left;
    int status = finish_batches(p);
    while (status == ADMIN_OK && (left = first_unsent(p)) >= 0) {
        status = try_once(p);
        arena_reset(&p->a->arena);
        left = first_unsent(p);
        if (status || left < 0)
            break;
        if (now_ms(CLOCK_MONOTONIC) > deadline) {
            int error = p->lanes[left].error;
            return admin_refused(p->a, SLICE_FMT "-%d: not accepted in time: %s", SLICE_ARG(p->topic), left,
                                 error                       ? kafka_error_name(error)
                                 : p->lanes[left].leader < 0 ? "it has no leader"
                                                             : p->a->err.text);
        }
        pause_ms(RETRY_PAUSE_MS);
        status = find_leaders(p);
        arena_reset(&p->a->arena);
    }
    show_progress(p, false);
    return status;
}

// ---- gathering

static int32_t choose_lane(struct produce *p, struct slice key)
{
    if (p->only >= 0)
        return p->only;
    if (!slice_is_null(key))
        return hash_murmur2_partition(key, p->lanes_count);
    for (int32_t i = 0; i < p->lanes_count && p->lanes[p->turn].leader < 0;
         i++) // rather one that has a leader
        p->turn = (p->turn + 1) % p->lanes_count;
    return p->turn;
}

static int add_line(struct produce *p, struct slice line)
{
    struct slice key = SLICE_NULL, value = line;
    const uint8_t *mark =
        p->separator ? memmem(line.data, line.len, p->separator, strlen(p->separator)) : NULL;
    if (p->separator && !mark)
        return admin_refused(p->a, "a line has no %s between key and value: %.100s", p->separator,
                             (const char *)line.data);
    if (mark) {
        key = slice_of(line.data, (size_t)(mark - line.data));
        value = slice_of(mark + strlen(p->separator), line.len - key.len - strlen(p->separator));
    }
    struct lane *l = &p->lanes[choose_lane(p, key)];
    size_t bound = builder_record_bound(key, value, NULL, 0);
    if (l->builder.count > 0 && builder_size(&l->builder) + bound > p->batch_bytes) {
        int status = send_all(p);
        if (status)
            return status;
        p->turn =
            (p->turn + 1) % p->lanes_count; // lines without key: the next batch goes to the next partition
        l = &p->lanes[choose_lane(p, key)];
    }
    builder_append(&l->builder, now_ms(CLOCK_REALTIME), key, value, NULL, 0);
    return ADMIN_OK;
}

static int produce_lines(struct produce *p, int fd)
{
    struct lines lines;
    struct slice line;
    int status = ADMIN_OK;
    lines_init(&lines, fd);
    while (status == ADMIN_OK && lines_next(&lines, &line)) {
        status = add_line(p, line);
        if (status == ADMIN_OK && lines_would_wait(&lines, 0) && lines_would_wait(&lines, IDLE_MS))
            status = send_all(p);
    }
    if (status == ADMIN_OK)
        status = send_all(p);
    lines_fini(&lines);
    return status;
}

// ---- the verb

static int take_producer_id(struct produce *p)
{
    struct kp_init_producer_id_request q;
    struct kp_init_producer_id_response r;
    kp_init_producer_id_request_init(&q);
    q.transactional_id = SLICE_NULL;
    int64_t deadline = now_ms(CLOCK_MONOTONIC) + p->a->client->opts.timeout_ms;
    for (;;) {
        int rc = admin_call(p->a, KP_API_INIT_PRODUCER_ID, &q, &r);
        if (rc)
            return admin_failed(p->a, rc);
        if (!kafka_error_is_retriable(r.error_code) || now_ms(CLOCK_MONOTONIC) > deadline)
            break;
        pause_ms(RETRY_PAUSE_MS);
    }
    if (r.error_code)
        return admin_refusal(p->a, SLICE_LIT("producer id"), r.error_code, SLICE_NULL);
    p->opts.producer_id = r.producer_id;
    p->opts.producer_epoch = r.producer_epoch;
    return ADMIN_OK;
}

// Reads the options. ADMIN_OK or ADMIN_USAGE.
static int read_options(struct produce *p)
{
    struct args *args = &p->a->args;
    int64_t partition, batch_bytes;
    const char *acks = args_value(args, "acks"), *codec = args_value(args, "compression");
    if (!admin_need(p->a, "topic"))
        return ADMIN_USAGE;
    p->topic = slice_str(args_value(args, "topic"));
    p->separator = args_value(args, "key-separator");
    p->quiet = args_flag(args, "quiet");
    p->opts = BUILDER_OPTIONS_DEFAULT;
    if (!args_number(args, "partition", 0, INT32_MAX, -1, &partition) ||
        !args_number(args, "batch-bytes", 1, 100 << 20, 500000, &batch_bytes))
        return admin_usage(p->a, "%s", args->error);
    p->only = (int32_t)partition;
    p->batch_bytes = (size_t)batch_bytes;
    if (p->separator && !*p->separator)
        return admin_usage(p->a, "--key-separator is empty");
    if (codec && !codec_from_name(slice_str(codec), &p->opts.codec))
        return admin_usage(p->a, "--compression is none, gzip, snappy, lz4 or zstd");
    if (!acks || strcmp(acks, "all") == 0 || strcmp(acks, "-1") == 0)
        p->acks = -1;
    else if (strcmp(acks, "0") == 0 || strcmp(acks, "1") == 0)
        p->acks = (int16_t)(*acks - '0');
    else
        return admin_usage(p->a, "--acks is 0, 1 or all");
    if (args_flag(args, "idempotent") && p->acks != -1)
        return admin_usage(p->a, "--idempotent needs --acks all");
    return ADMIN_OK;
}

static int produce(struct admin *a)
{
    struct produce p = {.a = a};
    const char *file = args_value(&a->args, "file");
    int status = read_options(&p), fd = STDIN_FILENO;
    if (status)
        return status;
    if (file && (fd = open(file, O_RDONLY | O_CLOEXEC)) < 0)
        return admin_usage(a, "%s: %s", file, strerror(errno));
    if (args_flag(&a->args, "idempotent"))
        status = take_producer_id(&p);
    if (status == ADMIN_OK)
        status = find_leaders(&p);
    arena_reset(&a->arena);
    if (status == ADMIN_OK && (p.only >= p.lanes_count || p.lanes_count == 0))
        status = admin_refused(a, SLICE_FMT " has %d partitions", SLICE_ARG(p.topic), p.lanes_count);
    p.started_ms = p.shown_ms = now_ms(CLOCK_MONOTONIC);
    if (status == ADMIN_OK)
        status = produce_lines(&p, fd);
    show_progress(&p, true);
    if (a->json)
        (void)admin_print_json(json_pack("{s:s, s:I, s:I, s:I}", "topic", (const char *)p.topic.data,
                                         "records", (json_int_t)p.records, "bytes", (json_int_t)p.bytes,
                                         "milliseconds",
                                         (json_int_t)(now_ms(CLOCK_MONOTONIC) - p.started_ms)));
    for (int32_t i = 0; i < p.lanes_count; i++)
        builder_fini(&p.lanes[i].builder);
    mem_free(p.lanes);
    if (file)
        close(fd);
    return status;
}

static const char *const options[] = {"topic=",       "file=", "partition=",   "key-separator=",
                                      "compression=", "acks=", "batch-bytes=", "idempotent",
                                      "quiet",        NULL};

const struct admin_verb produce_verbs[] = {
    {"produce", options, "send lines as records",
     "  --topic NAME\n"
     "  --file FILE               (standard input)\n"
     "  --key-separator TEXT      what stands before it in a line is the record's key\n"
     "  --partition N             (by the key, as Java clients do it; without key in turn)\n"
     "  --compression CODEC       none, gzip, snappy, lz4, zstd (none)\n"
     "  --acks 0|1|all            which replicas must have it before it counts as sent (all)\n"
     "  --idempotent              records that must be sent again are not stored twice\n"
     "  --batch-bytes N           (500000)\n"
     "  --quiet                   no progress lines\n"
     "\n"
     "Example:\n"
     "  seq 1000 | kraft-admin produce --topic numbers --compression lz4\n",
     produce},
    {NULL, NULL, NULL, NULL, NULL},
};
