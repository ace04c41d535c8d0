/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_net.c: a network card (VIRTIO 1.2, 5.1) on a back end of netback.c.
 *
 * Option: tap:IFNAME | user | unix:PATH, then [,mac=AA:BB:CC:DD:EE:FF].
 *
 * Both queues and the back end are served in the I/O thread, a batch at a time, so that
 * a busy card does not keep the console waiting. Frames for which the guest has no buffer
 * wait in the back end; its descriptor is then not polled. Frames that do not fit a
 * buffer, or that the guest made too short or too long, are dropped.
 *
 * Limits: one queue pair, no offloads, no merged buffers, no control queue, an MTU of 1500.
 */
#include "dev.h"
#include "netback.h"
#include "opt.h"
#include "virtio_mmio.h"

#include <endian.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#define WHO	 "net"
#define RX	 0u
#define TX	 1u
#define BATCH	 64u
#define ETH_HEAD 14u

struct net {
	struct rv_virtio v;
	struct rv_netback back;
	struct virtio_net_config config;
	struct rv_vq_chain chain;
	bool polled;	 /* the back end is known to the I/O thread */
	bool rx_blocked; /* no buffer: do not poll for input */
	uint64_t dropped;
};

static void poll_update(struct net *n)
{
	uint32_t events = (n->rx_blocked ? 0u : EPOLLIN) | (n->back.out_len ? EPOLLOUT : 0u);

	if (n->polled)
		rv_io_mod(n->v.vm, n->back.fd, events);
}

/* The other side is gone: the guest sees the cable pulled (5.1.4). I/O thread, lock held. */
static void link_down(struct net *n)
{
	if (n->polled)
		rv_io_del(n->v.vm, n->back.fd);
	n->polled = false;
	rv_netback_close(&n->back);
	n->back.stream = false;
	n->back.out_len = 0;
	n->config.status = htole16(0);
	rv_virtio_config_changed(&n->v);
}

/* --- to the guest -------------------------------------------------------------- */

static int rx_put(struct net *n, const uint8_t *frame, uint32_t len)
{
	struct virtio_net_hdr_v1 hdr = {.num_buffers = htole16(1)};
	struct rv_virtq *q = &n->v.q[RX].vq;
	struct rv_vq_cur cur;
	int rc;

	rv_vq_cur_init(&cur, &n->chain, true);
	if (cur.left < sizeof(hdr) + len) {
		n->dropped++;
		rv_virtq_unpop(q);
		return RV_OK;
	}
	rc = rv_vq_cur_write(q, &cur, &hdr, sizeof(hdr));
	if (!rc)
		rc = rv_vq_cur_write(q, &cur, frame, len);
	if (rc) {
		rv_virtio_fail(&n->v, "receive buffer: %s", rv_status_name(rc));
		return rc;
	}
	return rv_virtio_push(&n->v, RX, n->chain.head, (uint32_t)sizeof(hdr) + len);
}

/* One frame if there are both a buffer and a frame; *more says whether to try again. */
static int rx_one(struct net *n, bool *more)
{
	const uint8_t *frame;
	uint32_t len;
	bool got;
	int rc;

	*more = false;
	rc = rv_virtio_pop(&n->v, RX, &n->chain, &got);
	if (rc)
		return rc;
	if (!got) {
		n->rx_blocked = !rv_virtio_await(&n->v, RX);
		*more = !n->rx_blocked;
		return RV_OK;
	}
	rc = rv_netback_recv(&n->back, &frame, &len);
	if (rc) {
		rv_virtq_unpop(&n->v.q[RX].vq);
		if (rc != RV_ENOTMAPPED)
			link_down(n);
		return RV_OK;
	}
	*more = true;
	return rx_put(n, frame, len);
}

static void rx_serve(struct net *n)
{
	unsigned int budget = BATCH;
	bool more = true;

	n->rx_blocked = !rv_virtio_live(&n->v);
	while (!n->rx_blocked && n->back.fd >= 0 && more && budget--)
		if (rx_one(n, &more))
			n->rx_blocked = true;
	if (rv_virtio_live(&n->v))
		rv_virtio_signal(&n->v, RX);
	/* A stream's frames may wait in our buffer, where epoll does not see them. */
	if (more && !n->rx_blocked && n->back.fd >= 0)
		rv_virtio_poke(&n->v, RX);
	poll_update(n);
}

/* --- from the guest ------------------------------------------------------------ */

static int tx_one(struct net *n)
{
	struct virtio_net_hdr_v1 hdr;
	struct rv_virtq *q = &n->v.q[TX].vq;
	struct rv_vq_cur cur;
	int rc;

	rv_vq_cur_init(&cur, &n->chain, false);
	rc = rv_vq_cur_read(q, &cur, &hdr, sizeof(hdr));
	if (!rc && (cur.left < ETH_HEAD || cur.left > RV_NET_FRAME_MAX || n->back.fd < 0)) {
		n->dropped++;
	} else if (!rc) {
		uint32_t len = cur.left;

		/* No offload was offered, so the header says nothing and is not looked at. */
		rc = rv_vq_cur_read(q, &cur, rv_netback_frame(&n->back), len);
		if (!rc && rv_netback_send(&n->back, len) == RV_ESOURCE)
			link_down(n);
	}
	if (rc) {
		rv_virtio_fail(&n->v, "send buffer: %s", rv_status_name(rc));
		return rc;
	}
	return rv_virtio_push(&n->v, TX, n->chain.head, 0);
}

