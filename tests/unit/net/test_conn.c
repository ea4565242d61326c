// SPDX-License-Identifier: Apache-2.0
// Connections: frames in, ropes out, pausing, closing, files, magic numbers.
//
// Longer than other files because all facts of a connection share one echo server.
#include "tests/unit/net/net_fixture.h"

#include <sys/mman.h>
#include <fcntl.h>

static struct node_listener *listener;
static uint16_t port;
static atomic_int accepted, closed_count, last_reason, drained_count, frames;
static bool pause_each;
static struct node_conn *_Atomic last_conn;

// Replies with the frame; "bye" closes with flush, "die" without, "err" by an error, "pau" pauses.
static int on_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    atomic_fetch_add(&frames, 1);
    if (len == 3 && memcmp(data, "die", 3) == 0) {
        reply(c, data, len);
        node_conn_close(c, false);
        return 0;
    }
    if (len == 3 && memcmp(data, "err", 3) == 0)
        return ERR_MALFORMED;
    reply(c, data, len);
    if (len == 3 && memcmp(data, "bye", 3) == 0)
        node_conn_close(c, true);
    if (pause_each || (len == 3 && memcmp(data, "pau", 3) == 0))
        node_conn_pause(c);
    return 0;
}
static void on_closed(struct node_conn *c, int reason)
{
    atomic_store(&last_reason, reason);
    atomic_fetch_add(&closed_count, 1);
}
static void on_drained(struct node_conn *c)
{
    assert_int_equal(node_conn_queued(c), 0);
    atomic_fetch_add(&drained_count, 1);
}
static const struct node_conn_ops echo_ops = {on_frame, on_closed, on_drained};

static int on_accept(struct node_conn *c, void *data)
{
    last_conn = c;
    node_conn_set_ops(c, data ? (const struct node_conn_ops *)data : &echo_ops);
    node_conn_set_data(c, &port);
    assert_ptr_equal(node_conn_data(c), &port);
    atomic_fetch_add(&accepted, 1);
    return 0;
}

static int on_magic_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    reply(c, "magic", 5);
    return 0;
}
static const struct node_conn_ops magic_ops = {on_magic_frame, on_closed, NULL};
static int on_accept_magic(struct node_conn *c, void *data)
{
    node_conn_set_ops(c, &magic_ops);
    return 0;
}

static void up(const struct net_options *opts, const struct node_conn_ops *ops,
               struct node_conn_limits limits, uint32_t magic, unsigned loop_count)
{
    struct errmsg msg;
    node_up(opts);
    struct node_listen_opts o = {.host = HOST,
                                 .backlog = 50,
                                 .loops = loops,
                                 .loops_count = loop_count,
                                 .limits = limits,
                                 .magic = magic,
                                 .accept = on_accept,
                                 .accept_magic = on_accept_magic,
                                 .data = (void *)(uintptr_t)ops};
    if (!limits.frame_bytes_max)
        o.limits.frame_bytes_max = 100u << 20;
    assert_int_equal(node_listen(node, &o, &listener, &msg), 0);
    port = node_listener_port(listener);
    atomic_store(&accepted, 0);
    atomic_store(&closed_count, 0);
    atomic_store(&drained_count, 0);
    atomic_store(&frames, 0);
    atomic_store(&last_reason, -1);
    pause_each = false;
}
static int setup(void **state)
{
    up(NULL, NULL, (struct node_conn_limits){0}, 0, 1);
    return 0;
}
static int teardown(void **state)
{
    node_down();
    assert_int_equal(atomic_load(&closed_count), atomic_load(&accepted));
    struct chunk_stats s;
    chunk_stats(&s);
    assert_int_equal(s.chunks_used, 0);
    return 0;
}

static void a_frame_comes_back(void **state)
{
    char buf[16];
    int fd = client_connect(port);
    client_send_frame(fd, "hello", 5);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 5);
    assert_memory_equal(buf, "hello", 5);
    client_send_frame(fd, "", 0);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 0);
    close(fd);
    WAIT_UNTIL(atomic_load(&closed_count) == 1);
    assert_int_equal(atomic_load(&last_reason), 0);
}

