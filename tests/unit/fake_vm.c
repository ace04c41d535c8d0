/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_vm.c: the monitor as device models see it, made of a byte array.
 *
 * All of dev.h that device models call is weak here, so that a test may bring the real
 * one of a part with it.
 */
#include "fake_vm.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WEAK __attribute__((weak))
#define MAX  1024

struct range {
	uint64_t base, len;
	const struct rv_bus_ops *ops;
	void *dev;
};

struct rv_vm {
	uint8_t *ram;
	uint64_t prot, prot_len;
	unsigned int refused, bad;
	char bad_text[256];
	pthread_mutex_t lock;
	bool line[64];
	unsigned int edges[64];
	struct range mmio[16], pio[16];
	unsigned int nmmio, npio, nslots;
	int ep;
	struct {
		rv_io_fn *fn;
		void *dev;
	} io[MAX];
	struct {
		void *dev;
		void (*destroy)(void *dev);
	} devs[16];
	unsigned int ndevs;
};

struct rv_vm *rv_fake_vm_new(void)
{
	struct rv_vm *vm = calloc(1, sizeof(*vm));

	vm->ram = calloc(1, RV_FAKE_SIZE);
	vm->ep = epoll_create1(EPOLL_CLOEXEC);
	pthread_mutex_init(&vm->lock, NULL);
	return vm;
}

void rv_fake_vm_clear(struct rv_vm *vm)
{
	while (vm->ndevs) {
		vm->ndevs--;
		vm->devs[vm->ndevs].destroy(vm->devs[vm->ndevs].dev);
	}
	memset(vm->ram, 0, RV_FAKE_SIZE);
	memset(vm->line, 0, sizeof(vm->line));
	memset(vm->edges, 0, sizeof(vm->edges));
	vm->nmmio = vm->npio = vm->nslots = 0;
	vm->prot = vm->prot_len = 0;
	vm->refused = vm->bad = 0;
}

void rv_fake_vm_free(struct rv_vm *vm)
{
	rv_fake_vm_clear(vm);
	close(vm->ep);
	free(vm->ram);
	free(vm);
}

static uint8_t *at(struct rv_vm *vm, uint64_t gpa, uint64_t len)
{
	if (gpa < RV_FAKE_BASE || gpa - RV_FAKE_BASE >= RV_FAKE_SIZE ||
	    len > RV_FAKE_SIZE - (gpa - RV_FAKE_BASE))
		return NULL;
	return vm->ram + (gpa - RV_FAKE_BASE);
}

uint8_t *rv_fake_ram(struct rv_vm *vm, uint64_t gpa)
{
	return at(vm, gpa, 1);
}

void rv_fake_protect(struct rv_vm *vm, uint64_t gpa, uint64_t len)
{
	vm->prot = gpa;
	vm->prot_len = len;
}

unsigned int rv_fake_refused(struct rv_vm *vm)
{
	return vm->refused;
}

unsigned int rv_fake_bad(struct rv_vm *vm)
{
	return vm->bad;
}

const char *rv_fake_bad_text(struct rv_vm *vm)
{
	return vm->bad_text;
}

static bool protected(struct rv_vm *vm, uint64_t gpa, uint64_t len)
{
	if (!vm->prot_len || gpa >= vm->prot + vm->prot_len || vm->prot >= gpa + len)
		return false;
	vm->refused++;
	return true;
}

WEAK int rv_dma_read(struct rv_vm *vm, rv_gpa gpa, void *dst, size_t len)
{
	uint8_t *p = at(vm, gpa.v, len);

	if (!p)
		return RV_ENOTMAPPED;
	memcpy(dst, p, len);
	return RV_OK;
}

WEAK int rv_dma_write(struct rv_vm *vm, const char *who, rv_gpa gpa, const void *src, size_t len)
{
	uint8_t *p = at(vm, gpa.v, len);

	(void)who;
	if (!p)
		return RV_ENOTMAPPED;
	if (protected(vm, gpa.v, len))
		return RV_EREFUSED;
	memcpy(p, src, len);
	return RV_OK;
}

WEAK void rv_dma_begin(struct rv_vm *vm)
{
	(void)vm;
}

WEAK void rv_dma_end(struct rv_vm *vm)
{
	(void)vm;
}

WEAK int rv_dma_map(struct rv_vm *vm, const char *who, rv_gpa gpa, size_t len, bool write,
		    struct iovec *out)
{
	uint8_t *p = at(vm, gpa.v, len);

	(void)who;
	if (!p)
		return RV_ENOTMAPPED;
	if (write && protected(vm, gpa.v, len))
		return RV_EREFUSED;
	*out = (struct iovec){p, len};
	return RV_OK;
}

WEAK void rv_irq_line(struct rv_vm *vm, uint32_t gsi, bool level)
{
	pthread_mutex_lock(&vm->lock);
	vm->edges[gsi] += level && !vm->line[gsi];
	vm->line[gsi] = level;
	pthread_mutex_unlock(&vm->lock);
}

bool rv_fake_line(struct rv_vm *vm, uint32_t gsi)
{
	bool level;

	pthread_mutex_lock(&vm->lock);
	level = vm->line[gsi];
	pthread_mutex_unlock(&vm->lock);
	return level;
}

