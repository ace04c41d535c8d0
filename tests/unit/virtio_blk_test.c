/* SPDX-License-Identifier: Apache-2.0 */
/* virtio_blk_test.c: a disk and drivers that lie to it. */
/* unit-sources: vmm/dev/virtio_blk.c vmm/dev/virtio_mmio.c vmm/dev/virtq.c vmm/dev/opt.c */
#include "fake_driver.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECTORS 4096u /* 2 MiB */
#define HDR	(RV_FAKE_BASE + 0x10000)
#define STATUS	(RV_FAKE_BASE + 0x11000)
#define DATA	(RV_FAKE_BASE + 0x20000)
#define F_FLUSH (1ull << 9)

enum { IN = 0, OUT = 1, FLUSH = 4, GET_ID = 8, DISCARD = 11, WRITE_ZEROES = 13 };
enum { S_OK = 0, S_IOERR = 1, S_UNSUPP = 2, S_NONE = 0xee };

static struct rv_vm *vm;
static char path[64], option[128];

static int disk(const char *extra)
{
	snprintf(option, sizeof(option), "%s%s", path, extra);
	return rv_virtio_blk_create(vm, option, NULL);
}

static int setup(void **state)
{
	uint8_t sector[512];
	int fd;

	(void)state;
	vm = rv_fake_vm_new();
	snprintf(path, sizeof(path), "/tmp/blk_test.XXXXXX");
	fd = mkstemp(path);
	for (unsigned int i = 0; i < SECTORS; i++) {
		memset(sector, (int)(i * 7 + 1), sizeof(sector));
		if (write(fd, sector, sizeof(sector)) != sizeof(sector))
			return -1;
	}
	if (write(fd, "tail", 4) != 4)
		return -1;
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rv_fake_vm_free(vm);
	unlink(path);
	return 0;
}

static uint8_t file_byte(unsigned int sector)
{
	int fd = open(path, O_RDONLY);
	uint8_t b = 0;

	assert_int_equal(pread(fd, &b, 1, (off_t)sector * 512), 1);
	close(fd);
	return b;
}

/* Wait for the disk's thread: until n chains came back, or it gave up. */
static bool wait_used(uint16_t n)
{
	struct timespec ms = {0, 1000000};

	for (int i = 0; i < 3000; i++) {
		if (drv_used_idx(vm, 0) == n)
			return true;
		if (drv_reg(vm, 0x070) & 0x40)
			return false;
		nanosleep(&ms, NULL);
	}
	return false;
}

static void header(uint32_t type, uint64_t sector)
{
	struct {
		uint32_t type, prio;
		uint64_t sector;
	} h = {type, 0, sector};

	memcpy(rv_fake_ram(vm, HDR), &h, sizeof(h));
}

static bool submit(uint16_t head)
{
	uint16_t n = drv_used_idx(vm, 0);

	*rv_fake_ram(vm, STATUS) = S_NONE;
	drv_offer(vm, 0, head);
	drv_notify(vm, 0);
	return wait_used((uint16_t)(n + 1));
}

/* Header, one piece of data, status. */
static int request(uint32_t type, uint64_t sector, uint64_t data, uint32_t len)
{
	bool in = type == IN || type == GET_ID;

	header(type, sector);
	drv_desc(vm, 0, 0, HDR, 16, DRV_NEXT, len ? 1 : 2);
	drv_desc(vm, 0, 1, data, len, (uint16_t)(DRV_NEXT | (in ? DRV_WRITE : 0)), 2);
	drv_desc(vm, 0, 2, STATUS, 1, DRV_WRITE, 0);
	return submit(0) ? *rv_fake_ram(vm, STATUS) : -1;
}

static void test_read_write(void **state)
{
	(void)state;
	assert_int_equal(disk(",serial=abc"), RV_OK);
	drv_start(vm, F_FLUSH, 1);
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 0x100, 8), SECTORS);
	assert_int_equal(request(IN, 3, DATA, 1024), S_OK);
	assert_int_equal(drv_used_len(vm, 0, 0), 1025);
	assert_int_equal(*rv_fake_ram(vm, DATA), 22);
	assert_int_equal(*rv_fake_ram(vm, DATA + 512), 29);
	/* more than the bounce buffer at once */
	assert_int_equal(request(IN, 0, DATA, 512 * 1024), S_OK);
	for (unsigned int i = 0; i < 1024; i++)
		assert_int_equal(*rv_fake_ram(vm, DATA + 512ull * i), (uint8_t)(i * 7 + 1));
	memset(rv_fake_ram(vm, DATA), 0xab, 400 * 1024);
	assert_int_equal(request(OUT, 8, DATA, 400 * 1024), S_OK);
	assert_int_equal(file_byte(7), 50);
	assert_int_equal(file_byte(8), 0xab);
	assert_int_equal(file_byte(807), 0xab);
	assert_int_equal(file_byte(808), (uint8_t)(808 * 7 + 1));
	assert_int_equal(request(FLUSH, 0, 0, 0), S_OK);
	assert_int_equal(request(GET_ID, 0, DATA, 20), S_OK);
	assert_string_equal((char *)rv_fake_ram(vm, DATA), "abc");
	assert_int_equal(request(99, 0, 0, 0), S_UNSUPP);
	assert_int_equal(rv_fake_bad(vm), 0);
}

