/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_test.c: every form of store against a protected page, on a real KVM.
 *
 * The monitor's own memory, protection map, fault handling and vcpu threads, without a
 * kernel: the guest is one instruction and a doorbell. Each instruction runs once where
 * nothing is protected, which tells what it writes; then the same with the window
 * protected and the answers RECORD, DENY and FAULT. Links everything of the monitor
 * but enforce/seal.c, whose verdicts are given here.
 *
 *	memprot_test [-v] [NAME]	failures, or a line for each property with -v
 */
#include "vm.h"
#include "arch.h"
#include "arch/x86_64/x86.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MEMORY	 (64ull << 20)
#define HIGH	 0xffff888000000000ull /* alias of physical memory in the upper half */
#define PML4	 0x9000ull
#define PDPT	 0xa000ull
#define PD	 0xb000ull
#define PD2	 0x1a000ull
#define GDT	 0x6000ull
#define TSS	 0x6100ull
#define IDT	 0xc000ull
#define STUBS	 0xd000ull /* one OUT for each vector */
#define IST	 0xf000ull /* top of the stack for exceptions */
#define SOURCE	 0x10000ull
#define STACK	 0x14000ull /* top of each vcpu's stack: STACK + 0x1000 * index */
#define COUNTERS 0x20000ull /* one line for each vcpu */
#define CODE	 0x100000ull
#define WINDOW	 0x1ff000ull /* open, region one, region two, open: a page each */
#define TWIN	 0x3ff000ull /* the same and nothing protected */
#define WLEN	 0x4000u
#define P1	 0x1000u /* offsets in the window */
#define P2	 0x2000u
#define P3	 0x3000u
#define NVCPU	 4u

#define PORT_NEXT  0xe0u /* the instruction is behind */
#define PORT_FAULT 0xe1u /* + 0: page fault, + 1: general protection, + 2: anything else */
#define PORT_DATA  0xe8u
#define PORT_ALL   0xedu /* this vcpu is done; + 1: the VM is */
#define HANG	   60	 /* seconds without an end */

static struct rv_vm vm;
static struct rv_run_options opt = {.cpus = NVCPU, .memory = MEMORY};
static bool verbose;
static uint32_t passed, failed;

static void result(const char *name, const char *why)
{
	if (why)
		printf("not ok %s: %s\n", name, why);
	else if (verbose)
		printf("ok %s\n", name);
	fflush(stdout);
	*(why ? &failed : &passed) += 1;
}

/* --- verdicts: what enforce/seal.c does, without a kernel ------------------------------ */

static struct {
	enum rv_action act[2]; /* of regions one and two */
	_Atomic uint32_t events, by_region[2];
	struct rv_write last;
	pthread_mutex_t lock;
} seal = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum rv_action rv_seal_write(struct rv_vm *m, struct rv_vcpu *v, const struct rv_guard *reg,
			     const struct rv_write *w)
{
	uint32_t i = reg->id < 2 ? reg->id : 0;

	(void)m, (void)v;
	pthread_mutex_lock(&seal.lock);
	if (!seal.events)
		seal.last = *w;
	pthread_mutex_unlock(&seal.lock);
	seal.events++;
	seal.by_region[i]++;
	return seal.act[i];
}

int rv_seal_prepare(struct rv_vm *m, struct rv_err *err)
{
	(void)m;
	return rv_err_set(err, RV_EUNSUPPORTED, "test", "no kernel");
}

void rv_seal_destroy(struct rv_vm *m)
{
	(void)m;
}

void rv_seal_ready(struct rv_vm *m, struct rv_vcpu *v)
{
	(void)m, (void)v;
}

bool rv_seal_poke(struct rv_vm *m, struct rv_vcpu *v, rv_gpa gpa, const void *bytes, uint32_t len,
		  rv_gva target)
{
	(void)m, (void)v, (void)gpa, (void)bytes, (void)len, (void)target;
	return false;
}

uint64_t rv_seal_image_va(struct rv_vm *m, uint64_t gpa)
{
	(void)m;
	return HIGH + gpa;
}

void rv_seal_name(struct rv_vm *m, struct rv_vcpu *v, struct rv_event *ev)
{
	(void)m, (void)v, (void)ev;
}

uint64_t rv_seal_task_stack(struct rv_vm *m, struct rv_vcpu *v)
{
	(void)m, (void)v;
	return HIGH + 0x30000; /* where the program may go on; handlers have a stack of their own */
}

/* --- the instructions ------------------------------------------------------------------- */

enum {
	F_STACK = 1, /* the stack pointer is the base, too */
	F_AVX = 2,   /* ymm0, ymm1 from the source */
	F_AVX512 = 4,
	F_MMIO = 8,	  /* KVM emulates it: the violation comes late, by physical address */
	F_XSAVE = 16,	  /* needs XSAVE only */
	F_REP = 32,	  /* elements before the protected page land in any case */
	F_SKIP_OPEN = 64, /* never lands anywhere protected: a control */
	F_MATCH = 128,	  /* rdx:rax is what lies there: the comparison succeeds */
	F_MATCH32 = 256,
	F_CX16 = 2048,
	F_LOOSE = 1024, /* TCG loses the flags of a locked operation across pages when stepped */
	F_FRAME = 512,	/* stores its own stack address, 24 below the base */
};

