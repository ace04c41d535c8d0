/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_console.c: one port, hvc0 to Linux (VIRTIO 1.2, 5.3), on a character back end.
 *
 * Both queues are served in the I/O thread. Input that finds no buffer stays with the
 * back end until the driver adds some.
 *
 * Limits: no multiple ports, no window size, no emergency write.
 */
#include "dev.h"
#include "virtio_mmio.h"

#include <linux/virtio_ids.h>
#include <stdlib.h>

#define WHO	      "console"
#define RX	      0u
#define TX	      1u
#define BATCH	      64u
#define OUT_PER_CHAIN (64u << 10) /* more than Linux ever puts in one; the rest is dropped */

struct console {
	struct rv_virtio v;
	struct rv_chardev *chr;
	struct rv_vq_chain chain;
};

static int out_chain(struct console *c)
{
	struct rv_vq_cur cur;
	uint8_t buf[512];
	uint32_t left;
	int rc;

	rv_vq_cur_init(&cur, &c->chain, false);
	left = cur.left < OUT_PER_CHAIN ? cur.left : OUT_PER_CHAIN;
	while (left) {
		uint32_t n = left < sizeof(buf) ? left : (uint32_t)sizeof(buf);

		rc = rv_vq_cur_read(&c->v.q[TX].vq, &cur, buf, n);
		if (rc) {
			rv_virtio_fail(&c->v, "output buffer: %s", rv_status_name(rc));
			return rc;
		}
		rv_chardev_write(c->chr, buf, n);
		left -= n;
	}
	return rv_virtio_push(&c->v, TX, c->chain.head, 0);
}

static void out_serve(struct console *c)
{
	unsigned int budget = BATCH;
	bool got;

	do {
		do {
			if (rv_virtio_pop(&c->v, TX, &c->chain, &got))
				return;
			if (got && out_chain(c))
				return;
		} while (got && --budget);
		rv_virtio_signal(&c->v, TX);
		if (!budget) {
			rv_virtio_poke(&c->v, TX);
			return;
		}
	} while (rv_virtio_await(&c->v, TX));
}

/* One chain of input; *took says how much fitted, 0 when there is no chain. */
static int in_chain(struct console *c, const uint8_t *p, size_t len, uint32_t *took)
{
	struct rv_vq_cur cur;
	bool got;
	int rc;

	*took = 0;
	do {
		rc = rv_virtio_pop(&c->v, RX, &c->chain, &got);
		if (rc)
			return rc;
	} while (!got && rv_virtio_await(&c->v, RX));
	if (!got)
		return RV_OK;
	rv_vq_cur_init(&cur, &c->chain, true);
	*took = cur.left < len ? cur.left : (uint32_t)len;
	rc = *took ? rv_vq_cur_write(&c->v.q[RX].vq, &cur, p, *took) : RV_EBADDATA;
	if (rc) {
		rv_virtio_fail(&c->v, "input buffer: %s", rv_status_name(rc));
		return rc;
	}
	return rv_virtio_push(&c->v, RX, c->chain.head, *took);
}

static size_t input(void *arg, const void *buf, size_t len)
{
	struct console *c = arg;
	const uint8_t *p = buf;
	size_t done = 0;
	uint32_t n;

	pthread_mutex_lock(&c->v.lock);
	while (done < len && !in_chain(c, p + done, len - done, &n) && n)
		done += n;
	if (done)
		rv_virtio_signal(&c->v, RX);
	pthread_mutex_unlock(&c->v.lock);
	return done;
}

static void console_notify(struct rv_virtio *v, unsigned int queue)
{
	struct console *c = (struct console *)v;

	if (queue == TX)
		out_serve(c);
	else
		rv_chardev_kick(c->chr);
}

static void console_destroy(void *dev)
{
	struct console *c = dev;

	rv_chardev_close(c->chr);
	rv_virtio_detach(&c->v);
	free(c);
}

static const struct rv_virtio_ops console_ops = {.notify = console_notify};

int rv_virtio_console_create(struct rv_vm *vm, const char *option, struct rv_err *err)
{
	struct console *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	rv_virtio_init(&c->v, vm);
	c->v.ops = &console_ops;
	c->v.device_id = VIRTIO_ID_CONSOLE;
	c->v.nqueues = 2;
	c->v.queue_max = 64;
	rc = rv_chardev_open(vm, option, &c->chr, err);
	if (!rc)
		rc = rv_virtio_attach(&c->v, "virtio-console", err);
	if (rc) {
		console_destroy(c);
		return rc;
	}
	rc = rv_vm_add_device(vm, c, console_destroy, err);
	if (!rc)
		rv_chardev_on_input(c->chr, input, c);
	return rc;
}
