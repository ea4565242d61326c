// SPDX-License-Identifier: Apache-2.0
// Reading and writing of offset checkpoint files.
#include "storage/checkpoint.h"
#include "storage/text_scan.h"

static bool parse_entry(struct slice line, struct checkpoint_entry *e)
{
    int64_t partition, offset;
    struct slice more;
    if (!text_word(&line, &e->topic) || !text_word_number(&line, &partition) ||
        !text_word_number(&line, &offset) || text_word(&line, &more))
        return false;
    if (partition < 0 || partition > INT32_MAX || offset < 0)
        return false;
    e->partition = (partition_id)partition;
    e->offset = offset;
    return true;
}

int checkpoint_parse(struct slice text, int (*each)(void *, const struct checkpoint_entry *), void *data,
                     struct errmsg *msg)
{
    struct slice line;
    int64_t version, count;
    if (!text_line(&text, &line) || !text_number(line, &version))
        return err_set(msg, ERR_CORRUPT, "line 1 is no version");
    if (version != 0)
        return err_set(msg, ERR_CORRUPT, "version %lld is not known", (long long)version);
    if (!text_line(&text, &line) || !text_number(line, &count) || count < 0)
        return err_set(msg, ERR_CORRUPT, "line 2 is no count of entries");
    int64_t seen = 0;
    while (text_line(&text, &line)) {
        struct checkpoint_entry e;
        seen++;
        if (!parse_entry(line, &e))
            return err_set(msg, ERR_CORRUPT, "line %lld is not \"topic partition offset\"",
                           (long long)seen + 2);
        int rc = each(data, &e);
        if (rc)
            return rc;
    }
    if (seen != count)
        return err_set(msg, ERR_CORRUPT, "%lld entries where %lld were announced", (long long)seen,
                       (long long)count);
    return 0;
}

void checkpoint_begin(struct checkpoint_writer *w)
{
    strbuf_init(&w->lines);
    w->count = 0;
}

void checkpoint_add(struct checkpoint_writer *w, const char *topic, partition_id partition, log_offset offset)
{
    strbuf_printf(&w->lines, "%s %d %lld\n", topic, (int)partition, (long long)offset);
    w->count++;
}

void checkpoint_end(struct checkpoint_writer *w, struct strbuf *out)
{
    strbuf_init(out);
    strbuf_printf(out, "0\n%u\n", w->count);
    strbuf_add_slice(out, strbuf_slice(&w->lines));
    strbuf_fini(&w->lines);
}
