// SPDX-License-Identifier: Apache-2.0
// The real disk behind vfs.h: the one file of storage/ that makes system calls.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/vfs.h"

#define PAGE_BYTES 4096u
#define SYS_CACHESTAT 451 // cachestat(2), Linux 6.5; the same number on every architecture
#define IOV_CALL_MAX 1024 // IOV_MAX of Linux

struct posix_file {
    struct vfs_file f;        // first: the vfs hands out &f
    atomic_bool no_cachestat; // the kernel does not have it, or a sandbox refuses it
};

// Layouts of the kernel's cachestat(2).
struct cachestat_range {
    uint64_t off; // first byte
    uint64_t len; // bytes
};
struct cachestat_result {
    uint64_t nr_cache;            // pages in the page cache
    uint64_t nr_dirty;            // of them dirty
    uint64_t nr_writeback;        // of them being written
    uint64_t nr_evicted;          // pages that were thrown out
    uint64_t nr_recently_evicted; // of them lately
};

static int posix_fail(struct errmsg *msg, const char *what, const char *path)
{
    int e = errno;
    return err_set(msg, err_from_errno(e), "%s %s: %s", what, path, strerror(e));
}

// ---- files ------------------------------------------------------------------------------------------------
static int posix_pread(struct vfs_file *f, void *buf, size_t len, uint64_t pos, size_t *got)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(f->rope.fd, (char *)buf + done, len - done, (off_t)(pos + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_from_errno(errno);
        if (n == 0)
            break;
        done += (size_t)n;
    }
    *got = done;
    return 0;
}

// The read of a rope piece: all or an error.
static int posix_rope_read(struct rope_file *r, void *buf, size_t len, uint64_t pos)
{
    size_t got = 0;
    int rc = posix_pread((struct vfs_file *)r, buf, len, pos, &got);
    if (rc == 0 && got < len)
        rc = ERR_IO;
    return rc;
}

static void posix_close(struct vfs_file *f)
{
    (void)close(f->rope.fd);
    mem_free(f);
}

static void posix_rope_free(struct rope_file *r)
{
    posix_close((struct vfs_file *)r);
}

static struct vfs_file *posix_file_new(struct vfs *fs, int fd)
{
    struct posix_file *p = mem_zalloc(sizeof(*p));
    p->f.fs = fs;
    p->f.rope.fd = fd;
    p->f.rope.read = posix_rope_read;
    p->f.rope.free = posix_rope_free;
    atomic_init(&p->f.rope.refs, 1);
    atomic_init(&p->no_cachestat, false);
    return &p->f;
}

static int posix_open(struct vfs *fs, const char *path, int flags, struct vfs_file **out, struct errmsg *msg)
{
    int oflags = O_CLOEXEC | ((flags & VFS_WRITE) ? O_RDWR : O_RDONLY);
    if (flags & VFS_CREATE)
        oflags |= O_CREAT;
    if (flags & VFS_EXCL)
        oflags |= O_EXCL;
    if (flags & VFS_TRUNCATE)
        oflags |= O_TRUNC;
    int fd;
    do
        fd = open(path, oflags, 0644);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return posix_fail(msg, (flags & VFS_CREATE) ? "cannot create" : "cannot open", path);
    *out = posix_file_new(fs, fd);
    return 0;
}

// Writes the rest of a vector that the kernel took only in part, one piece after the other.
static int write_rest(int fd, const struct iovec *iov, int count, size_t skip, uint64_t pos)
{
    for (int i = 0; i < count; i++) {
        size_t from = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        skip -= from;
        while (from < iov[i].iov_len) {
            ssize_t n = pwrite(fd, (const char *)iov[i].iov_base + from, iov[i].iov_len - from, (off_t)pos);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                return err_from_errno(errno);
            if (n == 0)
                return ERR_IO;
            from += (size_t)n;
            pos += (uint64_t)n;
        }
    }
    return 0;
}

static int posix_pwritev(struct vfs_file *f, const struct iovec *iov, int count, uint64_t pos)
{
    while (count > 0) {
        int batch = count < IOV_CALL_MAX ? count : IOV_CALL_MAX;
        size_t want = 0;
        for (int i = 0; i < batch; i++)
            want += iov[i].iov_len;
        ssize_t n;
        do
            n = pwritev(f->rope.fd, iov, batch, (off_t)pos);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return err_from_errno(errno);
        if ((size_t)n < want) {
            int rc = write_rest(f->rope.fd, iov, batch, (size_t)n, pos + (uint64_t)n);
            if (rc)
                return rc;
        }
        pos += want;
        iov += batch;
        count -= batch;
    }
    return 0;
}

static int posix_size(struct vfs_file *f, uint64_t *out)
{
    struct stat st;
    if (fstat(f->rope.fd, &st) != 0)
        return err_from_errno(errno);
    *out = (uint64_t)st.st_size;
    return 0;
}

static int posix_truncate(struct vfs_file *f, uint64_t size)
{
    int rc;
    do
        rc = ftruncate(f->rope.fd, (off_t)size);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : err_from_errno(errno);
}

static int posix_allocate(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    int rc;
    do
        rc = fallocate(f->rope.fd, FALLOC_FL_KEEP_SIZE, (off_t)pos, (off_t)len);
    while (rc != 0 && errno == EINTR); // an interrupted one has done nothing yet
    if (rc == 0)
        return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? ERR_UNSUPPORTED : err_from_errno(errno);
}

static int posix_sync(struct vfs_file *f)
{
    int rc;
    do
        rc = fdatasync(f->rope.fd);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : err_from_errno(errno);
}

