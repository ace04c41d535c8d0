/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relocs.c: relocation tables, x86's own behind the ELF and arm64's .rela.dyn.
 *
 * x86 (arch/x86/tools/relocs.c, read by handle_relocations() in
 * arch/x86/boot/compressed/misc.c): 32-bit words read from the end backwards, three
 * lists that each end with a 0 in front: 32-bit, inverse 32-bit, 64-bit. Kernels
 * without zero-based per-CPU data (v6.15) have no inverse list.
 */
#include "parts.h"

#include <elf.h>
#include <stdlib.h>

/* The largest table seen has 240,000 entries; 8 million would be 32 MiB. */
#define RELOCS_MAX (8u << 20)

#define RELA_SIZE    sizeof(Elf64_Rela)
#define RELA_MIN_RUN 256 /* fewer RELATIVE records in a row than this are no kernel's */
#define ARM64_ALIGN  (2ull << 20)
#define ARM64_VA_LOW 0xff80000000000000ull /* TTBR1 addresses; v4.19 on link above this */

static int list_check(const struct rv_image *img, const struct reloc_list *l, uint32_t width,
		      uint64_t off, struct rv_err *err)
{
	uint64_t limit = img->info.flat_size;
	uint32_t i;

	for (i = 0; i < l->count; i++) {
		uint64_t at = (uint64_t)(int64_t)l->at[i] - img->info.link_base;

		if (at >= limit || limit - at < width)
			return rv_err_at(err, RV_EBADDATA, off + 4ull * i, "relocs",
					 "entry 0x%x is outside the image", (uint32_t)l->at[i]);
	}
	return 0;
}

int rv_relocs_parse(struct rv_image *img, const uint8_t *tail, size_t len, uint64_t file_off,
		    struct rv_err *err)
{
	uint32_t n = (uint32_t)(len / 4), end, lists, i;
	int rc = 0;

	if (len == 0)
		return 0;
	if (len % 4 || len < 8 || len / 4 > RELOCS_MAX)
		return rv_err_at(err, RV_EBADDATA, file_off, "relocs",
				 "%zu bytes behind the ELF, expected relocations of 4 bytes each",
				 len);
	img->reloc_store = malloc(len);
	if (!img->reloc_store)
		return rv_err_set(err, RV_ENOMEM, "relocs", "no memory for %zu bytes", len);
	memcpy(img->reloc_store, tail, len);
	for (lists = 0, end = n; end && lists < 3; lists++) {
		for (i = end; i > 0 && img->reloc_store[i - 1]; i--)
			;
		if (i == 0)
			return rv_err_at(err, RV_EBADDATA, file_off, "relocs",
					 "the tables do not begin with a 0");
		img->relocs[lists].at = img->reloc_store + i;
		img->relocs[lists].count = end - i;
		end = i - 1;
	}
	if (end || lists < 2)
		return rv_err_at(err, RV_EBADDATA, file_off + 4ull * end, "relocs",
				 "%u lists and %u words left over, expected 2 or 3 and none", lists,
				 end);
	if (lists == 2) {
		img->relocs[2] = img->relocs[1];
		img->relocs[1].count = 0;
	}
	for (i = 0; i < 3 && !rc; i++) {
		uint64_t at = file_off + (uint64_t)((const uint8_t *)img->relocs[i].at -
						    (const uint8_t *)img->reloc_store);

		rc = list_check(img, &img->relocs[i], i == 2 ? 8 : 4, at, err);
		img->info.relocs[i] = img->relocs[i].count;
	}
	img->info.has_relocs = rc == 0;
	return rc;
}

static void apply_x86(const struct rv_image *img, uint8_t *dst, uint64_t delta)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		const struct reloc_list *l = &img->relocs[i];
		uint32_t add = i == 1 ? 0u - (uint32_t)delta : (uint32_t)delta, k;

		for (k = 0; k < l->count; k++) {
			uint8_t *p = dst + ((uint64_t)(int64_t)l->at[k] - img->info.link_base);
			uint32_t v;
			uint64_t w;

			if (i < 2) {
				memcpy(&v, p, sizeof(v));
				v += add;
				memcpy(p, &v, sizeof(v));
			} else {
				memcpy(&w, p, sizeof(w));
				w += delta;
				memcpy(p, &w, sizeof(w));
			}
		}
	}
}

/* --- arm64 ------------------------------------------------------------------------ */

static void rela_at(const struct rv_image *img, uint64_t n, Elf64_Rela *out)
{
	memcpy(out, img->flat + img->rela_off + n * RELA_SIZE, sizeof(*out));
}

