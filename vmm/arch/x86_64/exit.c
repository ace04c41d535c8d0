/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit.c (x86_64): port I/O, and writes that met a protection.
 *
 * A write to a page that KVM's mapping of RAM denies ends KVM_RUN with EFAULT, the
 * program counter on the instruction and nothing done. Where KVM happened to be
 * emulating the instruction the same thing arrives as an MMIO write, one instruction
 * late. Both lead to one decision.
 */
#include "x86.h"
#include "arch.h"
#include "enforce/fault.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define PAGE	   4096ull
#define VEC_GP	   13
#define VEC_PF	   14
#define PF_WRITE   2u
#define RFLAGS_TF  0x100u
#define FRAME_LEN  48u
#define RESCUE_OFF 8192u /* half of THREAD_SIZE (arch/x86/include/asm/page_64_types.h) */

/* --- guest memory ------------------------------------------------------------- */

bool rv_x86_translate(struct rv_vcpu *v, uint64_t va, uint64_t *gpa, bool *writeable)
{
	struct kvm_translation tr = {.linear_address = va};

	if (ioctl(v->fd, KVM_TRANSLATE, &tr) || !tr.valid)
		return false;
	*gpa = tr.physical_address;
	if (writeable)
		*writeable = tr.writeable;
	return true;
}

bool rv_x86_read_virt(struct rv_vm *vm, struct rv_vcpu *v, uint64_t va, void *dst, size_t len)
{
	uint8_t *d = dst;

	while (len) {
		size_t n = PAGE - (va & (PAGE - 1));
		const uint8_t *p;
		uint64_t gpa;

		if (n > len)
			n = len;
		if (!rv_x86_translate(v, va, &gpa, NULL))
			return false;
		p = rv_mem_ptr(vm, rv_gpa_of(gpa), n);
		if (!p)
			return false;
		memcpy(d, p, n);
		d += n;
		va += n;
		len -= n;
	}
	return true;
}

/* As many of the instruction's bytes as can be read. */
static size_t fetch(struct rv_vm *vm, struct rv_vcpu *v, uint64_t rip, uint8_t *buf)
{
	size_t n = PAGE - (rip & (PAGE - 1));

	if (n > X86_INSN_MAX)
		n = X86_INSN_MAX;
	if (!rv_x86_read_virt(vm, v, rip, buf, n))
		return 0;
	if (n < X86_INSN_MAX && rv_x86_read_virt(vm, v, rip + n, buf + n, X86_INSN_MAX - n))
		n = X86_INSN_MAX;
	return n;
}

/* --- ports ---------------------------------------------------------------------- */

static void on_port(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct kvm_run *run = v->run;
	uint8_t *data = (uint8_t *)run + run->io.data_offset;
	uint8_t size = run->io.size;

	if (run->io.direction == KVM_EXIT_IO_OUT && size == 1 && run->io.count == 1 &&
	    rv_x86_doorbell(vm, v, run->io.port))
		return;
	/* A string instruction brings many elements for the same port. */
	for (uint32_t i = 0; i < run->io.count; i++, data += size) {
		if (run->io.direction == KVM_EXIT_IO_OUT)
			rv_bus_write(&vm->pio, run->io.port, size, data);
		else
			rv_bus_read(&vm->pio, run->io.port, size, data);
	}
}

static void internal_error(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct kvm_regs r = {0};

	(void)!ioctl(v->fd, KVM_GET_REGS, &r);
	rv_vm_end(vm, RV_END_CRASH,
		  "vcpu %u: KVM cannot go on at 0x%llx (internal error %u, instruction %s)",
		  v->index, (unsigned long long)r.rip, v->run->internal.suberror,
		  v->run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION ? "not emulated"
									    : "unknown");
}

bool rv_arch_exit(struct rv_vm *vm, struct rv_vcpu *v)
{
	switch (v->run->exit_reason) {
	case KVM_EXIT_IO: on_port(vm, v); return true;
	case KVM_EXIT_INTERNAL_ERROR: internal_error(vm, v); return true;
	case KVM_EXIT_IRQ_WINDOW_OPEN:
	case KVM_EXIT_DEBUG: return true;
	case KVM_EXIT_SYSTEM_EVENT:
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: system event %u", v->index,
			  v->run->system_event.type);
		return true;
	default: return false;
	}
}

