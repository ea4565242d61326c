// SPDX-License-Identifier: Apache-2.0
// IP addresses as text and as bytes in network order, without system headers.
#ifndef KRAFT_SERVER_ADDRESS_H
#define KRAFT_SERVER_ADDRESS_H

#include "core/base/slice.h"

#define ADDRESS_TEXT_BYTES 40 // longest text that address_print makes, with its NUL

// Reads "a.b.c.d" (4 bytes) or IPv6 (16 bytes; a zone after % is left out). How many bytes; 0: no address.
size_t address_parse(struct slice text, uint8_t out[16]);
// Prints 4 or 16 bytes; IPv6 without compression of zeros. False: another length.
bool address_print(struct slice bytes, char out[ADDRESS_TEXT_BYTES]);

#endif
