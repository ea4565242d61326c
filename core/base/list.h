// SPDX-License-Identifier: Apache-2.0
// An intrusive doubly linked list; the head is a node that links to itself when the list is empty.
#ifndef KRAFT_BASE_LIST_H
#define KRAFT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/assert.h"

struct list_node {
    struct list_node *next; // NULL in a node that is in no list
    struct list_node *prev; // the same
};
struct list {
    struct list_node head; // next: first, prev: last
};

// The struct that holds this node: LIST_ENTRY(node, struct thing, link).
#define LIST_ENTRY(node, type, field) ((type *)(void *)((char *)(node)-offsetof(type, field)))
#define LIST_FOR_EACH(it, list)                                                                              \
    for (struct list_node *it = (list)->head.next; it != &(list)->head; it = it->next)
// The current node may be removed (and freed) inside.
#define LIST_FOR_EACH_SAFE(it, list)                                                                         \
    for (struct list_node *it = (list)->head.next, *it##_next = it->next; it != &(list)->head;               \
         it = it##_next, it##_next = it->next)

static inline void list_init(struct list *l)
{
    l->head.next = l->head.prev = &l->head;
}
static inline bool list_is_empty(const struct list *l)
{
    return l->head.next == &l->head;
}
static inline bool list_is_linked(const struct list_node *n)
{
    return n->next != NULL;
} // of a zeroed or removed node: false
static inline struct list_node *list_first(const struct list *l) // NULL when empty
{
    return list_is_empty(l) ? NULL : l->head.next;
}
static inline struct list_node *list_last(const struct list *l) // NULL when empty
{
    return list_is_empty(l) ? NULL : l->head.prev;
}
static inline void list_insert_between(struct list_node *n, struct list_node *prev, struct list_node *next)
{
    MUST(n->next == NULL);
    n->prev = prev;
    n->next = next;
    prev->next = n;
    next->prev = n;
}
static inline void list_add_head(struct list *l, struct list_node *n)
{
    list_insert_between(n, &l->head, l->head.next);
}
static inline void list_add_tail(struct list *l, struct list_node *n)
{
    list_insert_between(n, l->head.prev, &l->head);
}
static inline void list_remove(struct list_node *n) // nothing happens if it is in no list
{
    if (!n->next)
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
}
static inline struct list_node *list_pop(struct list *l) // removes and gives the first, or NULL
{
    struct list_node *n = list_first(l);
    if (n)
        list_remove(n);
    return n;
}
static inline void list_splice_tail(struct list *to, struct list *from) // moves all of `from` behind `to`
{
    if (list_is_empty(from))
        return;
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    list_init(from);
}

#endif