/* --- answering a write ------------------------------------------------------------ */

/*
 * Raise an exception at the instruction, before it has done anything. The error code
 * of the page fault says "not present": told "present", Linux finds its own mapping
 * writable, takes the fault for a stale TLB entry, and retries for ever
 * (arch/x86/mm/fault.c, spurious_kernel_fault). For the same reason user mode, and any
 * address in the user half, gets a general protection fault.
 */
static int inject(struct rv_vcpu *v, uint64_t va, uint8_t cpl, struct rv_err *err)
{
	bool gp = cpl == 3 || !(va >> 63);
	struct kvm_vcpu_events ev;

	if (ioctl(v->fd, KVM_GET_VCPU_EVENTS, &ev))
		return rv_err_os(err, "x86", "read the pending events");
	memset(&ev.exception, 0, sizeof(ev.exception));
	ev.exception.pending = 1;
	ev.exception.nr = gp ? VEC_GP : VEC_PF;
	ev.exception.has_error_code = 1;
	ev.exception.error_code = gp ? 0 : PF_WRITE;
	ev.exception_has_payload = !gp;
	ev.exception_payload = gp ? 0 : va;
	ev.flags |= KVM_VCPUEVENT_VALID_PAYLOAD;
	if (ioctl(v->fd, KVM_SET_VCPU_EVENTS, &ev))
		return rv_err_os(err, "x86", "raise a fault in the guest");
	return 0;
}

bool rv_x86_refuse(struct rv_vm *vm, struct rv_vcpu *v, uint8_t cpl)
{
	struct rv_err err = {0};
	char buf[260];

	if (!inject(v, 0, cpl, &err))
		return true;
	rv_vm_end(vm, RV_END_CRASH, "vcpu %u: %s", v->index, rv_err_str(&err, buf, sizeof(buf)));
	return false;
}

static int set_singlestep(struct rv_vm *vm, struct rv_vcpu *v, bool on)
{
	struct kvm_guest_debug d = {0};

	if (on)
		d.control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP |
			    (vm->arch->guestdbg_blockirq ? KVM_GUESTDBG_BLOCKIRQ : 0);
	return ioctl(v->fd, KVM_SET_GUEST_DEBUG, &d);
}

/* --- who wrote what ------------------------------------------------------------------ */

struct fault {
	struct kvm_regs r;
	struct kvm_sregs s;
	struct rv_x86_insn in;
	struct rv_hit hit[RV_HITS_MAX];
	uint32_t nhits;
	bool decoded;
	bool vectoring; /* the CPU's own push, while it delivered an event */
};

/* The regions that a store of [va, va+len) reaches, each with its first byte there. */
static void find_hits(struct rv_vm *vm, struct rv_vcpu *v, const struct rv_x86_store *st,
		      struct fault *f)
{
	uint64_t va = st->va, left = st->len;

	while (left) {
		uint64_t n = PAGE - (va & (PAGE - 1)), gpa;
		struct rv_guard reg;

		if (n > left)
			n = left;
		if (rv_x86_translate(v, va, &gpa, NULL) &&
		    rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), n, &reg)) {
			rv_hit_add(f->hit, &f->nhits, &reg, va, gpa, n);
			/* A length above a page is an upper bound (xsave): the fault was on
			 * the first protected page, of the others nothing is known. */
			if (st->len > PAGE)
				return;
		}
		va += n;
		left -= n;
	}
}

static bool read_state(struct rv_vcpu *v, struct fault *f)
{
	struct kvm_vcpu_events ev;

	if (ioctl(v->fd, KVM_GET_REGS, &f->r) || ioctl(v->fd, KVM_GET_SREGS, &f->s) ||
	    ioctl(v->fd, KVM_GET_VCPU_EVENTS, &ev))
		return false;
	f->vectoring = ev.exception.injected || ev.interrupt.injected || ev.nmi.injected;
	return true;
}

