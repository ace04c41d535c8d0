/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_stores.c: each row of the instructions, under each answer.
 *
 * One vcpu runs from row to row without leaving the VM: its OUT behind the instruction,
 * or in a vector's stub, has the row judged and the next one loaded.
 */
#include "memprot_test.h"

enum mode { REFERENCE, RECORD, DENY, FAULT, MODES };
static const char *const mode_name[] = {"reference", "record", "deny", "fault"};

static struct {
	size_t next;
	enum mode mode;
	struct kvm_regs start, ref_end;
	uint8_t before[WLEN], ref[WLEN];
	uint64_t insn_rip, end_rip;
	bool running, dead;
	uint8_t data;
} t;

static bool usable(const struct mpt_insn *in)
{
	if (mpt_only && strcmp(mpt_only, in->name))
		return false;
	return !((in->flags & F_AVX && !mpt_cpu.avx) || (in->flags & F_AVX512 && !mpt_cpu.avx512) ||
		 (in->flags & F_XSAVE && !mpt_cpu.xsave) || (in->flags & F_CX16 && !mpt_cpu.cx16));
}

static void load_case(struct rv_vcpu *v, const struct mpt_insn *in)
{
	static const char *const sse = "f30f6f06f30f6f4e10", *const avx = "c5fe6f06c5fe6f4e20",
				 *const zmm = "62f1fe486f06";
	uint64_t window = HIGH + (t.mode == REFERENCE ? TWIN : WINDOW), base = window + in->off;
	uint8_t *code = mpt_mem(CODE, 64);
	struct kvm_regs r = {0};
	size_t n;

	n = mpt_unhex(in->flags & F_AVX512 ? zmm : in->flags & F_AVX ? avx : sse, code);
	t.insn_rip = HIGH + CODE + n;
	n += mpt_unhex(in->hex, code + n);
	t.end_rip = HIGH + CODE + n;
	code[n++] = 0xe6; /* out PORT_NEXT, al */
	code[n++] = PORT_NEXT;
	r.rip = HIGH + CODE;
	r.rflags = 2;
	r.rax = 0x8182838485868788ull;
	r.rbx = r.rdi = base;
	r.rcx = in->rcx & 0x80000000u ? (uint64_t)(int64_t)(int32_t)in->rcx : in->rcx;
	r.rdx = in->flags & F_MMIO ? PORT_DATA : in->flags & F_XSAVE ? 0 : 0x9192939495969798ull;
	if (in->flags & F_XSAVE)
		r.rax = 3; /* x87 and SSE: 576 bytes and the header */
	r.rsi = HIGH + SOURCE;
	r.rbp = HIGH + SOURCE + 0x800; /* enter copies its display from here */
	r.rsp = in->flags & F_STACK ? base : HIGH + STACK;
	r.r8 = 0xa1a2a3a4a5a6a7a8ull;
	t.data = 0x40;
	mpt_fill(mpt_mem(WINDOW, WLEN));
	mpt_fill(mpt_mem(TWIN, WLEN));
	memcpy(t.before, mpt_mem(WINDOW, WLEN), WLEN);
	if (in->flags & (F_MATCH | F_MATCH32))
		r.rbx = 0xb1b2b3b4b5b6b7b8ull; /* is stored */
	if (in->flags & F_MATCH) {
		memcpy(&r.rax, t.before + in->off, 8);
		memcpy(&r.rdx, t.before + in->off + 8, 8);
	} else if (in->flags & F_MATCH32) {
		r.rax = r.rdx = 0;
		memcpy(&r.rax, t.before + in->off, 4);
		memcpy(&r.rdx, t.before + in->off + 4, 4);
	}
	t.start = r;
	mpt_seal.events = mpt_seal.by_region[0] = mpt_seal.by_region[1] = 0;
	memset(&mpt_seal.last, 0, sizeof(mpt_seal.last));
	mpt_seal.act[0] = mpt_seal.act[1] = t.mode == DENY    ? RV_ACT_DENY
					    : t.mode == FAULT ? RV_ACT_FAULT
							      : RV_ACT_RECORD;
	if (ioctl(v->fd, KVM_SET_REGS, &r))
		rv_vm_end(&mpt_vm, RV_END_FAILED, "set registers: %s", strerror(errno));
	t.running = true;
}

/* Registers that hold an address in the window are compared by their distance to it. */
static uint64_t relative(uint64_t reg, bool twin)
{
	uint64_t w = HIGH + (twin ? TWIN : WINDOW);

	return reg - w < WLEN ? reg - w : reg;
}

