// SPDX-License-Identifier: Apache-2.0
// Names of the codecs, and the cache that keeps their state between uses.
#include "core/record/codec_internal.h"

#include "core/base/mem.h"

const uint8_t codec__xerial_magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

static const char *const names[CODEC_COUNT] = {"none", "gzip", "snappy", "lz4", "zstd"};

const char *codec_name(enum codec c)
{
    return (unsigned)c < CODEC_COUNT ? names[c] : "unknown";
}

bool codec_from_name(struct slice name, enum codec *out)
{
    if (slice_equal_str(name, "uncompressed")) {
        *out = CODEC_NONE;
        return true;
    }
    for (int i = 0; i < CODEC_COUNT; i++) {
        if (slice_equal_str(name, names[i])) {
            *out = (enum codec)i;
            return true;
        }
    }
    return false;
}

struct codec_cache *codec_cache_create(void)
{
    return mem_zalloc(sizeof(struct codec_cache));
}

void codec_cache_destroy(struct codec_cache *cache)
{
    if (!cache) {
        return;
    }
    for (int i = 0; i < CODEC_COUNT; i++) {
        codec__reader_free(cache->readers[i]);
        codec__writer_free(cache->writers[i]);
    }
    mem_free(cache->window);
    mem_free(cache);
}

uint8_t *codec__window_take(struct codec_cache *cache)
{
    if (cache && cache->window) {
        uint8_t *window = cache->window;
        cache->window = NULL;
        return window;
    }
    return mem_alloc(CODEC_WINDOW_BYTES);
}

void codec__window_give(struct codec_cache *cache, uint8_t *window)
{
    if (cache && !cache->window) {
        cache->window = window;
    } else {
        mem_free(window);
    }
}

void *codec__zalloc(void *opaque, unsigned items, unsigned size)
{
    return mem_calloc(items, size);
}

void codec__zfree(void *opaque, void *ptr)
{
    mem_free(ptr);
}
