/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtq.h: the device's side of one split virtqueue (VIRTIO 1.2, 2.7).
 *
 * Not locked: its owner (virtio_mmio.c) holds the device's mutex around every call.
 * After any error but RV_EINVAL the queue is broken: every further call fails, and
 * the device asks the driver for a reset.
 */
#ifndef RV_VMM_DEV_VIRTQ_H
#define RV_VMM_DEV_VIRTQ_H

#include "dev.h"

#define RV_VIRTQ_MAX 256u /* largest queue size offered, and so the longest chain */

struct rv_virtq {
	struct rv_vm *vm;
	const char *who;
	uint16_t num_max;
	/* set by the driver */
	uint32_t num;
	uint64_t desc, avail, used;
	bool event_idx;
	bool ready;
	bool broken;
	/* ours */
	uint16_t last_avail; /* next avail entry to take */
	uint16_t used_idx;   /* shadow of used->idx; never read back from the guest */
	uint16_t signalled;  /* used_idx when the driver was last interrupted */
	bool signalled_valid;
};

struct rv_vq_seg {
	uint64_t gpa;
	uint32_t len;
};

/* A private, validated copy of one descriptor chain: nr readable, then nw writable pieces. */
struct rv_vq_chain {
	uint16_t head;
	uint16_t nr, nw;
	uint32_t rlen, wlen;
	struct rv_vq_seg seg[RV_VIRTQ_MAX];
};

/* A position in the readable or in the writable half of a chain. */
struct rv_vq_cur {
	const struct rv_vq_seg *seg;
	uint32_t nseg;
	uint32_t off;  /* in seg[0] */
	uint32_t left; /* bytes to the end of the half */
};

/* Forget everything the driver said; num_max, vm and who stay. */
void rv_virtq_reset(struct rv_virtq *q);

/*
 * The driver says the queue is set up. RV_EINVAL with the reason in *why: size zero, not
 * a power of two or too large; rings unaligned (2.7), wrapping, outside RAM, or the used
 * ring where devices may not write.
 */
int rv_virtq_enable(struct rv_virtq *q, bool event_idx, const char **why) RV_MUST_CHECK;

/* Take the next chain; *got is false when there is none. */
int rv_virtq_pop(struct rv_virtq *q, struct rv_vq_chain *c, bool *got) RV_MUST_CHECK;

/* Give the last chain back untouched: it will be popped again. */
void rv_virtq_unpop(struct rv_virtq *q);

/* Return a chain with len bytes written to it. */
int rv_virtq_push(struct rv_virtq *q, uint16_t head, uint32_t len) RV_MUST_CHECK;

/* Must the driver be interrupted for what was pushed since the last time? */
int rv_virtq_must_signal(struct rv_virtq *q, bool *yes) RV_MUST_CHECK;

/*
 * Ask to be notified of the next chain. *more: one came meanwhile, so go on popping
 * instead of waiting.
 */
int rv_virtq_await(struct rv_virtq *q, bool *more) RV_MUST_CHECK;

void rv_vq_cur_init(struct rv_vq_cur *cur, const struct rv_vq_chain *c, bool writable);
/* Move len bytes; RV_EINVAL when fewer are left. The rest is rv_dma_read()'s and _write()'s. */
int rv_vq_cur_read(struct rv_virtq *q, struct rv_vq_cur *cur, void *dst,
		   uint32_t len) RV_MUST_CHECK;
int rv_vq_cur_write(struct rv_virtq *q, struct rv_vq_cur *cur, const void *src,
		    uint32_t len) RV_MUST_CHECK;
int rv_vq_cur_skip(struct rv_vq_cur *cur, uint32_t len) RV_MUST_CHECK;

#endif
