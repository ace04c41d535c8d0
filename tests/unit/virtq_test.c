/* SPDX-License-Identifier: Apache-2.0 */
/* virtq_test.c: rings of a hostile driver. */
/* unit-sources: vmm/dev/virtq.c */
#include "dev/virtq.h"
#include "fake_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BUF (RV_FAKE_BASE + 0x10000)

struct fix {
	struct rv_vm *vm;
	struct rv_virtq q;
	struct rv_vq_chain c;
};

static int setup(void **state)
{
	static struct fix f;
	const char *why;

	memset(&f, 0, sizeof(f));
	f.vm = rv_fake_vm_new();
	f.q = (struct rv_virtq){.vm = f.vm, .who = "test", .num_max = 256};
	f.q.num = DRV_NUM;
	f.q.desc = DRV_DESC(0);
	f.q.avail = DRV_AVAIL(0);
	f.q.used = DRV_USED(0);
	assert_int_equal(rv_virtq_enable(&f.q, true, &why), RV_OK);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fix *f = *state;

	rv_fake_vm_free(f->vm);
	return 0;
}

static int pop(struct fix *f, bool *got)
{
	return rv_virtq_pop(&f->q, &f->c, got);
}

static void pops_bad(struct fix *f)
{
	unsigned int before = rv_fake_bad(f->vm);
	bool got;

	drv_offer(f->vm, 0, 0);
	assert_int_equal(pop(f, &got), RV_EBADDATA);
	assert_false(got);
	assert_true(f->q.broken);
	assert_int_equal(rv_fake_bad(f->vm), before + 1);
	/* broken stays broken, and says so without walking anything */
	assert_int_equal(pop(f, &got), RV_EBADDATA);
	assert_int_equal(rv_virtq_push(&f->q, 0, 0), RV_EBADDATA);
	assert_int_equal(rv_virtq_await(&f->q, &got), RV_EBADDATA);
}

static void test_simple(void **state)
{
	struct fix *f = *state;
	struct rv_vq_cur cur;
	char buf[8] = "";
	bool got;

	assert_int_equal(pop(f, &got), RV_OK);
	assert_false(got);
	memcpy(rv_fake_ram(f->vm, BUF), "abcdef", 6);
	drv_desc(f->vm, 0, 3, BUF, 4, DRV_NEXT, 5);
	drv_desc(f->vm, 0, 5, BUF + 4, 2, DRV_NEXT, 1);
	drv_desc(f->vm, 0, 1, BUF + 0x100, 8, DRV_WRITE, 0);
	drv_offer(f->vm, 0, 3);
	assert_int_equal(pop(f, &got), RV_OK);
	assert_true(got);
	assert_int_equal(f->c.rlen, 6);
	assert_int_equal(f->c.wlen, 8);
	rv_vq_cur_init(&cur, &f->c, false);
	assert_int_equal(rv_vq_cur_read(&f->q, &cur, buf, 6), RV_OK);
	assert_string_equal(buf, "abcdef");
	assert_int_equal(rv_vq_cur_read(&f->q, &cur, buf, 1), RV_EINVAL);
	rv_vq_cur_init(&cur, &f->c, true);
	assert_int_equal(rv_vq_cur_skip(&cur, 7), RV_OK);
	assert_int_equal(rv_vq_cur_write(&f->q, &cur, "z", 1), RV_OK);
	assert_int_equal(*rv_fake_ram(f->vm, BUF + 0x107), 'z');
	assert_int_equal(rv_virtq_push(&f->q, f->c.head, 8), RV_OK);
	assert_int_equal(drv_used_idx(f->vm, 0), 1);
	assert_int_equal(drv_used_len(f->vm, 0, 0), 8);
	assert_int_equal(rv_fake_bad(f->vm), 0);
}

static void test_unpop(void **state)
{
	struct fix *f = *state;
	bool got;

	drv_desc(f->vm, 0, 0, BUF, 4, 0, 0);
	drv_offer(f->vm, 0, 0);
	assert_int_equal(pop(f, &got), RV_OK);
	rv_virtq_unpop(&f->q);
	assert_int_equal(pop(f, &got), RV_OK);
	assert_true(got);
}

static void test_loops(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 0, 0, BUF, 4, DRV_NEXT, 1);
	drv_desc(f->vm, 0, 1, BUF, 4, DRV_NEXT, 0);
	pops_bad(f);
}

static void test_self_loop_of_nothing(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 0, 0, 0, 0, DRV_NEXT, 0);
	pops_bad(f);
}

static void test_next_beyond(void **state)
{
	drv_desc(((struct fix *)*state)->vm, 0, 0, BUF, 4, DRV_NEXT, DRV_NUM);
	pops_bad(*state);
}

static void test_order(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 0, 0, BUF, 4, DRV_NEXT | DRV_WRITE, 1);
	drv_desc(f->vm, 0, 1, BUF, 4, 0, 0);
	pops_bad(f);
}

