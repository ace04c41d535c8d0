/* SPDX-License-Identifier: Apache-2.0 */
/* paging_arm64_test.c: the arm64 stage-1 walker, every granule and width, hostile tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_source.h"

#define BUDGET 100u

/* Descriptor bits (Arm ARM D8.3). */
#define PAGE  3ull
#define TABLE 3ull
#define BLOCK 1ull
#define USER  (1ull << 6)
#define RO    (1ull << 7)
#define AF    (1ull << 10)
#define NT    (1ull << 16)
#define DBM   (1ull << 51)
#define CONT  (1ull << 52)
#define PXN   (1ull << 53)
#define UXN   (1ull << 54)
#define SW    (15ull << 55) /* software's own */
#define TPXN  (1ull << 59)
#define TUXN  (1ull << 60)
#define TUSER (1ull << 61)
#define TRO   (1ull << 62)

/* TCR_EL1 bits. */
#define EPD0   (1ull << 7)
#define EPD1   (1ull << 23)
#define TBI0   (1ull << 37)
#define TBI1   (1ull << 38)
#define HPD0   (1ull << 41)
#define HPD1   (1ull << 42)
#define E0PD0  (1ull << 55)
#define E0PD1  (1ull << 56)
#define DS     (1ull << 59)
#define IPS(n) ((uint64_t)(n) << 32)

/* Tables lie here; a granule each. */
#define ROOT 0x100000ull

/* A form of the address space, and what the architecture says of it. */
struct form {
	const char *name;
	uint32_t granule, txsz;
	bool ds;
	int start;     /* first level */
	int top_block; /* first level that may have blocks */
};

