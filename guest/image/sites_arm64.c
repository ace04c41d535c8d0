/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites_arm64.c: the calls of an arm64 kernel that the monitor redirects.
 *
 * Instructions are words, so a BL is told from everything else by its own bits (Arm
 * ARM, C6.2.34) and needs no disassembler. As on x86: one function by name, calls one
 * function by name, exactly as often as the source has it.
 */
#include "base/a64.h"
#include "parts.h"

#include <stdio.h>

#define WORD 4

/* el0t_64_sync is the longest, some 3 KB with the exception entry macros in line. */
#define FUNC_MAX (64u << 10)

/* BL to target in a function. */
static bool bl_find(const struct rv_image *img, struct rv_site *s, const struct rv_symbol_want *fn,
		    uint64_t target, struct rv_hits *h)
{
	const uint8_t *p = rv_image_bytes(img, fn->va, fn->size);
	uint64_t i;

	if (!p || fn->va % WORD || fn->size < WORD || fn->size > FUNC_MAX) {
		snprintf(s->reason, sizeof(s->reason),
			 "%.40s has %llu bytes, expected 4 to %u inside the image", fn->name,
			 (unsigned long long)fn->size, FUNC_MAX);
		return false;
	}
	for (i = 0; i + WORD <= fn->size; i += WORD) {
		uint64_t leads;
		uint32_t w;

		memcpy(&w, p + i, sizeof(w));
		if (rv_a64_bl_target(w, fn->va + i, &leads) && leads == target)
			rv_hits_add(h, fn->va + i, WORD, target);
	}
	return true;
}

static void one_call(struct rv_image *img, const char *name, const struct rv_symbol_want *from,
		     const struct rv_symbol_want *to)
{
	struct rv_site *s = rv_site_add(img, name);
	struct rv_hits h = {0};

	if (!from->count || !to->count) {
		rv_site_missing(img, s, from->count ? to : from);
		return;
	}
	if (bl_find(img, s, from, to->va, &h) && rv_hits_ok(s, &h, 1, 1, from->name, to->name))
		rv_site_put(img, s, h.va[0], WORD, to->va, "the call of ", to->name);
}

static void entry(struct rv_image *img, const char *name, const struct rv_symbol_want *fn,
		  const struct rv_symbol_want *alt)
{
	struct rv_site *s = rv_site_add(img, name);

	if (!fn->count && alt)
		fn = alt;
	if (fn->count)
		rv_site_put(img, s, fn->va, WORD, 0, "symbol ", fn->name);
	else
		rv_site_missing(img, s, fn);
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
	rv_site_module_alloc(img, w, bl_find);
	entry(img, "fortify_panic", &w[N_FORTIFY_PANIC], &w[N_FORTIFY_PANIC_]);
	entry(img, "fortify_report", &w[N_FORTIFY_REPORT], NULL);
}
