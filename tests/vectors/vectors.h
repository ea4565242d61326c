// SPDX-License-Identifier: Apache-2.0
// Reads the vectors beside this file, a JSON object a line; for tests.
#ifndef KRAFT_TESTS_VECTORS_H
#define KRAFT_TESTS_VECTORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct vectors {
    char *text; // the whole file, lines ended by NUL
    size_t len; // bytes of text
    char *next; // start of the next line
    int line;   // number of the line given last, from 1
};

// Opens e.g. "requests"; ends the program with a message where it cannot.
struct vectors vectors_open(const char *name);
json_t *vectors_next(struct vectors *v); // NULL after the last line; else to be freed by json_decref
void vectors_close(struct vectors *v);

// Bytes of a hex string, to be freed by free(); never NULL.
uint8_t *vectors_unhex(const char *hex, size_t *len);

#endif
