/* SPDX-License-Identifier: Apache-2.0 */
/* btf_type_test.c: the in-place BTF reader, on good, cut and hostile tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_source.h"
#include "sym/btf_type.h"

enum { INT = 1, CHAR, NAME, INNER, INNER_T, ANON_U, OUTER, STATE, VOLATILE, PTR, BIG };

/*
 * typedef struct inner { int a; int b; } inner_t;
 * struct outer { int x; char name[56]; union { volatile inner_t in; int *p; };
 *		  int f:3; struct { ... }; };
 */
static size_t build(uint8_t *out, size_t max)
{
	struct fake_btf b;

	fake_btf_init(&b);
	assert_int_equal(fake_btf_int(&b, "int", 4), INT);
	fake_btf_int(&b, "char", 1);
	assert_int_equal(fake_btf_array(&b, CHAR, INT, 56), NAME);
	assert_int_equal(fake_btf_type(&b, "inner", RV_BTF_STRUCT, 2, 8), INNER);
	fake_btf_member(&b, "a", INT, 0);
	fake_btf_member(&b, "b", INT, 32);
	fake_btf_type(&b, "inner_t", RV_BTF_TYPEDEF, 0, INNER);
	assert_int_equal(fake_btf_type(&b, NULL, RV_BTF_UNION, 2, 8), ANON_U);
	fake_btf_member(&b, "in", VOLATILE, 0);
	fake_btf_member(&b, "p", PTR, 0);
	assert_int_equal(fake_btf_type(&b, "outer", RV_BTF_STRUCT | 0x80000000u, 4, 80), OUTER);
	fake_btf_member(&b, "x", INT, 0);
	fake_btf_member(&b, "name", NAME, 32);
	fake_btf_member(&b, NULL, ANON_U, 64 * 8);
	fake_btf_member(&b, "f", INT, 3 << 24 | 72 * 8);
	assert_int_equal(fake_btf_type(&b, "state", RV_BTF_ENUM, 3, 4), STATE);
	fake_btf_enumerator(&b, "STATE_A", 0);
	fake_btf_enumerator(&b, "STATE_B", 7);
	fake_btf_enumerator(&b, "STATE_BAD", -1);
	fake_btf_type(&b, NULL, RV_BTF_VOLATILE, 0, INNER_T);
	fake_btf_type(&b, NULL, RV_BTF_PTR, 0, INT);
	assert_int_equal(fake_btf_type(&b, "big", RV_BTF_ENUM64, 1, 8), BIG);
	fake_btf_u32(&b, fake_btf_str(&b, "BIG_ONE"));
	fake_btf_u32(&b, 1);
	fake_btf_u32(&b, 0x80);
	return fake_btf_emit(&b, out, max);
}

static void test_answers(void **state)
{
	uint32_t id, off, elem, n, ids[3];
	const char *names[3] = {"inner", "nope", "outer"};
	struct rv_btf_member m;
	struct rv_btf_types b;
	uint8_t buf[4096];
	size_t len = build(buf, sizeof(buf));
	uint64_t size;
	int64_t v;

	(void)state;
	assert_int_equal(rv_btf_types_init(&b, buf, len, NULL), 0);
	assert_int_equal(b.count, BIG);
	assert_int_equal(rv_btf_type_find(&b, "outer", &id, NULL), 0);
	assert_int_equal(id, OUTER);
	assert_int_equal(rv_btf_type_find(&b, "oute", &id, NULL), RV_ENOSYM);
	assert_int_equal(rv_btf_type_find(&b, "inner_t", &id, NULL), RV_ENOSYM);
	assert_int_equal(rv_btf_type_find_all(&b, RV_BTF_STRUCT, names, 3, ids, NULL), 0);
	assert_true(ids[0] == INNER && ids[1] == 0 && ids[2] == OUTER);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "name", &off, NULL), 0);
	assert_int_equal(off, 4);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "in.b", &off, NULL), 0);
	assert_int_equal(off, 68);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "p", &off, NULL), 0);
	assert_int_equal(off, 64);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "p.x", &off, NULL), RV_EINVAL);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "in.c", &off, NULL), RV_ENOSYM);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "", &off, NULL), RV_ENOSYM);
	assert_int_equal(rv_btf_type_offset(&b, OUTER, "f", &off, NULL), RV_EUNSUPPORTED);
	assert_int_equal(rv_btf_type_member(&b, OUTER, "f", &m, NULL), 0);
	assert_true(m.bit_size == 3 && m.bit_off == 72 * 8);
	assert_int_equal(rv_btf_type_member(&b, OUTER, "name", &m, NULL), 0);
	assert_int_equal(rv_btf_type_array(&b, m.type, &elem, &n, NULL), 0);
	assert_true(elem == CHAR && n == 56);
	assert_int_equal(rv_btf_type_array(&b, INT, &elem, &n, NULL), RV_EINVAL);
	assert_int_equal(rv_btf_type_size(&b, m.type, &size, NULL), 0);
	assert_int_equal(size, 56);
	assert_int_equal(rv_btf_type_size(&b, VOLATILE, &size, NULL), 0);
	assert_int_equal(size, 8);
	assert_int_equal(rv_btf_type_size(&b, 0, &size, NULL), RV_EUNSUPPORTED);
	assert_int_equal(rv_btf_type_size(&b, BIG + 1, &size, NULL), RV_EBADDATA);
	assert_int_equal(rv_btf_type_target(&b, PTR, &id, NULL), 0);
	assert_int_equal(id, INT);
	assert_int_equal(rv_btf_type_enumerator(&b, STATE, "STATE_B", &v, NULL), 0);
	assert_int_equal(v, 7);
	assert_int_equal(rv_btf_type_enumerator(&b, STATE, "STATE_BAD", &v, NULL), 0);
	assert_int_equal(v, -1);
	assert_int_equal(rv_btf_type_enumerator(&b, BIG, "BIG_ONE", &v, NULL), 0);
	assert_int_equal(v, 0x8000000001);
	assert_int_equal(rv_btf_type_enumerator(&b, STATE, "STATE", &v, NULL), RV_ENOSYM);
	assert_int_equal(rv_btf_type_enumerator(&b, OUTER, "x", &v, NULL), RV_EINVAL);
}

