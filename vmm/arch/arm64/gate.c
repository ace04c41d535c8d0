/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c (arm64): plant the stub in the kernel's zero padding, redirect the call site,
 * make a hole for the doorbell, answer it.
 *
 * The doorbell is the page behind the stub's: it is taken out of the memory that KVM
 * has, so that a load from it comes here. A store to it, or to the stub, is a write into
 * the gate like any other. The kernel's text patching needs no hook: every patch is one
 * store through copy_to_kernel_nofault(), and write.c knows it when it faults.
 */
#include "arm64.h"
#include "arch.h"
#include "base/a64.h"
#include "enforce/gate.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"
#include "place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE	  4096ull
#define PAIR	  (2 * PAGE) /* the stub's page and the doorbell's */
#define MIB2	  (2ull << 20)
#define BL_REACH  (128ll << 20)
#define ADR_REACH (1ll << 20)
#define BELL_OFF  8u /* bytes of the doorbell's page for each bell */

extern const uint8_t rv_stub_arm64_start[], rv_stub_arm64_end[];
extern const uint8_t rv_stub_arm64_ready[], rv_stub_arm64_ready_call[];
extern const uint8_t rv_stub_arm64_ready_hole[], rv_stub_arm64_ready_bell[];

#define OFF(label) ((uint64_t)((label)-rv_stub_arm64_start)) /* in the stub */

static uint64_t run_va(const struct rv_boot_plan *p, uint64_t link_va)
{
	return link_va + p->virt_delta;
}

/* The monitor's pointer to link-time address va of the loaded kernel. */
static uint8_t *image_ptr(struct rv_vm *vm, uint64_t va, uint64_t len)
{
	const struct rv_boot_plan *p = vm->plan;

	if (va < p->info.link_base || va - p->info.link_base >= p->info.mem_size ||
	    len > p->info.mem_size - (va - p->info.link_base))
		return NULL;
	return rv_mem_ptr(vm, rv_gpa_of(p->phys_base + (va - p->info.link_base)), len);
}

/* --- instructions (Arm ARM, C6.2: BL, ADR) -------------------------------------- */

static bool put_bl(uint8_t *at, uint64_t va, uint64_t target)
{
	int64_t rel = (int64_t)(target - va);
	uint32_t w = RV_A64_BL | ((uint32_t)(rel >> 2) & 0x03ffffffu);

	if (rel & 3 || rel < -BL_REACH || rel >= BL_REACH)
		return false;
	memcpy(at, &w, sizeof(w));
	return true;
}

/* The register stays what it is. */
static bool put_adr(uint8_t *at, uint64_t va, uint64_t target)
{
	int64_t rel = (int64_t)(target - va);
	uint32_t w;

	if (rel < -ADR_REACH || rel >= ADR_REACH)
		return false;
	memcpy(&w, at, sizeof(w));
	w = (w & 0x9f00001fu) | ((uint32_t)rel & 3) << 29 | ((uint32_t)(rel >> 2) & 0x7ffffu) << 5;
	memcpy(at, &w, sizeof(w));
	return true;
}

static bool bl_target(const uint8_t *at, uint64_t va, uint64_t *target)
{
	uint32_t w;

	memcpy(&w, at, sizeof(w));
	return rv_a64_bl_target(w, va, target);
}

/* --- planting --------------------------------------------------------------------- */

/* The original instruction is checked in the loaded image, not taken on trust. */
static int check_site(struct rv_vm *vm, const char *name, uint8_t **out, struct rv_err *err)
{
	const struct rv_site *s = rv_plan_site(vm->plan, name);
	uint64_t target;
	uint8_t *p;

	if (!s || !s->found)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate", "site %s: %.100s", name,
				  s ? s->reason : "not looked for");
	p = image_ptr(vm, s->va, 4);
	if (!p || s->va % 4 || s->len != 4 || memcmp(p, s->bytes, 4))
		return rv_err_at(err, RV_EBADDATA, s->va, "gate",
				 "site %s does not hold the bytes that were found there", name);
	if (!bl_target(p, s->va, &target) || target != s->target)
		return rv_err_at(err, RV_EBADDATA, s->va, "gate", "site %s leads elsewhere", name);
	*out = p;
	return 0;
}

