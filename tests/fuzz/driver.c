// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files and folders of inputs, and over changed copies of them; for builds without
// libFuzzer.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static unsigned changes = 20; // changed copies of each input
static unsigned long runs;    // inputs given to the target

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

// Gives the target a block of exactly `size` bytes, so that the address sanitizer sees every byte read too
// far.
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(2);
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    runs++;
}

static void run_changed(uint8_t *data, size_t size)
{
    uint64_t seed = 0x9e3779b97f4a7c15u ^ size;
    for (unsigned i = 0; i < changes && size > 0; i++) {
        size_t at = next_random(&seed) % size;
        uint8_t old = data[at];
        data[at] = (uint8_t)next_random(&seed);
        run_copy(data, next_random(&seed) % 4 ? size : at);
        data[at] = old;
    }
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t room = 1 << 16, size = 0, n;
    uint8_t *data = malloc(room);
    while (data && (n = fread(data + size, 1, room - size, f)) > 0) {
        size += n;
        if (size == room)
            data = realloc(data, room *= 2);
    }
    fclose(f);
    if (!data)
        exit(2);
    run_copy(data, size);
    run_changed(data, size);
    free(data);
    return 0;
}

static int run_path(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return run_file(path);
    int bad = 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        bad |= run_file(name);
    }
    closedir(dir);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0, first = 1;
    if (argc > 2 && strcmp(argv[1], "--changes") == 0) {
        changes = (unsigned)strtoul(argv[2], NULL, 10);
        first = 3;
    }
    if (argc <= first) {
        fprintf(stderr, "usage: %s [--changes N] FILE|FOLDER...\n", argv[0]);
        return 2;
    }
    for (int i = first; i < argc; i++)
        bad |= run_path(argv[i]);
    printf("%lu inputs\n", runs);
    return bad;
}
