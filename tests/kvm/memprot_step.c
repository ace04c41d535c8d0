/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_step.c: what comes between a recorded write and its one step.
 *
 * The monitor lets a recorded write happen by stepping the vcpu over it, alone, with the
 * page open. Two things make that step something else than one instruction: an exception
 * in its middle, which has the guest's own handler run with the page open; and an INIT
 * that another vcpu sent before it was parked, after which there is nothing to step.
 */
#include "memprot_test.h"

#define SOON	  30u			/* seconds; an emulated host needs less than one */
#define ALIAS	  (HIGH + (1ull << 30)) /* mapped by PT: page one, then the missing page */
#define MISSING	  (ALIAS + 0x1000)
#define FRAME	  (MISSING + 0x800) /* rbp: enter copies its display from below */
#define LAPIC	  0xfee00000ull
#define PORT_INIT 0xeau

static size_t mov_imm64(const char *opcode, uint64_t value, uint8_t *out)
{
	size_t n = mpt_unhex(opcode, out);

	memcpy(out + n, &value, 8);
	return n + 8;
}

/* --- an exception in the middle -------------------------------------------------------- */

/*
 * Both instructions have done their first part, or could do it, before the CPU sees that a
 * page is missing; a string instruction would not do, because it reads before it writes.
 */
static const struct shape {
	const char *name, *hex;
	bool enter; /* enter 16, 2; or a store across the end of page one */
	uint32_t rsp;
	uint32_t stray; /* where in the window the handler writes; 0: nowhere there */
	uint32_t events, told;
	bool harder; /* region two is not to be written: what the handler does there is refused */
} shapes[] = {
	{"beside", "c8100002", true, P1 + 0x100, P1 + 0x800, 1, 1, false},
	{"two-pages", "c8100002", true, P2 + 8, P2 + 0x800, 2, 1, false},
	{"honest", "c8100002", true, P1 + 0x100, 0, 1, 0, false},
	{"split-beside", "488903", false, P1 + 0x100, P1 + 0x800, 1, 1, false},
	{"split-honest", "488903", false, P1 + 0x100, 0, 1, 0, false},
	/* the instruction, the handler's write in region two, the instruction again */
	{"elsewhere", "c8100002", true, P1 + 0x100, P2 + 0x800, 3, 0, true},
};

/* The page fault's handler: count, write where it should not, bring the page, go back. */
static void load_handler(const struct shape *sh)
{
	uint64_t at = HIGH + CODE + 0x400, *idt = (void *)mpt_mem(IDT, 4096);
	uint8_t *c = mpt_mem(CODE + 0x400, 128);
	size_t n = 0;

	n += mov_imm64("49bb", HIGH + COUNTERS, c + n); /* mov r11 */
	n += mpt_unhex("49ff03", c + n);		/* inc qword [r11] */
	n += mov_imm64("49ba", sh->stray ? HIGH + WINDOW + sh->stray : HIGH + COUNTERS + 64,
		       c + n);		 /* mov r10 */
	n += mpt_unhex("4d8912", c + n); /* mov [r10], r10 */
	n += mov_imm64("49bb", HIGH + PT + 8, c + n);
	n += mov_imm64("49ba", SPARE | 0x63, c + n);
	n += mpt_unhex("4d8913", c + n);       /* mov [r11], r10 */
	n += mpt_unhex("4883c40848cf", c + n); /* add rsp, 8; iretq */
	idt[2 * 14] =
		(idt[2 * 14] & ~0xffff00000000ffffull) | (at & 0xffff) | (at >> 16 & 0xffff) << 48;
	idt[2 * 14 + 1] = at >> 32;
}

/* Returns the address of the instruction. */
static uint64_t load_shape(const struct shape *sh)
{
	uint64_t *pdpt = (void *)mpt_mem(PDPT, 4096), *pd = (void *)mpt_mem(PD2, 4096),
		 *pt = (void *)mpt_mem(PT, 4096), at;
	uint8_t *c = mpt_mem(CODE, 128);
	size_t n = 0;

	pdpt[1] = PD2 | 0x63;
	pd[0] = PT | 0x63;
	pt[0] = (WINDOW + P1) | 0x63;
	pt[1] = 0;
	n += mpt_unhex("0f20d80f22d8", c + n); /* cr3 to itself: the shape before had the page */
	n += mov_imm64("48bc", HIGH + WINDOW + sh->rsp, c + n); /* mov rsp */
	n += mov_imm64("48bd", FRAME, c + n);			/* mov rbp */
	n += mov_imm64("48bb", MISSING - 4, c + n);		/* mov rbx */
	n += mov_imm64("48b8", 0x8182838485868788ull, c + n);	/* mov rax */
	at = HIGH + CODE + n;
	n += mpt_unhex(sh->hex, c + n);
	n += mpt_unhex("e6ee", c + n); /* out 0xee: end */
	load_handler(sh);
	return at;
}

