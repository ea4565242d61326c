// SPDX-License-Identifier: Apache-2.0
// A persistent map from 64-bit numbers, in their order: a radix trie of fan-out 32 with skipped levels.
//
// Values are counted objects (whose first member is an atomic_uint of owners) or plain words, as the type
// says. A `struct imap` is a value as struct pmap is: imap_copy is O(1), changes touch only the variable they
// are given, nodes that only it reaches are changed in place. For what pmap lacks: order, a search for the
// next key, and 8 bytes an entry where keys are dense.
#ifndef KRAFT_METADATA_IMAP_H
#define KRAFT_METADATA_IMAP_H

#include <stdbool.h>
#include <stdint.h>

struct imap_node;
struct imap {
    void (*unref)(void *value); // gives one ownership of a value up; NULL: values are plain words
    struct imap_node *root;     // NULL when empty
};

void imap_init(struct imap *m, void (*unref)(void *value));
struct imap imap_copy(const struct imap *m); // O(1)
void imap_drop(struct imap *m);              // m is empty and usable after

// Counted values.
void *imap_get(const struct imap *m, uint64_t key);       // borrowed; NULL: not there
void imap_put(struct imap *m, uint64_t key, void *value); // takes over one reference; replaces
// The value, to be changed in place by its owner, where no other map and nobody else reaches it; NULL: not
// there, or shared (then put a changed copy).
void *imap_own(struct imap *m, uint64_t key);
void *imap_next(const struct imap *m, uint64_t min,
                uint64_t *key); // value of the first key >= min; NULL: none

// Plain words. 0 is "not there": putting 0 removes.
uint64_t imap_get_word(const struct imap *m, uint64_t key);
void imap_put_word(struct imap *m, uint64_t key, uint64_t word);
uint64_t imap_next_word(const struct imap *m, uint64_t min,
                        uint64_t *key); // word of the first key >= min; 0: none

bool imap_remove(struct imap *m, uint64_t key); // false: was not there

// Calls `each` for every key whose value (as pointer) differs, in order of key; NULL = not there. Counted
// values only. Shared nodes are skipped.
void imap_diff(const struct imap *before, const struct imap *after,
               void (*each)(void *data, uint64_t key, void *old_value, void *new_value), void *data);

#endif
