/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vsock.c: connections between a guest's vsock ports and unix sockets (VIRTIO 1.2, 5.10).
 *
 * "Hybrid vsock", as other monitors do it: a guest that connects to CID 2, port P, reaches
 * the unix socket PATH_P; a host process that connects to PATH and writes "CONNECT P\n"
 * reaches the guest's port P and reads "OK port\n" first.
 *
 * Bounds: CONNS_MAX connections, RV_VSOCK_BUF bytes from the guest in each (that is the
 * credit it is given; one who takes more is reset), RSTS_MAX answers to packets that
 * belong to nothing. Bytes to the guest are read from the socket only when there is both
 * credit (5.10.6.3) and a buffer, so they are never stored here.
 *
 * Limits: stream sockets only; the host side of a connection that the guest does not
 * answer waits until one of the two gives up.
 */
#include "vsock.h"
#include "unixsock.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WHO		"vsock"
#define HOST_CID	2u
#define CONNS_MAX	128u
#define RSTS_MAX	64u
#define HELLO_MAX	24u	   /* "CONNECT 4294967295\n" */
#define FIRST_HOST_PORT (1u << 30) /* out of the way of ports that people choose */

enum state {
	ST_FREE,
	ST_HELLO,   /* a host process has not said its port yet */
	ST_REQUEST, /* the guest has not answered yet */
	ST_OPEN,
	ST_CLOSING, /* the host end is closed, the guest may still send */
};

/* What the guest must be told; in order of urgency. */
#define TELL_RST      0x01u
#define TELL_REQUEST  0x02u
#define TELL_RESPONSE 0x04u
#define TELL_CREDIT   0x08u
#define TELL_SHUTDOWN 0x10u

struct conn {
	struct rv_vsock *s;
	enum state state;
	uint32_t host_port, guest_port;
	int fd;
	uint32_t events; /* that epoll watches */
	unsigned int tell;
	bool readable;	     /* the socket has bytes, or its end, for the guest */
	bool host_eof;	     /* nothing more to read from the socket */
	bool hup;	     /* and nobody reads what we write; no longer polled */
	uint32_t guest_shut; /* VIRTIO_VSOCK_SHUTDOWN_* that the guest said */
	uint32_t told_shut;  /* that we said */
	uint32_t tx_cnt;     /* bytes sent to the guest */
	uint32_t peer_alloc, peer_fwd;
	uint32_t fwd_cnt; /* bytes of the guest passed on */
	uint32_t fwd_told;
	uint8_t *buf; /* ring of RV_VSOCK_BUF bytes from the guest */
	uint32_t head, len;
	char hello[HELLO_MAX];
	uint32_t hello_len;
};

struct rst {
	uint32_t host_port, guest_port;
	uint16_t type;
};

struct rv_vsock {
	struct rv_vm *vm;
	const char *who;
	uint64_t cid;
	char path[108];
	pthread_mutex_t *lock;
	void (*wake)(void *arg);
	void *arg;
	bool live;
	int listen_fd;
	uint32_t next_port;
	uint32_t turn; /* round robin */
	struct conn conn[CONNS_MAX];
	struct rst rst[RSTS_MAX];
	uint32_t nrst;
};

static void on_socket(void *dev, int fd, uint32_t events);

/* --- connections ------------------------------------------------------------------- */

static struct conn *conn_find(struct rv_vsock *s, uint32_t host_port, uint32_t guest_port)
{
	for (uint32_t i = 0; i < CONNS_MAX; i++) {
		struct conn *c = &s->conn[i];

		if (c->state > ST_HELLO && c->host_port == host_port && c->guest_port == guest_port)
			return c;
	}
	return NULL;
}

static struct conn *conn_new(struct rv_vsock *s, int fd, enum state state)
{
	struct conn *c = NULL;

	for (uint32_t i = 0; i < CONNS_MAX && !c; i++)
		if (s->conn[i].state == ST_FREE)
			c = &s->conn[i];
	if (!c)
		return NULL;
	*c = (struct conn){.s = s, .state = state, .fd = fd};
	return c;
}

static void fd_close(struct conn *c)
{
	if (c->fd < 0)
		return;
	rv_io_del(c->s->vm, c->fd);
	close(c->fd);
	c->fd = -1;
}

static void conn_free(struct conn *c)
{
	fd_close(c);
	free(c->buf);
	*c = (struct conn){.state = ST_FREE, .fd = -1};
}

