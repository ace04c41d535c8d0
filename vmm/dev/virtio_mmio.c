/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_mmio.c: the MMIO transport, version 2 (VIRTIO 1.2, 4.2).
 *
 * One mutex orders register accesses against the servers of the queues; the interrupt
 * status has its own. Doorbells are eventfds that KVM signals without leaving the kernel;
 * where that did not work the write arrives here and signals the same descriptor.
 *
 * Limits: version 1 (legacy) layout, shared memory regions, single queue reset
 * (VIRTIO_F_RING_RESET) and notification data are not offered. Registers answer 32-bit
 * accesses only, as 4.2.2.2 demands of the driver; others read zero and write nothing.
 */
#include "virtio_mmio.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* 4.2.2 */
enum {
	R_MAGIC = 0x000,
	R_VERSION = 0x004,
	R_DEVICE_ID = 0x008,
	R_VENDOR_ID = 0x00c,
	R_DEVICE_FEATURES = 0x010,
	R_DEVICE_FEATURES_SEL = 0x014,
	R_DRIVER_FEATURES = 0x020,
	R_DRIVER_FEATURES_SEL = 0x024,
	R_QUEUE_SEL = 0x030,
	R_QUEUE_NUM_MAX = 0x034,
	R_QUEUE_NUM = 0x038,
	R_QUEUE_READY = 0x044,
	R_QUEUE_NOTIFY = 0x050,
	R_INTERRUPT_STATUS = 0x060,
	R_INTERRUPT_ACK = 0x064,
	R_STATUS = 0x070,
	R_QUEUE_DESC_LOW = 0x080,
	R_QUEUE_DESC_HIGH = 0x084,
	R_QUEUE_DRIVER_LOW = 0x090,
	R_QUEUE_DRIVER_HIGH = 0x094,
	R_QUEUE_DEVICE_LOW = 0x0a0,
	R_QUEUE_DEVICE_HIGH = 0x0a4,
	R_SHM_LEN_LOW = 0x0b0,
	R_SHM_BASE_HIGH = 0x0bc,
	R_CONFIG_GENERATION = 0x0fc,
	R_CONFIG = 0x100,
};

#define MAGIC	    0x74726976u /* "virt" */
#define VENDOR	    0x4e4c5652u /* "RVLN" */
#define ISR_QUEUE   1u
#define ISR_CONFIG  2u
#define STATUS_BITS 0xcfu

/* --- interrupts ----------------------------------------------------------------- */

/* The line follows "status is not zero"; set and cleared under one lock, so no edge is lost. */
static void isr_change(struct rv_virtio *v, uint32_t set, uint32_t clear)
{
	pthread_mutex_lock(&v->irq_lock);
	v->isr = (v->isr | set) & ~clear;
	if (v->line != (v->isr != 0)) {
		v->line = v->isr != 0;
		rv_irq_line(v->vm, v->slot.gsi, v->line);
	}
	pthread_mutex_unlock(&v->irq_lock);
}

static uint32_t isr_read(struct rv_virtio *v)
{
	uint32_t isr;

	pthread_mutex_lock(&v->irq_lock);
	isr = v->isr;
	pthread_mutex_unlock(&v->irq_lock);
	return isr;
}

/* --- what device models use -------------------------------------------------------- */

bool rv_virtio_live(const struct rv_virtio *v)
{
	return (v->status & (RV_VIRTIO_DRIVER_OK | RV_VIRTIO_NEEDS_RESET | RV_VIRTIO_FAILED)) ==
	       RV_VIRTIO_DRIVER_OK;
}

bool rv_virtio_has(const struct rv_virtio *v, uint64_t feature)
{
	return (v->driver_features & feature) != 0;
}

void rv_virtio_fail(struct rv_virtio *v, const char *fmt, ...)
{
	char why[120];
	va_list ap;

	if (v->status & RV_VIRTIO_NEEDS_RESET)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	rv_dev_guest_bad(v->vm, v->slot.name, "needs a reset: %s", why);
	v->status |= RV_VIRTIO_NEEDS_RESET;
	/* 2.1.2: a driver that is running is told by a configuration change. */
	if (v->status & RV_VIRTIO_DRIVER_OK)
		isr_change(v, ISR_CONFIG, 0);
}

int rv_virtio_pop(struct rv_virtio *v, unsigned int queue, struct rv_vq_chain *c, bool *got)
{
	int rc = RV_OK;

	*got = false;
	if (rv_virtio_live(v))
		rc = rv_virtq_pop(&v->q[queue].vq, c, got);
	if (rc)
		rv_virtio_fail(v, "queue %u: cannot take a chain: %s", queue, rv_status_name(rc));
	return rc;
}

