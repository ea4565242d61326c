// SPDX-License-Identifier: Apache-2.0
// The voter memory: a synced file of the directory id that each node id of a static quorum first shook hands
// with.
//
// `raft-voter-memory`, text, one line a node: "NODE DIRECTORY\n". A wiped disk comes back with another
// directory id, and with it a voter that has forgotten its vote: it is refused until its operator says that
// the disk was replaced.
#include <stdlib.h>
#include "core/base/mem.h"
#include "raft/quorum_impl.h"

#define MEMORY_NAME "raft-voter-memory"
#define MEMORY_BYTES_MAX 65536

int voter_memory_load(struct quorum *q, struct errmsg *msg)
{
    int err = quorum_file_read(q->opts.fs, q->dir, MEMORY_NAME, MEMORY_BYTES_MAX, &q->transport.memory, msg);
    return err == ERR_NOTFOUND ? 0 : err;
}

// Line of a node: start of its directory id, or NULL.
static char *find_line(char *text, node_id node)
{
    for (char *line = text; line && *line;) {
        char *end;
        long n = strtol(line, &end, 10);
        if (end != line && *end == ' ' && n == node && strlen(end + 1) >= UUID_TEXT_BYTES - 1)
            return end + 1;
        char *next = strchr(line, '\n');
        line = next ? next + 1 : NULL;
    }
    return NULL;
}

int voter_memory_check(struct quorum *q, node_id node, struct uuid directory, bool replaced,
                       struct errmsg *msg)
{
    char text[UUID_TEXT_BYTES];
    if (q->dynamic)
        return 0; // the Raft id holds the directory id
    uuid_format(directory, text);
    char *line = find_line(q->transport.memory, node);
    if (line && strncmp(line, text, UUID_TEXT_BYTES - 1) == 0)
        return 0;
    if (line && !replaced)
        return err_set(
            msg, ERR_FENCED,
            "node %d has directory id %s, but %.22s is on record: a voter whose disk was wiped "
            "has forgotten its "
            "vote. If the disk was replaced on purpose, start it once with kraft-server --disk-replaced",
            (int)node, text, line);
    if (line && node != q->opts.id)
        q->replaced_peer = quorum_raft_id(node, directory, false);
    struct strbuf b;
    strbuf_init(&b);
    strbuf_add_str(&b, q->transport.memory ? q->transport.memory : "");
    if (line)
        memcpy(b.data + (line - q->transport.memory), text, UUID_TEXT_BYTES - 1);
    else
        strbuf_printf(&b, "%d %s\n", (int)node, text);
    int err = quorum_file_replace(q->opts.fs, q->dir, MEMORY_NAME, strbuf_slice(&b), msg);
    mem_free(q->transport.memory);
    q->transport.memory = strbuf_take(&b);
    return err;
}