/* End it for both sides; the entry goes when the guest has been told. */
static void conn_reset(struct conn *c)
{
	fd_close(c);
	c->len = 0;
	c->readable = false;
	if (c->state == ST_HELLO) {
		conn_free(c);
		return;
	}
	c->state = ST_CLOSING;
	c->tell = TELL_RST;
}

static void conn_poll(struct conn *c)
{
	uint32_t ev = 0;

	if (c->fd < 0 || c->hup)
		return;
	if (c->state == ST_HELLO || (c->state == ST_OPEN && !c->readable && !c->host_eof &&
				     !(c->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV)))
		ev |= EPOLLIN;
	if (c->len)
		ev |= EPOLLOUT;
	if (ev != c->events) {
		c->events = ev;
		rv_io_mod(c->s->vm, c->fd, ev);
	}
}

/* --- towards the host ---------------------------------------------------------------- */

static void credit_check(struct conn *c)
{
	/* Tell the guest in quarters of the buffer; it may be waiting at zero. */
	if (c->fwd_cnt - c->fwd_told >= RV_VSOCK_BUF / 4)
		c->tell |= TELL_CREDIT;
}

/* All is passed on and the guest sends no more: pass that on as well (5.10.6.6). */
static void guest_end(struct conn *c)
{
	if (c->len || !(c->guest_shut & VIRTIO_VSOCK_SHUTDOWN_SEND))
		return;
	if (c->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV)
		conn_reset(c);
	else if (c->fd >= 0)
		shutdown(c->fd, SHUT_WR);
}

