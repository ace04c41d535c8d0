/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_rng.c: the host's random numbers (VIRTIO 1.2, 5.4).
 *
 * getrandom() never waits once the host has booted, so the I/O thread serves the queue.
 * No state is kept between requests: clones of a snapshot get different bytes.
 *
 * Limits: a request is answered with at most CHUNK bytes (5.4.6.1 allows any number but
 * none), which bounds the work that one descriptor can ask for; no rate limit of its own.
 */
#include "dev.h"
#include "virtio_mmio.h"

#include <linux/virtio_ids.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WHO   "rng"
#define CHUNK 256u
#define BATCH 64u

struct rng {
	struct rv_virtio v;
	struct rv_vq_chain chain;
};

/* getrandom() gives up to 256 bytes whole, whatever signal arrives (getrandom(2)). */
static bool answer(struct rng *r)
{
	uint8_t buf[CHUNK];
	uint32_t n = r->chain.wlen < CHUNK ? r->chain.wlen : CHUNK;
	struct rv_vq_cur cur;
	int rc;

	if (!n || getrandom(buf, n, 0) != (ssize_t)n) {
		rv_virtio_fail(&r->v, "request without room for an answer");
		return false;
	}
	rv_vq_cur_init(&cur, &r->chain, true);
	rc = rv_vq_cur_write(&r->v.q[0].vq, &cur, buf, n);
	explicit_bzero(buf, sizeof(buf));
	if (rc) {
		rv_virtio_fail(&r->v, "cannot write to a buffer: %s", rv_status_name(rc));
		return false;
	}
	return !rv_virtio_push(&r->v, 0, r->chain.head, n);
}

static void rng_notify(struct rv_virtio *v, unsigned int queue)
{
	struct rng *r = (struct rng *)v;
	unsigned int budget = BATCH;
	bool got;

	do {
		while (budget) {
			if (rv_virtio_pop(v, queue, &r->chain, &got))
				return;
			if (!got)
				break;
			if (!answer(r))
				return;
			budget--;
		}
		rv_virtio_signal(v, queue);
		/* Others are waiting for this thread: come back later. */
		if (!budget) {
			rv_virtio_poke(v, queue);
			return;
		}
	} while (rv_virtio_await(v, queue));
}

static void rng_destroy(void *dev)
{
	struct rng *r = dev;

	rv_virtio_detach(&r->v);
	free(r);
}

static const struct rv_virtio_ops rng_ops = {.notify = rng_notify};

int rv_virtio_rng_create(struct rv_vm *vm, struct rv_err *err)
{
	struct rng *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	rv_virtio_init(&r->v, vm);
	r->v.ops = &rng_ops;
	r->v.device_id = VIRTIO_ID_RNG;
	r->v.nqueues = 1;
	r->v.queue_max = 64;
	rc = rv_virtio_attach(&r->v, "virtio-rng", err);
	if (rc) {
		rng_destroy(r);
		return rc;
	}
	return rv_vm_add_device(vm, r, rng_destroy, err);
}