static void many_frames_in_one_receive_are_answered_in_order(void **state)
{
    enum { N = 1000 };
    static uint8_t out[N * 20], in[64];
    size_t len = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t n = 4 + i % 13;
        bytes_store_be32(out + len, n);
        memset(out + len + 4, (int)i, n);
        bytes_store_be32(out + len + 4, i);
        len += 4 + n;
    }
    int fd = client_connect(port);
    client_send(fd, out, len);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(client_recv_frame(fd, in, sizeof in), 4 + i % 13);
        assert_int_equal(bytes_load_be32(in), i);
    }
    close(fd);
}

static void a_frame_sent_byte_by_byte_is_put_together(void **state)
{
    char buf[16];
    uint8_t bytes[] = {0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, 1, 'x'};
    int fd = client_connect(port);
    for (size_t i = 0; i < sizeof bytes; i++) {
        client_send(fd, bytes + i, 1);
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    }
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 5);
    assert_memory_equal(buf, "hello", 5);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 1);
    close(fd);
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 2654435761u >> 13 ^ seed);
}

struct sender {
    int fd;
    const uint8_t *data;
    uint32_t len;
    int times;
};
static void *send_frames(void *arg)
{
    struct sender *s = arg;
    for (int i = 0; i < s->times; i++)
        client_send_frame(s->fd, s->data, s->len);
    return NULL;
}

static void frames_of_all_sizes_come_back_whole(void **state)
{
    const uint32_t sizes[] = {1, 16380, 65536, 262140, 300000, 1048576 + 77, 10u << 20};
    uint8_t *data = malloc(10u << 20), *back = malloc(10u << 20);
    fill(data, 10u << 20, 3);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sender s = {client_connect(port), data, sizes[i], 3};
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, send_frames, &s), 0);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(client_recv_frame(s.fd, back, 10u << 20), sizes[i]);
            assert_memory_equal(data, back, sizes[i]);
        }
        pthread_join(t, NULL);
        close(s.fd);
    }
    free(data);
    free(back);
}

static void random_sizes_on_one_connection_come_back(void **state)
{
    unsigned seed = 4;
    uint8_t *data = malloc(1 << 20), *back = malloc(1 << 20);
    fill(data, 1 << 20, 9);
    int fd = client_connect(port);
    for (int round = 0; round < 100; round++) {
        uint32_t len[8];
        for (int i = 0; i < 8; i++) {
            len[i] = (uint32_t)rand_r(&seed) & ((1u << (rand_r(&seed) % 17)) - 1);
            client_send_frame(fd, data, len[i]);
        }
        for (int i = 0; i < 8; i++) {
            assert_int_equal(client_recv_frame(fd, back, 1 << 20), len[i]);
            assert_memory_equal(data, back, len[i]);
        }
    }
    close(fd);
    free(data);
    free(back);
}

static void connections_are_spread_over_loops(void **state)
{
    up(NULL, NULL, (struct node_conn_limits){0}, 0, 2);
    char buf[8];
    int fds[10];
    for (int i = 0; i < 10; i++) {
        fds[i] = client_connect(port);
        client_send_frame(fds[i], "x", 1);
    }
    for (int i = 0; i < 10; i++) {
        assert_int_equal(client_recv_frame(fds[i], buf, sizeof buf), 1);
        close(fds[i]);
    }
    assert_int_equal(atomic_load(&accepted), 10);
}

static void close_with_flush_lets_the_last_bytes_leave(void **state)
{
    char buf[8];
    int fd = client_connect(port);
    client_send_frame(fd, "bye", 3);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 3);
    assert_true(client_is_closed(fd));
    close(fd);
    WAIT_UNTIL(atomic_load(&closed_count) == 1);
    assert_int_equal(atomic_load(&last_reason), 0);
}

static void close_without_flush_drops_them(void **state)
{
    int fd = client_connect(port);
    client_send_frame(fd, "die", 3);
    assert_true(client_is_closed(fd));
    close(fd);
}

