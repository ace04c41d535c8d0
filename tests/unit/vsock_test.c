/* SPDX-License-Identifier: Apache-2.0 */
/* vsock_test.c: vsock packets, honest and not, against real unix sockets. */
/* unit-sources: vmm/dev/vsock.c vmm/dev/unixsock.c */
#include "dev/unixsock.h"
#include "dev/vsock.h"
#include "fake_vm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define CID	   42
#define GUEST_PORT 1111u
#define HOST_PORT  5000u

static struct rv_vm *vm;
static struct rv_vsock *s;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char dir[64], path[80], port_path[100];
static int server;
static unsigned int woken;
static struct virtio_vsock_hdr h;
static uint8_t data[RV_VSOCK_BUF];

static void wake(void *arg)
{
	(void)arg;
	woken++;
}

static int setup(void **state)
{
	(void)state;
	vm = rv_fake_vm_new();
	snprintf(dir, sizeof(dir), "/tmp/vsock_test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/v", dir);
	snprintf(port_path, sizeof(port_path), "%s_%u", path, HOST_PORT);
	if (rv_vsock_create(vm, "vsock", CID, path, &lock, wake, NULL, &s, NULL))
		return -1;
	rv_vsock_reset(s, true);
	return rv_unix_listen(port_path, &server, NULL);
}

static int teardown(void **state)
{
	(void)state;
	rv_vsock_destroy(s);
	rv_fake_vm_free(vm);
	close(server);
	unlink(port_path);
	return rmdir(dir);
}

static void send_as(uint64_t src, uint64_t dst, uint32_t from, uint32_t to, uint16_t type,
		    uint16_t op, uint32_t len, uint32_t flags)
{
	struct virtio_vsock_hdr p = {
		.src_cid = src,
		.dst_cid = dst,
		.src_port = from,
		.dst_port = to,
		.len = len,
		.type = type,
		.op = op,
		.flags = flags,
		.buf_alloc = 4096,
		.fwd_cnt = 0,
	};

	rv_vsock_take(s, &p, data);
}

static void guest(uint16_t op, uint32_t len, uint32_t flags)
{
	send_as(CID, 2, GUEST_PORT, HOST_PORT, 1, op, len, flags);
}

static bool next(void)
{
	memset(&h, 0, sizeof(h));
	return rv_vsock_give(s, &h, data, sizeof(data));
}

static void expect(uint16_t op)
{
	assert_true(next());
	assert_int_equal(h.op, op);
	assert_int_equal(h.src_cid, 2);
	assert_int_equal(h.dst_cid, CID);
}

static void expect_nothing(void)
{
	assert_false(next());
}

/* A connection of the guest to the host's server; returns the server's end. */
static int connect_guest(void)
{
	int fd;

	guest(VIRTIO_VSOCK_OP_REQUEST, 0, 0);
	expect(VIRTIO_VSOCK_OP_RESPONSE);
	assert_int_equal(h.buf_alloc, RV_VSOCK_BUF);
	fd = rv_unix_accept(server);
	assert_true(fd >= 0);
	return fd;
}