/* What the instruction alone leaves in the window and in the page that was missing. */
static void expect(const struct shape *sh, uint8_t *window, uint8_t *spare)
{
	uint64_t rax = 0x8182838485868788ull, rbp = FRAME, top = HIGH + WINDOW + sh->rsp - 8;

	mpt_fill(window);
	memcpy(spare, mpt_mem(SPARE, 4096), 4096);
	if (!sh->enter) {
		memcpy(window + P2 - 4, &rax, 4);
		memcpy(spare, (uint8_t *)&rax + 4, 4);
		return;
	}
	memcpy(window + sh->rsp - 8, &rbp, 8);
	memcpy(window + sh->rsp - 16, spare + (FRAME & 0xfff) - 8, 8);
	memcpy(window + sh->rsp - 24, &top, 8);
}

static const char *judge(const struct shape *sh, const uint8_t *window, const uint8_t *spare,
			 uint64_t told)
{
	static char why[120];
	const char *bad;
	uint64_t handled;

	memcpy(&handled, mpt_mem(COUNTERS, 8), 8);
	if (handled != 1 || mpt_seal.events != sh->events) {
		snprintf(why, sizeof(why), "%llu exceptions and %u events, expected 1 and %u",
			 (unsigned long long)handled, (uint32_t)mpt_seal.events, sh->events);
		return why;
	}
	bad = mpt_differs(mpt_mem(WINDOW, WLEN), window, 0, WLEN);
	if (bad)
		return bad;
	if (memcmp(mpt_mem(SPARE, 4096), spare, 4096))
		return "the part in the open page is not what was stored";
	if (told != sh->told) {
		snprintf(why, sizeof(why), "the journal tells of %llu more changes, expected %u",
			 (unsigned long long)told, sh->told);
		return why;
	}
	return NULL;
}

void mpt_exception_in_step(void)
{
	static uint8_t window[WLEN], spare[4096];
	uint64_t *idt = (void *)mpt_mem(IDT, 4096), gate[2] = {idt[2 * 14], idt[2 * 14 + 1]};

	mpt_seal.act[0] = RV_ACT_RECORD;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct shape *sh = &shapes[i];
		uint64_t at = load_shape(sh), told;
		const char *why;
		char name[40];

		mpt_fill(mpt_mem(WINDOW, WLEN));
		for (uint32_t b = 0; b < 4096; b++)
			*mpt_mem(SPARE + b, 1) = (uint8_t)(b * 11 + 5);
		expect(sh, window, spare);
		memset(mpt_mem(COUNTERS, 4096), 0, 4096);
		mpt_seal.events = 0;
		mpt_seal.act[1] = sh->harder ? RV_ACT_DENY : RV_ACT_RECORD;
		told = rv_journal_count(mpt_vm.journal, RV_EV_GUEST_BAD);
		why = mpt_run(1, HIGH + CODE, SOON);
		told = rv_journal_count(mpt_vm.journal, RV_EV_GUEST_BAD) - told;
		snprintf(name, sizeof(name), "exception-in-step/%s", sh->name);
		/* Of two pages the CPU may try the second first: then no step is on its way. */
		if (!why && !sh->enter && mpt_seal.events && mpt_seal.last.pc.v != at) {
			printf("# %s: not on this CPU\n", name);
			continue;
		}
		mpt_result(name, why ? why : judge(sh, window, spare, told));
	}
	((uint64_t *)(void *)mpt_mem(PDPT, 4096))[1] = 0;
	memcpy(idt + 2 * 14, gate, sizeof(gate));
}

/* --- another page before it ----------------------------------------------------------- */

/* The write into region one is being judged: now its address leads into region two. */
static void remap(struct rv_vcpu *v)
{
	(void)v;
	*(uint64_t *)(void *)mpt_mem(PT, 8) = (WINDOW + P2) | 0x63;
}

/* What is opened must be what may be written, not what the address leads to by then. */
void mpt_remap_before_step(void)
{
	static uint8_t before[WLEN];
	uint64_t *idt = (void *)mpt_mem(IDT, 4096), gate[2] = {idt[2 * 14], idt[2 * 14 + 1]};
	uint64_t *pdpt = (void *)mpt_mem(PDPT, 4096), at = HIGH + CODE + 0x400;
	uint8_t *c = mpt_mem(CODE, 128);
	const char *why;
	size_t n = 0;

	pdpt[1] = PD2 | 0x63;
	*(uint64_t *)(void *)mpt_mem(PD2, 8) = PT | 0x63;
	*(uint64_t *)(void *)mpt_mem(PT, 8) = (WINDOW + P1) | 0x63;
	n += mpt_unhex("0f20d80f22d8", c + n);	      /* cr3 to itself */
	n += mov_imm64("48bb", ALIAS + 0x100, c + n); /* mov rbx */
	n += mpt_unhex("488903e6ee", c + n);	      /* mov [rbx], rax; end */
	mpt_unhex("e6ee", mpt_mem(CODE + 0x400, 2));  /* refused: end, too */
	idt[2 * 14] =
		(idt[2 * 14] & ~0xffff00000000ffffull) | (at & 0xffff) | (at >> 16 & 0xffff) << 48;
	idt[2 * 14 + 1] = at >> 32;
	mpt_fill(mpt_mem(WINDOW, WLEN));
	mpt_fill(before);
	mpt_seal.act[0] = RV_ACT_RECORD;
	mpt_seal.act[1] = RV_ACT_DENY;
	mpt_seal.events = 0;
	mpt_seal.asked = remap;
	why = mpt_run(1, HIGH + CODE, SOON);
	mpt_seal.asked = NULL;
	if (!why && !mpt_seal.events)
		why = "the write was not judged";
	if (!why)
		why = mpt_differs(mpt_mem(WINDOW, WLEN), before, P2, P3);
	mpt_result("remap-before-step", why);
	pdpt[1] = 0;
	memcpy(idt + 2 * 14, gate, sizeof(gate));
}

