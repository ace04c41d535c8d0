/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c (arm64): writes that met a protection.
 *
 * A write to a page that KVM's mapping of RAM denies ends KVM_RUN with EFAULT, the
 * program counter on the instruction, nothing done and nothing told. What it would have
 * written comes from its word and the registers (decode.c), where that is from the
 * guest's page tables. A store into the doorbell's page, which KVM does not have at all,
 * arrives as MMIO.
 */
#include "arm64.h"
#include "arch.h"
#include "decode.h"
#include "disasm.h"
#include "base/a64.h"
#include "enforce/fault.h"
#include "enforce/gate.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define PAGE	    4096ull
#define WALK_BUDGET 64u	  /* table reads for one instruction: its own page, and its store's */
#define PAGES_MAX   24u	  /* of one store; only the memory copy instructions reach over more */
#define FRAME_LEN   512u  /* above struct pt_regs, which the kernel's entry pushes */
#define RESCUE_OFF  8192u /* half of THREAD_SIZE (arch/arm64/include/asm/memory.h) */

/* ESR_EL1 (Arm ARM, D24.2.40): exception class, instruction length, fault status. */
#define ESR_EC_LOWER  (0x24ull << 26)
#define ESR_EC_SAME   (0x25ull << 26)
#define ESR_IL	      (1ull << 25)
#define ESR_WNR	      (1ull << 6)
#define ESR_PERM_L3   0x0full
#define ESR_EXTERNAL  0x10ull
#define SCTLR_SPAN    (1ull << 23)
#define VECTOR_SP0    0x000ull
#define VECTOR_SPX    0x200ull
#define VECTOR_EL0    0x400ull
#define VECTOR_EL0_32 0x600ull

struct fault {
	struct rv_arm64_regs r;
	uint32_t word;
	struct rv_arm64_insn in;
	struct rv_view view;
	struct rv_hit hit[RV_HITS_MAX];
	uint32_t nhits;
	bool fetched; /* word is the instruction */
	bool known;   /* the stores are, all of them */
	char text[96];
};

/* --- guest state ------------------------------------------------------------------ */

/* A pointer may carry a tag or a signature in its upper bits: bit 55 says which half. */
static uint64_t plain_va(uint64_t va)
{
	return va & (1ull << 55) ? va | 0xffull << 56 : va & ~(0xffull << 56);
}

static int view_init(struct rv_vm *vm, struct rv_vcpu *v, struct rv_view *out)
{
	struct rv_paging_regs p;
	int rc = rv_arm64_paging(v, &p);

	return rc ? rc : rv_view_init(out, &vm->arch->source.base, &p, WALK_BUDGET, NULL);
}

static bool translate(struct rv_view *view, uint64_t va, uint64_t *gpa)
{
	struct rv_translation t;

	view->budget = WALK_BUDGET;
	if (rv_view_translate(view, rv_gva_of(plain_va(va)), &t, NULL))
		return false;
	*gpa = t.gpa.v;
	return true;
}

static int read_regs(struct rv_vcpu *v, struct rv_arm64_regs *r)
{
	for (uint32_t i = 0; i < 31; i++)
		if (rv_arm64_get(v->fd, ARM64_X(i), &r->x[i]))
			return RV_EOS;
	if (rv_arm64_get(v->fd, ARM64_PC, &r->pc) || rv_arm64_get(v->fd, ARM64_PSTATE, &r->pstate))
		return RV_EOS;
	/* DCZID_EL0 is the host's: nothing hides it from a guest. */
	__asm__("mrs %0, dczid_el0" : "=r"(r->dczid));
	return rv_arm64_get(v->fd,
			    (r->pstate & ARM64_PSTATE_EL) && (r->pstate & ARM64_PSTATE_SP)
				    ? ARM64_SP_EL1
				    : ARM64_SP_EL0,
			    &r->sp)
		       ? RV_EOS
		       : 0;
}

