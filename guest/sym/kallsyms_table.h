/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms_table.h: the stored form of kallsyms, shared by the reader
 * (kallsyms.c) and the search (kallsyms_find.c). Nobody else includes it.
 */
#ifndef RV_SYM_KALLSYMS_TABLE_H
#define RV_SYM_KALLSYMS_TABLE_H

#include <ravelin/kallsyms.h>

#include <base/cursor.h>

/* Every name is a string of bytes, each of which stands for one of 256 tokens. */
#define KSYM_TOKENS 256

/* There is a marker (the offset of a name) for every so many names. */
#define KSYM_MARKER_STEP 256

/*
 * Fewer symbols than this carry less than two markers, so that nothing proves
 * the table; the smallest kernels (tinyconfig) have about 10,000.
 */
#define KSYM_MIN_SYMS (KSYM_MARKER_STEP + 1)

/* allyesconfig kernels have about 1.2 million symbols; four times that is refused. */
#define KSYM_MAX_SYMS (4u << 20)

/*
 * Bytes of a compressed name. The length is one byte, or two since v6.1 (commit
 * 73bbb94466fd "kallsyms: support big kernel symbols"): low 7 bits first, bit 7
 * of the first byte says that a second follows.
 */
static inline bool ksym_len_at(const uint8_t *mem, size_t len, uint64_t off, uint32_t *n_out,
			       uint32_t *head_out)
{
	uint8_t b[2];

	if (!rv_get(mem, len, off, b, 1))
		return false;
	*n_out = b[0];
	*head_out = 1;
	if (!(b[0] & 0x80))
		return true;
	if (!rv_get(mem, len, off + 1, b + 1, 1))
		return false;
	*n_out = (b[0] & 0x7fu) | (uint32_t)b[1] << 7;
	*head_out = 2;
	return true;
}

#endif
