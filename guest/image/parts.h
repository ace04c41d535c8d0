/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h: what the files of guest/image/ share. Nobody outside includes it.
 *
 * The order of work is: format (bzimage.c, elf.c, arm64.c) -> one flat buffer ->
 * relocations (relocs.c) -> kallsyms -> names of interest in one pass (names.c)
 * -> tables.c, ranges.c, sites_*.c, padding.c -> protections.c.
 */
#ifndef RV_IMAGE_PARTS_H
#define RV_IMAGE_PARTS_H

#include <ravelin/image.h>
#include <ravelin/kallsyms.h>

#include <base/cursor.h>

/*
 * Largest file, and largest unpacked kernel. Distribution kernels unpack to 60 MiB;
 * a vmlinux with debug information is 400 MiB.
 */
#define RV_IMAGE_MAX (512ull << 20)

/* Counts: what exists today, with headroom; adding one above it is refused. */
#define RV_SITES_MAX	   24
#define RV_TABLES_MAX	   16
#define RV_PROTECTIONS_MAX 8
#define RV_RANGES_MAX	   4
#define RV_SECTIONS_MAX	   96
#define RV_SEGMENTS_MAX	   16
#define RV_RELA_KEPT_MAX   64 /* 6.1 and 6.12 have 12 */

/* A section of an ELF that is loaded: most are only known by name here. */
struct section {
	char name[28];
	uint64_t va, size;
};

/* x86: three lists of 32-bit addresses; the numbers are those of info.relocs. */
struct reloc_list {
	const int32_t *at;
	uint32_t count;
};

struct rv_image {
	struct rv_image_info info;
	uint8_t *buf; /* owned; flat points into it */
	uint8_t *flat;
	int32_t *reloc_store; /* owned */
	struct reloc_list relocs[3];
	uint64_t rela_off; /* arm64: flat offset of the RELATIVE records, 24 bytes each */
	uint32_t rela_kept[RV_RELA_KEPT_MAX]; /* records whose field is not 0 in the file */
	uint32_t rela_kept_count;
	struct section sections[RV_SECTIONS_MAX];
	uint32_t section_count;
	struct rv_kallsyms ksyms;
	bool has_ksyms;
	uint64_t text_va, text_len; /* [_stext, _etext) */
	uint64_t btf_va, btf_size;
	struct rv_padding padding;
	struct rv_site sites[RV_SITES_MAX];
	size_t site_count;
	struct rv_range ranges[RV_RANGES_MAX];
	size_t range_count;
	struct rv_table tables[RV_TABLES_MAX];
	size_t table_count;
	struct rv_protection protections[RV_PROTECTIONS_MAX];
	size_t protection_count;
};

/* --- unpack.c ------------------------------------------------------------------ */

/* A page-aligned buffer with huge pages where the host has them; free() it. */
uint8_t *rv_unpack_buf(size_t len);

/* Which packer the first bytes show; RV_PAYLOAD_NONE for none of ours. */
enum rv_payload rv_unpack_detect(const uint8_t *src, size_t len);

/* Name of a packer that we know and do not read ("bzip2"), or NULL. */
const char *rv_unpack_foreign(const uint8_t *src, size_t len);

/* Unpack exactly dst_len bytes; src_off is where src lies in the file, for errors. */
int rv_unpack(enum rv_payload how, const uint8_t *src, size_t len, uint64_t src_off, uint8_t *dst,
	      size_t dst_len, struct rv_err *err) RV_MUST_CHECK;

/*
 * Refuse an unpacked size that no kernel has: above RV_IMAGE_MAX, or out of all
 * proportion to the packed one, so that a small file cannot take much memory.
 */
int rv_unpack_size_check(uint64_t packed, uint64_t unpacked, uint64_t at,
			 struct rv_err *err) RV_MUST_CHECK;

/* --- formats: each takes over *buf (NULL after it) ------------------------------ */

int rv_bzimage_parse(struct rv_image *img, const uint8_t *file, size_t len,
		     struct rv_err *err) RV_MUST_CHECK;
int rv_elf_parse(struct rv_image *img, uint8_t **buf, size_t len, struct rv_err *err) RV_MUST_CHECK;
int rv_arm64_parse(struct rv_image *img, uint8_t **buf, size_t len,
		   struct rv_err *err) RV_MUST_CHECK;
/* gzip-wrapped Image, or EFI zboot; *done false where it is neither. */
int rv_arm64_wrapped_parse(struct rv_image *img, const uint8_t *file, size_t len, bool *done,
			   struct rv_err *err) RV_MUST_CHECK;
bool rv_bzimage_is(const uint8_t *file, size_t len);
bool rv_elf_is(const uint8_t *file, size_t len);
bool rv_arm64_is(const uint8_t *file, size_t len);

/* --- relocs.c ------------------------------------------------------------------- */

/* The bytes behind the ELF; len 0 is "none", which is legal. */
int rv_relocs_parse(struct rv_image *img, const uint8_t *tail, size_t len, uint64_t file_off,
		    struct rv_err *err) RV_MUST_CHECK;
/* arm64: find .rela.dyn in img->flat, work out link_base, apply to img->flat. */
int rv_rela_find(struct rv_image *img, struct rv_err *err) RV_MUST_CHECK;
/* arm64: undo in a copy what rv_rela_find() applied. */
void rv_rela_strip(const struct rv_image *img, uint8_t *dst);

/* --- names.c -------------------------------------------------------------------- */

