/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.c: arm, judge, name.
 *
 * Life of the seal: prepared (gate planted and guarded, before the first instruction)
 * -> armed (the guest has called mark_rodata_ro; boot-time patching is over) -> until
 * the VM ends. Nothing the guest does takes it off again.
 */
#include "enforce/seal.h"
#include "arch.h"
#include "enforce/gate.h"
#include "linux/linux.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 4096ull

struct rv_seal {
	struct rv_source_mapped source;
	struct rv_region regions[2];
	struct rv_kallsyms syms;
	struct rv_kernel kernel; /* const after prepare; copied for each question */
	bool have_kernel;
	bool armed; /* changed while the VM is parked */
};

/*
 * Does the command line switch the kernel's own protection off? Any value that
 * kstrtobool() reads as false counts, quoted or not (lib/cmdline.c, next_arg), wherever
 * it stands: that a later word may switch it on again is not relied on.
 */
static bool rodata_off(const char *cmdline)
{
	for (const char *s = cmdline; (s = strstr(s, "rodata=")); s++) {
		const char *v = s + strlen("rodata=");

		if (s != cmdline && !strchr(" \t\n\"", s[-1]))
			continue;
		v += *v == '"';
		if (*v && (strchr("nNfF0", *v) || (strchr("oO", *v) && v[1] && strchr("fF", v[1]))))
			return true;
	}
	return false;
}

/* --- names ------------------------------------------------------------------------- */

uint64_t rv_seal_image_va(struct rv_vm *vm, uint64_t gpa)
{
	const struct rv_boot_plan *p = vm->plan;

	if (gpa < p->phys_base || gpa - p->phys_base >= p->info.mem_size)
		return 0;
	return p->info.link_base + p->virt_delta + (gpa - p->phys_base);
}

static int view_init(struct rv_vm *vm, struct rv_seal *s, struct rv_err *err)
{
	const struct rv_boot_plan *p = vm->plan;
	struct rv_kernel_params kp = {.source = &s->source.base};
	int rc;

	for (uint32_t i = 0; i < vm->mem.nram; i++)
		s->regions[i] = (struct rv_region){vm->mem.ram[i].gpa.v, vm->mem.ram[i].len,
						   vm->mem.mon + vm->mem.ram[i].off};
	rc = rv_source_mapped_init(&s->source, s->regions, vm->mem.nram, err);
	if (rc)
		return rc;
	s->syms = (struct rv_kallsyms){
		.mem = rv_mem_ptr(vm, rv_gpa_of(p->phys_base), p->info.mem_size),
		.len = p->info.mem_size,
		.link_base = p->info.link_base,
		.slide = p->virt_delta,
		.lay = p->ksym,
	};
	kp.kallsyms = p->have_ksym ? &s->syms : NULL;
	kp.regs.arch = p->info.arch;
	kp.link_base = p->info.link_base;
	kp.slide = p->virt_delta;
	kp.image_gpa = p->phys_base;
	kp.image_size = p->info.mem_size;
	kp.flat = s->syms.mem;
	kp.flat_len = s->syms.len;
	kp.btf_va = p->have_btf ? p->btf_va : 0;
	kp.btf_size = p->btf_size;
	return rv_kernel_init(&s->kernel, &kp, err);
}

/* Fill the names of an event from the guest's own tables; what is not known stays empty. */
void rv_seal_name(struct rv_vm *vm, struct rv_vcpu *v, struct rv_event *ev)
{
	struct rv_paging_regs paging;
	struct rv_unwind_regs unwind;
	struct rv_kernel k;
	struct rv_task task;
	uint64_t percpu, caller;

	/* A fault without a seal comes from the host's own trouble with its memory. */
	if (!vm->seal)
		return;
	k = vm->seal->kernel;
	if (rv_arch_vcpu_view(v, &paging, &unwind, &percpu))
		return;
	rv_kernel_set_regs(&k, &paging);
	(void)!rv_kernel_symbolize(&k, ev->pc, ev->pc_symbol, sizeof(ev->pc_symbol));
	if (ev->gpa != ~0ull &&
	    !rv_kernel_symbolize_gpa(&k, ev->gpa, ev->target_symbol, sizeof(ev->target_symbol)))
		;
	else if (ev->target)
		(void)!rv_kernel_symbolize(&k, ev->target, ev->target_symbol,
					   sizeof(ev->target_symbol));
	if (rv_kernel_unwind(&k, &unwind, &caller, 1, NULL) == 1) {
		ev->caller = caller;
		(void)!rv_kernel_symbolize(&k, caller, ev->caller_symbol,
					   sizeof(ev->caller_symbol));
	}
	if (rv_task_current(&k, percpu, &task))
		snprintf(ev->comm, sizeof(ev->comm), "%.20s", task.comm);
}

