/* SPDX-License-Identifier: Apache-2.0 */
/* fake_source.h: a small guest for unit tests: RAM, x86-64 page tables, BTF. */
#ifndef RV_TEST_FAKE_SOURCE_H
#define RV_TEST_FAKE_SOURCE_H

#include <ravelin/types.h>

#include "paging/paging.h"
#include "source/source.h"

#define FAKE_RAM      (4u << 20) /* [0, 4M), with a second piece at FAKE_HIGH */
#define FAKE_HIGH     0x100000000ull
#define FAKE_HIGH_LEN 8192u
#define FAKE_ROOT     0x1000u
#define FAKE_RW	      3ull
#define FAKE_RO	      1ull
#define FAKE_USER     4ull
#define FAKE_PS	      0x80ull
#define FAKE_NX	      (1ull << 63)

struct fake {
	uint8_t *ram, *high;
	struct rv_region regions[2];
	struct rv_source_mapped src;
	struct rv_paging_regs regs;
	uint64_t next; /* next free page for tables */
	uint32_t levels;
};

void fake_init(struct fake *f, uint32_t levels);
void fake_deinit(struct fake *f);

/* Map va to gpa with a page of 4K << 9 * (leaf_level - 1); flags go into the leaf. */
void fake_map(struct fake *f, uint64_t va, uint64_t gpa, uint32_t leaf_level, uint64_t flags);

/* The entry of va at a level, to be damaged. NULL when a table above is missing. */
uint64_t *fake_entry(struct fake *f, uint64_t va, uint32_t level);

/* Put bytes at a guest physical address (in low RAM). */
void fake_put(struct fake *f, uint64_t gpa, const void *p, size_t n);
void fake_put_u32(struct fake *f, uint64_t gpa, uint32_t v);
void fake_put_u64(struct fake *f, uint64_t gpa, uint64_t v);

/* --- a BTF writer --------------------------------------------------------- */

struct fake_btf {
	uint8_t types[8192];
	size_t types_len;
	char strs[4096];
	size_t strs_len;
	uint32_t count;
};

void fake_btf_init(struct fake_btf *b);
uint32_t fake_btf_str(struct fake_btf *b, const char *s);
/* A type with no data of its own beyond size_or_type; returns its id. */
uint32_t fake_btf_type(struct fake_btf *b, const char *name, uint32_t kind, uint32_t vlen,
		       uint32_t size_or_type);
uint32_t fake_btf_int(struct fake_btf *b, const char *name, uint32_t size);
uint32_t fake_btf_array(struct fake_btf *b, uint32_t elem, uint32_t index, uint32_t n);
/* After fake_btf_type() of a struct with that many members. */
void fake_btf_member(struct fake_btf *b, const char *name, uint32_t type, uint32_t bit_off);
void fake_btf_enumerator(struct fake_btf *b, const char *name, int32_t value);
void fake_btf_u32(struct fake_btf *b, uint32_t v);
/* Header + types + strings into out; returns the length. */
size_t fake_btf_emit(const struct fake_btf *b, uint8_t *out, size_t max);

#endif
