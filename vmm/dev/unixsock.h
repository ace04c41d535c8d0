/* SPDX-License-Identifier: Apache-2.0 */
/* unixsock.h: stream sockets in the file system, for device back ends. */
#ifndef RV_VMM_DEV_UNIXSOCK_H
#define RV_VMM_DEV_UNIXSOCK_H

#include <ravelin/error.h>

/*
 * Listen on path: mode 0600 from the first moment, non-blocking, close-on-exec. A
 * socket file that nobody listens on is replaced; a live one is RV_EBUSY.
 */
int rv_unix_listen(const char *path, int *fd_out, struct rv_err *err) RV_MUST_CHECK;

/* Connect without waiting; the descriptor is non-blocking and close-on-exec. */
int rv_unix_connect(const char *path, int *fd_out, struct rv_err *err) RV_MUST_CHECK;

/* Next client of a listening socket, non-blocking, or -1. */
int rv_unix_accept(int listen_fd);

#endif
