/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot.h: which guest pages are write-protected, for whom, and why.
 *
 * A region is a run of whole pages with an owner and an object name. Regions are
 * queued and then committed together; a commit changes the protection of KVM's
 * mapping (mprotect), which needs no vcpu parked: KVM's own page-table updates make
 * it atomic against running vcpus. A commit that fails stays pending.
 */
#ifndef RV_VMM_MEMPROT_H
#define RV_VMM_MEMPROT_H

#include <ravelin/error.h>
#include <ravelin/types.h>

#include <stdatomic.h>

struct rv_vm;

#define RV_MEMPROT_MAX 64 /* image text, rodata, gate, and what later engines add at boot */

enum rv_object {
	RV_OBJ_TEXT = 1,
	RV_OBJ_RODATA,
	RV_OBJ_GATE,
};

/* A guarded run of pages. */
struct rv_guard {
	rv_gpa gpa;
	uint64_t len; /* whole pages */
	enum rv_object kind;
	char object[32]; /* "text", "rodata", "gate" */
	uint32_t id;
};

struct rv_guard_stats {
	uint64_t faults, denied, completed, patched;
};

struct rv_memprot;

struct rv_memprot *rv_memprot_create(struct rv_vm *vm);
void rv_memprot_destroy(struct rv_memprot *mp);

/* Queue a region. RV_EINVAL: not page aligned, not in RAM, or overlaps another. */
int rv_memprot_add(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, enum rv_object kind,
		   const char *object, struct rv_err *err) RV_MUST_CHECK;

/* Arm everything that is queued. On failure what could not be armed stays queued. */
int rv_memprot_commit(struct rv_memprot *mp, struct rv_err *err) RV_MUST_CHECK;

/* Is any byte of [gpa, gpa+len) in an armed region? *out (may be NULL) is a copy. */
bool rv_memprot_overlaps(struct rv_memprot *mp, rv_gpa gpa, uint64_t len, struct rv_guard *out);

/* Copy of the armed region of that number; false: there is none. Numbers have no gaps, but
 * for regions that are queued. */
bool rv_memprot_get(struct rv_memprot *mp, uint32_t id, struct rv_guard *out);

/*
 * Open the pages of [gpa, gpa+len) for one instruction, and close them again. The
 * caller has parked every other vcpu.
 */
int rv_memprot_open(struct rv_memprot *mp, rv_gpa gpa, uint64_t len,
		    struct rv_err *err) RV_MUST_CHECK;
int rv_memprot_shut(struct rv_memprot *mp, rv_gpa gpa, uint64_t len,
		    struct rv_err *err) RV_MUST_CHECK;

struct rv_guard_stats *rv_memprot_stats(struct rv_memprot *mp, uint32_t id);

#endif