/* Ask everything; whatever the answers are, they must come. */
static void ask(const void *p, size_t len)
{
	static const char *const paths[] = {"x", "name", "in.b", "p", "f", "q", "in.a.z", "."};
	struct rv_btf_types b;
	uint32_t id, off, n;
	uint64_t size;
	int64_t v;

	if (rv_btf_types_init(&b, p, len, NULL))
		return;
	(void)!rv_btf_type_find(&b, "outer", &id, NULL);
	for (id = 0; id <= b.count + 1; id++) {
		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
			(void)!rv_btf_type_offset(&b, id, paths[i], &off, NULL);
		(void)!rv_btf_type_size(&b, id, &size, NULL);
		(void)!rv_btf_type_array(&b, id, &off, &n, NULL);
		(void)!rv_btf_type_enumerator(&b, id, "STATE_BAD", &v, NULL);
	}
}

static void test_truncated(void **state)
{
	uint8_t buf[4096];
	size_t len = build(buf, sizeof(buf));

	(void)state;
	for (size_t n = 0; n < len; n++) {
		/* Exactly n bytes, so that the sanitizer sees one too many. */
		uint8_t *p = malloc(n ? n : 1);
		struct rv_btf_types b;

		memcpy(p, buf, n);
		assert_int_equal(rv_btf_types_init(&b, p, n, NULL), RV_EBADDATA);
		/* Sections that end where the bytes do. */
		for (size_t field = 12; field <= 20 && n >= 24; field += 8) {
			uint8_t *q = malloc(n);
			uint32_t at, sz;

			memcpy(q, buf, n);
			memcpy(&at, q + field - 4, 4);
			sz = n - 24 > at ? (uint32_t)(n - 24 - at) : 0;
			memcpy(q + field, &sz, 4);
			if (field == 12) {
				uint32_t none[2] = {0, 0};

				memcpy(q + 16, none, 8);
			}
			ask(q, n);
			free(q);
		}
		free(p);
	}
}

static void test_damaged(void **state)
{
	uint8_t buf[4096];
	size_t len = build(buf, sizeof(buf));
	uint8_t *p = malloc(len);

	(void)state;
	for (size_t i = 0; i < len; i++)
		for (int v = 0; v < 4; v++) {
			static const uint8_t x[4] = {0x01, 0x80, 0xff, 0x55};

			memcpy(p, buf, len);
			p[i] ^= x[v];
			ask(p, len);
		}
	free(p);
}

/* A running guest's table: accepted first, then different underneath. */
static void test_changing(void **state)
{
	struct rv_btf_types b;
	uint8_t buf[4096];
	size_t len = build(buf, sizeof(buf));
	uint8_t *p = malloc(len);
	uint32_t id, off;
	uint64_t size;

	(void)state;
	for (size_t i = 24; i < len; i++) {
		memcpy(p, buf, len);
		assert_int_equal(rv_btf_types_init(&b, p, len, NULL), 0);
		memset(p + i, 0xff, len - i);
		(void)!rv_btf_type_find(&b, "outer", &id, NULL);
		for (id = 1; id <= b.count; id++) {
			(void)!rv_btf_type_offset(&b, id, "in.b", &off, NULL);
			(void)!rv_btf_type_size(&b, id, &size, NULL);
		}
	}
	free(p);
}

