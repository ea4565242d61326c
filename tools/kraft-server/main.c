// SPDX-License-Identifier: Apache-2.0
// kraft-server: reads the configuration, checks the directories, wires net/ to the assembly, runs until a
// signal.
//
// Reading order: main, run, then core/server/server.h.
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <limits.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/config/server_config.h"
#include "core/server/server.h"
#include "net/net.h"
#include "storage/meta_properties.h"
#include "tools/kraft-server/log_lines.h"
#include "tools/kraft-server/options.h"

#define FLUSH_MS 1000       // what is queued for clients gets this long at the end
#define OPEN_FILES_MAX 8192 // descriptors of partitions kept open without being in use
#define FILES_SHARE 8       // ... and at most this part of the limit of open files
#define OTHER_FILES 40      // descriptors of loops, pools, logs, the metadata log, files written now and then
#define PROPERTIES_BYTES_MAX (8u << 20)

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct program {
    struct options options;       // command line
    struct log_lines log;         // where lines go
    struct server_config *config; // configuration
    struct meta_dirs *dirs;       // what the directories say
    struct node *node;            // the world
    struct server *server;        // the assembly
    struct node_task reopen;      // of SIGHUP
};

static int fail(int status, const struct errmsg *msg)
{
    fprintf(stderr, "kraft-server: %s\n", msg->text);
    return status;
}

// ---- configuration
// ---------------------------------------------------------------------------------------------
static void warn(void *data, const char *text)
{
    struct program *p = data;
    if (p->options.check_config)
        printf("warning: %s\n", text);
    else
        log_warn(&p->log.sink, "config", text, "%s", "");
}

static int read_config(struct program *p, struct errmsg *msg)
{
    struct config_values values;
    struct config_warn w = {warn, p};
    config_values_init(&values);
    FILE *f = fopen(p->options.properties, "rb");
    if (!f)
        return err_set(msg, ERR_NOTFOUND, "%s cannot be opened: %s", p->options.properties, strerror(errno));
    char *text = mem_alloc(PROPERTIES_BYTES_MAX);
    size_t len = fread(text, 1, PROPERTIES_BYTES_MAX, f);
    int err = ferror(f) ? err_set(msg, ERR_IO, "cannot be read: %s", strerror(errno))
                        : config_values_add_file(&values, slice_of(text, len), msg);
    (void)fclose(f);
    if (err != 0)
        err_prefix(msg, "%s", p->options.properties);
    mem_free(text);
    if (err == 0)
        config_values_add_environment(&values, environ);
    for (unsigned i = 0; err == 0 && i < p->options.overrides_count; i++)
        err = config_values_add_override(&values, p->options.overrides[i], msg);
    if (err == 0)
        err = server_config_make(&values, &w, &p->config, msg);
    config_values_fini(&values);
    char host[HOST_NAME_MAX + 1];
    if (err == 0 && gethostname(host, sizeof host) == 0)
        server_config_set_host(p->config, host);
    return err;
}

// ---- directories
// -----------------------------------------------------------------------------------------------
static struct uuid make_id(void *data)
{
    return uuid_random(data);
}

static int check_dirs(struct program *p, struct errmsg *msg)
{
    const struct server_config *c = p->config;
    p->dirs = mem_zalloc(sizeof *p->dirs);
    int err = meta_dirs_read(vfs_posix(), c->log_dirs, c->log_dirs_count, c->metadata_log_dir, p->dirs, msg);
    if (err == 0)
        err = meta_dirs_check(p->dirs, c->metadata_log_dir, c->id, NULL, msg);
    return err;
}

static struct uuid directory_id(const struct meta_dirs *d, const char *path)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (strcmp(d->dirs[i].path, path) == 0)
            return d->dirs[i].props.directory_id;
    return UUID_ZERO;
}

// ---- running
// ---------------------------------------------------------------------------------------------------
static unsigned data_loops(const struct server_config *c)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned most = cores <= 2 ? 1 : (unsigned)cores;
    unsigned wanted = c->network_loops > 0 ? c->network_loops : 1;
    return c->network_loops_given || wanted < most ? wanted : most;
}

static void on_running(void *data)
{
    struct program *p = data;
    log_info(&p->log.sink, "server", "serving", "node=%d", p->config->id);
}

static void on_stopped(void *data)
{
    struct program *p = data;
    node_request_stop(p->node);
}

static void reopen_task(struct node_task *t)
{
    struct program *p = (struct program *)(void *)((char *)t - offsetof(struct program, reopen));
    log_lines_reopen(&p->log);
    log_info(&p->log.sink, "server", "log file opened anew", "%s", "");
}

