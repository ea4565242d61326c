// SPDX-License-Identifier: Apache-2.0
// Pausing and resuming at random, from other connections' callbacks, hooks and timers: nothing is lost or
// reordered.
#include "tests/unit/net/net_fixture.h"

#define CONNS 12
#define FRAMES 400

static struct node_listener *listener;
static uint16_t port;
static struct user {
    struct node_conn *conn;
    bool paused;
} users[CONNS];
static int users_count;
static unsigned seed;
static struct node_timer rescue;
static struct node_hook hook;
static bool by_hook;
static int paused_now;

static void resume(struct user *u)
{
    if (!u->conn || !u->paused)
        return;
    u->paused = false;
    paused_now--;
    node_conn_resume(u->conn);
}
static void on_rescue(struct node_timer *t)
{
    for (int i = 0; i < users_count; i++)
        resume(&users[i]);
    node_timer_start(loops[0], t, 1);
}
static void on_hook(struct node_hook *h)
{
    for (int i = 0; by_hook && i < users_count; i++)
        resume(&users[i]);
}
static int on_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    struct user *u = node_conn_data(c);
    MUST(!u->paused); // nothing comes while paused
    reply(c, data, len);
    if (by_hook || rand_r(&seed) % 3 == 0) {
        u->paused = true;
        paused_now++;
        node_conn_pause(c);
    }
    if (rand_r(&seed) % 3 == 0)
        resume(&users[rand_r(&seed) % users_count]); // often another one, sometimes itself
    return 0;
}
static void on_closed(struct node_conn *c, int reason)
{
    struct user *u = node_conn_data(c);
    u->conn = NULL;
}
static const struct node_conn_ops ops = {on_frame, on_closed, NULL};
static int on_accept(struct node_conn *c, void *data)
{
    users[users_count] = (struct user){c, false};
    node_conn_set_data(c, &users[users_count++]);
    node_conn_set_ops(c, &ops);
    return 0;
}

static void start_rescue(void *arg)
{
    rescue = (struct node_timer){.fire = on_rescue};
    node_timer_start(loops[0], &rescue, 1);
}
static void stop_rescue(void *arg)
{
    node_timer_stop(loops[0], &rescue);
}

static uint32_t frame_len(unsigned *s)
{
    return (uint32_t)rand_r(s) & ((1u << (rand_r(s) % 18)) - 1);
}
static void fill(uint8_t *p, uint32_t len, uint32_t number)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

struct client {
    pthread_t writer, reader;
    int fd;
    unsigned seed;
};
static void *writer_main(void *arg)
{
    struct client *c = arg;
    unsigned s = c->seed;
    uint8_t *buf = malloc(1 << 18);
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t len = frame_len(&s);
        fill(buf, len, i);
        client_send_frame(c->fd, buf, len);
    }
    free(buf);
    return NULL;
}
static void *reader_main(void *arg)
{
    struct client *c = arg;
    unsigned s = c->seed;
    uint8_t *buf = malloc(1 << 18), *want = malloc(1 << 18);
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t len = frame_len(&s);
        fill(want, len, i);
        MUST(client_recv_frame(c->fd, buf, 1 << 18) == len);
        MUST(memcmp(buf, want, len) == 0);
    }
    free(buf);
    free(want);
    return NULL;
}

static void run(bool hooks)
{
    struct errmsg msg;
    by_hook = hooks;
    seed = 17;
    users_count = paused_now = 0;
    node_up(&(struct net_options){.send_queue_bytes_high = 100000, .send_buffer_bytes = 50000});
    hook = (struct node_hook){.run = on_hook};
    node_loop_add_turn_end(loops[0], &hook);
    struct node_listen_opts o = {.host = HOST,
                                 .backlog = 50,
                                 .loops = loops,
                                 .loops_count = 1,
                                 .limits = {.frame_bytes_max = 1 << 20},
                                 .accept = on_accept};
    assert_int_equal(node_listen(node, &o, &listener, &msg), 0);
    port = node_listener_port(listener);
    if (!hooks)
        on_loop(loops[0], start_rescue, NULL);
    struct client clients[CONNS];
    for (int i = 0; i < CONNS; i++) {
        clients[i] = (struct client){.fd = client_connect(port), .seed = (unsigned)(i + 1)};
        assert_int_equal(pthread_create(&clients[i].writer, NULL, writer_main, &clients[i]), 0);
        assert_int_equal(pthread_create(&clients[i].reader, NULL, reader_main, &clients[i]), 0);
    }
    for (int i = 0; i < CONNS; i++) {
        pthread_join(clients[i].writer, NULL);
        pthread_join(clients[i].reader, NULL);
        close(clients[i].fd);
    }
    if (!hooks)
        on_loop(loops[0], stop_rescue, NULL);
    node_down();
    struct chunk_stats s;
    chunk_stats(&s);
    assert_int_equal(s.chunks_used, 0);
}

static void random_pauses_lose_and_reorder_nothing(void **state)
{
    run(false);
}
static void one_request_at_a_time_resumed_by_the_hook_serves_all(void **state)
{
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_pauses_lose_and_reorder_nothing),
        cmocka_unit_test(one_request_at_a_time_resumed_by_the_hook_serves_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
