/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paging.h: guest virtual memory as the guest's own page tables define it.
 *
 * The neutral part: what a translation is, and a view (source + registers +
 * budget) to read through. One file per architecture exports a struct
 * rv_paging_ops; all of them are compiled on every host.
 *
 * Walkers only read. Accessed and dirty bits are left as they are.
 */
#ifndef RV_GUEST_PAGING_H
#define RV_GUEST_PAGING_H

#include <ravelin/error.h>
#include <ravelin/types.h>

#include "source/source.h"

#define RV_PAGING_MAX_LEVELS 5u

/* The registers that say how addresses are translated; plain data. */
struct rv_paging_regs {
	enum rv_arch arch;
	/*
	 * Width of a physical address (x86: CPUID 80000008H:EAX[7:0]; arm64:
	 * ID_AA64MMFR0_EL1.PARange, decoded); 0 is taken as 52, the architecture's most.
	 * Address bits above it are reserved.
	 */
	uint32_t pa_bits;
	/* Entry bits that mean "encrypted" or "shared", not address: SME/SEV C-bit, TDX. */
	uint64_t enc_mask;
	struct {
		uint64_t cr3, cr4, efer;
	} x86;
	/*
	 * EL1's registers as they are. tcr2, pir and pire0 (permission indirection) are 0
	 * for a CPU without them.
	 */
	struct {
		uint64_t ttbr0, ttbr1, tcr, sctlr;
		uint64_t tcr2, pir, pire0;
	} arm64;
};

/* One table entry that a walk passed. */
struct rv_paging_step {
	rv_gpa at;	/* where the entry is */
	uint64_t entry; /* as read */
	uint32_t level; /* 5 (top) .. 1 (page). arm64 counts the other way: 4 - its level */
};

struct rv_translation {
	rv_gpa gpa;
	/* Size of the page; after RV_ENOTMAPPED the size of the hole around gva that
	 * the last entry proves, aligned to itself (0: no entry was read, as gva is not
	 * canonical or its half has no tables). */
	uint64_t page_size;
	/*
	 * Effective rights: all levels taken together. user: user mode may read; write:
	 * the kernel may; nx: the kernel may not execute, on x86 nobody may.
	 */
	bool user, write, nx;
	/* User mode's own: on arm64 it may execute what it cannot read, and the kernel
	 * may write what user mode can only read. */
	bool user_write, user_nx;
	uint32_t nsteps; /* valid after failures too */
	struct rv_paging_step step[RV_PAGING_MAX_LEVELS];
};

struct rv_view;

struct rv_paging_ops {
	const char *name;
	/*
	 * 0; RV_ENOTMAPPED for an entry that is not present and for an address that
	 * is not canonical; RV_EBADDATA with the entry's address for reserved bits,
	 * a table outside RAM and a table that points to itself or its parents, or with
	 * gva for registers that contradict themselves; RV_EBUDGET; RV_EUNSUPPORTED when
	 * the registers say paging is off or of a kind that is not known here.
	 */
	int (*translate)(struct rv_view *v, rv_gva gva, struct rv_translation *out,
			 struct rv_err *err);
};

extern const struct rv_paging_ops rv_paging_x86_64;
extern const struct rv_paging_ops rv_paging_arm64;

/*
 * The unit of inspection: one address space, looked at with one budget. A view
 * is made on the stack for one question; it is not shared between threads.
 */
struct rv_view {
	struct rv_source *src;
	const struct rv_paging_ops *ops;
	struct rv_paging_regs regs;
	uint32_t budget; /* physical reads left */
	/* The last translation, so that reading a structure costs one walk. */
	bool cached;
	uint64_t cache_va, cache_gpa, cache_size;
};

/* RV_EUNSUPPORTED for an architecture without a walker. */
int rv_view_init(struct rv_view *v, struct rv_source *src, const struct rv_paging_regs *regs,
		 uint32_t budget, struct rv_err *err) RV_MUST_CHECK;

int rv_view_translate(struct rv_view *v, rv_gva gva, struct rv_translation *out,
		      struct rv_err *err) RV_MUST_CHECK;

/*
 * Copy len bytes, all or nothing, across pages. A range that runs past the top
 * of the address space is RV_ENOTMAPPED. A page that is mapped to no RAM is
 * RV_ENOTMAPPED too: device memory is not looked at.
 */
int rv_view_read(struct rv_view *v, rv_gva gva, void *dst, size_t len,
		 struct rv_err *err) RV_MUST_CHECK;

int rv_view_read_u32(struct rv_view *v, rv_gva gva, uint32_t *out,
		     struct rv_err *err) RV_MUST_CHECK;
int rv_view_read_u64(struct rv_view *v, rv_gva gva, uint64_t *out,
		     struct rv_err *err) RV_MUST_CHECK;

/*
 * Copy a string of at most len - 1 bytes and terminate it; a longer one is cut.
 * Bytes that are not printable ASCII become '?': the result can be printed.
 * Fails only when the first byte cannot be read; ends early at the first hole.
 */
int rv_view_read_name(struct rv_view *v, rv_gva gva, char *dst, size_t len,
		      struct rv_err *err) RV_MUST_CHECK;

/* Take one physical read from the budget. Used by walkers; RV_EBUDGET at zero. */
int rv_view_read_phys(struct rv_view *v, rv_gpa gpa, void *dst, size_t len,
		      struct rv_err *err) RV_MUST_CHECK;

#endif
