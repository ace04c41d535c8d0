/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_guest.c: the VM of the test, and the guest's tables.
 *
 * Long mode, all of memory mapped twice (low, and at HIGH) by pages of 2 MiB. An exception
 * runs its vector's stub on a stack of its own: one OUT that says which kind it was.
 */
#include "memprot_test.h"

#include <fcntl.h>
#include <time.h>

struct rv_vm mpt_vm;
struct mpt_cpu mpt_cpu;
_Atomic bool mpt_started;
_Atomic uint32_t mpt_done;
static struct rv_run_options opt = {.cpus = NVCPU, .memory = MEMORY};

uint8_t *mpt_mem(uint64_t gpa, uint64_t len)
{
	return rv_mem_ptr(&mpt_vm, rv_gpa_of(gpa), len);
}

size_t mpt_unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		sscanf(hex + 2 * i, "%2hhx", &out[i]);
	return n;
}

void mpt_fill(uint8_t *p)
{
	for (uint32_t i = 0; i < WLEN; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + 3);
}

const char *mpt_differs(const uint8_t *a, const uint8_t *b, uint32_t from, uint32_t to)
{
	static char why[120];

	for (uint32_t i = from; i < to; i++)
		if (a[i] != b[i]) {
			snprintf(why, sizeof(why), "byte at window + 0x%x is %02x, expected %02x",
				 i, a[i], b[i]);
			return why;
		}
	return NULL;
}

static void descriptors(void)
{
	uint64_t *gdt = (void *)mpt_mem(GDT, 64), *idt = (void *)mpt_mem(IDT, 4096);
	uint8_t *stub = mpt_mem(STUBS, 4096);
	uint64_t ist = HIGH + IST, tss = HIGH + TSS;

	gdt[2] = 0x00af9b000000ffffull;
	gdt[3] = 0x00cf93000000ffffull;
	gdt[4] = 0x67 | (tss & 0xffffff) << 16 | 0x89ull << 40 | (tss >> 24 & 0xff) << 56;
	gdt[5] = tss >> 32;
	memcpy(mpt_mem(TSS + 0x24, 8), &ist, 8);
	for (uint32_t i = 0; i < 256; i++) {
		uint64_t at = HIGH + STUBS + i * 4;

		stub[i * 4] = 0xe6;
		stub[i * 4 + 1] = i == 14 ? PORT_FAULT : i == 13 ? PORT_FAULT + 1 : PORT_FAULT + 2;
		stub[i * 4 + 2] = 0xf4;
		idt[2 * i] = (at & 0xffff) | 0x10ull << 16 | 1ull << 32 | 0x8eull << 40 |
			     (at >> 16 & 0xffff) << 48;
		idt[2 * i + 1] = at >> 32;
	}
}

static void tables(void)
{
	uint64_t *pml4 = (void *)mpt_mem(PML4, 4096), *pdpt = (void *)mpt_mem(PDPT, 4096),
		 *pd = (void *)mpt_mem(PD, 4096);

	pml4[0] = pml4[HIGH >> 39 & 511] = PDPT | 3;
	pdpt[0] = PD | 3;
	for (uint64_t i = 0; i < MEMORY >> 21; i++)
		pd[i] = i << 21 | 0x83;
}

static struct kvm_segment segment(uint16_t sel, uint8_t type, bool code)
{
	return (struct kvm_segment){.limit = 0xffffffff,
				    .selector = sel,
				    .type = type,
				    .present = 1,
				    .s = 1,
				    .g = 1,
				    .l = code,
				    .db = !code};
}

static bool start_state(struct rv_vcpu *v, uint64_t rip)
{
	struct kvm_mp_state mp = {.mp_state = KVM_MP_STATE_RUNNABLE};
	struct kvm_regs r = {.rip = rip, .rflags = 2, .rbx = v->index};
	struct kvm_xcrs x = {.nr_xcrs = 1};
	struct kvm_sregs s;

	r.rsp = HIGH + STACK + 0x1000 * v->index;
	if (ioctl(v->fd, KVM_GET_SREGS, &s))
		return false;
	s.cs = segment(0x10, 11, true);
	s.ds = s.es = s.fs = s.gs = s.ss = segment(0x18, 3, false);
	s.tr = (struct kvm_segment){
		.base = HIGH + TSS, .limit = 0x67, .selector = 0x20, .type = 11, .present = 1};
	s.gdt.base = HIGH + GDT;
	s.gdt.limit = 47;
	s.idt.base = HIGH + IDT;
	s.idt.limit = 4095;
	s.cr0 = 0x80050033;
	s.cr3 = PML4;
	s.cr4 = 0x20 | 0x600 | (mpt_cpu.xsave ? 0x40000 : 0); /* PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
	s.efer = 0x500;
	if (ioctl(v->fd, KVM_SET_SREGS, &s) || ioctl(v->fd, KVM_SET_REGS, &r) ||
	    ioctl(v->fd, KVM_SET_MP_STATE, &mp))
		return false;
	x.xcrs[0].value = 3 | (mpt_cpu.avx ? 4 : 0) | (mpt_cpu.avx512 ? 0xe0 : 0);
	return !mpt_cpu.xsave || !ioctl(v->fd, KVM_SET_XCRS, &x);
}

static void features(void)
{
	const struct kvm_cpuid2 *c = mpt_vm.arch->cpuid;
	uint32_t xcr0 = 0;

	for (uint32_t i = 0; i < c->nent; i++) {
		const struct kvm_cpuid_entry2 *e = &c->entries[i];

		if (e->function == 1) {
			mpt_cpu.xsave = e->ecx >> 26 & 1;
			mpt_cpu.cx16 = e->ecx >> 13 & 1;
		} else if (e->function == 0xd && e->index == 0) {
			xcr0 = e->eax;
		}
	}
	mpt_cpu.avx = mpt_cpu.xsave && (xcr0 & 4);
	mpt_cpu.avx512 = mpt_cpu.avx && (xcr0 & 0xe0) == 0xe0;
}

static void end_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	(void)dev, (void)len, (void)data;
	if (off == 0 && ++mpt_done == NVCPU)
		rv_vm_end(&mpt_vm, RV_END_POWEROFF, "all vcpus");
	else if (off == 1)
		rv_vm_end(&mpt_vm, RV_END_POWEROFF, "done");
	/* A finished vcpu halts with interrupts off and is taken out by the end. */
}

