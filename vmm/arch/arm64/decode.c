/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c: from an A64 instruction and the registers to the memory it would write.
 *
 * By hand, from the encoding tables (Arm ARM C4.1): the load/store space is regular, and
 * a disassembler that is older than the guest's compiler would call new stores "not an
 * instruction". Whatever the tables here leave open is unknown, never "not a store".
 */
#include "decode.h"

#include <string.h>

#define PSTATE_AARCH32 (1ull << 4)
#define PSTATE_C       (1ull << 29)
#define PSTATE_N       (1ull << 31)

/* What a handler works on. */
struct d {
	uint32_t w;
	const struct rv_arm64_regs *r;
	struct rv_arm64_insn *out;
};

static uint32_t bits(uint32_t w, uint32_t lsb, uint32_t n)
{
	return w >> lsb & ((1u << n) - 1);
}

static uint64_t sext(uint64_t v, uint32_t n)
{
	return (uint64_t)((int64_t)(v << (64 - n)) >> (64 - n));
}

static uint64_t xreg(const struct d *d, uint32_t n)
{
	return n == 31 ? 0 : d->r->x[n];
}

/* Rn of an address: 31 is the stack pointer. */
static uint64_t base(const struct d *d)
{
	uint32_t n = bits(d->w, 5, 5);

	return n == 31 ? d->r->sp : d->r->x[n];
}

static void unknown(struct d *d, const char *why)
{
	d->out->kind = RV_ARM64_UNKNOWN;
	d->out->why = why;
}

static void unallocated(struct d *d)
{
	unknown(d, "not allocated");
}

static void no_store(struct d *d)
{
	d->out->kind = RV_ARM64_NOT_A_STORE;
}

static void store(struct d *d, uint64_t va, uint64_t len, uint32_t unit)
{
	d->out->kind = RV_ARM64_STORE;
	d->out->va = va;
	d->out->len = len;
	d->out->unit = unit;
}

/* Append the low n bytes of a general register to the value. */
static void value_add(struct d *d, uint32_t reg, uint32_t n)
{
	uint64_t v = xreg(d, reg);

	if (d->out->value_len + n > sizeof(d->out->value))
		return;
	memcpy(d->out->value + d->out->value_len, &v, n);
	d->out->value_len = (uint8_t)(d->out->value_len + n);
}

/*
 * The base takes a new value. A transfer register that is the base too leaves it open
 * what is stored (Arm ARM, K1.2 "CONSTRAINED UNPREDICTABLE", overlap with write-back).
 */
static void writeback(struct d *d, uint64_t value, uint32_t rt, uint32_t rt2)
{
	uint32_t n = bits(d->w, 5, 5);

	d->out->writeback = true;
	d->out->base = (uint8_t)n;
	d->out->base_value = value;
	if (n != 31 && (n == rt || n == rt2))
		d->out->value_len = 0;
}

/* --- single registers ---------------------------------------------------------- */

enum op { OP_LOAD, OP_STORE, OP_PREFETCH, OP_NONE };

/*
 * size, V and opc of "load/store register" to what is done and log2 of the bytes. The
 * same in all addressing forms, but for prefetch, which the caller admits.
 */
static enum op reg_op(uint32_t w, uint32_t *log2)
{
	uint32_t size = bits(w, 30, 2), opc = bits(w, 22, 2);

	*log2 = size;
	if (bits(w, 26, 1)) {
		if (opc & 2) {
			if (size)
				return OP_NONE;
			*log2 = 4;
		}
		return opc & 1 ? OP_LOAD : OP_STORE;
	}
	switch (opc) {
	case 0: return OP_STORE;
	case 1: return OP_LOAD;
	case 2: return size == 3 ? OP_PREFETCH : OP_LOAD;
	default: return size >= 2 ? OP_NONE : OP_LOAD;
	}
}

/* True for a store, whose address follows; everything else is settled. */
static bool reg_is_store(struct d *d, bool may_prefetch, uint32_t *log2)
{
	switch (reg_op(d->w, log2)) {
	case OP_STORE: return true;
	case OP_LOAD: no_store(d); return false;
	case OP_PREFETCH:
		if (may_prefetch) {
			no_store(d);
			return false;
		}
		/* fall through */
	default: unallocated(d); return false;
	}
}

