/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64.c: the stage-1 walk of VMSAv8-64 at EL1, as data.
 *
 * Arm ARM (DDI 0487) D8: "The AArch64 Virtual Memory System Architecture"; D8.2
 * translation process (granules, TxSZ, start level), D8.3 descriptor formats, D8.4 access
 * rights; D24.2 the registers. Named by section title where numbers moved between issues.
 *
 * As on x86, what an intact kernel never has is bad data: reserved encodings and RES0
 * bits, which the processor answers with a translation or address size fault, or ignores.
 * The contiguous hint and the access flag do not change where an address leads, and
 * permission overlays (POE) can only take rights away: none of them is looked at.
 */
#include "paging/paging.h"

#define SCTLR_M	  (1ull << 0)
#define SCTLR_WXN (1ull << 19)
#define SCTLR_EE  (1ull << 25)

#define TCR_DS	  (1ull << 59)
#define TCR2_PIE  (1ull << 1)
#define TCR2_D128 (1ull << 5)

/* D8.3, "VMSAv8-64 descriptor formats". */
#define DESC_VALID	(1ull << 0)
#define DESC_TABLE	(1ull << 1) /* at the last level: page */
#define DESC_AP_USER	(1ull << 6)
#define DESC_AP_RO	(1ull << 7)
#define DESC_NT		(1ull << 16) /* FEAT_BBM, in blocks */
#define DESC_DBM	(1ull << 51)
#define DESC_PXN	(1ull << 53)
#define DESC_UXN	(1ull << 54)
#define TABLE_PXN	(1ull << 59)
#define TABLE_UXN	(1ull << 60)
#define TABLE_AP_NOUSER (1ull << 61)
#define TABLE_AP_RO	(1ull << 62)

#define LAST_LEVEL  3
#define PA_BITS_MIN 32u
#define PA_BITS_MAX 52u

struct walk {
	struct rv_view *v;
	uint64_t va;
	bool upper;	   /* translated by TTBR1 */
	uint32_t granule;  /* 12, 14 or 16: bits of a page */
	uint32_t stride;   /* bits of an index: granule - 3 */
	uint32_t in_bits;  /* width of the input address */
	uint32_t out_bits; /* width of an output address */
	bool ds;	   /* LPA2 form: 4K or 16K granule and 52-bit addresses */
	bool hpd;	   /* rights in table descriptors do not count */
	bool pie;	   /* rights come from PIR_EL1 and PIRE0_EL1 */
	uint64_t table;
	uint64_t seen[RV_PAGING_MAX_LEVELS]; /* tables passed, the root first */
	uint32_t nseen;
	bool no_user, no_write, pxn, uxn; /* what the tables passed take away */
	struct rv_translation *out;
	struct rv_err *err;
};

static uint64_t low_bits(uint32_t n)
{
	return (1ull << n) - 1;
}

static uint32_t field(uint64_t reg, uint32_t lsb, uint32_t width)
{
	return (uint32_t)(reg >> lsb & low_bits(width));
}

/* Address bits below an entry of this level: log2 of what it maps. */
static uint32_t level_shift(const struct walk *w, int level)
{
	return w->granule + w->stride * (uint32_t)(LAST_LEVEL - level);
}

static int bad(struct walk *w, uint64_t at, uint64_t entry, int level, const char *why)
{
	return rv_err_at(w->err, RV_EBADDATA, at, "paging",
			 "level %d entry 0x%llx for va 0x%llx: %s", level,
			 (unsigned long long)entry, (unsigned long long)w->va, why);
}

/* TCR_EL1.TG0 and TG1 number the granules differently; 0 for a reserved value. */
static uint32_t granule_of(uint64_t tcr, bool upper)
{
	static const uint8_t tg0[4] = {12, 16, 14, 0}, tg1[4] = {0, 14, 12, 16};

	return upper ? tg1[field(tcr, 30, 2)] : tg0[field(tcr, 14, 2)];
}