static int create(struct program *p, struct errmsg *msg)
{
    const struct server_config *c = p->config;
    // Files first, so that no crowd of clients can stop the node from writing; most descriptors are for
    // clients.
    unsigned files = net_descriptors_max() / FILES_SHARE;
    files = files < OPEN_FILES_MAX ? files : OPEN_FILES_MAX;
    struct net_options net = {
        .descriptors_kept = files + OTHER_FILES,
        .log = &p->log.sink,
        .frame_memory_bytes = c->frame_memory_bytes,
        .receive_buffer_bytes = c->receive_buffer_bytes > 0 ? (uint32_t)c->receive_buffer_bytes : 0,
        .send_buffer_bytes = c->send_buffer_bytes > 0 ? (uint32_t)c->send_buffer_bytes : 0};
    int err = node_create(&net, &p->node, msg);
    if (err == 0)
        err = meta_dirs_complete(vfs_posix(), p->dirs, c->id, make_id, p->node, msg);
    if (err != 0)
        return err;
    struct uuid *ids = mem_calloc(c->log_dirs_count + 1, sizeof *ids);
    for (uint32_t i = 0; i < c->log_dirs_count; i++)
        ids[i] = directory_id(p->dirs, c->log_dirs[i]);
    struct server_opts o = {.node = p->node,
                            .fs = vfs_posix(),
                            .log = &p->log.sink,
                            .config = c,
                            .data_loops = data_loops(c),
                            .open_files_max = files,
                            .cluster_id = p->dirs->cluster_id,
                            .log_dir_ids = ids,
                            .metadata_dir_id = directory_id(p->dirs, c->metadata_log_dir),
                            .disk_replaced = p->options.disk_replaced,
                            .running = on_running,
                            .stopped = on_stopped,
                            .data = p};
    err = server_create(&o, &p->server, msg);
    mem_free(ids);
    return err == 0 ? server_start(p->server, msg) : err;
}

static int run(struct program *p)
{
    struct errmsg msg = {.text = ""};
    log_info(&p->log.sink, "server", "starting", "version=%s node=%d roles=%s%s%s cluster=%s", KRAFT_VERSION,
             p->config->id, p->config->is_broker ? "broker" : "",
             p->config->is_broker && p->config->is_controller ? "," : "",
             p->config->is_controller ? "controller" : "", p->dirs->cluster_id);
    if (create(p, &msg) != 0) {
        log_error(&p->log.sink, "server", "cannot start", "reason=%s", msg.text);
        if (p->server) { // what was opened is closed in order, so that the next start finds a clean stop
            node_shutdown(p->node, 0);
            server_free(p->server);
        }
        return fail(EXIT_FAILED, &msg);
    }
    mem_free(p->dirs);
    p->dirs = NULL;
    p->reopen.run = reopen_task;
    node_on_signal(p->node, SIGHUP, server_signal_loop(p->server), &p->reopen);
    int sig = node_run_until_signal(p->node);
    log_info(&p->log.sink, "server", "stopping", "signal=%d", sig);
    server_stop(p->server);
    (void)node_run_until_signal(p->node); // returns when the server has stopped its work
    node_shutdown(p->node, FLUSH_MS);
    server_free(p->server);
    log_info(&p->log.sink, "server", "stopped", "node=%d", p->config->id);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    static struct program program; // one a process
    struct program *p = &program;
    struct errmsg msg = {.text = ""};
    // Few arenas: the threads share little, and idle memory is part of what we promise.
    (void)mallopt(M_ARENA_MAX, 2);
    enum options_verdict v = options_parse(argc, argv, &p->options);
    if (v != OPTIONS_RUN)
        return v == OPTIONS_DONE ? EXIT_OK : EXIT_USAGE;
    int err = log_lines_open(&p->log, p->options.log_file, p->options.debug);
    if (err != 0) {
        (void)err_set(&msg, ERR_IO, "%s cannot be opened: %s", p->options.log_file, strerror(err));
        return fail(EXIT_USAGE, &msg);
    }
    if (read_config(p, &msg) != 0)
        return fail(EXIT_USAGE, &msg);
    if (p->options.check_config) {
        printf("%s: the configuration is good\n", p->options.properties);
        return EXIT_OK;
    }
    if (check_dirs(p, &msg) != 0)
        return fail(EXIT_FAILED, &msg);
    int status = run(p);
    server_config_free(p->config);
    mem_free(p->dirs);
    return status;
}