static void reg_store(struct d *d, uint64_t va, uint32_t log2)
{
	store(d, va, 1ull << log2, 1u << log2);
	if (!bits(d->w, 26, 1))
		value_add(d, bits(d->w, 0, 5), 1u << log2);
}

static void reg_imm(struct d *d)
{
	/* 0 unscaled, 1 post-index, 2 unprivileged, 3 pre-index, 4 unsigned and scaled */
	uint32_t how = bits(d->w, 24, 1) ? 4 : bits(d->w, 10, 2), log2;
	uint64_t off = sext(bits(d->w, 12, 9), 9), b = base(d);
	bool simd = bits(d->w, 26, 1);

	if (how == 2 && simd) {
		unallocated(d);
		return;
	}
	if (!reg_is_store(d, !(how & 3), &log2))
		return;
	if (how == 4)
		off = (uint64_t)bits(d->w, 10, 12) << log2;
	reg_store(d, how == 1 ? b : b + off, log2);
	d->out->unprivileged = how == 2;
	if (how & 1)
		writeback(d, b + off, simd ? 32 : bits(d->w, 0, 5), 32);
}

static void reg_offset(struct d *d)
{
	uint32_t option = bits(d->w, 13, 3), log2;
	uint64_t m = xreg(d, bits(d->w, 16, 5));

	if (!(option & 2)) {
		unallocated(d);
		return;
	}
	if (!reg_is_store(d, true, &log2))
		return;
	if (option == 2)
		m = (uint32_t)m;
	else if (option == 6)
		m = sext((uint32_t)m, 32);
	reg_store(d, base(d) + (bits(d->w, 12, 1) ? m << log2 : m), log2);
}

/* STLUR, LDAPUR and LDAPURS; size 3 with opc 2 and 3, and size 2 with opc 3 have no meaning. */
static void rcpc_unscaled(struct d *d)
{
	uint32_t log2;

	if (reg_is_store(d, false, &log2))
		reg_store(d, base(d) + sext(bits(d->w, 12, 9), 9), log2);
}

/* FEAT_LRCPC3: STLR with pre-index, LDAPR with post-index, by the register's size. */
static void rcpc3_indexed(struct d *d)
{
	uint32_t n = 1u << bits(d->w, 30, 2);

	if (bits(d->w, 22, 1)) {
		no_store(d);
		return;
	}
	store(d, base(d) - n, n, n);
	value_add(d, bits(d->w, 0, 5), n);
	writeback(d, base(d) - n, bits(d->w, 0, 5), 32);
}

/* FEAT_LRCPC3: STILP, LDIAPP. */
static void rcpc3_pair(struct d *d)
{
	uint32_t n = 1u << bits(d->w, 30, 2), t = bits(d->w, 0, 5), t2 = bits(d->w, 16, 5);
	bool pre = !bits(d->w, 12, 1);

	if (bits(d->w, 22, 1)) {
		no_store(d);
		return;
	}
	store(d, pre ? base(d) - 2 * n : base(d), 2 * n, n);
	value_add(d, t, n);
	value_add(d, t2, n);
	if (pre)
		writeback(d, d->out->va, t, t2);
}

/* FEAT_GCS: GCSSTR and GCSSTTR. */
static void gcs_store(struct d *d)
{
	store(d, base(d), 8, 8);
	value_add(d, bits(d->w, 0, 5), 8);
	d->out->unprivileged = bits(d->w, 12, 1);
}

/* --- pairs ------------------------------------------------------------------------ */

static void pair(struct d *d)
{
	uint32_t opc = bits(d->w, 30, 2), how = bits(d->w, 23, 2), t = bits(d->w, 0, 5);
	uint32_t t2 = bits(d->w, 10, 5), log2;
	bool simd = bits(d->w, 26, 1), load = bits(d->w, 22, 1), stgp = false;
	uint64_t off, b = base(d);

	if (opc == 3) {
		unknown(d, "not known: pair with opc 3 (unprivileged, FEAT_LSUI)");
		return;
	}
	if (simd) {
		log2 = 2 + opc;
	} else if (opc == 1) {
		/* LDPSW and STGP; neither has a no-allocate form. */
		if (!how) {
			unallocated(d);
			return;
		}
		stgp = !load;
		log2 = 3;
	} else {
		log2 = opc ? 3 : 2;
	}
	if (load) {
		no_store(d);
		return;
	}
	off = sext(bits(d->w, 15, 7), 7) << (stgp ? 4 : log2);
	store(d, how == 1 ? b : b + off, 2ull << log2, 1u << log2);
	d->out->tags = stgp;
	if (!simd) {
		value_add(d, t, 1u << log2);
		value_add(d, t2, 1u << log2);
	}
	if (how & 1)
		writeback(d, b + off, simd || stgp ? 32 : t, simd || stgp ? 32 : t2);
}

