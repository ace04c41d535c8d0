/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind.c: who called, by the kernel's own ORC tables (x86-64).
 *
 * ORC says for every instruction where the caller's frame is. The tables are two
 * arrays: 32-bit addresses relative to their own place, sorted, and 6-byte
 * entries (Documentation/arch/x86/orc-unwinder.rst; arch/x86/kernel/unwind_orc.c,
 * whose steps are followed here). An entry is
 *
 *	s16 sp_offset, s16 bp_offset, then a 16-bit word:
 *	sp_reg:4, bp_reg:4, type:2, end:1	before v6.4
 *	sp_reg:4, bp_reg:4, type:3, signal:1	from v6.4 on (fb799447ae29 "x86,objtool:
 *						Split UNWIND_HINT_EMPTY in two")
 *
 * Which of the two a kernel has is told by its BTF. Frames that need a register
 * that was not given (R10, DI, ...) end the walk: nothing is guessed.
 */
#include "linux/linux.h"

#include <string.h>

/* The kernel's deepest stacks have some 60 frames; an IRQ on top adds 20. */
#define MAX_FRAMES 128u
/* 407,338 entries in 6.12; a table is refused above ten times that. */
#define MAX_ORC (4u << 20)
/* A module's share: the largest has some 200,000. */
#define MAX_MODULE_ORC (1u << 20)

/* Each one walks the list of modules. Stacks that pass through more modules than that
 * (network stacks through some eight) are cut, so that a forged stack costs little. */
#define MAX_MODULE_LOOKUPS 16u

/* enum values of arch/x86/include/asm/orc_types.h */
enum {
	REG_UNDEFINED,
	REG_PREV_SP,
	REG_DX,
	REG_DI,
	REG_BP,
	REG_SP,
	REG_R10,
	REG_R13,
	REG_BP_INDIRECT,
	REG_SP_INDIRECT
};

enum frame_kind {
	FRAME_NONE,    /* nothing is known */
	FRAME_END,     /* the stack ends here */
	FRAME_CALL,    /* a return address */
	FRAME_REGS,    /* a whole pt_regs */
	FRAME_PARTIAL, /* the hardware's part of one */
};

struct orc {
	int16_t sp_offset, bp_offset;
	uint16_t bits;
};
_Static_assert(sizeof(struct orc) == 6, "orc_entry is packed");

/* struct pt_regs, as ptrace and signal frames have fixed it (asm/ptrace.h). */
#define REGS_BP	 32u
#define REGS_IP	 128u
#define REGS_CS	 136u
#define REGS_SP	 152u
#define REGS_LEN 168u

struct state {
	const struct rv_kernel *k;
	struct rv_view v;
	uint64_t ip, sp, bp;
	bool exact; /* ip is the instruction itself, not a return address */
	bool bp_known;
	uint32_t lookups;
	struct rv_module mod; /* the last one found: neighbours are often in the same */
	struct rv_module_mem part;
};

static enum frame_kind frame_of(const struct rv_kernel *k, const struct orc *o)
{
	static const enum frame_kind now[8] = {FRAME_NONE, FRAME_END, FRAME_CALL, FRAME_REGS,
					       FRAME_PARTIAL};
	static const enum frame_kind before[4] = {FRAME_CALL, FRAME_REGS, FRAME_PARTIAL,
						  FRAME_NONE};

	if (k->orc.type_bits == 3)
		return now[o->bits >> 8 & 7];
	if ((o->bits & 15) == REG_UNDEFINED)
		return o->bits & 1u << 10 ? FRAME_END : FRAME_NONE;
	return before[o->bits >> 8 & 3];
}

/* The address that entry i of a table speaks for. */
static bool orc_ip(struct state *s, uint64_t table, uint64_t i, uint64_t *out)
{
	uint32_t rel;

	if (rv_view_read_u32(&s->v, rv_gva_of(table + i * 4), &rel, NULL))
		return false;
	*out = table + i * 4 + (uint64_t)(int64_t)(int32_t)rel;
	return true;
}

/* The last entry at or below ip. A table that is not sorted gives some entry. */
static bool orc_search(struct state *s, uint64_t ips, uint64_t entries, uint64_t n, uint64_t ip,
		       struct orc *out)
{
	uint64_t lo = 0, hi = n, at;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!orc_ip(s, ips, mid, &at))
			return false;
		if (at <= ip)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && !rv_view_read(&s->v, rv_gva_of(entries + (lo - 1) * sizeof(*out)), out,
				   sizeof(*out), NULL);
}

/* The module text that holds ip, into s->mod and s->part. */
static bool find_module(struct state *s, uint64_t ip)
{
	if (s->part.size && ip - s->part.base < s->part.size)
		return true;
	s->part.size = 0;
	if (!s->k->cap[RV_KCAP_MODULE_ORC].ok || !(ip >> 63) ||
	    s->lookups++ >= MAX_MODULE_LOOKUPS || rv_module_find(s->k, ip, &s->mod, &s->part, NULL))
		return false;
	if (s->part.kind != RV_SECT_TEXT && s->part.kind != RV_SECT_INIT_TEXT)
		s->part.size = 0;
	return s->part.size;
}

