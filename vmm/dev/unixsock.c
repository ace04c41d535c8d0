/* SPDX-License-Identifier: Apache-2.0 */
/* unixsock.c: stream sockets in the file system, for device back ends. */
#include "unixsock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WHO "socket"

static int address_set(const char *path, struct sockaddr_un *sun, struct rv_err *err)
{
	size_t n = strlen(path);

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	if (!n || n >= sizeof(sun->sun_path))
		return rv_err_set(err, RV_EINVAL, WHO, "%.100s: path must have 1 to %zu bytes",
				  path, sizeof(sun->sun_path) - 1);
	memcpy(sun->sun_path, path, n);
	return RV_OK;
}

static int socket_open(int *fd_out, struct rv_err *err)
{
	*fd_out = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *fd_out < 0 ? rv_err_os(err, WHO, "socket") : RV_OK;
}

int rv_unix_connect(const char *path, int *fd_out, struct rv_err *err)
{
	struct sockaddr_un sun;
	int fd, rc;

	rc = address_set(path, &sun, err);
	if (rc)
		return rc;
	rc = socket_open(&fd, err);
	if (rc)
		return rc;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		rc = rv_err_os(err, WHO, "connect to %s", path);
		close(fd);
		return rc;
	}
	*fd_out = fd;
	return RV_OK;
}

/* Remove a socket file whose owner is gone. Anything else in the way stays. */
static int stale_remove(const char *path, const struct sockaddr_un *sun, struct rv_err *err)
{
	struct stat st;
	int fd, rc, e;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? RV_OK : rv_err_os(err, WHO, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return rv_err_set(err, RV_EBUSY, WHO, "%s exists and is not a socket", path);
	rc = socket_open(&fd, err);
	if (rc)
		return rc;
	rc = connect(fd, (const struct sockaddr *)sun, sizeof(*sun));
	e = errno;
	close(fd);
	if (rc == 0 || e != ECONNREFUSED)
		return rv_err_set(err, RV_EBUSY, WHO, "%s is in use", path);
	if (unlink(path) < 0)
		return rv_err_os(err, WHO, "remove stale %s", path);
	return RV_OK;
}

int rv_unix_listen(const char *path, int *fd_out, struct rv_err *err)
{
	struct sockaddr_un sun;
	int fd, rc;

	rc = address_set(path, &sun, err);
	if (rc)
		return rc;
	rc = stale_remove(path, &sun, err);
	if (rc)
		return rc;
	rc = socket_open(&fd, err);
	if (rc)
		return rc;
	/* The file that bind() makes takes its mode from the socket's inode: no window. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    listen(fd, 16) < 0) {
		rc = rv_err_os(err, WHO, "listen on %s", path);
		close(fd);
		return rc;
	}
	*fd_out = fd;
	return RV_OK;
}

int rv_unix_accept(int listen_fd)
{
	return accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
