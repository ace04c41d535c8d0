/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86_64.c: the 4- and 5-level walk of IA-32e paging, as data.
 *
 * Intel SDM vol. 3A ch. 4 "Paging" (4.5: structures, reserved bits; 4.6: rights),
 * AMD APM vol. 2 ch. 5. What the processor would answer with a reserved-bit fault
 * is bad data here: an intact kernel never has it, so it is evidence.
 */
#include "paging/paging.h"

#define CR4_PAE	 (1ull << 5)
#define CR4_LA57 (1ull << 12)
#define EFER_LMA (1ull << 10)
#define EFER_NXE (1ull << 11)

#define PTE_P  (1ull << 0)
#define PTE_RW (1ull << 1)
#define PTE_US (1ull << 2)
#define PTE_PS (1ull << 7)
#define PTE_NX (1ull << 63)

/* Bits 51:12 can hold an address; which of them may is the processor's width. */
#define ADDR_BITS   0x000ffffffffff000ull
#define PA_BITS_MAX 52u
#define PA_BITS_MIN 32u

struct walk {
	struct rv_view *v;
	uint64_t va;
	uint64_t addr_mask; /* bits of an entry that are address */
	uint64_t rsvd_mask; /* bits that must be zero at every level */
	uint64_t table;
	uint64_t seen[RV_PAGING_MAX_LEVELS]; /* tables passed, the root first */
	uint32_t nseen;
	struct rv_translation *out;
	struct rv_err *err;
};

static uint64_t level_size(uint32_t level)
{
	return 4096ull << (9 * (level - 1));
}

static bool canonical(uint64_t va, uint32_t levels)
{
	uint32_t bits = levels == 5 ? 57 : 48;
	uint64_t high = va >> (bits - 1);

	return high == 0 || high == ~0ull >> (bits - 1);
}

static void masks_init(struct walk *w)
{
	const struct rv_paging_regs *r = &w->v->regs;
	uint32_t bits = r->pa_bits ? r->pa_bits : PA_BITS_MAX;
	uint64_t width;

	if (bits > PA_BITS_MAX)
		bits = PA_BITS_MAX;
	if (bits < PA_BITS_MIN)
		bits = PA_BITS_MIN;
	width = (1ull << bits) - 1;
	w->addr_mask = ADDR_BITS & width & ~r->enc_mask;
	w->rsvd_mask = ADDR_BITS & ~width & ~r->enc_mask;
	if (!(r->x86.efer & EFER_NXE))
		w->rsvd_mask |= PTE_NX;
}

static int bad(struct walk *w, uint64_t at, uint64_t entry, uint32_t level, const char *why)
{
	return rv_err_at(w->err, RV_EBADDATA, at, "paging",
			 "level %u entry 0x%llx for va 0x%llx: %s", level,
			 (unsigned long long)entry, (unsigned long long)w->va, why);
}

/* SDM tables 4-14 .. 4-20: which bits below the address are reserved in a leaf. */
static bool leaf_reserved(uint64_t entry, uint32_t level)
{
	if (level == 1)
		return false;
	/* Bit 12 is PAT in a large page; from 13 to the page size must be zero. */
	return entry & (level_size(level) - 1) & ~0x1fffull;
}

static bool seen(const struct walk *w, uint64_t table)
{
	for (uint32_t i = 0; i < w->nseen; i++)
		if (w->seen[i] == table)
			return true;
	return false;
}

/* One level. Sets *leaf at the end of the walk. */
static int step(struct walk *w, uint32_t level, bool *leaf)
{
	struct rv_translation *out = w->out;
	uint64_t at = w->table + ((w->va >> (12 + 9 * (level - 1))) & 511) * 8;
	uint64_t e = 0;
	int rc;

	w->seen[w->nseen++] = w->table;
	rc = rv_view_read_phys(w->v, rv_gpa_of(at), &e, sizeof(e), w->err);
	if (rc == RV_ENOTMAPPED)
		return bad(w, at, 0, level, "the table lies outside RAM");
	if (rc)
		return rc;
	out->step[out->nsteps++] = (struct rv_paging_step){rv_gpa_of(at), e, level};
	out->page_size = level_size(level);
	if (!(e & PTE_P))
		return rv_err_at(w->err, RV_ENOTMAPPED, w->va, "paging", "not present at level %u",
				 level);
	if (e & w->rsvd_mask)
		return bad(w, at, e, level, "reserved bits are set");
	out->user = out->user && (e & PTE_US);
	out->write = out->write && (e & PTE_RW);
	out->nx = out->nx || (e & PTE_NX);
	*leaf = level == 1 || (level <= 3 && (e & PTE_PS));
	if (*leaf) {
		uint64_t in_page = level_size(level) - 1;

		if (leaf_reserved(e, level))
			return bad(w, at, e, level, "reserved bits of a large page are set");
		out->gpa = rv_gpa_of((e & w->addr_mask & ~in_page) | (w->va & in_page));
		out->user_write = out->user && out->write;
		out->user_nx = out->nx || !out->user;
		return RV_OK;
	}
	if (e & PTE_PS)
		return bad(w, at, e, level, "no pages of that size exist");
	w->table = e & w->addr_mask;
	/* Linux has no recursive mapping; a table that is its own ancestor would
	 * let one page pass for several levels. */
	if (seen(w, w->table))
		return bad(w, at, e, level, "the table points back to itself");
	return RV_OK;
}

static int translate(struct rv_view *v, rv_gva gva, struct rv_translation *out, struct rv_err *err)
{
	const struct rv_paging_regs *r = &v->regs;
	uint32_t levels = r->x86.cr4 & CR4_LA57 ? 5 : 4;
	struct walk w = {.v = v, .va = gva.v, .out = out, .err = err};
	bool leaf = false;

	if (!(r->x86.efer & EFER_LMA) || !(r->x86.cr4 & CR4_PAE))
		return rv_err_at(err, RV_EUNSUPPORTED, gva.v, "paging",
				 "the vcpu is not in long mode (cr4 0x%llx, efer 0x%llx)",
				 (unsigned long long)r->x86.cr4, (unsigned long long)r->x86.efer);
	if (!canonical(gva.v, levels))
		return rv_err_at(err, RV_ENOTMAPPED, gva.v, "paging", "not a canonical address");
	masks_init(&w);
	/* PCID, PWT/PCD and LAM bits of CR3 lie outside the mask. */
	w.table = r->x86.cr3 & w.addr_mask;
	out->user = out->write = true;
	for (uint32_t level = levels; level >= 1 && !leaf; level--) {
		int rc = step(&w, level, &leaf);

		if (rc)
			return rc;
	}
	return RV_OK;
}

const struct rv_paging_ops rv_paging_x86_64 = {
	.name = "x86_64",
	.translate = translate,
};
