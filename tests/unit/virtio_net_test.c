/* SPDX-License-Identifier: Apache-2.0 */
/* virtio_net_test.c: frames between a driver and a stream peer, either of them hostile. */
/* unit-sources: vmm/dev/virtio_net.c vmm/dev/netback.c vmm/dev/unixsock.c vmm/dev/opt.c */
/* unit-sources: vmm/dev/virtio_mmio.c vmm/dev/virtq.c */
#include "dev/unixsock.h"
#include "fake_driver.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RXBUF	  (RV_FAKE_BASE + 0x10000)
#define TXBUF	  (RV_FAKE_BASE + 0x20000)
#define EVENT_IDX (1ull << 29)
#define LINK_UP	  (uint16_t) rv_fake_mmio_read(vm, DRV_MMIO + 0x106, 2)

static struct rv_vm *vm;
static int server, peer;
static char path[64], option[128];
static uint8_t buf[70000];

static int setup(void **state)
{
	(void)state;
	vm = rv_fake_vm_new();
	snprintf(path, sizeof(path), "/tmp/net_test.%d", getpid());
	snprintf(option, sizeof(option), "unix:%s,mac=52:54:00:aa:bb:cc", path);
	if (rv_unix_listen(path, &server, NULL) || rv_virtio_net_create(vm, option, NULL))
		return -1;
	peer = rv_unix_accept(server);
	drv_start(vm, EVENT_IDX, 2);
	rv_fake_io_run(vm, 0);
	return peer < 0;
}

static int teardown(void **state)
{
	(void)state;
	rv_fake_vm_free(vm);
	close(server);
	if (peer >= 0)
		close(peer);
	unlink(path);
	return 0;
}

static void tx(unsigned int i, uint64_t addr, uint32_t len)
{
	drv_desc(vm, 1, i, addr, len, 0, 0);
	drv_offer(vm, 1, (uint16_t)i);
	drv_notify(vm, 1);
	rv_fake_io_run(vm, 0);
}

static void rx_buffer(unsigned int i, uint32_t len)
{
	drv_desc(vm, 0, i, RXBUF + 0x1000ull * i, len, DRV_WRITE, 0);
	drv_offer(vm, 0, (uint16_t)i);
	drv_notify(vm, 0);
	rv_fake_io_run(vm, 0);
}

static void peer_sends(uint32_t claim, uint32_t len)
{
	uint32_t be = htonl(claim);

	assert_int_equal(write(peer, &be, 4), 4);
	memset(buf, 0x5a, len);
	if (len)
		assert_int_equal(write(peer, buf, len), len);
	rv_fake_io_run(vm, 0);
}

static void test_config(void **state)
{
	(void)state;
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 0x100, 4), 0xaa005452);
	assert_int_equal(LINK_UP, 1);
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 0x10a, 2), 1500);
	assert_int_equal(rv_fake_mmio_read(vm, DRV_MMIO + 0x10c, 4), 0);
}

static void test_options(void **state)
{
	static const char *const bad[] = {
		"",	      "tap:",  "tap:name-that-is-too-long", "wlan",
		"unix:/none", "unix:", ",mac=52:54:00:00:00:01"};
	static const char *const mac[] = {"1", "52:54:00:aa:bb", "53:54:00:aa:bb:cc",
					  "52:54:00:aa:bb:cg", "52:54:00:aa:bb:cc:dd"};
	struct rv_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(rv_virtio_net_create(vm, bad[i], &err), RV_OK);
	for (size_t i = 0; i < sizeof(mac) / sizeof(mac[0]); i++) {
		snprintf(option, sizeof(option), "unix:%s,mac=%s", path, mac[i]);
		assert_int_equal(rv_virtio_net_create(vm, option, &err), RV_EINVAL);
	}
}

static void test_send(void **state)
{
	(void)state;
	memset(rv_fake_ram(vm, TXBUF), 0x11, 12 + 60);
	tx(0, TXBUF, 12 + 60);
	assert_int_equal(drv_used_idx(vm, 1), 1);
	assert_int_equal(read(peer, buf, sizeof(buf)), 64);
	assert_memory_equal(buf, "\0\0\0\x3c\x11", 5);
	/* too short, too long: lost, and the driver gets its buffers back */
	tx(1, TXBUF, 12 + 13);
	tx(2, TXBUF, 12 + 9217);
	assert_int_equal(drv_used_idx(vm, 1), 3);
	assert_int_equal(recv(peer, buf, sizeof(buf), MSG_DONTWAIT), -1);
	assert_int_equal(rv_fake_bad(vm), 0);
	/* no header, or memory that is not there: broken */
	tx(3, TXBUF, 11);
	assert_true(drv_reg(vm, 0x070) & 0x40);
	drv_start(vm, EVENT_IDX, 2);
	tx(0, RV_FAKE_BASE + RV_FAKE_SIZE - 20, 100);
	assert_true(drv_reg(vm, 0x070) & 0x40);
	assert_int_equal(drv_used_idx(vm, 1), 0);
}

