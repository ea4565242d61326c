// SPDX-License-Identifier: Apache-2.0
// File paths as text: joining and taking apart. No system calls.
#ifndef KRAFT_BASE_PATH_H
#define KRAFT_BASE_PATH_H

// "dir/name", to be freed with mem_free. One slash between them, whether `dir` ends with one or not; `dir` ""
// gives name.
char *path_join(const char *dir, const char *name);
const char *path_base(const char *path); // what follows the last slash; points into `path`

#endif
