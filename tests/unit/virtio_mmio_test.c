/* SPDX-License-Identifier: Apache-2.0 */
/* virtio_mmio_test.c: the transport's registers and status machine, on the rng device. */
/* unit-sources: vmm/dev/virtio_mmio.c vmm/dev/virtq.c vmm/dev/virtio_rng.c */
#include "dev/virtio_mmio.h"
#include "fake_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BUF	  (RV_FAKE_BASE + 0x10000)
#define EVENT_IDX (1ull << 29)

static int setup(void **state)
{
	struct rv_vm *vm = rv_fake_vm_new();

	assert_int_equal(rv_virtio_rng_create(vm, NULL), RV_OK);
	*state = vm;
	return 0;
}

static int teardown(void **state)
{
	rv_fake_vm_free(*state);
	return 0;
}

static void ask(struct rv_vm *vm, uint32_t len)
{
	drv_desc(vm, 0, 0, BUF, len, DRV_WRITE, 0);
	drv_offer(vm, 0, 0);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
}

static void test_identity(void **state)
{
	struct rv_vm *vm = *state;

	assert_int_equal(drv_reg(vm, 0x000), 0x74726976);
	assert_int_equal(drv_reg(vm, 0x004), 2);
	assert_int_equal(drv_reg(vm, 0x008), 4);
	assert_int_equal(drv_reg(vm, 0x034), 64);
	drv_reg_set(vm, 0x030, 1); /* no such queue */
	assert_int_equal(drv_reg(vm, 0x034), 0);
	drv_reg_set(vm, 0x030, 0xffffffff);
	assert_int_equal(drv_reg(vm, 0x034), 0);
	drv_reg_set(vm, 0x014, 1);
	assert_int_equal(drv_reg(vm, 0x010), 1);
	drv_reg_set(vm, 0x014, 2);
	assert_int_equal(drv_reg(vm, 0x010), 0);
	assert_int_equal(drv_reg(vm, 0x0b0), 0xffffffff); /* no shared memory */
}

static void test_widths(void **state)
{
	struct rv_vm *vm = *state;

	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO, 1), 0);
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO, 8), 0);
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 2, 4), 0);
	rv_fake_mmio_write(vm, DRV_MMIO + 0x70, 1, 1);
	rv_fake_mmio_write(vm, DRV_MMIO + 0x70, 8, 1);
	assert_int_equal(drv_reg(vm, 0x070), 0);
	/* beyond the configuration of a device that has none */
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 0x100, 4), 0);
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 0x1f8, 8), 0);
	rv_fake_mmio_write(vm, DRV_MMIO + 0x1f8, 8, 1);
}

static void test_serves(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, EVENT_IDX, 1);
	assert_int_equal(drv_reg(vm, 0x070), 0x0f);
	ask(vm, 32);
	assert_int_equal(drv_used_idx(vm, 0), 1);
	assert_int_equal(drv_used_len(vm, 0, 0), 32);
	assert_true(rv_fake_line(vm, DRV_GSI));
	assert_int_equal(drv_reg(vm, 0x060), 1);
	drv_reg_set(vm, 0x064, 2); /* the wrong bit */
	assert_true(rv_fake_line(vm, DRV_GSI));
	drv_reg_set(vm, 0x064, 1);
	assert_false(rv_fake_line(vm, DRV_GSI));
	assert_int_equal(drv_reg(vm, 0x060), 0);
	ask(vm, 100000); /* at most one piece per request */
	assert_int_equal(drv_used_len(vm, 0, 1), 256);
}

static void test_features_refused(void **state)
{
	struct rv_vm *vm = *state;

	/* a feature that was not offered */
	assert_int_equal(drv_negotiate(vm, 1ull << 5), 3);
	/* DRIVER_OK without FEATURES_OK */
	drv_reg_set(vm, 0x070, 7);
	assert_int_equal(drv_reg(vm, 0x070), 3);
	assert_int_equal(drv_queue(vm, 0, DRV_NUM), 0);
	/* without VERSION_1 */
	drv_reg_set(vm, 0x070, 0);
	drv_reg_set(vm, 0x070, 3);
	drv_reg_set(vm, 0x070, 0x0b);
	assert_int_equal(drv_reg(vm, 0x070), 3);
	/* both at once, in an empty state */
	drv_reg_set(vm, 0x070, 0);
	drv_reg_set(vm, 0x070, 0x0f);
	assert_int_equal(drv_reg(vm, 0x070), 3);
}

static void test_features_fixed(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	drv_reg_set(vm, 0x024, 0);
	drv_reg_set(vm, 0x020, 0xffffffff);
	drv_reg_set(vm, 0x080, 0x666);
	drv_reg_set(vm, 0x038, 1);
	ask(vm, 8);
	assert_int_equal(drv_used_idx(vm, 0), 1);
	/* bits are not taken back */
	drv_reg_set(vm, 0x070, 0x0b);
	assert_int_equal(drv_reg(vm, 0x070), 0x0f);
	assert_int_equal(rv_fake_bad(vm), 1);
}