static void an_error_of_the_frame_callback_closes_with_it(void **state)
{
    int fd = client_connect(port);
    client_send_frame(fd, "err", 3);
    assert_true(client_is_closed(fd));
    WAIT_UNTIL(atomic_load(&closed_count) == 1);
    assert_int_equal(atomic_load(&last_reason), ERR_MALFORMED);
    close(fd);
}

static void resume_last(void *arg)
{
    node_conn_resume(last_conn);
}
static void nothing(void *arg) {}
static void a_paused_connection_delivers_nothing_until_resumed(void **state)
{
    char buf[8];
    int fd = client_connect(port);
    client_send_frame(fd, "pau", 3);
    client_send_frame(fd, "one", 3);
    client_send_frame(fd, "two", 3);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 3);
    client_send_frame(fd, "six", 3);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(atomic_load(&frames), 1);
    on_loop(loops[0], resume_last, NULL);
    const char *want[] = {"one", "two", "six"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 3);
        assert_memory_equal(buf, want[i], 3);
    }
    close(fd);
}

static void frames_kept_while_paused_come_one_by_one(void **state)
{
    enum { N = 500 };
    uint8_t *data = malloc(3000), *back = malloc(3000);
    fill(data, 3000, 1);
    pause_each = true;
    int fd = client_connect(port);
    for (int i = 0; i < N; i++)
        client_send_frame(fd, data, (uint32_t)(i * 7 % 3000));
    for (int i = 0; i < N; i++) {
        assert_int_equal(client_recv_frame(fd, back, 3000), i * 7 % 3000);
        assert_memory_equal(data, back, (size_t)(i * 7 % 3000));
        on_loop(loops[0], nothing, NULL);
        assert_int_equal(atomic_load(&frames), i + 1);
        on_loop(loops[0], resume_last, NULL);
    }
    close(fd);
    free(data);
    free(back);
}

static void pause_twice_resume_once(void *arg)
{
    node_conn_pause(last_conn);
    node_conn_pause(last_conn);
    node_conn_resume(last_conn);
}
static void pauses_are_counted(void **state)
{
    char buf[8];
    int fd = client_connect(port);
    client_send_frame(fd, "a", 1);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 1);
    on_loop(loops[0], pause_twice_resume_once, NULL);
    client_send_frame(fd, "b", 1);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(atomic_load(&frames), 1);
    on_loop(loops[0], resume_last, NULL);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 1);
    close(fd);
}

// ---- output
// ----------------------------------------------------------------------------------------------------

struct mem_file {
    struct rope_file f;
    size_t size;
    uint8_t *bytes;
};
static int mem_file_read(struct rope_file *f, void *buf, size_t len, uint64_t pos)
{
    return pread(f->fd, buf, len, (off_t)pos) == (ssize_t)len ? 0 : ERR_IO;
}
static void mem_file_free(struct rope_file *f)
{
    close(f->fd);
    f->fd = -1;
}
static struct mem_file file;
static void file_make(size_t size)
{
    int fd = memfd_create("range", MFD_CLOEXEC);
    uint8_t *bytes = malloc(size);
    fill(bytes, size, 77);
    for (size_t at = 0; at < size;)
        at += (size_t)write(fd, bytes + at, size - at);
    file = (struct mem_file){{1, fd, mem_file_read, mem_file_free}, size, bytes};
}

// A frame asks for (pos, len) pairs; the answer is head, range, "mid", range, ... "end".
static int on_file_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    struct rope r;
    rope_init(&r);
    uint32_t total = 0;
    for (size_t i = 0; i < len; i += 8)
        total += bytes_load_be32(data + i + 4) + 3;
    bytes_store_be32(rope_reserve(&r, 4), total);
    for (size_t i = 0; i < len; i += 8) {
        rope_add_file(&r, &file.f, bytes_load_be32(data + i), bytes_load_be32(data + i + 4));
        rope_write(&r, i + 8 == len ? "end" : "mid", 3);
    }
    node_conn_send(c, &r);
    return 0;
}
static const struct node_conn_ops file_ops = {on_file_frame, on_closed, on_drained};