static const struct rv_bus_ops end_ops = {NULL, end_write};

int mpt_build(struct rv_err *err)
{
	int rc = 0;

	mpt_vm.opt = &opt;
	pthread_mutex_init(&mpt_vm.end_lock, NULL);
	pthread_cond_init(&mpt_vm.end_cond, NULL);
	pthread_mutex_init(&mpt_vm.park.lock, NULL);
	pthread_cond_init(&mpt_vm.park.cond, NULL);
	mpt_vm.mem.fd = -1;
	mpt_vm.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (mpt_vm.kvm < 0)
		return rv_err_os(err, "test", "open /dev/kvm");
	mpt_vm.fd = ioctl(mpt_vm.kvm, KVM_CREATE_VM, 0UL);
	if (mpt_vm.fd < 0)
		return rv_err_os(err, "test", "create a VM");
	rc = rv_policy_profile("balanced", &mpt_vm.policy, err);
	if (!rc)
		rc = rv_journal_open(NULL, "memprot-test", 64, 10, &mpt_vm.journal, err);
	if (!rc)
		rc = rv_arch_vm_init(&mpt_vm, err);
	if (!rc)
		rc = rv_mem_init(&mpt_vm, MEMORY, err);
	if (rc)
		return rc;
	mpt_vm.prot = rv_memprot_create(&mpt_vm);
	features();
	descriptors();
	tables();
	for (uint32_t i = 0; i < 4096; i++)
		*mpt_mem(SOURCE + i, 1) = (uint8_t)(i * 37 + 0x91);
	rc = rv_bus_add_pio(&mpt_vm, PORT_ALL, 2, &end_ops, NULL, err);
	if (!rc)
		rc = rv_memprot_add(mpt_vm.prot, rv_gpa_of(WINDOW + P1), 4096, RV_OBJ_TEXT, "one",
				    err);
	if (!rc)
		rc = rv_memprot_add(mpt_vm.prot, rv_gpa_of(WINDOW + P2), 4096, RV_OBJ_RODATA, "two",
				    err);
	return rc ? rc : rv_memprot_commit(mpt_vm.prot, err);
}

static bool wait_end(uint32_t seconds)
{
	struct timespec until;
	bool ended;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&mpt_vm.end_lock);
	while (!mpt_vm.ending &&
	       pthread_cond_timedwait(&mpt_vm.end_cond, &mpt_vm.end_lock, &until) != ETIMEDOUT)
		;
	ended = mpt_vm.ending;
	pthread_mutex_unlock(&mpt_vm.end_lock);
	return ended;
}

const char *mpt_run(uint32_t n, uint64_t rip, uint32_t seconds)
{
	static char why[260];
	struct rv_err err;
	uint32_t all = mpt_vm.nvcpu;
	bool hang;

	mpt_vm.end = RV_END_NONE;
	mpt_vm.ending = false;
	memset(&mpt_vm.end_why, 0, sizeof(mpt_vm.end_why));
	for (uint32_t i = 0; i < n; i++) {
		struct rv_vcpu *v = &mpt_vm.vcpu[i];

		v->parked = v->started = v->gone = false;
		v->run->immediate_exit = 0;
		if (!start_state(v, rip))
			return "cannot set the first registers";
	}
	mpt_vm.nvcpu = n;
	if (rv_vcpus_start(&mpt_vm, &err))
		return "cannot start the vcpus";
	mpt_started = true; /* the initiators: what is reset above is not theirs to race with */
	hang = !wait_end(seconds);
	/* Ended, not parked: who hangs may be the one that holds the others parked. */
	if (hang)
		rv_vm_end(&mpt_vm, RV_END_QUIT, "hang");
	rv_vcpus_join(&mpt_vm);
	mpt_vm.nvcpu = all;
	if (hang) {
		struct kvm_regs r = {0};

		(void)!ioctl(mpt_vm.vcpu[0].fd, KVM_GET_REGS, &r);
		snprintf(why, sizeof(why), "no end after %u s, rip 0x%llx", seconds,
			 (unsigned long long)r.rip);
		return why;
	}
	if (mpt_vm.end != RV_END_POWEROFF) {
		snprintf(why, sizeof(why), "%s: %s", rv_end_name(mpt_vm.end), mpt_vm.end_why);
		return why;
	}
	return NULL;
}