uint64_t rv_seal_task_stack(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct rv_paging_regs paging;
	struct rv_unwind_regs unwind;
	struct rv_kernel k;
	struct rv_task task;
	uint64_t percpu;

	if (!vm->seal)
		return 0;
	k = vm->seal->kernel;
	if (rv_arch_vcpu_view(v, &paging, &unwind, &percpu))
		return 0;
	rv_kernel_set_regs(&k, &paging);
	return rv_task_current(&k, percpu, &task) ? task.stack : 0;
}

/* --- arming -------------------------------------------------------------------------- */

int rv_seal_prepare(struct rv_vm *vm, struct rv_err *err)
{
	const struct rv_boot_plan *p = vm->plan;
	struct rv_seal *s;
	int rc;

	if (rodata_off(vm->cmdline))
		return rv_err_set(err, RV_EREFUSED, "seal",
				  "rodata=off on the command line: the kernel would never make "
				  "its text read-only");
	if (!p->text || !p->etext || !p->rodata || !p->erodata)
		return rv_err_set(err, RV_EUNSUPPORTED, "seal",
				  "the kernel's symbols do not say where text and rodata are");
	s = calloc(1, sizeof(*s));
	if (!s)
		return rv_err_set(err, RV_ENOMEM, "seal", "allocate");
	vm->seal = s;
	rc = view_init(vm, s, err);
	if (!rc)
		rc = rv_arch_gate_install(vm, err);
	if (!rc)
		rc = rv_memprot_add(vm->prot, rv_gpa_of(vm->gate->gpa), vm->gate->len, RV_OBJ_GATE,
				    "gate", err);
	/* The gate is guarded from the start; boot-time patching never comes here. */
	if (!rc)
		rc = rv_memprot_commit(vm->prot, err);
	/* Half a seal names nothing: a bell without a gate is a port where nobody listens. */
	if (rc)
		rv_seal_destroy(vm);
	return rc;
}

void rv_seal_destroy(struct rv_vm *vm)
{
	free(vm->seal);
	free(vm->gate);
	vm->seal = NULL;
	vm->gate = NULL;
}

/* Queue link-time [start, end), rounded out to pages, around the gate's own pages. */
static int queue(struct rv_vm *vm, uint64_t start, uint64_t end, enum rv_object kind,
		 const char *name, struct rv_err *err)
{
	const struct rv_boot_plan *p = vm->plan;
	uint64_t gpa = p->phys_base + ((start - p->info.link_base) & ~(PAGE - 1));
	uint64_t last = p->phys_base + ((end - p->info.link_base + PAGE - 1) & ~(PAGE - 1));
	uint64_t glo = vm->gate->gpa, ghi = glo + vm->gate->len;
	int rc;

	if (glo >= gpa && ghi <= last) {
		rc = glo > gpa
			     ? rv_memprot_add(vm->prot, rv_gpa_of(gpa), glo - gpa, kind, name, err)
			     : 0;
		if (rc)
			return rc;
		gpa = ghi;
	}
	return last > gpa ? rv_memprot_add(vm->prot, rv_gpa_of(gpa), last - gpa, kind, name, err)
			  : 0;
}

static void armed_event(struct rv_vm *vm, struct rv_vcpu *v, const char *object, uint64_t start,
			uint64_t end)
{
	const struct rv_boot_plan *p = vm->plan;
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_ARM};

	ev.vcpu = (int32_t)v->index;
	ev.target = start + p->virt_delta;
	ev.gpa = p->phys_base + (start - p->info.link_base);
	ev.size = (uint32_t)(end - start);
	snprintf(ev.engine, sizeof(ev.engine), "seal");
	snprintf(ev.object, sizeof(ev.object), "%s", object);
	snprintf(ev.detail, sizeof(ev.detail), "%llu KiB write-protected from outside",
		 (unsigned long long)((end - start + 1023) / 1024));
	(void)rv_vm_event(vm, &ev);
}

void rv_seal_ready(struct rv_vm *vm, struct rv_vcpu *v)
{
	const struct rv_boot_plan *p = vm->plan;
	struct rv_seal *s = vm->seal;
	struct rv_err err = {0};
	char buf[260];
	int rc = 0;

	/* Parked: code that runs is about to be redirected, and no write may slip between
	 * the last unguarded moment and the first guarded one. */
	rv_park(vm);
	if (s->armed) {
		rv_unpark(vm);
		return;
	}
	if (vm->policy.seal_text)
		rc = rv_arch_gate_arm(vm, &err);
	if (!rc && vm->policy.seal_text)
		rc = queue(vm, p->text, p->etext, RV_OBJ_TEXT, "text", &err);
	if (!rc && vm->policy.seal_rodata)
		rc = queue(vm, p->rodata, p->erodata, RV_OBJ_RODATA, "rodata", &err);
	if (!rc)
		rc = rv_memprot_commit(vm->prot, &err);
	s->armed = !rc;
	vm->sealed = !rc;
	rv_unpark(vm);
	if (rc) {
		struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_INTERNAL};

		ev.vcpu = -1;
		ev.gpa = ~0ull;
		snprintf(ev.engine, sizeof(ev.engine), "seal");
		snprintf(ev.object, sizeof(ev.object), "text");
		snprintf(ev.detail, sizeof(ev.detail), "arming failed: %.170s",
			 rv_err_str(&err, buf, sizeof(buf)));
		(void)rv_vm_event(vm, &ev);
		/* Whatever is thought of the failure, the protection is not there. */
		ev.kind = RV_EV_DEGRADE;
		(void)rv_vm_event(vm, &ev);
		return;
	}
	if (vm->policy.seal_text)
		armed_event(vm, v, "text", p->text, p->etext);
	if (vm->policy.seal_rodata)
		armed_event(vm, v, "rodata", p->rodata, p->erodata);
}

