// SPDX-License-Identifier: Apache-2.0
// The principal inside an Envelope: two bytes of version (0), then DefaultPrincipalData of that version
// (KIP-590).
#ifndef KRAFT_SECURITY_PRINCIPAL_H
#define KRAFT_SECURITY_PRINCIPAL_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/security/context.h"

// The context's principal as bytes in the arena.
struct slice principal_serialize(const struct request_context *ctx, struct arena *arena);
// Fills type, name and token_authenticated of the context, in place (slices of `bytes`); nothing else is
// touched. ERR_MALFORMED: no principal, or one without type or name.
int principal_deserialize(struct slice bytes, struct arena *arena, struct request_context *ctx,
                          struct errmsg *msg);

#endif
