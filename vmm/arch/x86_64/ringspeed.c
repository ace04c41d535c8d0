/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringspeed.c: two proofs by a guest of a few instructions in 64-bit kernel mode:
 * how fast it runs, and what becomes of a write into a protected page. Needs
 * nothing but a KVM descriptor and shares no code with the real machine, so that it
 * still answers where that one cannot be built.
 *
 * Guest physical map, one slot of 64 KiB at 0:
 *	0x1000 PML4, 0x2000 PDPT, 0x3000 PD (one 2 MiB page, identity)
 *	0x4000 code	0x8000 the page that is written to
 */
#include "../../caps.h"

#include <errno.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define RAM	      0x10000u
#define PML4	      0x1000u
#define PDPT	      0x2000u
#define PD	      0x3000u
#define CODE	      0x4000u
#define TARGET	      0x8000u
#define PAGE	      0x1000u
#define CPUID_ENTRIES 256
#define RUN_SECONDS   5u

struct tiny {
	int vm, vcpu, mem;
	uint8_t *guest; /* mapping given to KVM */
	uint8_t *mon;	/* the second mapping */
	struct kvm_run *run;
	size_t run_size;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void tiny_deinit(struct tiny *t)
{
	if (t->run)
		munmap(t->run, t->run_size);
	if (t->vcpu >= 0)
		close(t->vcpu);
	if (t->vm >= 0)
		close(t->vm);
	if (t->guest)
		munmap(t->guest, RAM);
	if (t->mon)
		munmap(t->mon, RAM);
	if (t->mem >= 0)
		close(t->mem);
}

static int tiny_memory(struct tiny *t, struct rv_err *err)
{
	struct kvm_userspace_memory_region region = {.memory_size = RAM};
	uint64_t *pml4, *pdpt, *pd;
	void *p;

	t->mem = memfd_create("ravelin-proof", MFD_CLOEXEC);
	if (t->mem < 0 || ftruncate(t->mem, RAM) < 0)
		return rv_err_os(err, "doctor", "memory of the proof");
	p = mmap(NULL, RAM, PROT_READ | PROT_WRITE, MAP_SHARED, t->mem, 0);
	if (p == MAP_FAILED)
		return rv_err_os(err, "doctor", "map the memory of the proof");
	t->guest = p;
	p = mmap(NULL, RAM, PROT_READ | PROT_WRITE, MAP_SHARED, t->mem, 0);
	if (p == MAP_FAILED)
		return rv_err_os(err, "doctor", "map the memory of the proof");
	t->mon = p;
	pml4 = (uint64_t *)(t->mon + PML4);
	pdpt = (uint64_t *)(t->mon + PDPT);
	pd = (uint64_t *)(t->mon + PD);
	pml4[0] = PDPT | 3;
	pdpt[0] = PD | 3;
	pd[0] = 0x83; /* present, writable, 2 MiB */
	region.userspace_addr = (uintptr_t)t->guest;
	if (ioctl(t->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return rv_err_os(err, "doctor", "KVM_SET_USER_MEMORY_REGION");
	return 0;
}

/* EFER.LME is refused to a processor whose CPUID lacks 64-bit mode. */
static int tiny_cpuid(struct tiny *t, int kvm_fd, struct rv_err *err)
{
	size_t size = sizeof(struct kvm_cpuid2) + CPUID_ENTRIES * sizeof(struct kvm_cpuid_entry2);
	struct kvm_cpuid2 *cpuid = calloc(1, size);
	int rc = 0;

	if (!cpuid)
		return rv_err_set(err, RV_ENOMEM, "doctor", "out of memory");
	cpuid->nent = CPUID_ENTRIES;
	if (ioctl(kvm_fd, KVM_GET_SUPPORTED_CPUID, cpuid) < 0)
		rc = rv_err_os(err, "doctor", "KVM_GET_SUPPORTED_CPUID");
	else if (ioctl(t->vcpu, KVM_SET_CPUID2, cpuid) < 0)
		rc = rv_err_os(err, "doctor", "KVM_SET_CPUID2");
	free(cpuid);
	return rc;
}

static int tiny_long_mode(struct tiny *t, struct rv_err *err)
{
	const struct kvm_segment code = {.limit = 0xffffffff,
					 .selector = 8,
					 .type = 11,
					 .present = 1,
					 .s = 1,
					 .l = 1,
					 .g = 1};
	const struct kvm_segment data = {.limit = 0xffffffff,
					 .selector = 16,
					 .type = 3,
					 .present = 1,
					 .db = 1,
					 .s = 1,
					 .g = 1};
	const struct kvm_segment tss = {.limit = 0x67, .selector = 24, .type = 11, .present = 1};
	struct kvm_sregs s;

	if (ioctl(t->vcpu, KVM_GET_SREGS, &s) < 0)
		return rv_err_os(err, "doctor", "KVM_GET_SREGS");
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.tr = tss;
	s.cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	s.cr3 = PML4;
	s.cr4 = 0x20;	/* PAE */
	s.efer = 0x500; /* LMA, LME */
	if (ioctl(t->vcpu, KVM_SET_SREGS, &s) < 0)
		return rv_err_os(err, "doctor", "KVM_SET_SREGS: 64-bit mode");
	return 0;
}

static int tiny_init(struct tiny *t, int kvm_fd, struct rv_err *err)
{
	int size, rc;
	void *p;

	memset(t, 0, sizeof(*t));
	t->vm = t->vcpu = t->mem = -1;
	t->vm = ioctl(kvm_fd, KVM_CREATE_VM, 0);
	if (t->vm < 0)
		return rv_err_os(err, "doctor", "KVM_CREATE_VM");
	rc = tiny_memory(t, err);
	if (rc)
		return rc;
	/* Only Intel needs it, and only older ones; others ignore it. */
	(void)ioctl(t->vm, KVM_SET_TSS_ADDR, 0xfffbd000UL);
	t->vcpu = ioctl(t->vm, KVM_CREATE_VCPU, 0);
	if (t->vcpu < 0)
		return rv_err_os(err, "doctor", "KVM_CREATE_VCPU");
	size = ioctl(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (size < (int)sizeof(struct kvm_run))
		return rv_err_os(err, "doctor", "KVM_GET_VCPU_MMAP_SIZE");
	p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, t->vcpu, 0);
	if (p == MAP_FAILED)
		return rv_err_os(err, "doctor", "map the run structure");
	t->run = p;
	t->run_size = (size_t)size;
	rc = tiny_cpuid(t, kvm_fd, err);
	return rc ? rc : tiny_long_mode(t, err);
}

static int tiny_start(struct tiny *t, uint64_t rax, uint64_t rcx, struct rv_err *err)
{
	struct kvm_regs r = {.rip = CODE, .rflags = 2, .rax = rax, .rcx = rcx, .rbx = TARGET};

	if (ioctl(t->vcpu, KVM_SET_REGS, &r) < 0)
		return rv_err_os(err, "doctor", "KVM_SET_REGS");
	return 0;
}

static void on_alarm(int sig)
{
	(void)sig; /* its arrival ends KVM_RUN with EINTR */
}

/*
 * KVM_RUN until it ends otherwise than by a signal. Out: 0 or errno in *os_errno;
 * RV_EBUDGET when the guest did not come back in time.
 */
static int tiny_run(struct tiny *t, int *os_errno, struct rv_err *err)
{
	const struct itimerval tick = {{0, 200000}, {0, 200000}}, off = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = on_alarm}, old;
	uint64_t end = now_ns() + RUN_SECONDS * 1000000000ull;
	int rc = 0;

	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &tick, NULL);
	for (;;) {
		*os_errno = ioctl(t->vcpu, KVM_RUN, 0) < 0 ? errno : 0;
		if (*os_errno != EINTR && *os_errno != EAGAIN)
			break;
		if (now_ns() > end) {
			rc = rv_err_set(err, RV_EBUDGET, "doctor",
					"the guest did not come back within %u s", RUN_SECONDS);
			break;
		}
	}
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	return rc;
}

static int unexpected(const struct tiny *t, int os_errno, struct rv_err *err)
{
	if (os_errno) {
		errno = os_errno;
		return rv_err_os(err, "doctor", "KVM_RUN of the proof");
	}
	return rv_err_set(err, RV_EUNSUPPORTED, "doctor", "exit reason %u (%u) was not expected",
			  t->run->exit_reason, t->run->internal.suberror);
}

/* 1: dec ecx; jnz 1b; out 0x10, al */
static const uint8_t loop_code[] = {0xff, 0xc9, 0x75, 0xfc, 0xe6, 0x10};

static int time_guest(struct tiny *t, uint32_t turns, uint64_t *ns, struct rv_err *err)
{
	uint64_t start;
	int rc, os_errno;

	rc = tiny_start(t, 0, turns, err);
	if (rc)
		return rc;
	start = now_ns();
	rc = tiny_run(t, &os_errno, err);
	*ns = now_ns() - start;
	if (rc)
		return rc;
	if (os_errno || t->run->exit_reason != KVM_EXIT_IO)
		return unexpected(t, os_errno, err);
	return 0;
}

static double time_host(uint32_t turns)
{
	uint64_t start = now_ns(), ns;
	uint32_t n = turns;

	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
	ns = now_ns() - start;
	return ns ? 2.0 * turns * 1000.0 / (double)ns : 0;
}

int rv_arch_ring_speed(int kvm_fd, struct rv_ring_speed *out, struct rv_err *err)
{
	uint32_t turns = 10000;
	struct tiny t;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = tiny_init(&t, kvm_fd, err);
	if (!rc) {
		memcpy(t.mon + CODE, loop_code, sizeof(loop_code));
		/* Once for nothing: the first run pays for the first faults. */
		rc = time_guest(&t, 10, &out->guest_ns, err);
	}
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

/* mov [rbx], rax; out 0x10, al */
static const uint8_t write_code[] = {0x48, 0x89, 0x03, 0xe6, 0x10};
#define WRITE_LEN 3u

static void classify(struct tiny *t, int os_errno, struct rv_write_proof *out)
{
	const struct kvm_run *run = t->run;
	struct kvm_regs r = {0};

	out->exit_reason = run->exit_reason;
	if (ioctl(t->vcpu, KVM_GET_REGS, &r) == 0)
		out->pc_exact = r.rip == CODE;
	if (t->mon[TARGET])
		out->form = RV_WRITE_LANDED;
	else if (os_errno == EFAULT)
		out->form = run->exit_reason == KVM_EXIT_MEMORY_FAULT ? RV_WRITE_FAULT_ADDR
								      : RV_WRITE_FAULT;
	else if (!os_errno && run->exit_reason == KVM_EXIT_MMIO && run->mmio.is_write &&
		 run->mmio.phys_addr == TARGET)
		out->form = RV_WRITE_MMIO;
	else
		out->form = RV_WRITE_OTHER;
}

int rv_arch_write_proof(int kvm_fd, struct rv_write_proof *out, struct rv_err *err)
{
	struct tiny t;
	int rc, os_errno = 0;

	memset(out, 0, sizeof(*out));
	rc = tiny_init(&t, kvm_fd, err);
	if (!rc) {
		memcpy(t.mon + CODE, write_code, sizeof(write_code));
		rc = tiny_start(&t, 0x41, 0, err);
	}
	if (!rc && mprotect(t.guest + TARGET, PAGE, PROT_READ) < 0)
		rc = rv_err_os(err, "doctor", "mprotect");
	if (!rc) {
		t.run->exit_reason = 0;
		rc = tiny_run(&t, &os_errno, err);
		if (rc == RV_EBUDGET) {
			out->form = RV_WRITE_HANGS;
			rc = 0;
		} else if (!rc) {
			classify(&t, os_errno, out);
		}
	}
	/* The other half of the proof: without the protection the same store lands. */
	if (!rc && out->form != RV_WRITE_HANGS && !mprotect(t.guest + TARGET, PAGE, 3) &&
	    !tiny_start(&t, 0x41, 0, NULL)) {
		/* What an MMIO exit left to do is done by the next entry; then start over. */
		t.run->immediate_exit = 1;
		(void)ioctl(t.vcpu, KVM_RUN, 0);
		t.run->immediate_exit = 0;
		rc = tiny_start(&t, 0x41, 0, err);
		if (!rc && !tiny_run(&t, &os_errno, NULL))
			out->completes = !os_errno && t.run->exit_reason == KVM_EXIT_IO &&
					 t.mon[TARGET] == 0x41;
	}
	tiny_deinit(&t);
	return rc;
}