static void test_bounds(void **state)
{
	(void)state;
	assert_int_equal(disk(""), RV_OK);
	drv_start(vm, F_FLUSH, 1);
	assert_int_equal(request(IN, SECTORS - 1, DATA, 512), S_OK);
	assert_int_equal(request(IN, SECTORS - 1, DATA, 1024), S_IOERR);
	assert_int_equal(request(IN, SECTORS, DATA, 512), S_IOERR);
	assert_int_equal(request(IN, UINT64_MAX, DATA, 512), S_IOERR);
	assert_int_equal(request(IN, UINT64_MAX / 512 + 1, DATA, 512), S_IOERR);
	assert_int_equal(request(OUT, SECTORS, DATA, 512), S_IOERR);
	assert_int_equal(request(OUT, 0, DATA, 100), S_IOERR);
	assert_int_equal(request(IN, 0, DATA, 0xfffffe00u), S_IOERR);
	assert_int_equal(request(IN, 0, DATA, 65u << 20), S_IOERR);
	assert_int_equal(request(IN, 0, 0x10, 512), S_IOERR);
	assert_int_equal(request(OUT, 0, RV_FAKE_BASE + RV_FAKE_SIZE - 256, 512), S_IOERR);
	assert_int_equal(file_byte(0), 1);
	assert_int_equal(rv_fake_bad(vm), 0);
}

static void test_protected(void **state)
{
	(void)state;
	assert_int_equal(disk(""), RV_OK);
	drv_start(vm, F_FLUSH, 1);
	rv_fake_protect(vm, DATA + 100, 1);
	memset(rv_fake_ram(vm, DATA), 0x55, 512);
	assert_int_equal(request(IN, 0, DATA, 512), S_IOERR);
	assert_int_equal(*rv_fake_ram(vm, DATA + 100), 0x55);
	assert_int_equal(rv_fake_refused(vm), 1);
	/* it may still be read by the device */
	assert_int_equal(request(OUT, 0, DATA, 512), S_OK);
	/* the status byte itself */
	rv_fake_protect(vm, STATUS, 1);
	assert_int_equal(request(IN, 0, DATA, 512), -1);
	assert_int_equal(*rv_fake_ram(vm, STATUS), S_NONE);
	assert_true(drv_reg(vm, 0x070) & 0x40);
}

static void test_malformed(void **state)
{
	(void)state;
	assert_int_equal(disk(""), RV_OK);
	/* no status */
	drv_start(vm, F_FLUSH, 1);
	drv_desc(vm, 0, 0, HDR, 16, 0, 0);
	assert_false(submit(0));
	/* short header */
	drv_start(vm, F_FLUSH, 1);
	drv_desc(vm, 0, 0, HDR, 15, DRV_NEXT, 1);
	drv_desc(vm, 0, 1, STATUS, 1, DRV_WRITE, 0);
	assert_false(submit(0));
	/* header outside RAM */
	drv_start(vm, F_FLUSH, 1);
	drv_desc(vm, 0, 0, 0, 16, DRV_NEXT, 1);
	assert_false(submit(0));
	/* the header in three pieces, the status at the end of the data: both legal */
	drv_start(vm, F_FLUSH, 1);
	header(IN, 2);
	drv_desc(vm, 0, 0, HDR, 1, DRV_NEXT, 1);
	drv_desc(vm, 0, 1, HDR + 1, 7, DRV_NEXT, 2);
	drv_desc(vm, 0, 2, HDR + 8, 8, DRV_NEXT, 3);
	drv_desc(vm, 0, 3, DATA, 513, DRV_WRITE, 0);
	assert_true(submit(0));
	assert_int_equal(*rv_fake_ram(vm, DATA + 511), 15);
	assert_int_equal(*rv_fake_ram(vm, DATA + 512), S_OK);
}

static void test_read_only(void **state)
{
	(void)state;
	assert_int_equal(disk(",ro"), RV_OK);
	drv_start(vm, F_FLUSH, 1);
	drv_reg_set(vm, 0x014, 0);
	assert_true(drv_reg(vm, 0x010) & (1u << 5));
	assert_int_equal(request(OUT, 0, DATA, 512), S_IOERR);
	assert_int_equal(request(DISCARD, 0, DATA, 16), S_IOERR);
	assert_int_equal(request(IN, 0, DATA, 512), S_OK);
	assert_int_equal(request(FLUSH, 0, 0, 0), S_OK);
	assert_int_equal(file_byte(0), 1);
}

static void range(unsigned int i, uint64_t sector, uint32_t n, uint32_t flags)
{
	struct {
		uint64_t sector;
		uint32_t n, flags;
	} r = {sector, n, flags};

	memcpy(rv_fake_ram(vm, DATA + 16ull * i), &r, sizeof(r));
}

