// SPDX-License-Identifier: Apache-2.0
// Reads the compressed vectors.
#include "tests/vectors/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define VECTORS_BYTES_MAX (64 << 20) // bound of an unpacked file

static void die(const char *path, const char *what)
{
    fprintf(stderr, "vectors: %s: %s\n", path, what);
    exit(2);
}

static void *read_all(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path, "cannot be opened");
    if (fseek(f, 0, SEEK_END) != 0)
        die(path, "cannot be read");
    long size = ftell(f);
    rewind(f);
    void *data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size)
        die(path, "cannot be read");
    fclose(f);
    *len = (size_t)size;
    return data;
}

struct vectors vectors_open(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.jsonl.zst", VECTORS_DIR, name);
    size_t packed_len;
    void *packed = read_all(path, &packed_len);
    unsigned long long size = ZSTD_getFrameContentSize(packed, packed_len);
    if (size > VECTORS_BYTES_MAX) // also the two error values
        die(path, "is not a vector file");
    struct vectors v = {.text = malloc((size_t)size + 1), .len = (size_t)size};
    if (!v.text || ZSTD_decompress(v.text, v.len, packed, packed_len) != v.len)
        die(path, "cannot be unpacked");
    v.text[v.len] = 0;
    v.next = v.text;
    free(packed);
    return v;
}

json_t *vectors_next(struct vectors *v)
{
    if (v->next >= v->text + v->len)
        return NULL;
    char *end = strchr(v->next, '\n');
    size_t len = end ? (size_t)(end - v->next) : strlen(v->next);
    json_error_t error;
    json_t *json = json_loadb(v->next, len, JSON_ALLOW_NUL, &error);
    v->next += len + 1;
    v->line++;
    if (!json)
        die(error.text, "is not JSON");
    return json;
}

void vectors_close(struct vectors *v)
{
    free(v->text);
    v->text = NULL;
}

static unsigned nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

uint8_t *vectors_unhex(const char *hex, size_t *len)
{
    *len = strlen(hex) / 2;
    uint8_t *bytes = malloc(*len + 1);
    if (!bytes)
        die("hex", "no memory");
    for (size_t i = 0; i < *len; i++)
        bytes[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    return bytes;
}