static void test_cycles(void **state)
{
	struct rv_btf_types b;
	struct fake_btf w;
	uint8_t buf[12288];
	uint32_t off, id;
	uint64_t size;
	size_t len;

	(void)state;
	fake_btf_init(&w);
	fake_btf_type(&w, "a", RV_BTF_TYPEDEF, 0, 2);
	fake_btf_type(&w, "b", RV_BTF_TYPEDEF, 0, 1);
	fake_btf_array(&w, 3, 1, 2); /* an array of itself */
	fake_btf_type(&w, "s", RV_BTF_STRUCT, 2, 8);
	fake_btf_member(&w, NULL, 4, 0); /* itself, unnamed */
	fake_btf_member(&w, NULL, 4, 0);
	fake_btf_array(&w, 6, 1, 0xffffffff);
	fake_btf_array(&w, 7, 1, 0xffffffff);
	fake_btf_array(&w, 8, 1, 0xffffffff);
	fake_btf_int(&w, "int", 4);
	fake_btf_type(&w, "wide", RV_BTF_STRUCT, 500, 8);
	for (int i = 0; i < 500; i++) /* 500 ^ depth ways */
		fake_btf_member(&w, NULL, i < 499 ? 10 : 8, 0);
	len = fake_btf_emit(&w, buf, sizeof(buf));
	assert_int_equal(rv_btf_types_init(&b, buf, len, NULL), 0);
	assert_int_equal(rv_btf_type_resolve(&b, 1, &id, NULL, NULL), RV_EBADDATA);
	assert_int_equal(rv_btf_type_size(&b, 1, &size, NULL), RV_EBADDATA);
	assert_int_equal(rv_btf_type_size(&b, 3, &size, NULL), RV_EBADDATA);
	assert_int_equal(rv_btf_type_offset(&b, 4, "x", &off, NULL), RV_EBADDATA);
	assert_int_equal(rv_btf_type_size(&b, 5, &size, NULL), RV_EBADDATA);
	/* The tree of "wide" descends into scalars, which is cheap; into itself is cut. */
	assert_int_equal(rv_btf_type_find(&b, "wide", &id, NULL), 0);
	assert_int_equal(rv_btf_type_offset(&b, id, "x", &off, NULL), RV_EBADDATA);
}

static void test_budget(void **state)
{
	struct rv_btf_types b;
	struct fake_btf w;
	uint8_t buf[12288];
	uint32_t off;
	size_t len;

	(void)state;
	fake_btf_init(&w);
	/* Eight levels of eight unnamed structures: 16 million members. */
	for (uint32_t l = 1; l <= 8; l++) {
		fake_btf_type(&w, "l", RV_BTF_STRUCT, 8, 8);
		for (int i = 0; i < 8; i++)
			fake_btf_member(&w, NULL, l + 1, 0);
	}
	fake_btf_int(&w, "int", 4);
	len = fake_btf_emit(&w, buf, sizeof(buf));
	assert_int_equal(rv_btf_types_init(&b, buf, len, NULL), 0);
	assert_int_equal(rv_btf_type_offset(&b, 1, "x", &off, NULL), RV_EBUDGET);
	assert_int_equal(rv_btf_type_offset(&b, 5, "x", &off, NULL), RV_ENOSYM);
}

static void test_header(void **state)
{
	struct rv_btf_types b;
	uint8_t buf[4096], x[4096];
	size_t len = build(buf, sizeof(buf));

	(void)state;
	memcpy(x, buf, len);
	x[2] = 2;
	assert_int_equal(rv_btf_types_init(&b, x, len, NULL), RV_EUNSUPPORTED);
	memcpy(x, buf, len);
	x[0] = 0;
	assert_int_equal(rv_btf_types_init(&b, x, len, NULL), RV_EBADDATA);
	/* A longer header, as a later kernel may have. */
	memcpy(x, buf, 24);
	memset(x + 24, 0, 8);
	memcpy(x + 32, buf + 24, len - 24);
	x[4] = 32;
	assert_int_equal(rv_btf_types_init(&b, x, len + 8, NULL), 0);
	assert_int_equal(b.count, BIG);
	assert_int_equal(rv_btf_types_init(&b, NULL, 0, NULL), RV_EBADDATA);
}

/* More types than one index step, found by id through the index. */
static void test_index(void **state)
{
	static struct fake_btf w;
	static uint8_t buf[16384];
	struct rv_btf_types b;
	uint64_t size;
	size_t len;

	(void)state;
	fake_btf_init(&w);
	for (uint32_t i = 1; i <= 600; i++)
		fake_btf_type(&w, NULL, RV_BTF_FLOAT, 0, i);
	len = fake_btf_emit(&w, buf, sizeof(buf));
	assert_int_equal(rv_btf_types_init(&b, buf, len, NULL), 0);
	for (uint32_t i = 1; i <= 600; i++) {
		assert_int_equal(rv_btf_type_size(&b, i, &size, NULL), 0);
		assert_int_equal(size, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_changing),
		cmocka_unit_test(test_cycles),	cmocka_unit_test(test_budget),
		cmocka_unit_test(test_header),	cmocka_unit_test(test_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
