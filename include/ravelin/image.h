/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h: what a kernel image file says of itself, before it ever runs.
 *
 * Reads bzImage (gzip, xz, lz4 legacy, zstd payloads), vmlinux ELF and arm64
 * Image; recovers kallsyms, BTF, patch tables and the places that the monitor
 * needs (call sites, padding, unwind entry). Every byte of the file is hostile:
 * a damaged or malicious file yields an error with a file offset, never a
 * crash, and never a guess presented as a fact.
 *
 * All addresses (va) are link-time virtual addresses; flat offsets are
 * va - link_base, which is also the distance from the first loaded byte.
 */
#ifndef RAVELIN_IMAGE_H
#define RAVELIN_IMAGE_H

#include <ravelin/error.h>
#include <ravelin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rv_image_format {
	RV_IMAGE_BZIMAGE = 1,
	RV_IMAGE_ELF = 2,
	RV_IMAGE_ARM64 = 3,
};

/* How the kernel proper is packed inside the file. */
enum rv_payload {
	RV_PAYLOAD_NONE = 0,
	RV_PAYLOAD_GZIP,
	RV_PAYLOAD_XZ,
	RV_PAYLOAD_LZ4,
	RV_PAYLOAD_ZSTD,
};

struct rv_image; /* opaque; see rv_image_open() */

struct rv_image_info {
	enum rv_image_format format;
	enum rv_payload payload;
	enum rv_arch arch;
	char banner[256];   /* "Linux version 6.1.0-..."; "" where none was found */
	uint64_t link_base; /* va of flat offset 0 (_text) */
	uint64_t flat_size; /* bytes from link_base to the end of file-backed data */
	uint64_t mem_size;  /* bytes from link_base to _end, bss included */
	uint64_t entry;	    /* x86: e_entry as in the ELF (physical); arm64: 0 */
	uint64_t phys_base; /* x86: physical link address of flat offset 0 (0x1000000) */
	bool has_relocs;    /* relocation tables are present and valid */
	uint32_t relocs[3]; /* counts: x86 32-bit, inverse 32-bit, 64-bit; arm64 [2] = RELATIVE */
	/* bzImage only: the setup header, bytes from 0x1f1, copied. */
	uint8_t setup_hdr[256];
	uint32_t setup_hdr_len;
	uint16_t boot_protocol; /* 0x020f = 2.15 */
	uint32_t init_size;
	uint64_t pref_address;
	uint32_t cmdline_size; /* longest command line, without the NUL */
	uint32_t initrd_addr_max;
	uint16_t xloadflags;
	/* arm64 Image only: the header's fields. */
	uint64_t text_offset, arm64_flags;
	uint32_t btf_types; /* 0 where there is no BTF, and why */
	char btf_reason[120];
	char symbols_reason[120]; /* why there is no kallsyms; "" where there is */
	/* What opening took, in nanoseconds: decompression, and everything else. */
	uint64_t unpack_ns, read_ns;
};

/*
 * Named places and tables. The sites of x86_64:
 *   mark_rodata_ro         the call in kernel_init
 *   text_poke_memcpy       its tail jump to memcpy
 *   text_poke_memcpy_call  the call of it, through a pointer, in __text_poke. Where that
 *                          is a call of a retpoline thunk, alternatives may shorten it to
 *                          "call *%reg" and NOPs, or "lfence; call *%reg": on such a CPU
 *                          the return address is below va + len, and above va
 *   syscall64, syscall32_fast, sysenter32, int80
 *                          the calls of the C handlers in the entry code
 *   module_alloc, module_alloc_fallback
 *                          the calls of __vmalloc_node_range
 *   fortify_panic, fortify_report
 *                          the functions' first instructions
 * and of arm64: mark_rodata_ro, module_alloc*, fortify_* likewise;
 *   syscall64, syscall32   the calls of el0t_64_sync_handler and el0t_32_sync_handler
 *   insn_write             the first instruction of __aarch64_insn_write
 *   insn_write_nofault     its call of copy_to_kernel_nofault
 *   text_poke              the first instruction of __text_poke (v6.9 on)
 */
struct rv_site {
	char name[32]; /* "mark_rodata_ro", "text_poke_memcpy", "do_syscall_64", ... */
	bool found;
	uint64_t va;	   /* of the instruction */
	uint64_t target;   /* va that the call or jump goes to; 0 where none */
	uint8_t bytes[16]; /* the original instruction */
	uint8_t len;
	char symbol[64];     /* function that holds it */
	uint32_t symbol_off; /* offset in that function */
	char how[80];	     /* how it was found: "the call of memcpy"; "" when not */
	char reason[120];    /* why it was not found; "" when found */
};