static void test_receive(void **state)
{
	(void)state;
	/* before there is a buffer: it waits outside */
	peer_sends(60, 60);
	peer_sends(1514, 1514);
	assert_int_equal(drv_used_idx(vm, 0), 0);
	rx_buffer(0, 12 + 1514);
	assert_int_equal(drv_used_idx(vm, 0), 1);
	assert_int_equal(drv_used_len(vm, 0, 0), 72);
	assert_int_equal(*rv_fake_ram(vm, RXBUF + 10), 1); /* num_buffers */
	assert_int_equal(*rv_fake_ram(vm, RXBUF + 12), 0x5a);
	rx_buffer(1, 12 + 1514);
	assert_int_equal(drv_used_len(vm, 0, 1), 12 + 1514);
	/* a frame that does not fit is lost, the buffer stays */
	rx_buffer(2, 12 + 1514);
	peer_sends(1515, 1515);
	assert_int_equal(drv_used_idx(vm, 0), 2);
	peer_sends(100, 100);
	assert_int_equal(drv_used_idx(vm, 0), 3);
	/* in pieces */
	rx_buffer(3, 12 + 1514);
	peer_sends(200, 50);
	assert_int_equal(drv_used_idx(vm, 0), 3);
	assert_int_equal(write(peer, buf, 150), 150);
	rv_fake_io_run(vm, 0);
	assert_int_equal(drv_used_len(vm, 0, 3), 212);
	/* into protected memory: never */
	rv_fake_protect(vm, RXBUF + 0x4000, 16);
	rx_buffer(4, 12 + 1514);
	peer_sends(60, 60);
	assert_true(drv_reg(vm, 0x070) & 0x40);
	assert_int_equal(*rv_fake_ram(vm, RXBUF + 0x4000 + 12), 0);
}

static void peer_is_gone(void)
{
	assert_int_equal(LINK_UP, 0);
	assert_true(drv_reg(vm, 0x060) & 2);
	assert_int_equal(drv_reg(vm, 0x0fc), 1);
	/* sending goes on into nothing */
	tx(0, TXBUF, 12 + 60);
	assert_int_equal(drv_used_idx(vm, 1), 1);
	assert_int_equal(drv_reg(vm, 0x070), 0x0f);
}

static void test_peer_lies(void **state)
{
	(void)state;
	rx_buffer(0, 12 + 1514);
	peer_sends(0x7fffffff, 10);
	peer_is_gone();
}

static void test_peer_sends_nothing(void **state)
{
	(void)state;
	rx_buffer(0, 12 + 1514);
	peer_sends(0, 0);
	peer_is_gone();
}

static void test_peer_closes(void **state)
{
	(void)state;
	rx_buffer(0, 12 + 1514);
	close(peer);
	peer = -1;
	rv_fake_io_run(vm, 0);
	peer_is_gone();
}

/* A peer that does not read: the guest's queue fills, nothing is lost in between. */
static void test_backpressure(void **state)
{
	uint32_t sent = 0, frames = 0;
	size_t have = 0;
	ssize_t n;

	(void)state;
	memset(rv_fake_ram(vm, TXBUF), 0x22, 12 + 1500);
	while (sent < 5000 && (uint16_t)sent == drv_used_idx(vm, 1))
		tx(sent++ % DRV_NUM, TXBUF, 12 + 1500);
	assert_true(sent < 5000);
	for (int i = 0; i < 1000 && frames < sent; i++) {
		while ((n = recv(peer, buf + have, sizeof(buf) - have, MSG_DONTWAIT)) > 0) {
			size_t at = 0;

			have += (size_t)n;
			for (; have - at >= 1504; at += 1504, frames++)
				assert_memory_equal(buf + at, "\0\0\x05\xdc\x22", 5);
			memmove(buf, buf + at, have - at);
			have -= at;
		}
		rv_fake_io_run(vm, 0);
	}
	assert_int_equal(frames, sent);
	assert_int_equal(drv_used_idx(vm, 1), (uint16_t)sent);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_config),	     T(test_options),	   T(test_send),
		T(test_receive),     T(test_peer_lies),	   T(test_peer_sends_nothing),
		T(test_peer_closes), T(test_backpressure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
