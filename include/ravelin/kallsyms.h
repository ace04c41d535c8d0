/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms.h: the kernel's own symbol table, found without any profile.
 *
 * The table is used in place, compressed as the kernel carries it: a view holds
 * offsets into a flat copy of the image (a file's, or guest RAM's). The bytes
 * may change underneath at any time when they are a running guest's, so every
 * access is bounds-checked at the time it happens, and work is bounded by the
 * counts that were accepted when the table was found.
 */
#ifndef RAVELIN_KALLSYMS_H
#define RAVELIN_KALLSYMS_H

#include <ravelin/error.h>
#include <ravelin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* KSYM_NAME_LEN is 512 since v6.1 (commit b8a94bfb3395 "kallsyms: increase maximum kernel
 * symbol length to 512"); the NUL included. */
#define RV_KSYM_NAME_LEN 512

/*
 * How an address is stored. One kernel has one of them:
 *   absolute         before v4.6, and later without CONFIG_KALLSYMS_BASE_RELATIVE
 *   relative         v4.6 on, commit 2213e9a66bb8 ("kallsyms: add support for relative
 *                    offsets in kallsyms address table"); arm64, and x86 from v6.15
 *   absolute-percpu  x86 with SMP, v4.6 to v6.14: per-CPU symbols are plain numbers
 *   prel32           v7.0 on, commit a081b5789255 ("kallsyms: Get rid of kallsyms
 *                    relative base"); its tables are aligned to 4 bytes instead of 8
 */
enum rv_kallsyms_encoding {
	RV_KSYM_ABSOLUTE = 1,	     /* u64 addresses */
	RV_KSYM_RELATIVE = 2,	     /* u32 offsets from relative_base */
	RV_KSYM_ABSOLUTE_PERCPU = 3, /* s32: >= 0 absolute, < 0 is base - 1 - value */
	RV_KSYM_PREL32 = 4,	     /* s32 offsets from the entry's own place */
};

/* Where the parts are; plain data, so that it can be handed to another process. */
struct rv_kallsyms_layout {
	uint32_t encoding; /* enum rv_kallsyms_encoding */
	uint32_t num_syms;
	uint64_t names, markers, token_table, token_index, offsets; /* flat offsets */
	uint64_t names_len;
	uint64_t relative_base; /* link-time value */
	uint32_t marker_size;	/* 4, or 8 before v4.20 */
};

/*
 * A view of a table; the memory is borrowed. Absolute tables hold addresses that a
 * kernel which moved itself has already corrected in its memory: a view of such
 * memory needs slide 0, the other encodings need the true slide.
 */
struct rv_kallsyms {
	const uint8_t *mem; /* flat offset 0 */
	size_t len;
	uint64_t link_base; /* va of flat offset 0 at link time */
	uint64_t slide;	    /* added to every non-absolute address that is returned */
	struct rv_kallsyms_layout lay;
};

struct rv_symbol {
	uint64_t va;
	uint64_t size; /* distance to the next different address; 0 when last */
	char type;     /* nm letter */
	char name[RV_KSYM_NAME_LEN];
};

/* Search a flat image. RV_ENOSYM when there is none, RV_EBADDATA when one is
 * there and contradicts itself. Nothing is allocated that outlives the call. */
int rv_kallsyms_find(const void *flat, size_t len, uint64_t link_base, enum rv_arch arch,
		     struct rv_kallsyms_layout *out, struct rv_err *err) RV_MUST_CHECK;

/* First symbol of that exact name. RV_ENOSYM, or RV_EBADDATA. */
int rv_kallsyms_lookup(const struct rv_kallsyms *k, const char *name, struct rv_symbol *out,
		       struct rv_err *err) RV_MUST_CHECK;

/* The nth symbol in table order, n < num_syms. */
int rv_kallsyms_at(const struct rv_kallsyms *k, uint32_t n, struct rv_symbol *out,
		   struct rv_err *err) RV_MUST_CHECK;

/* The last symbol at or below va; *off_out = va - its address. Of several at one
 * address the first in the table, which is the one that the kernel itself prints.
 * Absolute per-CPU symbols are offsets, not addresses, and are never the answer.
 * RV_ENOTMAPPED when va lies below the first symbol or beyond the flat image's end. */
int rv_kallsyms_nearest(const struct rv_kallsyms *k, uint64_t va, struct rv_symbol *out,
			uint64_t *off_out, struct rv_err *err) RV_MUST_CHECK;

/* Call fn for every symbol in table order until it returns non-zero, which is returned. */
int rv_kallsyms_each(const struct rv_kallsyms *k, int (*fn)(const struct rv_symbol *s, void *arg),
		     void *arg);

/*
 * Many names in one pass over the table, which costs about as much as one lookup
 * of an absent name. A name that ends in '*' matches as a prefix. With stem set,
 * compiler clones (".constprop.0", ".isra.1") match where the exact name does not.
 */
struct rv_symbol_want {
	const char *name;
	bool stem;
	/* filled in: */
	uint32_t count; /* matches; 0 is not found, and then the rest is 0 */
	uint64_t va;	/* of the first match in table order */
	uint64_t last;	/* of the last match */
	uint64_t size;	/* of the first, as in struct rv_symbol */
	char type;
	char found[64]; /* the name as the table has it, cut where longer */
};

/* Names in one call; RV_EINVAL above that. */
#define RV_SYMBOL_WANTS_MAX 128

int rv_kallsyms_resolve(const struct rv_kallsyms *k, struct rv_symbol_want *wants, size_t n,
			struct rv_err *err) RV_MUST_CHECK;

/* Name of an encoding ("absolute-percpu"); never NULL. */
const char *rv_kallsyms_encoding_name(uint32_t encoding);

#ifdef __cplusplus
}
#endif
#endif
