/* SPDX-License-Identifier: Apache-2.0 */
/* module_test.c: kernel views: probing, modules, tasks, names; and hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_kernel.h"

static const enum fk_flavour both[2] = {FK_OLD, FK_NEW};

static void expect_name(const struct rv_kernel *k, uint64_t va, int rc, const char *want)
{
	char buf[128];

	assert_int_equal(rv_kernel_symbolize(k, va, buf, sizeof(buf)), rc);
	assert_string_equal(buf, want);
}

static void test_probe(void **state)
{
	struct fake_kernel fk;
	struct rv_kernel_params p;
	struct rv_kernel k;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fk_init(&fk, both[i]);
		for (int c = 0; c < RV_KCAP_COUNT; c++) {
			assert_string_equal(rv_kernel_cap(&fk.k, (enum rv_kernel_cap)c)->missing,
					    "");
			assert_true(rv_kernel_cap(&fk.k, (enum rv_kernel_cap)c)->ok);
		}
		assert_int_equal(fk.k.orc.type_bits, both[i] == FK_OLD ? 2 : 3);
		assert_int_equal(fk.k.off.mod_size, FK_M_SIZE);
		/* Damaged types take capabilities away, and say so. */
		p = fk.params;
		p.btf_size = 100;
		assert_int_equal(rv_kernel_init(&k, &p, NULL), 0);
		assert_false(rv_kernel_cap(&k, RV_KCAP_TYPES)->ok);
		assert_string_not_equal(rv_kernel_cap(&k, RV_KCAP_MODULES)->missing, "");
		p.btf_size = FK_SIZE;
		assert_int_equal(rv_kernel_init(&k, &p, NULL), 0);
		assert_string_equal(rv_kernel_cap(&k, RV_KCAP_TYPES)->missing,
				    "BTF lies outside the image");
		p.kallsyms = NULL;
		assert_int_equal(rv_kernel_init(&k, &p, NULL), 0);
		assert_false(rv_kernel_cap(&k, RV_KCAP_SYMBOLS)->ok);
		p = fk.params;
		p.slide += 0x1000;
		assert_int_equal(rv_kernel_init(&k, &p, NULL), RV_EINVAL);
		p = fk.params;
		p.image_size = 0;
		assert_int_equal(rv_kernel_init(&k, &p, NULL), RV_EINVAL);
		fk_deinit(&fk);
	}
	fk_init(&fk, FK_NOTYPES);
	assert_true(rv_kernel_cap(&fk.k, RV_KCAP_SYMBOLS)->ok);
	assert_true(rv_kernel_cap(&fk.k, RV_KCAP_DIRECT_MAP)->ok);
	assert_string_equal(rv_kernel_cap(&fk.k, RV_KCAP_MODULES)->missing, "types (BTF)");
	assert_string_equal(rv_kernel_cap_name(RV_KCAP_MODULE_SYMS), "module-symbols");
	assert_false(rv_kernel_cap(&fk.k, RV_KCAP_COUNT)->ok);
	fk_deinit(&fk);
}

static void test_find(void **state)
{
	struct rv_module_mem part;
	struct fake_kernel fk;
	struct rv_module m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fk_init(&fk, both[i]);
		assert_int_equal(rv_module_find(&fk.k, fk_mod_va(0, 0), &m, &part, NULL),
				 RV_ENOTMAPPED);
		fk_add_module(&fk, "alpha");
		fk_add_module(&fk, "beta");
		assert_int_equal(rv_module_find(&fk.k, fk_mod_va(1, 0xfff), &m, &part, NULL), 0);
		assert_string_equal(m.name, "beta");
		assert_true(m.live && !m.coming);
		assert_int_equal(part.kind, RV_SECT_TEXT);
		assert_int_equal(part.base, fk_mod_va(1, 0));
		assert_int_equal(part.size, 0x1000);
		assert_int_equal(rv_module_find(&fk.k, fk_mod_va(0, 0x7fff), &m, &part, NULL), 0);
		assert_string_equal(m.name, "alpha");
		assert_int_equal(part.kind, RV_SECT_DATA);
		/* Just past the end, and just before. */
		assert_int_equal(rv_module_find(&fk.k, fk_mod_va(1, 0x8000), &m, NULL, NULL),
				 RV_ENOTMAPPED);
		assert_int_equal(rv_module_find(&fk.k, fk_mod_va(0, 0) - 1, &m, NULL, NULL),
				 RV_ENOTMAPPED);
		fk_deinit(&fk);
	}
	fk_init(&fk, FK_NOTYPES);
	assert_int_equal(rv_module_find(&fk.k, fk_mod_va(0, 0), &m, &part, NULL), RV_EUNSUPPORTED);
	fk_deinit(&fk);
}

