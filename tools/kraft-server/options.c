// SPDX-License-Identifier: Apache-2.0
// The command line of kraft-server: parsing, help, version.
#include "tools/kraft-server/options.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "kraft-server runs a node: a broker, a controller or both, as process.roles says.\n\n"
    "Usage: kraft-server [OPTION]... server.properties\n\n"
    "Options:\n"
    "  --override KEY=VALUE  sets a key of the file anew; may be given many times\n"
    "  --check-config        reads and judges the configuration, says what is wrong or odd, and exits\n"
    "  --log-file FILE       writes log lines to FILE instead of stderr; SIGHUP opens it anew (log "
    "rotation)\n"
    "  --debug               more log lines\n"
    "  --disk-replaced       this voter of a static quorum starts on a new disk on purpose: the other voters "
    "forget the old one\n"
    "  --help, --version\n\n"
    "Environment: KRAFT_ and KAFKA_ variables set keys too (KRAFT_NODE_ID=1 is node.id=1; _ for ., __ for _, "
    "___ for -); they win over\n"
    "the file, and --override wins over them.\n\n"
    "The directories must be formatted first:\n"
    "  kraft-format --cluster-id $(kraft-format random-uuid) --config server.properties --standalone\n\n"
    "Signals: SIGTERM and SIGINT stop the node in order (leaders are handed over first), a second one at "
    "once; SIGHUP reopens the log file.\n"
    "Exit status: 0 stopped in order, 1 the node could not go on, 2 bad command line or configuration.\n";

static enum options_verdict bad(const char *text, const char *what)
{
    fprintf(stderr, "kraft-server: %s%s\nkraft-server --help shows how it is used.\n", text, what);
    return OPTIONS_BAD;
}

// The value of an option, from "--name=value" or the next word; NULL where there is none.
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
    size_t len = strlen(name);
    if (argv[*i][len] == '=')
        return argv[*i] + len + 1;
    return *i + 1 < argc ? argv[++*i] : NULL;
}

static bool is_option(const char *arg, const char *name)
{
    size_t len = strlen(name);
    return strncmp(arg, name, len) == 0 && (arg[len] == 0 || arg[len] == '=');
}

enum options_verdict options_parse(int argc, char **argv, struct options *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (is_option(arg, "--help") || strcmp(arg, "-h") == 0) {
            fputs(help, stdout);
            return OPTIONS_DONE;
        } else if (is_option(arg, "--version")) {
            puts("kraft-server " KRAFT_VERSION);
            return OPTIONS_DONE;
        } else if (is_option(arg, "--check-config")) {
            out->check_config = true;
        } else if (is_option(arg, "--debug")) {
            out->debug = true;
        } else if (is_option(arg, "--disk-replaced")) {
            out->disk_replaced = true;
        } else if (is_option(arg, "--log-file")) {
            out->log_file = value_of("--log-file", argc, argv, &i);
            if (!out->log_file)
                return bad("--log-file needs a file name", "");
        } else if (is_option(arg, "--override")) {
            const char *value = value_of("--override", argc, argv, &i);
            if (!value || out->overrides_count == OVERRIDES_MAX)
                return bad(value ? "too many --override" : "--override needs KEY=VALUE", "");
            out->overrides[out->overrides_count++] = value;
        } else if (arg[0] == '-') {
            return bad("unknown option ", arg);
        } else if (out->properties) {
            return bad("one properties file is enough; what is ", arg);
        } else {
            out->properties = arg;
        }
    }
    return out->properties ? OPTIONS_RUN
                           : bad("the path of server.properties is missing; deploy/config/ has examples", "");
}