static const struct form forms[] = {
	{"4K 48", 12, 16, false, 0, 1},	     {"4K 39", 12, 25, false, 1, 1},
	{"4K 42", 12, 22, false, 0, 1},	     {"4K 30", 12, 34, false, 2, 2},
	{"4K 16", 12, 48, false, 3, 3},	     {"4K 52 LPA2", 12, 12, true, -1, 0},
	{"4K 49 LPA2", 12, 15, true, -1, 0}, {"4K 48 LPA2", 12, 16, true, 0, 0},
	{"16K 48", 14, 16, false, 0, 2},     {"16K 47", 14, 17, false, 1, 2},
	{"16K 36", 14, 28, false, 2, 2},     {"16K 16", 14, 48, false, 3, 3},
	{"16K 52 LPA2", 14, 12, true, 0, 1}, {"64K 48", 16, 16, false, 1, 1},
	{"64K 52", 16, 12, false, 1, 1},     {"64K 42", 16, 22, false, 2, 2},
	{"64K 17", 16, 47, false, 3, 3},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static uint32_t shift_of(const struct form *m, int level)
{
	return m->granule + (m->granule - 3) * (uint32_t)(3 - level);
}

static uint64_t encode(const struct form *m, uint64_t pa)
{
	if (m->ds)
		return (pa & 0x3ffffffffffffull) | (pa >> 50 & 3) << 8;
	if (m->granule == 16)
		return (pa & 0xffffffffffffull) | (pa >> 48 & 15) << 12;
	return pa;
}

static uint64_t decode(const struct form *m, uint64_t e)
{
	uint64_t a = e & 0xffffffffffffull & ~((1ull << m->granule) - 1);

	if (m->ds)
		a = (e & 0x3ffffffffffffull & ~((1ull << m->granule) - 1)) | (e >> 8 & 3) << 50;
	else if (m->granule == 16)
		a |= (e >> 12 & 15) << 48;
	return a;
}

/* Both halves translate by the same tables. */
static void start(struct fake *f, const struct form *m)
{
	static const uint64_t tg0[3] = {0, 2, 1}, tg1[3] = {2, 1, 3};
	uint32_t g = (m->granule - 12) / 2;

	fake_init(f, 4);
	memset(&f->regs, 0, sizeof(f->regs));
	f->regs.arch = RV_ARCH_ARM64;
	f->regs.arm64.sctlr = 1;
	f->regs.arm64.ttbr0 = ROOT | 0x1234000000000000ull | 1; /* an ASID, CnP */
	f->regs.arm64.ttbr1 = ROOT;
	f->regs.arm64.tcr =
		m->txsz | m->txsz << 16 | tg0[g] << 14 | tg1[g] << 30 | IPS(6) | (m->ds ? DS : 0);
	f->next = ROOT + 0x10000;
}

/* The entry of va at a level; the tables above are made. */
static uint64_t *entry(struct fake *f, const struct form *m, uint64_t va, int level)
{
	uint64_t table = ROOT;

	for (int l = m->start;; l++) {
		uint32_t s = shift_of(m, l), bits = m->granule - 3;
		uint64_t *e;

		if (l == m->start)
			bits = 64 - m->txsz - s;
		e = (uint64_t *)(f->ram + table) + (va >> s & ((1ull << bits) - 1));
		if (l == level)
			return e;
		if (!*e) {
			*e = encode(m, f->next) | TABLE;
			f->next += 1ull << m->granule;
			assert_true(f->next < FAKE_RAM);
		}
		table = decode(m, *e);
	}
}

static void map(struct fake *f, const struct form *m, uint64_t va, uint64_t pa, int level,
		uint64_t bits)
{
	*entry(f, m, va, level) = encode(m, pa) | bits | (level == 3 ? PAGE : BLOCK) | AF;
}

static int xlat(struct fake *f, uint64_t va, struct rv_translation *t, struct rv_err *err)
{
	struct rv_view v;

	assert_int_equal(rv_view_init(&v, &f->src.base, &f->regs, BUDGET, NULL), 0);
	return rv_view_translate(&v, rv_gva_of(va), t, err);
}

static void bad_at(struct fake *f, uint64_t va, uint64_t at)
{
	struct rv_translation t;
	struct rv_err err = {0};

	assert_int_equal(xlat(f, va, &t, &err), RV_EBADDATA);
	assert_true(err.has_addr);
	assert_int_equal(err.addr, at);
}

static void bad_entry(struct fake *f, uint64_t va, const uint64_t *e)
{
	bad_at(f, va, (uint64_t)((const uint8_t *)e - f->ram));
}

/* First address of the upper half, and an address inside it with every index different. */
static uint64_t upper(const struct form *m)
{
	return ~0ull << (64 - m->txsz);
}

static uint64_t inside(const struct form *m)
{
	return 0x000f5a3c96e1b4c8ull & ~upper(m);
}

/* Written word by word, without the helpers above: Linux' own shapes. */
static void test_by_hand(void **state)
{
	struct rv_translation t;
	struct fake f;

	(void)state;
	/* 4K pages, 48 bits: ffff800008010000 = indices 256, 0, 64, 16. */
	fake_init(&f, 4);
	memset(&f.regs, 0, sizeof(f.regs));
	f.regs.arch = RV_ARCH_ARM64;
	f.regs.arm64.sctlr = 1;
	f.regs.arm64.ttbr1 = 0x10000;
	f.regs.arm64.tcr = 0x0000004500000000ull | 16u << 16 | 16 | 2u << 30; /* IPS 48 bits */
	fake_put_u64(&f, 0x10000 + 256 * 8, 0x11003);
	fake_put_u64(&f, 0x11000, 0x12003);
	fake_put_u64(&f, 0x12000 + 64 * 8, 0x13003);
	fake_put_u64(&f, 0x13000 + 16 * 8, 0x0050000043210783ull); /* RO, PXN clear, UXN, nG 0 */
	assert_int_equal(xlat(&f, 0xffff800008010abcull, &t, NULL), 0);
	assert_int_equal(t.gpa.v, 0x43210abc);
	assert_int_equal(t.page_size, 4096);
	assert_int_equal(t.nsteps, 4);
	assert_true(!t.user && !t.write && !t.user_write && !t.nx && t.user_nx);
	/* A 2M block beside it, contiguous, writable and not executable: the linear map. */
	fake_put_u64(&f, 0x12000 + 65 * 8, 0x0078000080200701ull);
	assert_int_equal(xlat(&f, 0xffff800008345678ull, &t, NULL), 0);
	assert_int_equal(t.gpa.v, 0x80345678);
	assert_int_equal(t.page_size, 2 << 20);
	assert_true(!t.user && t.write && t.nx && t.user_nx);
	fake_deinit(&f);

	/* 4K, LPA2, 52 bits: the last of the 16 entries of level -1, and so on down. The page
	 * lies at 0xe000012345000: bits 51:50 of that in 9:8, 49 in place. */
	fake_init(&f, 4);
	memset(&f.regs, 0, sizeof(f.regs));
	f.regs.arch = RV_ARCH_ARM64;
	f.regs.arm64.sctlr = 1;
	f.regs.arm64.ttbr1 = 0x10040; /* 128 bytes of entries: aligned down to 0x10000 */
	f.regs.arm64.tcr = DS | IPS(6) | 12u << 16 | 12 | 2u << 30;
	fake_put_u64(&f, 0x10000 + 15 * 8, 0x11003);
	fake_put_u64(&f, 0x11000 + 511 * 8, 0x12003);
	fake_put_u64(&f, 0x12000 + 511 * 8, 0x13003);
	fake_put_u64(&f, 0x13000 + 511 * 8, 0x14003);
	fake_put_u64(&f, 0x14000 + 511 * 8, 0x0062000012345000ull | 3ull << 8 | 0x403);
	assert_int_equal(xlat(&f, ~0ull, &t, NULL), 0);
	assert_int_equal(t.gpa.v, 0xe000012345fffull);
	assert_int_equal(t.nsteps, 5);
	assert_int_equal(t.step[0].level, 5);
	assert_int_equal(t.step[4].level, 1);
	fake_deinit(&f);

	/* 64K, 52-bit addresses: bits 51:48 in 15:12, of a page and of the root table. */
	fake_init(&f, 4);
	memset(&f.regs, 0, sizeof(f.regs));
	f.regs.arch = RV_ARCH_ARM64;
	f.regs.arm64.sctlr = 1;
	f.regs.arm64.ttbr0 = 0x20000;
	f.regs.arm64.tcr = IPS(6) | 16u << 16 | 16 | 1u << 14 | 3u << 30;
	fake_put_u64(&f, 0x20000 + 1 * 8, 0x30003);
	fake_put_u64(&f, 0x30000 + 2 * 8, 0x40003);
	fake_put_u64(&f, 0x40000 + 3 * 8, 0x123450000ull | 0xa000 | 0x403);
	assert_int_equal(xlat(&f, 1ull << 42 | 2ull << 29 | 3ull << 16 | 0xfedc, &t, NULL), 0);
	assert_int_equal(t.gpa.v, 0xa00012345fedcull);
	assert_int_equal(t.page_size, 65536);
	f.regs.arm64.ttbr0 = 0x20000 | 5u << 2;
	bad_at(&f, 1ull << 42, 0x5000000020008ull);
	fake_deinit(&f);
}

/* Every form, both halves, every level that can end a walk. */
static void test_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *m = &forms[i];

		for (int level = m->start; level <= 3; level++) {
			uint64_t size = 1ull << shift_of(m, level);
			uint64_t va = inside(m), pa = 0xd6e7f8091a2b3000ull & 0xfffffffffffffull;
			struct rv_translation t;
			struct fake f;
			int rc;

			start(&f, m);
			if (!m->ds && m->granule != 16)
				pa &= 0xffffffffffffull;
			pa &= ~(size - 1);
			map(&f, m, va, pa, level, level == 3 ? 0 : NT);
			for (int half = 0; half < 2; half++) {
				uint64_t a = half ? va | upper(m) : va;

				rc = xlat(&f, a, &t, NULL);
				if (level != 3 && level < m->top_block) {
					assert_int_equal(rc, RV_EBADDATA);
					continue;
				}
				assert_int_equal(rc, 0);
				assert_int_equal(t.gpa.v, pa | (a & (size - 1)));
				assert_int_equal(t.page_size, size);
				assert_int_equal(t.nsteps, level - m->start + 1);
				assert_int_equal(t.step[t.nsteps - 1].level, 4 - level);
				assert_true(t.write && !t.user && !t.nx && !t.user_nx);
			}
			fake_deinit(&f);
		}
	}
}