static bool user_mode(const struct fault *f)
{
	return !(f->r.pstate & ARM64_PSTATE_EL);
}

/* --- the kernel patches itself ----------------------------------------------------- */

/*
 * Is this the store of a text patch? It stands in copy_to_kernel_nofault(), and that was
 * called from a function that patches text and nothing else: as a leaf it still has its
 * return address in x30. The bytes are a whole instruction, or ftrace's literal.
 */
static bool is_patch(const struct rv_vm *vm, const struct fault *f)
{
	const struct rv_arch_vm *a = vm->arch;
	uint64_t lr;

	if (user_mode(f) || f->r.pc - a->poke_fn >= a->poke_len)
		return false;
	lr = rv_a64_strip_pac(f->r.x[30], f->view.regs.arm64.tcr);
	for (uint32_t i = 0; i < a->npokers; i++)
		if (lr == a->poker[i])
			return f->in.kind == RV_ARM64_STORE && !f->in.crosses_page &&
			       f->in.value_len == f->in.len && f->in.len == f->in.unit &&
			       (f->in.len == 4 || f->in.len == 8) && f->in.va % f->in.len == 0;
	return false;
}

static bool patch(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f)
{
	uint64_t gpa;
	uint8_t *p;

	if (!translate(&f->view, f->in.va, &gpa) ||
	    !rv_seal_poke(vm, v, rv_gpa_of(gpa), f->in.value, (uint32_t)f->in.len,
			  rv_gva_of(rv_seal_image_va(vm, gpa))))
		return false;
	/* The guest cleans its caches afterwards, by its own address; what was written
	 * through this mapping must be as far as that can reach. */
	p = rv_mem_ptr(vm, rv_gpa_of(gpa), f->in.len);
	if (p)
		__builtin___clear_cache((char *)p, (char *)p + f->in.len);
	if (rv_arm64_set(v->fd, ARM64_PC, f->r.pc + 4))
		rv_vm_end(vm, RV_END_FAILED, "vcpu %u: set registers after a patch", v->index);
	return true;
}

/* --- who wrote what ------------------------------------------------------------------ */

static void find_hits(struct rv_vm *vm, struct fault *f, uint64_t va, uint64_t len)
{
	for (uint32_t i = 0; len && i < PAGES_MAX; i++) {
		uint64_t n = PAGE - (va & (PAGE - 1)), gpa;
		struct rv_guard reg;

		if (n > len)
			n = len;
		if (translate(&f->view, va, &gpa) &&
		    rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), n, &reg))
			rv_hit_add(f->hit, &f->nhits, &reg, va, gpa, n);
		va += n;
		len -= n;
	}
}

/* 0: f is filled as far as the guest lets us see; else the VM's state cannot be had. */
static int explain(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f)
{
	uint64_t gpa;
	const uint8_t *p;

	if (read_regs(v, &f->r) || view_init(vm, v, &f->view))
		return RV_EOS;
	f->in.kind = RV_ARM64_UNKNOWN;
	if (f->r.pstate & ARM64_PSTATE_32 || f->r.pc & 3 || !translate(&f->view, f->r.pc, &gpa))
		return 0;
	p = rv_mem_ptr(vm, rv_gpa_of(gpa), 4);
	if (!p)
		return 0;
	memcpy(&f->word, p, sizeof(f->word));
	f->fetched = true;
	rv_arm64_decode(f->word, &f->r, &f->in);
	f->known = f->in.kind == RV_ARM64_STORE;
	return 0;
}

/* For the journal's line only, and only where one is written: it takes capstone. */
static void name_insn(struct fault *f)
{
	struct rv_insn in;

	if (!f->fetched)
		snprintf(f->text, sizeof(f->text), "(not readable)");
	else if (rv_insn_decode(RV_ARCH_ARM64, &f->word, sizeof(f->word), f->r.pc, &in, NULL))
		snprintf(f->text, sizeof(f->text), ".inst 0x%08x", f->word);
	else
		snprintf(f->text, sizeof(f->text), "%.90s", in.text);
}

