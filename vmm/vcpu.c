/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vcpu.c: vcpu threads, the run loop, and parking.
 *
 * Parking: the owner sets want, sets immediate_exit of every other vcpu and kicks
 * its thread. A vcpu that sees want counts itself parked and sleeps. The kick cannot
 * be lost: a vcpu that has passed the check and not yet entered KVM_RUN finds
 * immediate_exit set there (kvm.rst, "immediate_exit"), one inside is interrupted by
 * the signal. immediate_exit is cleared by the vcpu itself, under the lock, when
 * nobody wants it out any more.
 */
#include "vm.h"
#include "arch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define KICK_SIGNAL SIGUSR1
#define STEP_TRIES  16u

static _Thread_local struct rv_vcpu *self; /* the vcpu of this thread, if it is one */

static void on_kick(int sig)
{
	(void)sig;
}

/* --- parking ------------------------------------------------------------- */

static void kick(struct rv_vcpu *v)
{
	__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	/* A thread that is gone needs no kick, and once joined it must not get one: its
	 * handle is free memory. Every caller holds the park lock. */
	if (v->started && !v->gone)
		pthread_kill(v->thread, KICK_SIGNAL);
}

/* Sleep while somebody else holds the VM. Lock held. */
static void wait_while_held(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct rv_park *p = &vm->park;

	if (v) {
		v->parked = true;
		p->nparked++;
		pthread_cond_broadcast(&p->cond);
	}
	while (p->want && !pthread_equal(p->owner, pthread_self()))
		pthread_cond_wait(&p->cond, &p->lock);
	if (v) {
		v->parked = false;
		p->nparked--;
	}
}

static uint32_t others_running(struct rv_vm *vm)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < vm->nvcpu; i++)
		if (vm->vcpu[i].started && &vm->vcpu[i] != self && !vm->vcpu[i].parked)
			n++;
	return n;
}

