/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms_test.c: every encoding that ever was, truncated and damaged in every place. */
#include "fake_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N   300
#define LEN 16384
#define AT  1024

/* What each kernel writes; the names say since when. */
static const struct {
	const char *name;
	struct fake_ksym_opts o;
} forms[] = {
	{"v4.5 absolute, 8-byte markers", {RV_KSYM_ABSOLUTE, 8, 8, true, false}},
	{"v4.6 relative, 8-byte markers", {RV_KSYM_RELATIVE, 8, 8, true, false}},
	{"v4.19 percpu, 8-byte markers", {RV_KSYM_ABSOLUTE_PERCPU, 8, 8, true, false}},
	{"v4.20 absolute", {RV_KSYM_ABSOLUTE, 4, 8, true, false}},
	{"v4.20 relative", {RV_KSYM_RELATIVE, 4, 8, true, false}},
	{"v5.10 percpu", {RV_KSYM_ABSOLUTE_PERCPU, 4, 8, true, false}},
	{"v6.2 percpu with sequence", {RV_KSYM_ABSOLUTE_PERCPU, 4, 8, true, true}},
	{"v6.2 relative with sequence", {RV_KSYM_RELATIVE, 4, 8, true, true}},
	{"v6.4 percpu", {RV_KSYM_ABSOLUTE_PERCPU, 4, 8, false, true}},
	{"v6.4 relative", {RV_KSYM_RELATIVE, 4, 8, false, true}},
	{"v6.4 absolute", {RV_KSYM_ABSOLUTE, 4, 8, false, true}},
	{"v7.0 prel32", {RV_KSYM_PREL32, 4, 4, false, true}},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

struct fix {
	uint8_t *mem;
	size_t end;
	struct fake_sym syms[N];
	char names[N][16];
	char long_name[401];
	struct rv_kallsyms_layout want;
	struct rv_kallsyms k;
};

static void build(struct fix *f, size_t form, size_t at)
{
	const struct fake_ksym_opts *o = &forms[form].o;
	bool percpu = o->encoding == RV_KSYM_ABSOLUTE_PERCPU || o->encoding == RV_KSYM_ABSOLUTE;
	uint32_t n = 0;

	memset(f, 0, sizeof(*f));
	f->mem = calloc(1, LEN);
	memset(f->long_name, 'L', 400);
	if (percpu) {
		f->syms[n++] = (struct fake_sym){"fixed_percpu_data", 'A', 0};
		f->syms[n++] = (struct fake_sym){"irq_stack", 'A', 0x4000};
	}
	f->syms[n++] = (struct fake_sym){"_text", 'T', FAKE_BASE};
	f->syms[n++] = (struct fake_sym){"startup_64", 'T', FAKE_BASE};
	f->syms[n++] = (struct fake_sym){f->long_name, 't', FAKE_BASE + 0x10};
	f->syms[n++] = (struct fake_sym){"clone.constprop.0", 't', FAKE_BASE + 0x20};
	fake_syms_fill(f->syms, n, N, FAKE_BASE + 0x30, f->names);
	f->end = fake_kallsyms(f->mem, LEN, at, FAKE_BASE, f->syms, N, o, &f->want);
	f->k = (struct rv_kallsyms){f->mem, LEN, FAKE_BASE, 0, f->want};
}

static void fix_free(struct fix *f)
{
	free(f->mem);
}

static void find_all(void **state)
{
	struct rv_kallsyms_layout l;
	struct rv_err err;
	struct fix f;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		for (size_t at = AT; at < AT + 16; at += 4) {
			build(&f, i, at);
			if (rv_kallsyms_find(f.mem, LEN, FAKE_BASE, RV_ARCH_X86_64, &l, &err))
				fail_msg("%s: %s", forms[i].name, err.what);
			assert_int_equal(l.encoding, f.want.encoding);
			assert_int_equal(l.num_syms, N);
			assert_int_equal(l.names, f.want.names);
			assert_int_equal(l.names_len, f.want.names_len);
			assert_int_equal(l.markers, f.want.markers);
			assert_int_equal(l.marker_size, f.want.marker_size);
			assert_int_equal(l.token_table, f.want.token_table);
			assert_int_equal(l.token_index, f.want.token_index);
			assert_int_equal(l.offsets, f.want.offsets);
			assert_true(l.relative_base == f.want.relative_base);
			fix_free(&f);
		}
	}
}

static int count_one(const struct rv_symbol *s, void *arg)
{
	const struct fix *f = ((void **)arg)[0];
	uint32_t *n = ((void **)arg)[1];

	assert_string_equal(s->name, f->syms[*n].name);
	assert_int_equal(s->type, f->syms[*n].type);
	assert_true(s->va == f->syms[*n].va);
	++*n;
	return 0;
}