static void ask_ranges(int fd, unsigned *seed, uint32_t (*ranges)[2], int count)
{
    uint8_t ask[8 * 16];
    for (int i = 0; i < count; i++) {
        ranges[i][1] = 1 + (uint32_t)rand_r(seed) % (rand_r(seed) % 2 ? 3000 : 150000);
        ranges[i][0] = (uint32_t)rand_r(seed) % (uint32_t)(file.size - ranges[i][1]);
        bytes_store_be32(ask + 8 * i, ranges[i][0]);
        bytes_store_be32(ask + 8 * i + 4, ranges[i][1]);
    }
    client_send_frame(fd, ask, (uint32_t)(8 * count));
}
static void expect_ranges(int fd, uint8_t *back, size_t size, uint32_t (*ranges)[2], int count)
{
    int64_t n = client_recv_frame(fd, back, size);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        assert_memory_equal(back + at, file.bytes + ranges[i][0], ranges[i][1]);
        at += ranges[i][1];
        assert_memory_equal(back + at, i + 1 == count ? "end" : "mid", 3);
        at += 3;
    }
    assert_int_equal(n, at);
}

static void file_ranges_great_and_small_arrive_between_bytes(void **state)
{
    file_make(1 << 20);
    up(NULL, &file_ops, (struct node_conn_limits){0}, 0, 1);
    unsigned seed = 3;
    uint8_t *back = malloc(4 << 20);
    int fd = client_connect(port);
    for (int round = 0; round < 60; round++) {
        uint32_t ranges[4][16][2];
        int counts[4];
        for (int k = 0; k < 4; k++)
            ask_ranges(fd, &seed, ranges[k], counts[k] = 1 + rand_r(&seed) % 16);
        for (int k = 0; k < 4; k++)
            expect_ranges(fd, back, 4 << 20, ranges[k], counts[k]);
    }
    close(fd);
    WAIT_UNTIL(atomic_load(&closed_count) == 1);
    assert_int_equal(file.f.refs, 1);
    rope_file_unref(&file.f);
    free(file.bytes);
    free(back);
}

static void a_range_past_the_files_end_closes_the_connection(void **state)
{
    file_make(100000);
    up(NULL, &file_ops, (struct node_conn_limits){0}, 0, 1);
    const uint32_t lens[] = {1000, 90000};
    for (int i = 0; i < 2; i++) {
        uint8_t ask[8];
        char drop[4096];
        int fd = client_connect(port);
        bytes_store_be32(ask, 99500);
        bytes_store_be32(ask + 4, lens[i]);
        client_send_frame(fd, ask, 8);
        ssize_t n;
        while ((n = client_receive(fd, drop, sizeof drop)) > 0)
            ;
        close(fd);
    }
    WAIT_UNTIL(atomic_load(&closed_count) == 2);
    assert_int_equal(atomic_load(&last_reason), ERR_IO);
    rope_file_unref(&file.f);
    free(file.bytes);
}