void rv_park(struct rv_vm *vm)
{
	struct rv_park *p = &vm->park;

	pthread_mutex_lock(&p->lock);
	if (p->want && pthread_equal(p->owner, pthread_self())) {
		p->depth++;
		pthread_mutex_unlock(&p->lock);
		return;
	}
	while (p->want)
		wait_while_held(vm, self);
	p->want = true;
	p->owner = pthread_self();
	p->depth = 1;
	for (uint32_t i = 0; i < vm->nvcpu; i++)
		if (&vm->vcpu[i] != self)
			kick(&vm->vcpu[i]);
	while (others_running(vm))
		pthread_cond_wait(&p->cond, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

void rv_unpark(struct rv_vm *vm)
{
	struct rv_park *p = &vm->park;

	pthread_mutex_lock(&p->lock);
	if (--p->depth == 0) {
		p->want = false;
		pthread_cond_broadcast(&p->cond);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Before each entry: leave when the VM ends, sleep while it is held or paused. */
static bool may_enter(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct rv_park *p = &vm->park;
	bool go;

	if (!__atomic_load_n(&v->run->immediate_exit, __ATOMIC_SEQ_CST))
		return !vm->ending;
	pthread_mutex_lock(&p->lock);
	for (;;) {
		if (p->want)
			wait_while_held(vm, v);
		if (!p->paused || vm->ending)
			break;
		v->parked = true;
		p->nparked++;
		pthread_cond_broadcast(&p->cond);
		while (p->paused && !vm->ending && !p->want)
			pthread_cond_wait(&p->cond, &p->lock);
		v->parked = false;
		p->nparked--;
	}
	go = !vm->ending;
	if (go)
		__atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&p->lock);
	return go;
}

void rv_vm_pause(struct rv_vm *vm)
{
	pthread_mutex_lock(&vm->park.lock);
	vm->park.paused = true;
	for (uint32_t i = 0; i < vm->nvcpu; i++)
		kick(&vm->vcpu[i]);
	pthread_mutex_unlock(&vm->park.lock);
}

void rv_vm_resume(struct rv_vm *vm)
{
	pthread_mutex_lock(&vm->park.lock);
	vm->park.paused = false;
	pthread_cond_broadcast(&vm->park.cond);
	pthread_mutex_unlock(&vm->park.lock);
}

void rv_vm_end(struct rv_vm *vm, enum rv_end end, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&vm->end_lock);
	if (vm->end == RV_END_NONE) {
		vm->end = end;
		va_start(ap, fmt);
		vsnprintf(vm->end_why, sizeof(vm->end_why), fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&vm->end_lock);
	vm->ending = true;
	pthread_mutex_lock(&vm->park.lock);
	for (uint32_t i = 0; i < vm->nvcpu; i++)
		kick(&vm->vcpu[i]);
	pthread_cond_broadcast(&vm->park.cond);
	pthread_mutex_unlock(&vm->park.lock);
	pthread_mutex_lock(&vm->end_lock);
	pthread_cond_broadcast(&vm->end_cond);
	pthread_mutex_unlock(&vm->end_lock);
}

/* --- the run loop --------------------------------------------------------- */

static void on_mmio(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct kvm_run *run = v->run;
	uint64_t gpa = run->mmio.phys_addr;
	uint8_t len = run->mmio.len > 8 ? 8 : (uint8_t)run->mmio.len;

	if (rv_mem_ptr(vm, rv_gpa_of(gpa), len ? len : 1)) {
		if (!rv_arch_mmio_ram(vm, v))
			rv_vm_end(vm, RV_END_CRASH, "an access to RAM at 0x%llx came as MMIO",
				  (unsigned long long)gpa);
	} else if (run->mmio.is_write) {
		rv_bus_write(&vm->mmio, gpa, len, run->mmio.data);
	} else {
		rv_bus_read(&vm->mmio, gpa, len, run->mmio.data);
	}
}

void rv_vcpu_exit(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct kvm_run *run = v->run;

	switch (run->exit_reason) {
	case KVM_EXIT_MMIO: on_mmio(vm, v); break;
	case KVM_EXIT_INTR: break;
	case KVM_EXIT_SHUTDOWN:
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: triple fault", v->index);
		break;
	case KVM_EXIT_FAIL_ENTRY:
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: the CPU refused to enter the guest (0x%llx)",
			  v->index,
			  (unsigned long long)run->fail_entry.hardware_entry_failure_reason);
		break;
	default:
		if (!rv_arch_exit(vm, v))
			rv_vm_end(vm, RV_END_CRASH, "vcpu %u: unexpected exit %u", v->index,
				  run->exit_reason);
	}
}

static void run_once(struct rv_vm *vm, struct rv_vcpu *v)
{
	int rc, e;

	v->in_guest = true;
	rc = ioctl(v->fd, KVM_RUN, 0);
	e = errno;
	v->in_guest = false;
	v->exits++;
	if (!rc) {
		rv_vcpu_exit(vm, v);
		return;
	}
	switch (e) {
	case EINTR:
	case EAGAIN: return;
	case EHWPOISON: /* tried again it would fail again, for ever */
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: the host's memory is damaged there",
			  v->index);
		return;
	case EFAULT:
		if (!rv_arch_fault(vm, v))
			rv_vm_end(vm, RV_END_CRASH, "vcpu %u: memory fault that no region explains",
				  v->index);
		return;
	default: rv_vm_end(vm, RV_END_CRASH, "vcpu %u: KVM_RUN: %s", v->index, strerror(e));
	}
}

int rv_vcpu_step(struct rv_vm *vm, struct rv_vcpu *v)
{
	bool interrupted = false;
	int run = -1;

	/* Somebody may ask this vcpu out meanwhile: step first, and keep the request. */
	for (uint32_t tries = 0; tries < STEP_TRIES; tries++) {
		run = ioctl(v->fd, KVM_RUN, 0);
		if (!run || errno != EINTR)
			break;
		interrupted = true;
		__atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
		/* In this order: who ends the VM sets ending first, then asks out. */
		if (vm->ending)
			break;
	}
	if (interrupted)
		__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	return run;
}

static void *vcpu_thread(void *arg)
{
	struct rv_vcpu *v = arg;
	struct rv_vm *vm = v->vm;
	char name[16];
	sigset_t set;

	self = v;
	snprintf(name, sizeof(name), "rv-vcpu%u", v->index);
	pthread_setname_np(pthread_self(), name);
	sigemptyset(&set);
	sigaddset(&set, KICK_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	while (may_enter(vm, v))
		run_once(vm, v);
	pthread_mutex_lock(&vm->park.lock);
	v->parked = v->gone = true; /* for good */
	pthread_cond_broadcast(&vm->park.cond);
	pthread_mutex_unlock(&vm->park.lock);
	return NULL;
}

/* --- life ------------------------------------------------------------------ */

int rv_vcpus_create(struct rv_vm *vm, uint32_t n, struct rv_err *err)
{
	int size = ioctl(vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	if (size < (int)sizeof(struct kvm_run))
		return rv_err_os(err, "vcpu", "size of the shared run area");
	vm->run_size = (size_t)size;
	vm->vcpu = calloc(n, sizeof(*vm->vcpu));
	if (!vm->vcpu)
		return rv_err_set(err, RV_ENOMEM, "vcpu", "allocate %u vcpus", n);
	for (uint32_t i = 0; i < n; i++) {
		struct rv_vcpu *v = &vm->vcpu[i];

		v->vm = vm;
		v->index = i;
		v->fd = ioctl(vm->fd, KVM_CREATE_VCPU, (unsigned long)i);
		if (v->fd < 0)
			return rv_err_os(err, "vcpu", "create vcpu %u", i);
		vm->nvcpu = i + 1;
		v->run = mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
		if (v->run == MAP_FAILED) {
			v->run = NULL;
			return rv_err_os(err, "vcpu", "map the run area of vcpu %u", i);
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		int rc = rv_arch_vcpu_init(vm, &vm->vcpu[i], err);

		if (rc)
			return rc;
	}
	return 0;
}

int rv_vcpus_start(struct rv_vm *vm, struct rv_err *err)
{
	struct sigaction sa = {.sa_handler = on_kick};

	/* No SA_RESTART: the point of the signal is that KVM_RUN returns. */
	sigaction(KICK_SIGNAL, &sa, NULL);
	for (uint32_t i = 0; i < vm->nvcpu; i++) {
		struct rv_vcpu *v = &vm->vcpu[i];
		int rc;

		pthread_mutex_lock(&vm->park.lock);
		rc = pthread_create(&v->thread, NULL, vcpu_thread, v);
		v->started = rc == 0;
		pthread_mutex_unlock(&vm->park.lock);
		if (rc) {
			errno = rc;
			return rv_err_os(err, "vcpu", "start the thread of vcpu %u", i);
		}
	}
	return 0;
}

void rv_vcpus_join(struct rv_vm *vm)
{
	for (uint32_t i = 0; i < vm->nvcpu; i++)
		if (vm->vcpu[i].started) {
			pthread_join(vm->vcpu[i].thread, NULL);
			vm->vcpu[i].started = false;
		}
}

void rv_vcpus_destroy(struct rv_vm *vm)
{
	for (uint32_t i = 0; i < vm->nvcpu; i++) {
		if (vm->vcpu[i].run)
			munmap(vm->vcpu[i].run, vm->run_size);
		if (vm->vcpu[i].fd > 0)
			close(vm->vcpu[i].fd);
	}
	free(vm->vcpu);
	vm->vcpu = NULL;
	vm->nvcpu = 0;
}
