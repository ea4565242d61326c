// SPDX-License-Identifier: Apache-2.0
// Reads the command line of kraft-admin.
#include "tools/kraft-admin/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const common[] = {"bootstrap-server=", "output=", "timeout=", "client-id=", "help", NULL};

// Gives the known entry of an option's name, or NULL.
static const char *find_known(const char *const *known, const char *name, size_t len)
{
    for (; *known; known++)
        if (strncmp(*known, name, len) == 0 && ((*known)[len] == 0 || strcmp(*known + len, "=") == 0))
            return *known;
    return NULL;
}

static bool wrong(struct args *a, const char *what, const char *name)
{
    snprintf(a->error, sizeof(a->error), "%s: %.100s", what, name);
    return false;
}

static bool add_option(struct args *a, const char *name, const char *value)
{
    if (a->options_count == ARGS_OPTIONS_MAX)
        return wrong(a, "too many options", name);
    a->options[a->options_count++] = (struct args_option){name, value};
    return true;
}

bool args_parse(struct args *a, int argc, char **argv, const char *const *known)
{
    memset(a, 0, sizeof(*a));
    for (int i = 0; i < argc; i++) {
        const char *text = argv[i];
        if (strcmp(text, "-h") == 0)
            text = "--help";
        if (strncmp(text, "--", 2) != 0 || text[2] == 0) {
            if (a->words_count == ARGS_OPTIONS_MAX)
                return wrong(a, "too many words", text);
            a->words[a->words_count++] = text;
            continue;
        }
        text += 2;
        size_t len = strcspn(text, "=");
        const char *entry = find_known(known, text, len);
        if (!entry)
            entry = find_known(common, text, len);
        if (!entry)
            return wrong(a, "unknown option", argv[i]);
        bool takes_value = entry[len] == '=';
        const char *value = text[len] == '=' ? text + len + 1 : NULL;
        if (takes_value && !value && i + 1 < argc)
            value = argv[++i];
        if (takes_value != (value != NULL))
            return wrong(a, takes_value ? "a value is missing after" : "no value is taken by", argv[i]);
        if (!add_option(a, entry, value))
            return false;
    }
    return true;
}

static bool is_named(const struct args_option *o, const char *name)
{
    size_t len = strlen(name);
    return strncmp(o->name, name, len) == 0 && (o->name[len] == 0 || o->name[len] == '=');
}

bool args_flag(const struct args *a, const char *name)
{
    for (int i = 0; i < a->options_count; i++)
        if (is_named(&a->options[i], name))
            return true;
    return false;
}

const char *args_value(const struct args *a, const char *name)
{
    const char *found = NULL;
    for (int i = 0; i < a->options_count; i++)
        if (is_named(&a->options[i], name))
            found = a->options[i].value;
    return found;
}

const char *args_each(const struct args *a, const char *name, int *next)
{
    while (*next < a->options_count) {
        const struct args_option *o = &a->options[(*next)++];
        if (is_named(o, name))
            return o->value;
    }
    return NULL;
}

bool args_number(struct args *a, const char *name, int64_t low, int64_t high, int64_t otherwise, int64_t *out)
{
    const char *text = args_value(a, name);
    char *end;
    if (!text) {
        *out = otherwise;
        return true;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *text == 0 || *end || value < low || value > high) {
        snprintf(a->error, sizeof(a->error), "--%s must be a whole number from %lld to %lld", name,
                 (long long)low, (long long)high);
        return false;
    }
    *out = value;
    return true;
}
