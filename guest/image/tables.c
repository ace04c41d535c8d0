/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c: the kernel's tables of places in its own text that it patches, and of
 * fixups. By symbol, else by section, else (arm64, tables_scan.c) by their shape.
 * Each entry is looked at: a table with one entry that points nowhere is not one.
 */
#include "parts.h"

#include <stdio.h>

/* What an entry is made of. */
enum shape {
	SHAPE_REL1, /* s32, relative to itself */
	SHAPE_REL2, /* two of them, and more behind */
	SHAPE_ABS,  /* u64 address, or 0 */
	SHAPE_ORC,  /* 6 opaque bytes */
};

struct spec {
	const char *name;
	enum name_id start, stop;
	const char *section;
	enum shape shape;
	uint8_t sizes[4]; /* entry sizes that exist; the one that makes sense is taken */
};

/*
 * struct alt_instr of x86: 12 bytes (u16 cpuid, since v5.17 without padlen), 14 (u32
 * flags since v6.3, commit 5d1dd961e743 "x86/alternatives: Add alt_instr.flags"), 13
 * before v5.17; arm64: 12. struct exception_table_entry: 12 (x86; arm64 since v5.16), 8.
 */
static const struct spec specs[] = {
	{"jump_table", N_JUMP, N_JUMP_E, NULL, SHAPE_REL2, {16}},
	{"static_call_sites", N_SCALL, N_SCALL_E, ".static_call_sites", SHAPE_REL2, {8}},
	{"mcount_loc", N_MCOUNT, N_MCOUNT_E, NULL, SHAPE_ABS, {8}},
	{"altinstructions", N_ALT, N_ALT_E, ".altinstructions", SHAPE_REL2, {12, 14, 13}},
	{"return_sites", N_RETURN, N_RETURN_E, ".return_sites", SHAPE_REL1, {4}},
	{"retpoline_sites", N_RETPOLINE, N_RETPOLINE_E, ".retpoline_sites", SHAPE_REL1, {4}},
	{"call_sites", N_CALLS, N_CALLS_E, ".call_sites", SHAPE_REL1, {4}},
	{"ibt_endbr", N_ENDBR, N_ENDBR_E, ".ibt_endbr_seal", SHAPE_REL1, {4}},
	{"ex_table", N_EXTAB, N_EXTAB_E, "__ex_table", SHAPE_REL2, {12, 8}},
	{"orc_ip", N_ORC_IP, N_ORC_IP_E, ".orc_unwind_ip", SHAPE_REL1, {4}},
	{"orc", N_ORC, N_ORC_E, ".orc_unwind", SHAPE_ORC, {6}},
};

/* These exist on x86 only; on arm64 they are left out, not reported as missing. */
static bool x86_only(enum name_id id)
{
	return id == N_SCALL || id == N_RETURN || id == N_RETPOLINE || id == N_CALLS ||
	       id == N_ENDBR || id == N_ORC_IP || id == N_ORC;
}

static bool rel_inside(const struct rv_image *img, const uint8_t *p)
{
	uint64_t at = (uint64_t)(p - img->flat);
	int32_t rel;

	memcpy(&rel, p, sizeof(rel));
	/* mem_size, not flat_size: a static key may lie in bss. */
	return at + (uint64_t)(int64_t)rel < img->info.mem_size;
}

static bool entries_valid(const struct rv_image *img, const uint8_t *p, uint32_t n, uint32_t size,
			  enum shape shape)
{
	uint32_t i;

	for (i = 0; i < n; i++, p += size) {
		uint64_t v;

		switch (shape) {
		case SHAPE_ORC: return true;
		case SHAPE_ABS:
			memcpy(&v, p, sizeof(v));
			if (v && !rv_image_bytes(img, v, 1))
				return false;
			break;
		case SHAPE_REL2:
			if (!rel_inside(img, p + 4))
				return false;
			/* fall through */
		case SHAPE_REL1:
			if (!rel_inside(img, p))
				return false;
		}
	}
	return true;
}

static void fill(const struct rv_image *img, struct rv_table *t, const struct spec *s, uint64_t va,
		 uint64_t size, const char *how)
{
	const uint8_t *p = rv_image_bytes(img, va, size);
	size_t i;

	if (!p) {
		snprintf(t->reason, sizeof(t->reason), "0x%llx..0x%llx lies outside the image",
			 (unsigned long long)va, (unsigned long long)(va + size));
		return;
	}
	for (i = 0; i < sizeof(s->sizes) && s->sizes[i]; i++) {
		uint32_t n = (uint32_t)(size / s->sizes[i]);

		if (size % s->sizes[i] || !entries_valid(img, p, n, s->sizes[i], s->shape))
			continue;
		t->found = true;
		t->va = va;
		t->size = size;
		t->count = n;
		t->entry_size = s->sizes[i];
		snprintf(t->how, sizeof(t->how), "%s", how);
		return;
	}
	snprintf(t->reason, sizeof(t->reason),
		 "%llu bytes at 0x%llx are no array of entries that point into the image",
		 (unsigned long long)size, (unsigned long long)va);
}

static void find_one(struct rv_image *img, const struct rv_symbol_want *w, const struct spec *s)
{
	struct rv_table *t = rv_table_add(img, s->name);
	const struct section *sec = s->section ? rv_image_section(img, s->section) : NULL;

	if (w[s->start].count && w[s->stop].count && w[s->stop].va > w[s->start].va)
		fill(img, t, s, w[s->start].va, w[s->stop].va - w[s->start].va, "symbols");
	else if (sec && sec->size)
		fill(img, t, s, sec->va, sec->size, "section");
	else if (!img->has_ksyms)
		snprintf(t->reason, sizeof(t->reason), "no symbols: %.90s",
			 img->info.symbols_reason);
	else
		snprintf(t->reason, sizeof(t->reason), "no symbol %.40s and no section",
			 w[s->start].name);
}

/* __SCT__ trampolines are functions of 8 bytes; only their names tell them apart. */
static void static_call_tramps(struct rv_image *img, const struct rv_symbol_want *w)
{
	struct rv_table *t = rv_table_add(img, "static_call_tramps");

	if (!w->count) {
		snprintf(t->reason, sizeof(t->reason), "no symbol begins with __SCT__");
		return;
	}
	t->found = true;
	t->va = w->va;
	t->size = w->last + 8 - w->va;
	t->count = w->count;
	t->entry_size = 8;
	snprintf(t->how, sizeof(t->how), "symbols");
}

void rv_tables_find(struct rv_image *img, const struct rv_symbol_want *w)
{
	const struct rv_table *ip, *orc;
	size_t i;

	for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (img->info.arch == RV_ARCH_X86_64 || !x86_only(specs[i].start))
			find_one(img, w, &specs[i]);
	if (img->info.arch != RV_ARCH_X86_64) {
		rv_tables_scan(img);
		return;
	}
	static_call_tramps(img, &w[N_SCT]);
	ip = rv_table_get(img, "orc_ip");
	orc = rv_table_get(img, "orc");
	if (ip && orc && ip->found && orc->found && ip->count != orc->count) {
		struct rv_table *t = &img->tables[orc - img->tables];

		t->found = false;
		t->how[0] = 0;
		snprintf(t->reason, sizeof(t->reason), "%u entries for %u addresses", orc->count,
			 ip->count);
	}
}