static void host_flush(struct conn *c)
{
	while (c->len) {
		uint32_t n = RV_VSOCK_BUF - c->head;
		ssize_t r;

		if (n > c->len)
			n = c->len;
		r = send(c->fd, c->buf + c->head, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			break;
		if (r <= 0) {
			conn_reset(c);
			return;
		}
		c->head = (c->head + (uint32_t)r) % RV_VSOCK_BUF;
		c->len -= (uint32_t)r;
		c->fwd_cnt += (uint32_t)r;
	}
	credit_check(c);
	guest_end(c);
}

static void host_put(struct conn *c, const uint8_t *p, uint32_t len)
{
	if (c->state == ST_CLOSING) { /* nobody reads it any more */
		c->fwd_cnt += len;
		credit_check(c);
		return;
	}
	if (!c->buf)
		c->buf = malloc(RV_VSOCK_BUF);
	if (!c->buf || len > RV_VSOCK_BUF - c->len ||
	    (c->guest_shut & VIRTIO_VSOCK_SHUTDOWN_SEND)) {
		rv_dev_guest_bad(c->s->vm, c->s->who, "port %u sends without credit",
				 c->guest_port);
		conn_reset(c);
		return;
	}
	for (uint32_t n; len; p += n, len -= n) {
		uint32_t at = (c->head + c->len) % RV_VSOCK_BUF;

		n = RV_VSOCK_BUF - at < len ? RV_VSOCK_BUF - at : len;
		memcpy(c->buf + at, p, n);
		c->len += n;
	}
	host_flush(c);
}

/* --- packets of the guest --------------------------------------------------------------- */

static void rst_queue(struct rv_vsock *s, const struct virtio_vsock_hdr *h)
{
	if (s->nrst < RSTS_MAX)
		s->rst[s->nrst++] =
			(struct rst){le32toh(h->dst_port), le32toh(h->src_port), le16toh(h->type)};
}

static void take_request(struct rv_vsock *s, const struct virtio_vsock_hdr *h)
{
	char path[sizeof(s->path) + 12];
	struct conn *c = NULL;
	int fd = -1;

	snprintf(path, sizeof(path), "%s_%u", s->path, le32toh(h->dst_port));
	if (rv_unix_connect(path, &fd, NULL) == RV_OK) {
		c = conn_new(s, fd, ST_OPEN);
		if (!c || rv_io_add(s->vm, fd, 0, on_socket, c, NULL)) {
			close(fd);
			if (c)
				c->state = ST_FREE;
			c = NULL;
		}
	}
	if (!c) {
		rst_queue(s, h);
		return;
	}
	c->host_port = le32toh(h->dst_port);
	c->guest_port = le32toh(h->src_port);
	c->tell = TELL_RESPONSE;
}

static void take_response(struct conn *c)
{
	char ok[32];
	int n = snprintf(ok, sizeof(ok), "OK %u\n", c->host_port);

	if (c->state != ST_REQUEST ||
	    send(c->fd, ok, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n) {
		conn_reset(c);
		return;
	}
	c->state = ST_OPEN;
}

static void take_shutdown(struct conn *c, uint32_t flags)
{
	c->guest_shut |= flags & (VIRTIO_VSOCK_SHUTDOWN_RCV | VIRTIO_VSOCK_SHUTDOWN_SEND);
	if (c->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV)
		c->readable = false;
	if (c->state == ST_CLOSING || c->state == ST_REQUEST)
		conn_reset(c);
	else
		guest_end(c);
}

static void take_for(struct conn *c, const struct virtio_vsock_hdr *h, const void *payload)
{
	/* 5.10.6.3: every packet carries the sender's credit. */
	c->peer_alloc = le32toh(h->buf_alloc);
	c->peer_fwd = le32toh(h->fwd_cnt);
	if (c->tell & TELL_RST)
		return;
	switch (le16toh(h->op)) {
	case VIRTIO_VSOCK_OP_RESPONSE: take_response(c); break;
	case VIRTIO_VSOCK_OP_SHUTDOWN: take_shutdown(c, le32toh(h->flags)); break;
	case VIRTIO_VSOCK_OP_RW:
		if (c->state == ST_REQUEST)
			conn_reset(c);
		else
			host_put(c, payload, le32toh(h->len));
		break;
	case VIRTIO_VSOCK_OP_CREDIT_UPDATE: break;
	case VIRTIO_VSOCK_OP_CREDIT_REQUEST: c->tell |= TELL_CREDIT; break;
	default: conn_reset(c); break; /* a second REQUEST, or nonsense */
	}
	conn_poll(c);
}

void rv_vsock_take(struct rv_vsock *s, const struct virtio_vsock_hdr *h, const void *payload)
{
	struct conn *c;

	/* Only its own address may be the source, only the host the destination. */
	if (le64toh(h->src_cid) != s->cid || le64toh(h->dst_cid) != HOST_CID) {
		rv_dev_guest_bad(s->vm, s->who, "packet from CID %llu to CID %llu",
				 (unsigned long long)le64toh(h->src_cid),
				 (unsigned long long)le64toh(h->dst_cid));
		return;
	}
	c = le16toh(h->type) == VIRTIO_VSOCK_TYPE_STREAM
		    ? conn_find(s, le32toh(h->dst_port), le32toh(h->src_port))
		    : NULL;
	if (le16toh(h->op) == VIRTIO_VSOCK_OP_RST) {
		if (c)
			conn_free(c);
	} else if (c) {
		take_for(c, h, payload);
	} else if (le16toh(h->type) == VIRTIO_VSOCK_TYPE_STREAM &&
		   le16toh(h->op) == VIRTIO_VSOCK_OP_REQUEST) {
		take_request(s, h);
		c = conn_find(s, le32toh(h->dst_port), le32toh(h->src_port));
		if (c) {
			c->peer_alloc = le32toh(h->buf_alloc);
			c->peer_fwd = le32toh(h->fwd_cnt);
			conn_poll(c);
		}
	} else {
		rst_queue(s, h);
	}
}

bool rv_vsock_ready(const struct rv_vsock *s)
{
	return s->nrst < RSTS_MAX;
}

/* --- packets for the guest ----------------------------------------------------------------- */

static void header(struct rv_vsock *s, struct virtio_vsock_hdr *h, uint32_t host_port,
		   uint32_t guest_port, uint16_t op)
{
	*h = (struct virtio_vsock_hdr){
		.src_cid = htole64(HOST_CID),
		.dst_cid = htole64(s->cid),
		.src_port = htole32(host_port),
		.dst_port = htole32(guest_port),
		.type = htole16(VIRTIO_VSOCK_TYPE_STREAM),
		.op = htole16(op),
	};
}

static void conn_header(struct conn *c, struct virtio_vsock_hdr *h, uint16_t op)
{
	header(c->s, h, c->host_port, c->guest_port, op);
	h->buf_alloc = htole32(RV_VSOCK_BUF);
	h->fwd_cnt = htole32(c->fwd_cnt);
	c->fwd_told = c->fwd_cnt;
	c->tell &= ~TELL_CREDIT;
}

static uint32_t credit(const struct conn *c)
{
	uint32_t flying = c->tx_cnt - c->peer_fwd;

	return flying < c->peer_alloc ? c->peer_alloc - flying : 0;
}

/* Bytes of the socket into a packet; at its end a SHUTDOWN. False: nothing came of it. */
static bool give_data(struct conn *c, struct virtio_vsock_hdr *h, void *payload, uint32_t room)
{
	uint32_t n = credit(c) < room ? credit(c) : room;
	ssize_t r;

	if (!n)
		return false;
	do {
		r = recv(c->fd, payload, n, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r > 0) {
		conn_header(c, h, VIRTIO_VSOCK_OP_RW);
		h->len = htole32((uint32_t)r);
		c->tx_cnt += (uint32_t)r;
		return true;
	}
	c->readable = false;
	if (r == 0) {
		c->host_eof = true;
		c->tell |= TELL_SHUTDOWN;
		if (c->hup) {
			fd_close(c);
			c->state = ST_CLOSING;
		}
	} else if (errno != EAGAIN) {
		conn_reset(c);
	}
	conn_poll(c);
	return false;
}

static bool give_told(struct conn *c, struct virtio_vsock_hdr *h)
{
	if (c->tell & TELL_RST) {
		conn_header(c, h, VIRTIO_VSOCK_OP_RST);
		conn_free(c);
	} else if (c->tell & TELL_REQUEST) {
		conn_header(c, h, VIRTIO_VSOCK_OP_REQUEST);
		c->tell &= ~TELL_REQUEST;
	} else if (c->tell & TELL_RESPONSE) {
		conn_header(c, h, VIRTIO_VSOCK_OP_RESPONSE);
		c->tell &= ~TELL_RESPONSE;
	} else if (c->tell & TELL_SHUTDOWN) {
		conn_header(c, h, VIRTIO_VSOCK_OP_SHUTDOWN);
		/* With the descriptor gone nobody will read what the guest sends, either. */
		c->told_shut =
			VIRTIO_VSOCK_SHUTDOWN_SEND | (c->fd < 0 ? VIRTIO_VSOCK_SHUTDOWN_RCV : 0u);
		h->flags = htole32(c->told_shut);
		c->tell &= ~TELL_SHUTDOWN;
	} else if (c->tell & TELL_CREDIT) {
		conn_header(c, h, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
	} else {
		return false;
	}
	return true;
}

static bool conn_give(struct conn *c, struct virtio_vsock_hdr *h, void *payload, uint32_t room)
{
	if (c->state <= ST_HELLO)
		return false;
	/* A shutdown may only be told when the socket's last byte was (it is: host_eof). */
	if (give_told(c, h))
		return true;
	if (c->readable && c->state == ST_OPEN && give_data(c, h, payload, room))
		return true;
	return give_told(c, h);
}

bool rv_vsock_give(struct rv_vsock *s, struct virtio_vsock_hdr *h, void *payload, uint32_t room)
{
	if (s->nrst) {
		struct rst r = s->rst[0];

		s->nrst--;
		memmove(s->rst, s->rst + 1, s->nrst * sizeof(s->rst[0]));
		header(s, h, r.host_port, r.guest_port, VIRTIO_VSOCK_OP_RST);
		h->type = htole16(r.type);
		return true;
	}
	for (uint32_t i = 0; i < CONNS_MAX; i++) {
		struct conn *c = &s->conn[s->turn];

		s->turn = (s->turn + 1) % CONNS_MAX;
		if (conn_give(c, h, payload, room))
			return true;
	}
	return false;
}

/* --- the host's sockets ------------------------------------------------------------------------
 */

static bool port_taken(struct rv_vsock *s, uint32_t port)
{
	for (uint32_t i = 0; i < CONNS_MAX; i++)
		if (s->conn[i].state > ST_HELLO && s->conn[i].host_port == port)
			return true;
	return false;
}

/* "CONNECT port\n", byte by byte: what follows the newline belongs to the guest. */
static void hello_read(struct conn *c)
{
	struct rv_vsock *s = c->s;
	unsigned int port;
	int end = 0;
	char ch;

	for (;;) {
		ssize_t r = recv(c->fd, &ch, 1, MSG_DONTWAIT);

		if (r < 0 && errno == EAGAIN)
			return;
		if (r != 1 || c->hello_len == HELLO_MAX - 1) {
			conn_free(c);
			return;
		}
		if (ch == '\n')
			break;
		c->hello[c->hello_len++] = ch;
	}
	c->hello[c->hello_len] = '\0';
	if (sscanf(c->hello, "CONNECT %10u%n", &port, &end) != 1 || c->hello[end]) {
		conn_free(c);
		return;
	}
	do {
		s->next_port = s->next_port < FIRST_HOST_PORT ? FIRST_HOST_PORT : s->next_port + 1;
	} while (port_taken(s, s->next_port));
	c->host_port = s->next_port;
	c->guest_port = port;
	c->state = ST_REQUEST;
	c->tell = TELL_REQUEST;
}

/* Both directions of the socket are gone. What it still holds goes to the guest first. */
static void socket_gone(struct conn *c)
{
	if (c->state != ST_OPEN) {
		conn_reset(c);
		return;
	}
	if (!c->host_eof && !(c->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV)) {
		/* epoll would repeat this for ever, and reading must wait for credit. */
		c->readable = c->hup = true;
		rv_io_del(c->s->vm, c->fd);
		return;
	}
	fd_close(c);
	c->fwd_cnt += c->len;
	c->len = 0;
	c->state = ST_CLOSING;
	c->tell |= TELL_SHUTDOWN;
}

static void on_socket(void *dev, int fd, uint32_t events)
{
	struct conn *c = dev;
	struct rv_vsock *s = c->s;
	struct pollfd now = {.fd = fd};

	pthread_mutex_lock(s->lock);
	/* An event of an earlier owner of this descriptor number, in the same batch, is none. */
	if ((events & (EPOLLHUP | EPOLLERR)) && poll(&now, 1, 0) != 1)
		events &= ~(uint32_t)(EPOLLHUP | EPOLLERR);
	if (c->state == ST_HELLO) {
		hello_read(c);
	} else {
		if (events & EPOLLOUT)
			host_flush(c);
		if (c->state == ST_OPEN && (events & EPOLLIN))
			c->readable = true;
		if (c->fd >= 0 && (events & (EPOLLHUP | EPOLLERR)))
			socket_gone(c);
	}
	if (c->state != ST_FREE)
		conn_poll(c);
	s->wake(s->arg);
	pthread_mutex_unlock(s->lock);
}

static void on_listen(void *dev, int fd, uint32_t events)
{
	struct rv_vsock *s = dev;
	struct conn *c;
	int client = rv_unix_accept(fd);

	(void)events;
	if (client < 0)
		return;
	pthread_mutex_lock(s->lock);
	c = s->live ? conn_new(s, client, ST_HELLO) : NULL;
	if (!c || rv_io_add(s->vm, client, EPOLLIN, on_socket, c, NULL)) {
		close(client);
		if (c)
			c->state = ST_FREE;
	} else {
		c->events = EPOLLIN;
	}
	pthread_mutex_unlock(s->lock);
}

/* --- life --------------------------------------------------------------------------------------
 */

void rv_vsock_reset(struct rv_vsock *s, bool live)
{
	for (uint32_t i = 0; i < CONNS_MAX; i++)
		if (s->conn[i].state != ST_FREE)
			conn_free(&s->conn[i]);
	s->nrst = 0;
	s->live = live;
}

int rv_vsock_create(struct rv_vm *vm, const char *who, uint64_t cid, const char *path,
		    pthread_mutex_t *lock, void (*wake)(void *arg), void *arg,
		    struct rv_vsock **out, struct rv_err *err)
{
	struct rv_vsock *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	s->vm = vm;
	s->who = who;
	s->cid = cid;
	s->lock = lock;
	s->wake = wake;
	s->arg = arg;
	s->listen_fd = -1;
	/* Room for "_4294967295" in the address of a socket. */
	rc = strlen(path) < sizeof(s->path) - 11
		     ? rv_unix_listen(path, &s->listen_fd, err)
		     : rv_err_set(err, RV_EINVAL, WHO, "%.60s...: path is too long", path);
	if (!rc) {
		snprintf(s->path, sizeof(s->path), "%s", path);
		rc = rv_io_add(vm, s->listen_fd, EPOLLIN, on_listen, s, err);
	}
	if (rc) {
		rv_vsock_destroy(s);
		return rc;
	}
	*out = s;
	return RV_OK;
}

void rv_vsock_destroy(struct rv_vsock *s)
{
	if (!s)
		return;
	rv_vsock_reset(s, false);
	if (s->listen_fd >= 0) {
		rv_io_del(s->vm, s->listen_fd);
		close(s->listen_fd);
		unlink(s->path);
	}
	free(s);
}
