/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranges.c: where text and rodata begin and end, and the function that patches go
 * through; each with how it was found.
 *
 * By symbol. An arm64 kernel without CONFIG_KALLSYMS_ALL names no data, so rodata's
 * bounds are read from code: kfree_const() and kstrdup_const() ask is_kernel_rodata()
 * (include/asm-generic/sections.h, mm/util.c), which compares with __start_rodata and
 * __end_rodata. Both functions must say the same, and what they say must fit the image.
 */
#include "parts.h"

#include <stdio.h>

#define PAGE 4096ull
/* __start_rodata is _etext, aligned to a segment: 64 KiB with any page size (SEGMENT_ALIGN,
 * arch/arm64/include/asm/memory.h), 2 MiB before v4.19 and on x86. */
#define TEXT_GAP_MAX (2ull << 20)
/* The comparisons are the first thing that both functions do. */
#define WORDS_MAX 24u
#define FUNC_MAX  (64u << 10)

static struct rv_range *range_add(struct rv_image *img, const char *name)
{
	struct rv_range *r;

	if (img->range_count == RV_RANGES_MAX)
		img->range_count--;
	r = &img->ranges[img->range_count++];
	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

static void found(struct rv_range *r, uint64_t from, uint64_t to)
{
	r->found = true;
	r->va = from;
	r->size = to - from;
	r->reason[0] = 0;
}

/* Two symbols as bounds; false where one is not there or they make no sense. */
static bool by_symbols(const struct rv_image *img, struct rv_range *r,
		       const struct rv_symbol_want *from, const struct rv_symbol_want *to)
{
	if (!img->has_ksyms)
		snprintf(r->reason, sizeof(r->reason), "no symbols: %.90s",
			 img->info.symbols_reason);
	else if (!from->count || !to->count)
		snprintf(r->reason, sizeof(r->reason), "no symbol %.60s",
			 (from->count ? to : from)->name);
	else if (to->va <= from->va || !rv_image_bytes(img, from->va, to->va - from->va))
		snprintf(r->reason, sizeof(r->reason), "%.40s and %.40s are no range of the image",
			 from->name, to->name);
	else
		found(r, from->va, to->va);
	if (r->found)
		snprintf(r->how, sizeof(r->how), "symbols %.34s, %.34s", from->name, to->name);
	return r->found;
}

static uint32_t word(const uint8_t *p, uint32_t i)
{
	uint32_t w;

	memcpy(&w, p + 4ull * i, sizeof(w));
	return w;
}

/* adrp xd, page; add xd, xd, #low at word i (Arm ARM, C6.2 "ADRP", "ADD (immediate)"). */
static bool adrp_add(const uint8_t *p, uint64_t va, uint32_t i, uint32_t *rd, uint64_t *out)
{
	uint32_t a = word(p, i), b = word(p, i + 1);
	uint64_t imm = (a >> 5 & 0x7ffff) << 2 | (a >> 29 & 3);

	*rd = a & 31;
	if ((a & 0x9f000000) != 0x90000000 || (b & 0xffc00000) != 0x91000000 || (b & 31) != *rd ||
	    (b >> 5 & 31) != *rd)
		return false;
	imm = (uint64_t)((int64_t)(imm << 43) >> 43) << 12; /* 21 bits, signed, of pages */
	*out = ((va + 4ull * i) & ~0xfffull) + imm + (b >> 10 & 0xfff);
	return true;
}

/*
 * What follows such a pair: cmp xn, xd; b.lo (below: the lower bound) or b.hs (at or
 * above: the upper one), with at most one other instruction before the cmp.
 */
static int bound_kind(const uint8_t *p, uint32_t words, uint32_t i, uint32_t rd)
{
	for (uint32_t k = i + 2; k < i + 4 && k + 1 < words; k++) {
		uint32_t cmp = word(p, k), b = word(p, k + 1);

		if ((cmp & 0xffe0fc1f) != 0xeb00001f || (cmp >> 16 & 31) != rd ||
		    (b & 0xff000010) != 0x54000000)
			continue;
		if ((b & 15) == 3)
			return 1;
		if ((b & 15) == 2)
			return 2;
	}
	return 0;
}

/* The two bounds that a function compares with; false where there are not exactly two. */
static bool compared(const struct rv_image *img, const struct rv_symbol_want *fn, uint64_t *from,
		     uint64_t *to)
{
	uint32_t words, n[3] = {0}, rd;
	uint64_t at[3] = {0}, va;
	const uint8_t *p;

	if (!fn->count || fn->va % 4)
		return false;
	words = fn->size / 4 < WORDS_MAX ? (uint32_t)(fn->size / 4) : WORDS_MAX;
	p = rv_image_bytes(img, fn->va, 4ull * words);
	for (uint32_t i = 0; p && i + 1 < words; i++) {
		int kind;

		if (!adrp_add(p, fn->va, i, &rd, &va))
			continue;
		kind = bound_kind(p, words, i, rd);
		at[kind] = va;
		n[kind]++;
	}
	*from = at[1];
	*to = at[2];
	return n[1] == 1 && n[2] == 1;
}

static bool fits(const struct rv_image *img, const struct rv_symbol_want *w, uint64_t from,
		 uint64_t to)
{
	uint64_t etext = img->text_va + img->text_len;

	if (from % PAGE || to % PAGE || to <= from || !rv_image_bytes(img, from, to - from) ||
	    !img->text_len || from < etext || from - etext >= TEXT_GAP_MAX)
		return false;
	/* The kernel's BTF lies inside (RO_DATA, include/asm-generic/vmlinux.lds.h), init
	 * memory behind. */
	if (img->btf_size && (img->btf_va < from || img->btf_va + img->btf_size > to))
		return false;
	return !w[N_INIT_BEGIN].count || w[N_INIT_BEGIN].va >= to;
}

static void rodata_by_code(const struct rv_image *img, struct rv_range *r,
			   const struct rv_symbol_want *w)
{
	static const enum name_id fns[] = {N_KFREE_CONST, N_KSTRDUP_CONST};
	uint64_t from = 0, to = 0;
	size_t i;

	for (i = 0; i < sizeof(fns) / sizeof(fns[0]); i++) {
		const struct rv_symbol_want *fn = &w[fns[i]];
		uint64_t a, b;

		if (!compared(img, fn, &a, &b)) {
			snprintf(r->reason, sizeof(r->reason),
				 "no symbol __start_rodata, and %.40s %s", fn->name,
				 fn->count ? "compares with no two bounds" : "is not there");
			return;
		}
		if (i && (a != from || b != to)) {
			snprintf(r->reason, sizeof(r->reason),
				 "no symbol __start_rodata; %.30s and %.30s disagree",
				 w[fns[0]].name, fn->name);
			return;
		}
		from = a;
		to = b;
	}
	if (!fits(img, w, from, to)) {
		snprintf(r->reason, sizeof(r->reason),
			 "no symbol __start_rodata; 0x%llx..0x%llx in %.20s is no rodata",
			 (unsigned long long)from, (unsigned long long)to, w[fns[0]].name);
		return;
	}
	found(r, from, to);
	snprintf(r->how, sizeof(r->how), "what kfree_const and kstrdup_const compare with");
}

/* The function whose stores are the kernel's patches on arm64. */
static void function(struct rv_image *img, const char *name, const struct rv_symbol_want *fn)
{
	struct rv_range *r = range_add(img, name);

	if (!img->has_ksyms)
		snprintf(r->reason, sizeof(r->reason), "no symbols: %.90s",
			 img->info.symbols_reason);
	else if (!fn->count)
		snprintf(r->reason, sizeof(r->reason), "no symbol %.60s", fn->name);
	else if (!fn->size || fn->size > FUNC_MAX || fn->va < img->text_va ||
		 fn->va + fn->size > img->text_va + img->text_len)
		snprintf(r->reason, sizeof(r->reason), "%.40s has %llu bytes and is not in text",
			 fn->name, (unsigned long long)fn->size);
	else
		found(r, fn->va, fn->va + fn->size);
	if (r->found)
		snprintf(r->how, sizeof(r->how), "symbol %.40s, up to the next one", fn->name);
}

void rv_ranges_find(struct rv_image *img, const struct rv_symbol_want *w)
{
	struct rv_range *r = range_add(img, "text");

	(void)by_symbols(img, r, &w[N_STEXT], &w[N_ETEXT]);
	r = range_add(img, "rodata");
	if (!by_symbols(img, r, &w[N_RODATA], &w[N_RODATA_E]) && img->has_ksyms &&
	    img->info.arch == RV_ARCH_ARM64)
		rodata_by_code(img, r, w);
	function(img, "copy_to_kernel_nofault", &w[N_NOFAULT]);
}