/*
 * Cache maintenance by address on a page that is not mapped yet looks like a write to
 * KVM. It changes nothing: done through our mapping, which is the same memory.
 */
static bool cache_op(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f)
{
	uint64_t gpa;
	uint8_t *p;

	if (!translate(&f->view, f->in.va & ~(PAGE - 1), &gpa) ||
	    !rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 1, NULL))
		return false;
	p = rv_mem_ptr(vm, rv_gpa_of(gpa), PAGE);
	if (!p)
		return false;
	__builtin___clear_cache((char *)p, (char *)p + PAGE);
	return !rv_arm64_set(v->fd, ARM64_PC, f->r.pc + 4);
}

/* --- answering ------------------------------------------------------------------------ */

/*
 * Raise an exception at the instruction, as the processor would (Arm ARM,
 * AArch64.TakeException). A permission fault, so that the kernel's exception table and its
 * words for it ("write to read-only memory") apply. Where the address is the user half's, or
 * user mode itself stored, the kernel would look up its own tables, find the page
 * writable, and retry for ever: there it is an external abort.
 */
static int inject(struct rv_vcpu *v, const struct fault *f, uint64_t va, struct rv_err *err)
{
	uint64_t vbar, sctlr, esr = ESR_IL | ESR_WNR, vector, ps;
	bool lower = user_mode(f);

	if (rv_arm64_get(v->fd, ARM64_VBAR_EL1, &vbar) || rv_arm64_get(v->fd, ARM64_SCTLR, &sctlr))
		return rv_err_os(err, "arm64", "read the exception registers");
	esr |= lower ? ESR_EC_LOWER : ESR_EC_SAME;
	esr |= lower || !(va >> 63) ? ESR_EXTERNAL : ESR_PERM_L3;
	if (lower)
		vector = f->r.pstate & ARM64_PSTATE_32 ? VECTOR_EL0_32 : VECTOR_EL0;
	else
		vector = f->r.pstate & ARM64_PSTATE_SP ? VECTOR_SPX : VECTOR_SP0;
	ps = (f->r.pstate & (ARM64_PSTATE_FLAGS | ARM64_PSTATE_DIT | ARM64_PSTATE_PAN)) |
	     ARM64_PSTATE_DAIF | 5; /* EL1, its own stack pointer */
	if (f->r.pstate & ARM64_PSTATE_32)
		ps &= ~ARM64_PSTATE_DIT; /* another bit there */
	if (!(sctlr & SCTLR_SPAN))
		ps |= ARM64_PSTATE_PAN;
	if (rv_arm64_set(v->fd, ARM64_ESR_EL1, esr) || rv_arm64_set(v->fd, ARM64_FAR_EL1, va) ||
	    rv_arm64_set(v->fd, ARM64_ELR_EL1, f->r.pc) ||
	    rv_arm64_set(v->fd, ARM64_SPSR_EL1, f->r.pstate) ||
	    rv_arm64_set(v->fd, ARM64_PC, vbar + vector) || rv_arm64_set(v->fd, ARM64_PSTATE, ps))
		return rv_err_os(err, "arm64", "raise a fault in the guest");
	return 0;
}

/*
 * The stack pointer itself leads into guarded memory: the kernel's entry could not save
 * a register. It continues on the lower half of the task's own stack, which a task that
 * has come this far does not use; its oops then runs as usual.
 */
static int rescue_stack(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f, struct rv_err *err)
{
	uint64_t base = rv_seal_task_stack(vm, v), gpa, sp = base + RESCUE_OFF;

	if (!base || !translate(&f->view, sp - 8, &gpa) ||
	    rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 8, NULL))
		return rv_err_at(err, RV_EBADDATA, f->r.pc, "arm64",
				 "the stack lies in sealed memory, and the task has no other");
	if (rv_arm64_set(v->fd, ARM64_SP_EL1, sp))
		return rv_err_os(err, "arm64", "move the stack");
	return 0;
}