/* --- letting it happen ---------------------------------------------------------------- */

#define OPEN_MAX 24 /* pages; enter reaches over 64 KiB, nothing else over more than four */

struct opened {
	uint64_t gpa[OPEN_MAX]; /* of the pages, and what the instruction may change there */
	uint16_t from[OPEN_MAX], to[OPEN_MAX];
	uint8_t (*was)[PAGE]; /* their bytes before */
	uint32_t n;
	bool all;
};

static void open_all(struct rv_vm *vm, struct opened *o)
{
	o->all = true;
	(void)!rv_fault_open_recorded(vm, NULL);
}

/* The pages are noted: the instruction may change the tables that lead to them. */
static int open_stores(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f, struct opened *o,
		       struct rv_err *err)
{
	int rc = 0;

	o->was = malloc(sizeof(*o->was) * OPEN_MAX);
	if (!o->was)
		return rv_err_set(err, RV_ENOMEM, "x86", "keep the bytes of a recorded write");
	for (uint32_t i = 0; !rc && i < f->in.nstores; i++) {
		uint64_t first = f->in.store[i].va, end = first + f->in.store[i].len - 1, gpa;
		uint64_t va = first & ~(PAGE - 1), last = end & ~(PAGE - 1);

		for (; !rc && va - PAGE != last; va += PAGE) {
			if (o->n == OPEN_MAX)
				return 0; /* where it faults again, everything is opened */
			if (!rv_x86_translate(v, va, &gpa, NULL) ||
			    !rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 1, NULL))
				continue;
			o->from[o->n] = (uint16_t)(va < first ? first & (PAGE - 1) : 0);
			o->to[o->n] = (uint16_t)(va == last ? (end & (PAGE - 1)) + 1 : PAGE);
			memcpy(o->was[o->n], rv_mem_ptr(vm, rv_gpa_of(gpa), PAGE), PAGE);
			o->gpa[o->n++] = gpa;
			rc = rv_fault_open_page(vm, gpa, err);
		}
	}
	return rc;
}

/*
 * An instruction that takes an exception in the middle is not over after one step: the
 * guest's handler runs first, as long as it likes, and finds the pages open. What it
 * changed beside the judged stores is put back. Where pages were opened twice for two
 * stores, either of them explains a byte.
 */
static uint32_t put_back(struct rv_vm *vm, const struct opened *o)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		uint8_t *p = rv_mem_ptr(vm, rv_gpa_of(o->gpa[i]), PAGE);

		for (uint32_t b = 0; b < PAGE; b++) {
			bool judged = false;

			if (p[b] == o->was[i][b])
				continue;
			for (uint32_t k = 0; k < o->n; k++)
				judged |= o->gpa[k] == o->gpa[i] && b >= o->from[k] && b < o->to[k];
			if (judged)
				continue;
			p[b] = o->was[i][b];
			changed++;
		}
	}
	return changed;
}

static void more_changed(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f, uint32_t bytes)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_GUEST_BAD};

	ev.vcpu = (int32_t)v->index;
	ev.pc = f->r.rip;
	ev.pc_exact = 1;
	ev.gpa = f->hit[0].gpa;
	ev.value = bytes;
	snprintf(ev.engine, sizeof(ev.engine), "seal");
	snprintf(ev.object, sizeof(ev.object), "%s", f->hit[0].reg.object);
	snprintf(ev.insn, sizeof(ev.insn), "%s", f->in.text);
	snprintf(
		ev.detail, sizeof(ev.detail),
		"%u bytes beside a recorded write were changed while it was let happen, and put back",
		bytes);
	(void)rv_vm_event(vm, &ev);
}

static int shut(struct rv_vm *vm, const struct opened *o, struct rv_err *err)
{
	int rc = 0, one;

	for (uint32_t i = 0; i < o->n; i++) {
		one = rv_memprot_shut(vm->prot, rv_gpa_of(o->gpa[i]), 1, rc ? NULL : err);
		rc = rc ? rc : one;
	}
	if (o->all) {
		one = rv_fault_shut(vm, rc ? NULL : err);
		rc = rc ? rc : one;
	}
	return rc;
}