int rv_virtio_push(struct rv_virtio *v, unsigned int queue, uint16_t head, uint32_t len)
{
	int rc = rv_virtq_push(&v->q[queue].vq, head, len);

	if (rc)
		rv_virtio_fail(v, "queue %u: cannot return a chain: %s", queue, rv_status_name(rc));
	return rc;
}

void rv_virtio_signal(struct rv_virtio *v, unsigned int queue)
{
	bool yes;
	int rc = rv_virtq_must_signal(&v->q[queue].vq, &yes);

	if (rc)
		rv_virtio_fail(v, "queue %u: event index: %s", queue, rv_status_name(rc));
	else if (yes)
		isr_change(v, ISR_QUEUE, 0);
}

bool rv_virtio_await(struct rv_virtio *v, unsigned int queue)
{
	bool more = false;
	int rc;

	if (!rv_virtio_live(v))
		return false;
	rc = rv_virtq_await(&v->q[queue].vq, &more);
	if (rc)
		rv_virtio_fail(v, "queue %u: event index: %s", queue, rv_status_name(rc));
	return !rc && more;
}

void rv_virtio_config_changed(struct rv_virtio *v)
{
	v->config_generation++;
	if (rv_virtio_live(v))
		isr_change(v, ISR_CONFIG, 0);
}

void rv_virtio_poke(struct rv_virtio *v, unsigned int queue)
{
	uint64_t one = 1;

	/* EAGAIN means that the counter is full: the server has been told. */
	if (write(v->q[queue].kick_fd, &one, sizeof(one)) < 0)
		return;
}

/* --- status ------------------------------------------------------------------------- */

static void device_reset(struct rv_virtio *v)
{
	v->generation++;
	v->status = 0;
	v->driver_features = 0;
	v->features_sel = v->driver_features_sel = v->queue_sel = 0;
	for (uint32_t i = 0; i < v->nqueues; i++)
		rv_virtq_reset(&v->q[i].vq);
	isr_change(v, 0, ~0u);
	if (v->ops->reset)
		v->ops->reset(v);
}

static bool features_ok(const struct rv_virtio *v)
{
	/* 6.1: a modern device may refuse drivers that do not accept VERSION_1; this one does. */
	return !(v->driver_features & ~v->features) && rv_virtio_has(v, RV_VIRTIO_F_VERSION_1);
}

/* 2.1.1, 3.1.1: bits are only ever added, and in order; 0 is a reset. */
static void status_write(struct rv_virtio *v, uint32_t value)
{
	uint32_t added = value & ~v->status & STATUS_BITS & ~RV_VIRTIO_NEEDS_RESET;

	if (!value) {
		device_reset(v);
		return;
	}
	if (v->status & ~value & STATUS_BITS & ~RV_VIRTIO_NEEDS_RESET) {
		rv_dev_guest_bad(v->vm, v->slot.name, "driver takes back status bits: 0x%x to 0x%x",
				 v->status, value);
		return;
	}
	if ((added & RV_VIRTIO_FEATURES_OK) &&
	    (!((v->status | added) & RV_VIRTIO_DRIVER) || !features_ok(v)))
		added &= ~RV_VIRTIO_FEATURES_OK;
	if ((added & RV_VIRTIO_DRIVER_OK) && !(v->status & RV_VIRTIO_FEATURES_OK)) {
		rv_dev_guest_bad(v->vm, v->slot.name, "DRIVER_OK before FEATURES_OK");
		added &= ~RV_VIRTIO_DRIVER_OK;
	}
	v->status |= added;
	if (!(added & RV_VIRTIO_DRIVER_OK))
		return;
	if (v->status & RV_VIRTIO_NEEDS_RESET)
		isr_change(v, ISR_CONFIG, 0);
	if (v->ops->activate)
		v->ops->activate(v);
	for (uint32_t i = 0; i < v->nqueues; i++)
		if (v->q[i].vq.ready)
			rv_virtio_poke(v, i);
}

/* --- queue set-up ---------------------------------------------------------------------- */

static struct rv_virtq *queue_selected(struct rv_virtio *v)
{
	return v->queue_sel < v->nqueues ? &v->q[v->queue_sel].vq : NULL;
}

/* The queue whose layout may be changed now: after negotiation, before use (3.1.1). */
static struct rv_virtq *queue_settable(struct rv_virtio *v)
{
	struct rv_virtq *q = queue_selected(v);
	uint32_t s = v->status;