static bool stack_is_guarded(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *at)
{
	struct fault f = {.view = at->view};
	uint64_t sp;

	if (rv_arm64_get(v->fd, ARM64_SP_EL1, &sp))
		return false;
	find_hits(vm, &f, sp - FRAME_LEN, FRAME_LEN);
	return f.nhits > 0;
}

static int fault_guest(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f, struct rv_err *err)
{
	int rc = 0;

	if (!user_mode(f) && stack_is_guarded(vm, v, f))
		rc = rescue_stack(vm, v, f, err);
	return rc ? rc : inject(v, f, f->hit[0].va, err);
}

/* Behind the instruction. An exclusive store has succeeded, or its loop would never end. */
static int skip(struct rv_vcpu *v, const struct fault *f, struct rv_err *err)
{
	if ((f->in.exclusive && f->in.status < 31 &&
	     rv_arm64_set(v->fd, ARM64_X(f->in.status), 0)) ||
	    rv_arm64_set(v->fd, ARM64_PC, f->r.pc + 4))
		return rv_err_os(err, "arm64", "step over a write");
	return 0;
}

/* --- letting it happen ------------------------------------------------------------------ */

/*
 * Open what the instruction stores to; where that is not known, everything that the policy
 * lets be written. What it guards harder stays shut.
 */
static int open_stores(struct rv_vm *vm, struct fault *f, struct rv_err *err)
{
	uint64_t first = f->in.va & ~(PAGE - 1), gpa;
	uint64_t n = (f->in.va - first + f->in.len + PAGE - 1) / PAGE;
	int rc = 0;

	if (!f->known || f->in.len > PAGES_MAX * PAGE || n > PAGES_MAX)
		return rv_fault_open_recorded(vm, err);
	for (uint64_t i = 0; !rc && i < n; i++)
		if (translate(&f->view, first + i * PAGE, &gpa))
			rc = rv_fault_open_page(vm, gpa, err);
	return rc;
}

static bool on_the_spot(struct rv_vcpu *v, const struct fault *f)
{
	uint64_t pc;

	return !rv_arm64_get(v->fd, ARM64_PC, &pc) && pc == f->r.pc;
}

static int singlestep(struct rv_vcpu *v, bool on)
{
	struct kvm_guest_debug d = {.control =
					    on ? KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP : 0};

	return ioctl(v->fd, KVM_SET_GUEST_DEBUG, &d);
}

/*
 * The masks of the step are taken off again: from PSTATE, or, where the instruction took an
 * exception, from what the exception saved of it.
 */
static int restore_masks(struct rv_vcpu *v, const struct fault *f)
{
	uint64_t masks = f->r.pstate & ARM64_PSTATE_DAIF, elr, vbar, pc, ps;
	uint64_t id = ARM64_PSTATE;

	if (rv_arm64_get(v->fd, ARM64_PC, &pc) || rv_arm64_get(v->fd, ARM64_VBAR_EL1, &vbar) ||
	    rv_arm64_get(v->fd, ARM64_ELR_EL1, &elr))
		return RV_EOS;
	if (pc - vbar < 0x800 && elr == f->r.pc)
		id = ARM64_SPSR_EL1;
	if (rv_arm64_get(v->fd, id, &ps))
		return RV_EOS;
	return rv_arm64_set(v->fd, id, (ps & ~ARM64_PSTATE_DAIF) | masks);
}

/* The monitor stores for the guest: leaving it has cleared what an exclusive needs. */
static int store_exclusive(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f, struct rv_err *err)
{
	uint64_t gpa;
	uint8_t *p = NULL;

	/* The tables may have changed since it was judged: then it faults again, and is again. */
	if (!translate(&f->view, f->in.va, &gpa) || gpa != f->hit[0].gpa)
		return 0;
	if (f->in.value_len == f->in.len && !f->in.crosses_page)
		p = rv_mem_ptr(vm, rv_gpa_of(gpa), f->in.len);
	if (!p)
		return rv_err_at(err, RV_EUNSUPPORTED, f->in.va, "arm64",
				 "an exclusive store that cannot be let happen");
	memcpy(p, f->in.value, f->in.len);
	return skip(v, f, err);
}