static void test_names(void **state)
{
	struct fake_kernel fk;
	char buf[64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		fk_init(&fk, both[i]);
		fk_add_module(&fk, "alpha");
		fk_add_module(&fk, "be\nta");
		expect_name(&fk.k, fk_img_va(FK_VFS_READ + 0x30), 0, "vfs_read+0x30");
		expect_name(&fk.k, fk_mod_va(0, 0x11c), 0, "alpha_fn+0x1c [alpha]");
		expect_name(&fk.k, fk_mod_va(1, 0x100), 0, "be?ta_fn+0x0 [be?ta]");
		expect_name(&fk.k, fk_mod_va(0, 0x1010), 0, "alpha_var+0x0 [alpha]");
		/* Below the first symbol of its part: never the part before. */
		expect_name(&fk.k, fk_mod_va(0, 0xff), 0, "[alpha text]+0xff");
		expect_name(&fk.k, FK_DIRECT + FK_GPA + FK_VFS_READ, 0,
			    "vfs_read+0x0 (direct map)");
		expect_name(&fk.k, FK_DIRECT + 0x1000, RV_ENOTMAPPED,
			    "0xffff888000001000 (direct map)");
		expect_name(&fk.k, FK_DIRECT - 1, RV_ENOTMAPPED, "0xffff887fffffffff");
		expect_name(&fk.k, 0x400000, RV_ENOTMAPPED, "0x400000");
		expect_name(&fk.k, 0, RV_ENOTMAPPED, "0x0");
		expect_name(&fk.k, ~0ull, RV_ENOTMAPPED, "0xffffffffffffffff");
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, FK_GPA + FK_KSYS_READ + 2, buf, 64),
				 0);
		assert_string_equal(buf, "ksys_read+0x2");
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, FK_GPA - 1, buf, 64),
				 RV_ENOTMAPPED);
		assert_string_equal(buf, "gpa 0x1fffff");
		/* Module memory by its place in RAM, first and last byte. */
		expect_name(&fk.k, FK_DIRECT + fk_mod_gpa(1, 0x100), 0,
			    "be?ta_fn+0x0 [be?ta] (direct map)");
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, fk_mod_gpa(0, 0x7fff), buf, 64), 0);
		assert_string_equal(buf, "alpha_var+0x6fef [alpha]");
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, fk_mod_gpa(0, 0x8000), buf, 64),
				 RV_ENOTMAPPED);
		/* Between text and rodata the image is given away: no name of the image by
		 * physical address, and the module's where a module got the page. */
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, FK_GPA + 0x3000, buf, 64),
				 RV_ENOTMAPPED);
		assert_string_equal(buf, "gpa 0x203000");
		fake_map(&fk.f, fk_mod_va(0, 0), FK_GPA + 0x3000, 1, FAKE_RW);
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, FK_GPA + 0x3104, buf, 64), 0);
		assert_string_equal(buf, "alpha_fn+0x4 [alpha]");
		/* But a module that maps the kernel's text does not become its name. */
		fake_map(&fk.f, fk_mod_va(0, 0), FK_GPA + 0x1000, 1, FAKE_RW);
		assert_int_equal(rv_kernel_symbolize_gpa(&fk.k, FK_GPA + FK_VFS_READ, buf, 64), 0);
		assert_string_equal(buf, "vfs_read+0x0");
		/* Cut, not overrun. */
		assert_int_equal(rv_kernel_symbolize(&fk.k, fk_img_va(FK_VFS_READ), buf, 6), 0);
		assert_string_equal(buf, "vfs_r");
		fk_deinit(&fk);
	}
}