	if (!q || q->ready || !(s & RV_VIRTIO_FEATURES_OK) ||
	    (s & (RV_VIRTIO_DRIVER_OK | RV_VIRTIO_NEEDS_RESET | RV_VIRTIO_FAILED)))
		return NULL;
	return q;
}

static void half_set(uint64_t *v, bool high, uint32_t half)
{
	*v = high ? (*v & 0xffffffffull) | (uint64_t)half << 32 : (*v & ~0xffffffffull) | half;
}

static void queue_ready_write(struct rv_virtio *v, uint32_t value)
{
	struct rv_virtq *q = queue_selected(v);
	const char *why;

	if (q && !(value & 1) && q->ready) {
		/* In-flight chains of a queue that is taken away are dropped like in a reset. */
		v->generation++;
		rv_virtq_reset(q);
		return;
	}
	q = queue_settable(v);
	if (!q || !(value & 1))
		return;
	if (rv_virtq_enable(q, rv_virtio_has(v, RV_VIRTIO_F_EVENT_IDX), &why))
		rv_virtio_fail(v, "queue %u: bad %s", v->queue_sel, why);
}

static void queue_layout_write(struct rv_virtio *v, uint32_t off, uint32_t value)
{
	struct rv_virtq *q = queue_settable(v);

	if (!q)
		return;
	switch (off) {
	case R_QUEUE_NUM: q->num = value; break;
	case R_QUEUE_DESC_LOW: half_set(&q->desc, false, value); break;
	case R_QUEUE_DESC_HIGH: half_set(&q->desc, true, value); break;
	case R_QUEUE_DRIVER_LOW: half_set(&q->avail, false, value); break;
	case R_QUEUE_DRIVER_HIGH: half_set(&q->avail, true, value); break;
	case R_QUEUE_DEVICE_LOW: half_set(&q->used, false, value); break;
	case R_QUEUE_DEVICE_HIGH: half_set(&q->used, true, value); break;
	default: break;
	}
}

/* --- registers -------------------------------------------------------------------------- */

static uint32_t reg_read(struct rv_virtio *v, uint32_t off)
{
	const struct rv_virtq *q = queue_selected(v);

	switch (off) {
	case R_MAGIC: return MAGIC;
	case R_VERSION: return 2;
	case R_DEVICE_ID: return v->device_id;
	case R_VENDOR_ID: return VENDOR;
	case R_DEVICE_FEATURES:
		if (v->features_sel > 1)
			return 0;
		return (uint32_t)(v->features >> (32 * v->features_sel));
	case R_QUEUE_NUM_MAX: return q ? q->num_max : 0;
	case R_QUEUE_READY: return q && q->ready;
	case R_STATUS: return v->status;
	case R_CONFIG_GENERATION: return v->config_generation;
	default:
		/* 4.2.2: a region that does not exist has a length and a base of all ones. */
		return off >= R_SHM_LEN_LOW && off <= R_SHM_BASE_HIGH ? ~0u : 0;
	}
}

static void driver_features_write(struct rv_virtio *v, uint32_t value)
{
	/* 3.1.1: features are fixed once they were accepted. */
	if (!(v->status & RV_VIRTIO_DRIVER) || (v->status & RV_VIRTIO_FEATURES_OK) ||
	    v->driver_features_sel > 1)
		return;
	half_set(&v->driver_features, v->driver_features_sel == 1, value);
}

static void reg_write(struct rv_virtio *v, uint32_t off, uint32_t value)
{
	switch (off) {
	case R_DEVICE_FEATURES_SEL: v->features_sel = value; break;
	case R_DRIVER_FEATURES_SEL: v->driver_features_sel = value; break;
	case R_DRIVER_FEATURES: driver_features_write(v, value); break;
	case R_QUEUE_SEL: v->queue_sel = value; break;
	case R_QUEUE_READY: queue_ready_write(v, value); break;
	case R_STATUS: status_write(v, value); break;
	default: queue_layout_write(v, off, value); break;
	}
}

static void config_read(struct rv_virtio *v, uint32_t off, uint8_t len, uint8_t *out)
{
	if (off < v->config_len && len <= v->config_len - off)
		memcpy(out, (const uint8_t *)v->config + off, len);
}