static bool same_regs(const struct kvm_regs *a, const struct kvm_regs *ref, bool flags)
{
	return a->rax == ref->rax && relative(a->rbx, false) == relative(ref->rbx, true) &&
	       a->rcx == ref->rcx && a->rdx == ref->rdx && a->rsi == ref->rsi &&
	       relative(a->rdi, false) == relative(ref->rdi, true) &&
	       relative(a->rsp, false) == relative(ref->rsp, true) &&
	       relative(a->rbp, false) == relative(ref->rbp, true) && a->r8 == ref->r8 &&
	       (!flags || a->rflags == ref->rflags);
}

/*
 * After a write that must not land: the protected pages are as they were. Before the
 * border a CPU may have done its part (fxsave does, emulated CPUs do it for vectors, a
 * string instruction does by its nature), but nothing else.
 */
static const char *untouched(const struct mpt_insn *in)
{
	const uint8_t *now = mpt_mem(WINDOW, WLEN);
	const char *bad = mpt_differs(now, t.before, P1, P3);
	bool crosses = in->off < P1;

	if (bad || !(crosses || in->flags & (F_REP | F_MMIO)))
		return bad ? bad : mpt_differs(now, t.before, 0, WLEN);
	for (uint32_t i = 0; i < WLEN; i++)
		if (now[i] != t.before[i] && now[i] != t.ref[i])
			return "bytes that the instruction does not write have changed";
	return NULL;
}

/* First byte that the reference changed inside the protected pages. */
static uint32_t first_protected(const struct mpt_insn *in)
{
	for (uint32_t i = P1; i < P3; i++)
		if (t.ref[i] != t.before[i])
			return i;
	return in->off; /* it wrote back what was there */
}

static const char *check_event(const struct mpt_insn *in)
{
	static char why[160];
	uint64_t gpa = mpt_seal.last.gpa.v, first = WINDOW + first_protected(in);

	if (in->flags & F_SKIP_OPEN)
		return mpt_seal.events ? "an event for a write that meets nothing" : NULL;
	if (!mpt_seal.events)
		return "no event";
	if (!(in->flags & F_MMIO) &&
	    (!mpt_seal.last.pc_exact || mpt_seal.last.pc.v != t.insn_rip)) {
		snprintf(why, sizeof(why), "pc 0x%llx, expected 0x%llx",
			 (unsigned long long)mpt_seal.last.pc.v, (unsigned long long)t.insn_rip);
		return why;
	}
	/* The address may come before the first byte whose value changes, never behind. */
	if (gpa - WINDOW < P1 || gpa - WINDOW >= P3 || gpa > first || first - gpa > 0x240) {
		snprintf(why, sizeof(why), "address 0x%llx, expected 0x%llx [%s]",
			 (unsigned long long)gpa, (unsigned long long)first, mpt_seal.last.insn);
		return why;
	}
	if (mpt_seal.last.target.v != HIGH + gpa)
		return "virtual and physical address differ";
	return NULL;
}

static const char *check_record(const struct mpt_insn *in, const struct kvm_regs *r)
{
	static char why[120];
	uint32_t one = in->one, two = in->two;
	const char *bad;

	if (r->rip != t.end_rip)
		return "did not go on behind the instruction";
	bad = mpt_differs(mpt_mem(WINDOW, WLEN), t.ref, 0, WLEN);
	if (bad)
		return bad;
	if (!same_regs(r, &t.ref_end, !(in->flags & F_LOOSE))) {
		snprintf(why, sizeof(why), "registers differ: rax %llx %llx flags %llx %llx",
			 (unsigned long long)r->rax, (unsigned long long)t.ref_end.rax,
			 (unsigned long long)r->rflags, (unsigned long long)t.ref_end.rflags);
		return why;
	}
	if ((one || two || in->flags & F_SKIP_OPEN) &&
	    (mpt_seal.by_region[0] != one || mpt_seal.by_region[1] != two)) {
		snprintf(why, sizeof(why), "%u and %u events, expected %u and %u",
			 (uint32_t)mpt_seal.by_region[0], (uint32_t)mpt_seal.by_region[1], one,
			 two);
		return why;
	}
	return check_event(in);
}

static const char *check_deny(const struct mpt_insn *in, const struct kvm_regs *r)
{
	const char *bad;

	if (r->rip != t.end_rip)
		return "did not go on behind the instruction";
	if (in->flags & F_SKIP_OPEN) {
		bad = mpt_differs(mpt_mem(WINDOW, WLEN), t.ref, 0, WLEN);
		return bad ? bad : check_event(in);
	}
	bad = untouched(in);
	if (bad || in->flags & (F_REP | F_MMIO))
		return bad ? bad : check_event(in);
	if (memcmp(&r->rax, &t.start.rax, 16 * 8))
		return "a denied instruction changed registers";
	return check_event(in);
}