/* D8.2, "Output address size": TCR_EL1.IPS, the CPU's own width, and the descriptor's. */
static uint32_t out_bits_of(const struct walk *w, uint64_t tcr)
{
	static const uint8_t ips[8] = {32, 36, 40, 42, 44, 48, 52, 52};
	uint32_t bits = w->v->regs.pa_bits ? w->v->regs.pa_bits : PA_BITS_MAX;
	uint32_t limit = ips[field(tcr, 32, 3)];

	if (bits < PA_BITS_MIN)
		bits = PA_BITS_MIN;
	if (limit == PA_BITS_MAX && w->granule != 16 && !w->ds)
		limit = 48;
	return bits < limit ? bits : limit;
}

/*
 * D8.2, "Translation table base address register" and the pseudocode S1TTBaseAddress():
 * aligned to the size of the first table, and with 52-bit addresses to 64 bytes, bits
 * 5:2 then being 51:48 of the address.
 */
static uint64_t root_of(const struct walk *w, uint64_t ttbr, int level)
{
	uint32_t align = w->in_bits - level_shift(w, level) + 3;
	uint64_t base = ttbr & low_bits(48) & ~1ull;

	if (w->ds || (w->granule == 16 && field(w->v->regs.arm64.tcr, 32, 3) == 6)) {
		base = (base & ~0x3full) | (uint64_t)field(ttbr, 2, 4) << 48;
		align = align < 6 ? 6 : align;
	}
	return base & ~low_bits(align);
}

/*
 * Registers -> the shape of the walk; *level is where it starts. Bit 55 chooses the half
 * (D8.2, "Selecting the TTBR"), whether the top byte counts or not.
 */
static int shape(struct walk *w, int *level)
{
	const struct rv_paging_regs *r = &w->v->regs;
	uint64_t tcr = r->arm64.tcr;
	uint32_t txsz, min, max, top;

	w->upper = w->va >> 55 & 1;
	w->granule = granule_of(tcr, w->upper);
	if (!w->granule)
		return rv_err_at(w->err, RV_EBADDATA, w->va, "paging",
				 "TCR_EL1 0x%llx has a reserved granule", (unsigned long long)tcr);
	w->stride = w->granule - 3;
	w->ds = w->granule != 16 && (tcr & TCR_DS);
	txsz = field(tcr, w->upper ? 16 : 0, 6);
	/* The tables of D8.2 for each granule; above 39 with FEAT_TTST. */
	min = w->granule == 16 || w->ds ? 12 : 16;
	max = w->granule == 16 ? 47 : 48;
	if (txsz < min || txsz > max)
		return rv_err_at(w->err, RV_EBADDATA, w->va, "paging",
				 "TCR_EL1 0x%llx: T%uSZ is %u, expected %u to %u",
				 (unsigned long long)tcr, w->upper, txsz, min, max);
	w->in_bits = 64 - txsz;
	/* With the top byte ignored (TBI0, TBI1) the address ends at bit 55. */
	top = tcr >> (w->upper ? 38 : 37) & 1 ? 56 : 64;
	if (((w->upper ? ~w->va : w->va) << (64 - top)) >> (64 - top) >> w->in_bits)
		return rv_err_at(w->err, RV_ENOTMAPPED, w->va, "paging", "not a canonical address");
	if (tcr >> (w->upper ? 23 : 7) & 1)
		return rv_err_at(w->err, RV_ENOTMAPPED, w->va, "paging",
				 "table walks are off in this half (TCR_EL1.EPD%u)", w->upper);
	w->out_bits = out_bits_of(w, tcr);
	w->pie = r->arm64.tcr2 & TCR2_PIE;
	w->hpd = w->pie || (tcr >> (w->upper ? 42 : 41) & 1);
	*level = LAST_LEVEL + 1 - (int)((w->in_bits - w->granule + w->stride - 1) / w->stride);
	w->table = root_of(w, w->upper ? r->arm64.ttbr1 : r->arm64.ttbr0, *level);
	if (w->table >> w->out_bits)
		return rv_err_at(w->err, RV_EBADDATA, w->table, "paging",
				 "TTBR%u_EL1 lies beyond %u address bits", w->upper, w->out_bits);
	return RV_OK;
}