static void test_canonical(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *m = &forms[i];
		uint64_t va = inside(m), up = upper(m);
		struct rv_translation t;
		struct fake f;

		start(&f, m);
		map(&f, m, va, 0x200000, 3, 0);
		/* Each bit between the address and the top, wrong once. */
		for (uint32_t bit = 64 - m->txsz; bit < 64; bit++) {
			if (bit == 55)
				continue; /* that one chooses the half */
			assert_int_equal(xlat(&f, va ^ 1ull << bit, &t, NULL), RV_ENOTMAPPED);
			assert_int_equal(t.page_size, 0);
			assert_int_equal(xlat(&f, (va | up) ^ 1ull << bit, &t, NULL),
					 RV_ENOTMAPPED);
			assert_int_equal(t.page_size, 0);
			f.regs.arm64.tcr |= TBI0;
			assert_int_equal(xlat(&f, va ^ 1ull << bit, &t, NULL),
					 bit > 55 ? 0 : RV_ENOTMAPPED);
			assert_int_equal(xlat(&f, (va | up) ^ 1ull << bit, &t, NULL),
					 RV_ENOTMAPPED);
			f.regs.arm64.tcr ^= TBI0 | TBI1;
			assert_int_equal(xlat(&f, va ^ 1ull << bit, &t, NULL), RV_ENOTMAPPED);
			assert_int_equal(xlat(&f, (va | up) ^ 1ull << bit, &t, NULL),
					 bit > 55 ? 0 : RV_ENOTMAPPED);
			f.regs.arm64.tcr ^= TBI1;
		}
		assert_int_equal(xlat(&f, va ^ 1ull << 55, &t, NULL), RV_ENOTMAPPED);
		fake_deinit(&f);
	}
}