struct insn {
	const char *name, *hex;
	uint32_t off; /* of rbx and rdi (and rsp) in the window */
	uint32_t rcx;
	uint32_t flags;
	uint32_t one, two; /* events expected in each region when recorded */
};

static const struct insn insns[] = {
	{"mov8", "8803", P1 + 0x100, 0, 0, 1, 0},
	{"mov16", "668903", P1 + 0x100, 0, 0, 1, 0},
	{"mov32", "8903", P1 + 0x100, 0, 0, 1, 0},
	{"mov64", "488903", P1 + 0x100, 0, 0, 1, 0},
	{"mov64-first-byte", "488903", P1, 0, 0, 1, 0},
	{"mov64-last-bytes", "488903", P3 - 8, 0, 0, 0, 1},
	{"mov64-into", "488903", P1 - 4, 0, 0, 1, 0},
	{"mov64-within", "488903", P2 - 4, 0, 0, 1, 1},
	{"mov64-out", "488903", P3 - 4, 0, 0, 0, 1},
	{"mov64-before", "488903", P1 - 8, 0, F_SKIP_OPEN, 0, 0},
	{"mov64-behind", "488903", P3, 0, F_SKIP_OPEN, 0, 0},
	{"mov8-imm", "c603a5", P1 + 1, 0, 0, 1, 0},
	{"mov64-imm", "48c703785634f2", P1 + 1, 0, 0, 1, 0},
	{"mov64-sib", "4889440b08", P1 + 0x100, 0x40, 0, 1, 0},
	{"mov-seg", "8c1b", P1 + 0x100, 0, 0, 1, 0},
	{"movnti32", "0fc303", P1 + 0x100, 0, 0, 1, 0},
	{"movnti64", "480fc303", P1 + 0x100, 0, 0, 1, 0},
	{"movbe64", "480f38f103", P1 + 0x100, 0, 0, 1, 0},
	{"add64", "480103", P1 + 0x100, 0, 0, 1, 0},
	{"lock-add-into", "f0480103", P1 - 4, 0, F_LOOSE, 1, 0},
	{"inc32", "ff03", P1 + 0x100, 0, 0, 1, 0},
	{"lock-inc64", "f048ff03", P1 + 0x100, 0, 0, 1, 0},
	{"not64", "48f713", P1 + 0x100, 0, 0, 1, 0},
	{"rol64", "48d103", P1 + 0x100, 0, 0, 1, 0},
	{"shl-cl", "48d323", P1 + 0x100, 5, 0, 1, 0},
	{"shld", "480fa40303", P1 + 0x100, 0, 0, 1, 0},
	{"seta", "0f9703", P1 + 0x100, 0, 0, 1, 0},
	{"sete", "0f9403", P1 + 0x100, 0, 0, 1, 0},
	{"xadd64", "480fc103", P1 + 0x100, 0, 0, 1, 0},
	{"lock-xadd32", "f00fc103", P1 + 0x100, 0, 0, 1, 0},
	{"xchg64", "488703", P1 + 0x100, 0, 0, 1, 0},
	{"xchg8", "8603", P1 + 0x100, 0, 0, 1, 0},
	{"lock-cmpxchg", "f0480fb117", P1 + 0x100, 0, F_MATCH, 1, 0},
	{"cmpxchg-unequal", "480fb113", P1 + 0x100, 0, 0, 1, 0},
	{"cmpxchg8b", "0fc70f", P1 + 0x100, 0, F_MATCH32, 1, 0},
	{"lock-cmpxchg16b", "f0480fc70f", P1 + 0x100, 0, F_MATCH | F_CX16, 1, 0},
	{"bts-imm", "480fba2b05", P1 + 0x100, 0, 0, 1, 0},
	{"bts-reg-into", "480fab0b", P1 - 0x100, 0x100 * 8 + 3, 0, 1, 0},
	{"btc-reg-negative", "480fbb0b", P3 + 0x100, (uint32_t)(-0x180 * 8), 0, 0, 1},
	{"push-reg", "50", P1 + 0x100, 0, F_STACK, 1, 0},
	{"push-imm16", "666a05", P1 + 0x100, 0, F_STACK, 1, 0},
	{"push-mem", "ff36", P1 + 0x100, 0, F_STACK, 1, 0}, /* [rsi] */
	{"push-into-by-bytes", "50", P3 + 4, 0, F_STACK, 0, 1},
	{"pushfq", "9c", P1 + 0x100, 0, F_STACK, 1, 0},
	{"pushfw", "669c", P1 + 0x100, 0, F_STACK, 1, 0},
	{"push-fs", "0fa0", P1 + 0x100, 0, F_STACK, 1, 0},
	{"call", "e800000000", P1 + 0x100, 0, F_STACK, 1, 0},
	{"pop-mem", "8f03", P1 + 0x100, 0, 0, 1, 0},
	{"pop-rsp-mem", "8f0424", P1 + 0x100, 0, F_STACK, 1, 0},
	{"enter", "c8100000", P1 + 0x100, 0, F_STACK, 1, 0},
	{"enter-nested", "c8100002", P1 + 0x100, 0, F_STACK | F_FRAME, 1, 0},
	{"movsb", "a4", P1 + 0x100, 0, 0, 1, 0},
	{"movsq", "48a5", P1 + 0x100, 0, 0, 1, 0},
	{"stosd", "ab", P1 + 0x100, 0, 0, 1, 0},
	{"rep-movsb", "f3a4", P1 + 0x100, 7, F_REP, 7, 0},
	{"rep-movsb-into", "f3a4", P1 - 5, 9, F_REP, 4, 0},
	{"rep-movsb-out", "f3a4", P3 - 3, 9, F_REP, 0, 3},
	{"rep-movsq-across", "f348a5", P2 - 16, 4, F_REP, 2, 2},
	{"rep-stosq", "f348ab", P1 + 0x100, 5, F_REP, 5, 0},
	{"rep-stosq-split", "f348ab", P1 - 12, 3, F_REP, 2, 0},
	{"rep-none", "f348ab", P1 + 0x100, 0, F_SKIP_OPEN, 0, 0},
	{"rep-insb", "f36c", P1 + 0x100, 3, F_REP | F_MMIO, 1, 0},
	{"sidt", "0f010b", P1 + 0x100, 0, 0, 1, 0},
	{"sgdt", "0f0103", P1 + 0x100, 0, 0, 1, 0},
	{"sidt-into", "0f010b", P1 - 3, 0, 0, 1, 0},
	{"sldt", "0f0003", P1 + 0x100, 0, 0, 1, 0},
	{"str", "0f000b", P1 + 0x100, 0, 0, 1, 0},
	{"smsw", "0f0123", P1 + 0x100, 0, 0, 1, 0},
	{"movd", "660f7e03", P1 + 0x100, 0, 0, 1, 0},
	{"movq", "660fd603", P1 + 0x100, 0, 0, 1, 0},
	{"movdqu", "f30f7f03", P1 + 0x101, 0, 0, 1, 0},
	{"movdqu-into", "f30f7f03", P1 - 7, 0, 0, 1, 0},
	{"movdqu-within", "f30f7f03", P2 - 7, 0, 0, 1, 1},
	{"movdqa", "660f7f03", P1 + 0x100, 0, 0, 1, 0},
	{"movups", "0f1103", P1 + 0x100, 0, 0, 1, 0},
	{"movntdq", "660fe703", P1 + 0x100, 0, 0, 1, 0},
	{"movhps", "0f1703", P1 + 0x100, 0, 0, 1, 0},
	{"maskmovdqu", "660ff7c1", P1 + 0x100, 0, 0, 1, 0},
	{"pextrw", "660f3a150301", P1 + 0x100, 0, 0, 1, 0},
	{"fnstcw", "d93b", P1 + 0x100, 0, 0, 1, 0},
	{"fnstenv", "d933", P1 + 0x100, 0, 0, 1, 0},
	{"stmxcsr", "0fae1b", P1 + 0x100, 0, 0, 1, 0},
	{"fxsave", "0fae03", P1 + 0x100, 0, 0, 1, 0},
	{"fxsave64-into", "480fae03", P1 - 0x100, 0, 0, 1, 0},
	{"xsave", "0fae23", P1 + 0x100, 0, F_XSAVE, 1, 0},
	{"xsave-within", "480fae23", P2 - 0x100, 0, F_XSAVE, 1, 0},
	{"vmovdqu-xmm", "c5fa7f03", P1 + 0x101, 0, F_AVX, 1, 0},
	{"vmovdqu-ymm", "c5fe7f03", P1 + 0x101, 0, F_AVX, 1, 0},
	{"vmovdqu-ymm-into", "c5fe7f03", P1 - 9, 0, F_AVX, 1, 0},
	{"vmovdqu-ymm-within", "c5fe7f03", P2 - 9, 0, F_AVX, 1, 1},
	{"vmovdqu-ymm-out", "c5fe7f03", P3 - 9, 0, F_AVX, 0, 1},
	{"vmovaps-ymm", "c5fc2903", P1 + 0x100, 0, F_AVX, 1, 0},
	{"vextractf128", "c4e37d190301", P1 + 0x100, 0, F_AVX, 1, 0},
	{"vmaskmovps", "c4e2752e03", P1 + 0x100, 0, F_AVX, 1, 0},
	{"vmovdqu64-zmm", "62f1fe487f03", P1 + 0x101, 0, F_AVX512, 1, 0},
	{"vmovdqu64-zmm-within", "62f1fe487f03", P2 - 9, 0, F_AVX512, 1, 1},
};

