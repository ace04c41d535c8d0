/* SPDX-License-Identifier: Apache-2.0 */
/* fake_image.h: small kernel images made to order, for unit tests and fuzzing seeds. */
#ifndef TESTS_FAKE_IMAGE_H
#define TESTS_FAKE_IMAGE_H

#include <ravelin/image.h>
#include <ravelin/kallsyms.h>

#define FAKE_BASE	0xffffffff81000000ull
#define FAKE_ARM64_BASE 0xffff800080000000ull

struct fake_sym {
	const char *name;
	char type;
	uint64_t va;
};

struct fake_ksym_opts {
	uint32_t encoding;    /* enum rv_kallsyms_encoding */
	uint32_t marker_size; /* 4 or 8 */
	uint32_t align;	      /* 8 or 4 */
	bool old_order;	      /* addresses before the names */
	bool seqs;	      /* 3 bytes per symbol behind markers (old) or addresses (new) */
};

/*
 * Write the tables of syms (ascending) into mem at offset at; returns the end. What a
 * reader must find goes to *expect. link_base is the address of mem[0].
 */
size_t fake_kallsyms(uint8_t *mem, size_t len, size_t at, uint64_t link_base,
		     const struct fake_sym *syms, uint32_t n, const struct fake_ksym_opts *o,
		     struct rv_kallsyms_layout *expect);

/* Fill syms[have..n) with "sym_0000" ... at ascending addresses from va on; returns n. */
uint32_t fake_syms_fill(struct fake_sym *syms, uint32_t have, uint32_t n, uint64_t va,
			char (*names)[16]);

/* A growing byte buffer that the caller frees. */
struct fake_buf {
	uint8_t *p;
	size_t len;
};

/* An ELF with the flat bytes in two segments, and the relocation lists behind it. */
struct fake_buf fake_elf(const uint8_t *flat, size_t len, size_t split, const int32_t *relocs,
			 size_t relocs_n);

/* A bzImage around it. */
struct fake_buf fake_bzimage(const struct fake_buf *elf, enum rv_payload how);

/* A whole x86 kernel with every site, table and padding; flat bytes, symbols written. */
struct fake_buf fake_x86_kernel(int orc_type);

/* An arm64 Image with relocations, symbols and sites. */
struct fake_buf fake_arm64_kernel(void);

#endif
