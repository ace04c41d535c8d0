/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_test.c: callers by ORC, in both entry layouts; and tables that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_kernel.h"

static const enum fk_flavour both[2] = {FK_OLD, FK_NEW};

enum { SP = 5, BP = 4, PREV = 1, SP_IND = 9, BP_IND = 8, R10 = 6 };
enum kind { NONE, END, CALL, REGS, PARTIAL };

/* Stack: one page behind the per-CPU area. */
#define STACK	0x10000u
#define USER_IP 0x401000u

struct entry {
	uint32_t ip; /* offset from the table's base address */
	int16_t sp_off, bp_off;
	uint8_t sp_reg, bp_reg;
	enum kind kind;
};

static uint16_t bits(enum fk_flavour fl, const struct entry *e)
{
	static const uint16_t before[] = {0, 1 << 10, 0, 1 << 8, 2 << 8};
	uint16_t regs = (uint16_t)(e->sp_reg | e->bp_reg << 4);

	return regs | (fl == FK_NEW ? (uint16_t)(e->kind << 8) : before[e->kind]);
}

/* Write n entries; the last one is repeated, as a table's rest would be. */
static void put_orc(struct fake_kernel *fk, uint64_t ip_va, uint64_t ip_gpa, uint64_t gpa,
		    uint64_t base, const struct entry *e, size_t n, size_t total)
{
	for (size_t i = 0; i < total; i++) {
		const struct entry *x = &e[i < n ? i : n - 1];
		uint16_t w[3] = {(uint16_t)x->sp_off, (uint16_t)x->bp_off, bits(fk->flavour, x)};

		fake_put_u32(&fk->f, ip_gpa + i * 4,
			     (uint32_t)(base + x->ip + (i < n ? 0 : 0x100) - (ip_va + i * 4)));
		fake_put(&fk->f, gpa + i * 6, w, 6);
	}
}

static void stack_u64(struct fake_kernel *fk, uint32_t off, uint64_t v)
{
	fake_put_u64(&fk->f, fk_img_gpa(STACK + off), v);
}

/*
 * A module function (rsp-based, 8 bytes of locals) called by vfs_read (frame
 * pointer) called by ksys_read (rsp, saves rbp) called by the entry code, where
 * pt_regs lies on the stack.
 */
static void build(struct fake_kernel *fk, enum fk_flavour fl, struct rv_unwind_regs *r)
{
	static const struct entry image[] = {
		{0, 0, 0, 0, 0, NONE},
		{FK_VFS_READ, 8, 0, SP, 0, CALL},
		{FK_VFS_READ + 0x20, 16, -16, BP, PREV, CALL},
		{FK_KSYS_READ, 24, -16, SP, PREV, CALL},
		{FK_ENTRY, 0, 0, SP, 0, REGS},
		{FK_ENTRY + 0x80, 0, 0, 0, 0, END},
		{FK_TEXT_END, 0, 0, 0, 0, NONE},
	};
	static const struct entry mod[] = {
		{0, 0, 0, 0, 0, NONE},
		{0x100, 16, 0, SP, 0, CALL},
		{0x200, 0, 0, 0, 0, NONE},
	};

	fk_init(fk, fl);
	fk_add_module(fk, "alpha");
	put_orc(fk, fk_img_va(FK_ORC_IP), fk_img_gpa(FK_ORC_IP), fk_img_gpa(FK_ORC), FK_BASE, image,
		7, FK_ORC_MAX);
	put_orc(fk, fk_mod_va(0, FK_MOD_ORC_IP), fk_mod_gpa(0, FK_MOD_ORC_IP),
		fk_mod_gpa(0, FK_MOD_ORC), fk_mod_va(0, 0), mod, 3, 3);
	fake_put_u32(&fk->f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_ARCH, 3);
	fake_put_u64(&fk->f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_ARCH + 8,
		     fk_mod_va(0, FK_MOD_ORC_IP));
	fake_put_u64(&fk->f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_ARCH + 16,
		     fk_mod_va(0, FK_MOD_ORC));
	/* module frame: locals, return address */
	stack_u64(fk, 8, fk_img_va(FK_VFS_READ + 0x30));
	/* vfs_read: rbp -> saved rbp, return address */
	stack_u64(fk, 0x40, 0x1234);
	stack_u64(fk, 0x48, fk_img_va(FK_KSYS_READ + 0x10));
	/* ksys_read: a local, saved rbp at CFA - 16, return address */
	stack_u64(fk, 0x58, 0x5678);
	stack_u64(fk, 0x60, fk_img_va(FK_ENTRY + 0x20));
	/* pt_regs at 0x68 */
	stack_u64(fk, 0x68 + 128, USER_IP);
	stack_u64(fk, 0x68 + 136, 0x33);
	stack_u64(fk, 0x68 + 152, 0x7ffc0000);
	*r = (struct rv_unwind_regs){fk_mod_va(0, 0x110), fk_img_va(STACK),
				     fk_img_va(STACK + 0x40), 0};
}

