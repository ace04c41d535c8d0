/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_vsock.c: the guest's end of vsock.c as a virtio device (VIRTIO 1.2, 5.10).
 *
 * Option: cid=N,path=SOCKET. All queues are served in the I/O thread. Answers are never
 * stored without bound: while the guest takes none, its own packets stay in its queue.
 *
 * Limits: streams only (no SEQPACKET); the event queue is there and stays silent.
 */
#include "dev.h"
#include "opt.h"
#include "virtio_mmio.h"
#include "vsock.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_ids.h>
#include <stdlib.h>

#define WHO   "vsock"
#define RX    0u
#define TX    1u
#define BATCH 64u

struct vdev {
	struct rv_virtio v;
	struct virtio_vsock_config config;
	struct rv_vsock *s;
	struct rv_vq_chain chain;
	uint32_t generation; /* of the driver that s serves */
	uint8_t buf[RV_VSOCK_BUF];
};

static int tx_one(struct vdev *d)
{
	struct rv_virtq *q = &d->v.q[TX].vq;
	struct virtio_vsock_hdr h;
	struct rv_vq_cur cur;
	uint32_t len = 0;
	int rc;

	rv_vq_cur_init(&cur, &d->chain, false);
	rc = rv_vq_cur_read(q, &cur, &h, sizeof(h));
	if (!rc)
		len = le32toh(h.len);
	/* The credit that we give forbids more than one buffer at once. */
	if (!rc && (len > RV_VSOCK_BUF || len > cur.left))
		rc = RV_EBADDATA;
	if (!rc)
		rc = rv_vq_cur_read(q, &cur, d->buf, len);
	if (rc) {
		rv_virtio_fail(&d->v, "packet: %s", rv_status_name(rc));
		return rc;
	}
	rv_vsock_take(d->s, &h, d->buf);
	return rv_virtio_push(&d->v, TX, d->chain.head, 0);
}

/* Fills one buffer of the guest; *more is false when there is no packet or no buffer. */
static int rx_one(struct vdev *d, bool *more)
{
	struct rv_virtq *q = &d->v.q[RX].vq;
	struct virtio_vsock_hdr h;
	struct rv_vq_cur cur;
	uint32_t room;
	bool got;
	int rc;

	*more = false;
	do {
		rc = rv_virtio_pop(&d->v, RX, &d->chain, &got);
		if (rc)
			return rc;
	} while (!got && rv_virtio_await(&d->v, RX));
	if (!got)
		return RV_OK;
	rv_vq_cur_init(&cur, &d->chain, true);
	if (cur.left <= sizeof(h)) {
		rv_virtio_fail(&d->v, "receive buffer of %u bytes", cur.left);
		return RV_EBADDATA;
	}
	room = cur.left - (uint32_t)sizeof(h);
	if (!rv_vsock_give(d->s, &h, d->buf, room < RV_VSOCK_BUF ? room : RV_VSOCK_BUF)) {
		rv_virtq_unpop(q);
		return RV_OK;
	}
	*more = true;
	rc = rv_vq_cur_write(q, &cur, &h, sizeof(h));
	if (!rc)
		rc = rv_vq_cur_write(q, &cur, d->buf, le32toh(h.len));
	if (rc) {
		rv_virtio_fail(&d->v, "receive buffer: %s", rv_status_name(rc));
		return rc;
	}
	return rv_virtio_push(&d->v, RX, d->chain.head, (uint32_t)sizeof(h) + le32toh(h.len));
}

static void serve(struct vdev *d)
{
	unsigned int budget = BATCH;
	bool more, got;

	while (budget) {
		do {
			if (rx_one(d, &more))
				return;
		} while (more && --budget);
		if (!budget || !rv_vsock_ready(d->s))
			break;
		if (rv_virtio_pop(&d->v, TX, &d->chain, &got) || (got && tx_one(d)))
			return;
		if (!got && !rv_virtio_await(&d->v, TX))
			break;
		budget--;
	}
	rv_virtio_signal(&d->v, RX);
	rv_virtio_signal(&d->v, TX);
	if (!budget)
		rv_virtio_poke(&d->v, TX);
}

static void vdev_notify(struct rv_virtio *v, unsigned int queue)
{
	struct vdev *d = (struct vdev *)v;

	(void)queue;
	if (d->generation != v->generation) {
		rv_vsock_reset(d->s, true);
		d->generation = v->generation;
	}
	serve(d);
}

/* I/O thread, lock held: a socket has something to say. */
static void wake(void *arg)
{
	struct vdev *d = arg;

	if (rv_virtio_live(&d->v))
		vdev_notify(&d->v, RX);
	else
		rv_vsock_reset(d->s, false);
}

static void vdev_destroy(void *dev)
{
	struct vdev *d = dev;

	rv_vsock_destroy(d->s);
	rv_virtio_detach(&d->v);
	free(d);
}

static const struct rv_virtio_ops vdev_ops = {.notify = vdev_notify};

/* Descriptors may only be closed in the I/O thread, so a reset is noticed there (generation). */
static int vdev_setup(struct vdev *d, const char *option, struct rv_err *err)
{
	static const char *const keys[] = {"cid", "path", NULL};
	char cid[24], path[128], *end;
	unsigned long long n;
	int rc = rv_opt_check(option, false, keys, WHO, err);

	if (rc)
		return rc;
	if (!rv_opt_get(option, "cid", cid, sizeof(cid)) ||
	    !rv_opt_get(option, "path", path, sizeof(path)))
		return rv_err_set(err, RV_EINVAL, WHO, "expected cid=N,path=SOCKET");
	errno = 0;
	n = strtoull(cid, &end, 10);
	/* 5.10.4: 0, 1 and 2 are taken, the upper 32 bits are zero. */
	if (errno || *end || n < 3 || n >= UINT32_MAX)
		return rv_err_set(err, RV_EINVAL, WHO, "cid=%s: expected 3 to 4294967294", cid);
	d->config.guest_cid = htole64(n);
	d->generation = ~0u;
	d->v.ops = &vdev_ops;
	d->v.device_id = VIRTIO_ID_VSOCK;
	d->v.nqueues = 3;
	d->v.queue_max = 128;
	d->v.config = &d->config;
	d->v.config_len = sizeof(d->config);
	return rv_vsock_create(d->v.vm, d->v.slot.name, n, path, &d->v.lock, wake, d, &d->s, err);
}

int rv_virtio_vsock_create(struct rv_vm *vm, const char *option, struct rv_err *err)
{
	struct vdev *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	rv_virtio_init(&d->v, vm);
	rc = vdev_setup(d, option, err);
	if (!rc)
		rc = rv_virtio_attach(&d->v, "virtio-vsock", err);
	if (rc) {
		vdev_destroy(d);
		return rc;
	}
	return rv_vm_add_device(vm, d, vdev_destroy, err);
}
