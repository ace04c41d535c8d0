/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.c: notice a vcpu that makes no progress inside KVM_RUN.
 *
 * A vcpu that exits now and then is alive, and one that waits for an interrupt is
 * idle. One that does neither for a whole period is taken out and looked at: the same
 * registers at the end of two periods in a row mean that it stands still. A guest can
 * do that to itself (an endless jump with interrupts off), and some instructions make
 * KVM retry for ever; both are events, neither hurts the monitor.
 */
#include "vm.h"
#include "arch.h"
#include "enforce/seal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define STILL_LIMIT 2

/* The vcpu is parked: its stack and registers can still be read. */
static void describe(struct rv_vm *vm, struct rv_vcpu *v, uint64_t pc, struct rv_event *ev)
{
	*ev = (struct rv_event){.version = RV_EVENT_VERSION, .kind = RV_EV_STALL};
	ev->vcpu = (int32_t)v->index;
	ev->pc = pc;
	ev->pc_exact = 1;
	ev->gpa = ~0ull;
	ev->value = vm->policy.watchdog_seconds * (uint64_t)v->still;
	snprintf(ev->engine, sizeof(ev->engine), "watchdog");
	snprintf(ev->object, sizeof(ev->object), "vcpu %u", v->index);
	snprintf(ev->detail, sizeof(ev->detail), "no progress for %llu s",
		 (unsigned long long)ev->value);
	rv_seal_name(vm, v, ev);
}

static void look(struct rv_vm *vm, struct rv_vcpu *v)
{
	uint64_t exits = v->exits, digest = 0, pc = 0;
	bool halted = false, still, post = false;
	struct rv_event ev;
	int rc;

	if (exits != v->seen_exits) {
		v->seen_exits = exits;
		v->still = 0;
		v->stall_posted = false;
		return;
	}
	rv_park(vm);
	rc = rv_arch_vcpu_pulse(v, &digest, &pc, &halted);
	still = !rc && !halted && digest == v->seen_digest;
	if (still && ++v->still >= STILL_LIMIT && !v->stall_posted) {
		post = true;
		describe(vm, v, pc, &ev);
	}
	rv_unpark(vm);
	/* The look itself was an exit. */
	v->seen_exits = v->exits;
	if (!still) {
		v->seen_digest = digest;
		v->still = 0;
		v->stall_posted = false;
	}
	if (post) {
		v->stall_posted = true;
		(void)rv_vm_event(vm, &ev);
	}
}

static void *watchdog_thread(void *arg)
{
	struct rv_vm *vm = arg;

	pthread_setname_np(pthread_self(), "rv-watchdog");
	pthread_mutex_lock(&vm->end_lock);
	while (!vm->ending) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += vm->policy.watchdog_seconds;
		if (pthread_cond_timedwait(&vm->end_cond, &vm->end_lock, &until) != ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&vm->end_lock);
		for (uint32_t i = 0; i < vm->nvcpu && !vm->ending && !vm->park.paused; i++)
			look(vm, &vm->vcpu[i]);
		pthread_mutex_lock(&vm->end_lock);
	}
	pthread_mutex_unlock(&vm->end_lock);
	return NULL;
}

int rv_watchdog_start(struct rv_vm *vm, struct rv_err *err)
{
	int rc;

	if (!vm->policy.watchdog_seconds)
		return 0;
	rc = pthread_create(&vm->watchdog, NULL, watchdog_thread, vm);
	if (rc) {
		errno = rc;
		return rv_err_os(err, "watchdog", "start the thread");
	}
	vm->watchdog_on = true;
	return 0;
}

void rv_watchdog_stop(struct rv_vm *vm)
{
	if (vm->watchdog_on)
		pthread_join(vm->watchdog, NULL);
	vm->watchdog_on = false;
}