/* --- vectors of structures --------------------------------------------------------- */

static void simd_store(struct d *d, uint32_t len, uint32_t unit)
{
	uint32_t m = bits(d->w, 16, 5);

	store(d, base(d), len, unit);
	if (bits(d->w, 23, 1))
		writeback(d, base(d) + (m == 31 ? len : xreg(d, m)), 32, 32);
}

static void simd_multiple(struct d *d)
{
	/* Registers that each opcode moves; 0 where it is not allocated. */
	static const uint8_t regs[16] = {4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2};
	uint32_t opcode = bits(d->w, 12, 4), n = regs[opcode], size = bits(d->w, 10, 2);
	bool q = bits(d->w, 30, 1), one = opcode & 2; /* LD1, ST1: one-element structures */

	n *= q ? 16 : 8;
	if (!n || (size == 3 && !q && !one))
		unallocated(d);
	else if (bits(d->w, 22, 1))
		no_store(d);
	else
		simd_store(d, n, 1u << size);
}

static void simd_single(struct d *d)
{
	uint32_t opcode = bits(d->w, 13, 3), size = bits(d->w, 10, 2), s = bits(d->w, 12, 1);
	uint32_t scale = opcode >> 1, n = ((opcode & 1) << 1 | bits(d->w, 21, 1)) + 1;
	bool load = bits(d->w, 22, 1), ok = true;

	if (scale == 1)
		ok = !(size & 1);
	else if (scale == 2 && size == 1)
		ok = !s;
	else if (scale == 2)
		ok = !size;
	else if (scale == 3)
		ok = load && !s; /* load and replicate */
	if (scale == 2 && size == 1)
		scale = 3;
	if (!ok)
		unallocated(d);
	else if (load)
		no_store(d);
	else
		simd_store(d, n << scale, 1u << scale);
}

/* FEAT_LRCPC3: STL1 and LDAP1 move one doubleword. */
static void simd_ordered(struct d *d)
{
	if (bits(d->w, 22, 1))
		no_store(d);
	else
		store(d, base(d), 8, 8);
}

/* --- exclusives, ordered, compare and swap ------------------------------------------- */

static void exclusive_store(struct d *d, uint32_t n, bool two)
{
	uint32_t t = bits(d->w, 0, 5), t2 = bits(d->w, 10, 5), s = bits(d->w, 16, 5);
	uint32_t rn = bits(d->w, 5, 5);

	store(d, base(d), two ? 2 * n : n, n);
	value_add(d, t, n);
	if (two)
		value_add(d, t2, n);
	d->out->exclusive = true;
	d->out->status = (uint8_t)s;
	/* The status register among the others: what is stored, and where, is left open. */
	if (s == t || (two && s == t2))
		d->out->value_len = 0;
	if (s == rn && rn != 31)
		unknown(d, "the status register of a store-exclusive is its base");
}

static void swap_compare(struct d *d, uint32_t n, bool two)
{
	uint32_t t = bits(d->w, 0, 5), s = bits(d->w, 16, 5);

	if (bits(d->w, 10, 5) != 31 || (two && ((t | s) & 1))) {
		unallocated(d);
		return;
	}
	store(d, base(d), two ? 2 * n : n, n);
	value_add(d, t, n);
	if (two)
		value_add(d, t + 1, n);
	d->out->conditional = d->out->atomic = true;
}

static void exclusive(struct d *d)
{
	uint32_t size = bits(d->w, 30, 2), n = 1u << size;
	bool o2 = bits(d->w, 23, 1), load = bits(d->w, 22, 1), o1 = bits(d->w, 21, 1);

	if (o2 && o1) {
		swap_compare(d, n, false);
	} else if (o1 && size < 2) {
		swap_compare(d, 4u << size, true);
	} else if (load) {
		no_store(d); /* LDXR, LDXP, LDAR, LDLAR */
	} else if (!o2) {
		exclusive_store(d, n, o1);
	} else {
		store(d, base(d), n, n); /* STLR, STLLR */
		value_add(d, bits(d->w, 0, 5), n);
	}
}