/* Symbols of interest; names.c holds the names in the same order. */
enum name_id {
	N_STEXT,
	N_ETEXT,
	N_RODATA,
	N_RODATA_E,
	N_INIT_BEGIN,
	N_ENTRY_START,
	N_ENTRY_END,
	N_BANNER,
	N_BTF_START,
	N_BTF_STOP,
	/* tables: start and stop are neighbours */
	N_JUMP,
	N_JUMP_E,
	N_SCALL,
	N_SCALL_E,
	N_MCOUNT,
	N_MCOUNT_E,
	N_ALT,
	N_ALT_E,
	N_RETURN,
	N_RETURN_E,
	N_RETPOLINE,
	N_RETPOLINE_E,
	N_CALLS,
	N_CALLS_E,
	N_ENDBR,
	N_ENDBR_E,
	N_EXTAB,
	N_EXTAB_E,
	N_ORC_IP,
	N_ORC_IP_E,
	N_ORC,
	N_ORC_E,
	N_SCT,
	/* functions */
	N_KERNEL_INIT,
	N_MARK_RODATA_RO,
	N_SYSCALL64,
	N_SYSCALL64_HW,
	N_DO_SYSCALL_64,
	N_SYSCALL_COMPAT,
	N_SYSCALL_COMPAT_HW,
	N_DO_FAST_SYSCALL_32,
	N_SYSENTER,
	N_SYSENTER_HW,
	N_DO_SYSENTER_32,
	N_ASM_INT80,
	N_INT80_EMU,
	N_INT80_COMPAT,
	N_DO_INT80,
	N_POKE_MEMCPY,
	N_MEMCPY,
	N_MEMCPY_,
	N_TEXT_POKE,
	N_INDIRECT_THUNKS,
	N_MODULE_ALLOC,
	N_EXECMEM_ALLOC,
	N_EXECMEM_VMALLOC,
	N_VMALLOC_RANGE,
	N_VMALLOC_RANGE_NP,
	N_FORTIFY_PANIC,
	N_FORTIFY_PANIC_,
	N_FORTIFY_REPORT,
	N_EL0T64,
	N_EL0T64_H,
	N_EL0T32,
	N_EL0T32_H,
	N_INSN_WRITE,
	N_NOFAULT,
	N_INSN_COPY,
	N_RET_TO_USER,
	N_KFREE_CONST,
	N_KSTRDUP_CONST,
	N_COUNT
};

/* Look all names up; what is not there has count 0. */
int rv_names_resolve(const struct rv_image *img, struct rv_symbol_want w[N_COUNT],
		     struct rv_err *err) RV_MUST_CHECK;

/* --- finders --------------------------------------------------------------------- */

void rv_tables_scan(struct rv_image *img);
/*
 * The longest run of at least min records of size bytes, at a multiple of align behind
 * from, for which is() holds; *count_out is 0 where there is none. is() may read the
 * whole record.
 */
void rv_run_find(const struct rv_image *img, uint64_t from, uint32_t size, uint32_t align,
		 uint32_t min, bool (*is)(const struct rv_image *img, uint64_t off),
		 uint64_t *off_out, uint32_t *count_out);
void rv_tables_find(struct rv_image *img, const struct rv_symbol_want *w);
void rv_sites_find_x86(struct rv_image *img, const struct rv_symbol_want *w);
void rv_sites_find_arm64(struct rv_image *img, const struct rv_symbol_want *w);
void rv_ranges_find(struct rv_image *img, const struct rv_symbol_want *w);
void rv_padding_find(struct rv_image *img, const struct rv_symbol_want *w);
void rv_protections_find(struct rv_image *img);
void rv_btf_find(struct rv_image *img, const struct rv_symbol_want *w);

/* --- sites.c: shared by the finders of sites ------------------------------------ */

#define RV_HITS_MAX 4

struct rv_hits {
	uint64_t va[RV_HITS_MAX], target[RV_HITS_MAX];
	uint8_t len[RV_HITS_MAX];
	uint32_t n; /* may exceed RV_HITS_MAX: then only the count is known */
};

/* Direct calls of target in a function; false with the reason in s where that function
 * cannot be searched. */
typedef bool (*rv_calls_fn)(const struct rv_image *img, struct rv_site *s,
			    const struct rv_symbol_want *from, uint64_t target, struct rv_hits *h);

/* Give the reason: that symbol is not there, or none is. */
void rv_site_missing(const struct rv_image *img, struct rv_site *s,
		     const struct rv_symbol_want *need);
/* Found: fill the place, bytes and all, from the image. target 0: it goes nowhere. how and
 * name together say how it was found ("the call of ", "memcpy"). */
void rv_site_put(const struct rv_image *img, struct rv_site *s, uint64_t va, uint8_t len,
		 uint64_t target, const char *how, const char *name);
void rv_hits_add(struct rv_hits *h, uint64_t va, uint8_t len, uint64_t target);
/* Are there as many as the source has? Otherwise the reason is in s. */
bool rv_hits_ok(struct rv_site *s, const struct rv_hits *h, uint32_t min, uint32_t max,
		const char *holder, const char *target);
/* Where module text comes from: the first holder that calls vmalloc directly. */
void rv_site_module_alloc(struct rv_image *img, const struct rv_symbol_want *w, rv_calls_fn calls);

/* --- helpers (image.c) ------------------------------------------------------------ */

/* Bytes at va inside the flat image, or NULL where [va, va + len) is not all in it. */
const uint8_t *rv_image_bytes(const struct rv_image *img, uint64_t va, uint64_t len);
const struct section *rv_image_section(const struct rv_image *img, const char *name);
/* A new site, table or protection, named and not found; never NULL. */
struct rv_site *rv_site_add(struct rv_image *img, const char *name);
struct rv_table *rv_table_add(struct rv_image *img, const char *name);
const struct rv_table *rv_table_get(const struct rv_image *img, const char *name);

#endif