/* Two pages of the padding, drawn uniformly, all of them still padding. */
static int choose_pages(struct rv_vm *vm, uint64_t *va_out, uint8_t **ptr_out, struct rv_err *err)
{
	const struct rv_padding *pad = &vm->plan->pad;
	uint64_t first = (pad->va + PAGE - 1) & ~(PAGE - 1), pages;
	uint8_t *p;

	if (!pad->found)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate", "no padding in text: %.120s",
				  pad->reason);
	pages = pad->va + pad->len > first ? (pad->va + pad->len - first) / PAGE : 0;
	if (pages < 2)
		return rv_err_at(err, RV_EUNSUPPORTED, pad->va, "gate",
				 "the padding in text holds no two whole pages");
	*va_out = first + rv_random_below(pages - 1) * PAGE;
	p = image_ptr(vm, *va_out, PAIR);
	for (uint64_t i = 0; p && i < PAIR; i++)
		if (p[i])
			p = NULL;
	if (!p)
		return rv_err_at(err, RV_EBADDATA, *va_out, "gate", "the padding is not padding");
	*ptr_out = p;
	return 0;
}

/*
 * Where the kernel patches its text: the function that stores, and the places behind the
 * calls of it that may lead to text: in __aarch64_insn_write, and (v6.4 on) for ftrace's
 * literals in aarch64_insn_write_literal_u64.
 */
static int find_pokes(struct rv_vm *vm, struct rv_err *err)
{
	static const char *const writers[RV_ARM64_POKERS] = {"__aarch64_insn_write",
							     "aarch64_insn_write_literal_u64"};
	const struct rv_boot_plan *p = vm->plan;
	struct rv_kallsyms k = {.mem = image_ptr(vm, p->info.link_base, p->info.mem_size),
				.len = p->info.mem_size,
				.link_base = p->info.link_base,
				.lay = p->ksym};
	struct rv_arch_vm *a = vm->arch;
	struct rv_symbol fn, by;
	int rc;

	rc = rv_kallsyms_lookup(&k, "copy_to_kernel_nofault", &fn, err);
	if (rc)
		return rc;
	a->poke_fn = run_va(p, fn.va);
	a->poke_len = fn.size;
	a->npokers = 0;
	for (uint32_t i = 0; i < RV_ARM64_POKERS; i++) {
		const uint8_t *code;
		uint64_t target;

		if (rv_kallsyms_lookup(&k, writers[i], &by, NULL))
			continue;
		code = by.size > PAGE ? NULL : image_ptr(vm, by.va, by.size);
		for (uint64_t off = 0; code && off + 4 <= by.size; off += 4)
			if (bl_target(code + off, by.va + off, &target) && target == fn.va &&
			    a->npokers < RV_ARM64_POKERS)
				a->poker[a->npokers++] = run_va(p, by.va + off + 4);
	}
	if (!a->npokers)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate",
				  "__aarch64_insn_write does not call copy_to_kernel_nofault");
	return 0;
}

static int fill_stub(struct rv_vm *vm, uint8_t *code, uint64_t va, uint64_t hole, uint64_t ready,
		     struct rv_err *err)
{
	const struct rv_site *s = rv_plan_site(vm->plan, "mark_rodata_ro");
	uint8_t site[4];

	memcpy(code, rv_stub_arm64_start, OFF(rv_stub_arm64_end));
	if (!put_bl(code + OFF(rv_stub_arm64_ready_call), va + OFF(rv_stub_arm64_ready_call),
		    s->target) ||
	    !put_adr(code + OFF(rv_stub_arm64_ready_hole), va + OFF(rv_stub_arm64_ready_hole),
		     hole) ||
	    !put_bl(site, s->va, ready)) {
		memset(code, 0, OFF(rv_stub_arm64_end));
		return rv_err_at(err, RV_EUNSUPPORTED, va, "gate", "the padding is out of reach");
	}
	return 0;
}

