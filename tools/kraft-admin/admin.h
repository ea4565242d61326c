// SPDX-License-Identifier: Apache-2.0
// What the verbs of kraft-admin share: the open cluster, the way of output, exit codes.
#ifndef KRAFT_TOOLS_ADMIN_H
#define KRAFT_TOOLS_ADMIN_H

#include <jansson.h>

#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/metadata_response.h"
#include "tools/client/kclient.h"
#include "tools/kraft-admin/args.h"
#include "tools/kraft-admin/table.h"

#define ADMIN_OK 0          // done
#define ADMIN_REFUSED 1     // the cluster refused it, or part of it; the reason is on standard error
#define ADMIN_USAGE 2       // the command line cannot be understood; nothing was sent
#define ADMIN_UNREACHABLE 3 // no server answers

struct admin {
    struct args args;       // command line after the verb
    struct kclient *client; // the cluster
    bool json;              // --output json
    struct arena arena;     // responses; freed at the end
    struct errmsg err;      // message of the last failure
    const char *verb;       // for messages
};

// A verb: name of one or two words, options, help text, and what it does with the open cluster.
struct admin_verb {
    const char *name;            // e.g. "topics create"
    const char *const *options;  // of args_parse
    const char *purpose;         // line in the list of verbs
    const char *help;            // after the usage line: options, examples
    int (*run)(struct admin *a); // gives the exit code
};

extern const struct admin_verb topics_verbs[], partitions_verbs[], configs_verbs[], cluster_verbs[],
    features_verbs[], quorum_verbs[], produce_verbs[], consume_verbs[]; // each ended by a row without a name

// Prints "kraft-admin VERB: ..." to standard error; gives ADMIN_USAGE or ADMIN_REFUSED.
int admin_usage(struct admin *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int admin_refused(struct admin *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Prints a->err and gives the exit code of `err`: unreachable for connection troubles, else refused.
int admin_failed(struct admin *a, int err);
// Prints "SUBJECT: ERROR_NAME: message" and gives ADMIN_REFUSED. The server's message, where it has one, else
// ours.
int admin_refusal(struct admin *a, struct slice subject, int error_code, struct slice message);
// Value of an option that must be there; prints and gives NULL where it is not.
const char *admin_need(struct admin *a, const char *option);

// Sends to any broker (which forwards to the active controller where that is needed).
int admin_call(struct admin *a, int api_key, const void *request, void *response);
int admin_call_node(struct admin *a, node_id node, int api_key, int version, const void *request,
                    void *response);

// Metadata of one topic (NULL: of all), with its errors printed. ADMIN_OK or an exit code.
int admin_metadata(struct admin *a, const char *topic, struct kp_metadata_response *out);

// Prints and frees the document of --output json.
int admin_print_json(json_t *document);
json_t *admin_text(struct slice s); // JSON text; null stays null
// "1,2,3" of an array of numbers, from the arena.
const char *admin_numbers(struct admin *a, const int32_t *numbers, int32_t count);
json_t *admin_numbers_json(const int32_t *numbers, int32_t count);

#endif
