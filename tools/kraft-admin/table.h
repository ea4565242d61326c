// SPDX-License-Identifier: Apache-2.0
// Tables for people on a terminal: columns as wide as their longest cell.
#ifndef KRAFT_TOOLS_ADMIN_TABLE_H
#define KRAFT_TOOLS_ADMIN_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS_MAX 16

struct table {
    char *text;                           // copy of the heads; owned
    const char *heads[TABLE_COLUMNS_MAX]; // column heads, in `text`
    int columns;                          // of them
    char **cells;                         // row by row; owned
    int filled;                           // cells so far
    int room;                             // cells there is room for
};

// `heads` are separated by '|'; copied.
void table_init(struct table *t, const char *heads);
// Adds the next cell; rows fill from left to right.
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *t, FILE *out);
void table_fini(struct table *t);

#endif