/* Does the vcpu still stand on the instruction? If not, a handler of the guest runs. */
static bool on_the_spot(struct rv_vcpu *v, const struct fault *f)
{
	struct kvm_regs r;

	return !ioctl(v->fd, KVM_GET_REGS, &r) && r.rip == f->r.rip;
}

/*
 * Would KVM_RUN now go on with the instruction that faulted? Another vcpu may have sent
 * an INIT before it was parked; asking for the state takes it. A processor that has been
 * reset waits inside KVM for a start-up message that nobody who is parked can send.
 */
static bool still_there(struct rv_vcpu *v, const struct fault *f)
{
	struct kvm_mp_state mp;

	return !ioctl(v->fd, KVM_GET_MP_STATE, &mp) && mp.mp_state == KVM_MP_STATE_RUNNABLE &&
	       on_the_spot(v, f);
}

/* The step is made with TF set, and pushf stores what it finds: put back the guest's. */
static void hide_step(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f)
{
	uint64_t gpa;
	uint8_t *p;

	if (!f->in.pushes_flags || !f->in.nstores || f->r.rflags & RFLAGS_TF ||
	    !rv_x86_translate(v, f->in.store[0].va + 1, &gpa, NULL))
		return;
	p = rv_mem_ptr(vm, rv_gpa_of(gpa), 1);
	if (p)
		*p &= (uint8_t) ~(RFLAGS_TF >> 8);
}

/*
 * Let the instruction happen: with every other vcpu parked, open what it stores to, run
 * one instruction, close. Exact for every kind of store; slow, and meant for rare ones.
 * Where the stores are not known, or are not all, everything is open for that one step.
 */
static int complete(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f, struct rv_err *err)
{
	struct opened o = {.n = 0};
	bool faulted = false, refused = false;
	int rc = 0, run = -1, rc2;
	uint32_t more = 0;

	rv_park(vm);
	if (!still_there(v, f)) {
		rv_unpark(vm);
		return 0;
	}
	if (!f->decoded)
		open_all(vm, &o);
	else
		rc = open_stores(vm, v, f, &o, err);
	if (!rc && set_singlestep(vm, v, true))
		rc = rv_err_os(err, "x86", "single-step");
	if (!rc) {
		run = rv_vcpu_step(vm, v);
		if (run && errno == EFAULT && !o.all && on_the_spot(v, f)) {
			open_all(vm, &o);
			run = rv_vcpu_step(vm, v);
		}
		/* Another fault on the spot: it reaches what stays shut. Elsewhere it is a write
		 * of the guest's handler for an exception in the middle, which is judged by
		 * itself when the vcpu meets it again. */
		faulted = run && errno == EFAULT;
		refused = faulted && on_the_spot(v, f);
		if (run && !faulted && errno != EINTR)
			rc = rv_err_os(err, "x86", "let a recorded write happen");
	}
	(void)set_singlestep(vm, v, false);
	if (!rc && !run && v->run->exit_reason == KVM_EXIT_DEBUG)
		hide_step(vm, v, f);
	rc2 = shut(vm, &o, rc ? NULL : err);
	if (!o.all)
		more = put_back(vm, &o);
	rv_unpark(vm);
	free(o.was);
	if (more)
		more_changed(vm, v, f, more);
	if (refused && !rc) {
		rv_fault_beyond(vm, v, &f->hit[0], f->r.rip, f->in.text);
		rc = inject(v, f->hit[0].va, f->s.ss.dpl & 3, err);
	}
	/* A copy out of device memory leaves for the device first. */
	if (!rc && !rc2 && !run && v->run->exit_reason != KVM_EXIT_DEBUG)
		rv_vcpu_exit(vm, v);
	return rc ? rc : rc2;
}

/* --- deciding ------------------------------------------------------------------------ */

