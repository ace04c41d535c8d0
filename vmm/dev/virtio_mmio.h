/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_mmio.h: what a virtio device model gives to its transport, and gets.
 *
 * A device model embeds struct rv_virtio and fills dev_ops and the fields marked so.
 * Its queues are served by whoever waits for the queue's kick descriptor: the I/O
 * thread (rv_virtio_attach() arranges that when ops->notify is set) or a thread of the
 * device's own.
 *
 * Locks: lock guards queues, status and features; the server of a queue holds it while
 * it touches a queue or guest memory, never while it waits. irq_lock, taken last, guards
 * the interrupt status and the line, so that the guest's handler waits for nobody. With
 * lock held rv_io_add() and rv_io_del() may be called in the I/O thread only: a vcpu
 * thread would wait for a handler that waits for lock.
 *
 * Reset: generation changes under lock. A server that let go of lock compares it before
 * it touches guest memory again, and drops what it was doing. No vcpu waits for that.
 */
#ifndef RV_VMM_DEV_VIRTIO_MMIO_H
#define RV_VMM_DEV_VIRTIO_MMIO_H

#include "virtq.h"

#include <pthread.h>

#define RV_VIRTIO_QUEUES 8u

/* 2.1 */
#define RV_VIRTIO_ACKNOWLEDGE 0x01u
#define RV_VIRTIO_DRIVER      0x02u
#define RV_VIRTIO_DRIVER_OK   0x04u
#define RV_VIRTIO_FEATURES_OK 0x08u
#define RV_VIRTIO_NEEDS_RESET 0x40u
#define RV_VIRTIO_FAILED      0x80u

/* 6 */
#define RV_VIRTIO_F_INDIRECT_DESC (1ull << 28)
#define RV_VIRTIO_F_EVENT_IDX	  (1ull << 29)
#define RV_VIRTIO_F_VERSION_1	  (1ull << 32)

struct rv_virtio;

struct rv_virtio_ops {
	/* I/O thread, lock held: chains may be waiting in queue. Not called when not live. */
	void (*notify)(struct rv_virtio *v, unsigned int queue);
	/* lock held, a vcpu thread: forget everything about the driver; may not wait. */
	void (*reset)(struct rv_virtio *v);
	/* lock held, a vcpu thread: DRIVER_OK was set. Optional. */
	void (*activate)(struct rv_virtio *v);
	/* lock held: the driver wrote to config space at off, within config_len. Optional. */
	void (*config_write)(struct rv_virtio *v, uint32_t off, uint32_t len, const void *data);
};

struct rv_virtio_queue {
	struct rv_virtq vq;
	int kick_fd;
};

struct rv_virtio {
	/* filled by the device model before rv_virtio_attach() */
	struct rv_vm *vm;
	const struct rv_virtio_ops *ops;
	uint32_t device_id;
	uint64_t features; /* the transport adds its own */
	uint32_t nqueues;
	uint16_t queue_max;
	const void *config; /* little-endian bytes */
	uint32_t config_len;

	/* the transport's */
	struct rv_virtio_slot slot;
	pthread_mutex_t lock;
	uint32_t status;
	uint64_t driver_features;
	uint32_t generation;
	uint32_t config_generation;
	uint32_t features_sel, driver_features_sel, queue_sel;
	struct rv_virtio_queue q[RV_VIRTIO_QUEUES];

	pthread_mutex_t irq_lock;
	uint32_t isr;
	bool line;
};

/* First of all; afterwards rv_virtio_detach() is always right. */
void rv_virtio_init(struct rv_virtio *v, struct rv_vm *vm);
/*
 * Reserve a slot named after kind, make the kick descriptors, join the bus. Last of all
 * that can fail: the bus keeps v from here on.
 */
int rv_virtio_attach(struct rv_virtio *v, const char *kind, struct rv_err *err) RV_MUST_CHECK;
void rv_virtio_detach(struct rv_virtio *v);

/* All of these with lock held. */
bool rv_virtio_live(const struct rv_virtio *v);
bool rv_virtio_has(const struct rv_virtio *v, uint64_t feature);
int rv_virtio_pop(struct rv_virtio *v, unsigned int queue, struct rv_vq_chain *c,
		  bool *got) RV_MUST_CHECK;
/* Return a chain; the driver is interrupted by rv_virtio_signal(). */
int rv_virtio_push(struct rv_virtio *v, unsigned int queue, uint16_t head,
		   uint32_t len) RV_MUST_CHECK;
void rv_virtio_signal(struct rv_virtio *v, unsigned int queue);
/* True: chains came meanwhile, go on. */
bool rv_virtio_await(struct rv_virtio *v, unsigned int queue);
/* Something is beyond repair: DEVICE_NEEDS_RESET (2.1.2), and no queue is served. */
void rv_virtio_fail(struct rv_virtio *v, const char *fmt, ...) RV_PRINTF(2, 3);

/* The device changed its config space: generation and interrupt (2.5). Lock held. */
void rv_virtio_config_changed(struct rv_virtio *v);

/* Any thread, no lock: have the queue's server look at it again. */
void rv_virtio_poke(struct rv_virtio *v, unsigned int queue);

#endif
