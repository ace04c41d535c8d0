/* SPDX-License-Identifier: Apache-2.0 */
/* memprot.c: write protection of guest pages through KVM's mapping of guest RAM. */
#include "enforce/memprot.h"
#include "vm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096ull

struct rv_memprot {
	struct rv_vm *vm;
	pthread_mutex_t lock; /* adders and committers; readers use the count below */
	struct rv_guard reg[RV_MEMPROT_MAX];
	_Atomic bool armed[RV_MEMPROT_MAX]; /* false: queued */
	struct rv_guard_stats stats[RV_MEMPROT_MAX];
	/* Regions are only ever appended; a reader that sees n sees whole regions. */
	_Atomic uint32_t n;
};

struct rv_memprot *rv_memprot_create(struct rv_vm *vm)
{
	struct rv_memprot *mp = calloc(1, sizeof(*mp));

	if (!mp)
		return NULL;
	mp->vm = vm;
	pthread_mutex_init(&mp->lock, NULL);
	return mp;
}

void rv_memprot_destroy(struct rv_memprot *mp)
{
	free(mp);
}

static bool overlap(const struct rv_guard *r, uint64_t gpa, uint64_t len)
{
	return len && gpa < r->gpa.v + r->len && r->gpa.v < gpa + len;
}

int rv_memprot_add(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, enum rv_object kind,
		   const char *object, struct rv_err *err)
{
	uint32_t n;
	int rc = 0;

	if (!len || (gpa.v | len) & (PAGE - 1))
		return rv_err_at(err, RV_EINVAL, gpa.v, "memprot", "%s is not whole pages", object);
	if (!rv_mem_ptr(mp->vm, gpa, len))
		return rv_err_at(err, RV_EINVAL, gpa.v, "memprot", "%s lies outside RAM", object);
	pthread_mutex_lock(&mp->lock);
	n = atomic_load(&mp->n);
	for (uint32_t i = 0; i < n && !rc; i++)
		if (overlap(&mp->reg[i], gpa.v, len))
			rc = rv_err_at(err, RV_EINVAL, gpa.v, "memprot", "%s overlaps %s", object,
				       mp->reg[i].object);
	if (!rc && n == RV_MEMPROT_MAX)
		rc = rv_err_set(err, RV_EBUDGET, "memprot", "more than %d protected regions",
				RV_MEMPROT_MAX);
	if (!rc) {
		struct rv_guard *r = &mp->reg[n];

		*r = (struct rv_guard){.gpa = gpa, .len = len, .kind = kind, .id = n};
		snprintf(r->object, sizeof(r->object), "%s", object);
		atomic_store_explicit(&mp->n, n + 1, memory_order_release);
	}
	pthread_mutex_unlock(&mp->lock);
	return rc;
}

int rv_memprot_commit(struct rv_memprot *mp, struct rv_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&mp->lock);
	/* Devices in flight must have finished before their target turns read-only. */
	pthread_rwlock_wrlock(&mp->vm->mem.prot_lock);
	for (uint32_t i = 0; i < mp->n; i++) {
		struct rv_guard *r = &mp->reg[i];
		uint8_t *p;

		if (mp->armed[i])
			continue;
		p = rv_mem_guest_ptr(mp->vm, r->gpa, r->len);
		if (mprotect(p, r->len, PROT_READ)) {
			if (!rc)
				rc = rv_err_os(err, "memprot", "write-protect %s", r->object);
			continue;
		}
		mp->armed[i] = true;
	}
	pthread_rwlock_unlock(&mp->vm->mem.prot_lock);
	pthread_mutex_unlock(&mp->lock);
	return rc;
}

bool rv_memprot_overlaps(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, struct rv_guard *out)
{
	uint32_t n;

	if (!mp)
		return false;
	n = atomic_load_explicit(&mp->n, memory_order_acquire);
	for (uint32_t i = 0; i < n; i++) {
		const struct rv_guard *r = &mp->reg[i];

		if (!mp->armed[i] || !overlap(r, gpa.v, len))
			continue;
		if (out)
			*out = *r;
		return true;
	}
	return false;
}

bool rv_memprot_get(struct rv_memprot *mp, uint32_t id, struct rv_guard *out)
{
	if (id >= atomic_load_explicit(&mp->n, memory_order_acquire) || !mp->armed[id])
		return false;
	*out = mp->reg[id];
	return true;
}

/* The pages of [gpa, gpa+len) that belong to armed regions; what lies between them stays. */
static int set_prot(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, int prot, struct rv_err *err)
{
	uint64_t first = gpa.v & ~(PAGE - 1);
	uint64_t end = (gpa.v + len + PAGE - 1) & ~(PAGE - 1);
	uint32_t n = atomic_load_explicit(&mp->n, memory_order_acquire);
	int rc = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct rv_guard *r = &mp->reg[i];
		uint64_t from = r->gpa.v > first ? r->gpa.v : first;
		uint64_t to = r->gpa.v + r->len < end ? r->gpa.v + r->len : end;
		uint8_t *p;

		if (!mp->armed[i] || from >= to)
			continue;
		p = rv_mem_guest_ptr(mp->vm, rv_gpa_of(from), to - from);
		/* One that cannot be changed must not keep the others from being shut. */
		if ((!p || mprotect(p, to - from, prot)) && !rc)
			rc = rv_err_os(err, "memprot", "change the protection of %s", r->object);
	}
	return rc;
}

int rv_memprot_open(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, struct rv_err *err)
{
	return set_prot(mp, gpa, len, PROT_READ | PROT_WRITE, err);
}

int rv_memprot_shut(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, struct rv_err *err)
{
	return set_prot(mp, gpa, len, PROT_READ, err);
}

struct rv_guard_stats *rv_memprot_stats(struct rv_memprot *mp, uint32_t id)
{
	return id < RV_MEMPROT_MAX ? &mp->stats[id] : NULL;
}
