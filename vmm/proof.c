/* SPDX-License-Identifier: Apache-2.0 */
/* proof.c: run the tiny guests of proof.h, time them, and read the exits. */
#include "proof.h"
#include "caps.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define RUN_SECONDS 5u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void tiny_deinit(struct rv_tiny *t)
{
	if (t->run)
		munmap(t->run, t->run_size);
	if (t->vcpu >= 0)
		close(t->vcpu);
	if (t->vm >= 0)
		close(t->vm);
	if (t->guest)
		munmap(t->guest, RV_TINY_RAM);
	if (t->mon)
		munmap(t->mon, RV_TINY_RAM);
	if (t->mem >= 0)
		close(t->mem);
}

static uint8_t *map_ram(const struct rv_tiny *t)
{
	void *p = mmap(NULL, RV_TINY_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, t->mem, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Two mappings of one memfd, as the real machine has them. */
static int tiny_memory(struct rv_tiny *t, struct rv_err *err)
{
	struct kvm_userspace_memory_region region = {.memory_size = RV_TINY_RAM};

	t->mem = memfd_create("ravelin-proof", MFD_CLOEXEC);
	if (t->mem < 0 || ftruncate(t->mem, RV_TINY_RAM) < 0)
		return rv_err_os(err, "proof", "memory of the proof");
	t->guest = map_ram(t);
	t->mon = t->guest ? map_ram(t) : NULL;
	if (!t->mon)
		return rv_err_os(err, "proof", "map the memory of the proof");
	region.userspace_addr = (uintptr_t)t->guest;
	if (ioctl(t->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return rv_err_os(err, "proof", "KVM_SET_USER_MEMORY_REGION");
	return 0;
}

static int tiny_init(struct rv_tiny *t, int kvm_fd, struct rv_err *err)
{
	int size, rc;
	void *p;

	memset(t, 0, sizeof(*t));
	t->vcpu = t->mem = -1;
	t->vm = ioctl(kvm_fd, KVM_CREATE_VM, rv_arch_tiny_type(kvm_fd));
	if (t->vm < 0)
		return rv_err_os(err, "proof", "KVM_CREATE_VM");
	rc = tiny_memory(t, err);
	if (rc)
		return rc;
	t->vcpu = ioctl(t->vm, KVM_CREATE_VCPU, 0);
	if (t->vcpu < 0)
		return rv_err_os(err, "proof", "KVM_CREATE_VCPU");
	size = ioctl(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (size < (int)sizeof(struct kvm_run))
		return rv_err_os(err, "proof", "KVM_GET_VCPU_MMAP_SIZE");
	p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, t->vcpu, 0);
	if (p == MAP_FAILED)
		return rv_err_os(err, "proof", "map the run structure");
	t->run = p;
	t->run_size = (size_t)size;
	return rv_arch_tiny_init(t, kvm_fd, err);
}

static void on_alarm(int sig)
{
	(void)sig; /* its arrival ends KVM_RUN with EINTR */
}

/*
 * KVM_RUN until it ends otherwise than by a signal. Out: 0 or errno in *os_errno;
 * RV_EBUDGET when the guest did not come back in time.
 */
static int tiny_run(struct rv_tiny *t, int *os_errno, struct rv_err *err)
{
	const struct itimerval tick = {{0, 200000}, {0, 200000}}, off = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = on_alarm}, old;
	uint64_t end = now_ns() + RUN_SECONDS * 1000000000ull;
	int rc = 0;

	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &tick, NULL);
	t->run->exit_reason = KVM_EXIT_UNKNOWN;
	for (;;) {
		*os_errno = ioctl(t->vcpu, KVM_RUN, 0) < 0 ? errno : 0;
		if (*os_errno != EINTR && *os_errno != EAGAIN)
			break;
		if (now_ns() > end) {
			rc = rv_err_set(err, RV_EBUDGET, "proof",
					"the guest did not come back within %u s", RUN_SECONDS);
			break;
		}
	}
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	return rc;
}

/*
 * What an I/O exit left to do (a program counter to advance) is done by the next
 * entry, and would be done to the registers of a new start.
 */
static void settle(struct rv_tiny *t)
{
	t->run->immediate_exit = 1;
	(void)ioctl(t->vcpu, KVM_RUN, 0);
	t->run->immediate_exit = 0;
}

static int time_guest(struct rv_tiny *t, uint32_t turns, uint64_t *ns, struct rv_err *err)
{
	int rc, os_errno;
	uint64_t start;

	rc = rv_arch_tiny_start(t, RV_TINY_LOOP, turns, err);
	if (rc)
		return rc;
	start = now_ns();
	rc = tiny_run(t, &os_errno, err);
	*ns = now_ns() - start;
	if (rc)
		return rc;
	if (os_errno) {
		errno = os_errno;
		return rv_err_os(err, "proof", "KVM_RUN");
	}
	if (!rv_arch_tiny_ended(t))
		return rv_err_set(err, RV_EUNSUPPORTED, "proof", "exit reason %u was not expected",
				  t->run->exit_reason);
	settle(t);
	return 0;
}

static double time_host(uint32_t turns)
{
	uint64_t start = now_ns(), ns;

	rv_arch_tiny_host_loop(turns);
	ns = now_ns() - start;
	return ns ? 2.0 * turns * 1000.0 / (double)ns : 0;
}

int rv_proof_speed(int kvm_fd, struct rv_ring_speed *out, struct rv_err *err)
{
	uint32_t turns = 10000;
	struct rv_tiny t;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = tiny_init(&t, kvm_fd, err);
	/* Once for nothing: the first run pays for the first faults. */
	if (!rc)
		rc = time_guest(&t, 10, &out->guest_ns, err);
	/* Longer until it is long against the cost of one exit. */
	for (; !rc; turns *= 4) {
		rc = time_guest(&t, turns, &out->guest_ns, err);
		if (rc || out->guest_ns >= 20000000u || turns > 1u << 27)
			break;
	}
	tiny_deinit(&t);
	if (rc)
		return rc;
	out->instructions = 2ull * turns;
	out->guest_mips = (double)out->instructions * 1000.0 / (double)(out->guest_ns | 1);
	out->host_mips = time_host(turns < 1u << 24 ? 1u << 24 : turns);
	return 0;
}

static void classify(struct rv_tiny *t, int os_errno, struct rv_write_proof *out)
{
	const struct kvm_run *run = t->run;
	uint64_t pc;

	out->exit_reason = run->exit_reason;
	out->pc_exact = !rv_arch_tiny_pc(t, &pc) && pc == RV_TINY_CODE;
	if (t->mon[RV_TINY_TARGET])
		out->form = RV_WRITE_LANDED;
	else if (os_errno == EFAULT)
		out->form = run->exit_reason == KVM_EXIT_MEMORY_FAULT ? RV_WRITE_FAULT_ADDR
								      : RV_WRITE_FAULT;
	else if (!os_errno && run->exit_reason == KVM_EXIT_MMIO && run->mmio.is_write &&
		 run->mmio.phys_addr == RV_TINY_TARGET)
		out->form = RV_WRITE_MMIO;
	else
		out->form = RV_WRITE_OTHER;
}

/* The other half: without the protection the same store lands. */
static bool completes(struct rv_tiny *t, size_t page)
{
	int os_errno;

	if (mprotect(t->guest + RV_TINY_TARGET, page, PROT_READ | PROT_WRITE) < 0)
		return false;
	settle(t);
	return !rv_arch_tiny_start(t, RV_TINY_WRITE, 0, NULL) && !tiny_run(t, &os_errno, NULL) &&
	       !os_errno && rv_arch_tiny_ended(t) && t->mon[RV_TINY_TARGET] == RV_TINY_BYTE;
}

int rv_proof_write(int kvm_fd, struct rv_write_proof *out, struct rv_err *err)
{
	long page = sysconf(_SC_PAGESIZE);
	int rc, os_errno = 0;
	struct rv_tiny t;

	memset(out, 0, sizeof(*out));
	if (page > (long)(RV_TINY_RAM - RV_TINY_TARGET))
		return rv_err_set(err, RV_EUNSUPPORTED, "proof", "host pages of %ld bytes", page);
	rc = tiny_init(&t, kvm_fd, err);
	if (!rc)
		rc = rv_arch_tiny_start(&t, RV_TINY_WRITE, 0, err);
	if (!rc && mprotect(t.guest + RV_TINY_TARGET, (size_t)page, PROT_READ) < 0)
		rc = rv_err_os(err, "proof", "mprotect");
	if (!rc)
		rc = tiny_run(&t, &os_errno, err);
	if (rc == RV_EBUDGET) {
		out->form = RV_WRITE_HANGS;
		rc = 0;
	} else if (!rc) {
		classify(&t, os_errno, out);
		out->completes = completes(&t, (size_t)page);
	}
	tiny_deinit(&t);
	return rc;
}

const char *rv_write_form_name(enum rv_write_form form)
{
	switch (form) {
	case RV_WRITE_FAULT: return "fault";
	case RV_WRITE_FAULT_ADDR: return "fault-with-address";
	case RV_WRITE_MMIO: return "mmio";
	case RV_WRITE_LANDED: return "landed";
	case RV_WRITE_HANGS: return "hangs";
	case RV_WRITE_OTHER: return "other";
	case RV_WRITE_UNKNOWN: break;
	}
	return "unknown";
}

const char *rv_write_form_text(enum rv_write_form form)
{
	switch (form) {
	case RV_WRITE_FAULT: return "KVM_RUN ends with EFAULT, the address comes from decoding";
	case RV_WRITE_FAULT_ADDR: return "KVM_RUN ends with EFAULT, KVM tells the address";
	case RV_WRITE_MMIO: return "KVM emulates the instruction and reports MMIO";
	case RV_WRITE_LANDED: return "the write landed: this host does not protect";
	case RV_WRITE_HANGS: return "the processor hangs inside KVM";
	case RV_WRITE_OTHER: return "an exit that was not expected";
	case RV_WRITE_UNKNOWN: break;
	}
	return "not known";
}