/* --- atomics ------------------------------------------------------------------------- */

static void atomic_store(struct d *d, uint32_t n)
{
	store(d, base(d), n, n);
	d->out->atomic = true;
}

/* FEAT_LS64: 64 bytes in one access, from eight registers. */
static void store64(struct d *d, bool with_status)
{
	uint32_t t = bits(d->w, 0, 5);

	if (t & 1 || t > 22) {
		unallocated(d);
		return;
	}
	store(d, base(d), 64, 64);
	d->out->conditional = with_status;
}

static void atomic_o3(struct d *d, uint32_t opc)
{
	uint32_t size = bits(d->w, 30, 2), ar = bits(d->w, 22, 2), s = bits(d->w, 16, 5);

	if (opc == 0) { /* SWP: the one whose result is known beforehand */
		atomic_store(d, 1u << size);
		value_add(d, s, 1u << size);
	} else if (opc == 4 && ar == 2 && s == 31) {
		no_store(d); /* LDAPR */
	} else if (size == 3 && !ar && opc == 5 && s == 31) {
		no_store(d); /* LD64B */
	} else if (size == 3 && !ar && opc == 1 && s == 31) {
		store64(d, false);
	} else if (size == 3 && !ar && (opc == 2 || opc == 3)) {
		store64(d, true); /* ST64BV0, ST64BV */
	} else if (size < 2 && opc >= 1 && opc <= 3) {
		atomic_store(d, 8); /* RCWCLR, RCWSWP, RCWSET and their RCWS forms */
		d->out->conditional = true;
	} else {
		unknown(d, "not known: atomic operation");
	}
}

static void atomic(struct d *d)
{
	uint32_t opc = bits(d->w, 12, 3);

	if (bits(d->w, 15, 1))
		atomic_o3(d, opc);
	else
		atomic_store(d, 1u << bits(d->w, 30, 2)); /* LDADD .. LDUMIN, STADD .. */
}

/* FEAT_LSE128 and the pairs of FEAT_THE: 16 bytes; bit 30 is S of the latter. */
static void atomic128(struct d *d)
{
	uint32_t op = bits(d->w, 12, 4);
	bool rcw = op >= 9 && op <= 11; /* RCWCLRP, RCWSWPP, RCWSETP */

	if (!rcw && (bits(d->w, 30, 1) || (op != 1 && op != 3 && op != 8))) {
		unknown(d, "not known: 128-bit atomic operation");
		return;
	}
	atomic_store(d, 16);
	d->out->conditional = rcw;
	if (op == 8) { /* SWPP */
		value_add(d, bits(d->w, 0, 5), 8);
		value_add(d, bits(d->w, 16, 5), 8);
	}
}

/* FEAT_THE: RCWCAS, RCWCASP. */
static void rcw_cas(struct d *d)
{
	uint32_t t = bits(d->w, 0, 5), s = bits(d->w, 16, 5);
	bool two = bits(d->w, 10, 1);

	if (two && ((t | s) & 1)) {
		unallocated(d);
		return;
	}
	/* Which bits may change is checked as well: the value is what is asked for. */
	atomic_store(d, two ? 16 : 8);
	d->out->conditional = true;
}

/* --- tags ---------------------------------------------------------------------------- */

static uint64_t zva_bytes(const struct d *d)
{
	return 4ull << (d->r->dczid & 15);
}

static void zero(struct d *d, uint64_t va, uint64_t len)
{
	store(d, va & ~(len - 1), len, (uint32_t)(len < 16 ? len : 16));
	d->out->value_len = 1;
}