static void test_chain(void **state)
{
	struct rv_unwind_regs r;
	struct fake_kernel fk;
	uint64_t out[8];
	bool complete;

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&fk, both[i], &r);
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 3);
		assert_true(complete);
		assert_int_equal(out[0], fk_img_va(FK_VFS_READ + 0x30));
		assert_int_equal(out[1], fk_img_va(FK_KSYS_READ + 0x10));
		assert_int_equal(out[2], fk_img_va(FK_ENTRY + 0x20));
		/* No more than was asked for. */
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 2, &complete), 2);
		assert_false(complete);
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 0, NULL), 0);
		/* A kernel thread: its stack ends where the tables say so. */
		stack_u64(&fk, 0x60, fk_img_va(FK_ENTRY + 0x81));
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 3);
		assert_true(complete);
		/* User mode has no kernel callers. */
		r.ip = USER_IP;
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 0);
		assert_false(complete);
		fk_deinit(&fk);
	}
}

/* A call as the last instruction: the return address is the next function's. */
static void test_noreturn(void **state)
{
	struct rv_unwind_regs r;
	struct fake_kernel fk;
	uint64_t out[8];
	bool complete;

	(void)state;
	build(&fk, FK_NEW, &r);
	stack_u64(&fk, 8, fk_img_va(FK_KSYS_READ)); /* vfs_read's last byte + 1 */
	assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 3);
	assert_true(complete);
	assert_int_equal(out[0], fk_img_va(FK_KSYS_READ));
	assert_int_equal(out[1], fk_img_va(FK_KSYS_READ + 0x10));
	fk_deinit(&fk);
}

/* An interrupt in vfs_read: the frame is a pt_regs of kernel mode. */
static void test_interrupt(void **state)
{
	static const struct entry image[] = {
		{0, 0, 0, 0, 0, NONE},
		{FK_VFS_READ, 8, 0, SP, 0, CALL},
		{FK_KSYS_READ, 0, 0, 0, 0, END},
		{FK_ENTRY, 0, 0, SP, 0, REGS},
		{FK_ENTRY + 0x40, 8, 0, SP, 0, PARTIAL},
	};
	struct rv_unwind_regs r;
	struct fake_kernel fk;
	uint64_t out[8];
	bool complete;

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&fk, both[i], &r);
		put_orc(&fk, fk_img_va(FK_ORC_IP), fk_img_gpa(FK_ORC_IP), fk_img_gpa(FK_ORC),
			FK_BASE, image, 5, FK_ORC_MAX);
		/* pt_regs at 0x200: at the first instruction of vfs_read, so the entry of
		 * that very address counts and not the one before it. */
		stack_u64(&fk, 0x200 + 128, fk_img_va(FK_VFS_READ));
		stack_u64(&fk, 0x200 + 136, 0x10);
		stack_u64(&fk, 0x200 + 152, fk_img_va(STACK + 0x400));
		stack_u64(&fk, 0x400, fk_img_va(FK_KSYS_READ + 0x10));
		r = (struct rv_unwind_regs){fk_img_va(FK_ENTRY + 4), fk_img_va(STACK + 0x200), 0, 0};
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 2);
		assert_true(complete);
		assert_int_equal(out[0], fk_img_va(FK_VFS_READ));
		assert_int_equal(out[1], fk_img_va(FK_KSYS_READ + 0x10));
		/* Only the hardware's frame: an error code, then ip, cs, flags, sp, ss. */
		r.ip = fk_img_va(FK_ENTRY + 0x44);
		r.sp = fk_img_va(STACK + 0x200 + 120);
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 2);
		assert_int_equal(out[0], fk_img_va(FK_VFS_READ));
		fk_deinit(&fk);
	}
}

static void test_indirect(void **state)
{
	static const struct entry image[] = {
		{0, 0, 0, 0, 0, NONE},
		{FK_VFS_READ, 8, 0, SP_IND, 0, CALL},
		{FK_KSYS_READ, -8, 0, BP_IND, 0, CALL},
		{FK_ENTRY, 0, 0, R10, 0, CALL},
	};
	struct rv_unwind_regs r;
	struct fake_kernel fk;
	uint64_t out[8];
	bool complete;

	(void)state;
	build(&fk, FK_NEW, &r);
	put_orc(&fk, fk_img_va(FK_ORC_IP), fk_img_gpa(FK_ORC_IP), fk_img_gpa(FK_ORC), FK_BASE,
		image, 4, FK_ORC_MAX);
	/* [sp] + 8 is the caller's frame; then [bp - 8] is; then R10, which ends it. */
	stack_u64(&fk, 0x300, fk_img_va(STACK + 0x318));
	stack_u64(&fk, 0x318, fk_img_va(FK_KSYS_READ + 8));
	stack_u64(&fk, 0x378, fk_img_va(STACK + 0x3a0));
	stack_u64(&fk, 0x398, fk_img_va(FK_ENTRY + 8));
	r = (struct rv_unwind_regs){fk_img_va(FK_VFS_READ + 4), fk_img_va(STACK + 0x300),
				    fk_img_va(STACK + 0x380), 0};
	assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 8, &complete), 2);
	assert_false(complete);
	assert_int_equal(out[1], fk_img_va(FK_ENTRY + 8));
	fk_deinit(&fk);
}