struct rv_table {
	char name[24]; /* "jump_table", "static_call_sites", "mcount_loc", "altinstructions", ... */
	bool found;
	uint64_t va, size; /* bytes */
	uint32_t count;	   /* entries */
	uint32_t entry_size;
	char how[80]; /* "symbols", "section", "the longest run of such entries" */
	char reason[120];
};

/*
 * A part of the image, or a function: "text", "rodata" (what mark_rodata_ro makes
 * read-only and nothing writes after it), "copy_to_kernel_nofault".
 */
struct rv_range {
	char name[32];
	bool found;
	uint64_t va, size; /* bytes */
	char how[80];	   /* "symbols _stext, _etext"; "" when not found */
	char reason[120];
};

/* A protection of ravelin and whether this kernel can carry it. */
struct rv_protection {
	char name[24]; /* "placement-base", "placement-modules", "seal", "kstack", "fortify-report"
			*/
	bool supported;
	char site[96];	  /* "kernel_init+0x42, text_poke_memcpy+0x5" */
	char reason[160]; /* what is missing; "" when supported */
};

/* x86 padding run inside .text that can hold the gate; arm64 likewise. */
struct rv_padding {
	bool found;
	uint64_t va;  /* first padding byte */
	uint64_t len; /* bytes */
	/* x86 with ORC: the terminator entry that covers the run. */
	bool has_orc;
	uint64_t orc_va;    /* va of its 6-byte orc_entry */
	uint8_t orc_old[6]; /* as in the image */
	uint8_t orc_new[6]; /* rbp frame, type call, in this kernel's own layout */
	char reason[120];
};

/*
 * Open, unpack and understand the file. On success *out is owned by the caller
 * (rv_image_close). RV_EBADDATA with the file offset for damage, RV_EUNSUPPORTED
 * for a format that is valid and not ours, RV_EOS for I/O. A kernel without
 * kallsyms opens: the places that need symbols are then reported as not found.
 */
int rv_image_open(const char *path, struct rv_image **out, struct rv_err *err) RV_MUST_CHECK;

/* The same from an open descriptor of a regular file, read from its position; it stays
 * open. For a caller that may no longer open anything. */
int rv_image_open_fd(int fd, struct rv_image **out, struct rv_err *err) RV_MUST_CHECK;

/* The same from memory; the buffer may be freed after the call. */
int rv_image_parse(const void *buf, size_t len, struct rv_image **out,
		   struct rv_err *err) RV_MUST_CHECK;

void rv_image_close(struct rv_image *img);

const struct rv_image_info *rv_image_info(const struct rv_image *img);

/*
 * Copy the loadable bytes to dst, flat offset 0 first; what no segment covers
 * up to mem_size is zeroed. dst_len must be at least mem_size (RV_EINVAL).
 */
int rv_image_load(const struct rv_image *img, void *dst, size_t dst_len,
		  struct rv_err *err) RV_MUST_CHECK;

/*
 * x86: apply the appended relocations to a loaded copy; delta = chosen virtual
 * base - link_base, a multiple of 2 MiB. arm64: apply R_AARCH64_RELATIVE (only
 * for looking at a private copy; a running kernel relocates itself).
 */
int rv_image_relocate(const struct rv_image *img, void *dst, size_t dst_len, uint64_t delta,
		      struct rv_err *err) RV_MUST_CHECK;

/* Sites, tables, ranges and protections; return the count and set *out to the array,
 * which lives as long as img. Entries that were not found are in it, with the reason. */
size_t rv_image_sites(const struct rv_image *img, const struct rv_site **out);
size_t rv_image_tables(const struct rv_image *img, const struct rv_table **out);
size_t rv_image_ranges(const struct rv_image *img, const struct rv_range **out);
size_t rv_image_protections(const struct rv_image *img, const struct rv_protection **out);
const struct rv_site *rv_image_site(const struct rv_image *img, const char *name);
const struct rv_range *rv_image_range(const struct rv_image *img, const char *name);
const struct rv_padding *rv_image_padding(const struct rv_image *img);

/* Symbols. See kallsyms.h for the table itself; NULL where none was recovered. */
struct rv_kallsyms;
const struct rv_kallsyms *rv_image_kallsyms(const struct rv_image *img);

/* BTF bytes inside the flat image; false where none. */
bool rv_image_btf(const struct rv_image *img, uint64_t *va, uint64_t *size);

#ifdef __cplusplus
}
#endif
#endif