static void test_states(void **state)
{
	struct fake_kernel fk;
	uint64_t st = fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_STATE;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fk_init(&fk, both[i]);
		fk_add_module(&fk, "alpha");
		fake_put_u32(&fk.f, st, 1);
		expect_name(&fk.k, fk_mod_va(0, 0x100), 0, "alpha_fn+0x0 [alpha]");
		/* Going: its place is still its own, its symbols may be gone. */
		fake_put_u32(&fk.f, st, 2);
		expect_name(&fk.k, fk_mod_va(0, 0x100), 0, "[alpha text]+0x100");
		/* Unformed, or nonsense: nothing in it is believed. */
		fake_put_u32(&fk.f, st, 3);
		expect_name(&fk.k, fk_mod_va(0, 0x100), RV_ENOTMAPPED, "0xffffffffc0000100");
		fake_put_u32(&fk.f, st, 0x80000000u);
		expect_name(&fk.k, fk_mod_va(0, 0x100), RV_ENOTMAPPED, "0xffffffffc0000100");
		fk_deinit(&fk);
	}
}

static int count(const struct rv_module *m, void *arg)
{
	(void)m;
	return ++*(int *)arg, 0;
}

static void test_lists(void **state)
{
	uint64_t head = fk_img_gpa(FK_MODULES), next;
	struct rv_err err = {0};
	struct fake_kernel fk;
	int n;

	(void)state;
	fk_init(&fk, FK_NEW);
	for (int i = 0; i < 9; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%d", i);
		fk_add_module(&fk, name);
	}
	n = 0;
	assert_int_equal(rv_module_each(&fk.k, count, &n, &err), 0);
	assert_int_equal(n, 9);
	next = fk_mod_gpa(8, FK_MOD_STRUCT) + FK_M_LIST;
	/* Cycles of every length that do not contain the head. */
	for (uint32_t to = 0; to < 9; to++) {
		fake_put_u64(&fk.f, next, fk_mod_va(to, FK_MOD_STRUCT) + FK_M_LIST);
		n = 0;
		assert_int_equal(rv_module_each(&fk.k, count, &n, &err), RV_EBADDATA);
		assert_in_range(n, 9, 64);
	}
	/* Ends nowhere: null, user space, not canonical, the top, unaligned, outside RAM. */
	static const uint64_t ends[] = {0,
					8,
					0x1000,
					0x8000000000000000ull,
					~0ull,
					~0ull - 7,
					0xffffffffc0ffff01ull,
					FK_DIRECT + 0x40000000};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		fake_put_u64(&fk.f, next, ends[i]);
		n = 0;
		assert_int_equal(rv_module_each(&fk.k, count, &n, &err), RV_EBADDATA);
		assert_true(err.has_addr);
		assert_int_equal(n, 9);
		fake_put_u64(&fk.f, head, ends[i]);
		assert_int_equal(rv_module_each(&fk.k, count, &n, &err), RV_EBADDATA);
		fake_put_u64(&fk.f, head, fk_mod_va(0, FK_MOD_STRUCT) + FK_M_LIST);
	}
	fk.k.budget = 20;
	assert_int_equal(rv_module_each(&fk.k, count, &n, &err), RV_EBUDGET);
	fk_deinit(&fk);
}

/* Every 4-byte word of the structures set to hostile values: an answer, no more. */
static void test_hostile(void **state)
{
	static const uint32_t values[] = {0xffffffff, 0x80000000, 0x7fffffff, 0, 1, 0x40000};
	static const struct {
		uint64_t off, len;
	} areas[] = {{FK_MOD_STRUCT, FK_M_SIZE}, {FK_MOD_KS, 32}, {FK_MOD_SYMTAB, 144}};
	struct fake_kernel fk;
	char buf[128], name[64];
	uint64_t off;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fk_init(&fk, both[i]);
		fk_add_module(&fk, "alpha");
		fk.k.budget = 5000;
		for (size_t a = 0; a < 3; a++)
			for (uint64_t at = 0; at < areas[a].len; at += 4)
				for (size_t v = 0; v < 6; v++) {
					uint64_t gpa = fk_mod_gpa(0, areas[a].off + at);
					struct rv_module m;
					uint32_t keep;

					memcpy(&keep, fk.f.ram + gpa, 4);
					fake_put_u32(&fk.f, gpa, values[v]);
					(void)rv_kernel_symbolize(&fk.k, fk_mod_va(0, 0x130), buf,
								  sizeof(buf));
					if (!rv_module_find(&fk.k, fk_mod_va(0, 0x130), &m, NULL,
							    NULL))
						(void)!rv_module_symbol(&fk.k, &m,
									fk_mod_va(0, 0x130), name,
									sizeof(name), &off, NULL);
					fake_put_u32(&fk.f, gpa, keep);
				}
		/* A part of 4 GiB, mostly holes, and one that ends at the top. */
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_MEM + 8, 0xffffffff);
		assert_int_equal(rv_module_find_gpa(&fk.k, 0x1000, &off, NULL), RV_ENOTMAPPED);
		fake_put_u64(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_MEM, ~0ull);
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_MEM + 8, 1);
		assert_int_equal(rv_module_find_gpa(&fk.k, 0x1000, &off, NULL), RV_ENOTMAPPED);
		fake_put_u64(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_MEM, fk_mod_va(0, 0));
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_STRUCT) + FK_M_MEM + 8,
			     both[i] == FK_NEW ? 0x1000 : 0x8000);
		/* And what some of them must be. */
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_KS + 8), 0xffffffff);
		expect_name(&fk.k, fk_mod_va(0, 0x100), 0, "[alpha text]+0x100");
		fake_put_u32(&fk.f, fk_mod_gpa(0, FK_MOD_KS + 8), 262144); /* runs off its memory */
		expect_name(&fk.k, fk_mod_va(0, 0x100), 0, "[alpha text]+0x100");
		fk_deinit(&fk);
	}
}

