/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds and bases of arm64 kernels: each base has a seed, and that seed leads there. */
/* unit-sources: vmm/arch/arm64/kaslr.c vmm/place.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "arch/arm64/arm64.h"

#define MIB2 (2ull << 20)

/* VMALLOC_END - KIMAGE_VADDR as the compiler has it in a stock 6.12: 0x107fcfe0000 << 6 for
 * 52-bit addresses, and 2^46 - 2^42 more for 48-bit ones. */
#define TOTAL_52 (0x107fcfe0000ull << 6)
#define TOTAL_48 (TOTAL_52 + (1ull << 46) - (1ull << 42))

static const struct rv_arm64_kaslr kinds[] = {{0}, {TOTAL_52}, {TOTAL_48}};

static void forward(void **state)
{
	(void)state;
	/* 6.1: 2^45 plus the lower 46 bits, whatever is above them */
	assert_int_equal(rv_arm64_kaslr_delta(&kinds[0], 1), 1ull << 45);
	assert_int_equal(rv_arm64_kaslr_delta(&kinds[0], 0xffffc00000200001ull),
			 (1ull << 45) + MIB2);
	/* 6.12: the smallest and the largest seed end a quarter from either end */
	assert_int_equal(rv_arm64_kaslr_delta(&kinds[1], 0), (TOTAL_52 / 4) & ~(MIB2 - 1));
	assert_int_equal(rv_arm64_kaslr_delta(&kinds[1], UINT64_MAX),
			 (TOTAL_52 / 4 + TOTAL_52 / 2 - 1) & ~(MIB2 - 1));
}

static void both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t first, slots, seed;

		rv_arm64_kaslr_slots(&kinds[i], &first, &slots);
		assert_int_equal(first % MIB2, 0);
		assert_true(slots > 1ull << 24 && slots <= 1ull << 26);
		for (uint64_t n = 0; n < slots; n += n < 64 || n > slots - 128 ? 1 : slots / 1000) {
			assert_true(rv_arm64_kaslr_seed(&kinds[i], first + n * MIB2, &seed));
			assert_true(seed != 0);
			assert_int_equal(rv_arm64_kaslr_delta(&kinds[i], seed), first + n * MIB2);
		}
	}
}

/* What no seed leads to is refused, not looked for without end. */
static void out_of_reach(void **state)
{
	uint64_t seed;

	(void)state;
	assert_false(rv_arm64_kaslr_seed(&kinds[0], 0, &seed));
	assert_false(rv_arm64_kaslr_seed(&kinds[1], 0, &seed));
	assert_false(rv_arm64_kaslr_seed(&kinds[1], TOTAL_52, &seed));
	assert_false(rv_arm64_kaslr_seed(&kinds[2], 1ull << 47, &seed));
	/* A damaged plan may say any size. */
	assert_false(rv_arm64_kaslr_seed(&(struct rv_arm64_kaslr){1}, MIB2, &seed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forward),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(out_of_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