static void test_registers(void **state)
{
	const struct form *m = &forms[0];
	static const struct {
		uint32_t granule, min, max;
		bool ds;
	} sz[] = {{0, 16, 48, false}, {1, 16, 48, false}, {2, 12, 47, false},
		  {0, 12, 48, true},  {1, 12, 48, true},  {2, 12, 47, true}};
	static const uint64_t tg0[3] = {0, 2, 1}, tg1[3] = {2, 1, 3};
	struct rv_translation t;
	struct rv_err err;
	struct fake f;

	(void)state;
	start(&f, m);
	for (size_t i = 0; i < sizeof(sz) / sizeof(sz[0]); i++) {
		for (uint32_t n = 0; n < 64; n++) {
			int want = n < sz[i].min || n > sz[i].max ? RV_EBADDATA : RV_ENOTMAPPED;
			uint64_t tcr = IPS(6) | (sz[i].ds ? DS : 0);

			f.regs.arm64.tcr = tcr | n | 16 << 16 | tg0[sz[i].granule] << 14 | 2u << 30;
			assert_int_equal(xlat(&f, 0, &t, &err), want);
			f.regs.arm64.tcr = tcr | 16 | n << 16 | tg1[sz[i].granule] << 30;
			assert_int_equal(xlat(&f, ~0ull, &t, &err), want);
		}
	}
	fake_deinit(&f);

	start(&f, m);
	map(&f, m, 0x1000, 0x200000, 3, 0);
	f.regs.arm64.tcr |= 3u << 14; /* reserved granules, each in its half only */
	bad_at(&f, 0x1000, 0x1000);
	assert_int_equal(xlat(&f, 0x1000 | upper(m), &t, NULL), 0);
	f.regs.arm64.tcr &= ~(3ull << 14 | 3ull << 30);
	bad_at(&f, 0x1000 | upper(m), 0x1000 | upper(m));
	assert_int_equal(xlat(&f, 0x1000, &t, NULL), 0);
	f.regs.arm64.tcr |= 2u << 30 | EPD0;
	assert_int_equal(xlat(&f, 0x1000, &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 0);
	assert_int_equal(xlat(&f, 0x1000 | upper(m), &t, NULL), 0);
	f.regs.arm64.tcr ^= EPD0 | EPD1;
	assert_int_equal(xlat(&f, 0x1000 | upper(m), &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(xlat(&f, 0x1000, &t, NULL), 0);
	f.regs.arm64.sctlr |= 1u << 25;
	assert_int_equal(xlat(&f, 0x1000, &t, NULL), RV_EUNSUPPORTED);
	f.regs.arm64.sctlr = 0;
	assert_int_equal(xlat(&f, 0x1000, &t, NULL), RV_EUNSUPPORTED);
	f.regs.arm64.sctlr = 1;
	f.regs.arm64.tcr2 = 1 << 5;
	assert_int_equal(xlat(&f, 0x1000, &t, NULL), RV_EUNSUPPORTED);
	fake_deinit(&f);
}

/* Widths: TCR.IPS, the CPU's own, and 48 for 4K and 16K without LPA2. */
static void test_output_size(void **state)
{
	static const uint32_t ips[8] = {32, 36, 40, 42, 44, 48, 52, 52};

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *m = &forms[i];
		bool wide = m->ds || m->granule == 16;

		for (uint32_t n = 0; n < 8; n++) {
			uint32_t bits = ips[n] > 48 && !wide ? 48 : ips[n];
			uint64_t va = inside(m), *e;
			struct rv_translation t;
			struct fake f;

			start(&f, m);
			f.regs.arm64.tcr = (f.regs.arm64.tcr & ~IPS(7)) | IPS(n);
			map(&f, m, va, 1ull << (bits - 1), 3, 0);
			e = entry(&f, m, va, 3);
			assert_int_equal(xlat(&f, va, &t, NULL), 0);
			assert_int_equal(t.gpa.v & ~0xffffull, 1ull << (bits - 1));
			f.regs.pa_bits = bits - 1;
			if (bits > 32)
				bad_entry(&f, va, e);
			f.regs.pa_bits = 0;
			if (bits < 52 && (wide || bits < 48)) {
				map(&f, m, va, 1ull << bits, 3, 0);
				bad_entry(&f, va, e);
			}
			/* The same in a table descriptor. */
			if (m->start < 3 && bits < 48) {
				e = entry(&f, m, va, 2);
				*e = encode(m, 1ull << bits) | TABLE;
				bad_entry(&f, va, e);
			}
			fake_deinit(&f);
		}
	}
}

/* Bits below and above the address that must be zero. */
static void test_reserved(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *m = &forms[i];

		for (int level = m->start; level <= 3; level++) {
			uint32_t s = shift_of(m, level);
			uint32_t low = m->granule == 16 ? 16 : 12;
			uint64_t va = inside(m), *e, keep;
			struct rv_translation t;
			struct fake f;

			if (level < m->top_block)
				continue;
			start(&f, m);
			map(&f, m, va, 0, level, 0);
			e = entry(&f, m, va, level);
			keep = *e;
			for (uint32_t bit = low; bit < s && bit < 48; bit++) {
				*e = keep | 1ull << bit;
				if (bit == 16 && level != 3)
					assert_int_equal(xlat(&f, va, &t, NULL), 0);
				else
					bad_entry(&f, va, e);
			}
			for (uint32_t bit = 48; bit < 50 && !m->ds; bit++) {
				*e = keep | 1ull << bit;
				bad_entry(&f, va, e);
			}
			/* GP, DBM, contiguous, software's, hardware's and AttrIndx: no matter. */
			*e = (keep | 1ull << 50 | DBM | CONT | SW | 15ull << 59 | 7 << 2) & ~AF;
			assert_int_equal(xlat(&f, va, &t, NULL), 0);
			assert_int_equal(t.gpa.v, va & ((1ull << s) - 1));
			/* In a table descriptor: below the granule, and above the address. */
			if (level > m->start) {
				e = entry(&f, m, va, level - 1);
				keep = *e;
				for (uint32_t bit = low; bit < m->granule; bit++) {
					*e = keep | 1ull << bit;
					bad_entry(&f, va, e);
				}
				*e = keep | 1ull << 48;
				if (!m->ds)
					bad_entry(&f, va, e);
				*e = keep | 127ull << 52 | 1 << 2 | AF;
				assert_int_equal(xlat(&f, va, &t, NULL), 0);
			}
			fake_deinit(&f);
		}
	}
}

static void test_rights(void **state)
{
	const struct form *m = &forms[0];
	uint64_t va = upper(m) | inside(m);
	struct rv_translation t;
	struct fake f;

	(void)state;
	start(&f, m);
	for (uint32_t n = 0; n < 16; n++) {
		bool user = n & 1, ro = n & 2, pxn = n & 4, uxn = n & 8;

		map(&f, m, va, 0x200000, 3,
		    (user ? USER : 0) | (ro ? RO : 0) | (pxn ? PXN : 0) | (uxn ? UXN : 0));
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_int_equal(t.user, user);
		assert_int_equal(t.write, !ro);
		assert_int_equal(t.user_write, user && !ro);
		assert_int_equal(t.nx, pxn || (user && !ro));
		assert_int_equal(t.user_nx, uxn);
		f.regs.arm64.sctlr |= 1 << 19; /* WXN */
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_int_equal(t.nx, pxn || !ro);
		assert_int_equal(t.user_nx, uxn || (user && !ro));
		f.regs.arm64.sctlr &= ~(1ull << 19);
	}
	/* Tables above take rights away, at any level, unless HPD says otherwise. */
	map(&f, m, va, 0x200000, 3, USER);
	for (int level = 0; level < 3; level++) {
		uint64_t *e = entry(&f, m, va, level), keep = *e;

		*e = keep | TUSER;
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_true(!t.user && !t.user_write && t.write && !t.nx && !t.user_nx);
		*e = keep | TRO;
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_true(t.user && !t.user_write && !t.write && !t.nx && !t.user_nx);
		*e = keep | TRO | TPXN;
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_true(t.nx && !t.user_nx);
		*e = keep | TRO | TUXN;
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_true(!t.nx && t.user_nx);
		*e = keep | TRO | TUXN | TPXN | TUSER;
		f.regs.arm64.tcr |= HPD0; /* of the other half */
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_true(!t.user && !t.write && t.nx && t.user_nx);
		f.regs.arm64.tcr ^= HPD0 | HPD1;
		assert_int_equal(xlat(&f, va, &t, NULL), 0);
		assert_true(t.user && t.write && t.nx && !t.user_nx);
		f.regs.arm64.tcr ^= HPD1;
		*e = keep;
	}
	f.regs.arm64.tcr |= E0PD1;
	assert_int_equal(xlat(&f, va, &t, NULL), 0);
	assert_true(!t.user && !t.user_write && t.write && t.user_nx);
	assert_int_equal(xlat(&f, inside(m), &t, NULL), 0);
	assert_true(t.user);
	fake_deinit(&f);
}

/* Permission indirection with the values that Linux loads (PIE_E0, PIE_E1; v6.12
 * arch/arm64/include/asm/pgtable-prot.h), and with every value once. */
static void test_indirect(void **state)
{
	static const struct {
		bool r, w, x;
	} perm[16] = {{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {1, 0, 1}, {0, 0, 0}, {1, 1, 0},
		      {1, 1, 0}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, {1, 0, 1}, {0, 0, 0},
		      {1, 1, 0}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}};
	const struct form *m = &forms[0];
	uint64_t va = inside(m);
	struct rv_translation t;
	struct fake f;

	(void)state;
	start(&f, m);
	f.regs.arm64.tcr2 = 2;
	for (uint32_t i = 0; i < 16; i++) {
		uint64_t bits = (i & 8 ? UXN : 0) | (i & 4 ? PXN : 0) | (i & 2 ? DBM : 0) |
				(i & 1 ? USER : 0);

		map(&f, m, va, 0x200000, 3, bits | RO);
		for (uint32_t p = 0; p < 16; p++) {
			f.regs.arm64.pir = ~0ull ^ (uint64_t)(15 ^ p) << 4 * i;
			f.regs.arm64.pire0 = 0;
			assert_int_equal(xlat(&f, va, &t, NULL), 0);
			assert_int_equal(t.write, perm[p].w);
			assert_int_equal(t.nx, !perm[p].x);
			assert_true(!t.user && !t.user_write && t.user_nx);
			f.regs.arm64.pir = 14ull << 4 * i;
			f.regs.arm64.pire0 = (uint64_t)p << 4 * i;
			assert_int_equal(xlat(&f, va, &t, NULL), 0);
			assert_int_equal(t.user, perm[p].r);
			assert_int_equal(t.user_write, perm[p].w);
			assert_int_equal(t.user_nx, !perm[p].x);
			assert_true(t.write);
			assert_int_equal(t.nx, perm[p].w);
		}
	}
	/* Rights in tables do not count. */
	*entry(&f, m, va, 1) |= TRO | TPXN | TUXN | TUSER;
	f.regs.arm64.pir = f.regs.arm64.pire0 = 0x1111111111111111ull * 14;
	assert_int_equal(xlat(&f, va, &t, NULL), 0);
	assert_true(t.user && t.user_write && t.write && !t.user_nx);
	fake_deinit(&f);
}

static void test_not_mapped(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *m = &forms[i];

		for (int level = m->start; level <= 3; level++) {
			uint64_t va = inside(m), *e;
			struct rv_translation t;
			struct rv_err err;
			struct fake f;

			start(&f, m);
			map(&f, m, va, 0x200000, 3, 0);
			e = entry(&f, m, va, level);
			/* Bit 0 clear is all it takes: swap entries, PROT_NONE. */
			*e = ~1ull;
			assert_int_equal(xlat(&f, va, &t, &err), RV_ENOTMAPPED);
			assert_int_equal(t.page_size, 1ull << shift_of(m, level));
			assert_int_equal(t.nsteps, level - m->start + 1);
			fake_deinit(&f);
		}
	}
}