static void test_task(void **state)
{
	struct fake_kernel fk;
	struct rv_task t;
	uint64_t gs = fk_img_va(FK_PERCPU);

	(void)state;
	for (int i = 0; i < 2; i++) {
		fk_init(&fk, both[i]);
		assert_true(rv_task_current(&fk.k, gs, &t));
		assert_int_equal(t.pid, 42);
		assert_int_equal(t.tgid, 41);
		assert_string_equal(t.comm, "sh?ell");
		assert_int_equal(t.stack, 0xffffc90000000000ull);
		assert_false(rv_task_current(&fk.k, 0, &t));
		assert_int_equal(t.va, 0);
		assert_false(rv_task_current(&fk.k, 0x7f0000001000, &t));
		assert_false(rv_task_current(&fk.k, ~0ull, &t));
		assert_false(rv_task_current(&fk.k, gs + 0x1000, &t)); /* a null pointer there */
		assert_false(rv_task_at(&fk.k, 0xffffc90000000000ull, &t));
		/* No NUL in comm: what follows it is not read. */
		fake_put(&fk.f, fk_img_gpa(FK_INIT_TASK) + 24, "0123456789abcdefXXXX", 20);
		assert_true(rv_task_current(&fk.k, gs, &t));
		assert_string_equal(t.comm, "0123456789abcde");
		fk_deinit(&fk);
	}
}

/* The kernel's own table is used when it maps the image, CR3 when it does not. */
static void test_root(void **state)
{
	struct fake_kernel fk;
	struct rv_view v;
	uint64_t x;

	(void)state;
	fk_init(&fk, FK_NEW);
	/* A table at image offset 0x10000: a copy of the real root. */
	memcpy(fk.f.ram + FK_GPA + 0x10000, fk.f.ram + FAKE_ROOT, 4096);
	fk.k.sym_root_table = fk_img_va(0x10000);
	fk.k.regs.x86.cr3 = 0x3ff000; /* an empty user table */
	assert_int_equal(rv_kernel_view(&fk.k, &v, NULL), 0);
	assert_int_equal(v.regs.x86.cr3, FK_GPA + 0x10000);
	assert_int_equal(v.budget, fk.k.budget);
	assert_int_equal(rv_view_read_u64(&v, rv_gva_of(fk_img_va(FK_MODULES)), &x, NULL), 0);
	memset(fk.f.ram + FK_GPA + 0x10000, 0, 4096);
	rv_kernel_set_regs(&fk.k, &fk.f.regs);
	assert_int_equal(rv_kernel_view(&fk.k, &v, NULL), 0);
	assert_int_equal(v.regs.x86.cr3, FAKE_ROOT);
	assert_int_equal(rv_view_read_u64(&v, rv_gva_of(fk_img_va(FK_MODULES)), &x, NULL), 0);
	/* The image's last byte, and one past it. */
	assert_int_equal(rv_kernel_image_read(&fk.k, FK_BASE + FK_SIZE - 8, &x, 8, NULL), 0);
	assert_int_equal(rv_kernel_image_read(&fk.k, FK_BASE + FK_SIZE - 7, &x, 8, NULL),
			 RV_ENOTMAPPED);
	fk_deinit(&fk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe), cmocka_unit_test(test_find),
		cmocka_unit_test(test_names), cmocka_unit_test(test_states),
		cmocka_unit_test(test_lists), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_task),  cmocka_unit_test(test_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
