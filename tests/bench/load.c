// SPDX-License-Identifier: Apache-2.0
// The load generator: `load produce|fetch|ping|idle OPTIONS`, one line of JSON as its result.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/bench.h"

static const char help[] =
    "load MODE [options]   MODE: produce, fetch, ping, idle\n"
    "  --host A --port N        the broker (127.0.0.1, 9092)\n"
    "  --topic T --partitions N topic and its partitions (bench, 1)\n"
    "  --create                 create the topic first and wait for its leaders\n"
    "  --check                  compare the growth of the end offsets with the records acked\n"
    "  --conns N --window N     connections; requests in flight on each (1, 5)\n"
    "  --acks A                 -1 or 1 (1)\n"
    "  --batch-bytes B --record-bytes B --per-request N   size of a batch, of a record's value, batches in a "
    "request\n"
    "  --requests N | --seconds S   how much (10 s)\n"
    "  --rate R                 open loop: R requests a second, latency counts from when each was due\n"
    "  --max-bytes B            fetch: bytes of an answer (1 MiB)\n";

static double number(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (*end != '\0' || end == text)
        bench_die("'%s' is not a number", text);
    return v;
}

int main(int argc, char **argv)
{
    struct bench_opts o = {.host = "127.0.0.1",
                           .topic = "bench",
                           .port = 9092,
                           .partitions = 1,
                           .conns = 1,
                           .window = 5,
                           .acks = 1,
                           .max_bytes = 1 << 20,
                           .per_request = 1,
                           .batch_bytes = 1024,
                           .record_bytes = 1024,
                           .seconds = 10};
    static const struct option options[] = {
        {"host", 1, 0, 'h'},        {"port", 1, 0, 'p'},         {"topic", 1, 0, 't'},
        {"partitions", 1, 0, 'n'},  {"create", 0, 0, 'c'},       {"check", 0, 0, 'k'},
        {"conns", 1, 0, 'C'},       {"window", 1, 0, 'w'},       {"acks", 1, 0, 'a'},
        {"batch-bytes", 1, 0, 'b'}, {"record-bytes", 1, 0, 'r'}, {"per-request", 1, 0, 'P'},
        {"requests", 1, 0, 'N'},    {"seconds", 1, 0, 's'},      {"rate", 1, 0, 'R'},
        {"max-bytes", 1, 0, 'm'},   {"help", 0, 0, 'H'},         {0, 0, 0, 0}};
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fputs(help, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    const char *mode = argv[1];
    for (int c; (c = getopt_long(argc - 1, argv + 1, "", options, NULL)) != -1;) {
        switch (c) {
        case 'h':
            o.host = optarg;
            break;
        case 't':
            o.topic = optarg;
            break;
        case 'p':
            o.port = (int)number(optarg);
            break;
        case 'n':
            o.partitions = (int)number(optarg);
            break;
        case 'c':
            o.create = true;
            break;
        case 'k':
            o.check = true;
            break;
        case 'C':
            o.conns = (int)number(optarg);
            break;
        case 'w':
            o.window = (int)number(optarg);
            break;
        case 'a':
            o.acks = (int)number(optarg);
            break;
        case 'b':
            o.batch_bytes = (size_t)number(optarg);
            break;
        case 'r':
            o.record_bytes = (size_t)number(optarg);
            break;
        case 'P':
            o.per_request = (int)number(optarg);
            break;
        case 'N':
            o.requests = (uint64_t)number(optarg);
            break;
        case 's':
            o.seconds = number(optarg);
            break;
        case 'R':
            o.rate = number(optarg);
            break;
        case 'm':
            o.max_bytes = (int)number(optarg);
            break;
        case 'H':
            fputs(help, stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (o.conns < 1 || o.window < 1 || o.partitions < 1 || o.per_request < 1 ||
        o.per_request > o.partitions || o.acks == 0)
        bench_die("senseless options; see load --help");
    if (strcmp(mode, "produce") == 0)
        return bench_produce(&o);
    if (strcmp(mode, "fetch") == 0)
        return bench_fetch(&o);
    if (strcmp(mode, "ping") == 0)
        return bench_ping(&o);
    if (strcmp(mode, "idle") == 0)
        return bench_idle(&o);
    bench_die("unknown mode '%s'; see load --help", mode);
}
