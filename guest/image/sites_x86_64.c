/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites_x86_64.c: the calls and jumps of an x86_64 kernel that the monitor redirects.
 *
 * A site is a direct call or jump from a function known by name to a function known
 * by name. The bytes are searched in the one function only; a hit counts when linear
 * decoding from the function's start arrives at it, so that the middle of another
 * instruction is never taken for a call, and when there are exactly as many as the
 * kernel's source has.
 */
#include "parts.h"

#include <stdio.h>

#include <disasm.h>

#define CALL	0xe8
#define JMP	0xe9
#define REL_LEN 5

/* A function longer than this is not one of ours (the longest, __text_poke, has 1.2 KB). */
#define FUNC_MAX (64u << 10)

/* Bytes at a stub's entry that hold one instruction. */
#define ENTRY_BYTES RV_INSN_MAX

static uint64_t rel_target(const uint8_t *p, uint64_t va)
{
	int32_t rel;

	memcpy(&rel, p + 1, sizeof(rel));
	return va + REL_LEN + (uint64_t)(int64_t)rel;
}

/* Does linear decoding from start come by va? *why is set where it does not. */
static bool on_boundary(const struct rv_image *img, uint64_t start, uint64_t va, char *why,
			size_t why_len)
{
	uint64_t at = start;
	struct rv_insn in;
	struct rv_err err;

	while (at < va) {
		uint64_t left = img->info.link_base + img->info.flat_size - at;

		if (rv_insn_decode(RV_ARCH_X86_64, rv_image_bytes(img, at, 1),
				   left > 16 ? 16 : (size_t)left, at, &in, &err)) {
			snprintf(why, why_len, "%.60s at 0x%llx", err.what, (unsigned long long)at);
			return false;
		}
		at += in.len;
	}
	if (at != va)
		snprintf(why, why_len, "0x%llx is inside another instruction",
			 (unsigned long long)va);
	return at == va;
}

static bool range_ok(const struct rv_image *img, uint64_t start, uint64_t len, struct rv_site *s)
{
	if (len >= REL_LEN && len <= FUNC_MAX && rv_image_bytes(img, start, len))
		return true;
	snprintf(s->reason, sizeof(s->reason),
		 "the function at 0x%llx has %llu bytes, expected 5 to %u",
		 (unsigned long long)start, (unsigned long long)len, FUNC_MAX);
	return false;
}

/*
 * Direct calls (or jumps) to target in [start, start + len). False where a hit is on
 * no instruction boundary, with the reason in the site.
 */
static bool rel_find(const struct rv_image *img, struct rv_site *s, uint64_t start, uint64_t len,
		     uint8_t op, uint64_t target, struct rv_hits *h)
{
	const uint8_t *p = rv_image_bytes(img, start, len);
	uint64_t i;

	memset(h, 0, sizeof(*h));
	if (!range_ok(img, start, len, s))
		return false;
	for (i = 0; i + REL_LEN <= len; i++) {
		uint64_t va = start + i;

		if (p[i] != op || rel_target(p + i, va) != target)
			continue;
		if (!on_boundary(img, start, va, s->reason, sizeof(s->reason)))
			return false;
		rv_hits_add(h, va, REL_LEN, target);
	}
	return true;
}

/* The one call (jump) of to in from; end names the symbol whose end bounds the search. */
static void one_call(struct rv_image *img, const char *name, const struct rv_symbol_want *from,
		     const struct rv_symbol_want *end, uint8_t op, const struct rv_symbol_want *to)
{
	struct rv_site *s = rv_site_add(img, name);
	struct rv_hits h;
	uint64_t stop;

	if (!from->count || !to->count) {
		rv_site_missing(img, s, from->count ? to : from);
		return;
	}
	stop = from->va + from->size;
	if (end && end->count && end->va > from->va)
		stop = end->va + end->size;
	if (rel_find(img, s, from->va, stop - from->va, op, to->va, &h) &&
	    rv_hits_ok(s, &h, 1, 1, from->name, to->name))
		rv_site_put(img, s, h.va[0], REL_LEN, to->va,
			    op == CALL ? "the call of " : "the jump to ", to->name);
}

/* text_poke_memcpy(dst, src, len) is "return memcpy(...)": its tail is the jump. */
static void poke_memcpy(struct rv_image *img, const struct rv_symbol_want *w)
{
	const struct rv_symbol_want *from = &w[N_POKE_MEMCPY], *to = &w[N_MEMCPY];

	/* memcpy and __memcpy are one function (arch/x86/lib/memcpy_64.S). */
	if (!to->count || (w[N_MEMCPY_].count && w[N_MEMCPY_].va != to->va))
		to = &w[N_MEMCPY_];
	one_call(img, "text_poke_memcpy", from, NULL, JMP, to);
}

