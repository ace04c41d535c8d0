/* SPDX-License-Identifier: Apache-2.0 */
/* virtio_rng_test.c: random numbers: amounts, freshness, fairness to the I/O thread. */
/* unit-sources: vmm/dev/virtio_rng.c vmm/dev/virtio_mmio.c vmm/dev/virtq.c */
#include "fake_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BUF (RV_FAKE_BASE + 0x10000)

static int setup(void **state)
{
	*state = rv_fake_vm_new();
	return rv_virtio_rng_create(*state, NULL);
}

static int teardown(void **state)
{
	rv_fake_vm_free(*state);
	return 0;
}

static void test_amounts(void **state)
{
	static const uint32_t len[] = {1, 2, 255, 256, 257, 65536};
	struct rv_vm *vm = *state;
	uint8_t zero[256] = {0};

	drv_start(vm, 0, 1);
	for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		uint32_t n = len[i] < 256 ? len[i] : 256;

		memset(rv_fake_ram(vm, BUF), 0, 300);
		drv_desc(vm, 0, 0, BUF, len[i], DRV_WRITE, 0);
		drv_offer(vm, 0, 0);
		drv_notify(vm, 0);
		rv_fake_io_run(vm, 0);
		assert_int_equal(drv_used_len(vm, 0, i), n);
		if (n > 8)
			assert_memory_not_equal(rv_fake_ram(vm, BUF), zero, n);
		assert_memory_equal(rv_fake_ram(vm, BUF + n), zero, 40);
	}
}

static void test_in_pieces(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	drv_desc(vm, 0, 0, BUF, 3, DRV_NEXT | DRV_WRITE, 1);
	drv_desc(vm, 0, 1, BUF + 0x100, 5, DRV_WRITE, 0);
	drv_offer(vm, 0, 0);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
	assert_int_equal(drv_used_len(vm, 0, 0), 8);
	/* nothing to write to */
	drv_desc(vm, 0, 0, BUF, 3, 0, 0);
	drv_offer(vm, 0, 0);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
	assert_true(drv_reg(vm, 0x070) & 0x40);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_amounts), T(test_in_pieces)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