static bool orc_find(struct state *s, uint64_t ip, struct orc *out)
{
	const struct rv_kernel *k = s->k;
	rv_gpa gpa;

	if (!rv_kernel_image_gpa(k, ip, &gpa)) {
		uint64_t n = (k->orc.ip_end - k->orc.ip) / 4;

		if (!k->cap[RV_KCAP_ORC].ok || n > MAX_ORC ||
		    n > (k->orc.entry_end - k->orc.entry) / sizeof(*out))
			return false;
		return orc_search(s, k->orc.ip, k->orc.entry, n, ip, out);
	}
	if (!find_module(s, ip) || s->mod.num_orcs > MAX_MODULE_ORC)
		return false;
	return orc_search(s, s->mod.orc_ip, s->mod.orc, s->mod.num_orcs, ip, out);
}

/* Stacks are kernel memory and 8-byte aligned. */
static bool peek(struct state *s, uint64_t at, uint64_t *out)
{
	return at >> 63 && at % 8 == 0 && !rv_view_read_u64(&s->v, rv_gva_of(at), out, NULL);
}

/* Where the caller's stack pointer was before the call pushed. */
static bool prev_sp(struct state *s, const struct orc *o, uint64_t *out)
{
	uint64_t off = (uint64_t)(int64_t)o->sp_offset;

	switch (o->bits & 15) {
	case REG_SP: *out = s->sp + off; return true;
	case REG_BP: *out = s->bp + off; return s->bp_known;
	case REG_SP_INDIRECT:
		if (!peek(s, s->sp, out))
			return false;
		*out += off;
		return true;
	case REG_BP_INDIRECT: return s->bp_known && peek(s, s->bp + off, out);
	default: return false;
	}
}

static bool prev_bp(struct state *s, const struct orc *o, uint64_t sp)
{
	uint64_t off = (uint64_t)(int64_t)o->bp_offset;

	switch (o->bits >> 4 & 15) {
	case REG_UNDEFINED: return true; /* not touched by this function */
	case REG_PREV_SP: s->bp_known = peek(s, sp + off, &s->bp); return s->bp_known;
	case REG_BP: s->bp_known = s->bp_known && peek(s, s->bp + off, &s->bp); return s->bp_known;
	default: return false;
	}
}

/* From an exception or system call frame at regs to what was interrupted. */
static bool from_regs(struct state *s, uint64_t regs, bool whole, bool *user)
{
	uint64_t cs;

	if (!peek(s, regs + REGS_IP, &s->ip) || !peek(s, regs + REGS_CS, &cs) ||
	    !peek(s, regs + REGS_SP, &s->sp))
		return false;
	*user = cs & 3;
	if (whole)
		s->bp_known = peek(s, regs + REGS_BP, &s->bp);
	s->exact = true;
	return true;
}

/* One frame up. *done: the end was reached, or user mode. */
static bool unwind_step(struct state *s, bool *done)
{
	enum frame_kind kind;
	struct orc o;
	uint64_t sp;

	/* A return address may be the first byte of the next function: look before it. */
	if (!orc_find(s, s->exact ? s->ip : s->ip - 1, &o))
		return false;
	kind = frame_of(s->k, &o);
	*done = kind == FRAME_END;
	if (kind == FRAME_NONE || kind == FRAME_END || !prev_sp(s, &o, &sp))
		return false;
	switch (kind) {
	case FRAME_CALL:
		if (!peek(s, sp - 8, &s->ip))
			return false;
		s->sp = sp;
		s->exact = false;
		return prev_bp(s, &o, sp);
	case FRAME_REGS: return from_regs(s, sp, true, done);
	case FRAME_PARTIAL: return from_regs(s, sp - REGS_IP, false, done);
	default: return false;
	}
}

size_t rv_kernel_unwind(const struct rv_kernel *k, const struct rv_unwind_regs *regs, uint64_t *out,
			size_t max, bool *complete_out)
{
	struct state s = {.k = k, .ip = regs->ip, .sp = regs->sp, .bp = regs->bp};
	bool done = false;
	size_t n = 0;

	if (complete_out)
		*complete_out = false;
	if (k->regs.arch == RV_ARCH_ARM64)
		return rv_unwind_records(k, regs, out, max, complete_out);
	if (!k->orc.type_bits || !(s.ip >> 63) || rv_kernel_view(k, &s.v, NULL))
		return 0;
	s.exact = true;
	s.bp_known = true;
	while (n < max && n < MAX_FRAMES && unwind_step(&s, &done) && !done) {
		if (!(s.ip >> 63))
			break;
		out[n++] = s.ip;
	}
	if (complete_out)
		*complete_out = done;
	return n;
}