static void test_ranges(void **state)
{
	(void)state;
	assert_int_equal(disk(""), RV_OK);
	drv_start(vm, F_FLUSH, 1);
	range(0, 10, 5, 0);
	range(1, 20, 1, 1);
	assert_int_equal(request(WRITE_ZEROES, 0, DATA, 32), S_OK);
	assert_int_equal(file_byte(9), 64);
	assert_int_equal(file_byte(10), 0);
	assert_int_equal(file_byte(14), 0);
	assert_int_equal(file_byte(15), 106);
	assert_int_equal(file_byte(20), 0);
	/* judged as a whole: the bad second range stops the first */
	range(0, 30, 1, 0);
	range(1, SECTORS, 1, 0);
	assert_int_equal(request(WRITE_ZEROES, 0, DATA, 32), S_IOERR);
	assert_int_equal(file_byte(30), 211);
	range(0, 30, 1, 2);
	assert_int_equal(request(WRITE_ZEROES, 0, DATA, 16), S_UNSUPP);
	range(0, 30, 1, 1);
	assert_int_equal(request(DISCARD, 0, DATA, 16), S_UNSUPP);
	range(0, UINT64_MAX, UINT32_MAX, 0);
	assert_int_equal(request(DISCARD, 0, DATA, 16), S_IOERR);
	assert_int_equal(request(DISCARD, 0, DATA, 17), S_IOERR);
	assert_int_equal(request(DISCARD, 0, DATA, 16 * 9), S_IOERR);
	assert_int_equal(request(DISCARD, 0, 0, 0), S_IOERR);
	range(0, 40, 8, 0);
	assert_int_equal(request(DISCARD, 0, DATA, 16), S_OK);
}

/* Resets at every moment of a large transfer: nothing lands afterwards, nobody waits. */
static void test_reset_in_flight(void **state)
{
	struct timespec t = {0, 0};

	(void)state;
	assert_int_equal(disk(""), RV_OK);
	for (int i = 0; i < 100; i++) {
		drv_start(vm, F_FLUSH, 1);
		header(IN, 0);
		drv_desc(vm, 0, 0, HDR, 16, DRV_NEXT, 1);
		drv_desc(vm, 0, 1, DATA, 700 * 1024, DRV_NEXT | DRV_WRITE, 2);
		drv_desc(vm, 0, 2, STATUS, 1, DRV_WRITE, 0);
		drv_offer(vm, 0, 0);
		drv_notify(vm, 0);
		t.tv_nsec = i * 20000;
		nanosleep(&t, NULL);
		drv_reg_set(vm, 0x070, 0);
		/* from here on the memory is the driver's alone */
		memset(rv_fake_ram(vm, DATA), 0x77, 700 * 1024);
		memset(rv_fake_ram(vm, DRV_USED(0)), 0x77, 64);
		t.tv_nsec = 500000;
		nanosleep(&t, NULL);
		for (unsigned int o = 0; o < 700 * 1024; o += 512)
			assert_int_equal(*rv_fake_ram(vm, DATA + o), 0x77);
		assert_int_equal(*rv_fake_ram(vm, DRV_USED(0) + 2), 0x77);
	}
	drv_start(vm, F_FLUSH, 1);
	assert_int_equal(request(IN, 0, DATA, 512), S_OK);
}

static void test_host_truncates(void **state)
{
	(void)state;
	assert_int_equal(disk(""), RV_OK);
	drv_start(vm, F_FLUSH, 1);
	assert_int_equal(truncate(path, 512), 0);
	assert_int_equal(request(IN, 1, DATA, 512), S_IOERR);
	assert_int_equal(request(IN, 0, DATA, 512), S_OK);
}

static void test_shared(void **state)
{
	struct rv_err err;

	(void)state;
	assert_int_equal(disk(""), RV_OK);
	assert_int_equal(rv_virtio_blk_create(vm, path, &err), RV_EBUSY);
	snprintf(option, sizeof(option), "%s,ro", path);
	assert_int_equal(rv_virtio_blk_create(vm, option, &err), RV_EBUSY);
	rv_fake_vm_free(vm);
	vm = rv_fake_vm_new();
	assert_int_equal(rv_virtio_blk_create(vm, option, &err), RV_OK);
	assert_int_equal(rv_virtio_blk_create(vm, option, &err), RV_OK);
	assert_int_equal(rv_virtio_blk_create(vm, path, &err), RV_EBUSY);
}

static void test_options(void **state)
{
	static const char *const bad[] = {"",	  ",ro",       "/no/such/file",
					  "/tmp", "/dev/null", "/dev/zero"};
	struct rv_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(rv_virtio_blk_create(vm, bad[i], &err), RV_OK);
	assert_int_equal(disk(",rw"), RV_EINVAL);
	assert_int_equal(disk(",ro,"), RV_EINVAL);
	assert_int_equal(truncate(path, 511), 0);
	assert_int_equal(disk(""), RV_EINVAL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_read_write),	 T(test_bounds),	 T(test_protected),
		T(test_malformed),	 T(test_read_only),	 T(test_ranges),
		T(test_reset_in_flight), T(test_host_truncates), T(test_shared),
		T(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