static void test_hostile(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *m = &forms[i];
		uint64_t va = inside(m), *e;
		struct rv_translation t;
		struct rv_err err;
		struct rv_view v;
		struct fake f;

		for (int level = m->start; level < 3; level++) {
			start(&f, m);
			map(&f, m, va, 0x200000, 3, 0);
			/* To the root, to the table that holds the entry, to a hole. */
			e = entry(&f, m, va, level);
			*e = encode(m, ROOT) | TABLE;
			bad_entry(&f, va, e);
			*e = encode(m, (uint64_t)((uint8_t *)e - f.ram) &
					       ~((1ull << m->granule) - 1)) |
			     TABLE;
			bad_entry(&f, va, e);
			*e = encode(m, 0x80000000ull) | TABLE;
			assert_int_equal(xlat(&f, va, &t, &err), RV_EBADDATA);
			assert_int_equal(err.addr & ~((1ull << m->granule) - 1), 0x80000000ull);
			fake_deinit(&f);
		}
		/* A block encoding where only pages are. */
		start(&f, m);
		map(&f, m, va, 0x200000, 3, 0);
		e = entry(&f, m, va, 3);
		*e &= ~2ull;
		bad_entry(&f, va, e);
		*e |= 2;
		/* One read for each level and not one more. */
		assert_int_equal(
			rv_view_init(&v, &f.src.base, &f.regs, (uint32_t)(3 - m->start), NULL), 0);
		assert_int_equal(rv_view_translate(&v, rv_gva_of(va), &t, &err), RV_EBUDGET);
		/* A root outside RAM, and one beyond the address width. */
		f.regs.arm64.ttbr0 = 0x7fff00000000ull;
		assert_int_equal(xlat(&f, va, &t, &err), RV_EBADDATA);
		assert_int_equal(err.addr & ~0xffffull, 0x7fff00000000ull);
		f.regs.pa_bits = 40;
		bad_at(&f, va, 0x7fff00000000ull);
		fake_deinit(&f);
	}
}