/* call *%reg, or call of a retpoline thunk for one. */
static bool is_indirect(const uint8_t *p, uint8_t len, uint64_t va,
			const struct rv_symbol_want *thunks, uint64_t *target)
{
	uint8_t n = len, skip = 0;

	/* A cs prefix (2e) pads calls of thunks for r8 to r15, so that 6 bytes can be patched. */
	if (n == 6 && p[0] == 0x2e)
		skip = 1;
	*target = 0;
	if (n - skip == REL_LEN && p[skip] == CALL && thunks->count) {
		*target = rel_target(p + skip, va + skip);
		return *target >= thunks->va && *target <= thunks->last;
	}
	if (n == 2)
		return p[0] == 0xff && (p[1] & 0xf8) == 0xd0;
	return n == 3 && p[0] == 0x41 && p[1] == 0xff && (p[2] & 0xf8) == 0xd0;
}

/*
 * The call of func(dst, src, len) in __text_poke: the only one through a pointer that
 * is no paravirt slot. With a thunk, alternatives may later make it "call *%reg" and
 * fill up with NOPs: the return address is then va + 2 or va + 3, otherwise va + len.
 */
static void poke_call(struct rv_image *img, const struct rv_symbol_want *w)
{
	struct rv_site *s = rv_site_add(img, "text_poke_memcpy_call");
	const struct rv_symbol_want *from = &w[N_TEXT_POKE];
	uint64_t at, end, target;
	struct rv_hits h = {0};

	if (!from->count || !w[N_POKE_MEMCPY].count) {
		rv_site_missing(img, s, from->count ? &w[N_POKE_MEMCPY] : from);
		return;
	}
	if (!range_ok(img, from->va, from->size, s))
		return;
	for (at = from->va, end = at + from->size; at < end;) {
		const uint8_t *p = rv_image_bytes(img, at, 1);
		struct rv_insn in;
		struct rv_err err;

		if (rv_insn_decode(RV_ARCH_X86_64, p, end - at > 16 ? 16 : (size_t)(end - at), at,
				   &in, &err)) {
			snprintf(s->reason, sizeof(s->reason), "%.60s at 0x%llx", err.what,
				 (unsigned long long)at);
			return;
		}
		if (is_indirect(p, in.len, at, &w[N_INDIRECT_THUNKS], &target)) {
			rv_hits_add(&h, at, in.len, target);
		}
		at += in.len;
	}
	if (rv_hits_ok(s, &h, 1, 1, from->name, "a function pointer"))
		rv_site_put(img, s, h.va[0], h.len[0], h.target[0], "the call through ",
			    "a pointer");
}

static bool calls(const struct rv_image *img, struct rv_site *s, const struct rv_symbol_want *from,
		  uint64_t target, struct rv_hits *h)
{
	return rel_find(img, s, from->va, from->size, CALL, target, h);
}

/* A function's entry: its first instruction. */
static void entry(struct rv_image *img, const char *name, const struct rv_symbol_want *fn,
		  const struct rv_symbol_want *alt)
{
	struct rv_site *s = rv_site_add(img, name);
	const uint8_t *p;
	struct rv_insn in;
	struct rv_err err;

	if (!fn->count && alt)
		fn = alt;
	if (!fn->count) {
		rv_site_missing(img, s, fn);
		return;
	}
	p = rv_image_bytes(img, fn->va, ENTRY_BYTES);
	if (!p || rv_insn_decode(RV_ARCH_X86_64, p, ENTRY_BYTES, fn->va, &in, &err))
		snprintf(s->reason, sizeof(s->reason), "%.100s",
			 p ? err.what : "outside the image");
	else
		rv_site_put(img, s, fn->va, in.len, 0, "symbol ", fn->name);
}

void rv_sites_find_x86(struct rv_image *img, const struct rv_symbol_want *w)
{
	one_call(img, "mark_rodata_ro", &w[N_KERNEL_INIT], NULL, CALL, &w[N_MARK_RODATA_RO]);
	poke_memcpy(img, w);
	poke_call(img, w);
	one_call(img, "syscall64", &w[N_SYSCALL64], &w[N_SYSCALL64_HW], CALL, &w[N_DO_SYSCALL_64]);
	one_call(img, "syscall32_fast", &w[N_SYSCALL_COMPAT], &w[N_SYSCALL_COMPAT_HW], CALL,
		 &w[N_DO_FAST_SYSCALL_32]);
	one_call(img, "sysenter32", &w[N_SYSENTER], &w[N_SYSENTER_HW], CALL, &w[N_DO_SYSENTER_32]);
	/* A C function since v6.7 (commit be5341eb0d43 "x86/entry: Convert INT 0x80 emulation
	 * to IDTENTRY", in stable trees too), assembly of its own before. */
	if (w[N_ASM_INT80].count || !w[N_INT80_COMPAT].count)
		one_call(img, "int80", &w[N_ASM_INT80], NULL, CALL, &w[N_INT80_EMU]);
	else
		one_call(img, "int80", &w[N_INT80_COMPAT], NULL, CALL, &w[N_DO_INT80]);
	rv_site_module_alloc(img, w, calls);
	entry(img, "fortify_panic", &w[N_FORTIFY_PANIC], &w[N_FORTIFY_PANIC_]);
	entry(img, "fortify_report", &w[N_FORTIFY_REPORT], NULL);
}
