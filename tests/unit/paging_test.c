/* SPDX-License-Identifier: Apache-2.0 */
/* paging_test.c: memory sources, the x86-64 walker, and reading through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_source.h"

#define VA     0xffff888000200000ull
#define BUDGET 10000u

static int xlat(struct fake *f, uint64_t va, struct rv_translation *t, struct rv_err *err)
{
	struct rv_view v;

	assert_int_equal(rv_view_init(&v, &f->src.base, &f->regs, BUDGET, NULL), 0);
	return rv_view_translate(&v, rv_gva_of(va), t, err);
}

static int rd(struct fake *f, uint64_t va, void *dst, size_t len)
{
	struct rv_view v;

	assert_int_equal(rv_view_init(&v, &f->src.base, &f->regs, BUDGET, NULL), 0);
	return rv_view_read(&v, rv_gva_of(va), dst, len, NULL);
}

static void test_source(void **state)
{
	struct fake f;
	struct rv_source *s = &f.src.base;
	uint8_t b[16];

	(void)state;
	fake_init(&f, 4);
	f.ram[FAKE_RAM - 1] = 0x5a;
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_RAM - 1), b, 1), 0);
	assert_int_equal(b[0], 0x5a);
	/* Straddling the end, in the hole, just before and after the second piece. */
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_RAM - 1), b, 2), RV_ENOTMAPPED);
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_RAM), b, 1), RV_ENOTMAPPED);
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_HIGH - 1), b, 1), RV_ENOTMAPPED);
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_HIGH - 1), b, 2), RV_ENOTMAPPED);
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_HIGH), b, 16), 0);
	assert_int_equal(s->read_phys(s, rv_gpa_of(FAKE_HIGH + FAKE_HIGH_LEN), b, 1),
			 RV_ENOTMAPPED);
	assert_int_equal(s->read_phys(s, rv_gpa_of(~0ull), b, 2), RV_ENOTMAPPED);
	assert_int_equal(s->read_phys(s, rv_gpa_of(~0ull), b, 0), 0);
	fake_deinit(&f);
}

static void test_source_touching(void **state)
{
	static const uint8_t a[4] = {1, 2, 3, 4}, c[4] = {5, 6, 7, 8};
	struct rv_region r[2] = {{104, 4, c}, {100, 4, a}};
	struct rv_source_mapped m;
	uint8_t b[8];

	(void)state;
	assert_int_equal(rv_source_mapped_init(&m, r, 2, NULL), 0);
	assert_int_equal(m.base.read_phys(&m.base, rv_gpa_of(102), b, 4), 0);
	assert_memory_equal(b, "\3\4\5\6", 4);
	r[0].gpa = 103;
	assert_int_equal(rv_source_mapped_init(&m, r, 2, NULL), RV_EINVAL);
	r[0] = (struct rv_region){~0ull - 2, 4, c};
	assert_int_equal(rv_source_mapped_init(&m, r, 2, NULL), RV_EINVAL);
	r[0] = (struct rv_region){~0ull - 3, 4, c};
	assert_int_equal(rv_source_mapped_init(&m, r, 2, NULL), 0);
	assert_int_equal(m.base.read_phys(&m.base, rv_gpa_of(~0ull), b, 1), 0);
	assert_int_equal(b[0], 8);
}

static void test_sizes(void **state)
{
	struct rv_translation t;
	struct fake f;

	(void)state;
	for (uint32_t levels = 4; levels <= 5; levels++) {
		uint64_t base = levels == 5 ? 0xff11000000000000ull : 0xffff888000000000ull;

		fake_init(&f, levels);
		fake_map(&f, base + 0x1000, 0x3000, 1, FAKE_RW);
		fake_map(&f, base + 0x200000, 0x200000, 2, FAKE_RO | FAKE_NX);
		fake_map(&f, base + 0x40000000, 0x40000000, 3, FAKE_RW | FAKE_USER);
		assert_int_equal(xlat(&f, base + 0x1234, &t, NULL), 0);
		assert_int_equal(t.gpa.v, 0x3234);
		assert_int_equal(t.page_size, 4096);
		assert_true(t.write && !t.user && !t.nx);
		assert_int_equal(t.nsteps, levels);
		assert_int_equal(t.step[levels - 1].level, 1);
		assert_int_equal(t.step[0].level, levels);
		assert_int_equal(xlat(&f, base + 0x2fffff, &t, NULL), 0);
		assert_int_equal(t.gpa.v, 0x2fffff);
		assert_int_equal(t.page_size, 2 << 20);
		assert_true(!t.write && t.nx && !t.user_write && t.user_nx);
		assert_int_equal(xlat(&f, base + 0x40000000 + 0x3fffffff, &t, NULL), 0);
		assert_int_equal(t.gpa.v, 0x7fffffff);
		assert_int_equal(t.page_size, 1 << 30);
		assert_true(t.user && t.write && !t.nx && t.user_write && !t.user_nx);
		fake_deinit(&f);
	}
}