static void test_wrap(void **state)
{
	drv_desc(((struct fix *)*state)->vm, 0, 0, UINT64_MAX - 2, 4, 0, 0);
	pops_bad(*state);
}

static void test_too_large(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 0, 0, 0, UINT32_MAX, DRV_NEXT, 1);
	drv_desc(f->vm, 0, 1, 0, UINT32_MAX, 0, 0);
	pops_bad(f);
}

static void test_head_beyond(void **state)
{
	struct fix *f = *state;
	bool got;

	drv_offer(f->vm, 0, DRV_NUM);
	assert_int_equal(pop(f, &got), RV_EBADDATA);
}

static void test_index_jumps(void **state)
{
	struct fix *f = *state;
	bool got;

	drv_put16(f->vm, DRV_AVAIL(0) + 2, DRV_NUM + 1);
	assert_int_equal(pop(f, &got), RV_EBADDATA);
}

static void test_index_wraps(void **state)
{
	struct fix *f = *state;
	bool got;

	drv_desc(f->vm, 0, 0, BUF, 1, 0, 0);
	for (unsigned int i = 0; i < 70000; i++) {
		drv_offer(f->vm, 0, 0);
		assert_int_equal(pop(f, &got), RV_OK);
		assert_true(got);
		assert_int_equal(rv_virtq_push(&f->q, 0, i), RV_OK);
	}
	assert_int_equal(drv_used_idx(f->vm, 0), (uint16_t)70000);
}

static void test_out_of_ram(void **state)
{
	struct fix *f = *state;
	struct rv_vq_cur cur;
	char b[8];
	bool got;

	/* Judged when it is touched; a driver may name what it never uses. */
	drv_desc(f->vm, 0, 0, RV_FAKE_BASE + RV_FAKE_SIZE - 4, 8, 0, 0);
	drv_offer(f->vm, 0, 0);
	assert_int_equal(pop(f, &got), RV_OK);
	rv_vq_cur_init(&cur, &f->c, false);
	assert_int_equal(rv_vq_cur_read(&f->q, &cur, b, 8), RV_ENOTMAPPED);
}

static void test_indirect(void **state)
{
	struct fix *f = *state;
	bool got;

	/* one direct, then a table of two */
	drv_desc(f->vm, 0, 0, BUF, 4, DRV_NEXT, 1);
	drv_desc(f->vm, 0, 1, DRV_DESC(3), 32, DRV_INDIRECT, 0);
	drv_desc(f->vm, 3, 0, BUF, 5, DRV_NEXT, 1);
	drv_desc(f->vm, 3, 1, BUF, 6, DRV_WRITE, 0);
	drv_offer(f->vm, 0, 0);
	assert_int_equal(pop(f, &got), RV_OK);
	assert_int_equal(f->c.rlen, 9);
	assert_int_equal(f->c.wlen, 6);
}

static void indirect_bad(struct fix *f, uint64_t addr, uint32_t len, uint16_t flags)
{
	drv_desc(f->vm, 0, 0, addr, len, (uint16_t)(flags | DRV_INDIRECT), 1);
	pops_bad(f);
}

static void test_indirect_empty(void **state)
{
	indirect_bad(*state, DRV_DESC(3), 0, 0);
}

static void test_indirect_odd(void **state)
{
	indirect_bad(*state, DRV_DESC(3), 17, 0);
}

static void test_indirect_large(void **state)
{
	indirect_bad(*state, DRV_DESC(3), 16 * (DRV_NUM + 1), 0);
}

static void test_indirect_huge(void **state)
{
	indirect_bad(*state, DRV_DESC(3), 0xfffffff0u, 0);
}

static void test_indirect_outside(void **state)
{
	indirect_bad(*state, 0x10, 16, 0);
}

static void test_indirect_and_next(void **state)
{
	indirect_bad(*state, DRV_DESC(3), 16, DRV_NEXT);
}

static void test_indirect_nested(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 3, 0, DRV_DESC(3), 16, DRV_INDIRECT, 0);
	indirect_bad(f, DRV_DESC(3), 16, 0);
}

static void test_indirect_loop(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 3, 0, BUF, 1, DRV_NEXT, 0);
	indirect_bad(f, DRV_DESC(3), 16, 0);
}

static void test_indirect_next_beyond(void **state)
{
	struct fix *f = *state;

	drv_desc(f->vm, 3, 0, BUF, 1, DRV_NEXT, 1);
	indirect_bad(f, DRV_DESC(3), 16, 0);
}