static void test_guest_connects(void **state)
{
	int fd = connect_guest();
	char buf[16] = "";

	(void)state;
	memcpy(data, "hello", 5);
	guest(VIRTIO_VSOCK_OP_RW, 5, 0);
	assert_int_equal(read(fd, buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(write(fd, "back", 4), 4);
	rv_fake_io_run(vm, 0);
	assert_true(woken > 0);
	expect(VIRTIO_VSOCK_OP_RW);
	assert_int_equal(h.len, 4);
	assert_int_equal(h.fwd_cnt, 5);
	assert_memory_equal(data, "back", 4);
	expect_nothing();
	/* half a close on each side */
	shutdown(fd, SHUT_WR);
	rv_fake_io_run(vm, 0);
	expect(VIRTIO_VSOCK_OP_SHUTDOWN);
	assert_int_equal(h.flags, VIRTIO_VSOCK_SHUTDOWN_SEND);
	guest(VIRTIO_VSOCK_OP_RW, 5, 0);
	assert_int_equal(read(fd, buf, sizeof(buf)), 5);
	guest(VIRTIO_VSOCK_OP_SHUTDOWN, 0, 3);
	expect(VIRTIO_VSOCK_OP_RST);
	assert_int_equal(read(fd, buf, sizeof(buf)), 0);
	expect_nothing();
	close(fd);
}

static void test_host_connects(void **state)
{
	char buf[32] = "";
	int fd;

	(void)state;
	assert_int_equal(rv_unix_connect(path, &fd, NULL), RV_OK);
	assert_int_equal(write(fd, "CONN", 4), 4);
	rv_fake_io_run(vm, 0);
	expect_nothing();
	assert_int_equal(write(fd, "ECT 777\nearly", 13), 13);
	rv_fake_io_run(vm, 0);
	expect(VIRTIO_VSOCK_OP_REQUEST);
	assert_int_equal(h.dst_port, 777);
	send_as(CID, 2, 777, h.src_port, 1, VIRTIO_VSOCK_OP_RESPONSE, 0, 0);
	assert_true(read(fd, buf, sizeof(buf)) > 4);
	assert_memory_equal(buf, "OK 10", 5);
	rv_fake_io_run(vm, 0);
	expect(VIRTIO_VSOCK_OP_RW);
	assert_memory_equal(data, "early", 5);
	/* the host goes with bytes on the way: they arrive, then the end */
	assert_int_equal(write(fd, "last", 4), 4);
	close(fd);
	rv_fake_io_run(vm, 0);
	expect(VIRTIO_VSOCK_OP_RW);
	assert_int_equal(h.len, 4);
	rv_fake_io_run(vm, 0);
	expect(VIRTIO_VSOCK_OP_SHUTDOWN);
	assert_int_equal(h.flags, 3);
	send_as(CID, 2, 777, h.src_port, 1, VIRTIO_VSOCK_OP_RST, 0, 0);
	expect_nothing();
}

static void test_host_says_nonsense(void **state)
{
	static const char *const bad[] = {"CONNECT\n",
					  "CONNECT x\n",
					  "CONNECT 1 2\n",
					  "GET / HTTP/1.0\n",
					  "CONNECT 00000000000000000000000000000001\n",
					  "\n"};
	char c;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rv_unix_connect(path, &fd, NULL), RV_OK);
		assert_true(write(fd, bad[i], strlen(bad[i])) > 0);
		rv_fake_io_run(vm, 0);
		/* closed, with or without a reset of what was unread */
		assert_true(read(fd, &c, 1) <= 0 && errno != EAGAIN);
		close(fd);
		expect_nothing();
	}
}

static void test_guest_refuses(void **state)
{
	char c;
	int fd;

	(void)state;
	assert_int_equal(rv_unix_connect(path, &fd, NULL), RV_OK);
	assert_int_equal(write(fd, "CONNECT 9\n", 10), 10);
	rv_fake_io_run(vm, 0);
	expect(VIRTIO_VSOCK_OP_REQUEST);
	send_as(CID, 2, 9, h.src_port, 1, VIRTIO_VSOCK_OP_RST, 0, 0);
	assert_int_equal(read(fd, &c, 1), 0);
	close(fd);
}

static void test_nobody_there(void **state)
{
	(void)state;
	send_as(CID, 2, GUEST_PORT, 6000, 1, VIRTIO_VSOCK_OP_REQUEST, 0, 0);
	expect(VIRTIO_VSOCK_OP_RST);
	assert_int_equal(h.src_port, 6000);
	assert_int_equal(h.dst_port, GUEST_PORT);
	guest(VIRTIO_VSOCK_OP_RW, 10, 0);
	expect(VIRTIO_VSOCK_OP_RST);
	guest(VIRTIO_VSOCK_OP_RST, 0, 0);
	expect_nothing();
	/* another kind of socket is answered in kind */
	send_as(CID, 2, GUEST_PORT, HOST_PORT, 2, VIRTIO_VSOCK_OP_REQUEST, 0, 0);
	expect(VIRTIO_VSOCK_OP_RST);
	assert_int_equal(h.type, 2);
	/* false addresses are answered not at all */
	send_as(CID + 1, 2, 1, HOST_PORT, 1, VIRTIO_VSOCK_OP_REQUEST, 0, 0);
	send_as(CID, 3, 1, HOST_PORT, 1, VIRTIO_VSOCK_OP_REQUEST, 0, 0);
	expect_nothing();
	assert_int_equal(rv_fake_bad(vm), 2);
}