/* FEAT_MTE: STG, ST2G (tags only), STZG, STZ2G (zeros too), and the bulk forms. */
static void tags(struct d *d)
{
	uint32_t opc = bits(d->w, 22, 2), how = bits(d->w, 10, 2), imm = bits(d->w, 12, 9);
	uint64_t off = sext(imm, 9) << 4, b = base(d);

	if (how == 0) {
		if (opc == 1 || (opc == 3 && !imm)) {
			no_store(d);	       /* LDG, LDGM */
		} else if (opc == 0 && !imm) { /* STZGM */
			zero(d, b, zva_bytes(d));
			d->out->tags = true;
		} else if (opc == 2 && !imm) {
			unknown(d, "STGM: how much it writes is in GMID_EL1");
		} else {
			unallocated(d);
		}
		return;
	}
	/* An address that is not aligned to 16 faults before it gets here. */
	store(d, how == 1 ? b : b + off, opc & 2 ? 32 : 16, 16);
	d->out->tags = true;
	d->out->tags_only = !(opc & 1);
	d->out->value_len = opc & 1;
	if (how & 1)
		writeback(d, b + off, 32, 32);
}

/* --- set and copy ----------------------------------------------------------------------- */

/*
 * FEAT_MOPS, C6.2 "CPYFP, CPYFM, CPYFE" and its neighbours. Three instructions share the
 * work, and the registers say between any two steps how far it is. PSTATE.C: option A
 * (0) counts Xn up to zero, with Xd at the end, when forward; option B keeps Xd at the
 * next byte and Xn at the bytes left; PSTATE.N is its direction.
 */
static void mops(struct d *d)
{
	uint32_t op1 = bits(d->w, 22, 2), op2 = bits(d->w, 12, 4), rd = bits(d->w, 0, 5);
	uint32_t rn = bits(d->w, 5, 5), rs = bits(d->w, 16, 5);
	uint32_t stage = op1 == 3 ? op2 >> 2 : op1; /* prologue, main, epilogue */
	bool set = op1 == 3, may_back = bits(d->w, 26, 1) && !set;
	uint64_t va = xreg(d, rd), n = xreg(d, rn);
	bool option_b = d->r->pstate & PSTATE_C;

	if (bits(d->w, 30, 2) || stage == 3 || rd == 31 || rn == 31 || (!set && rs == 31) ||
	    rd == rn || rd == rs || rn == rs) {
		unallocated(d);
		return;
	}
	if (stage == 0) {
		/* Sizes saturate. */
		if (set && n >> 63)
			n = ~0ull >> 1;
		else if (!set && n >> 55)
			n = ~0ull >> 9;
	} else if (!option_b && (int64_t)n < 0) {
		va += n;
		n = 0 - n;
	} else if (!option_b && !may_back) {
		n = 0; /* forward and not negative: all done */
	} else if (option_b && may_back && d->r->pstate & PSTATE_N) {
		va -= n;
	}
	if (!n) {
		no_store(d);
		return;
	}
	store(d, va, n, 1);
	d->out->mops = true;
	d->out->tags = set && bits(d->w, 26, 1); /* SETG */
	d->out->unprivileged = op2 & 1;
	if (set)
		value_add(d, rs, 1);
}

/* --- system instructions ------------------------------------------------------------------ */

/* C5.3: DC and IC by address, op1 << 7 | CRm << 3 | op2, CRn being 7. */
static bool is_by_address(uint32_t op1, uint32_t crm, uint32_t op2)
{
	bool plain = op2 == 1 || op2 == 3 || op2 == 5; /* data, tags (GVA), both (GDVA) */

	if (op1 == 0)
		return crm == 6 ? plain : crm == 15 && (op2 == 1 || op2 == 5); /* IVAC, CIVAPS */
	if (op1 != 3)
		return false;
	switch (crm) {
	case 5: return op2 == 1;			  /* IC IVAU */
	case 10:					  /* CVAC */
	case 12:					  /* CVAP */
	case 13:					  /* CVADP */
	case 14: return plain;				  /* CIVAC */
	case 11: return op2 == 1 || op2 == 0 || op2 == 7; /* CVAU, CVAOC, CGDVAOC */
	case 15: return op2 == 0 || op2 == 7;		  /* CIVAOC, CIGDVAOC */
	default: return false;
	}
}

static bool is_set_way(uint32_t op1, uint32_t crm, uint32_t op2)
{
	/* ISW, CSW, CISW, and with tags IGSW, IGDSW and so on */
	return op1 == 0 && (crm == 6 || crm == 10 || crm == 14) &&
	       (op2 == 2 || op2 == 4 || op2 == 6);
}

