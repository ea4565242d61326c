// SPDX-License-Identifier: Apache-2.0
// Maps the files that kraft-dump reads.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/kraft-dump/dump.h"

int dump_file_open(struct dump_file *f, const char *path)
{
    struct stat info;
    *f = (struct dump_file){.path = path, .bytes = SLICE_LIT("")};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        fprintf(stderr, "kraft-dump: %s: %s\n", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return DUMP_IO;
    }
    int status = DUMP_OK;
    if (!S_ISREG(info.st_mode)) {
        fprintf(stderr, "kraft-dump: %s: not a file\n", path);
        status = DUMP_IO;
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            fprintf(stderr, "kraft-dump: %s: %s\n", path, strerror(errno));
            status = DUMP_IO;
        } else {
            f->bytes = slice_of(data, (size_t)info.st_size);
        }
    }
    close(fd);
    return status;
}

void dump_file_close(struct dump_file *f)
{
    if (f->bytes.len > 0)
        munmap((void *)(uintptr_t)f->bytes.data, f->bytes.len);
    f->bytes = SLICE_LIT("");
}

const char *dump_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