/* --- an INIT before it ------------------------------------------------------------------- */

static struct {
	_Atomic bool judged, sent, answered, went_on;
} s;

/* The victim's write is being judged, in its own thread: now, or never, the INIT. */
static void asked(struct rv_vcpu *v)
{
	if (v->index != 1)
		return;
	s.judged = true;
	for (uint32_t i = 0; i < SOON * 500 && !s.sent && !mpt_vm.ending; i++)
		usleep(1000);
	s.answered = true;
}

static void init_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	(void)dev, (void)off, (void)len;
	if (*(const uint8_t *)data == 0xff)
		s.went_on = true;
	else
		s.sent = true;
}

/* Bit 0: send the INIT; bit 1: the victim is back in KVM, send the start-up message. */
static void init_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	bool back = s.answered && mpt_vm.vcpu[1].in_guest;

	(void)dev, (void)off;
	memset(data, 0, len);
	*(uint8_t *)data = (uint8_t)(s.judged | back << 1);
}

static const struct rv_bus_ops init_ops = {init_read, init_write};

/* rbx = index: vcpu 0 sends, vcpu 1 writes. */
static void load_init(void)
{
	uint64_t *pdpt = (void *)mpt_mem(PDPT, 4096), *pd = (void *)mpt_mem(PD2, 4096);
	uint8_t *c = mpt_mem(CODE, 128);
	size_t n = 0, jump;

	pdpt[LAPIC >> 30] = PD2 | 0x63;
	pd[LAPIC >> 21 & 511] = LAPIC | 0xf3; /* not cached */
	n += mpt_unhex("85db75", c + n);      /* test ebx, ebx; jnz */
	jump = n++;
	n += mov_imm64("49b8", LAPIC + 0x300, c + n);  /* mov r8, ICR */
	n += mpt_unhex("e4eaa80174fa", c + n);	       /* in al, 0xea; test al, 1; jz */
	n += mpt_unhex("41c7401000000001", c + n);     /* to vcpu 1 */
	n += mpt_unhex("41c70000450000e6ea", c + n);   /* INIT; out 0xea, al */
	n += mpt_unhex("e4eaa80274fa", c + n);	       /* in al, 0xea; test al, 2; jz */
	n += mpt_unhex("41c70005460000f4ebfd", c + n); /* start at REAL; hlt; jmp */
	c[jump] = (uint8_t)(n - jump - 1);
	n += mov_imm64("48bb", HIGH + WINDOW + P1 + 0x100, c + n); /* mov rbx */
	n += mpt_unhex("488903", c + n);			   /* mov [rbx], rax */
	n += mpt_unhex("b0ffe6eae6ee", c + n);			   /* al = 0xff: went on; end */
	mpt_unhex("e6eef4ebfd", mpt_mem(REAL, 8));		   /* out 0xee, al: end; hlt; jmp */
}

/*
 * The last of the tests: the INIT takes more from vcpu 1 than a start of ours sets. Where
 * the monitor steps the reset vcpu, it waits inside KVM for a message of one that is parked.
 */
void mpt_init_before_step(void)
{
	static uint8_t before[WLEN];
	struct rv_err err = {0};
	const char *why;

	if (rv_bus_add_pio(&mpt_vm, PORT_INIT, 1, &init_ops, NULL, &err)) {
		mpt_result("init-before-step", err.what);
		return;
	}
	load_init();
	mpt_fill(mpt_mem(WINDOW, WLEN));
	mpt_fill(before);
	mpt_seal.act[0] = mpt_seal.act[1] = RV_ACT_RECORD;
	mpt_seal.events = 0;
	mpt_seal.asked = asked;
	why = mpt_run(2, HIGH + CODE, SOON);
	mpt_seal.asked = NULL;
	if (!why && (!s.sent || mpt_seal.events != 1))
		why = "the INIT did not meet a write that was being judged";
	if (!why && s.went_on)
		why = "a vcpu that was sent an INIT went on behind its write";
	if (!why)
		why = mpt_differs(mpt_mem(WINDOW, WLEN), before, 0, WLEN);
	mpt_result("init-before-step", why);
}