/*
 * Let the instruction happen: with every other vcpu parked, open what it stores to, run
 * one instruction, close. Exact for every kind of store; slow, and meant for rare ones.
 * An exception in the middle is no way in: the step ends before the handler's first
 * instruction (Arm ARM, D2.12, "Software Step exceptions").
 */
static int complete(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f, struct rv_err *err)
{
	bool faulted = false, refused = false;
	int rc, rc2, run = -1;

	rv_park(vm);
	if (f->in.exclusive) {
		rc = store_exclusive(vm, v, f, err);
		rv_unpark(vm);
		return rc;
	}
	rc = open_stores(vm, f, err);
	if (!rc && (singlestep(v, true) ||
		    rv_arm64_set(v->fd, ARM64_PSTATE, f->r.pstate | ARM64_PSTATE_DAIF)))
		rc = rv_err_os(err, "arm64", "single-step");
	if (!rc) {
		run = rv_vcpu_step(vm, v);
		faulted = run && errno == EFAULT;
		refused = faulted && on_the_spot(v, f);
		if (run && !faulted && errno != EINTR)
			rc = rv_err_os(err, "arm64", "let a recorded write happen");
		if (restore_masks(v, f) && !rc)
			rc = rv_err_os(err, "arm64", "go on after a step");
	}
	(void)singlestep(v, false);
	rc2 = rv_fault_shut(vm, rc ? NULL : err);
	rv_unpark(vm);
	if (refused && !rc) {
		rv_fault_beyond(vm, v, &f->hit[0], f->r.pc, f->text);
		rc = fault_guest(vm, v, f, err);
	}
	/* A copy out of device memory leaves for the device first. */
	if (!rc && !rc2 && !run && v->run->exit_reason != KVM_EXIT_DEBUG)
		rv_vcpu_exit(vm, v);
	return rc ? rc : rc2;
}

/* --- deciding --------------------------------------------------------------------------- */

static void describe(const struct fault *f, const struct rv_hit *h, struct rv_write *w)
{
	uint64_t off = h->va - f->in.va;

	memset(w, 0, sizeof(*w));
	w->target = rv_gva_of(plain_va(h->va));
	w->gpa = rv_gpa_of(h->gpa);
	w->len = h->len;
	w->pc = rv_gva_of(f->r.pc);
	w->pc_exact = true;
	w->cpl = user_mode(f) ? 3 : 0;
	snprintf(w->insn, sizeof(w->insn), "%s", f->text);
	if (!f->known || !f->in.value_len)
		return;
	/* A store that crosses into an open page: the part that lies in this one. */
	w->nbytes = (uint8_t)(h->len < sizeof(w->bytes) ? h->len : sizeof(w->bytes));
	for (uint32_t i = 0; i < w->nbytes; i++)
		w->bytes[i] = f->in.value[(off + i) % f->in.value_len];
}

/* The harder answer holds where two objects are reached. */
static enum rv_action judge(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f)
{
	enum rv_action act = RV_ACT_RECORD;
	struct rv_write w;

	for (uint32_t i = 0; i < f->nhits; i++) {
		enum rv_action one;

		describe(f, &f->hit[i], &w);
		one = rv_seal_write(vm, v, &f->hit[i].reg, &w);
		if (one > act)
			act = one;
	}
	return act;
}

static bool carry_out(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f, enum rv_action act)
{
	struct rv_err err = {0};
	char buf[260];
	int rc = 0;

	switch (act) {
	case RV_ACT_RECORD: rc = complete(vm, v, f, &err); break;
	case RV_ACT_DENY: rc = skip(v, f, &err); break; /* nothing lands, the guest goes on */
	case RV_ACT_FAULT: rc = fault_guest(vm, v, f, &err); break;
	default: break; /* paused or killed: the instruction stays undone */
	}
	if (rc)
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: %s", v->index,
			  rv_err_str(&err, buf, sizeof(buf)));
	return true;
}

