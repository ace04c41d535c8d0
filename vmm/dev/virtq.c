/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtq.c: the device's side of one split virtqueue (VIRTIO 1.2, 2.7).
 *
 * The rings are the guest's and change under us. So every descriptor is copied and then
 * the copy is judged; the used index is a shadow that is never read back; a chain is at
 * most as long as the queue (2.7.4.2), which also ends loops; lengths are added in 64
 * bits. Whatever contradicts itself breaks the queue, and only that.
 *
 * The 16-bit ring fields are read and written with one access each: memcpy() may tear
 * them (aarch64 copies two bytes one by one), and the driver on another cpu would see an
 * index that never was.
 *
 * Limits: no packed ring, no VIRTIO_F_IN_ORDER, no ring reset of single queues.
 */
#include "virtq.h"

#include <endian.h>

struct desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};

struct used_elem {
	uint32_t id;
	uint32_t len;
};

#define DESC_NEXT	   1u
#define DESC_WRITE	   2u
#define DESC_INDIRECT	   4u
#define AVAIL_NO_INTERRUPT 1u

/* 2.7.6 and 2.7.8: flags, idx, ring[num], event. */
#define AVAIL_FLAGS(q)	 ((q)->avail)
#define AVAIL_IDX(q)	 ((q)->avail + 2)
#define AVAIL_RING(q, i) ((q)->avail + 4 + 2ull * ((i) % (q)->num))
#define USED_EVENT(q)	 ((q)->avail + 4 + 2ull * (q)->num)
#define USED_IDX(q)	 ((q)->used + 2)
#define USED_RING(q, i)	 ((q)->used + 4 + 8ull * ((i) % (q)->num))
#define AVAIL_EVENT(q)	 ((q)->used + 4 + 8ull * (q)->num)

static int broke(struct rv_virtq *q, int rc)
{
	q->broken = true;
	return rc;
}

static int bad(struct rv_virtq *q, const char *what, uint64_t value)
{
	rv_dev_guest_bad(q->vm, q->who, "virtqueue: %s (%llu)", what, (unsigned long long)value);
	return broke(q, RV_EBADDATA);
}

/* rv_virtq_enable() checked the alignment, so these are single accesses. */
static int load16(struct rv_virtq *q, uint64_t gpa, uint16_t *out)
{
	struct iovec iov;
	int rc;

	rv_dma_begin(q->vm);
	rc = rv_dma_map(q->vm, q->who, rv_gpa_of(gpa), 2, false, &iov);
	if (!rc)
		*out = le16toh(__atomic_load_n((uint16_t *)iov.iov_base, __ATOMIC_ACQUIRE));
	rv_dma_end(q->vm);
	return rc ? broke(q, rc) : RV_OK;
}

static int store16(struct rv_virtq *q, uint64_t gpa, uint16_t v)
{
	struct iovec iov;
	int rc;

	rv_dma_begin(q->vm);
	rc = rv_dma_map(q->vm, q->who, rv_gpa_of(gpa), 2, true, &iov);
	if (!rc)
		__atomic_store_n((uint16_t *)iov.iov_base, htole16(v), __ATOMIC_RELEASE);
	rv_dma_end(q->vm);
	return rc ? broke(q, rc) : RV_OK;
}

/* --- set-up ------------------------------------------------------------------ */

void rv_virtq_reset(struct rv_virtq *q)
{
	*q = (struct rv_virtq){.vm = q->vm, .who = q->who, .num_max = q->num_max};
}

static bool ring_ok(struct rv_virtq *q, uint64_t gpa, uint64_t len, uint64_t align, bool write)
{
	struct iovec iov;
	int rc;

	if (gpa % align || gpa + len < gpa)
		return false;
	rv_dma_begin(q->vm);
	rc = rv_dma_map(q->vm, q->who, rv_gpa_of(gpa), len, write, &iov);
	rv_dma_end(q->vm);
	return rc == RV_OK;
}

int rv_virtq_enable(struct rv_virtq *q, bool event_idx, const char **why)
{
	*why = NULL;
	if (!q->num || q->num > q->num_max || (q->num & (q->num - 1)))
		*why = "queue size";
	else if (!ring_ok(q, q->desc, 16ull * q->num, 16, false))
		*why = "address of the descriptor table";
	else if (!ring_ok(q, q->avail, 6 + 2ull * q->num, 2, false))
		*why = "address of the driver area";
	else if (!ring_ok(q, q->used, 6 + 8ull * q->num, 4, true))
		*why = "address of the device area";
	if (*why)
		return RV_EINVAL;
	q->event_idx = event_idx;
	q->broken = false;
	q->last_avail = q->used_idx = q->signalled = 0;
	q->signalled_valid = false;
	q->ready = true;
	return RV_OK;
}