/* Output address of an entry, aligned to 1 << shift. */
static uint64_t address_of(const struct walk *w, uint64_t e, uint32_t shift)
{
	uint64_t a;

	e &= ~w->v->regs.enc_mask;
	a = e & low_bits(w->ds ? 50 : 48) & ~low_bits(shift);
	if (w->ds)
		a |= (uint64_t)field(e, 8, 2) << 50;
	else if (w->granule == 16)
		a |= (uint64_t)field(e, 12, 4) << 48;
	return a;
}

/* RES0 between the attributes and the address, and above it where it ends at bit 47. */
static bool reserved(const struct walk *w, uint64_t e, uint32_t shift, bool block)
{
	uint64_t mask = low_bits(shift) & ~low_bits(w->granule == 16 ? 16 : 12);

	if (block)
		mask &= ~DESC_NT;
	if (!w->ds)
		mask |= 3ull << 48;
	return e & mask & ~w->v->regs.enc_mask;
}

/* D8.3, "Block descriptor": pseudocode BlockDescSupported(). */
static bool block_allowed(const struct walk *w, int level)
{
	uint32_t pa = w->v->regs.pa_bits;

	switch (w->granule) {
	case 12: return level == 2 || level == 1 || (level == 0 && w->ds);
	case 14: return level == 2 || (level == 1 && w->ds);
	default: return level == 2 || (level == 1 && (!pa || pa >= PA_BITS_MAX));
	}
}

/* D8.4, "Direct permissions": AP, PXN, UXN and what the tables above left of them. */
static void rights_direct(const struct walk *w, uint64_t e)
{
	struct rv_translation *out = w->out;

	out->user = (e & DESC_AP_USER) && !w->no_user;
	out->write = !(e & DESC_AP_RO) && !w->no_write;
	out->user_write = out->user && out->write;
	/* What user mode can write, EL1 never executes. */
	out->nx = (e & DESC_PXN) || w->pxn || out->user_write;
	out->user_nx = (e & DESC_UXN) || w->uxn;
}

#define R 4u
#define W 2u
#define X 1u
/*
 * D8.4, "Indirect permissions" (FEAT_S1PIE): the entry holds a number, the registers say
 * what it means. 6 is write and execute with WXN built in; reserved values give nothing.
 */
static void rights_indirect(const struct walk *w, uint64_t e)
{
	static const uint8_t meaning[16] = {0, R, X,	 R | X, 0,     R | W, R | W,	 R | W | X,
					    R, R, R | X, 0,	R | W, 0,     R | W | X, 0};
	uint32_t i = field(e, 53, 2) << 2 | (e & DESC_DBM ? 2 : 0) | (e & DESC_AP_USER ? 1 : 0);
	uint32_t el1 = meaning[field(w->v->regs.arm64.pir, 4 * i, 4)];
	uint32_t el0 = meaning[field(w->v->regs.arm64.pire0, 4 * i, 4)];
	struct rv_translation *out = w->out;

	out->user = el0 & R;
	out->write = el1 & W;
	out->user_write = el0 & W;
	out->nx = !(el1 & X) || out->user_write;
	out->user_nx = !(el0 & X);
}
#undef R
#undef W
#undef X

static int leaf(struct walk *w, uint64_t at, uint64_t e, int level)
{
	const struct rv_paging_regs *r = &w->v->regs;
	uint32_t shift = level_shift(w, level);
	struct rv_translation *out = w->out;
	uint64_t pa = address_of(w, e, shift);

	if (reserved(w, e, shift, level != LAST_LEVEL))
		return bad(w, at, e, level, "reserved bits are set");
	if (pa >> w->out_bits)
		return bad(w, at, e, level, "the address is too wide");
	if (w->pie)
		rights_indirect(w, e);
	else
		rights_direct(w, e);
	if (r->arm64.sctlr & SCTLR_WXN) {
		out->nx = out->nx || out->write;
		out->user_nx = out->user_nx || out->user_write;
	}
	/* E0PD0, E0PD1: no access from user mode in this half at all. */
	if (r->arm64.tcr >> (w->upper ? 56 : 55) & 1) {
		out->user = out->user_write = false;
		out->user_nx = true;
	}
	out->gpa = rv_gpa_of(pa | (w->va & low_bits(shift)));
	return RV_OK;
}