/* Random tables in little memory: it ends, and a page is where it was said to be. */
static void test_noise(void **state)
{
	uint64_t x = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const struct form *m = &forms[(size_t)i % FORMS];
		static uint8_t ram[0x20000];
		struct rv_region region = {0, sizeof(ram), ram};
		struct rv_source_mapped src;
		struct rv_translation t;
		struct rv_view v;
		struct fake f;

		if (i % 200 == 0)
			for (size_t k = 0; k + 8 <= sizeof(ram); k += 8) {
				uint64_t e;

				x = x * 6364136223846793005ull + 1442695040888963407ull;
				e = (x >> 33 & 0x1f000) | x >> 62 | 1;
				memcpy(ram + k, &e, 8);
			}
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		start(&f, m);
		f.regs.arm64.ttbr0 = f.regs.arm64.ttbr1 = x >> 40 & 0x1f000;
		assert_int_equal(rv_source_mapped_init(&src, &region, 1, NULL), 0);
		assert_int_equal(rv_view_init(&v, &src.base, &f.regs, BUDGET, NULL), 0);
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		if (!rv_view_translate(&v, rv_gva_of((x >> 8 & ~upper(m)) | (x & 1 ? upper(m) : 0)),
				       &t, NULL)) {
			assert_true(t.nsteps && t.nsteps <= RV_PAGING_MAX_LEVELS);
			assert_true(t.page_size >= 1ull << m->granule);
		}
		fake_deinit(&f);
	}
}