// ---- the page cache ---------------------------------------------------------------------------------------
static bool byte_is_cached(int fd, uint64_t pos)
{
    char byte;
    struct iovec iov = {&byte, 1};
    return preadv2(fd, &iov, 1, (off_t)pos, RWF_NOWAIT) == 1;
}

static int posix_cached(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    struct posix_file *p = (struct posix_file *)f;
    if (len == 0)
        return 1;
    if (!atomic_load_explicit(&p->no_cachestat, memory_order_relaxed)) {
        struct cachestat_range range = {pos, len};
        struct cachestat_result res;
        if (syscall(SYS_CACHESTAT, f->rope.fd, &range, &res, 0) == 0) {
            uint64_t pages = (pos + len - 1) / PAGE_BYTES - pos / PAGE_BYTES + 1;
            return res.nr_cache >= pages;
        }
        atomic_store_explicit(&p->no_cachestat, true, memory_order_relaxed);
    }
    return byte_is_cached(f->rope.fd, pos) && byte_is_cached(f->rope.fd, pos + len - 1);
}

// readahead(2) alone only starts the reading and is cut at the device's read-ahead size: so read it, into a
// small buffer.
static int posix_readahead(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    enum { STEP = 256 * 1024 };
    (void)readahead(f->rope.fd, (off_t)pos, (size_t)len);
    char *buf = mem_alloc(STEP);
    int rc = 0;
    while (len > 0 && rc == 0) {
        size_t want = len < STEP ? (size_t)len : STEP;
        size_t got = 0;
        rc = posix_pread(f, buf, want, pos, &got);
        if (got < want)
            break;
        pos += got;
        len -= got;
    }
    mem_free(buf);
    return rc;
}

// ---- names ------------------------------------------------------------------------------------------------
static int open_dir(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int posix_sync_dir(struct vfs *fs, const char *path)
{
    int fd = open_dir(path);
    if (fd < 0)
        return err_from_errno(errno);
    int rc = fsync(fd) == 0 ? 0 : err_from_errno(errno);
    (void)close(fd);
    return rc;
}

static int posix_sync_fs(struct vfs *fs, const char *path)
{
    int fd = open_dir(path);
    if (fd < 0)
        return err_from_errno(errno);
    int rc = syncfs(fd) == 0 ? 0 : err_from_errno(errno);
    (void)close(fd);
    return rc;
}

static int posix_mkdir(struct vfs *fs, const char *path)
{
    return mkdir(path, 0755) == 0 ? 0 : err_from_errno(errno);
}

static int posix_rename(struct vfs *fs, const char *from, const char *to)
{
    return rename(from, to) == 0 ? 0 : err_from_errno(errno);
}

static int posix_unlink(struct vfs *fs, const char *path)
{
    return unlink(path) == 0 ? 0 : err_from_errno(errno);
}

static int posix_rmdir(struct vfs *fs, const char *path)
{
    return rmdir(path) == 0 ? 0 : err_from_errno(errno);
}

static int posix_stat(struct vfs *fs, const char *path, struct vfs_stat *out)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return err_from_errno(errno);
    out->size = (uint64_t)st.st_size;
    out->mtime = (time_ms)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    out->is_dir = S_ISDIR(st.st_mode);
    return 0;
}

// Is this entry a directory, where the file system does not say so in the entry itself?
static bool entry_is_dir(int dir_fd, const struct dirent *e)
{
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK)
        return e->d_type == DT_DIR;
    struct stat st;
    return fstatat(dir_fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int posix_list(struct vfs *fs, const char *path, int (*each)(void *, const char *, bool), void *data)
{
    DIR *d = opendir(path);
    if (!d)
        return err_from_errno(errno);
    int rc = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e) {
            if (errno != 0)
                rc = err_from_errno(errno);
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = each(data, e->d_name, entry_is_dir(dirfd(d), e));
        if (rc)
            break;
    }
    (void)closedir(d);
    return rc;
}

static int posix_lock(struct vfs *fs, const char *path, struct vfs_file **out)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_from_errno(errno);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int rc = errno == EWOULDBLOCK ? ERR_LOCKED : err_from_errno(errno);
        (void)close(fd);
        return rc;
    }
    // Kafka locks through Java's FileLock, which is a POSIX record lock: hold one too, so that each sees the
    // other.
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES)) {
        (void)close(fd);
        return ERR_LOCKED;
    }
    *out = posix_file_new(fs, fd);
    return 0;
}

static int posix_space(struct vfs *fs, const char *path, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct statvfs st;
    if (statvfs(path, &st) != 0)
        return err_from_errno(errno);
    *free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    *total_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    return 0;
}

static const struct vfs_ops posix_ops = {
    .name = "posix",
    .open = posix_open,
    .close = posix_close,
    .pread = posix_pread,
    .pwritev = posix_pwritev,
    .size = posix_size,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .sync = posix_sync,
    .cached = posix_cached,
    .readahead = posix_readahead,
    .sync_dir = posix_sync_dir,
    .sync_fs = posix_sync_fs,
    .mkdir = posix_mkdir,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .rmdir = posix_rmdir,
    .stat = posix_stat,
    .list = posix_list,
    .lock = posix_lock,
    .space = posix_space,
};

static const struct vfs posix_vfs = {.ops = &posix_ops};

// The struct is never written to; the interface is not const because other implementations have state.
struct vfs *vfs_posix(void)
{
    return (struct vfs *)(uintptr_t)&posix_vfs;
}
