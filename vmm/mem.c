/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.c: guest RAM, one memfd mapped twice.
 *
 * KVM gets the mapping that carries the protection; the monitor reads and writes
 * through the other. A fault in KVM's mapping therefore never depends on what the
 * monitor itself is doing.
 */
#include "vm.h"
#include "arch.h"
#include "enforce/memprot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct rv_ram *find_ram(const struct rv_mem *m, uint64_t gpa, uint64_t len)
{
	for (uint32_t i = 0; i < m->nram; i++) {
		const struct rv_ram *r = &m->ram[i];

		if (gpa >= r->gpa.v && gpa - r->gpa.v < r->len && len <= r->len - (gpa - r->gpa.v))
			return r;
	}
	return NULL;
}

/* Slot n becomes len bytes of piece r from offset on; len 0 takes the slot away. */
static int set_slot(struct rv_vm *vm, uint32_t n, const struct rv_ram *r, uint64_t from,
		    uint64_t len, struct rv_err *err)
{
	struct kvm_userspace_memory_region s = {
		.slot = n,
		.guest_phys_addr = r->gpa.v + from,
		.memory_size = len,
		.userspace_addr = (uintptr_t)(vm->mem.guest + r->off + from),
	};

	if (ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &s))
		return rv_err_os(err, "mem", "give KVM %llu MiB of RAM at 0x%llx",
				 (unsigned long long)(s.memory_size >> 20),
				 (unsigned long long)s.guest_phys_addr);
	return 0;
}

static int map_slots(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_mem *m = &vm->mem;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < m->nram; i++)
		rc = set_slot(vm, i, &m->ram[i], 0, m->ram[i].len, err);
	return rc;
}

int rv_mem_punch(struct rv_vm *vm, rv_gpa gpa, uint64_t len, struct rv_err *err)
{
	struct rv_mem *m = &vm->mem;
	const struct rv_ram *r = find_ram(m, gpa.v, len);
	uint64_t from, after;
	uint32_t n;
	int rc;

	if (!r || !len)
		return rv_err_at(err, RV_EINVAL, gpa.v, "mem", "a hole outside RAM");
	if (m->punched)
		return rv_err_at(err, RV_EBUSY, gpa.v, "mem", "a second hole in RAM");
	n = (uint32_t)(r - m->ram);
	from = gpa.v - r->gpa.v;
	after = from + len;
	/* The size of a slot cannot be changed: away with it, then two others. */
	rc = set_slot(vm, n, r, 0, 0, err);
	if (!rc && from)
		rc = set_slot(vm, n, r, 0, from, err);
	if (!rc && after < r->len)
		rc = set_slot(vm, m->nram, r, after, r->len - after, err);
	m->punched = !rc;
	return rc;
}

int rv_mem_init(struct rv_vm *vm, uint64_t size, struct rv_err *err)
{
	struct rv_mem *m = &vm->mem;

	m->size = size;
	m->nram = rv_arch_ram_layout(size, m->ram);
	pthread_rwlock_init(&m->prot_lock, NULL);
	m->fd = memfd_create("ravelin-guest-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (m->fd < 0)
		return rv_err_os(err, "mem", "create guest RAM");
	if (ftruncate(m->fd, (off_t)size))
		return rv_err_os(err, "mem", "size guest RAM to %llu MiB",
				 (unsigned long long)(size >> 20));
	/* A truncated file would turn every later access into SIGBUS. */
	if (fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return rv_err_os(err, "mem", "seal the size of guest RAM");
	m->mon = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);
	if (m->mon == MAP_FAILED) {
		m->mon = NULL;
		return rv_err_os(err, "mem", "map guest RAM for the monitor");
	}
	m->guest = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);
	if (m->guest == MAP_FAILED) {
		m->guest = NULL;
		return rv_err_os(err, "mem", "map guest RAM for KVM");
	}
	madvise(m->mon, size, MADV_DONTDUMP);
	madvise(m->guest, size, MADV_DONTDUMP);
	return map_slots(vm, err);
}

