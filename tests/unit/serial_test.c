/* SPDX-License-Identifier: Apache-2.0 */
/* serial_test.c: what Linux's 8250 driver asks of a 16550A before it believes in one. */
/* unit-sources: vmm/dev/serial.c */
#include "fake_vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PORT 0x3f8
#define GSI  4

/* A back end in place of chardev.c. */
struct rv_chardev {
	char out[4096];
	size_t len;
	unsigned int kicks, closed;
	size_t (*fn)(void *arg, const void *buf, size_t len);
	void *arg;
};
static struct rv_chardev chr;

void rv_chardev_write(struct rv_chardev *c, const void *buf, size_t len)
{
	memcpy(c->out + c->len, buf, len);
	c->len += len;
}

void rv_chardev_on_input(struct rv_chardev *c, size_t (*fn)(void *arg, const void *buf, size_t len),
			 void *arg)
{
	c->fn = fn;
	c->arg = arg;
}

void rv_chardev_kick(struct rv_chardev *c)
{
	c->kicks++;
}

void rv_chardev_close(struct rv_chardev *c)
{
	if (c)
		c->closed++;
}

static struct rv_vm *vm;

static uint8_t in(unsigned int reg)
{
	return rv_fake_pio_read(vm, (uint16_t)(PORT + reg));
}

static void out(unsigned int reg, uint8_t v)
{
	rv_fake_pio_write(vm, (uint16_t)(PORT + reg), v);
}

static int setup(void **state)
{
	(void)state;
	memset(&chr, 0, sizeof(chr));
	vm = rv_fake_vm_new();
	return rv_serial_create(vm, PORT, GSI, &chr, NULL);
}

static int teardown(void **state)
{
	(void)state;
	rv_fake_vm_free(vm);
	return chr.closed != 1;
}

static void test_autoconfig(void **state)
{
	(void)state;
	out(1, 0);
	assert_int_equal(in(1) & 0x0f, 0);
	out(1, 0xff);
	assert_int_equal(in(1), 0x0f);
	out(1, 0);
	out(4, 0x1a); /* LOOP | OUT2 | RTS */
	assert_int_equal(in(6) & 0xf0, 0x90);
	out(4, 0);
	assert_int_equal(in(6) & 0xf0, 0xb0);
	out(3, 0xbf);
	out(2, 0);
	out(3, 0);
	out(2, 1);
	assert_int_equal(in(2) >> 6, 3);
	/* no enhanced registers */
	out(3, 0x80);
	assert_int_not_equal(in(2), 0);
	out(3, 0xbf);
	assert_int_not_equal(in(2), 0);
	out(3, 0);
	/* no 64-byte FIFO of a 16750 */
	out(2, 1);
	assert_int_equal(in(2) >> 5, 6);
	out(2, 0x21);
	assert_int_equal(in(2) >> 5, 6);
	out(7, 0xa5);
	assert_int_equal(in(7), 0xa5);
}

static void test_divisor(void **state)
{
	(void)state;
	out(3, 0x80);
	out(0, 0x34);
	out(1, 0x12);
	assert_int_equal(in(0), 0x34);
	assert_int_equal(in(1), 0x12);
	out(3, 0x03);
	assert_int_equal(in(1), 0);
	assert_int_equal(chr.len, 0);
}

static void test_transmit(void **state)
{
	(void)state;
	assert_int_equal(in(5), 0x60);
	/* serial8250_do_startup(): THRI comes again each time it is enabled */
	for (int i = 0; i < 2; i++) {
		out(1, 2);
		assert_true(rv_fake_line(vm, GSI));
		assert_int_equal(in(2) & 0x0f, 2);
		assert_false(rv_fake_line(vm, GSI));
		assert_int_equal(in(2) & 0x0f, 1);
		out(1, 0);
	}
	out(1, 2);
	in(2);
	out(0, 'h');
	assert_true(rv_fake_line(vm, GSI));
	in(2);
	out(0, 'i');
	assert_true(rv_fake_line(vm, GSI));
	out(1, 0);
	assert_false(rv_fake_line(vm, GSI));
	assert_memory_equal(chr.out, "hi", 2);
}

static void test_receive(void **state)
{
	uint8_t big[300];

	(void)state;
	for (int i = 0; i < 300; i++)
		big[i] = (uint8_t)i;
	assert_int_equal(chr.fn(chr.arg, "ab", 2), 2);
	assert_false(rv_fake_line(vm, GSI));
	out(1, 1);
	assert_true(rv_fake_line(vm, GSI));
	assert_int_equal(in(2) & 0x0f, 4);
	assert_int_equal(in(5) & 1, 1);
	assert_int_equal(in(0), 'a');
	assert_true(rv_fake_line(vm, GSI));
	assert_int_equal(in(0), 'b');
	assert_false(rv_fake_line(vm, GSI));
	assert_int_equal(in(5) & 1, 0);
	assert_int_equal(in(0), 0); /* empty */
	assert_int_equal(chr.fn(chr.arg, big, 300), 128);
	assert_int_equal(chr.fn(chr.arg, big, 300), 0);
	chr.kicks = 0;
	for (int i = 0; i < 128; i++)
		assert_int_equal(in(0), i);
	assert_true(chr.kicks >= 1);
	chr.fn(chr.arg, "x", 1);
	out(2, 3); /* clear */
	assert_int_equal(in(5) & 1, 0);
	assert_false(rv_fake_line(vm, GSI));
}

static void test_loopback(void **state)
{
	(void)state;
	out(4, 0x10);
	out(0, 'q');
	assert_int_equal(chr.len, 0);
	assert_int_equal(in(0), 'q');
	for (int i = 0; i < 1000; i++)
		out(0, 'z');
	/* ring and modem changes, and their interrupt */
	out(4, 0x14);
	assert_int_equal(in(6) & 0xf0, 0x40);
	out(1, 8);
	out(4, 0x10);
	assert_int_equal(in(2) & 0x0f, 0);
	assert_int_equal(in(6) & 0x0f, 4);
	assert_int_equal(in(2) & 0x0f, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_autoconfig), T(test_divisor),  T(test_transmit),
		T(test_receive),    T(test_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