enum mode { REFERENCE, RECORD, DENY, FAULT, MODES };
static const char *const mode_name[] = {"reference", "record", "deny", "fault"};

static struct {
	const char *only; /* name to run, or NULL */
	size_t next;
	enum mode mode;
	struct kvm_regs start, ref_end;
	uint8_t before[WLEN], ref[WLEN];
	uint64_t insn_rip, end_rip;
	bool running, avx, avx512, xsave, cx16, dead;
	uint8_t data;
} t;

static uint8_t *mem(uint64_t gpa, uint64_t len)
{
	return rv_mem_ptr(&vm, rv_gpa_of(gpa), len);
}

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		sscanf(hex + 2 * i, "%2hhx", &out[i]);
	return n;
}

/* The pattern has both parities in every bit and no two equal bytes side by side. */
static void fill(uint8_t *p)
{
	for (uint32_t i = 0; i < WLEN; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + 3);
}

static bool usable(const struct insn *in)
{
	if (t.only && strcmp(t.only, in->name))
		return false;
	return !((in->flags & F_AVX && !t.avx) || (in->flags & F_AVX512 && !t.avx512) ||
		 (in->flags & F_XSAVE && !t.xsave) || (in->flags & F_CX16 && !t.cx16));
}

static void load_case(struct rv_vcpu *v, const struct insn *in)
{
	static const char *const sse = "f30f6f06f30f6f4e10", *const avx = "c5fe6f06c5fe6f4e20",
				 *const zmm = "62f1fe486f06";
	uint64_t window = HIGH + (t.mode == REFERENCE ? TWIN : WINDOW), base = window + in->off;
	uint8_t *code = mem(CODE, 64);
	struct kvm_regs r = {0};
	size_t n;

	n = unhex(in->flags & F_AVX512 ? zmm : in->flags & F_AVX ? avx : sse, code);
	t.insn_rip = HIGH + CODE + n;
	n += unhex(in->hex, code + n);
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
	fill(mem(WINDOW, WLEN));
	fill(mem(TWIN, WLEN));
	memcpy(t.before, mem(WINDOW, WLEN), WLEN);
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
	seal.events = seal.by_region[0] = seal.by_region[1] = 0;
	memset(&seal.last, 0, sizeof(seal.last));
	seal.act[0] = seal.act[1] = t.mode == DENY    ? RV_ACT_DENY
				    : t.mode == FAULT ? RV_ACT_FAULT
						      : RV_ACT_RECORD;
	if (ioctl(v->fd, KVM_SET_REGS, &r))
		rv_vm_end(&vm, RV_END_FAILED, "set registers: %s", strerror(errno));
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

static const char *differs(const uint8_t *a, const uint8_t *b, uint32_t from, uint32_t to)
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

/*
 * After a write that must not land: the protected pages are as they were. Before the
 * border a CPU may have done its part (fxsave does, emulated CPUs do it for vectors, a
 * string instruction does by its nature), but nothing else.
 */
static const char *untouched(const struct insn *in)
{
	const uint8_t *now = mem(WINDOW, WLEN);
	const char *bad = differs(now, t.before, P1, P3);
	bool crosses = in->off < P1;

	if (bad || !(crosses || in->flags & (F_REP | F_MMIO)))
		return bad ? bad : differs(now, t.before, 0, WLEN);
	for (uint32_t i = 0; i < WLEN; i++)
		if (now[i] != t.before[i] && now[i] != t.ref[i])
			return "bytes that the instruction does not write have changed";
	return NULL;
}

/* First byte that the reference changed inside the protected pages. */
static uint32_t first_protected(const struct insn *in)
{
	for (uint32_t i = P1; i < P3; i++)
		if (t.ref[i] != t.before[i])
			return i;
	return in->off; /* it wrote back what was there */
}

static const char *check_event(const struct insn *in)
{
	static char why[160];
	uint64_t gpa = seal.last.gpa.v, first = WINDOW + first_protected(in);

	if (in->flags & F_SKIP_OPEN)
		return seal.events ? "an event for a write that meets nothing" : NULL;
	if (!seal.events)
		return "no event";
	if (!(in->flags & F_MMIO) && (!seal.last.pc_exact || seal.last.pc.v != t.insn_rip)) {
		snprintf(why, sizeof(why), "pc 0x%llx, expected 0x%llx",
			 (unsigned long long)seal.last.pc.v, (unsigned long long)t.insn_rip);
		return why;
	}
	/* The address may come before the first byte whose value changes, never behind. */
	if (gpa - WINDOW < P1 || gpa - WINDOW >= P3 || gpa > first || first - gpa > 0x240) {
		snprintf(why, sizeof(why), "address 0x%llx, expected 0x%llx [%s]",
			 (unsigned long long)gpa, (unsigned long long)first, seal.last.insn);
		return why;
	}
	if (seal.last.target.v != HIGH + gpa)
		return "virtual and physical address differ";
	return NULL;
}

static const char *check_record(const struct insn *in, const struct kvm_regs *r)
{
	static char why[120];
	uint32_t one = in->one, two = in->two;
	const char *bad;

	if (r->rip != t.end_rip)
		return "did not go on behind the instruction";
	bad = differs(mem(WINDOW, WLEN), t.ref, 0, WLEN);
	if (bad)
		return bad;
	if (!same_regs(r, &t.ref_end, !(in->flags & F_LOOSE))) {
		snprintf(why, sizeof(why), "registers differ: rax %llx %llx flags %llx %llx",
			 (unsigned long long)r->rax, (unsigned long long)t.ref_end.rax,
			 (unsigned long long)r->rflags, (unsigned long long)t.ref_end.rflags);
		return why;
	}
	if ((one || two || in->flags & F_SKIP_OPEN) &&
	    (seal.by_region[0] != one || seal.by_region[1] != two)) {
		snprintf(why, sizeof(why), "%u and %u events, expected %u and %u",
			 (uint32_t)seal.by_region[0], (uint32_t)seal.by_region[1], one, two);
		return why;
	}
	return check_event(in);
}

static const char *check_deny(const struct insn *in, const struct kvm_regs *r)
{
	const char *bad;

	if (r->rip != t.end_rip)
		return "did not go on behind the instruction";
	if (in->flags & F_SKIP_OPEN) {
		bad = differs(mem(WINDOW, WLEN), t.ref, 0, WLEN);
		return bad ? bad : check_event(in);
	}
	bad = untouched(in);
	if (bad || in->flags & (F_REP | F_MMIO))
		return bad ? bad : check_event(in);
	if (memcmp(&r->rax, &t.start.rax, 16 * 8))
		return "a denied instruction changed registers";
	return check_event(in);
}

static const char *check_fault(struct rv_vcpu *v, const struct insn *in, const struct kvm_regs *r,
			       uint32_t port)
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
	memcpy(frame, mem(r->rsp - HIGH, 16), 16);
	if (ioctl(v->fd, KVM_GET_SREGS, &s))
		return "no registers";
	if (frame[0] != 2) {
		snprintf(why, sizeof(why), "error code %llu, expected 2",
			 (unsigned long long)frame[0]);
		return why;
	}
	if (s.cr2 != seal.last.target.v) {
		snprintf(why, sizeof(why), "CR2 0x%llx, the event says 0x%llx",
			 (unsigned long long)s.cr2, (unsigned long long)seal.last.target.v);
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
	const struct insn *in = &insns[t.next];
	struct kvm_regs r;
	char name[64];
	const char *why = NULL;

	if (ioctl(v->fd, KVM_GET_REGS, &r)) {
		rv_vm_end(&vm, RV_END_FAILED, "read registers");
		return;
	}
	if (t.mode == REFERENCE) {
		t.ref_end = r;
		memcpy(t.ref, mem(TWIN, WLEN), WLEN);
		if (in->flags & F_FRAME) {
			uint64_t frame;

			memcpy(&frame, t.ref + in->off - 24, 8);
			frame -= TWIN - WINDOW;
			memcpy(t.ref + in->off - 24, &frame, 8);
		}
		if (port)
			why = "an exception where nothing is protected";
		else if (seal.events)
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
	result(name, why);
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
	while (t.next < sizeof(insns) / sizeof(insns[0]) && !usable(&insns[t.next])) {
		if (!t.only)
			printf("# %s: not on this CPU\n", insns[t.next].name);
		t.next++;
	}
	if (t.next == sizeof(insns) / sizeof(insns[0])) {
		rv_vm_end(&vm, RV_END_POWEROFF, "all rows");
		return;
	}
	load_case(v, &insns[t.next]);
}

static void port_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	struct rv_vcpu *v = &vm.vcpu[0];

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

static const struct rv_bus_ops port_ops = {port_read, port_write};

/* --- the machine --------------------------------------------------------------------------- */

static void descriptors(void)
{
	uint64_t *gdt = (void *)mem(GDT, 64), *idt = (void *)mem(IDT, 4096);
	uint8_t *stub = mem(STUBS, 4096);
	uint64_t ist = HIGH + IST, tss = HIGH + TSS;

	gdt[2] = 0x00af9b000000ffffull;
	gdt[3] = 0x00cf93000000ffffull;
	gdt[4] = 0x67 | (tss & 0xffffff) << 16 | 0x89ull << 40 | (tss >> 24 & 0xff) << 56;
	gdt[5] = tss >> 32;
	memcpy(mem(TSS + 0x24, 8), &ist, 8);
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
	uint64_t *pml4 = (void *)mem(PML4, 4096), *pdpt = (void *)mem(PDPT, 4096),
		 *pd = (void *)mem(PD, 4096);

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
	s.cr4 = 0x20 | 0x600 | (t.xsave ? 0x40000 : 0); /* PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
	s.efer = 0x500;
	if (ioctl(v->fd, KVM_SET_SREGS, &s) || ioctl(v->fd, KVM_SET_REGS, &r) ||
	    ioctl(v->fd, KVM_SET_MP_STATE, &mp))
		return false;
	x.xcrs[0].value = 3 | (t.avx ? 4 : 0) | (t.avx512 ? 0xe0 : 0);
	return !t.xsave || !ioctl(v->fd, KVM_SET_XCRS, &x);
}

static void features(void)
{
	const struct kvm_cpuid2 *c = vm.arch->cpuid;
	uint32_t xcr0 = 0;

	for (uint32_t i = 0; i < c->nent; i++) {
		const struct kvm_cpuid_entry2 *e = &c->entries[i];

		if (e->function == 1) {
			t.xsave = e->ecx >> 26 & 1;
			t.cx16 = e->ecx >> 13 & 1;
		} else if (e->function == 0xd && e->index == 0) {
			xcr0 = e->eax;
		}
	}
	t.avx = t.xsave && (xcr0 & 4);
	t.avx512 = t.avx && (xcr0 & 0xe0) == 0xe0;
}

static int build(struct rv_err *err)
{
	int rc = 0;

	vm.opt = &opt;
	pthread_mutex_init(&vm.end_lock, NULL);
	pthread_cond_init(&vm.end_cond, NULL);
	pthread_mutex_init(&vm.park.lock, NULL);
	pthread_cond_init(&vm.park.cond, NULL);
	vm.mem.fd = -1;
	vm.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vm.kvm < 0)
		return rv_err_os(err, "test", "open /dev/kvm");
	vm.fd = ioctl(vm.kvm, KVM_CREATE_VM, 0UL);
	if (vm.fd < 0)
		return rv_err_os(err, "test", "create a VM");
	rc = rv_policy_profile("balanced", &vm.policy, err);
	if (!rc)
		rc = rv_journal_open(NULL, "memprot-test", 64, 10, &vm.journal, err);
	if (!rc)
		rc = rv_arch_vm_init(&vm, err);
	if (!rc)
		rc = rv_mem_init(&vm, MEMORY, err);
	if (rc)
		return rc;
	vm.prot = rv_memprot_create(&vm);
	features();
	descriptors();
	tables();
	for (uint32_t i = 0; i < 4096; i++)
		*mem(SOURCE + i, 1) = (uint8_t)(i * 37 + 0x91);
	rc = rv_bus_add_pio(&vm, PORT_NEXT, 9, &port_ops, NULL, err);
	if (!rc)
		rc = rv_memprot_add(vm.prot, rv_gpa_of(WINDOW + P1), 4096, RV_OBJ_TEXT, "one", err);
	if (!rc)
		rc = rv_memprot_add(vm.prot, rv_gpa_of(WINDOW + P2), 4096, RV_OBJ_RODATA, "two",
				    err);
	return rc ? rc : rv_memprot_commit(vm.prot, err);
}

static bool wait_end(uint32_t seconds)
{
	struct timespec until;
	bool ended;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&vm.end_lock);
	while (!vm.ending &&
	       pthread_cond_timedwait(&vm.end_cond, &vm.end_lock, &until) != ETIMEDOUT)
		;
	ended = vm.ending;
	pthread_mutex_unlock(&vm.end_lock);
	return ended;
}

static struct {
	_Atomic bool go, stop;
	_Atomic uint32_t done; /* vcpus that have finished */
	_Atomic uint32_t cycles, moved;
	int holders; /* not atomic on purpose: only the owner of the park touches it */
	_Atomic uint32_t overlap;
} s;

/* Run n vcpus at rip until the VM ends; the threads are gone afterwards. */
static const char *run(uint32_t n, uint64_t rip, uint32_t seconds)
{
	static char why[260];
	struct rv_err err;
	uint32_t all = vm.nvcpu;
	bool hang;

	vm.end = RV_END_NONE;
	vm.ending = false;
	memset(&vm.end_why, 0, sizeof(vm.end_why));
	for (uint32_t i = 0; i < n; i++) {
		struct rv_vcpu *v = &vm.vcpu[i];

		v->parked = v->started = v->gone = false;
		v->run->immediate_exit = 0;
		if (!start_state(v, rip))
			return "cannot set the first registers";
	}
	vm.nvcpu = n;
	if (rv_vcpus_start(&vm, &err))
		return "cannot start the vcpus";
	s.go = true; /* the initiators: what is reset above is not theirs to race with */
	hang = !wait_end(seconds);
	/* Ended, not parked: who hangs may be the one that holds the others parked. */
	if (hang)
		rv_vm_end(&vm, RV_END_QUIT, "hang");
	rv_vcpus_join(&vm);
	vm.nvcpu = all;
	if (hang) {
		struct kvm_regs r = {0};

		(void)!ioctl(vm.vcpu[0].fd, KVM_GET_REGS, &r);
		snprintf(why, sizeof(why), "no end after %u s, rip 0x%llx", seconds,
			 (unsigned long long)r.rip);
		return why;
	}
	if (vm.end != RV_END_POWEROFF) {
		snprintf(why, sizeof(why), "%s: %s", rv_end_name(vm.end), vm.end_why);
		return why;
	}
	return NULL;
}

static void every_store(void)
{
	const char *why;
	uint8_t *first = mem(CODE + 0x800, 2);

	t.mode = REFERENCE;
	/* The first OUT fetches the first row; it lies elsewhere, because KVM steps over an
	 * OUT only where the program counter is still on it. A row that ends the VM is left
	 * behind. */
	first[0] = 0xe6;
	first[1] = PORT_NEXT;
	do {
		why = run(1, HIGH + CODE + 0x800, HANG);
		if (why) {
			char name[64];

			snprintf(name, sizeof(name), "%s/%s", insns[t.next].name,
				 mode_name[t.mode]);
			result(name, why);
			t.running = false;
			t.mode = REFERENCE;
			t.dead = false;
			t.next++;
		}
	} while (why && t.next < sizeof(insns) / sizeof(insns[0]));
	t.running = false;
}

/* Regions with different answers: one write that reaches both gets the harder one. */
static void mixed(void)
{
	static const struct {
		const char *name;
		enum rv_action one, two;
		bool lands;
	} m[] = {
		{"record+deny", RV_ACT_RECORD, RV_ACT_DENY, false},
		{"deny+record", RV_ACT_DENY, RV_ACT_RECORD, false},
		{"record+record", RV_ACT_RECORD, RV_ACT_RECORD, true},
	};

	for (size_t i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
		uint8_t *w = mem(WINDOW, WLEN), *code = mem(CODE, 64);
		const char *why;
		char name[40];
		size_t n = 0;

		fill(w);
		fill(t.before);
		n += unhex("48bb", code); /* mov rbx, across the border */
		memcpy(code + n, &(uint64_t){HIGH + WINDOW + P2 - 4}, 8);
		n += 8;
		n += unhex("488903", code + n); /* mov [rbx], rax */
		n += unhex("e6ee", code + n);	/* out 0xee: end */
		seal.act[0] = m[i].one;
		seal.act[1] = m[i].two;
		seal.events = 0;
		why = run(1, HIGH + CODE, HANG);
		if (!why && seal.events != 2)
			why = "expected an event for each region";
		if (!why && m[i].lands && !memcmp(w, t.before, WLEN))
			why = "the write did not land";
		if (!why && !m[i].lands)
			why = differs(w, t.before, 0, WLEN);
		snprintf(name, sizeof(name), "two-regions/%s", m[i].name);
		result(name, why);
	}
}

/*
 * The CPU's own writes: a page table in a guarded page gets its accessed and dirty bits.
 * No operand leads there, and the instruction must neither hang nor get past a denial.
 */
static void page_table_bits(void)
{
	static const enum rv_action acts[] = {RV_ACT_RECORD, RV_ACT_DENY};
	uint64_t *pdpt = (void *)mem(PDPT, 4096), *pd = (void *)mem(PD2, 4096);
	uint64_t *pt = (void *)mem(WINDOW + P1, 4096);

	pdpt[1] = PD2 | 0x63; /* these have their bits already */
	pd[0] = (WINDOW + P1) | 0x63;
	for (size_t i = 0; i < 2; i++) {
		uint8_t *code = mem(CODE, 64), *page = mem(SOURCE + 0x1000, 8);
		bool landed;
		const char *why;
		char name[40];
		size_t n = 0;

		memset(pt, 0, 4096);
		pt[0] = (SOURCE + 0x1000) | 3;
		memset(page, 0, 8);
		n += unhex("48bb", code);
		memcpy(code + n, &(uint64_t){HIGH + (1ull << 30)}, 8);
		n += 8;
		n += unhex("c603a5", code + n); /* mov byte [rbx], 0xa5 */
		n += unhex("e6ee", code + n);
		seal.act[0] = seal.act[1] = acts[i];
		seal.events = 0;
		why = run(1, HIGH + CODE, HANG);
		landed = page[0] == 0xa5;
		if (!why && !seal.events)
			why = "no event";
		if (!why && acts[i] == RV_ACT_RECORD && (!landed || (pt[0] & 0x60) != 0x60))
			why = "the write or its bits did not land";
		if (!why && acts[i] == RV_ACT_DENY && (landed || pt[0] & 0x60))
			why = "a guarded page table was changed";
		snprintf(name, sizeof(name), "page-table-bits/%s", i ? "deny" : "record");
		result(name, why);
	}
	pdpt[1] = 0;
}

/* --- several vcpus, several initiators ---------------------------------------------------- */

#define ROUNDS 150u

static void end_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	(void)dev, (void)len, (void)data;
	if (off == 0 && ++s.done == NVCPU)
		rv_vm_end(&vm, RV_END_POWEROFF, "all vcpus");
	else if (off == 1)
		rv_vm_end(&vm, RV_END_POWEROFF, "done");
	/* A finished vcpu halts with interrupts off and is taken out by the end. */
}

static const struct rv_bus_ops end_ops = {NULL, end_write};

/* Progress of the vcpus as the monitor sees it. */
static void progress(uint64_t out[NVCPU])
{
	for (uint32_t i = 0; i < NVCPU; i++)
		memcpy(&out[i], mem(COUNTERS + 64 * i, 8), 8);
}

static void *initiator(void *arg)
{
	bool opens = arg != NULL;

	while (!s.go && !s.stop)
		usleep(100);
	while (!s.stop) {
		uint64_t a[NVCPU], b[NVCPU];

		rv_park(&vm);
		if (s.holders++)
			s.overlap++;
		progress(a);
		if (opens) {
			(void)!rv_memprot_open(vm.prot, rv_gpa_of(WINDOW + P1), 4096, NULL);
			rv_park(&vm); /* nests */
		}
		usleep(500);
		progress(b);
		if (memcmp(a, b, sizeof(a)))
			s.moved++;
		if (opens) {
			(void)!rv_memprot_shut(vm.prot, rv_gpa_of(WINDOW + P1), 4096, NULL);
			rv_unpark(&vm);
		}
		s.holders--;
		s.cycles++;
		rv_unpark(&vm);
		usleep(2000);
	}
	return NULL;
}

/*
 * Each vcpu: count in its own line, then write to its own protected bytes, then count in
 * the shared protected word; rbx = index.
 */
static void storm_code(void)
{
	uint8_t *c = mem(CODE, 128);
	uint32_t rounds = ROUNDS;
	size_t n = 0, loop;
	int8_t back;

	n += unhex("49b8", c + n); /* mov r8, COUNTERS */
	memcpy(c + n, &(uint64_t){HIGH + COUNTERS}, 8);
	n += 8;
	n += unhex("4889d848c1e0064901c0", c + n); /* mov rax,rbx; shl rax,6; add r8,rax */
	n += unhex("49b9", c + n);		   /* mov r9, protected */
	memcpy(c + n, &(uint64_t){HIGH + WINDOW + P1}, 8);
	n += 8;
	n += unhex("b9", c + n); /* mov ecx, ROUNDS */
	memcpy(c + n, &rounds, 4);
	n += 4;
	loop = n;
	n += unhex("49ff00", c + n);	 /* inc qword [r8] */
	n += unhex("49894cd908", c + n); /* mov [r9+rbx*8+8], rcx */
	n += unhex("f049ff01", c + n);	 /* lock inc qword [r9] */
	n += unhex("ffc975", c + n);	 /* dec ecx; jnz loop */
	back = (int8_t)((int)loop - (int)(n + 1));
	c[n++] = (uint8_t)back;
	n += unhex("e6edfaf4ebfc", c + n); /* out 0xed; cli; hlt; jmp */
}

static void storm(const char *name, enum rv_action act)
{
	uint8_t *w = mem(WINDOW, WLEN);
	pthread_t a, b;
	const char *why;
	uint64_t total, counts[NVCPU];

	memset(w, 0, WLEN);
	memset(mem(COUNTERS, 4096), 0, 4096);
	memset(&s, 0, sizeof(s));
	storm_code();
	seal.act[0] = seal.act[1] = act;
	seal.events = 0;
	vm.arch->spurious = 0;
	pthread_create(&a, NULL, initiator, NULL);
	pthread_create(&b, NULL, initiator, &s);
	why = run(NVCPU, HIGH + CODE, HANG * 3);
	s.stop = true;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	memcpy(&total, w + P1, 8);
	progress(counts);
	if (!why && s.overlap)
		why = "two initiators held the VM at once";
	if (!why && s.moved)
		why = "a parked vcpu made progress";
	if (!why && !s.cycles)
		why = "no park cycle happened";
	for (uint32_t i = 0; !why && i < NVCPU; i++)
		if (counts[i] != ROUNDS)
			why = "a vcpu ran more or fewer rounds than it was told";
	if (!why && seal.events != 2 * ROUNDS * NVCPU) {
		static char t2[100];

		snprintf(t2, sizeof(t2), "%u events, expected %u", (uint32_t)seal.events,
			 2 * ROUNDS * NVCPU);
		why = t2;
	}
	if (!why && act == RV_ACT_RECORD && total != ROUNDS * NVCPU)
		why = "recorded increments were lost or done twice";
	for (uint32_t i = 0; !why && i < WLEN; i++)
		if (w[i] && (act == RV_ACT_DENY || i < P1 || i >= P1 + 8 + 8 * NVCPU))
			why = "a denied write landed";
	if (verbose)
		printf("# %s: %u park cycles, %llu unexplained faults\n", name, (uint32_t)s.cycles,
		       (unsigned long long)vm.arch->spurious);
	result(name, why);
}

int main(int argc, char **argv)
{
	struct rv_err err = {0};
	char buf[300];
	sigset_t set;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-v"))
			verbose = true;
		else
			t.only = argv[i];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (build(&err) || rv_bus_add_pio(&vm, PORT_ALL, 2, &end_ops, NULL, &err) ||
	    rv_vcpus_create(&vm, NVCPU, &err)) {
		printf("not ok memprot: %s\n", rv_err_str(&err, buf, sizeof(buf)));
		return 1;
	}
	every_store();
	if (!t.only) {
		mixed();
		page_table_bits();
		storm("storm/deny", RV_ACT_DENY);
		storm("storm/record", RV_ACT_RECORD);
	}
	printf("memprot: %u passed, %u failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