static void explain(struct rv_vm *vm, struct rv_vcpu *v, struct fault *f)
{
	uint8_t code[X86_INSN_MAX];
	size_t n;

	if (f->vectoring) {
		/* SDM vol. 3, 6.14.2: SS, RSP, RFLAGS, CS, RIP and an error code. */
		uint64_t top = f->r.rsp & ~15ull;

		f->decoded = true;
		snprintf(f->in.text, sizeof(f->in.text), "(event delivery)");
		find_hits(vm, v, &(struct rv_x86_store){top - FRAME_LEN, FRAME_LEN}, f);
		return;
	}
	n = fetch(vm, v, f->r.rip, code);
	f->decoded = n && !rv_x86_decode(code, n, &f->r, &f->s, &f->in, NULL);
	for (uint32_t i = 0; i < f->in.nstores; i++)
		find_hits(vm, v, &f->in.store[i], f);
		/* Newer hosts say where (v6.7, KVM_EXIT_MEMORY_FAULT). */
#ifdef KVM_EXIT_MEMORY_FAULT
	if (!f->nhits && v->run->exit_reason == KVM_EXIT_MEMORY_FAULT) {
		uint64_t gpa = v->run->memory_fault.gpa;
		struct rv_guard reg;

		if (rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 1, &reg))
			rv_hit_add(f->hit, &f->nhits, &reg, f->in.nstores ? f->in.store[0].va : 0,
				   gpa, 1);
		/* Its own decoding did not lead there: do not rely on it. */
		f->decoded = f->decoded && !f->nhits;
	}
#endif
}

static void describe(const struct fault *f, const struct rv_hit *h, struct rv_write *w)
{
	memset(w, 0, sizeof(*w));
	w->target = rv_gva_of(h->va);
	w->gpa = rv_gpa_of(h->gpa);
	w->len = h->len;
	w->pc = rv_gva_of(f->r.rip);
	w->pc_exact = true;
	w->cpl = f->s.ss.dpl & 3;
	snprintf(w->insn, sizeof(w->insn), "%s", f->in.text);
	if (f->in.ndata && h->va == f->in.store[0].va) {
		/* A store that crosses into an open page: the part that lies in this one. */
		w->nbytes = (uint8_t)(f->in.ndata < h->len ? f->in.ndata : h->len);
		memcpy(w->bytes, f->in.data, w->nbytes);
	}
}

/*
 * The stack pointer itself leads into guarded memory: no exception could be delivered
 * there. Continue on the lower half of the task's own stack, which a task that has come
 * this far does not use; its oops, or the handler of the event that was being
 * delivered, then runs as usual, and only that task suffers.
 */
static int rescue_stack(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f,
			struct rv_err *err)
{
	uint64_t base = rv_seal_task_stack(vm, v), gpa;
	struct kvm_regs r = f->r;

	r.rsp = base + RESCUE_OFF;
	if (!base || !rv_x86_translate(v, r.rsp - 8, &gpa, NULL) ||
	    rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 8, NULL))
		return rv_err_at(err, RV_EBADDATA, f->r.rsp, "x86",
				 "the stack lies in sealed memory, and the task has no other");
	if (ioctl(v->fd, KVM_SET_REGS, &r))
		return rv_err_os(err, "x86", "move the stack");
	return 0;
}

static bool stack_is_guarded(struct rv_vm *vm, struct rv_vcpu *v, uint64_t rsp)
{
	/* From the deepest byte of an exception frame up to the stack pointer itself: what a
	 * push or call has just been refused counts, although a frame is aligned below it. */
	uint64_t low = (rsp & ~15ull) - FRAME_LEN;
	struct fault f = {.nhits = 0};

	find_hits(vm, v, &(struct rv_x86_store){low, (uint32_t)(rsp - low)}, &f);
	return f.nhits > 0;
}

static int fault_guest(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f,
		       struct rv_err *err)
{
	uint8_t cpl = f->s.ss.dpl & 3;
	int rc = 0;

