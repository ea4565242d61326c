// SPDX-License-Identifier: Apache-2.0
// Reading and writing .properties text as java.util.Properties does.
//
// A logical line is one or more natural lines, joined where one ends in an odd number of backslashes (white
// space at the start of the next is dropped). Lines that begin with # or ! and blank lines are skipped; a
// comment never continues. The key ends at the first unescaped =, : or white space; white space and at most
// one = or : around it belong to neither side. White space at the end of a value stays.
#include "core/base/properties.h"

#include "core/base/assert.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

void properties_init(struct properties *p)
{
    arena_init(&p->arena);
    p->items = NULL;
    p->count = p->cap = 0;
}

void properties_fini(struct properties *p)
{
    arena_fini(&p->arena);
    mem_free(p->items);
    properties_init(p);
}

static struct slice copy_text(struct properties *p, struct slice s)
{
    uint8_t *text = arena_alloc(&p->arena, s.len + 1);
    if (s.len)
        memcpy(text, s.data, s.len);
    text[s.len] = 0;
    return slice_of(text, s.len);
}

static struct property *find(const struct properties *p, struct slice key)
{
    for (size_t i = 0; i < p->count; i++)
        if (slice_equal(p->items[i].key, key))
            return &p->items[i];
    return NULL;
}

static void add(struct properties *p, struct slice key, struct slice value, uint32_t line)
{
    struct property *old = find(p, key);
    if (old) {
        old->value = copy_text(p, value);
        old->replaced_line = old->line;
        old->line = line;
        return;
    }
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 32;
        p->items = mem_realloc(p->items, p->cap * sizeof *p->items);
    }
    p->items[p->count++] = (struct property){copy_text(p, key), copy_text(p, value), line, 0};
}

void properties_set(struct properties *p, struct slice key, struct slice value)
{
    add(p, key, value, 0);
}

const struct property *properties_find(const struct properties *p, struct slice key)
{
    return find(p, key);
}

struct slice properties_get(const struct properties *p, const char *key)
{
    const struct property *item = find(p, slice_str(key));
    return item ? item->value : SLICE_NULL;
}

// ---- reading
// ---------------------------------------------------------------------------------------------------