static void a_slow_reader_is_read_no_further_and_loses_nothing(void **state)
{
    up(&(struct net_options){.send_queue_bytes_high = 256 << 10, .send_buffer_bytes = 64 << 10}, NULL,
       (struct node_conn_limits){0}, 0, 1);
    enum { N = 300, LEN = 100000 };
    uint8_t *data = malloc(LEN), *back = malloc(LEN);
    fill(data, LEN, 5);
    struct sender s = {client_connect(port), data, LEN, N};
    pthread_t t;
    int small = 64 << 10;
    setsockopt(s.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(pthread_create(&t, NULL, send_frames, &s), 0);
    int before = -1;
    while (before != atomic_load(&frames)) { // until it stands still
        before = atomic_load(&frames);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    assert_true(before < N); // the server holds back what the client does not take
    struct chunk_stats st;
    chunk_stats(&st);
    assert_true(st.used_bytes < (8u << 20));
    for (int i = 0; i < N; i++) {
        assert_int_equal(client_recv_frame(s.fd, back, LEN), LEN);
        assert_memory_equal(data, back, LEN);
    }
    pthread_join(t, NULL);
    WAIT_UNTIL(atomic_load(&drained_count) > 0);
    close(s.fd);
    free(data);
    free(back);
}

static void a_closing_connection_whose_peer_does_not_read_ends_in_time(void **state)
{
    uint8_t *data = calloc(1, 20u << 20);
    struct sender s = {client_connect(port), data, 20u << 20, 1};
    send_frames(&s);
    client_send_frame(s.fd, "bye", 3);
    WAIT_UNTIL(atomic_load(&closed_count) == 1 || atomic_load(&frames) == 1);
    on_loop(loops[0], nothing, NULL);
    close(s.fd);
    free(data);
}

// ---- magic, idle time, address
// ------------------------------------------------------------------------------------

#define MAGIC 0xfeedbeefu
static void a_magic_number_selects_other_callbacks(void **state)
{
    up(NULL, NULL, (struct node_conn_limits){0}, MAGIC, 2);
    char buf[16];
    uint8_t magic[4];
    bytes_store_be32(magic, MAGIC);
    int a = client_connect(port), b = client_connect(port), c = client_connect(port);
    for (int i = 0; i < 4; i++) {
        client_send(a, magic + i, 1);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    client_send_frame(a, "x", 1);
    assert_int_equal(client_recv_frame(a, buf, sizeof buf), 5);
    assert_memory_equal(buf, "magic", 5);
    client_send_frame(b, "plain", 5);
    assert_int_equal(client_recv_frame(b, buf, sizeof buf), 5);
    assert_memory_equal(buf, "plain", 5);
    uint8_t together[9] = {0xfe, 0xed, 0xbe, 0xef, 0, 0, 0, 1, 'y'};
    client_send(c, together, sizeof together);
    assert_int_equal(client_recv_frame(c, buf, sizeof buf), 5);
    close(a);
    close(b);
    close(c);
}

static void a_magic_number_later_is_a_bad_length(void **state)
{
    up(NULL, NULL, (struct node_conn_limits){0}, MAGIC, 1);
    char buf[16];
    uint8_t magic[4];
    int fd = client_connect(port);
    client_send_frame(fd, "x", 1);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 1);
    bytes_store_be32(magic, MAGIC);
    client_send(fd, magic, 4);
    assert_true(client_is_closed(fd));
    close(fd);
}

static void an_idle_connection_is_closed_a_busy_one_stays(void **state)
{
    up(NULL, NULL, (struct node_conn_limits){.frame_bytes_max = 100, .idle_ms = 60}, 0, 1);
    char buf[8];
    int idle = client_connect(port), busy = client_connect(port);
    for (int i = 0; i < 8; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        client_send_frame(busy, "x", 1);
        assert_int_equal(client_recv_frame(busy, buf, sizeof buf), 1);
    }
    WAIT_UNTIL(atomic_load(&closed_count) == 1);
    assert_int_equal(atomic_load(&last_reason), ERR_TIMEOUT);
    assert_true(client_is_closed(idle));
    close(idle);
    close(busy);
}

static void check_peer(void *arg)
{
    char host[64];
    uint16_t p;
    node_conn_peer(last_conn, host, sizeof host, &p);
    assert_string_equal(host, "127.0.0.1");
    assert_true(p != 0);
}
static void the_peers_address_is_told(void **state)
{
    int fd = client_connect(port);
    WAIT_UNTIL(atomic_load(&accepted) == 1);
    on_loop(loops[0], check_peer, NULL);
    close(fd);
}

// ---- the turn
// -----------------------------------------------------------------------------------------------------

static struct {
    const uint8_t *data;
    size_t len;
    uint8_t copy[64];
} seen[2000];
static int seen_count, seen_checked;
static int on_keep(struct node_conn *c, uint8_t *data, size_t len)
{
    seen[seen_count].data = data;
    seen[seen_count].len = len;
    memcpy(seen[seen_count++].copy, data, len < 64 ? len : 64);
    reply(c, data, len < 64 ? len : 64);
    return 0;
}
static const struct node_conn_ops keep_ops = {on_keep, on_closed, NULL};
static void check_seen(struct node_hook *h)
{
    for (int i = 0; i < seen_count; i++, seen_checked++)
        assert_memory_equal(seen[i].data, seen[i].copy, seen[i].len < 64 ? seen[i].len : 64);
    seen_count = 0;
}
static void frames_stay_valid_until_the_hooks_have_run(void **state)
{
    static struct node_hook h = {.run = check_seen};
    static uint8_t data[100000];
    up(NULL, &keep_ops, (struct node_conn_limits){0}, 0, 1);
    seen_count = seen_checked = 0;
    node_loop_add_turn_end(loops[0], &h);
    uint8_t back[64];
    int fds[8];
    unsigned seed = 8;
    for (int i = 0; i < 8; i++)
        fds[i] = client_connect(port);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 8; i++)
            for (int k = 0; k < 3; k++) {
                fill(data, 64, (unsigned)(round * 8 + i + k));
                client_send_frame(fds[i], data, (uint32_t)rand_r(&seed) % (k == 2 ? 100000u : 3000u));
            }
        for (int i = 0; i < 8; i++)
            for (int k = 0; k < 3; k++)
                assert_true(client_recv_frame(fds[i], back, sizeof back) >= 0);
    }
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    on_loop(loops[0], nothing, NULL);
    on_loop(loops[0], nothing, NULL);
    assert_int_equal(seen_checked, 40 * 8 * 3);
}