static const char *check_fault(struct rv_vcpu *v, const struct mpt_insn *in,
			       const struct kvm_regs *r, uint32_t port)
{
	static char why[160];
	struct kvm_sregs s;
	uint64_t frame[2];
	const char *bad;

	if (in->flags & F_SKIP_OPEN)
		return port ? "an exception where nothing is protected" : check_event(in);
	if (port != PORT_FAULT) {
		snprintf(why, sizeof(why), "expected a page fault, got %s",
			 port ? "another exception" : "none");
		return why;
	}
	memcpy(frame, mpt_mem(r->rsp - HIGH, 16), 16);
	if (ioctl(v->fd, KVM_GET_SREGS, &s))
		return "no registers";
	if (frame[0] != 2) {
		snprintf(why, sizeof(why), "error code %llu, expected 2",
			 (unsigned long long)frame[0]);
		return why;
	}
	if (s.cr2 != mpt_seal.last.target.v) {
		snprintf(why, sizeof(why), "CR2 0x%llx, the event says 0x%llx",
			 (unsigned long long)s.cr2, (unsigned long long)mpt_seal.last.target.v);
		return why;
	}
	if (frame[1] != t.insn_rip && !(in->flags & F_MMIO)) {
		snprintf(why, sizeof(why), "fault at 0x%llx, the instruction is at 0x%llx",
			 (unsigned long long)frame[1], (unsigned long long)t.insn_rip);
		return why;
	}
	bad = untouched(in);
	return bad ? bad : check_event(in);
}

/* One instruction is over; port 0: it went on, else an exception. */
static void check(struct rv_vcpu *v, uint32_t port)
{
	const struct mpt_insn *in = &mpt_insns[t.next];
	struct kvm_regs r;
	char name[64];
	const char *why = NULL;

	if (ioctl(v->fd, KVM_GET_REGS, &r)) {
		rv_vm_end(&mpt_vm, RV_END_FAILED, "read registers");
		return;
	}
	if (t.mode == REFERENCE) {
		t.ref_end = r;
		memcpy(t.ref, mpt_mem(TWIN, WLEN), WLEN);
		if (in->flags & F_FRAME) {
			uint64_t frame;

			memcpy(&frame, t.ref + in->off - 24, 8);
			frame -= TWIN - WINDOW;
			memcpy(t.ref + in->off - 24, &frame, 8);
		}
		if (port)
			why = "an exception where nothing is protected";
		else if (mpt_seal.events)
			why = "an event where nothing is protected";
		t.dead = why != NULL;
		if (!why)
			return;
	} else if (t.mode == FAULT) {
		why = check_fault(v, in, &r, port);
	} else if (port) {
		why = "the guest got an exception";
	} else {
		why = t.mode == RECORD ? check_record(in, &r) : check_deny(in, &r);
	}
	snprintf(name, sizeof(name), "%s/%s", in->name, mode_name[t.mode]);
	mpt_result(name, why);
}

static void next(struct rv_vcpu *v)
{
	if (t.running) {
		/* A row that cannot run unprotected has no truth to compare with. */
		t.mode = t.dead ? MODES : t.mode + 1;
		if (t.mode == MODES) {
			t.mode = REFERENCE;
			t.dead = false;
			t.next++;
		}
	}
	while (t.next < mpt_ninsns && !usable(&mpt_insns[t.next])) {
		if (!mpt_only)
			printf("# %s: not on this CPU\n", mpt_insns[t.next].name);
		t.next++;
	}
	if (t.next == mpt_ninsns) {
		rv_vm_end(&mpt_vm, RV_END_POWEROFF, "all rows");
		return;
	}
	load_case(v, &mpt_insns[t.next]);
}

static void port_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	struct rv_vcpu *v = &mpt_vm.vcpu[0];

	(void)dev, (void)len, (void)data;
	if (t.running)
		check(v, off ? PORT_NEXT + (uint32_t)off : 0);
	next(v);
}

static void port_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	(void)dev;
	memset(data, 0, len);
	if (off == PORT_DATA - PORT_NEXT)
		*(uint8_t *)data = t.data++;
}

const struct rv_bus_ops mpt_row_ops = {port_read, port_write};

void mpt_stores(void)
{
	const char *why;
	uint8_t *first = mpt_mem(CODE + 0x800, 2);

	t.mode = REFERENCE;
	/* The first OUT fetches the first row; it lies elsewhere, because KVM steps over an
	 * OUT only where the program counter is still on it. A row that ends the VM is left
	 * behind. */
	first[0] = 0xe6;
	first[1] = PORT_NEXT;
	do {
		why = mpt_run(1, HIGH + CODE + 0x800, HANG);
		if (why) {
			char name[64];

			snprintf(name, sizeof(name), "%s/%s", mpt_insns[t.next].name,
				 mode_name[t.mode]);
			mpt_result(name, why);
			t.running = false;
			t.mode = REFERENCE;
			t.dead = false;
			t.next++;
		}
	} while (why && t.next < mpt_ninsns);
	t.running = false;
}