static void test_rights_combine(void **state)
{
	struct rv_translation t;
	struct fake f;

	(void)state;
	fake_init(&f, 4);
	fake_map(&f, VA, 0x3000, 1, FAKE_RW | FAKE_USER);
	*fake_entry(&f, VA, 3) &= ~2ull;
	*fake_entry(&f, VA, 2) |= FAKE_NX;
	*fake_entry(&f, VA, 4) &= ~4ull;
	assert_int_equal(xlat(&f, VA, &t, NULL), 0);
	assert_true(!t.write && !t.user && t.nx);
	fake_deinit(&f);
}

static void test_not_mapped(void **state)
{
	struct rv_translation t;
	struct rv_err err;
	struct fake f;

	(void)state;
	fake_init(&f, 4);
	fake_map(&f, VA, 0x3000, 1, FAKE_RW);
	assert_int_equal(xlat(&f, VA + 0x1000, &t, &err), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 4096);
	assert_int_equal(t.nsteps, 4);
	assert_int_equal(xlat(&f, VA + 0x200000, &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 2 << 20);
	assert_int_equal(xlat(&f, VA + (1ull << 39), &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 1ull << 39);
	/* An entry that is not present may hold anything: PROTNONE, swap. */
	*fake_entry(&f, VA, 1) = ~1ull;
	assert_int_equal(xlat(&f, VA, &t, NULL), RV_ENOTMAPPED);
	/* Not canonical: no hole is reported. */
	assert_int_equal(xlat(&f, 0x0000800000000000ull, &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 0);
	assert_int_equal(xlat(&f, 0xffff7fffffffffffull, &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 0);
	assert_int_equal(xlat(&f, 0x00007fffffffffffull, &t, NULL), RV_ENOTMAPPED);
	assert_int_not_equal(t.page_size, 0);
	fake_deinit(&f);
	fake_init(&f, 5);
	assert_int_equal(xlat(&f, 0x0000800000000000ull, &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 1ull << 48);
	assert_int_equal(xlat(&f, 0x0100000000000000ull, &t, NULL), RV_ENOTMAPPED);
	assert_int_equal(t.page_size, 0);
	fake_deinit(&f);
}

static void expect_bad(struct fake *f, uint64_t va, const void *at)
{
	struct rv_translation t;
	struct rv_err err = {0};

	assert_int_equal(xlat(f, va, &t, &err), RV_EBADDATA);
	assert_true(err.has_addr);
	assert_int_equal(err.addr, (uint64_t)((const uint8_t *)at - f->ram));
}

static void test_reserved(void **state)
{
	struct rv_translation t;
	struct fake f;
	uint64_t keep;

	(void)state;
	for (uint32_t levels = 4; levels <= 5; levels++) {
		uint64_t *e;

		fake_init(&f, levels);
		fake_map(&f, VA, 0x3000, 1, FAKE_RW);
		for (uint32_t l = 1; l <= levels; l++) {
			e = fake_entry(&f, VA, l);
			keep = *e;
			for (int bit = 40; bit < 52; bit++) {
				*e = keep | 1ull << bit;
				expect_bad(&f, VA, e);
				/* The same bit, declared the encryption bit, is none. */
				f.regs.enc_mask = 1ull << bit;
				assert_int_equal(xlat(&f, VA, &t, NULL), 0);
				assert_int_equal(t.gpa.v, 0x3000);
				f.regs.enc_mask = 0;
			}
			*e = keep | 0x7ffull << 52; /* software bits and protection keys */
			assert_int_equal(xlat(&f, VA, &t, NULL), 0);
			assert_int_equal(t.gpa.v, 0x3000);
			*e = keep | FAKE_NX;
			assert_int_equal(xlat(&f, VA, &t, NULL), 0);
			f.regs.x86.efer &= ~(1ull << 11);
			expect_bad(&f, VA, e);
			f.regs.x86.efer |= 1ull << 11;
			*e = keep;
		}
		/* No 512G pages. */
		for (uint32_t l = 4; l <= levels; l++) {
			e = fake_entry(&f, VA, l);
			keep = *e;
			*e |= FAKE_PS;
			expect_bad(&f, VA, e);
			*e = keep;
		}
		fake_deinit(&f);
	}
}

static void test_reserved_large(void **state)
{
	struct rv_translation t;
	struct fake f;

	(void)state;
	for (uint32_t l = 2; l <= 3; l++) {
		fake_init(&f, 4);
		fake_map(&f, VA & ~0x3fffffffull, 0x40000000, l, FAKE_RW);
		*fake_entry(&f, VA & ~0x3fffffffull, l) |= 1 << 12; /* PAT */
		assert_int_equal(xlat(&f, VA & ~0x3fffffffull, &t, NULL), 0);
		assert_int_equal(t.gpa.v, 0x40000000);
		for (uint32_t bit = 13; bit < (l == 2 ? 21u : 30u); bit++) {
			uint64_t *e = fake_entry(&f, VA & ~0x3fffffffull, l);

			*e |= 1ull << bit;
			expect_bad(&f, VA & ~0x3fffffffull, e);
			*e &= ~(1ull << bit);
		}
		fake_deinit(&f);
	}
}

static void test_loops(void **state)
{
	struct rv_err err = {0};
	struct rv_translation t;
	struct fake f;

	(void)state;
	for (uint32_t levels = 4; levels <= 5; levels++) {
		for (uint32_t l = 2; l <= levels; l++) {
			uint64_t *e;

			fake_init(&f, levels);
			fake_map(&f, VA, 0x3000, 1, FAKE_RW);
			/* To the root, and to the table that holds the entry. */
			e = fake_entry(&f, VA, l);
			*e = FAKE_ROOT | FAKE_RW;
			expect_bad(&f, VA, e);
			*e = (uint64_t)((uint8_t *)e - f.ram) & ~4095ull;
			*e |= FAKE_RW;
			expect_bad(&f, VA, e);
			/* To a hole: the address is that of the entry looked for there. */
			*e = 0x80000000ull | FAKE_RW;
			assert_int_equal(xlat(&f, VA, &t, &err), RV_EBADDATA);
			assert_int_equal(err.addr & ~4095ull, 0x80000000ull);
			fake_deinit(&f);
		}
	}
	fake_init(&f, 4);
	f.regs.x86.cr3 = FAKE_RAM;
	assert_int_equal(xlat(&f, VA, &t, &err), RV_EBADDATA);
	fake_deinit(&f);
}

static void test_registers(void **state)
{
	struct rv_translation t;
	struct rv_view v;
	struct fake f;

	(void)state;
	fake_init(&f, 4);
	fake_map(&f, VA, 0x3000, 1, FAKE_RW);
	f.regs.x86.cr3 |= 0xfff | 3ull << 61 | 1ull << 63;
	assert_int_equal(xlat(&f, VA + 5, &t, NULL), 0);
	assert_int_equal(t.gpa.v, 0x3005);
	f.regs.pa_bits = 0;
	assert_int_equal(xlat(&f, VA, &t, NULL), 0);
	f.regs.pa_bits = 1000;
	assert_int_equal(xlat(&f, VA, &t, NULL), 0);
	f.regs.x86.efer &= ~(1ull << 10);
	assert_int_equal(xlat(&f, VA, &t, NULL), RV_EUNSUPPORTED);
	f.regs.x86.efer |= 1 << 10;
	f.regs.x86.cr4 = 0;
	assert_int_equal(xlat(&f, VA, &t, NULL), RV_EUNSUPPORTED);
	f.regs.arch = RV_ARCH_UNKNOWN;
	assert_int_equal(rv_view_init(&v, &f.src.base, &f.regs, 1, NULL), RV_EUNSUPPORTED);
	fake_deinit(&f);
}

static void test_read(void **state)
{
	struct fake f;
	char b[64];

	(void)state;
	fake_init(&f, 4);
	/* Two neighbours in the opposite physical order, then a hole. */
	fake_map(&f, VA, 0x201000, 1, FAKE_RW);
	fake_map(&f, VA + 0x1000, 0x200000, 1, FAKE_RW);
	fake_put(&f, 0x201ffc, "abcd", 4);
	fake_put(&f, 0x200000, "efgh", 4);
	assert_int_equal(rd(&f, VA + 0xffc, b, 8), 0);
	assert_memory_equal(b, "abcdefgh", 8);
	assert_int_equal(rd(&f, VA + 0x1ffc, b, 4), 0);
	assert_int_equal(rd(&f, VA + 0x1ffc, b, 5), RV_ENOTMAPPED);
	/* The last byte of RAM, and a page that ends it. */
	fake_map(&f, VA + 0x3000, FAKE_HIGH + 4096, 1, FAKE_RW);
	f.high[FAKE_HIGH_LEN - 1] = 'z';
	assert_int_equal(rd(&f, VA + 0x3fff, b, 1), 0);
	assert_int_equal(b[0], 'z');
	/* A large page that hangs over the end of RAM. */
	fake_map(&f, VA + 0x600000, 0, 2, FAKE_RW);
	fake_map(&f, VA + 0x800000, 0x200000, 2, FAKE_RW);
	fake_map(&f, VA + 0xa00000, 0x400000, 2, FAKE_RW);
	assert_int_equal(rd(&f, VA + 0x9fffff, b, 1), 0);
	assert_int_equal(rd(&f, VA + 0xa00000, b, 1), RV_ENOTMAPPED);
	/* The top of the address space. */
	fake_map(&f, ~0ull & ~4095ull, 0x202000, 1, FAKE_RW);
	fake_put(&f, 0x202fff, "T", 1);
	assert_int_equal(rd(&f, ~0ull, b, 1), 0);
	assert_int_equal(b[0], 'T');
	assert_int_equal(rd(&f, ~0ull, b, 2), RV_ENOTMAPPED);
	assert_int_equal(rd(&f, ~0ull - 7, b, 8), 0);
	assert_int_equal(rd(&f, 0, b, 0), 0);
	fake_deinit(&f);
}

static void test_budget(void **state)
{
	struct rv_view v;
	struct fake f;
	uint64_t x;

	(void)state;
	fake_init(&f, 4);
	fake_map(&f, VA, 0x201000, 1, FAKE_RW);
	assert_int_equal(rv_view_init(&v, &f.src.base, &f.regs, 6, NULL), 0);
	/* Four levels and the bytes; then the bytes alone; then nothing is left. */
	assert_int_equal(rv_view_read_u64(&v, rv_gva_of(VA), &x, NULL), 0);
	assert_int_equal(v.budget, 1);
	assert_int_equal(rv_view_read_u64(&v, rv_gva_of(VA + 8), &x, NULL), 0);
	assert_int_equal(rv_view_read_u64(&v, rv_gva_of(VA + 8), &x, NULL), RV_EBUDGET);
	fake_deinit(&f);
}

static void test_name(void **state)
{
	struct rv_view v;
	struct fake f;
	char b[16];

	(void)state;
	fake_init(&f, 4);
	fake_map(&f, VA, 0x201000, 1, FAKE_RW);
	assert_int_equal(rv_view_init(&v, &f.src.base, &f.regs, BUDGET, NULL), 0);
	fake_put(&f, 0x201000, "a\x1b[2Jb\xff", 8);
	assert_int_equal(rv_view_read_name(&v, rv_gva_of(VA), b, sizeof(b), NULL), 0);
	assert_string_equal(b, "a?[2Jb?");
	assert_int_equal(rv_view_read_name(&v, rv_gva_of(VA), b, 4, NULL), 0);
	assert_string_equal(b, "a?[");
	/* Ends with the page; does not end, then a hole. */
	fake_put(&f, 0x201ffc, "xyz", 4);
	assert_int_equal(rv_view_read_name(&v, rv_gva_of(VA + 0xffc), b, sizeof(b), NULL), 0);
	assert_string_equal(b, "xyz");
	fake_put(&f, 0x201ffc, "wxyz", 4);
	assert_int_equal(rv_view_read_name(&v, rv_gva_of(VA + 0xffc), b, sizeof(b), NULL), 0);
	assert_string_equal(b, "wxyz");
	assert_int_equal(rv_view_read_name(&v, rv_gva_of(VA + 0x1000), b, sizeof(b), NULL),
			 RV_ENOTMAPPED);
	assert_string_equal(b, "");
	fake_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_source),	       cmocka_unit_test(test_source_touching),
		cmocka_unit_test(test_sizes),	       cmocka_unit_test(test_rights_combine),
		cmocka_unit_test(test_not_mapped),     cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_reserved_large), cmocka_unit_test(test_loops),
		cmocka_unit_test(test_registers),      cmocka_unit_test(test_read),
		cmocka_unit_test(test_budget),	       cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