static void test_answers_bounded(void **state)
{
	unsigned int n = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		guest(VIRTIO_VSOCK_OP_RW, 0, 0);
	assert_false(rv_vsock_ready(s));
	while (next())
		n++;
	assert_int_equal(n, 64);
	assert_true(rv_vsock_ready(s));
}

static void test_credit_to_host(void **state)
{
	int fd = connect_guest(), quiet = 0;
	uint32_t sent = 0;
	uint8_t buf[8192];

	(void)state;
	/* Nobody reads: what the guest may send is bounded, then it is cut off. */
	while (sent < 10u << 20) {
		memset(data, 1, 16384);
		guest(VIRTIO_VSOCK_OP_RW, 16384, 0);
		sent += 16384;
		if (next() && h.op == VIRTIO_VSOCK_OP_RST)
			break;
	}
	assert_int_equal(h.op, VIRTIO_VSOCK_OP_RST);
	assert_true(sent < 2u << 20);
	assert_int_equal(rv_fake_bad(vm), 1);
	close(fd);

	/* A guest that keeps to its credit gets it renewed. */
	fd = connect_guest();
	for (sent = 0; sent < 1u << 20;) {
		uint32_t n = 32768;

		guest(VIRTIO_VSOCK_OP_RW, n, 0);
		sent += n;
		do {
			while (read(fd, buf, sizeof(buf)) > 0)
				;
			rv_fake_io_run(vm, 0);
			if (!next() && ++quiet > 100)
				fail();
		} while (sent - h.fwd_cnt > RV_VSOCK_BUF - 32768 ||
			 h.op != VIRTIO_VSOCK_OP_CREDIT_UPDATE);
	}
	close(fd);
}

static void test_credit_to_guest(void **state)
{
	int fd = connect_guest();
	static uint8_t big[20000];
	uint32_t total = 0;

	(void)state;
	assert_int_equal(write(fd, big, sizeof(big)), sizeof(big));
	rv_fake_io_run(vm, 0);
	while (next())
		total += h.len;
	assert_int_equal(total, 4096); /* what the guest's buf_alloc allows */
	rv_fake_io_run(vm, 0);
	expect_nothing();
	/* a counter that runs ahead or is nonsense gives nothing more than zero or alloc */
	{
		struct virtio_vsock_hdr p = {.src_cid = CID,
					     .dst_cid = 2,
					     .src_port = GUEST_PORT,
					     .dst_port = HOST_PORT,
					     .type = 1,
					     .op = VIRTIO_VSOCK_OP_CREDIT_UPDATE,
					     .buf_alloc = 4096,
					     .fwd_cnt = 0x80000000u};
		rv_vsock_take(s, &p, NULL);
		expect_nothing();
		p.fwd_cnt = 1000;
		rv_vsock_take(s, &p, NULL);
	}
	expect(VIRTIO_VSOCK_OP_RW);
	assert_int_equal(h.len, 1000);
	close(fd);
}

static void test_many(void **state)
{
	int fds[200], n = 0, rsts = 0;

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		send_as(CID, 2, i, HOST_PORT, 1, VIRTIO_VSOCK_OP_REQUEST, 0, 0);
		if (next() && h.op == VIRTIO_VSOCK_OP_RST)
			rsts++;
		fds[n] = rv_unix_accept(server);
		n += fds[n] >= 0;
	}
	assert_int_equal(rsts, 200 - 128);
	/* twice the same connection ends the first */
	send_as(CID, 2, 5, HOST_PORT, 1, VIRTIO_VSOCK_OP_REQUEST, 0, 0);
	expect(VIRTIO_VSOCK_OP_RST);
	rv_vsock_reset(s, true);
	expect_nothing();
	while (n--)
		close(fds[n]);
	rv_fake_io_run(vm, 0);
	close(connect_guest());
}

static void test_nonsense_ops(void **state)
{
	(void)state;
	for (unsigned int op = 8; op < 70000; op += 977) {
		int fd = connect_guest();

		guest((uint16_t)op < 8 ? 99 : (uint16_t)op, 0, 0xffffffff);
		expect(VIRTIO_VSOCK_OP_RST);
		close(fd);
	}
	close(connect_guest());
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_guest_connects), T(test_host_connects),	 T(test_host_says_nonsense),
		T(test_guest_refuses),	T(test_nobody_there),	 T(test_answers_bounded),
		T(test_credit_to_host), T(test_credit_to_guest), T(test_many),
		T(test_nonsense_ops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
