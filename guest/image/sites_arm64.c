/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites_arm64.c: the calls of an arm64 kernel that the monitor redirects.
 *
 * Instructions are words, so a BL is told from everything else by its own bits (Arm
 * ARM, C6.2.34) and needs no disassembler. As on x86: one function by name, calls one
 * function by name, exactly as often as the source has it.
 */
#include "parts.h"

#include <stdio.h>

#define BL_MASK 0xfc000000u
#define BL_OP	0x94000000u
#define WORD	4

/* el0t_64_sync is the longest, some 3 KB with the exception entry macros in line. */
#define FUNC_MAX (64u << 10)
#define HITS_MAX 4

static void missing(struct rv_site *s, const struct rv_image *img,
		    const struct rv_symbol_want *need)
{
	if (!img->has_ksyms)
		snprintf(s->reason, sizeof(s->reason), "no symbols: %.90s",
			 img->info.symbols_reason);
	else
		snprintf(s->reason, sizeof(s->reason), "no symbol %.60s", need->name);
}

static void put(struct rv_image *img, struct rv_site *s, uint64_t va, uint64_t target)
{
	const uint8_t *p = rv_image_bytes(img, va, WORD);
	struct rv_symbol sym;
	uint64_t off;

	if (!p || rv_kallsyms_nearest(&img->ksyms, va, &sym, &off, NULL)) {
		snprintf(s->reason, sizeof(s->reason), "0x%llx lies outside the image",
			 (unsigned long long)va);
		return;
	}
	s->found = true;
	s->va = va;
	s->target = target;
	s->len = WORD;
	memcpy(s->bytes, p, WORD);
	snprintf(s->symbol, sizeof(s->symbol), "%.63s", sym.name);
	s->symbol_off = (uint32_t)off;
	s->reason[0] = 0;
}

/* BL to target in a function; the count may exceed HITS_MAX, the places do not. */
static bool bl_find(const struct rv_image *img, struct rv_site *s, const struct rv_symbol_want *fn,
		    uint64_t target, uint64_t hits[HITS_MAX], uint32_t *n_out)
{
	const uint8_t *p = rv_image_bytes(img, fn->va, fn->size);
	uint64_t i;
	uint32_t n = 0;

	if (!p || fn->va % WORD || fn->size < WORD || fn->size > FUNC_MAX) {
		snprintf(s->reason, sizeof(s->reason),
			 "%.40s has %llu bytes, expected 4 to %u inside the image", fn->name,
			 (unsigned long long)fn->size, FUNC_MAX);
		return false;
	}
	for (i = 0; i + WORD <= fn->size; i += WORD) {
		uint32_t w;
		int64_t rel;

		memcpy(&w, p + i, sizeof(w));
		if ((w & BL_MASK) != BL_OP)
			continue;
		/* imm26 counts words and is signed */
		rel = (int64_t)((uint64_t)w << 38) >> 36;
		if (fn->va + i + (uint64_t)rel != target)
			continue;
		if (n < HITS_MAX)
			hits[n] = fn->va + i;
		n++;
	}
	*n_out = n;
	return true;
}

static void one_call(struct rv_image *img, const char *name, const struct rv_symbol_want *from,
		     const struct rv_symbol_want *to)
{
	struct rv_site *s = rv_site_add(img, name);
	uint64_t hits[HITS_MAX];
	uint32_t n;

	if (!from->count || !to->count) {
		missing(s, img, from->count ? to : from);
		return;
	}
	if (!bl_find(img, s, from, to->va, hits, &n))
		return;
	if (n == 1)
		put(img, s, hits[0], to->va);
	else
		snprintf(s->reason, sizeof(s->reason), "%.38s calls %.38s %u times, expected 1",
			 from->name, to->name, n);
}

static void module_alloc(struct rv_image *img, const struct rv_symbol_want *w)
{
	static const enum name_id holders[] = {N_EXECMEM_VMALLOC, N_EXECMEM_ALLOC, N_MODULE_ALLOC};
	struct rv_site *s = rv_site_add(img, "module_alloc");
	struct rv_site *f = rv_site_add(img, "module_alloc_fallback");
	const struct rv_symbol_want *to = &w[N_VMALLOC_RANGE_NP];
	size_t i;

	if (!to->count)
		to = &w[N_VMALLOC_RANGE];
	missing(s, img, to->count ? &w[N_MODULE_ALLOC] : to);
	for (i = 0; i < 3 && to->count && !s->found; i++) {
		const struct rv_symbol_want *from = &w[holders[i]];
		uint64_t hits[HITS_MAX];
		uint32_t n;

		if (!from->count)
			continue;
		if (!bl_find(img, s, from, to->va, hits, &n))
			break;
		if (n < 1 || n > 2) {
			snprintf(s->reason, sizeof(s->reason),
				 "%.38s calls %.38s %u times, expected 1 or 2", from->name,
				 to->name, n);
			continue;
		}
		/* The second tries the larger range where the first one is full. */
		put(img, s, hits[0], to->va);
		if (n == 2)
			put(img, f, hits[1], to->va);
	}
	if (!f->found)
		snprintf(f->reason, sizeof(f->reason), "%s",
			 s->found ? "this kernel has one range only" : "no module_alloc");
}

static void entry(struct rv_image *img, const char *name, const struct rv_symbol_want *fn,
		  const struct rv_symbol_want *alt)
{
	struct rv_site *s = rv_site_add(img, name);

	if (!fn->count && alt)
		fn = alt;
	if (fn->count)
		put(img, s, fn->va, 0);
	else
		missing(s, img, fn);
}

void rv_sites_find_arm64(struct rv_image *img, const struct rv_symbol_want *w)
{
	one_call(img, "mark_rodata_ro", &w[N_KERNEL_INIT], &w[N_MARK_RODATA_RO]);
	one_call(img, "syscall64", &w[N_EL0T64], &w[N_EL0T64_H]);
	one_call(img, "syscall32", &w[N_EL0T32], &w[N_EL0T32_H]);
	/* Jump labels, ftrace and kprobes write text here, one word at a time. */
	entry(img, "insn_write", &w[N_INSN_WRITE], NULL);
	one_call(img, "insn_write_nofault", &w[N_INSN_WRITE], &w[N_NOFAULT]);
	/* BPF, since v6.9 (commit 451c3cab9a65 "arm64: patching: implement text_poke API") */
	entry(img, "text_poke", &w[N_TEXT_POKE], NULL);
	module_alloc(img, w);
	entry(img, "fortify_panic", &w[N_FORTIFY_PANIC], &w[N_FORTIFY_PANIC_]);
	entry(img, "fortify_report", &w[N_FORTIFY_REPORT], NULL);
}
