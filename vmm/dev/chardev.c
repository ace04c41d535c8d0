/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chardev.c: where a console's bytes come from and go to.
 *
 *   stdio      the terminal in raw mode; Ctrl-A x ends the VM, Ctrl-A h lists the keys
 *   file:PATH  output only, appended
 *   pty        a new pseudo terminal
 *   unix:PATH  a listening socket, one client at a time
 *   null       nothing
 *
 * Output comes from vcpu threads and never blocks them: it is written at once where the
 * outside has room, else kept in a ring of OUT_MAX bytes that the I/O thread drains, else
 * dropped and counted. Input is read, filtered and delivered in the I/O thread only, so
 * its buffer needs no lock; a consumer that was full wakes that thread with an eventfd.
 *
 * Limits: a client that connects sees nothing of what was written before; a second
 * client is turned away; file:PATH on a slow file system makes the writer wait for the
 * host's page cache (a plain file has no way not to).
 */
#include "dev.h"
#include "tty.h"
#include "unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define WHO	"console"
#define OUT_MAX (64u << 10)
#define IN_MAX	256u
#define ESCAPE	0x01 /* Ctrl-A */

struct rv_chardev {
	struct rv_vm *vm;
	char where[160];
	char unlink_path[112];

	int in_fd;     /* -1: no input now */
	int out_fd;    /* -1: nobody listens */
	int listen_fd; /* unix:PATH */
	int hold_fd;   /* the pty's other end, held open so that it never hangs up */
	int kick_fd;
	bool in_polled, out_polled; /* known to the I/O thread */
	bool own_in, own_out;	    /* to be closed by us */
	bool in_plain;		    /* a plain file: read on demand */
	bool is_tty;		    /* raw terminal with an escape key */
	bool out_sock;		    /* blocking is avoided by a flag of send() */
	bool out_asks;		    /* or by asking first */

	/* I/O thread only */
	size_t (*fn)(void *arg, const void *buf, size_t len);
	void *arg;
	uint8_t in[IN_MAX];
	size_t in_len;
	bool escaped;
	atomic_bool starved; /* the consumer took less than offered */

	pthread_mutex_t lock; /* guards out_fd and the ring */
	uint8_t *ring;
	size_t head, len;
	uint64_t dropped;
};

/* --- output -------------------------------------------------------------- */

static ssize_t write_some(struct rv_chardev *c, const void *buf, size_t len)
{
	struct pollfd p = {.fd = c->out_fd, .events = POLLOUT};
	ssize_t n;

	if (c->out_asks) {
		if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT)) {
			errno = EAGAIN;
			return -1;
		}
		/* A pipe that is writable takes this much without waiting (pipe(7)). */
		if (len > PIPE_BUF)
			len = PIPE_BUF;
	}
	do {
		n = c->out_sock ? send(c->out_fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT)
				: write(c->out_fd, buf, len);
	} while (n < 0 && errno == EINTR);
	return n;
}

static uint32_t events_wanted(const struct rv_chardev *c, int fd)
{
	return (fd == c->in_fd && !atomic_load(&c->starved) ? EPOLLIN : 0u) |
	       (fd == c->out_fd && c->len ? EPOLLOUT : 0u);
}

/* Tell the I/O thread what to wait for; called with the lock held. */
static void poll_update(struct rv_chardev *c)
{
	if (c->out_polled && c->out_fd >= 0)
		rv_io_mod(c->vm, c->out_fd, events_wanted(c, c->out_fd));
	if (c->in_polled && c->in_fd >= 0 && c->in_fd != c->out_fd)
		rv_io_mod(c->vm, c->in_fd, events_wanted(c, c->in_fd));
}

static void ring_put(struct rv_chardev *c, const uint8_t *p, size_t len)
{
	if (!c->ring)
		c->ring = malloc(OUT_MAX);
	if (!c->ring || !c->out_polled) {
		c->dropped += len;
		return;
	}
	for (; len && c->len < OUT_MAX; p++, len--)
		c->ring[(c->head + c->len++) % OUT_MAX] = *p;
	c->dropped += len;
}

