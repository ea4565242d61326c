// SPDX-License-Identifier: Apache-2.0
// kraft-dump log: chooses by a file's name what it is, and how to show it.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/kraft-dump/dump.h"

static const char help[] =
    "kraft-dump log shows the files of a log.\n"
    "\n"
    "Usage: kraft-dump log [OPTION]... FILE...\n"
    "\n"
    "FILE is a segment (.log), a metadata snapshot (.checkpoint), an index (.index, .timeindex, .txnindex) "
    "or a producer\n"
    "snapshot (.snapshot), also with .deleted, .cleaned or .swap behind.\n"
    "\n"
    "  --records              also the records of each batch (or --deep-iteration)\n"
    "  --decode WHAT          metadata, groups, transactions, shares or none (by the folder's name)\n"
    "  --from N, --to N       only what touches these offsets\n"
    "  --output text|json     json: an object a line\n"
    "\n"
    "Examples:\n"
    "  kraft-dump log data/orders-0/00000000000000000000.log\n"
    "  kraft-dump log --records data/__cluster_metadata-0/*.log\n"
    "  kraft-dump log --output json data/orders-0/*.timeindex\n"
    "\n"
    "Exit status: 0 all shown, 1 something is damaged or unknown, 2 bad command line, 3 a file cannot be "
    "read.\n";

typedef int show_file(const struct dump_file *f, const struct dump_log_options *opts);

static const struct {
    const char *suffix;
    show_file *show;
} kinds[] = {
    {".log", dump_segment},          {".checkpoint", dump_segment}, {".index", dump_offset_index},
    {".timeindex", dump_time_index}, {".txnindex", dump_txn_index}, {".snapshot", dump_producer_snapshot},
};

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len >= n && strncmp(text + len - n, end, n) == 0;
}

static show_file *kind_of(const char *path)
{
    static const char *const behind[] = {".deleted", ".cleaned", ".swap", ".part"};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
        if (ends_with(path, len, behind[i])) {
            len -= strlen(behind[i]);
            break;
        }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (ends_with(path, len, kinds[i].suffix))
            return kinds[i].show;
    return NULL;
}

static bool parse_decoder(const char *text, enum dump_decoder *out)
{
    static const char *const names[] = {[DECODE_AUTO] = "auto",
                                        [DECODE_NONE] = "none",
                                        [DECODE_METADATA] = "metadata",
                                        [DECODE_GROUPS] = "groups",
                                        [DECODE_TRANSACTIONS] = "transactions",
                                        [DECODE_SHARES] = "shares"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum dump_decoder)i;
            return true;
        }
    return false;
}

static bool parse_offset(const char *text, long long *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return *text && !*end && *out >= 0;
}

// Takes option argv[i] (and its value). Gives how many words it took; 0: it is no option, -1: it is wrong.
static int take_option(struct dump_log_options *o, int argc, char **argv, int i)
{
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (strncmp(name, "--", 2) != 0)
        return 0;
    if (strcmp(name, "--records") == 0 || strcmp(name, "--deep-iteration") == 0) {
        o->records = true;
        return 1;
    }
    if (strcmp(name, "--decode") == 0)
        return parse_decoder(value, &o->decoder) ? 2 : -1;
    if (strcmp(name, "--from") == 0)
        return parse_offset(value, &o->from) ? 2 : -1;
    if (strcmp(name, "--to") == 0)
        return parse_offset(value, &o->to) ? 2 : -1;
    if (strcmp(name, "--output") == 0) {
        o->json = strcmp(value, "json") == 0;
        return o->json || strcmp(value, "text") == 0 ? 2 : -1;
    }
    return -1;
}

static int show(const char *path, const struct dump_log_options *opts, bool title)
{
    struct dump_file f;
    show_file *kind = kind_of(path);
    if (!kind)
        return dump_usage_error("log", "%s: no file of a log is named like this", path);
    int status = dump_file_open(&f, path);
    if (status)
        return status;
    if (title && !opts->json)
        printf("%s\n", path);
    status = kind(&f, opts);
    dump_file_close(&f);
    return status;
}

int dump_log(int argc, char **argv)
{
    struct dump_log_options opts = {.to = LLONG_MAX};
    int files = 0, status = DUMP_OK;
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return DUMP_OK;
        }
        int words = take_option(&opts, argc, argv, i);
        if (words < 0)
            return dump_usage_error("log", "%s is not understood", argv[i]);
        if (words == 0) {
            argv[1 + files++] = argv[i]; // keep the files together at the front
            words = 1;
        }
        i += words;
    }
    if (files == 0)
        return dump_usage_error("log", "no file was given");
    for (int i = 0; i < files; i++) {
        int one = show(argv[1 + i], &opts, files > 1);
        if (one > status)
            status = one;
    }
    return status;
}
