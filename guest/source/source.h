/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h: where the bytes of a guest come from. Included by everything in
 * guest/ that looks at guest memory, and by the program that owns the memory.
 *
 * A source only ever copies out. Nothing in guest/ keeps a pointer into guest
 * memory that it then trusts: the bytes are copied, and the copy is judged.
 */
#ifndef RV_GUEST_SOURCE_H
#define RV_GUEST_SOURCE_H

#include <ravelin/error.h>
#include <ravelin/types.h>

struct rv_source {
	/*
	 * Copy len bytes of guest physical memory, all or nothing: 0, or
	 * RV_ENOTMAPPED when any of them lies outside RAM (holes included), or
	 * RV_ESOURCE when they should be there and cannot be had. Called from
	 * several threads at once when the owner of the source says so.
	 */
	int (*read_phys)(struct rv_source *src, rv_gpa gpa, void *dst, size_t len);
	void *opaque;
};

/* One piece of guest RAM that this process has mapped. */
struct rv_region {
	uint64_t gpa; /* first guest physical address */
	uint64_t len; /* bytes */
	const uint8_t *ptr;
};

/*
 * A source over regions in this process. Regions may touch (a read may cross
 * from one to the next) but not overlap; they need not be sorted. The array and
 * the memory are borrowed. Immutable after init, hence free of locks.
 */
struct rv_source_mapped {
	struct rv_source base;
	const struct rv_region *regions;
	size_t count;
};

/* RV_EINVAL for regions that overlap, wrap, or have no pointer. */
int rv_source_mapped_init(struct rv_source_mapped *m, const struct rv_region *regions, size_t count,
			  struct rv_err *err) RV_MUST_CHECK;

#endif