static void bus_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	struct rv_virtio *v = dev;
	uint32_t value;

	memset(data, 0, len);
	if (off >= R_CONFIG) {
		pthread_mutex_lock(&v->lock);
		config_read(v, (uint32_t)(off - R_CONFIG), len, data);
		pthread_mutex_unlock(&v->lock);
		return;
	}
	if (len != 4 || off % 4)
		return;
	if (off == R_INTERRUPT_STATUS) {
		value = isr_read(v);
	} else {
		pthread_mutex_lock(&v->lock);
		value = reg_read(v, (uint32_t)off);
		pthread_mutex_unlock(&v->lock);
	}
	value = htole32(value);
	memcpy(data, &value, sizeof(value));
}

static void config_write(struct rv_virtio *v, uint32_t off, uint8_t len, const void *data)
{
	if (v->ops->config_write && off < v->config_len && len <= v->config_len - off)
		v->ops->config_write(v, off, len, data);
}

static void bus_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	struct rv_virtio *v = dev;
	uint32_t value;

	if (off >= R_CONFIG) {
		pthread_mutex_lock(&v->lock);
		config_write(v, (uint32_t)(off - R_CONFIG), len, data);
		pthread_mutex_unlock(&v->lock);
		return;
	}
	if (len != 4 || off % 4)
		return;
	memcpy(&value, data, sizeof(value));
	value = le32toh(value);
	if (off == R_QUEUE_NOTIFY) {
		if (value < v->nqueues)
			rv_virtio_poke(v, value);
	} else if (off == R_INTERRUPT_ACK) {
		isr_change(v, 0, value);
	} else {
		pthread_mutex_lock(&v->lock);
		reg_write(v, (uint32_t)off, value);
		pthread_mutex_unlock(&v->lock);
	}
}

/* --- life ----------------------------------------------------------------------------------- */

static const struct rv_bus_ops mmio_ops = {.read = bus_read, .write = bus_write};

static void on_kick(void *dev, int fd, uint32_t events)
{
	struct rv_virtio *v = dev;
	uint64_t count;

	(void)events;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&v->lock);
	for (uint32_t i = 0; i < v->nqueues; i++)
		if (v->q[i].kick_fd == fd && rv_virtio_live(v))
			v->ops->notify(v, i);
	pthread_mutex_unlock(&v->lock);
}

void rv_virtio_init(struct rv_virtio *v, struct rv_vm *vm)
{
	v->vm = vm;
	pthread_mutex_init(&v->lock, NULL);
	pthread_mutex_init(&v->irq_lock, NULL);
	for (uint32_t i = 0; i < RV_VIRTIO_QUEUES; i++)
		v->q[i].kick_fd = -1;
}

static int queue_attach(struct rv_virtio *v, uint32_t i, struct rv_err *err)
{
	struct rv_virtio_queue *q = &v->q[i];
	bool waits_in_io = v->ops->notify != NULL;
	int rc;

	q->vq.vm = v->vm;
	q->vq.who = v->slot.name;
	q->vq.num_max = v->queue_max;
	/* A device with a thread of its own sleeps in read(). */
	q->kick_fd = eventfd(0, EFD_CLOEXEC | (waits_in_io ? EFD_NONBLOCK : 0));
	if (q->kick_fd < 0)
		return rv_err_os(err, v->slot.name, "eventfd");
	rc = rv_ioevent_add(v->vm, rv_gpa_of(v->slot.base.v + R_QUEUE_NOTIFY), i, q->kick_fd, err);
	if (!rc && waits_in_io)
		rc = rv_io_add(v->vm, q->kick_fd, EPOLLIN, on_kick, v, err);
	return rc;
}

int rv_virtio_attach(struct rv_virtio *v, const char *kind, struct rv_err *err)
{
	int rc = rv_virtio_slot_next(v->vm, kind, &v->slot, err);

	if (rc)
		return rc;
	v->features |= RV_VIRTIO_F_VERSION_1 | RV_VIRTIO_F_EVENT_IDX | RV_VIRTIO_F_INDIRECT_DESC;
	for (uint32_t i = 0; i < v->nqueues; i++) {
		rc = queue_attach(v, i, err);
		if (rc)
			return rc;
	}
	return rv_bus_add_mmio(v->vm, v->slot.base, RV_VIRTIO_MMIO_LEN, &mmio_ops, v, err);
}

void rv_virtio_detach(struct rv_virtio *v)
{
	for (uint32_t i = 0; i < RV_VIRTIO_QUEUES; i++) {
		if (v->q[i].kick_fd < 0)
			continue;
		if (v->ops->notify)
			rv_io_del(v->vm, v->q[i].kick_fd);
		close(v->q[i].kick_fd);
	}
	pthread_mutex_destroy(&v->lock);
	pthread_mutex_destroy(&v->irq_lock);
}