static void test_read(void **state)
{
	const struct form *m = &forms[5];
	uint64_t va = upper(m) | 0x1234567000ull;
	struct rv_view v;
	struct fake f;
	char b[8];

	(void)state;
	start(&f, m);
	map(&f, m, va, 0x301000, 3, 0);
	map(&f, m, va + 0x1000, 0x300000, 3, 0);
	fake_put(&f, 0x301ffc, "abcd", 4);
	fake_put(&f, 0x300000, "efgh", 4);
	assert_int_equal(rv_view_init(&v, &f.src.base, &f.regs, BUDGET, NULL), 0);
	assert_int_equal(rv_view_read(&v, rv_gva_of(va + 0xffc), b, 8, NULL), 0);
	assert_memory_equal(b, "abcdefgh", 8);
	assert_int_equal(rv_view_read(&v, rv_gva_of(va + 0x1ffc), b, 8, NULL), RV_ENOTMAPPED);
	fake_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),	    cmocka_unit_test(test_forms),
		cmocka_unit_test(test_canonical),   cmocka_unit_test(test_registers),
		cmocka_unit_test(test_output_size), cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_rights),	    cmocka_unit_test(test_indirect),
		cmocka_unit_test(test_not_mapped),  cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_noise),	    cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests_name("paging_arm64", tests, NULL, NULL);
}