/* --- judging -------------------------------------------------------------------------- */

enum rv_action rv_seal_write(struct rv_vm *vm, struct rv_vcpu *v, const struct rv_guard *reg,
			     const struct rv_write *w)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_WRITE};
	const uint8_t *now = w->gpa.v == ~0ull ? NULL : rv_mem_ptr(vm, w->gpa, w->len);
	struct rv_guard_stats *st = rv_memprot_stats(vm->prot, reg->id);
	enum rv_action act;

	ev.vcpu = (int32_t)v->index;
	ev.pc = w->pc.v;
	ev.pc_exact = w->pc_exact;
	ev.cpl = w->cpl;
	ev.target = w->target.v;
	ev.gpa = w->gpa.v;
	ev.size = w->len;
	if (now) {
		ev.nold = (uint8_t)(w->len > sizeof(ev.old_bytes) ? sizeof(ev.old_bytes) : w->len);
		memcpy(ev.old_bytes, now, ev.nold);
	}
	ev.nnew = w->nbytes;
	memcpy(ev.new_bytes, w->bytes, w->nbytes);
	snprintf(ev.engine, sizeof(ev.engine), "seal");
	snprintf(ev.object, sizeof(ev.object), "%s", reg->object);
	snprintf(ev.insn, sizeof(ev.insn), "%s", w->insn);
	rv_seal_name(vm, v, &ev);
	act = rv_vm_event(vm, &ev);
	if (st) {
		__atomic_add_fetch(&st->faults, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(act == RV_ACT_RECORD ? &st->completed : &st->denied, 1,
				   __ATOMIC_RELAXED);
	}
	return act;
}

enum rv_action rv_seal_would(struct rv_vm *vm, const struct rv_guard *reg)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_WRITE};
	struct rv_verdict verdict;

	snprintf(ev.engine, sizeof(ev.engine), "seal");
	snprintf(ev.object, sizeof(ev.object), "%s", reg->object);
	rv_policy_decide(&vm->policy, &ev, &verdict);
	return (enum rv_action)verdict.action;
}

static void patch_event(struct rv_vm *vm, struct rv_vcpu *v, rv_gpa gpa, const uint8_t *old,
			const uint8_t *bytes, uint32_t len, rv_gva target)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_PATCH};

	ev.vcpu = (int32_t)v->index;
	ev.target = target.v;
	ev.gpa = gpa.v;
	ev.size = len;
	ev.nold = ev.nnew = (uint8_t)(len > sizeof(ev.old_bytes) ? sizeof(ev.old_bytes) : len);
	memcpy(ev.old_bytes, old, ev.nold);
	memcpy(ev.new_bytes, bytes, ev.nnew);
	snprintf(ev.engine, sizeof(ev.engine), "seal");
	snprintf(ev.object, sizeof(ev.object), "text");
	rv_seal_name(vm, v, &ev);
	(void)rv_vm_event(vm, &ev);
}

bool rv_seal_poke(struct rv_vm *vm, struct rv_vcpu *v, rv_gpa gpa, const void *bytes, uint32_t len,
		  rv_gva target)
{
	struct rv_guard first, last;
	struct rv_guard_stats *st;
	uint8_t *p;

	if (!rv_memprot_overlaps(vm->prot, gpa, 1, &first) ||
	    !rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa.v + len - 1), 1, &last) ||
	    first.kind != RV_OBJ_TEXT || last.kind != RV_OBJ_TEXT)
		return false;
	/* The gate lies within text: a poke that would run across it is not ours to do. */
	if (rv_memprot_overlaps(vm->prot, rv_gpa_of(vm->gate->gpa), 1, NULL) &&
	    gpa.v < vm->gate->gpa + vm->gate->len && vm->gate->gpa < gpa.v + len)
		return false;
	p = rv_mem_ptr(vm, gpa, len);
	if (!p)
		return false;
	if (vm->policy.journal_patches)
		patch_event(vm, v, gpa, p, bytes, len, target);
	/* One byte is patched at a time while the site may run (INT3, tail, first byte):
	 * the order comes from the guest, a plain copy is what it would have done. */
	memcpy(p, bytes, len);
	st = rv_memprot_stats(vm->prot, first.id);
	if (st)
		__atomic_add_fetch(&st->patched, 1, __ATOMIC_RELAXED);
	return true;
}
