/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netback.c: where Ethernet frames go to and come from.
 *
 * A tap device carries one frame per read or write. The stream form is passt's (and
 * QEMU's "stream" back end's): each frame after its length, four bytes, big-endian. A
 * partly written frame must be finished before the next, so one is kept; nothing here
 * waits. "user" starts passt as a child on one end of a socket pair; it ends by itself
 * when our end closes.
 *
 * Limits: no offloads (IFF_VNET_HDR): a guest's segmentation headers would be parsed by
 * the host's kernel, and the guest needs none for correctness.
 */
#include "netback.h"
#include "unixsock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO	"net"
#define HEAD	4u
#define IN_SIZE (HEAD + RV_NET_STREAM_MAX)

extern char **environ;

static int tap_open(struct rv_netback *n, const char *name, struct rv_err *err)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};

	if (!*name || strlen(name) >= sizeof(ifr.ifr_name))
		return rv_err_set(err, RV_EINVAL, WHO, "tap:%.40s: expected an interface name",
				  name);
	strcpy(ifr.ifr_name, name);
	n->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (n->fd < 0)
		return rv_err_os(err, WHO, "open /dev/net/tun");
	if (ioctl(n->fd, TUNSETIFF, &ifr) < 0)
		return rv_err_os(err, WHO, "attach to tap interface %s", name);
	return RV_OK;
}

/* posix_spawn: the child sees our end of nothing but descriptor 3 and the standard three. */
static int passt_spawn(struct rv_netback *n, int fd, struct rv_err *err)
{
	char *argv[] = {"passt", "--foreground", "--quiet", "--mtu", "1500", "--fd", "3", NULL};
	posix_spawn_file_actions_t act;
	posix_spawnattr_t attr;
	sigset_t none, dfl;
	int rc;

	sigemptyset(&none);
	sigemptyset(&dfl);
	sigaddset(&dfl, SIGPIPE);
	posix_spawn_file_actions_init(&act);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &dfl);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_addopen(&act, 1, "/dev/null", O_RDWR, 0);
	/* dup2 onto itself keeps close-on-exec off, so it is right for fd 3 as well. */
	posix_spawn_file_actions_adddup2(&act, fd, 3);
	rc = posix_spawnp(&n->child, "passt", &act, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&act);
	posix_spawnattr_destroy(&attr);
	if (!rc)
		return RV_OK;
	n->child = 0;
	errno = rc;
	return rv_err_os(err, WHO, "start passt (Debian package \"passt\")");
}

static int user_open(struct rv_netback *n, struct rv_err *err)
{
	int sv[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return rv_err_os(err, WHO, "socketpair");
	/* Ours only: passt waits for the rest of a frame that came in parts. */
	if (fcntl(sv[0], F_SETFL, O_NONBLOCK) < 0) {
		rc = rv_err_os(err, WHO, "socketpair");
		close(sv[0]);
		close(sv[1]);
		return rc;
	}
	rc = passt_spawn(n, sv[1], err);
	close(sv[1]);
	n->fd = sv[0];
	return rc;
}

int rv_netback_open(struct rv_netback *n, const char *kind, struct rv_err *err)
{
	int rc;

	memset(n, 0, sizeof(*n));
	n->fd = -1;
	n->in = malloc(IN_SIZE);
	n->out = malloc(HEAD + RV_NET_FRAME_MAX);
	if (!n->in || !n->out)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	n->stream = true;
	if (!strcmp(kind, "user"))
		return user_open(n, err);
	if (!strncmp(kind, "unix:", 5)) {
		rc = rv_unix_connect(kind + 5, &n->fd, err);
		return rc;
	}
	n->stream = false;
	if (!strncmp(kind, "tap:", 4))
		return tap_open(n, kind + 4, err);
	return rv_err_set(err, RV_EINVAL, WHO, "%.60s: expected tap:IFNAME, user or unix:PATH",
			  kind);
}

void rv_netback_close(struct rv_netback *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
	if (n->child > 0) {
		/* It has nothing to save, and we shall not wait for its manners. */
		kill(n->child, SIGKILL);
		while (waitpid(n->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	n->child = 0;
	free(n->in);
	free(n->out);
	n->in = n->out = NULL;
}

static ssize_t read_some(int fd, void *buf, size_t len)
{
	ssize_t r;

	do {
		r = read(fd, buf, len);
	} while (r < 0 && errno == EINTR);
	return r;
}

/* A whole frame in the buffer? Its length is the peer's word, so it is judged first. */
static int stream_take(struct rv_netback *n, const uint8_t **frame, uint32_t *len)
{
	uint32_t have = n->in_len - n->in_pos, be, want;

	if (have < HEAD)
		return RV_ENOTMAPPED;
	memcpy(&be, n->in + n->in_pos, sizeof(be));
	want = ntohl(be);
	if (!want || want > RV_NET_STREAM_MAX)
		return RV_EBADDATA;
	if (have - HEAD < want)
		return RV_ENOTMAPPED;
	*frame = n->in + n->in_pos + HEAD;
	*len = want;
	n->in_pos += HEAD + want;
	return RV_OK;
}

static int stream_recv(struct rv_netback *n, const uint8_t **frame, uint32_t *len)
{
	int rc = stream_take(n, frame, len);
	ssize_t r;

	if (rc != RV_ENOTMAPPED)
		return rc;
	memmove(n->in, n->in + n->in_pos, n->in_len - n->in_pos);
	n->in_len -= n->in_pos;
	n->in_pos = 0;
	r = read_some(n->fd, n->in + n->in_len, IN_SIZE - n->in_len);
	if (r < 0 && errno == EAGAIN)
		return RV_ENOTMAPPED;
	if (r <= 0)
		return RV_ESOURCE;
	n->in_len += (uint32_t)r;
	return stream_take(n, frame, len);
}

int rv_netback_recv(struct rv_netback *n, const uint8_t **frame, uint32_t *len)
{
	ssize_t r;

	if (n->fd < 0)
		return RV_ESOURCE;
	if (n->stream)
		return stream_recv(n, frame, len);
	r = read_some(n->fd, n->in, IN_SIZE);
	/* EIO: the interface is down; it may come up again. */
	if (r < 0 && (errno == EAGAIN || errno == EIO))
		return RV_ENOTMAPPED;
	if (r <= 0)
		return RV_ESOURCE;
	*frame = n->in;
	*len = (uint32_t)r;
	return RV_OK;
}

uint8_t *rv_netback_frame(struct rv_netback *n)
{
	return n->out + HEAD;
}

int rv_netback_flush(struct rv_netback *n)
{
	while (n->out_pos < n->out_len) {
		ssize_t r = send(n->fd, n->out + n->out_pos, n->out_len - n->out_pos,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			return RV_EBUSY;
		if (r <= 0)
			return RV_ESOURCE;
		n->out_pos += (uint32_t)r;
	}
	n->out_pos = n->out_len = 0;
	return RV_OK;
}

int rv_netback_send(struct rv_netback *n, uint32_t len)
{
	uint32_t be = htonl(len);

	if (n->fd < 0)
		return RV_ESOURCE;
	if (!n->stream) {
		/* A full or downed interface loses the frame, as a wire would. */
		if (write(n->fd, n->out + HEAD, len) < 0 && errno == EBADFD)
			return RV_ESOURCE;
		return RV_OK;
	}
	memcpy(n->out, &be, HEAD);
	n->out_pos = 0;
	n->out_len = HEAD + len;
	return rv_netback_flush(n);
}