static bool is_white(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static void put_code_point(struct strbuf *out, uint32_t c)
{
    if (c < 0x80) {
        strbuf_add_char(out, (char)c);
    } else if (c < 0x800) {
        strbuf_add_char(out, (char)(0xc0 | c >> 6));
        strbuf_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        strbuf_add_char(out, (char)(0xe0 | c >> 12));
        strbuf_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        strbuf_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else {
        strbuf_add_char(out, (char)(0xf0 | c >> 18));
        strbuf_add_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
        strbuf_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        strbuf_add_char(out, (char)(0x80 | (c & 0x3f)));
    }
}

static int hex4(const uint8_t *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i];
        int d = c >= '0' && c <= '9'                 ? c - '0'
                : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                     : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

// Appends the text of an escaped run as UTF-8. Half a surrogate pair becomes U+FFFD, as Java writes it in
// UTF-8.
static int unescape(struct strbuf *out, struct slice s, uint32_t line, struct errmsg *msg)
{
    for (size_t i = 0; i < s.len;) {
        uint8_t c = s.data[i++];
        if (c != '\\') {
            put_code_point(out, c);
            continue;
        }
        if (i == s.len)
            break;
        c = s.data[i++];
        if (c != 'u') {
            static const char from[] = "tnrf", to[] = "\t\n\r\f";
            const char *at = strchr(from, c);
            put_code_point(out, at && c ? (uint8_t)to[at - from] : c);
            continue;
        }
        int v = s.len - i >= 4 ? hex4(s.data + i) : -1;
        if (v < 0)
            return err_set(msg, ERR_INVALID, "line %u: \\u must be followed by four hexadecimal digits",
                           line);
        i += 4;
        uint32_t cp = (uint32_t)v;
        if (cp >= 0xd800 && cp < 0xdc00 && s.len - i >= 6 && s.data[i] == '\\' && s.data[i + 1] == 'u') {
            int low = hex4(s.data + i + 2);
            if (low >= 0xdc00 && low < 0xe000) {
                cp = 0x10000 + ((cp - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
                i += 6;
            }
        }
        put_code_point(out, cp >= 0xd800 && cp < 0xe000 ? 0xfffd : cp);
    }
    return 0;
}

struct reader {
    struct slice text; // what is left
    uint32_t line;     // number of the natural line that `text` begins with
};

// Takes one natural line without its end (LF, CR or CRLF).
static struct slice take_line(struct reader *r)
{
    size_t n = 0;
    while (n < r->text.len && r->text.data[n] != '\n' && r->text.data[n] != '\r')
        n++;
    struct slice line = slice_of(r->text.data, n);
    if (n < r->text.len)
        n += r->text.data[n] == '\r' && n + 1 < r->text.len && r->text.data[n + 1] == '\n' ? 2 : 1;
    r->text = slice_of(r->text.data + n, r->text.len - n);
    r->line++;
    return line;
}

static struct slice skip_white(struct slice s)
{
    while (s.len && is_white(s.data[0]))
        s = slice_of(s.data + 1, s.len - 1);
    return s;
}

static bool ends_in_escape(struct slice s)
{
    size_t n = 0;
    while (n < s.len && s.data[s.len - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

// Reads one logical line, still escaped. False: the text is at its end. `number` is its first natural line.
static bool take_logical(struct reader *r, struct strbuf *out, uint32_t *number)
{
    while (r->text.len) {
        *number = r->line;
        struct slice s = skip_white(take_line(r));
        if (!s.len || s.data[0] == '#' || s.data[0] == '!')
            continue;
        strbuf_clear(out);
        while (ends_in_escape(s)) {
            strbuf_add(out, s.data, s.len - 1);
            if (!r->text.len)
                return true;
            s = skip_white(take_line(r));
        }
        strbuf_add_slice(out, s);
        return true;
    }
    return false;
}

static int parse_entry(struct properties *p, struct slice s, uint32_t line, struct errmsg *msg)
{
    size_t key_len = 0;
    while (key_len < s.len) {
        uint8_t c = s.data[key_len];
        if (c == '=' || c == ':' || is_white(c))
            break;
        key_len += c == '\\' && key_len + 1 < s.len ? 2 : 1;
    }
    struct slice rest = skip_white(slice_of(s.data + key_len, s.len - key_len));
    if (rest.len && (rest.data[0] == '=' || rest.data[0] == ':'))
        rest = skip_white(slice_of(rest.data + 1, rest.len - 1));
    struct strbuf key, value;
    strbuf_init(&key);
    strbuf_init(&value);
    int err = unescape(&key, slice_of(s.data, key_len), line, msg);
    if (!err)
        err = unescape(&value, rest, line, msg);
    if (!err)
        add(p, strbuf_slice(&key), strbuf_slice(&value), line);
    strbuf_fini(&key);
    strbuf_fini(&value);
    return err;
}

int properties_parse(struct properties *p, struct slice text, struct errmsg *msg)
{
    if (text.len > PROPERTIES_TEXT_BYTES_MAX)
        return err_set(msg, ERR_TOO_LARGE, "a properties text of %zu bytes", text.len);
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text = slice_of(text.data + 3, text.len - 3);
    struct reader r = {text, 1};
    struct strbuf line;
    strbuf_init(&line);
    uint32_t number = 0;
    int err = 0;
    while (!err && take_logical(&r, &line, &number))
        err = parse_entry(p, strbuf_slice(&line), number, msg);
    strbuf_fini(&line);
    return err;
}

// ---- writing
// ---------------------------------------------------------------------------------------------------

static void write_unit(struct strbuf *out, uint32_t unit)
{
    strbuf_printf(out, "\\u%04X", unit);
}

// One character of well-formed UTF-8 at s.data[*i], or U+FFFD for a malformed byte.
static uint32_t next_code_point(struct slice s, size_t *i)
{
    const uint8_t *p = s.data + *i;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n > s.len - *i || !slice_is_utf8(slice_of(p, n))) {
        (*i)++;
        return 0xfffd;
    }
    *i += n;
    uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t k = 1; k < n; k++)
        c = c << 6 | (p[k] & 0x3fu);
    return c;
}

static void write_escaped(struct strbuf *out, struct slice s, bool is_key)
{
    for (size_t i = 0; i < s.len;) {
        bool first = i == 0;
        uint32_t c = next_code_point(s, &i);
        switch (c) {
        case ' ':
            strbuf_add_str(out, first || is_key ? "\\ " : " ");
            break;
        case '\t':
            strbuf_add_str(out, "\\t");
            break;
        case '\n':
            strbuf_add_str(out, "\\n");
            break;
        case '\r':
            strbuf_add_str(out, "\\r");
            break;
        case '\f':
            strbuf_add_str(out, "\\f");
            break;
        case '\\':
        case '=':
        case ':':
        case '#':
        case '!':
            strbuf_add_char(out, '\\');
            strbuf_add_char(out, (char)c);
            break;
        default:
            if (c >= 0x10000) {
                write_unit(out, 0xd800 + ((c - 0x10000) >> 10));
                write_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
            } else if (c < 0x20 || c > 0x7e) {
                write_unit(out, c);
            } else {
                strbuf_add_char(out, (char)c);
            }
        }
    }
}

void properties_write_line(struct strbuf *out, struct slice key, struct slice value)
{
    write_escaped(out, key, true);
    strbuf_add_char(out, '=');
    write_escaped(out, value, false);
    strbuf_add_char(out, '\n');
}

void properties_write(struct strbuf *out, const struct properties *p)
{
    for (size_t i = 0; i < p->count; i++)
        properties_write_line(out, p->items[i].key, p->items[i].value);
}