unsigned int rv_fake_edges(struct rv_vm *vm, uint32_t gsi)
{
	unsigned int n;

	pthread_mutex_lock(&vm->lock);
	n = vm->edges[gsi];
	pthread_mutex_unlock(&vm->lock);
	return n;
}

WEAK int rv_bus_add_mmio(struct rv_vm *vm, rv_gpa base, uint64_t len, const struct rv_bus_ops *ops,
			 void *dev, struct rv_err *err)
{
	(void)err;
	vm->mmio[vm->nmmio++] = (struct range){base.v, len, ops, dev};
	return RV_OK;
}

WEAK int rv_bus_add_pio(struct rv_vm *vm, uint16_t base, uint16_t len, const struct rv_bus_ops *ops,
			void *dev, struct rv_err *err)
{
	(void)err;
	vm->pio[vm->npio++] = (struct range){base, len, ops, dev};
	return RV_OK;
}

static const struct range *find(const struct range *r, unsigned int n, uint64_t addr, uint8_t len)
{
	for (; n; n--, r++)
		if (addr >= r->base && addr - r->base < r->len && len <= r->len - (addr - r->base))
			return r;
	return NULL;
}

uint64_t rv_fake_mmio_read(struct rv_vm *vm, uint64_t gpa, uint8_t len)
{
	const struct range *r = find(vm->mmio, vm->nmmio, gpa, len);
	uint64_t v = 0;

	if (r)
		r->ops->read(r->dev, gpa - r->base, len, &v);
	return v;
}

void rv_fake_mmio_write(struct rv_vm *vm, uint64_t gpa, uint8_t len, uint64_t v)
{
	const struct range *r = find(vm->mmio, vm->nmmio, gpa, len);

	if (r)
		r->ops->write(r->dev, gpa - r->base, len, &v);
}

uint8_t rv_fake_pio_read(struct rv_vm *vm, uint16_t port)
{
	const struct range *r = find(vm->pio, vm->npio, port, 1);
	uint8_t v = 0xff;

	if (r)
		r->ops->read(r->dev, port - r->base, 1, &v);
	return v;
}

void rv_fake_pio_write(struct rv_vm *vm, uint16_t port, uint8_t v)
{
	const struct range *r = find(vm->pio, vm->npio, port, 1);

	if (r)
		r->ops->write(r->dev, port - r->base, 1, &v);
}

/* Every doorbell goes the slow way, through the register. */
WEAK int rv_ioevent_add(struct rv_vm *vm, rv_gpa gpa, uint32_t value, int fd, struct rv_err *err)
{
	(void)vm, (void)gpa, (void)value, (void)fd, (void)err;
	return RV_OK;
}

WEAK int rv_io_add(struct rv_vm *vm, int fd, uint32_t events, rv_io_fn *fn, void *dev,
		   struct rv_err *err)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (fd >= MAX || epoll_ctl(vm->ep, EPOLL_CTL_ADD, fd, &ev) < 0)
		return rv_err_os(err, "io", "epoll");
	vm->io[fd].fn = fn;
	vm->io[fd].dev = dev;
	return RV_OK;
}

WEAK int rv_io_mod(struct rv_vm *vm, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	return epoll_ctl(vm->ep, EPOLL_CTL_MOD, fd, &ev) < 0 ? RV_EOS : RV_OK;
}

WEAK void rv_io_del(struct rv_vm *vm, int fd)
{
	epoll_ctl(vm->ep, EPOLL_CTL_DEL, fd, NULL);
	vm->io[fd].fn = NULL;
}

void rv_fake_io_run(struct rv_vm *vm, int ms)
{
	struct epoll_event ev[8];
	int n, budget = 10000; /* a descriptor that spins is a failed test, not a hung one */

	while ((n = epoll_wait(vm->ep, ev, 8, ms)) > 0 && budget--)
		for (int i = 0; i < n; i++)
			if (vm->io[ev[i].data.fd].fn)
				vm->io[ev[i].data.fd].fn(vm->io[ev[i].data.fd].dev, ev[i].data.fd,
							 ev[i].events);
	if (budget <= 0) {
		fprintf(stderr, "fake_vm: a descriptor is always ready\n");
		abort();
	}
}

WEAK int rv_virtio_slot_next(struct rv_vm *vm, const char *kind, struct rv_virtio_slot *out,
			     struct rv_err *err)
{
	(void)err;
	out->index = vm->nslots++;
	out->base = rv_gpa_of(0xd0000000ull + out->index * RV_VIRTIO_MMIO_LEN);
	out->gsi = 16 + out->index;
	snprintf(out->name, sizeof(out->name), "%s%u", kind, out->index);
	return RV_OK;
}

WEAK int rv_vm_add_device(struct rv_vm *vm, void *dev, void (*destroy)(void *dev),
			  struct rv_err *err)
{
	(void)err;
	vm->devs[vm->ndevs].dev = dev;
	vm->devs[vm->ndevs++].destroy = destroy;
	return RV_OK;
}

WEAK void rv_dev_guest_bad(struct rv_vm *vm, const char *who, const char *fmt, ...)
{
	va_list ap;

	(void)who;
	va_start(ap, fmt);
	vsnprintf(vm->bad_text, sizeof(vm->bad_text), fmt, ap);
	va_end(ap);
	vm->bad++;
}