static bool seen(const struct walk *w, uint64_t table)
{
	for (uint32_t i = 0; i < w->nseen; i++)
		if (w->seen[i] >> w->granule == table >> w->granule)
			return true;
	return false;
}

static int descend(struct walk *w, uint64_t at, uint64_t e, int level)
{
	if (reserved(w, e, w->granule, false))
		return bad(w, at, e, level, "reserved bits are set");
	w->table = address_of(w, e, w->granule);
	if (w->table >> w->out_bits)
		return bad(w, at, e, level, "the address is too wide");
	/* Linux has no recursive mapping; a table that is its own ancestor would
	 * let one page pass for several levels. */
	if (seen(w, w->table))
		return bad(w, at, e, level, "the table points back to itself");
	if (w->hpd)
		return RV_OK;
	w->no_user = w->no_user || (e & TABLE_AP_NOUSER);
	w->no_write = w->no_write || (e & TABLE_AP_RO);
	w->pxn = w->pxn || (e & TABLE_PXN);
	w->uxn = w->uxn || (e & TABLE_UXN);
	return RV_OK;
}

/* One level. Sets *end at the end of the walk. */
static int step(struct walk *w, int level, bool *end)
{
	uint32_t shift = level_shift(w, level);
	uint32_t bits = w->in_bits - shift < w->stride ? w->in_bits - shift : w->stride;
	uint64_t at = w->table + (w->va >> shift & low_bits(bits)) * 8;
	struct rv_translation *out = w->out;
	uint64_t e = 0;
	int rc;

	w->seen[w->nseen++] = w->table;
	rc = rv_view_read_phys(w->v, rv_gpa_of(at), &e, sizeof(e), w->err);
	if (rc == RV_ENOTMAPPED)
		return bad(w, at, 0, level, "the table lies outside RAM");
	if (rc)
		return rc;
	out->step[out->nsteps++] =
		(struct rv_paging_step){rv_gpa_of(at), e, (uint32_t)(LAST_LEVEL + 1 - level)};
	out->page_size = 1ull << shift;
	if (!(e & DESC_VALID))
		return rv_err_at(w->err, RV_ENOTMAPPED, w->va, "paging", "not valid at level %d",
				 level);
	if (level == LAST_LEVEL && !(e & DESC_TABLE))
		return bad(w, at, e, level, "a reserved encoding at the last level");
	if (level != LAST_LEVEL && (e & DESC_TABLE))
		return descend(w, at, e, level);
	if (level != LAST_LEVEL && !block_allowed(w, level))
		return bad(w, at, e, level, "no blocks of that size exist");
	*end = true;
	return leaf(w, at, e, level);
}

static int translate(struct rv_view *v, rv_gva gva, struct rv_translation *out, struct rv_err *err)
{
	const struct rv_paging_regs *r = &v->regs;
	struct walk w = {.v = v, .va = gva.v, .out = out, .err = err};
	bool end = false;
	int level = LAST_LEVEL, rc;

	if (!(r->arm64.sctlr & SCTLR_M))
		return rv_err_at(err, RV_EUNSUPPORTED, gva.v, "paging",
				 "the MMU is off (SCTLR_EL1 0x%llx)",
				 (unsigned long long)r->arm64.sctlr);
	if (r->arm64.sctlr & SCTLR_EE)
		return rv_err_at(err, RV_EUNSUPPORTED, gva.v, "paging", "big-endian page tables");
	if (r->arm64.tcr2 & TCR2_D128)
		return rv_err_at(err, RV_EUNSUPPORTED, gva.v, "paging", "128-bit descriptors");
	rc = shape(&w, &level);
	for (; !rc && !end && level <= LAST_LEVEL; level++)
		rc = step(&w, level, &end);
	return rc;
}

const struct rv_paging_ops rv_paging_arm64 = {
	.name = "arm64",
	.translate = translate,
};