static void test_queue_sizes(void **state)
{
	static const uint32_t bad[] = {0, 3, 128, 65536, 0x80000000, 0xffffffff};
	struct rv_vm *vm = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(drv_negotiate(vm, 0), 0x0b);
		assert_int_equal(drv_queue(vm, 0, bad[i]), 0);
		assert_int_equal(drv_reg(vm, 0x070), 0x4b); /* NEEDS_RESET */
		assert_false(rv_fake_line(vm, DRV_GSI));    /* not before DRIVER_OK */
		drv_reg_set(vm, 0x070, 0x4f);
		assert_true(rv_fake_line(vm, DRV_GSI));
	}
	drv_start(vm, 0, 1);
	ask(vm, 8);
	assert_int_equal(drv_used_idx(vm, 0), 1);
}

static void test_notify_early(void **state)
{
	struct rv_vm *vm = *state;

	for (uint32_t i = 0; i < 20; i++)
		drv_notify(vm, i * 0x1111111);
	rv_fake_io_run(vm, 0);
	drv_negotiate(vm, 0);
	drv_queue(vm, 0, DRV_NUM);
	drv_desc(vm, 0, 0, BUF, 8, DRV_WRITE, 0);
	drv_offer(vm, 0, 0);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
	assert_int_equal(drv_used_idx(vm, 0), 0);
	/* what waits is served at once when the driver is ready */
	drv_reg_set(vm, 0x070, 0x0f);
	rv_fake_io_run(vm, 0);
	assert_int_equal(drv_used_idx(vm, 0), 1);
}

static void test_needs_reset(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	drv_desc(vm, 0, 1, BUF, 8, DRV_NEXT | DRV_WRITE, 1);
	drv_offer(vm, 0, 1);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
	assert_int_equal(drv_reg(vm, 0x070), 0x4f);
	assert_int_equal(drv_reg(vm, 0x060), 2);
	assert_true(rv_fake_line(vm, DRV_GSI));
	assert_int_equal(drv_used_idx(vm, 0), 0);
	/* silent until the reset, which repairs everything */
	ask(vm, 8);
	assert_int_equal(drv_used_idx(vm, 0), 0);
	drv_start(vm, EVENT_IDX, 1);
	assert_false(rv_fake_line(vm, DRV_GSI));
	ask(vm, 8);
	assert_int_equal(drv_used_idx(vm, 0), 1);
}

static void test_protected_ring(void **state)
{
	struct rv_vm *vm = *state;

	rv_fake_protect(vm, DRV_USED(0), 8);
	drv_negotiate(vm, 0);
	assert_int_equal(drv_queue(vm, 0, DRV_NUM), 0);
	assert_int_equal(rv_fake_refused(vm), 1);
	/* protected after it was accepted */
	rv_fake_protect(vm, 0, 0);
	drv_start(vm, 0, 1);
	rv_fake_protect(vm, DRV_USED(0), 8);
	ask(vm, 8);
	assert_int_equal(drv_used_idx(vm, 0), 0);
	assert_true(drv_reg(vm, 0x070) & 0x40);
}

static void test_protected_buffer(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	memset(rv_fake_ram(vm, BUF), 0x55, 64);
	rv_fake_protect(vm, BUF + 8, 8);
	ask(vm, 64);
	for (int i = 0; i < 64; i++)
		assert_int_equal(*rv_fake_ram(vm, BUF + (uint64_t)i), 0x55);
	assert_true(drv_reg(vm, 0x070) & 0x40);
	drv_start(vm, 0, 1);
	ask(vm, 0); /* an answer of no bytes is not allowed */
	assert_true(drv_reg(vm, 0x070) & 0x40);
}

static void test_reset_clears(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	ask(vm, 8);
	assert_true(rv_fake_line(vm, DRV_GSI));
	drv_offer(vm, 0, 0);
	drv_notify(vm, 0);
	drv_reg_set(vm, 0x070, 0); /* with a doorbell pending */
	rv_fake_io_run(vm, 0);
	assert_int_equal(drv_used_idx(vm, 0), 1);
	assert_false(rv_fake_line(vm, DRV_GSI));
	drv_reg_set(vm, 0x030, 0);
	assert_int_equal(drv_reg(vm, 0x044), 0);
	assert_int_equal(drv_reg(vm, 0x070), 0);
}

static void test_queue_taken_away(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	drv_reg_set(vm, 0x044, 0);
	assert_int_equal(drv_reg(vm, 0x044), 0);
	ask(vm, 8);
	assert_int_equal(drv_used_idx(vm, 0), 0);
	assert_int_equal(rv_fake_bad(vm), 0);
}

static void test_avail_jump(void **state)
{
	struct rv_vm *vm = *state;

	drv_start(vm, 0, 1);
	drv_put16(vm, DRV_AVAIL(0) + 2, 0x8000);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
	assert_true(drv_reg(vm, 0x070) & 0x40);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_identity),	  T(test_widths),	  T(test_serves),
		T(test_features_refused), T(test_features_fixed), T(test_queue_sizes),
		T(test_notify_early),	  T(test_needs_reset),	  T(test_protected_ring),
		T(test_protected_buffer), T(test_reset_clears),	  T(test_queue_taken_away),
		T(test_avail_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