	if (cpl == 0 && stack_is_guarded(vm, v, f->r.rsp))
		rc = rescue_stack(vm, v, f, err);
	else if (f->vectoring)
		rc = rv_err_at(err, RV_EBADDATA, f->hit[0].va, "x86",
			       "the stack for the CPU's events lies in sealed memory");
	/* What was being delivered is delivered on the other stack. */
	if (rc || f->vectoring)
		return rc;
	return inject(v, f->hit[0].va, cpl, err);
}

static bool carry_out(struct rv_vm *vm, struct rv_vcpu *v, const struct fault *f,
		      enum rv_action act)
{
	struct kvm_regs r = f->r;
	struct rv_err err = {0};
	char buf[260];
	int rc = 0;

	switch (act) {
	case RV_ACT_RECORD:
		/* The CPU's own push leads straight into a handler that goes on pushing: that
		 * cannot be let happen one instruction at a time. */
		rc = f->vectoring ? rescue_stack(vm, v, f, &err) : complete(vm, v, f, &err);
		break;
	case RV_ACT_DENY:
		if (f->vectoring) {
			rc = rescue_stack(vm, v, f, &err);
			break;
		}
		/* Nothing lands, the guest goes on behind the instruction. One of unknown
		 * length has no behind: it gets the exception. */
		r.rip += f->in.len;
		if (!f->in.len)
			rc = inject(v, 0, f->s.ss.dpl & 3, &err);
		else if (ioctl(v->fd, KVM_SET_REGS, &r))
			rc = rv_err_os(&err, "x86", "step over a denied write");
		break;
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
	enum rv_action act = RV_ACT_RECORD;
	struct rv_write w;

	vm->guard_faults++;
	if (!read_state(v, &f))
		return false;
	explain(vm, v, &f);
	if (!f.nhits && f.decoded && !rv_fault_stuck(v, f.r.rip)) {
		rv_fault_unexplained(vm, v, f.r.rip, f.in.text);
		return true;
	}
	if (!f.nhits) {
		f.decoded = false;
		/* Not decodable: fail closed. The fault is real, the place is not known. */
		f.nhits = 1;
		rv_hit_unknown(&f.hit[0]);
	}
	/* A write that reaches two objects is judged for both; the harder answer holds. */
	for (uint32_t i = 0; i < f.nhits; i++) {
		enum rv_action one;

		describe(&f, &f.hit[i], &w);
		one = rv_seal_write(vm, v, &f.hit[i].reg, &w);
		if (one > act)
			act = one;
	}
	return carry_out(vm, v, &f, act);
}

bool rv_arch_mmio_ram(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct kvm_run *run = v->run;
	struct fault f = {.nhits = 1};
	struct rv_hit *h = &f.hit[0];
	struct rv_write w;
	uint8_t *p;
	enum rv_action act;

	if (!run->mmio.is_write) {
		/* KVM has all RAM here, so nothing is known to lead to this: as on a bus
		 * where nobody answers. */
		memset(run->mmio.data, 0xff, sizeof(run->mmio.data));
		return true;
	}
	h->gpa = run->mmio.phys_addr;
	h->len = run->mmio.len > 8 ? 8 : run->mmio.len;
	if (!rv_memprot_overlaps(vm->prot, rv_gpa_of(h->gpa), h->len, &h->reg) ||
	    !read_state(v, &f))
		return false;
	vm->guard_faults++;
	/* KVM has moved on: the address is known as physical only; name its place in the
	 * kernel's own mapping. */
	h->va = rv_seal_image_va(vm, h->gpa);
	describe(&f, h, &w);
	w.pc_exact = false;
	w.nbytes = (uint8_t)h->len;
	memcpy(w.bytes, run->mmio.data, h->len);
	act = rv_seal_write(vm, v, &h->reg, &w);
	p = rv_mem_ptr(vm, rv_gpa_of(h->gpa), h->len);
	if (act == RV_ACT_RECORD && p)
		memcpy(p, run->mmio.data, h->len);
	/* DENY: the instruction has retired and the bytes are dropped. */
	return act == RV_ACT_FAULT ? carry_out(vm, v, &f, act) : true;
}
