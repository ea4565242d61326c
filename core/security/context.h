// SPDX-License-Identifier: Apache-2.0
// Who asks: the principal of a request and where it came from.
#ifndef KRAFT_SECURITY_CONTEXT_H
#define KRAFT_SECURITY_CONTEXT_H

#include "core/base/slice.h"
#include "core/base/types.h"

// Who asks. Kept by the connection; rebuilt for a request that came in an Envelope. The strings live as long
// as the request.
struct request_context {
    struct slice principal_type; // "User"
    struct slice principal_name; // "ANONYMOUS" without authentication
    struct slice client_host;    // address of the client, "127.0.0.1"
    struct slice listener_name;  // listener that the client used, "PLAINTEXT"
    int16_t security_protocol;   // SecurityProtocol id: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
    bool token_authenticated;    // authenticated by a delegation token
    bool forwarded;              // rebuilt from an Envelope
};

#endif
