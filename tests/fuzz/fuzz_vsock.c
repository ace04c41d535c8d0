/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_vsock.c: a guest's vsock packets, with two host sockets that come and go. */
/* fuzz-sources: vmm/dev/vsock.c vmm/dev/unixsock.c tests/unit/fake_vm.c */
#include "../unit/fake_vm.h"
#include "dev/unixsock.h"
#include "dev/vsock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CID  3
#define ENDS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char path[64], port_path[80];

static void wake(void *arg)
{
	(void)arg;
}

struct world {
	struct rv_vm *vm;
	struct rv_vsock *s;
	int server, ends[ENDS];
	uint32_t last_port;
};

static void end_put(struct world *w, int fd)
{
	static unsigned int turn;
	int *e = &w->ends[turn++ % ENDS];

	if (*e >= 0)
		close(*e);
	*e = fd;
}

/* One of 16 things that the host may do. */
static void host(struct world *w, uint8_t what)
{
	static uint8_t buf[5000];
	int *e = &w->ends[what % ENDS], fd;

	switch (what >> 4) {
	case 0:
		if (rv_unix_connect(path, &fd, NULL) == RV_OK) {
			(void)!write(fd, "CONNECT 7\n", 10);
			end_put(w, fd);
		}
		break;
	case 1: end_put(w, rv_unix_accept(w->server)); break;
	case 2:
		if (*e >= 0)
			(void)!write(*e, buf, sizeof(buf));
		break;
	case 3:
		if (*e >= 0)
			(void)!read(*e, buf, sizeof(buf));
		break;
	case 4:
		if (*e >= 0)
			shutdown(*e, what & 8 ? SHUT_WR : SHUT_RDWR);
		break;
	case 5:
		if (*e >= 0)
			close(*e);
		*e = -1;
		break;
	case 6: rv_vsock_reset(w->s, true); break;
	default: rv_fake_io_run(w->vm, 0); break;
	}
}

static void packet(struct world *w, const uint8_t *d)
{
	static uint8_t payload[RV_VSOCK_BUF];
	struct virtio_vsock_hdr h = {
		.src_cid = d[0] & 0x80 ? d[0] : CID,
		.dst_cid = d[0] & 0x40 ? d[0] : 2,
		.src_port = d[1] % 8,
		.dst_port = d[1] & 0x80	  ? 9
			    : d[1] & 0x40 ? w->last_port
					  : 10,
		.type = d[0] & 0x20 ? d[0] : 1,
		.op = d[2] % 10,
		.flags = d[3],
		.buf_alloc = (uint32_t)d[4] << (d[5] % 25),
		.fwd_cnt = (uint32_t)d[6] << (d[5] % 25),
	};
	uint32_t room = (uint32_t)d[7] * 64 + 1;

	h.len = h.op == VIRTIO_VSOCK_OP_RW ? (uint32_t)(d[3] * 257) : 0;
	rv_vsock_take(w->s, &h, payload);
	if (!(d[2] & 0x80))
		return;
	for (int i = 0; i < 4 && rv_vsock_give(w->s, &h, payload, room); i++) {
		if (h.len > room || h.dst_cid != CID || h.src_cid != 2)
			__builtin_trap();
		w->last_port = h.src_port;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;

	if (!w.vm) {
		w.vm = rv_fake_vm_new();
		signal(SIGPIPE, SIG_IGN);
	}
	for (int i = 0; i < ENDS; i++)
		w.ends[i] = -1;
	snprintf(path, sizeof(path), "/tmp/fuzz_vsock.%d", getpid());
	snprintf(port_path, sizeof(port_path), "%s_10", path);
	if (rv_unix_listen(port_path, &w.server, NULL) ||
	    rv_vsock_create(w.vm, "fuzz", CID, path, &lock, wake, NULL, &w.s, NULL))
		abort();
	rv_vsock_reset(w.s, true);
	for (; size >= 9; data += 9, size -= 9) {
		host(&w, data[8]);
		packet(&w, data);
	}
	rv_fake_io_run(w.vm, 0);
	rv_vsock_destroy(w.s);
	for (int i = 0; i < ENDS; i++)
		if (w.ends[i] >= 0)
			close(w.ends[i]);
	close(w.server);
	unlink(port_path);
	rv_fake_vm_clear(w.vm);
	return 0;
}