static int stop_at_5(const struct rv_symbol *s, void *arg)
{
	(void)s;
	return ++*(int *)arg == 5 ? 77 : 0;
}

static void read_all(void **state)
{
	struct rv_symbol s;
	struct rv_err err;
	struct fix f;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		uint32_t n = 0;
		void *arg[2] = {&f, &n};
		int five = 0;

		build(&f, i, AT);
		assert_int_equal(rv_kallsyms_each(&f.k, count_one, arg), 0);
		assert_int_equal(n, N);
		assert_int_equal(rv_kallsyms_each(&f.k, stop_at_5, &five), 77);
		for (n = 0; n < N; n++) {
			assert_int_equal(rv_kallsyms_at(&f.k, n, &s, &err), 0);
			assert_string_equal(s.name, f.syms[n].name);
			assert_true(s.va == f.syms[n].va);
			assert_int_equal(rv_kallsyms_lookup(&f.k, f.syms[n].name, &s, &err), 0);
			assert_true(s.va == f.syms[n].va);
		}
		assert_int_equal(rv_kallsyms_at(&f.k, N, &s, &err), RV_EINVAL);
		assert_int_equal(rv_kallsyms_lookup(&f.k, "sym_", &s, &err), RV_ENOSYM);
		assert_int_equal(rv_kallsyms_lookup(&f.k, "", &s, &err), RV_ENOSYM);
		fix_free(&f);
	}
}

static void nearest(void **state)
{
	struct rv_symbol s;
	struct rv_err err;
	struct fix f;
	uint64_t off;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const struct fake_sym *last = &f.syms[N - 1];

		build(&f, i, AT);
		assert_int_equal(rv_kallsyms_nearest(&f.k, FAKE_BASE, &s, &off, &err), 0);
		assert_string_equal(s.name, "_text"); /* the first of two at one address */
		assert_int_equal(s.size, 0x10);
		assert_int_equal(rv_kallsyms_nearest(&f.k, FAKE_BASE + 0x2f, &s, &off, &err), 0);
		assert_string_equal(s.name, "clone.constprop.0");
		assert_int_equal(off, 0xf);
		assert_int_equal(rv_kallsyms_nearest(&f.k, last->va, &s, &off, &err), 0);
		assert_string_equal(s.name, last->name);
		assert_int_equal(s.size, 0);
		/* Below: percpu numbers are no addresses. */
		assert_int_equal(rv_kallsyms_nearest(&f.k, 0x4001, &s, &off, &err), RV_ENOTMAPPED);
		assert_int_equal(rv_kallsyms_nearest(&f.k, FAKE_BASE - 1, &s, &off, &err),
				 RV_ENOTMAPPED);
		assert_int_equal(rv_kallsyms_nearest(&f.k, FAKE_BASE + LEN, &s, &off, &err),
				 RV_ENOTMAPPED);
		assert_int_equal(rv_kallsyms_nearest(&f.k, UINT64_MAX, &s, &off, &err),
				 RV_ENOTMAPPED);
		fix_free(&f);
	}
}

/* A kernel that moved itself: everything but percpu numbers moves along. */
static void slide(void **state)
{
	struct rv_symbol s;
	struct rv_err err;
	struct fix f;
	uint64_t off;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		build(&f, i, AT);
		f.k.slide = 0x12000000;
		assert_int_equal(rv_kallsyms_lookup(&f.k, "startup_64", &s, &err), 0);
		assert_true(s.va == FAKE_BASE + 0x12000000);
		assert_int_equal(rv_kallsyms_nearest(&f.k, FAKE_BASE + 0x12000025, &s, &off, &err),
				 0);
		assert_string_equal(s.name, "clone.constprop.0");
		if (f.syms[1].type == 'A') {
			assert_int_equal(rv_kallsyms_lookup(&f.k, "irq_stack", &s, &err), 0);
			assert_int_equal(s.va, 0x4000);
		}
		fix_free(&f);
	}
}

static void resolve(void **state)
{
	struct rv_symbol_want w[] = {
		{.name = "clone", .stem = true},
		{.name = "clone"},
		{.name = "startup_64"},
		{.name = "sym_00*"},
		{.name = "absent"},
		{.name = "clone.constprop.0"},
	};
	struct rv_symbol_want many[RV_SYMBOL_WANTS_MAX + 1];
	struct rv_err err;
	struct fix f;

	(void)state;
	build(&f, 9, AT);
	assert_int_equal(rv_kallsyms_resolve(&f.k, w, 6, &err), 0);
	assert_int_equal(w[0].count, 1);
	assert_true(w[0].va == FAKE_BASE + 0x20);
	assert_int_equal(w[0].size, 0x10);
	assert_string_equal(w[0].found, "clone.constprop.0");
	assert_int_equal(w[1].count, 0);
	assert_int_equal(w[2].count, 1);
	assert_int_equal(w[3].count, 96); /* 0004 to 0099 */
	assert_true(w[3].last > w[3].va);
	assert_int_equal(w[4].count, 0);
	assert_int_equal(w[5].count, 1);
	for (size_t i = 0; i < RV_SYMBOL_WANTS_MAX + 1; i++)
		many[i] = w[4];
	assert_int_equal(rv_kallsyms_resolve(&f.k, many, RV_SYMBOL_WANTS_MAX + 1, &err), RV_EINVAL);
	fix_free(&f);
}