/* --- taking chains ------------------------------------------------------------- */

static int chain_add(struct rv_virtq *q, struct rv_vq_chain *c, const struct desc *d)
{
	uint32_t *total = d->flags & DESC_WRITE ? &c->wlen : &c->rlen;

	/* 2.7.4.2: all readable pieces come before the writable ones. */
	if (!(d->flags & DESC_WRITE) && c->nw)
		return bad(q, "readable descriptor after a writable one", c->head);
	if (!d->len)
		return RV_OK;
	if (d->addr + d->len < d->addr)
		return bad(q, "descriptor wraps", d->addr);
	/* 2.7.5: a chain describes at most 2^32 bytes; ours count in 32 bits. */
	if ((uint64_t)*total + d->len > UINT32_MAX)
		return bad(q, "chain too large", c->head);
	if (c->nr + c->nw == RV_VIRTQ_MAX)
		return bad(q, "chain too long", c->head);
	c->seg[c->nr + c->nw] = (struct rv_vq_seg){d->addr, d->len};
	*total += d->len;
	if (d->flags & DESC_WRITE)
		c->nw++;
	else
		c->nr++;
	return RV_OK;
}

static void desc_cpu(struct desc *d)
{
	d->addr = le64toh(d->addr);
	d->len = le32toh(d->len);
	d->flags = le16toh(d->flags);
	d->next = le16toh(d->next);
}

/* 2.7.5.3: a table of descriptors elsewhere; budget is what is left of the chain's length. */
static int indirect_walk(struct rv_virtq *q, struct rv_vq_chain *c, const struct desc *where,
			 uint32_t budget)
{
	struct desc table[RV_VIRTQ_MAX];
	uint32_t n = where->len / sizeof(table[0]), i = 0;
	int rc;

	if (!n || where->len % sizeof(table[0]) || n > q->num)
		return bad(q, "size of an indirect table", where->len);
	rc = rv_dma_read(q->vm, rv_gpa_of(where->addr), table, where->len);
	if (rc)
		return bad(q, "indirect table outside RAM", where->addr);
	for (; budget; budget--) {
		struct desc d = table[i];

		desc_cpu(&d);
		if (d.flags & DESC_INDIRECT)
			return bad(q, "indirect table in an indirect table", i);
		rc = chain_add(q, c, &d);
		if (rc)
			return rc;
		if (!(d.flags & DESC_NEXT))
			return RV_OK;
		if (d.next >= n)
			return bad(q, "next beyond an indirect table", d.next);
		i = d.next;
	}
	return bad(q, "descriptor loop", c->head);
}

static int chain_walk(struct rv_virtq *q, struct rv_vq_chain *c)
{
	uint32_t i = c->head;
	struct desc d;
	int rc;

	for (uint32_t budget = q->num; budget; budget--) {
		rc = rv_dma_read(q->vm, rv_gpa_of(q->desc + 16ull * i), &d, sizeof(d));
		if (rc)
			return broke(q, rc);
		desc_cpu(&d);
		if (d.flags & DESC_INDIRECT) {
			if (d.flags & DESC_NEXT)
				return bad(q, "indirect descriptor with a next", i);
			return indirect_walk(q, c, &d, budget);
		}
		rc = chain_add(q, c, &d);
		if (rc)
			return rc;
		if (!(d.flags & DESC_NEXT))
			return RV_OK;
		if (d.next >= q->num)
			return bad(q, "next beyond the table", d.next);
		i = d.next;
	}
	return bad(q, "descriptor loop", c->head);
}

int rv_virtq_pop(struct rv_virtq *q, struct rv_vq_chain *c, bool *got)
{
	uint16_t idx, head;
	int rc;

	*got = false;
	if (!q->ready)
		return RV_OK;
	if (q->broken)
		return RV_EBADDATA;
	/* Acquire: what the driver wrote before it moved idx is visible after this. */
	rc = load16(q, AVAIL_IDX(q), &idx);
	if (rc || idx == q->last_avail)
		return rc;
	if ((uint16_t)(idx - q->last_avail) > q->num)
		return bad(q, "avail index jumps", idx);
	rc = load16(q, AVAIL_RING(q, q->last_avail), &head);
	if (rc)
		return rc;
	if (head >= q->num)
		return bad(q, "avail entry beyond the table", head);
	c->head = head;
	c->nr = c->nw = 0;
	c->rlen = c->wlen = 0;
	rc = chain_walk(q, c);
	if (rc)
		return rc;
	q->last_avail++;
	*got = true;
	return RV_OK;
}