static void sys(struct d *d)
{
	uint32_t op1 = bits(d->w, 16, 3), crn = bits(d->w, 12, 4), crm = bits(d->w, 8, 4);
	uint32_t op2 = bits(d->w, 5, 3);
	uint64_t va = xreg(d, bits(d->w, 0, 5));

	if (crn != 7 || is_set_way(op1, crm, op2)) {
		no_store(d);
		return;
	}
	if (is_by_address(op1, crm, op2)) {
		d->out->kind = RV_ARM64_CACHE;
		d->out->va = va;
		d->out->len = d->out->unit = 1;
		return;
	}
	if (op1 == 3 && crm == 4 && (op2 == 1 || op2 == 3 || op2 == 4)) {
		zero(d, va, zva_bytes(d)); /* ZVA, GVA, GZVA */
		d->out->tags = op2 != 1;
		d->out->tags_only = op2 == 3;
		d->out->value_len = op2 != 3;
		return;
	}
	/* What is left of DC, and the guarded control stack's own pushes (CRm 7). */
	if (crm == 4 || crm == 6 || crm == 7 || crm >= 10)
		unknown(d, "not known: cache or stack instruction");
	else
		no_store(d); /* IC IALLU, AT, CFP and the like */
}

/* Loads and stores; the first that fits. */
static const struct {
	uint32_t mask, value;
	void (*fn)(struct d *d);
} forms[] = {
	{0xbfbf0000, 0x0c000000, simd_multiple},
	{0xbfa00000, 0x0c800000, simd_multiple}, /* post-index */
	{0xbfbffc00, 0x0d018400, simd_ordered},
	{0xbf9f0000, 0x0d000000, simd_single},
	{0xbf800000, 0x0d800000, simd_single}, /* post-index */
	{0x3f000000, 0x08000000, exclusive},
	{0xff000000, 0xdc000000, unallocated}, /* load literal, with V, opc 3 */
	{0x3b000000, 0x18000000, no_store},    /* load literal */
	{0x3f200c00, 0x19000000, rcpc_unscaled},
	{0x3f200c00, 0x1d000800, rcpc_unscaled}, /* SIMD */
	{0xbfa0ec00, 0x99000800, rcpc3_pair},
	{0xbfbffc00, 0x99800800, rcpc3_indexed},
	{0xffffec00, 0xd91f0c00, gcs_store},
	{0x3b200c00, 0x19000400, mops},
	{0xff200000, 0xd9200000, tags},
	{0xbf200c00, 0x19200000, atomic128},
	{0xbf20f800, 0x19200800, rcw_cas},
	{0x3a000000, 0x28000000, pair},
	{0x3b200000, 0x38000000, reg_imm},
	{0x3b200c00, 0x38200800, reg_offset},
	{0x3f200c00, 0x38200000, atomic},
	{0xff200400, 0xf8200400, no_store}, /* LDRAA, LDRAB */
	{0x3b000000, 0x39000000, reg_imm},
};

static void load_store(struct d *d)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if ((d->w & forms[i].mask) == forms[i].value) {
			forms[i].fn(d);
			return;
		}
	}
	unknown(d, "not known: load/store encoding");
}

static void dispatch(struct d *d)
{
	uint32_t group = bits(d->w, 25, 4), top = bits(d->w, 29, 3);

	if ((group & 5) == 4)
		load_store(d);
	else if (group == 2 && top == 7)
		unknown(d, "an SVE store");
	else if (group == 0 && (top == 5 || top == 7))
		unknown(d, "an SME load or store");
	else if ((d->w & 0xfff80000) == 0xd5080000)
		sys(d);
	else
		no_store(d);
}

void rv_arm64_decode(uint32_t word, const struct rv_arm64_regs *r, struct rv_arm64_insn *out)
{
	struct d d = {word, r, out};

	memset(out, 0, sizeof(*out));
	out->why = "";
	out->status = 31;
	if (r->pstate & PSTATE_AARCH32)
		unknown(&d, "AArch32 code");
	else
		dispatch(&d);
	if (out->kind == RV_ARM64_STORE || out->kind == RV_ARM64_CACHE)
		out->crosses_page = out->len > RV_ARM64_PAGE - (out->va & (RV_ARM64_PAGE - 1));
	else
		*out = (struct rv_arm64_insn){.kind = out->kind, .why = out->why, .status = 31};
}