void rv_mem_deinit(struct rv_vm *vm)
{
	struct rv_mem *m = &vm->mem;

	if (m->mon)
		munmap(m->mon, m->size);
	if (m->guest)
		munmap(m->guest, m->size);
	if (m->fd > 0)
		close(m->fd);
	m->mon = m->guest = NULL;
	m->fd = -1;
}

uint8_t *rv_mem_ptr(struct rv_vm *vm, rv_gpa gpa, uint64_t len)
{
	const struct rv_ram *r = find_ram(&vm->mem, gpa.v, len);

	return r ? vm->mem.mon + r->off + (gpa.v - r->gpa.v) : NULL;
}

uint8_t *rv_mem_guest_ptr(struct rv_vm *vm, rv_gpa gpa, uint64_t len)
{
	const struct rv_ram *r = find_ram(&vm->mem, gpa.v, len);

	return r ? vm->mem.guest + r->off + (gpa.v - r->gpa.v) : NULL;
}

uint64_t rv_mem_low_end(const struct rv_vm *vm)
{
	return vm->mem.ram[0].gpa.v + vm->mem.ram[0].len;
}

uint64_t rv_mem_high_end(const struct rv_vm *vm)
{
	return vm->mem.nram > 1 ? vm->mem.ram[1].gpa.v + vm->mem.ram[1].len : 0;
}

void rv_mem_trim(struct rv_vm *vm)
{
	/* On a shared mapping this drops page-table entries, never data. */
	madvise(vm->mem.mon, vm->mem.size, MADV_DONTNEED);
}

/* --- the gate for devices ------------------------------------------------ */

static int refuse(struct rv_vm *vm, const char *who, rv_gpa gpa, size_t len,
		  const struct rv_guard *reg)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_DEVICE_WRITE, .vcpu = -1};

	ev.gpa = gpa.v;
	ev.size = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
	snprintf(ev.engine, sizeof(ev.engine), "dma");
	snprintf(ev.object, sizeof(ev.object), "%s", reg->object);
	snprintf(ev.detail, sizeof(ev.detail), "%s was told to write into %s", who, reg->object);
	(void)rv_vm_event(vm, &ev);
	return RV_EREFUSED;
}

int rv_dma_read(struct rv_vm *vm, rv_gpa gpa, void *dst, size_t len)
{
	const uint8_t *p = rv_mem_ptr(vm, gpa, len);

	if (!p)
		return RV_ENOTMAPPED;
	memcpy(dst, p, len);
	return 0;
}

int rv_dma_write(struct rv_vm *vm, const char *who, rv_gpa gpa, const void *src, size_t len)
{
	uint8_t *p = rv_mem_ptr(vm, gpa, len);
	struct rv_guard reg;

	if (!p)
		return RV_ENOTMAPPED;
	pthread_rwlock_rdlock(&vm->mem.prot_lock);
	if (rv_memprot_overlaps(vm->prot, gpa, len, &reg)) {
		pthread_rwlock_unlock(&vm->mem.prot_lock);
		return refuse(vm, who, gpa, len, &reg);
	}
	memcpy(p, src, len);
	pthread_rwlock_unlock(&vm->mem.prot_lock);
	return 0;
}

void rv_dma_begin(struct rv_vm *vm)
{
	pthread_rwlock_rdlock(&vm->mem.prot_lock);
}

void rv_dma_end(struct rv_vm *vm)
{
	pthread_rwlock_unlock(&vm->mem.prot_lock);
}

int rv_dma_map(struct rv_vm *vm, const char *who, rv_gpa gpa, size_t len, bool write,
	       struct iovec *out)
{
	uint8_t *p = rv_mem_ptr(vm, gpa, len);
	struct rv_guard reg;

	if (!p)
		return RV_ENOTMAPPED;
	if (write && rv_memprot_overlaps(vm->prot, gpa, len, &reg))
		return refuse(vm, who, gpa, len, &reg);
	out->iov_base = p;
	out->iov_len = len;
	return 0;
}