static void tx_serve(struct net *n)
{
	unsigned int budget = BATCH;
	bool got = true;

	do {
		while (budget && got && !n->back.out_len) {
			if (rv_virtio_pop(&n->v, TX, &n->chain, &got) || (got && tx_one(n)))
				return;
			budget -= got;
		}
		rv_virtio_signal(&n->v, TX);
		if (n->back.out_len) { /* go on when the peer takes more */
			poll_update(n);
			return;
		}
		if (!budget) {
			rv_virtio_poke(&n->v, TX);
			return;
		}
		got = rv_virtio_await(&n->v, TX);
	} while (got);
}

static void net_notify(struct rv_virtio *v, unsigned int queue)
{
	struct net *n = (struct net *)v;

	if (queue == RX)
		rx_serve(n);
	else
		tx_serve(n);
}

static void on_back(void *dev, int fd, uint32_t events)
{
	struct net *n = dev;

	(void)fd;
	pthread_mutex_lock(&n->v.lock);
	if (n->back.out_len && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
		int rc = rv_netback_flush(&n->back);

		if (rc && rc != RV_EBUSY)
			link_down(n);
		else if (!rc && rv_virtio_live(&n->v))
			tx_serve(n);
		poll_update(n);
	}
	if (n->back.fd >= 0 && (events & EPOLLIN))
		rx_serve(n);
	else if (n->back.fd >= 0 && (events & (EPOLLHUP | EPOLLERR)))
		link_down(n);
	pthread_mutex_unlock(&n->v.lock);
}

/* --- creation -------------------------------------------------------------------- */

static int mac_set(uint8_t mac[6], const char *text, struct rv_err *err)
{
	unsigned int b[6];
	int end = 0;

	if (!text) {
		/* Locally administered, unicast; the rest is the host's randomness. */
		if (getrandom(mac, 6, 0) != 6)
			return rv_err_os(err, WHO, "getrandom");
		mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02);
		return RV_OK;
	}
	if (strlen(text) != 17 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &end) != 6 ||
	    end != 17 || (b[0] & 1))
		return rv_err_set(err, RV_EINVAL, WHO,
				  "mac=%.20s: expected a unicast AA:BB:CC:DD:EE:FF", text);
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return RV_OK;
}

static void net_destroy(void *dev)
{
	struct net *n = dev;

	if (n->polled)
		rv_io_del(n->v.vm, n->back.fd);
	rv_netback_close(&n->back);
	rv_virtio_detach(&n->v);
	free(n);
}

static const struct rv_virtio_ops net_ops = {.notify = net_notify};

static int net_setup(struct net *n, const char *option, struct rv_err *err)
{
	static const char *const keys[] = {"mac", NULL};
	char kind[256], mac[32];
	int rc;

	if (!rv_opt_first(option, kind, sizeof(kind)))
		return rv_err_set(err, RV_EINVAL, WHO, "expected tap:IFNAME, user or unix:PATH");
	rc = rv_opt_check(option, true, keys, WHO, err);
	if (!rc)
		rc = mac_set(n->config.mac,
			     rv_opt_get(option, "mac", mac, sizeof(mac)) ? mac : NULL, err);
	if (rc)
		return rc;
	n->config.status = htole16(VIRTIO_NET_S_LINK_UP);
	n->config.max_virtqueue_pairs = htole16(1);
	n->config.mtu = htole16(RV_NET_MTU);
	n->v.ops = &net_ops;
	n->v.device_id = VIRTIO_ID_NET;
	n->v.features =
		1ull << VIRTIO_NET_F_MAC | 1ull << VIRTIO_NET_F_STATUS | 1ull << VIRTIO_NET_F_MTU;
	n->v.nqueues = 2;
	n->v.queue_max = RV_VIRTQ_MAX;
	n->v.config = &n->config;
	/* Fields that no offered feature speaks of do not exist (5.1.4). */
	n->v.config_len = offsetof(struct virtio_net_config, mtu) + sizeof(n->config.mtu);
	return rv_netback_open(&n->back, kind, err);
}

int rv_virtio_net_create(struct rv_vm *vm, const char *option, struct rv_err *err)
{
	struct net *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	rv_virtio_init(&n->v, vm);
	n->back.fd = -1;
	rc = net_setup(n, option, err);
	/* Nothing is polled before the driver is there: its first poke starts it. */
	n->rx_blocked = true;
	if (!rc)
		rc = rv_io_add(vm, n->back.fd, 0, on_back, n, err);
	n->polled = !rc;
	if (!rc)
		rc = rv_virtio_attach(&n->v, "virtio-net", err);
	if (rc) {
		net_destroy(n);
		return rc;
	}
	return rv_vm_add_device(vm, n, net_destroy, err);
}
