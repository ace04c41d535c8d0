/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.c: one thread and one epoll set for everything that devices wait for.
 *
 * Handlers live in a table indexed by descriptor. The table's lock is held while a
 * handler runs, so rv_io_del() from another thread returns only after it has ended;
 * from inside a handler (same thread) the lock is recursive.
 */
#include "vm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MAX_FD 1024 /* a VM has a few dozen; vsock connections are the bulk */

struct handler {
	rv_io_fn *fn;
	void *dev;
};

struct rv_io {
	int ep, wake;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	pthread_mutex_t lock;
	struct handler h[MAX_FD];
};

static int io_init(struct rv_vm *vm, struct rv_err *err)
{
	pthread_mutexattr_t attr;
	struct epoll_event ev = {.events = EPOLLIN};
	struct rv_io *io;

	if (vm->io)
		return 0;
	io = calloc(1, sizeof(*io));
	if (!io)
		return rv_err_set(err, RV_ENOMEM, "io", "allocate the I/O table");
	vm->io = io;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&io->lock, &attr);
	io->ep = epoll_create1(EPOLL_CLOEXEC);
	io->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ev.data.fd = io->wake;
	if (io->ep < 0 || io->wake < 0 || epoll_ctl(io->ep, EPOLL_CTL_ADD, io->wake, &ev))
		return rv_err_os(err, "io", "set up epoll");
	return 0;
}

int rv_io_add(struct rv_vm *vm, int fd, uint32_t events, rv_io_fn *fn, void *dev,
	      struct rv_err *err)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};
	int rc = io_init(vm, err);

	if (rc)
		return rc;
	if (fd < 0 || fd >= MAX_FD)
		return rv_err_set(err, RV_EBUDGET, "io", "descriptor %d, expected below %d", fd,
				  MAX_FD);
	pthread_mutex_lock(&vm->io->lock);
	vm->io->h[fd] = (struct handler){fn, dev};
	if (epoll_ctl(vm->io->ep, EPOLL_CTL_ADD, fd, &ev)) {
		rc = rv_err_os(err, "io", "watch descriptor %d", fd);
		vm->io->h[fd].fn = NULL;
	}
	pthread_mutex_unlock(&vm->io->lock);
	return rc;
}

int rv_io_mod(struct rv_vm *vm, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (!vm->io || fd < 0 || fd >= MAX_FD)
		return RV_EINVAL;
	return epoll_ctl(vm->io->ep, EPOLL_CTL_MOD, fd, &ev) ? RV_EOS : 0;
}

void rv_io_del(struct rv_vm *vm, int fd)
{
	if (!vm->io || fd < 0 || fd >= MAX_FD)
		return;
	pthread_mutex_lock(&vm->io->lock);
	epoll_ctl(vm->io->ep, EPOLL_CTL_DEL, fd, NULL);
	vm->io->h[fd].fn = NULL;
	pthread_mutex_unlock(&vm->io->lock);
}

static void *io_thread(void *arg)
{
	struct rv_io *io = arg;
	struct epoll_event ev[16];

	pthread_setname_np(pthread_self(), "rv-io");
	while (!io->stop) {
		int n = epoll_wait(io->ep, ev, 16, -1);

		for (int i = 0; i < n; i++) {
			int fd = ev[i].data.fd;

			if (fd == io->wake)
				continue;
			pthread_mutex_lock(&io->lock);
			/* A handler earlier in this batch may have closed this one. */
			if (io->h[fd].fn)
				io->h[fd].fn(io->h[fd].dev, fd, ev[i].events);
			pthread_mutex_unlock(&io->lock);
		}
	}
	return NULL;
}

int rv_io_start(struct rv_vm *vm, struct rv_err *err)
{
	int rc = io_init(vm, err);

	if (rc)
		return rc;
	rc = pthread_create(&vm->io->thread, NULL, io_thread, vm->io);
	if (rc) {
		errno = rc;
		return rv_err_os(err, "io", "start the I/O thread");
	}
	vm->io->running = true;
	return 0;
}

void rv_io_stop(struct rv_vm *vm)
{
	uint64_t one = 1;

	if (!vm->io)
		return;
	vm->io->stop = true;
	if (vm->io->running && write(vm->io->wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(vm->io->thread, NULL);
	vm->io->running = false;
}

int rv_ioevent_add(struct rv_vm *vm, rv_gpa gpa, uint32_t value, int fd, struct rv_err *err)
{
	struct kvm_ioeventfd io = {
		.datamatch = value,
		.addr = gpa.v,
		.len = 4,
		.fd = fd,
		.flags = KVM_IOEVENTFD_FLAG_DATAMATCH,
	};

	if (ioctl(vm->fd, KVM_IOEVENTFD, &io))
		return rv_err_os(err, "io", "attach an eventfd to a doorbell register");
	return 0;
}

void rv_irq_line(struct rv_vm *vm, uint32_t gsi, bool level)
{
	struct kvm_irq_level irq = {.irq = gsi, .level = level};

	/* Cannot fail for a line that exists, and lines are fixed at start. */
	(void)!ioctl(vm->fd, KVM_IRQ_LINE, &irq);
}
