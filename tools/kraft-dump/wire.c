// SPDX-License-Identifier: Apache-2.0
// kraft-dump wire: protocol messages, one JSON object a line, from hex to fields and back.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/strbuf.h"
#include "core/protocol/json.h"
#include "tools/kraft-dump/dump.h"

static const char help[] =
    "kraft-dump wire turns protocol messages from hex to JSON and back.\n"
    "\n"
    "Usage: kraft-dump wire < LINES\n"
    "       kraft-dump wire --list\n"
    "\n"
    "Each line of the input is a JSON object:\n"
    "  message   name of the message, e.g. ProduceRequestData or PartitionRecord (--list prints all)\n"
    "  version   its version\n"
    "  hex       its bytes, without length prefix and header; or\n"
    "  json      its fields\n"
    "Each line of the output repeats message and version and has both json and hex; hex is what encoding "
    "gives, also\n"
    "where hex came in. A line that cannot be read gives an object with \"error\" and \"line\".\n"
    "\n"
    "Example:\n"
    "  echo '{\"message\":\"HeartbeatResponseData\",\"version\":1,\"hex\":\"00000000001b\"}' | kraft-dump "
    "wire\n"
    "\n"
    "Exit status: 0 all lines were turned, 1 some were not.\n";

struct wire {
    const struct kp_message_type *type; // message of this line
    int version;                        // its version
    struct arena arena;                 // what the message points to
    struct errmsg err;                  // why the line cannot be turned
};

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int parse_hex(struct wire *w, const json_t *hex, struct slice *out)
{
    const char *text = json_string_value(hex);
    size_t len = json_string_length(hex);
    if (!text || len % 2)
        return err_set(&w->err, ERR_INVALID, "hex must be text of an even length");
    uint8_t *bytes = arena_alloc(&w->arena, len / 2 + 1);
    for (size_t i = 0; i < len; i += 2) {
        int high = nibble(text[i]), low = nibble(text[i + 1]);
        if (high < 0 || low < 0)
            return err_set(&w->err, ERR_INVALID, "hex has other characters than digits at %zu", i);
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    *out = slice_of(bytes, len / 2);
    return 0;
}

static json_t *hex_of(struct wire *w, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char *text = arena_alloc(&w->arena, 2 * len + 1);
    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return json_stringn(text, 2 * len);
}

static int read_type(struct wire *w, const json_t *line)
{
    const char *name = json_string_value(json_object_get(line, "message"));
    const json_t *version = json_object_get(line, "version");
    if (!name || !json_is_integer(version))
        return err_set(&w->err, ERR_INVALID, "message and version are needed");
    w->type = kp_message_by_name(slice_str(name));
    if (!w->type)
        return err_set(&w->err, ERR_NOTFOUND, "there is no message %s", name);
    json_int_t v = json_integer_value(version);
    if (v < w->type->min_version || v > w->type->max_version)
        return err_set(&w->err, ERR_UNSUPPORTED, "%s has versions %d to %d", name, w->type->min_version,
                       w->type->max_version);
    w->version = (int)v;
    return 0;
}

static int read_message(struct wire *w, const json_t *line, void *message)
{
    const json_t *hex = json_object_get(line, "hex"), *fields = json_object_get(line, "json");
    struct slice bytes = SLICE_NULL;
    struct kp_reader r;
    if (!hex && !fields)
        return err_set(&w->err, ERR_INVALID, "hex or json is needed");
    if (!hex)
        return kp_message_from_json(w->type, message, fields, w->version, KP_JSON_STRICT, &w->arena, &w->err);
    int err = parse_hex(w, hex, &bytes);
    if (err)
        return err;
    kp_reader_init(&r, bytes, &w->arena, &w->err);
    if ((err = kp_message_decode(w->type, message, &r, w->version)))
        return err;
    if (kp_reader_left(&r))
        return err_set(&w->err, ERR_MALFORMED, "%zu bytes after the message", kp_reader_left(&r));
    return 0;
}

// Gives the answer's object, or NULL with w->err set.
static json_t *turn(struct wire *w, const json_t *line)
{
    if (read_type(w, line))
        return NULL;
    void *message = arena_alloc(&w->arena, w->type->size);
    if (read_message(w, line, message))
        return NULL;
    size_t size = kp_message_size(w->type, message, w->version);
    uint8_t *bytes = arena_alloc(&w->arena, size + 1);
    int err = kp_message_encode_into(w->type, message, bytes, w->version);
    if (err) {
        err_set(&w->err, err, "it cannot be encoded: %s", err_text(err));
        return NULL;
    }
    json_t *answer = json_object();
    json_object_set_new(answer, "message", json_string(w->type->name));
    json_object_set_new(answer, "version", json_integer(w->version));
    json_object_set_new(answer, "api_key", json_integer(w->type->key));
    json_object_set_new(answer, "json", kp_message_to_json(w->type, message, w->version));
    json_object_set_new(answer, "hex", hex_of(w, bytes, size));
    return answer;
}

static int one_line(struct wire *w, const char *text, size_t len, long number)
{
    json_error_t error;
    json_t *answer = NULL, *line = json_loadb(text, len, JSON_ALLOW_NUL, &error);
    int status = DUMP_OK;
    w->err.text[0] = 0;
    if (line)
        answer = turn(w, line);
    else
        err_set(&w->err, ERR_INVALID, "not JSON: %s", error.text);
    if (!answer) {
        answer = json_pack("{s:s, s:I}", "error", w->err.text, "line", (json_int_t)number);
        status = DUMP_BAD;
    }
    json_dumpf(answer, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(answer);
    json_decref(line);
    arena_reset(&w->arena);
    return status;
}

static const char *kind_name(enum kp_message_kind kind)
{
    static const char *const names[] = {"request",     "response", "metadata", "group",
                                        "transaction", "share",    "remote",   "data"};
    return names[kind];
}

static int list_messages(void)
{
    for (unsigned i = 0; i < kp_message_types_count; i++) {
        const struct kp_message_type *t = kp_message_types[i];
        printf("%-52s %-11s key %3d  versions %d-%d\n", t->name, kind_name(t->kind), t->key, t->min_version,
               t->max_version);
    }
    return DUMP_OK;
}

int dump_wire(int argc, char **argv)
{
    struct wire w = {0};
    char *text = NULL;
    size_t room = 0;
    ssize_t len;
    int status = DUMP_OK;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return DUMP_OK;
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_messages();
    if (argc > 1)
        return dump_usage_error("wire", "%s is not understood; messages come on standard input", argv[1]);
    arena_init(&w.arena);
    for (long number = 1; (len = getline(&text, &room, stdin)) > 0; number++) {
        if (text[len - 1] == '\n')
            len--;
        if (len > 0 && one_line(&w, text, (size_t)len, number) != DUMP_OK)
            status = DUMP_BAD;
    }
    arena_fini(&w.arena);
    free(text);
    return status;
}