int rv_arch_gate_install(struct rv_vm *vm, struct rv_err *err)
{
	const struct rv_boot_plan *p = vm->plan;
	size_t len = (size_t)(rv_stub_arm64_end - rv_stub_arm64_start);
	uint64_t page = 0, at, gpa;
	uint8_t *code = NULL, *site = NULL;
	struct rv_gate *g;
	int rc;

	if (sysconf(_SC_PAGESIZE) != (long)PAGE)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate",
				  "the host has pages of %ld bytes, expected 4096",
				  sysconf(_SC_PAGESIZE));
	/* All is checked before the first byte is changed: where the policy lets the VM run
	 * without the seal, its kernel must not call a stub that is not there. */
	rc = choose_pages(vm, &page, &code, err);
	if (!rc)
		rc = check_site(vm, "mark_rodata_ro", &site, err);
	if (!rc)
		rc = find_pokes(vm, err);
	if (!rc)
		rc = rv_arm64_view_init(vm, err);
	if (rc)
		return rc;
	g = vm->gate = calloc(1, sizeof(*vm->gate));
	if (!g)
		return rv_err_set(err, RV_ENOMEM, "gate", "allocate");
	/* A random 16-byte slot in the page; the rest stays zeros, which trap. */
	at = rv_random_below((PAGE - len) / 16 + 1) * 16;
	rc = fill_stub(vm, code + at, page + at, page + PAGE, page + at + OFF(rv_stub_arm64_ready),
		       err);
	if (rc)
		return rc;
	gpa = p->phys_base + (page - p->info.link_base);
	rc = rv_mem_punch(vm, rv_gpa_of(gpa + PAGE), PAGE, err);
	if (rc)
		return rc;
	vm->arch->hole = gpa + PAGE;
	g->va = run_va(p, page);
	g->gpa = gpa;
	g->len = PAIR;
	g->nbells = 1;
	g->bells[0].bell = RV_BELL_READY;
	g->bells[0].va = run_va(p, page + at + OFF(rv_stub_arm64_ready_bell));
	(void)put_bl(site, rv_plan_site(p, "mark_rodata_ro")->va,
		     page + at + OFF(rv_stub_arm64_ready));
	return 0;
}

/* Nothing waits for the end of boot-time patching: see above. */
int rv_arch_gate_arm(struct rv_vm *vm, struct rv_err *err)
{
	(void)vm, (void)err;
	return 0;
}

/* --- ringing ------------------------------------------------------------------------ */

/*
 * The stub rang at another address than the one that follows from the seed: everything
 * that is known of the kernel's addresses is wrong, and nothing may be armed by them.
 */
static void misplaced(struct rv_vm *vm, struct rv_vcpu *v, uint64_t pc, uint64_t expected)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_INTERNAL};

	ev.vcpu = (int32_t)v->index;
	ev.pc = pc;
	ev.pc_exact = 1;
	ev.gpa = ~0ull;
	snprintf(ev.engine, sizeof(ev.engine), "seal");
	snprintf(ev.object, sizeof(ev.object), "text");
	snprintf(ev.detail, sizeof(ev.detail),
		 "not armed: the gate runs at 0x%llx, expected 0x%llx: the kernel has not "
		 "followed its seed",
		 (unsigned long long)pc, (unsigned long long)expected);
	(void)rv_vm_event(vm, &ev);
	ev.kind = RV_EV_DEGRADE;
	(void)rv_vm_event(vm, &ev);
}

/*
 * A load from the doorbell's page. Others than the stub may look there, who dump the
 * kernel's memory: they read zeros, which is what is there.
 */
bool rv_arm64_doorbell(struct rv_vm *vm, struct rv_vcpu *v)
{
	const struct rv_gate *g = vm->gate;
	struct kvm_run *run = v->run;
	uint64_t pc, off = run->mmio.phys_addr - vm->arch->hole;

	memset(run->mmio.data, 0, sizeof(run->mmio.data));
	if (!g || rv_arm64_get(v->fd, ARM64_PC, &pc))
		return true;
	for (uint32_t i = 0; i < g->nbells; i++) {
		uint64_t va = g->bells[i].va;

		if (off != (uint64_t)g->bells[i].bell * BELL_OFF)
			continue;
		if (pc != va) {
			/* Once armed the place is proven: who else reads here, reads. */
			if (!vm->sealed && pc >> 63 && !((pc - va) % MIB2))
				misplaced(vm, v, pc, va);
			continue;
		}
		vm->bells++;
		rv_seal_ready(vm, v);
	}
	return true;
}
