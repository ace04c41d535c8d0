/* SPDX-License-Identifier: Apache-2.0 */
/* rvx.h: the exercises of the one test program that guests carry. */
#ifndef RVX_H
#define RVX_H

/* All take their own argv (argv[0] is the exercise) and return an exit status. */
int rvx_storm(int argc, char **argv);
int rvx_bpf(int argc, char **argv);
int rvx_stack(int argc, char **argv);
int rvx_usermap(int argc, char **argv);

/* Report a failed step on stderr with errno, and return 1. */
int rvx_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Read a whole small file into buf, always terminated. Returns its length or -1. */
long rvx_slurp(const char *path, char *buf, unsigned long size);

#endif
