// SPDX-License-Identifier: Apache-2.0
// Reading and writing of the manifest.
#include "storage/manifest.h"
#include <stdio.h>
#include "core/record/crc32c.h"
#include "storage/text_scan.h"

#define MANIFEST_TITLE "kraft-manifest 1"

void manifest_begin(struct manifest_writer *w)
{
    strbuf_init(&w->lines);
    w->count = 0;
}

void manifest_add(struct manifest_writer *w, const struct manifest_entry *e)
{
    char id[UUID_TEXT_BYTES];
    uuid_format(e->topic_id, id);
    strbuf_printf(&w->lines, SLICE_FMT " %d %s %lld %lld %lld %lld %llu %d\n", SLICE_ARG(e->topic),
                  (int)e->partition, id, (long long)e->start, (long long)e->end, (long long)e->watermark,
                  (long long)e->recovery, (unsigned long long)e->size, (int)e->last_epoch);
    w->count++;
}

void manifest_end(struct manifest_writer *w, const struct manifest_sums *sums, struct strbuf *out)
{
    strbuf_init(out);
    strbuf_printf(out, "%s\n%08x %08x %08x\n%u\n", MANIFEST_TITLE, sums->recovery, sums->watermark,
                  sums->start, w->count);
    strbuf_add_slice(out, strbuf_slice(&w->lines));
    strbuf_printf(out, "end %08x\n", crc32c(out->data, out->len));
    strbuf_fini(&w->lines);
}

static bool parse_hex(struct slice s, uint32_t *out)
{
    if (s.len != 8)
        return false;
    *out = 0;
    for (size_t i = 0; i < 8; i++) {
        uint8_t c = s.data[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *out = *out << 4 | digit;
    }
    return true;
}

static bool parse_entry(struct slice line, struct manifest_entry *e)
{
    struct slice id;
    int64_t partition, size, epoch;
    if (!text_word(&line, &e->topic) || !text_word_number(&line, &partition) || !text_word(&line, &id) ||
        !uuid_parse(id, &e->topic_id) || !text_word_number(&line, &e->start) ||
        !text_word_number(&line, &e->end) || !text_word_number(&line, &e->watermark) ||
        !text_word_number(&line, &e->recovery) || !text_word_number(&line, &size) ||
        !text_word_number(&line, &epoch))
        return false;
    e->partition = (partition_id)partition;
    e->size = (uint64_t)size;
    e->last_epoch = (leader_epoch)epoch;
    return partition >= 0 && partition <= INT32_MAX && e->start >= 0 && e->end >= e->start &&
           e->recovery >= 0 && size >= 0 && epoch >= -1 && epoch <= INT32_MAX;
}

// The last line's checksum against all before it; *body is what it covers.
static bool check_end(struct slice text, struct slice *body)
{
    if (text.len < 14 || memcmp(text.data + text.len - 13, "end ", 4) != 0 || text.data[text.len - 1] != '\n')
        return false;
    uint32_t sum;
    *body = slice_of(text.data, text.len - 13);
    return parse_hex(slice_of(text.data + text.len - 9, 8), &sum) && sum == crc32c(body->data, body->len);
}

int manifest_parse(struct slice text, const struct manifest_sums *sums,
                   int (*each)(void *, const struct manifest_entry *), void *data, struct errmsg *msg)
{
    struct slice line, word, body;
    uint32_t sum[3];
    int64_t count, seen = 0;
    if (!check_end(text, &body))
        return err_set(msg, ERR_CORRUPT, "the manifest is damaged or not whole");
    if (!text_line(&body, &line) || !slice_equal_str(line, MANIFEST_TITLE) || !text_line(&body, &line))
        return err_set(msg, ERR_CORRUPT, "the manifest is of another version");
    for (int i = 0; i < 3; i++)
        if (!text_word(&line, &word) || !parse_hex(word, &sum[i]))
            return err_set(msg, ERR_CORRUPT, "the manifest has no checksums");
    if (sum[0] != sums->recovery || sum[1] != sums->watermark || sum[2] != sums->start)
        return err_set(msg, ERR_STATE, "the manifest belongs to other checkpoint files");
    if (!text_line(&body, &line) || !text_number(line, &count))
        return err_set(msg, ERR_CORRUPT, "the manifest has no count");
    struct slice rest = body;
    struct manifest_entry e;
    while (text_line(&rest, &line)) {
        if (!parse_entry(line, &e))
            return err_set(msg, ERR_CORRUPT, "entry %lld of the manifest is not valid", (long long)seen);
        seen++;
    }
    if (seen != count)
        return err_set(msg, ERR_CORRUPT, "the manifest has %lld entries for %lld", (long long)seen,
                       (long long)count);
    int rc = 0;
    while (rc == 0 && text_line(&body, &line)) {
        (void)parse_entry(line, &e);
        rc = each(data, &e);
    }
    return rc;
}
