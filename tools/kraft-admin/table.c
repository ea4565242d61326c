// SPDX-License-Identifier: Apache-2.0
// Gathers cells and prints them in columns.
#include "tools/kraft-admin/table.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/mem.h"

void table_init(struct table *t, const char *heads)
{
    memset(t, 0, sizeof(*t));
    t->text = mem_strdup(heads);
    for (char *at = t->text; at && t->columns < TABLE_COLUMNS_MAX;) {
        char *bar = strchr(at, '|');
        t->heads[t->columns++] = at;
        if (bar)
            *bar++ = 0;
        at = bar;
    }
}

void table_add(struct table *t, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (t->filled == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->cells = mem_realloc(t->cells, (size_t)t->room * sizeof(*t->cells));
    }
    t->cells[t->filled++] = mem_strdup(text);
}

// Columns that a terminal gives to UTF-8 text: its code points.
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static void print_cell(FILE *out, const char *text, int width, int last)
{
    fputs(text, out);
    for (int i = width_of(text); !last && i < width + 2; i++)
        fputc(' ', out);
}

void table_print(const struct table *t, FILE *out)
{
    int widths[TABLE_COLUMNS_MAX];
    for (int c = 0; c < t->columns; c++) {
        widths[c] = width_of(t->heads[c]);
        for (int i = c; i < t->filled; i += t->columns)
            if (width_of(t->cells[i]) > widths[c])
                widths[c] = width_of(t->cells[i]);
    }
    for (int c = 0; c < t->columns; c++)
        print_cell(out, t->heads[c], widths[c], c == t->columns - 1);
    fputc('\n', out);
    for (int i = 0; i < t->filled; i++) {
        int c = i % t->columns;
        print_cell(out, t->cells[i], widths[c], c == t->columns - 1);
        if (c == t->columns - 1)
            fputc('\n', out);
    }
}

void table_fini(struct table *t)
{
    for (int i = 0; i < t->filled; i++)
        mem_free(t->cells[i]);
    mem_free(t->cells);
    mem_free(t->text);
    memset(t, 0, sizeof(*t));
}