/* All entry points, whatever they answer; the sanitizers are the judge. */
static void poke(const struct rv_kallsyms *k)
{
	struct rv_symbol_want w[] = {{.name = "sym_0299", .stem = true}, {.name = "cl*"}};
	struct rv_symbol s;
	struct rv_err err;
	uint64_t off;
	int never = 1000;

	(void)!rv_kallsyms_lookup(k, "sym_0299", &s, &err);
	(void)!rv_kallsyms_at(k, 0, &s, &err);
	(void)!rv_kallsyms_at(k, N - 1, &s, &err);
	(void)!rv_kallsyms_nearest(k, FAKE_BASE + 0x123, &s, &off, &err);
	(void)!rv_kallsyms_resolve(k, w, 2, &err);
	(void)rv_kallsyms_each(k, stop_at_5, &never);
}

/* Copied to an allocation of just that size, so that one byte too far is seen. */
static void truncated(void **state)
{
	struct rv_kallsyms_layout l;
	struct rv_err err;
	struct fix f;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		build(&f, i, AT);
		for (size_t cut = AT; cut <= f.end; cut++) {
			uint8_t *m = malloc(cut);
			struct rv_kallsyms k = {m, cut, FAKE_BASE, 0, f.want};
			int rc;

			memcpy(m, f.mem, cut);
			rc = rv_kallsyms_find(m, cut, FAKE_BASE, RV_ARCH_X86_64, &l, &err);
			/* Found, if what is cut off is the sequence, which nobody needs. */
			if (rc == 0)
				assert_int_equal(l.num_syms, N);
			else
				assert_true(rc == RV_ENOSYM || rc == RV_EBADDATA);
			if (cut % 16 == i)
				poke(&k);
			free(m);
		}
		fix_free(&f);
	}
}

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void flipped(void **state)
{
	struct rv_kallsyms_layout l;
	uint32_t x = 0x9e3779b9;
	struct rv_err err;
	struct fix f;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		build(&f, i, AT);
		for (int n = 0; n < 1000; n++) {
			size_t at = AT + next_random(&x) % (f.end - AT);
			uint8_t old = f.mem[at];

			f.mem[at] = (uint8_t)next_random(&x);
			(void)!rv_kallsyms_find(f.mem, LEN, FAKE_BASE, RV_ARCH_X86_64, &l, &err);
			if (n % 8 == 0)
				poke(&f.k);
			f.mem[at] = old;
		}
		fix_free(&f);
	}
}

/* A layout that was handed over by somebody who lies. */
static void wild_layout(void **state)
{
	uint32_t x = 0x1234567;
	struct fix f;

	(void)state;
	build(&f, 8, AT);
	for (int n = 0; n < 5000; n++) {
		struct rv_kallsyms k = f.k;
		uint64_t *field[] = {&k.lay.names,	 &k.lay.markers, &k.lay.token_table,
				     &k.lay.token_index, &k.lay.offsets, &k.lay.names_len};
		uint64_t v = next_random(&x);

		*field[n % 6] = n % 3 ? v % (LEN + 64) : v << 32 | v;
		k.lay.encoding = next_random(&x) % 6;
		poke(&k);
	}
	f.k.lay.num_syms = 0xffffffff;
	poke(&f.k);
	fix_free(&f);
}

static void none(void **state)
{
	struct rv_kallsyms_layout l;
	struct rv_err err;
	uint8_t *zero = calloc(1, LEN);

	(void)state;
	assert_int_equal(rv_kallsyms_find(zero, LEN, FAKE_BASE, RV_ARCH_X86_64, &l, &err),
			 RV_ENOSYM);
	assert_int_equal(rv_kallsyms_find(zero, 0, FAKE_BASE, RV_ARCH_ARM64, &l, &err), RV_ENOSYM);
	assert_int_equal(rv_kallsyms_find(zero, LEN, FAKE_BASE, RV_ARCH_UNKNOWN, &l, &err),
			 RV_EINVAL);
	free(zero);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_all), cmocka_unit_test(read_all),
		cmocka_unit_test(nearest),  cmocka_unit_test(slide),
		cmocka_unit_test(resolve),  cmocka_unit_test(truncated),
		cmocka_unit_test(flipped),  cmocka_unit_test(wild_layout),
		cmocka_unit_test(none),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