/* In dst: field = addend + delta, or as it is in the file when put is false. */
static void apply_arm64(const struct rv_image *img, uint8_t *dst, uint64_t delta, bool put)
{
	uint32_t i, kept = 0;

	for (i = 0; i < img->info.relocs[2]; i++) {
		Elf64_Rela r;
		uint64_t v;

		rela_at(img, i, &r);
		v = put ? (uint64_t)r.r_addend + delta : 0;
		if (!put && kept < img->rela_kept_count && img->rela_kept[kept] == i) {
			v = (uint64_t)r.r_addend;
			kept++;
		}
		/* The record was checked when it was found, and img->flat is ours. */
		memcpy(dst + (r.r_offset - img->info.link_base), &v, sizeof(v));
	}
}

/* r_info is the second of three words; R_AARCH64_RELATIVE (0x403) names no symbol. */
static bool is_relative(const struct rv_image *img, uint64_t off)
{
	uint64_t info;

	memcpy(&info, img->flat + off + 8, sizeof(info));
	return info == R_AARCH64_RELATIVE;
}

/*
 * With this base, are all records inside the image, over fields that the file leaves 0?
 * A dozen hold their addend already (weak symbols: those of kallsyms and BTF); which
 * ones is kept, so that the file's own bytes can be loaded.
 */
static bool rela_base_fits(struct rv_image *img, uint64_t base, uint32_t count)
{
	uint32_t i, kept = 0;

	for (i = 0; i < count; i++) {
		uint64_t off, addend, field;
		Elf64_Rela r;

		rela_at(img, i, &r);
		off = r.r_offset - base;
		addend = (uint64_t)r.r_addend - base;
		if (!rv_get(img->flat, img->info.flat_size, off, &field, sizeof(field)))
			return false;
		if (field) {
			if (field != (uint64_t)r.r_addend || kept == RV_RELA_KEPT_MAX)
				return false;
			img->rela_kept[kept++] = i;
		}
		/* A record over the records would undo what is checked here. */
		if (off + 8 > img->rela_off && off < img->rela_off + count * RELA_SIZE)
			return false;
		/*
		 * One past the end is _end, which is legal; data before the base is not,
		 * but 0 is: ftrace's table has empty slots, sorted to its front.
		 */
		if (addend > img->info.mem_size && r.r_addend)
			return false;
	}
	img->rela_kept_count = kept;
	return true;
}

int rv_rela_find(struct rv_image *img, struct rv_err *err)
{
	uint64_t low = UINT64_MAX, base, found = 0;
	uint32_t count, i, fits = 0;

	rv_run_find(img, 0, RELA_SIZE, 8, RELA_MIN_RUN, is_relative, &img->rela_off, &count);
	if (count < RELA_MIN_RUN)
		return rv_err_set(err, RV_ENOSYM, "relocs",
				  "no run of R_AARCH64_RELATIVE records: the kernel is not "
				  "relocatable, or packs them (RELR)");
	for (i = 0; i < count; i++) {
		Elf64_Rela r;

		rela_at(img, i, &r);
		low = r.r_offset < low ? r.r_offset : low;
	}
	/* The base is 2 MiB-aligned (KIMAGE_VADDR) and at most one image below the lowest. */
	base = low & ~(ARM64_ALIGN - 1);
	for (i = 0; i <= img->info.flat_size / ARM64_ALIGN && base >= ARM64_VA_LOW; i++) {
		if (rela_base_fits(img, base, count)) {
			found = base;
			if (++fits > 1)
				break;
		}
		base -= ARM64_ALIGN;
	}
	if (fits != 1)
		return rv_err_at(err, RV_EBADDATA, img->rela_off, "relocs",
				 "%u link addresses agree with %u relocations, expected one", fits,
				 count);
	img->info.link_base = found;
	img->info.relocs[2] = count;
	img->info.has_relocs = true;
	apply_arm64(img, img->flat, 0, true);
	return 0;
}

void rv_rela_strip(const struct rv_image *img, uint8_t *dst)
{
	apply_arm64(img, dst, 0, false);
}

int rv_image_relocate(const struct rv_image *img, void *dst, size_t dst_len, uint64_t delta,
		      struct rv_err *err)
{
	if (!img->info.has_relocs)
		return rv_err_set(err, RV_EUNSUPPORTED, "relocs",
				  "this file carries no relocations");
	if (!dst || dst_len < img->info.flat_size)
		return rv_err_set(err, RV_EINVAL, "relocs", "%zu bytes, expected %llu or more",
				  dst_len, (unsigned long long)img->info.flat_size);
	if (delta % ARM64_ALIGN)
		return rv_err_set(err, RV_EINVAL, "relocs",
				  "delta 0x%llx, expected a multiple of 2 MiB",
				  (unsigned long long)delta);
	if (img->info.arch == RV_ARCH_ARM64)
		apply_arm64(img, dst, delta, true);
	else
		apply_x86(img, dst, delta);
	return 0;
}
