/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_scan.c: tables of an arm64 kernel whose kallsyms has functions only
 * (CONFIG_KALLSYMS_ALL=n) and whose Image has no sections: the longest run of records
 * that make sense as that table. Each rule is strict enough that the runs come out
 * exact on kernels where the symbols are there to compare.
 */
#include "parts.h"

#include <stdio.h>

/* A shorter run is no table of a real kernel, but an accident. */
#define RUN_MIN 64

#define NOP	 0xd503201fu
#define B_MASK	 0xfc000000u
#define B_OP	 0x14000000u
#define ALT_MAX	 64  /* bytes that one alternative replaces; 4.19 to 6.12 stay below */
#define FEATURES 512 /* CPU features: 6.12 has 110; bit 15 says "callback" */
#define EX_TYPES 16  /* 6.12 has 5 types of fixup */

static uint64_t rel32(const struct rv_image *img, uint64_t off)
{
	int32_t v;

	memcpy(&v, img->flat + off, sizeof(v));
	return off + (uint64_t)(int64_t)v;
}

static bool code_at(const struct rv_image *img, uint64_t off, uint32_t *word)
{
	return off % 4 == 0 && rv_get(img->flat, img->info.flat_size, off, word, sizeof(*word));
}

/* struct jump_entry: NOP or B at code; target is code; the key is data, 2 flag bits. */
static bool is_jump(const struct rv_image *img, uint64_t off)
{
	uint64_t key;
	uint32_t w, t;

	if (!code_at(img, rel32(img, off), &w) || !code_at(img, rel32(img, off + 4), &t))
		return false;
	if (w != NOP && (w & B_MASK) != B_OP)
		return false;
	memcpy(&key, img->flat + off + 8, sizeof(key));
	key += off + 8;
	return (key & ~3ull) < img->info.mem_size;
}

/* The address of a patchable NOP at the start of a function. */
static bool is_mcount(const struct rv_image *img, uint64_t off)
{
	uint64_t va;
	uint32_t w;

	memcpy(&va, img->flat + off, sizeof(va));
	return va >= img->info.link_base && code_at(img, va - img->info.link_base, &w) && w == NOP;
}

/* struct alt_instr: as long as what it replaces, or a callback of length 0. */
static bool is_alt(const struct rv_image *img, uint64_t off)
{
	const uint8_t *p = img->flat + off;
	uint16_t feature;
	uint32_t w;

	memcpy(&feature, p + 8, sizeof(feature));
	if (!p[10] || p[10] % 4 || p[10] > ALT_MAX || (p[11] && p[11] != p[10]) ||
	    (feature & 0x7fff) >= FEATURES)
		return false;
	return code_at(img, rel32(img, off), &w) && code_at(img, rel32(img, off + 4), &w);
}

/* struct exception_table_entry since v5.16: insn, fixup, type, data. */
static bool is_extab(const struct rv_image *img, uint64_t off)
{
	uint64_t insn = rel32(img, off), fixup = rel32(img, off + 4);
	uint16_t type;
	uint32_t w;

	memcpy(&type, img->flat + off + 8, sizeof(type));
	if (!type || type >= EX_TYPES || insn == fixup)
		return false;
	/* Only code that may fault has one: it lies in .text, not in data. */
	return insn < img->text_va + img->text_len - img->info.link_base &&
	       fixup < img->text_va + img->text_len - img->info.link_base &&
	       code_at(img, insn, &w) && code_at(img, fixup, &w);
}

static const struct {
	const char *name;
	uint8_t size, align;
	bool (*is)(const struct rv_image *img, uint64_t off);
} shapes[] = {
	{"jump_table", 16, 8, is_jump},
	{"mcount_loc", 8, 8, is_mcount},
	{"altinstructions", 12, 4, is_alt},
	{"ex_table", 12, 4, is_extab},
};

void rv_run_find(const struct rv_image *img, uint64_t from, uint32_t size, uint32_t align,
		 uint32_t min, bool (*is)(const struct rv_image *img, uint64_t off),
		 uint64_t *off_out, uint32_t *count_out)
{
	uint64_t end = img->info.flat_size, step = (uint64_t)size * min, phase, off;

	*off_out = 0;
	*count_out = 0;
	for (phase = from; phase < from + size; phase += align) {
		uint64_t done = phase; /* nothing before this is looked at again */

		/* A run of min records has one at every min-th place: look only there. */
		for (off = phase; off + size <= end; off += step) {
			uint64_t a = off, b = off;

			if (off < done || !is(img, off))
				continue;
			while (a > done && is(img, a - size))
				a -= size;
			while (b + size <= end && is(img, b))
				b += size;
			done = b;
			if ((b - a) / size >= min && (b - a) / size > *count_out) {
				*count_out = (uint32_t)((b - a) / size);
				*off_out = a;
			}
		}
	}
}

static void scan(struct rv_image *img, struct rv_table *t, uint32_t size, uint32_t align,
		 bool (*is)(const struct rv_image *img, uint64_t off))
{
	/* Tables are data: begin behind .text, at a multiple of all alignments. */
	uint64_t from = (img->text_va + img->text_len - img->info.link_base + 7) & ~7ull, best;
	uint32_t best_n;

	rv_run_find(img, from, size, align, RUN_MIN, is, &best, &best_n);
	if (best_n < RUN_MIN) {
		snprintf(t->reason, sizeof(t->reason),
			 "no symbol, and no run of %d or more such entries", RUN_MIN);
		return;
	}
	t->found = true;
	t->reason[0] = 0;
	snprintf(t->how, sizeof(t->how), "the longest run of such entries");
	t->va = img->info.link_base + best;
	t->count = best_n;
	t->entry_size = size;
	t->size = (uint64_t)best_n * size;
}

void rv_tables_scan(struct rv_image *img)
{
	size_t i, k;

	if (!img->text_len || !img->info.has_relocs)
		return;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (k = 0; k < img->table_count; k++)
			if (strcmp(img->tables[k].name, shapes[i].name) == 0 &&
			    !img->tables[k].found)
				scan(img, &img->tables[k], shapes[i].size, shapes[i].align,
				     shapes[i].is);
}