static void test_bounds(void **state)
{
	static const struct entry loop[] = {
		{0, 0, 0, 0, 0, NONE},
		{FK_VFS_READ, 0, 0, SP_IND, 0, CALL}, /* sp = [sp]: a stack that is its own */
	};
	static uint64_t out[1024];
	struct rv_unwind_regs r;
	struct fake_kernel fk;
	bool complete;
	size_t n;

	(void)state;
	build(&fk, FK_NEW, &r);
	put_orc(&fk, fk_img_va(FK_ORC_IP), fk_img_gpa(FK_ORC_IP), fk_img_gpa(FK_ORC), FK_BASE, loop,
		2, FK_ORC_MAX);
	stack_u64(&fk, 0x100, fk_img_va(STACK + 0x100));
	stack_u64(&fk, 0xf8, fk_img_va(FK_VFS_READ + 8));
	r = (struct rv_unwind_regs){fk_img_va(FK_VFS_READ + 4), fk_img_va(STACK + 0x100), 0, 0};
	n = rv_kernel_unwind(&fk.k, &r, out, 1024, &complete);
	assert_in_range(n, 1, 200);
	assert_false(complete);
	/* A forged stack that hops between two modules: only so many lookups. */
	fk_add_module(&fk, "beta");
	for (uint32_t m = 0; m < 2; m++) {
		static const struct entry hop[] = {{0, 0, 0, 0, 0, NONE},
						   {0x100, 8, 0, SP, 0, CALL}};
		uint64_t arch = fk_mod_gpa(m, FK_MOD_STRUCT) + FK_M_ARCH;

		put_orc(&fk, fk_mod_va(m, FK_MOD_ORC_IP), fk_mod_gpa(m, FK_MOD_ORC_IP),
			fk_mod_gpa(m, FK_MOD_ORC), fk_mod_va(m, 0), hop, 2, 2);
		fake_put_u32(&fk.f, arch, 2);
		fake_put_u64(&fk.f, arch + 8, fk_mod_va(m, FK_MOD_ORC_IP));
		fake_put_u64(&fk.f, arch + 16, fk_mod_va(m, FK_MOD_ORC));
	}
	for (uint32_t i = 0; i < 100; i++)
		stack_u64(&fk, 0x800 + i * 8, fk_mod_va(i % 2, 0x110));
	assert_int_equal(rv_kernel_unwind(&fk.k,
					  &(struct rv_unwind_regs){fk_mod_va(1, 0x110),
								   fk_img_va(STACK + 0x800), 0, 0},
					  out, 1024, &complete),
			 16);
	assert_false(complete);
	fk.k.budget = 100;
	n = rv_kernel_unwind(&fk.k, &r, out, 1024, &complete);
	assert_in_range(n, 1, 100);
	fk_deinit(&fk);
}

/* Stacks in user space, at the top, unaligned, in no RAM; tables of garbage. */
static void test_hostile(void **state)
{
	static const uint64_t sps[] = {0,	  8,	      0x7fff0000,  ~0ull,
				       ~0ull - 7, 1ull << 63, FK_BASE + 1, FK_BASE + FK_SIZE - 8};
	struct rv_unwind_regs r;
	struct fake_kernel fk;
	uint64_t out[16];
	uint32_t x = 1;

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&fk, both[i], &r);
		for (size_t j = 0; j < sizeof(sps) / sizeof(sps[0]); j++) {
			struct rv_unwind_regs h = r;

			h.sp = sps[j];
			assert_int_equal(rv_kernel_unwind(&fk.k, &h, out, 16, NULL), 0);
		}
		for (int round = 0; round < 200; round++) {
			for (uint64_t at = 0; at < FK_ORC_MAX * 6; at += 2) {
				uint16_t w = (uint16_t)((x = x * 1103515245 + 12345) >> 16);

				fake_put(&fk.f, fk_img_gpa(FK_ORC) + at, &w, 2);
			}
			(void)rv_kernel_unwind(&fk.k, &r, out, 16, NULL);
		}
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_ARCH, 0xffffffff);
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 16, NULL), 0);
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_ARCH, 0);
		assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 16, NULL), 0);
		fk_deinit(&fk);
	}
	fk_init(&fk, FK_NOTYPES);
	assert_int_equal(rv_kernel_unwind(&fk.k, &r, out, 16, NULL), 0);
	fk_deinit(&fk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),	  cmocka_unit_test(test_noreturn),
		cmocka_unit_test(test_interrupt), cmocka_unit_test(test_indirect),
		cmocka_unit_test(test_bounds),	  cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