static void test_enable(void **state)
{
	struct fix *f = *state;
	static const struct {
		uint32_t num;
		uint64_t desc, avail, used;
	} bad[] = {
		{0, DRV_DESC(0), DRV_AVAIL(0), DRV_USED(0)},
		{3, DRV_DESC(0), DRV_AVAIL(0), DRV_USED(0)},
		{512, DRV_DESC(0), DRV_AVAIL(0), DRV_USED(0)},
		{0x80000000u, DRV_DESC(0), DRV_AVAIL(0), DRV_USED(0)},
		{16, DRV_DESC(0) + 8, DRV_AVAIL(0), DRV_USED(0)},
		{16, DRV_DESC(0), DRV_AVAIL(0) + 1, DRV_USED(0)},
		{16, DRV_DESC(0), DRV_AVAIL(0), DRV_USED(0) + 2},
		{16, 0, DRV_AVAIL(0), DRV_USED(0)},
		{16, DRV_DESC(0), RV_FAKE_BASE + RV_FAKE_SIZE - 8, DRV_USED(0)},
		{16, DRV_DESC(0), DRV_AVAIL(0), UINT64_MAX - 3},
	};
	const char *why;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rv_virtq_reset(&f->q);
		f->q.num = bad[i].num;
		f->q.desc = bad[i].desc;
		f->q.avail = bad[i].avail;
		f->q.used = bad[i].used;
		assert_int_equal(rv_virtq_enable(&f->q, false, &why), RV_EINVAL);
		assert_non_null(why);
		assert_false(f->q.ready);
	}
}

static void test_used_protected(void **state)
{
	struct fix *f = *state;
	uint8_t before[32];
	bool got;

	drv_desc(f->vm, 0, 0, BUF, 4, DRV_WRITE, 0);
	drv_offer(f->vm, 0, 0);
	assert_int_equal(pop(f, &got), RV_OK);
	memcpy(before, rv_fake_ram(f->vm, DRV_USED(0)), sizeof(before));
	rv_fake_protect(f->vm, DRV_USED(0), 0x100);
	assert_int_equal(rv_virtq_push(&f->q, 0, 4), RV_EREFUSED);
	assert_true(f->q.broken);
	assert_memory_equal(before, rv_fake_ram(f->vm, DRV_USED(0)), sizeof(before));
	assert_true(rv_fake_refused(f->vm) > 0);
}

static void test_avail_event_protected(void **state)
{
	struct fix *f = *state;
	bool more;

	rv_fake_protect(f->vm, DRV_USED(0), 0x100);
	assert_int_equal(rv_virtq_await(&f->q, &more), RV_EREFUSED);
	assert_false(more);
}

static void signal_after(struct fix *f, uint16_t used_event, unsigned int n, bool want)
{
	bool yes;

	drv_put16(f->vm, DRV_AVAIL(0) + 4 + 2 * DRV_NUM, used_event);
	while (n--)
		assert_int_equal(rv_virtq_push(&f->q, 0, 0), RV_OK);
	assert_int_equal(rv_virtq_must_signal(&f->q, &yes), RV_OK);
	assert_int_equal(yes, want);
}

static void test_event_idx(void **state)
{
	struct fix *f = *state;
	bool more;

	signal_after(f, 9, 0, false); /* nothing pushed */
	signal_after(f, 9, 1, true);  /* the first always */
	signal_after(f, 9, 1, false);
	signal_after(f, 9, 7, false); /* index 9: entry 9 is not there yet */
	signal_after(f, 9, 1, true);  /* entry 9 is */
	signal_after(f, 9, 1, false);
	signal_after(f, 10, 5, false); /* passed long ago */
	f->q.used_idx = f->q.signalled = 0xfffe;
	signal_after(f, 0, 3, true); /* over the wrap */

	assert_int_equal(rv_virtq_await(&f->q, &more), RV_OK);
	assert_false(more);
	drv_offer(f->vm, 0, 0);
	assert_int_equal(rv_virtq_await(&f->q, &more), RV_OK);
	assert_true(more);
	assert_int_equal(drv_get16(f->vm, DRV_USED(0) + 4 + 8 * DRV_NUM), 0);
}

static void test_no_event_idx(void **state)
{
	struct fix *f = *state;
	bool yes;

	f->q.event_idx = false;
	assert_int_equal(rv_virtq_push(&f->q, 0, 0), RV_OK);
	drv_put16(f->vm, DRV_AVAIL(0), 1);
	assert_int_equal(rv_virtq_must_signal(&f->q, &yes), RV_OK);
	assert_false(yes);
	drv_put16(f->vm, DRV_AVAIL(0), 0);
	assert_int_equal(rv_virtq_push(&f->q, 0, 0), RV_OK);
	assert_int_equal(rv_virtq_must_signal(&f->q, &yes), RV_OK);
	assert_true(yes);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_simple),
		T(test_unpop),
		T(test_loops),
		T(test_self_loop_of_nothing),
		T(test_next_beyond),
		T(test_order),
		T(test_wrap),
		T(test_too_large),
		T(test_head_beyond),
		T(test_index_jumps),
		T(test_index_wraps),
		T(test_out_of_ram),
		T(test_indirect),
		T(test_indirect_empty),
		T(test_indirect_odd),
		T(test_indirect_large),
		T(test_indirect_huge),
		T(test_indirect_outside),
		T(test_indirect_and_next),
		T(test_indirect_nested),
		T(test_indirect_loop),
		T(test_indirect_next_beyond),
		T(test_enable),
		T(test_used_protected),
		T(test_avail_event_protected),
		T(test_event_idx),
		T(test_no_event_idx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