static void a_busy_port_is_refused_with_advice(void **state)
{
    struct node_listener *other;
    struct errmsg msg;
    struct node_listen_opts o = {
        .host = HOST, .port = port, .loops = loops, .loops_count = 1, .accept = on_accept};
    assert_int_equal(node_listen(node, &o, &other, &msg), ERR_EXISTS);
    assert_non_null(strstr(msg.text, "in use"));
    o.host = "no.such.host.invalid";
    assert_int_equal(node_listen(node, &o, &other, &msg), ERR_RESOLVE);
}

static void shutdown_closes_connections_and_tells_their_users(void **state)
{
    up(NULL, NULL, (struct node_conn_limits){0}, 0, 2);
    int fds[20];
    char buf[8];
    for (int i = 0; i < 20; i++) {
        fds[i] = client_connect(port);
        client_send_frame(fds[i], "x", 1);
        assert_int_equal(client_recv_frame(fds[i], buf, sizeof buf), 1);
    }
    node_down();
    assert_int_equal(atomic_load(&closed_count), 20);
    for (int i = 0; i < 20; i++) {
        assert_true(client_is_closed(fds[i]));
        close(fds[i]);
    }
    up(NULL, NULL, (struct node_conn_limits){0}, 0, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define OWN(f) cmocka_unit_test_teardown(f, teardown) // brings its own node up
    const struct CMUnitTest tests[] = {
        T(a_frame_comes_back),
        T(many_frames_in_one_receive_are_answered_in_order),
        T(a_frame_sent_byte_by_byte_is_put_together),
        T(frames_of_all_sizes_come_back_whole),
        T(random_sizes_on_one_connection_come_back),
        OWN(connections_are_spread_over_loops),
        T(close_with_flush_lets_the_last_bytes_leave),
        T(close_without_flush_drops_them),
        T(an_error_of_the_frame_callback_closes_with_it),
        T(a_paused_connection_delivers_nothing_until_resumed),
        T(frames_kept_while_paused_come_one_by_one),
        T(pauses_are_counted),
        OWN(file_ranges_great_and_small_arrive_between_bytes),
        OWN(a_range_past_the_files_end_closes_the_connection),
        OWN(a_slow_reader_is_read_no_further_and_loses_nothing),
        T(a_closing_connection_whose_peer_does_not_read_ends_in_time),
        OWN(a_magic_number_selects_other_callbacks),
        OWN(a_magic_number_later_is_a_bad_length),
        OWN(an_idle_connection_is_closed_a_busy_one_stays),
        T(the_peers_address_is_told),
        OWN(frames_stay_valid_until_the_hooks_have_run),
        T(a_busy_port_is_refused_with_advice),
        OWN(shutdown_closes_connections_and_tells_their_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