bool rv_arch_fault(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct fault f = {0};

	/* Without a gate nothing is protected, and nothing explains it. */
	if (!vm->arch->source.count || explain(vm, v, &f))
		return false;
	vm->guard_faults++;
	if (is_patch(vm, &f) && patch(vm, v, &f))
		return true;
	if (f.in.kind == RV_ARM64_CACHE && cache_op(vm, v, &f))
		return true;
	name_insn(&f);
	if (f.known)
		find_hits(vm, &f, f.in.va, f.in.len);
	if (!f.nhits && f.in.kind != RV_ARM64_UNKNOWN && !rv_fault_stuck(v, f.r.pc)) {
		rv_fault_unexplained(vm, v, f.r.pc, f.text);
		return true;
	}
	if (!f.nhits) {
		/* Not decodable: fail closed. The fault is real, the place is not known. */
		f.known = false;
		f.nhits = 1;
		rv_hit_unknown(&f.hit[0]);
	}
	return carry_out(vm, v, &f, judge(vm, v, &f));
}

/* --- the hole -------------------------------------------------------------------------- */

/*
 * KVM steps over the instruction when the vcpu is entered again; it does so now, so that
 * registers set here are not stepped over instead. The request to come out stays: the run
 * loop takes it back when nobody else wants it.
 */
static int finish_mmio(struct rv_vcpu *v)
{
	__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	return ioctl(v->fd, KVM_RUN, 0) && errno == EINTR ? 0 : RV_EOS;
}

/* mmio: the exit is a finished description, and KVM steps over the instruction itself. */
static bool hole_write(struct rv_vm *vm, struct rv_vcpu *v, uint64_t gpa, uint32_t len, bool mmio)
{
	struct fault f = {0};
	enum rv_action act;
	struct rv_err err = {0};
	char buf[260];
	int rc = 0;

	if (!vm->arch->source.count || explain(vm, v, &f) ||
	    !rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 1, &f.hit[0].reg))
		return false;
	vm->guard_faults++;
	name_insn(&f);
	f.nhits = 1;
	f.hit[0].gpa = gpa;
	f.hit[0].len = len;
	f.hit[0].va = f.known ? f.in.va : rv_seal_image_va(vm, gpa);
	act = judge(vm, v, &f);
	if (act == RV_ACT_FAULT && mmio && finish_mmio(v))
		rc = rv_err_os(&err, "arm64", "finish a refused write");
	else if (act == RV_ACT_FAULT)
		rc = fault_guest(vm, v, &f, &err);
	else if ((act == RV_ACT_RECORD || act == RV_ACT_DENY) && !mmio)
		rc = skip(v, &f, &err); /* there is no memory for it to land in */
	if (rc)
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: %s", v->index,
			  rv_err_str(&err, buf, sizeof(buf)));
	return true;
}

static bool in_hole(const struct rv_vm *vm, uint64_t gpa)
{
	return vm->arch->hole && gpa - vm->arch->hole < PAGE;
}

bool rv_arm64_hole_store(struct rv_vm *vm, struct rv_vcpu *v, uint64_t gpa)
{
	return in_hole(vm, gpa) && hole_write(vm, v, gpa, 1, false);
}

bool rv_arch_mmio_ram(struct rv_vm *vm, struct rv_vcpu *v)
{
	const struct kvm_run *run = v->run;

	if (!in_hole(vm, run->mmio.phys_addr))
		return false;
	if (!run->mmio.is_write)
		return rv_arm64_doorbell(vm, v);
	return hole_write(vm, v, run->mmio.phys_addr, run->mmio.len > 8 ? 8 : run->mmio.len, true);
}
