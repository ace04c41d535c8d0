/* SPDX-License-Identifier: Apache-2.0 */
/* place_test.c: draws are uniform, windows are exact.   unit-sources: vmm/place.c */
#include "../../vmm/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB2 (2ull << 20)

/*
 * Pearson's chi-square of counts against a uniform expectation, d = k - 1 degrees of freedom.
 * Laurent and Massart (Annals of Statistics 28, 2000, lemma 1): above d + 2 sqrt(d x) + 2x, and
 * below d - 2 sqrt(d x), with probability at most e^-x each. x = 16: one false alarm in four
 * million. With few cells the distribution is far from normal, so that "five standard
 * deviations" would be met once in some 200 runs.
 */
static void assert_uniform(const uint32_t *count, uint32_t k, uint64_t draws)
{
	double expected = (double)draws / k, chi = 0, dev, over;

	for (uint32_t i = 0; i < k; i++)
		chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
	dev = chi - (k - 1);
	over = dev > 0 ? dev - 32 : dev;
	/* over^2 > (2 sqrt(16 d))^2, without a square root */
	if ((dev < 0 || over > 0) && over * over > 64.0 * (k - 1))
		fail_msg("chi-square %.1f for %u cells", chi, k);
}

static void test_random_below(void **state)
{
	static const uint32_t ks[] = {1, 2, 3, 7, 480, 1000};

	(void)state;
	for (size_t j = 0; j < sizeof(ks) / sizeof(ks[0]); j++) {
		uint32_t *count = calloc(ks[j], sizeof(*count));

		for (uint32_t i = 0; i < 200000; i++) {
			uint64_t v = rv_random_below(ks[j]);

			assert_true(v < ks[j]);
			count[v]++;
		}
		if (ks[j] > 1)
			assert_uniform(count, ks[j], 200000);
		free(count);
	}
}

static void test_random_below_large(void **state)
{
	/* Just above half of 2^64: a plain remainder would hit the lower half twice as often. */
	uint64_t n = (1ull << 63) + (1ull << 62);
	uint32_t count[3] = {0};

	(void)state;
	for (uint32_t i = 0; i < 60000; i++)
		count[rv_random_below(n) / (1ull << 62)]++;
	assert_uniform(count, 3, 60000);
}

static void test_log2(void **state)
{
	static const struct {
		uint64_t n;
		double bits;
	} t[] = {{1, 0}, {2, 1}, {3, 1.5849625}, {480, 8.9068906}, {1ull << 40, 40}};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		double d = rv_log2(t[i].n) - t[i].bits;

		assert_true(d < 1e-5 && d > -1e-5);
	}
}

static void test_windows_exact(void **state)
{
	struct rv_windows w = {.n = 0};

	(void)state;
	/* Exactly one fits. */
	rv_windows_add(&w, MIB2, 3 * MIB2, 0, 0, 2 * MIB2, MIB2);
	assert_int_equal(rv_windows_total(&w), 1);
	assert_true(rv_windows_has(&w, MIB2, MIB2));
	assert_false(rv_windows_has(&w, 2 * MIB2, MIB2));
	assert_false(rv_windows_has(&w, MIB2 + 4096, MIB2));
	/* One byte short: none. */
	w.n = 0;
	rv_windows_add(&w, MIB2, 3 * MIB2 - 1, 0, 0, 2 * MIB2, MIB2);
	assert_int_equal(rv_windows_total(&w), 0);
	/* An unaligned start is rounded up. */
	rv_windows_add(&w, MIB2 + 1, 5 * MIB2, 0, 0, MIB2, MIB2);
	assert_int_equal(rv_windows_total(&w), 3);
	assert_int_equal(w.w[0].first, 2 * MIB2);
}

static void test_windows_around_taken(void **state)
{
	/* 16 MiB .. 256 MiB with 9 MiB taken at 100 MiB; 50 MiB are needed. */
	uint64_t lo = 8 * MIB2, hi = 128 * MIB2, taken = 50 * MIB2, len = 9 << 20;
	uint64_t need = 25 * MIB2, total;
	struct rv_windows w = {.n = 0};
	uint32_t count[256] = {0}, cell[256], k = 0;

	(void)state;
	rv_windows_add(&w, lo, hi, taken, len, need, MIB2);
	total = rv_windows_total(&w);
	assert_int_equal(w.n, 2);
	assert_int_equal(total, (50 - 25 - 8 + 1) + (128 - 25 - 55 + 1));
	for (uint32_t i = 0; i < 200000; i++) {
		uint64_t a = rv_windows_draw(&w, MIB2);

		assert_true(a >= lo && a + need <= hi && !(a % MIB2));
		assert_true(a + need <= taken || a >= taken + len);
		count[a / MIB2]++;
	}
	/* Every start that is possible occurs, and each as often as any other. */
	for (uint32_t i = 0; i < 256; i++)
		if (count[i])
			cell[k++] = count[i];
	assert_int_equal(k, total);
	assert_uniform(cell, k, 200000);
}

static void test_taken_at_the_edges(void **state)
{
	struct rv_windows w = {.n = 0};

	(void)state;
	rv_windows_add(&w, MIB2, 9 * MIB2, MIB2, MIB2, MIB2, MIB2); /* at the start */
	assert_int_equal(rv_windows_total(&w), 7);
	w.n = 0;
	rv_windows_add(&w, MIB2, 9 * MIB2, 8 * MIB2, MIB2, MIB2, MIB2); /* at the end */
	assert_int_equal(rv_windows_total(&w), 7);
	w.n = 0;
	rv_windows_add(&w, MIB2, 9 * MIB2, 0, 20 * MIB2, MIB2, MIB2); /* all of it */
	assert_int_equal(rv_windows_total(&w), 0);
	rv_windows_add(&w, MIB2, 9 * MIB2, 30 * MIB2, MIB2, MIB2, MIB2); /* elsewhere */
	assert_int_equal(rv_windows_total(&w), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_below),
		cmocka_unit_test(test_random_below_large),
		cmocka_unit_test(test_log2),
		cmocka_unit_test(test_windows_exact),
		cmocka_unit_test(test_windows_around_taken),
		cmocka_unit_test(test_taken_at_the_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