static void ring_drain(struct rv_chardev *c)
{
	while (c->len) {
		size_t piece = OUT_MAX - c->head;
		ssize_t n = write_some(c, c->ring + c->head, piece < c->len ? piece : c->len);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) { /* the reader is gone: these bytes have nowhere to go */
			c->dropped += c->len;
			c->len = 0;
			return;
		}
		c->head = (c->head + (size_t)n) % OUT_MAX;
		c->len -= (size_t)n;
	}
}

void rv_chardev_write(struct rv_chardev *c, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	pthread_mutex_lock(&c->lock);
	if (c->out_fd < 0) {
		c->dropped += len;
		len = 0;
	}
	while (len && !c->len) {
		ssize_t n = write_some(c, p, len);

		if (n < 0 && errno != EAGAIN) {
			c->dropped += len;
			len = 0;
		}
		if (n <= 0)
			break;
		p += n;
		len -= (size_t)n;
	}
	if (len) {
		bool was_empty = !c->len;

		ring_put(c, p, len);
		if (was_empty)
			poll_update(c);
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- input (I/O thread) --------------------------------------------------- */

static void say(struct rv_chardev *c, const char *text)
{
	rv_chardev_write(c, text, strlen(text));
}

static void escape_key(struct rv_chardev *c, uint8_t key)
{
	char line[256];

	switch (key) {
	case 'x':
		say(c, "\r\nravelin: ended from the console\r\n");
		rv_tty_restore();
		/* The monitor's main thread treats it as an orderly request to stop. */
		kill(getpid(), SIGTERM);
		break;
	case 'c':
		snprintf(line, sizeof(line), "\r\nravelin: %s, %llu bytes of output dropped\r\n",
			 c->where, (unsigned long long)c->dropped);
		say(c, line);
		break;
	case 'a':
	case ESCAPE: c->in[c->in_len++] = ESCAPE; break;
	default:
		say(c, "\r\nravelin: Ctrl-A then x: end the VM, c: state of the console, "
		       "a: a real Ctrl-A\r\n");
	}
}

static void take_in(struct rv_chardev *c, const uint8_t *p, size_t len)
{
	for (; len; p++, len--) {
		if (c->escaped) {
			c->escaped = false;
			escape_key(c, *p);
		} else if (c->is_tty && *p == ESCAPE) {
			c->escaped = true;
		} else {
			c->in[c->in_len++] = *p;
		}
	}
}

/*
 * Hand what is buffered to the consumer. starved is set before the last attempt: a
 * consumer that makes room after that attempt is bound to see it and kick.
 */
static void deliver(struct rv_chardev *c)
{
	bool last = false;

	while (c->in_len && c->fn) {
		size_t n = c->fn(c->arg, c->in, c->in_len);

		if (n > c->in_len)
			n = c->in_len;
		memmove(c->in, c->in + n, c->in_len - n);
		c->in_len -= n;
		if (!c->in_len)
			break;
		if (n)
			continue;
		if (last)
			return;
		atomic_store(&c->starved, true);
		last = true;
	}
	atomic_store(&c->starved, c->in_len != 0);
}

static void client_drop(struct rv_chardev *c)
{
	int fd = c->in_fd;

	if (c->in_polled)
		rv_io_del(c->vm, fd);
	pthread_mutex_lock(&c->lock);
	c->in_fd = -1;
	c->in_polled = false;
	if (c->out_fd == fd) {
		c->out_fd = -1;
		c->out_polled = false;
		c->dropped += c->len;
		c->len = 0;
	}
	pthread_mutex_unlock(&c->lock);
	if (fd != STDIN_FILENO)
		close(fd);
}

static void pull(struct rv_chardev *c)
{
	uint8_t buf[IN_MAX / 2];
	ssize_t n;

	if (c->in_len || c->in_fd < 0)
		return;
	do {
		n = read(c->in_fd, buf, sizeof(buf));
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	/* End of input, or an error that would repeat: stop listening to it. */
	if (n <= 0) {
		client_drop(c);
		return;
	}
	take_in(c, buf, (size_t)n);
	deliver(c);
}

static void on_io(void *dev, int fd, uint32_t events)
{
	struct rv_chardev *c = dev;
	bool gone;

	if (fd == c->in_fd && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
		if (!c->in_len)
			pull(c);
		else if (events & (EPOLLHUP | EPOLLERR)) /* would be reported for ever */
			client_drop(c);
	}
	pthread_mutex_lock(&c->lock);
	if (fd == c->out_fd && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		ring_drain(c);
	/* A write end whose reader is gone reports an error for ever. */
	gone = fd == c->out_fd && fd != c->in_fd && (events & (EPOLLERR | EPOLLHUP));
	if (gone)
		c->out_polled = false;
	poll_update(c);
	pthread_mutex_unlock(&c->lock);
	if (gone)
		rv_io_del(c->vm, fd);
}

static void on_kick(void *dev, int fd, uint32_t events)
{
	struct rv_chardev *c = dev;
	uint64_t v;

	(void)events;
	if (read(fd, &v, sizeof(v)) < 0 && errno != EAGAIN)
		return;
	deliver(c);
	if (c->in_plain && !atomic_load(&c->starved))
		pull(c);
	pthread_mutex_lock(&c->lock);
	poll_update(c);
	pthread_mutex_unlock(&c->lock);
}

static void on_client(void *dev, int fd, uint32_t events)
{
	struct rv_chardev *c = dev;
	int client = rv_unix_accept(fd);

	(void)events;
	if (client < 0)
		return;
	if (c->in_fd >= 0 || rv_io_add(c->vm, client, EPOLLIN, on_io, c, NULL)) {
		close(client);
		return;
	}
	pthread_mutex_lock(&c->lock);
	c->in_fd = c->out_fd = client;
	c->in_polled = c->out_polled = true;
	poll_update(c);
	pthread_mutex_unlock(&c->lock);
}

void rv_chardev_on_input(struct rv_chardev *c, size_t (*fn)(void *arg, const void *buf, size_t len),
			 void *arg)
{
	c->fn = fn;
	c->arg = arg;
	atomic_store(&c->starved, true);
	rv_chardev_kick(c);
}

void rv_chardev_kick(struct rv_chardev *c)
{
	uint64_t one = 1;

	/* A full counter (EAGAIN) is a kick that is already pending. */
	if ((atomic_load(&c->starved) || c->in_plain) && write(c->kick_fd, &one, sizeof(one)) < 0)
		return;
}

const char *rv_chardev_where(const struct rv_chardev *c)
{
	return c->where;
}

/* --- the kinds --------------------------------------------------------------- */

/*
 * A private open file description, so that O_NONBLOCK does not leak into the shell that
 * shares ours. Plain files are left alone: they have an offset to share, and never block.
 */
static int reopen(int fd, int flags)
{
	struct stat st;
	char path[32];

	if (fstat(fd, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool is_kind(int fd, mode_t kind)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

static int open_stdio(struct rv_chardev *c, struct rv_err *err)
{
	int rc, fd;

	snprintf(c->where, sizeof(c->where), "stdio");
	fd = reopen(STDOUT_FILENO, O_WRONLY);
	c->own_out = fd >= 0;
	c->out_fd = fd >= 0 ? fd : STDOUT_FILENO;
	c->out_sock = is_kind(c->out_fd, S_IFSOCK);
	c->out_asks = fd < 0 && !c->out_sock && !is_kind(c->out_fd, S_IFREG);
	if (fcntl(STDIN_FILENO, F_GETFD) < 0)
		return RV_OK;
	fd = reopen(STDIN_FILENO, O_RDONLY);
	c->own_in = fd >= 0;
	c->in_fd = fd >= 0 ? fd : STDIN_FILENO;
	if (!isatty(c->in_fd))
		return RV_OK;
	rc = rv_tty_raw(c->in_fd, err);
	c->is_tty = rc == RV_OK;
	return rc;
}

static int open_file(struct rv_chardev *c, const char *path, struct rv_err *err)
{
	snprintf(c->where, sizeof(c->where), "file %s", path);
	c->out_fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	c->own_out = true;
	return c->out_fd < 0 ? rv_err_os(err, WHO, "open %s", path) : RV_OK;
}

static int open_pty(struct rv_chardev *c, struct rv_err *err)
{
	struct termios t;
	char name[64];
	int fd;

	fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return rv_err_os(err, WHO, "new pty");
	c->in_fd = c->out_fd = fd;
	c->own_out = true;
	if (grantpt(fd) < 0 || unlockpt(fd) < 0 || ptsname_r(fd, name, sizeof(name)) != 0)
		return rv_err_os(err, WHO, "unlock pty");
	c->hold_fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->hold_fd < 0 || tcgetattr(c->hold_fd, &t) < 0)
		return rv_err_os(err, WHO, "open %s", name);
	cfmakeraw(&t); /* no echo: it would come back as guest input */
	if (tcsetattr(c->hold_fd, TCSANOW, &t) < 0)
		return rv_err_os(err, WHO, "raw mode of %s", name);
	snprintf(c->where, sizeof(c->where), "pty %s", name);
	return RV_OK;
}

static int open_unix(struct rv_chardev *c, const char *path, struct rv_err *err)
{
	int rc = rv_unix_listen(path, &c->listen_fd, err);

	if (rc)
		return rc;
	snprintf(c->where, sizeof(c->where), "unix %s", path);
	snprintf(c->unlink_path, sizeof(c->unlink_path), "%s", path);
	c->out_sock = c->own_out = true;
	return rv_io_add(c->vm, c->listen_fd, EPOLLIN, on_client, c, err);
}

static int open_kind(struct rv_chardev *c, const char *option, struct rv_err *err)
{
	if (!strcmp(option, "null")) {
		snprintf(c->where, sizeof(c->where), "null");
		return RV_OK;
	}
	if (!strcmp(option, "stdio"))
		return open_stdio(c, err);
	if (!strcmp(option, "pty"))
		return open_pty(c, err);
	if (!strncmp(option, "file:", 5) && option[5])
		return open_file(c, option + 5, err);
	if (!strncmp(option, "unix:", 5) && option[5])
		return open_unix(c, option + 5, err);
	return rv_err_set(err, RV_EINVAL, WHO,
			  "%.60s: expected stdio, file:PATH, pty, unix:PATH or null", option);
}

/* What epoll refuses (plain files, /dev/null) is written directly and read on demand. */
static void poll_start(struct rv_chardev *c)
{
	if (c->in_fd >= 0)
		c->in_polled = !rv_io_add(c->vm, c->in_fd, 0, on_io, c, NULL);
	c->in_plain = c->in_fd >= 0 && !c->in_polled;
	if (c->out_fd >= 0 && c->out_fd == c->in_fd)
		c->out_polled = c->in_polled;
	else if (c->out_fd >= 0)
		c->out_polled = !rv_io_add(c->vm, c->out_fd, 0, on_io, c, NULL);
}

int rv_chardev_open(struct rv_vm *vm, const char *option, struct rv_chardev **out,
		    struct rv_err *err)
{
	struct rv_chardev *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	c->vm = vm;
	c->in_fd = c->out_fd = c->listen_fd = c->hold_fd = -1;
	atomic_init(&c->starved, true);
	/* A reader that goes away must not take the VM with it. */
	signal(SIGPIPE, SIG_IGN);
	pthread_mutex_init(&c->lock, NULL);
	c->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = c->kick_fd < 0 ? rv_err_os(err, WHO, "eventfd")
			    : rv_io_add(vm, c->kick_fd, EPOLLIN, on_kick, c, err);
	if (!rc)
		rc = open_kind(c, option, err);
	if (rc) {
		rv_chardev_close(c);
		return rc;
	}
	poll_start(c);
	*out = c;
	return RV_OK;
}

void rv_chardev_close(struct rv_chardev *c)
{
	if (!c)
		return;
	if (c->kick_fd >= 0)
		rv_io_del(c->vm, c->kick_fd);
	if (c->listen_fd >= 0)
		rv_io_del(c->vm, c->listen_fd);
	if (c->in_polled)
		rv_io_del(c->vm, c->in_fd);
	if (c->out_polled && c->out_fd != c->in_fd)
		rv_io_del(c->vm, c->out_fd);
	if (c->is_tty)
		rv_tty_restore();
	if (c->len)
		ring_drain(c);
	if (c->in_fd >= 0 && c->own_in)
		close(c->in_fd);
	if (c->out_fd >= 0 && c->own_out)
		close(c->out_fd);
	if (c->hold_fd >= 0)
		close(c->hold_fd);
	if (c->listen_fd >= 0) {
		close(c->listen_fd);
		unlink(c->unlink_path);
	}
	if (c->kick_fd >= 0)
		close(c->kick_fd);
	pthread_mutex_destroy(&c->lock);
	free(c->ring);
	free(c);
}