void rv_virtq_unpop(struct rv_virtq *q)
{
	q->last_avail--;
}

/* --- giving them back ------------------------------------------------------------ */

int rv_virtq_push(struct rv_virtq *q, uint16_t head, uint32_t len)
{
	struct used_elem e = {.id = htole32(head), .len = htole32(len)};
	int rc;

	if (!q->ready || q->broken)
		return RV_EBADDATA;
	rc = rv_dma_write(q->vm, q->who, rv_gpa_of(USED_RING(q, q->used_idx)), &e, sizeof(e));
	if (rc)
		return broke(q, rc);
	/* Release in store16(): the element is there before the index says so (2.7.8.2). */
	rc = store16(q, USED_IDX(q), (uint16_t)(q->used_idx + 1));
	if (rc)
		return rc;
	q->used_idx++;
	return RV_OK;
}

/* 2.7.10: did the index pass event in going from old to now? */
static bool passed(uint16_t event, uint16_t now, uint16_t old)
{
	return (uint16_t)(now - event - 1) < (uint16_t)(now - old);
}

int rv_virtq_must_signal(struct rv_virtq *q, bool *yes)
{
	uint16_t old = q->signalled, v;
	bool valid = q->signalled_valid;
	int rc;

	*yes = false;
	if (!q->ready || q->broken || old == q->used_idx)
		return RV_OK;
	/*
	 * Store used->idx, then load the driver's wish; the driver stores its wish, then
	 * loads used->idx. With a full barrier on both sides one of us sees the other.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	rc = load16(q, q->event_idx ? USED_EVENT(q) : AVAIL_FLAGS(q), &v);
	if (rc)
		return rc;
	q->signalled = q->used_idx;
	q->signalled_valid = true;
	if (q->event_idx)
		*yes = !valid || passed(v, q->used_idx, old);
	else
		*yes = !(v & AVAIL_NO_INTERRUPT);
	return RV_OK;
}

int rv_virtq_await(struct rv_virtq *q, bool *more)
{
	uint16_t idx;
	int rc;

	*more = false;
	if (!q->ready)
		return RV_OK;
	if (q->broken)
		return RV_EBADDATA;
	/* Without event indices the driver always notifies: used->flags stays 0. */
	if (q->event_idx) {
		rc = store16(q, AVAIL_EVENT(q), q->last_avail);
		if (rc)
			return rc;
		/* The same pairing the other way round: avail_event, barrier, avail->idx. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	rc = load16(q, AVAIL_IDX(q), &idx);
	*more = !rc && idx != q->last_avail;
	return rc;
}

/* --- moving bytes ---------------------------------------------------------------- */

void rv_vq_cur_init(struct rv_vq_cur *cur, const struct rv_vq_chain *c, bool writable)
{
	cur->seg = c->seg + (writable ? c->nr : 0);
	cur->nseg = writable ? c->nw : c->nr;
	cur->off = 0;
	cur->left = writable ? c->wlen : c->rlen;
}

/* dst or src or neither; one loop so that the three agree. */
static int cur_move(struct rv_virtq *q, struct rv_vq_cur *cur, uint8_t *dst, const uint8_t *src,
		    uint32_t len)
{
	if (len > cur->left)
		return RV_EINVAL;
	while (len) {
		uint32_t n = cur->seg->len - cur->off;
		rv_gpa at = rv_gpa_of(cur->seg->gpa + cur->off);
		int rc = RV_OK;

		if (n > len)
			n = len;
		if (dst)
			rc = rv_dma_read(q->vm, at, dst, n);
		else if (src)
			rc = rv_dma_write(q->vm, q->who, at, src, n);
		if (rc)
			return rc;
		dst = dst ? dst + n : NULL;
		src = src ? src + n : NULL;
		len -= n;
		cur->left -= n;
		cur->off += n;
		if (cur->off == cur->seg->len) {
			cur->seg++;
			cur->nseg--;
			cur->off = 0;
		}
	}
	return RV_OK;
}

int rv_vq_cur_read(struct rv_virtq *q, struct rv_vq_cur *cur, void *dst, uint32_t len)
{
	return cur_move(q, cur, dst, NULL, len);
}

int rv_vq_cur_write(struct rv_virtq *q, struct rv_vq_cur *cur, const void *src, uint32_t len)
{
	return cur_move(q, cur, NULL, src, len);
}

int rv_vq_cur_skip(struct rv_vq_cur *cur, uint32_t len)
{
	return cur_move(NULL, cur, NULL, NULL, len);
}
