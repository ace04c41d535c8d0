/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c (x86_64): plant the stubs in the kernel's int3 padding, redirect the call
 * sites, answer the doorbells.
 */
#include "x86.h"
#include "arch.h"
#include "enforce/gate.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"
#include "place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define PAGE	 4096ull
#define POKE_MAX 4096u /* text_poke takes at most a page; everything real is <= 16 bytes */

extern const uint8_t rv_stub_x86_start[], rv_stub_x86_end[];
extern const uint8_t rv_stub_x86_ready[], rv_stub_x86_ready_call[], rv_stub_x86_ready_bell[];
extern const uint8_t rv_stub_x86_ready_ret[];
extern const uint8_t rv_stub_x86_poke[], rv_stub_x86_poke_jmp[];

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

static void set_rel32(uint8_t *insn, uint64_t insn_va, uint64_t target)
{
	int32_t rel = (int32_t)(target - (insn_va + 5));

	memcpy(insn + 1, &rel, 4);
}

/*
 * One row of the redirect table: the site's 5-byte call or jump is turned to our stub.
 * The original opcode and target are checked in the loaded image, not taken on trust.
 */
static int check_site(struct rv_vm *vm, const char *name, uint8_t **out, struct rv_err *err)
{
	const struct rv_site *s = rv_plan_site(vm->plan, name);
	uint8_t *p;
	int32_t rel;

	if (!s || !s->found)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate", "site %s: %.100s", name,
				  s ? s->reason : "not looked for");
	p = image_ptr(vm, s->va, 5);
	if (!p || s->len != 5 || (p[0] != 0xe8 && p[0] != 0xe9) || memcmp(p, s->bytes, 5))
		return rv_err_at(err, RV_EBADDATA, s->va, "gate",
				 "site %s does not hold the bytes that were found there", name);
	memcpy(&rel, p + 1, 4);
	if (s->va + 5 + (uint64_t)(int64_t)rel != s->target)
		return rv_err_at(err, RV_EBADDATA, s->va, "gate", "site %s leads elsewhere", name);
	if (out)
		*out = p;
	return 0;
}

static int redirect(struct rv_vm *vm, const char *name, uint64_t stub, struct rv_err *err)
{
	uint8_t *p;
	int rc = check_site(vm, name, &p, err);

	if (!rc)
		set_rel32(p, rv_plan_site(vm->plan, name)->va, stub);
	return rc;
}

static int fix_unwind(struct rv_vm *vm, struct rv_err *err)
{
	const struct rv_padding *pad = &vm->plan->pad;
	uint8_t *p;

	if (!pad->has_orc)
		return 0; /* a kernel without ORC unwinds by frame pointers anyway */
	p = image_ptr(vm, pad->orc_va, 6);
	if (!p || memcmp(p, pad->orc_old, 6))
		return rv_err_at(err, RV_EBADDATA, pad->orc_va, "gate",
				 "the unwind entry is not the one that was found");
	memcpy(p, pad->orc_new, 6);
	return 0;
}

/* A page of the padding, drawn uniformly, all of it still padding. */
static int choose_page(struct rv_vm *vm, uint64_t *va_out, uint8_t **ptr_out, struct rv_err *err)
{
	const struct rv_padding *pad = &vm->plan->pad;
	uint64_t first = (pad->va + PAGE - 1) & ~(PAGE - 1), pages;
	uint8_t *p;

	if (!pad->found)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate", "no padding in text: %.120s",
				  pad->reason);
	pages = pad->va + pad->len > first ? (pad->va + pad->len - first) / PAGE : 0;
	if (!pages)
		return rv_err_at(err, RV_EUNSUPPORTED, pad->va, "gate",
				 "the padding in text holds no whole page");
	*va_out = first + rv_random_below(pages) * PAGE;
	p = image_ptr(vm, *va_out, PAGE);
	for (uint64_t i = 0; p && i < PAGE; i++)
		if (p[i] != 0xcc)
			p = NULL;
	if (!p)
		return rv_err_at(err, RV_EBADDATA, *va_out, "gate", "the padding is not padding");
	*ptr_out = p;
	return 0;
}

static void add_bell(struct rv_vm *vm, enum rv_doorbell bell, uint64_t link_va)
{
	struct rv_gate *g = vm->gate;

	g->bells[g->nbells].bell = bell;
	g->bells[g->nbells].va = run_va(vm->plan, link_va);
	g->nbells++;
}

int rv_arch_gate_install(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_boot_plan *p = vm->plan;
	size_t len = (size_t)(rv_stub_x86_end - rv_stub_x86_start);
	const struct rv_site *ready = rv_plan_site(p, "mark_rodata_ro");
	const struct rv_site *poke = rv_plan_site(p, "text_poke_memcpy");
	const struct rv_site *poke_call = rv_plan_site(p, "text_poke_memcpy_call");
	uint64_t page = 0, at, ready_stub;
	uint8_t *code = NULL;
	int rc;

	if (!poke_call || !poke_call->found)
		return rv_err_set(err, RV_EUNSUPPORTED, "gate", "site text_poke_memcpy_call: %.100s",
				  poke_call ? poke_call->reason : "not looked for");
	rc = choose_page(vm, &page, &code, err);
	if (rc)
		return rc;
	vm->gate = calloc(1, sizeof(*vm->gate));
	if (!vm->gate)
		return rv_err_set(err, RV_ENOMEM, "gate", "allocate");
	/* A random 16-byte slot in the page; the rest stays int3. */
	at = rv_random_below((PAGE - len) / 16 + 1) * 16;
	code += at;
#define AT(label) (page + at + (uint64_t)((label) - rv_stub_x86_start))
	/* All is checked before the first byte is changed: where the policy lets the VM run
	 * without the seal, its kernel must not call a stub that is not there. */
	rc = check_site(vm, "mark_rodata_ro", NULL, err);
	if (!rc)
		rc = check_site(vm, "text_poke_memcpy", NULL, err);
	if (!rc)
		rc = fix_unwind(vm, err);
	if (rc)
		return rc;
	memcpy(code, rv_stub_x86_start, len);
	set_rel32(code + (rv_stub_x86_ready_call - rv_stub_x86_start), AT(rv_stub_x86_ready_call),
		  ready->target);
	set_rel32(code + (rv_stub_x86_poke_jmp - rv_stub_x86_start), AT(rv_stub_x86_poke_jmp),
		  poke->target);
	ready_stub = AT(rv_stub_x86_ready);
	add_bell(vm, RV_BELL_READY, AT(rv_stub_x86_ready_bell));
	add_bell(vm, RV_BELL_POKE, AT(rv_stub_x86_poke));
#undef AT
	vm->gate->va = run_va(p, page);
	vm->gate->gpa = p->phys_base + (page - p->info.link_base);
	vm->gate->len = PAGE;
	vm->gate->ready_ret_gpa = vm->gate->gpa + at +
				  (uint64_t)(rv_stub_x86_ready_ret - rv_stub_x86_start);
	vm->gate->poke_link_va = page + at + (uint64_t)(rv_stub_x86_poke - rv_stub_x86_start);
	vm->gate->poke_ret_va = run_va(p, poke_call->va) + 1;
	vm->gate->poke_ret_len = poke_call->len;
	return redirect(vm, "mark_rodata_ro", ready_stub, err);
}

/*
 * The kernel has run its alternatives by now: where it settled on a return thunk, our
 * ret becomes a jump there, as its own returns have.
 */
static void fix_returns(struct rv_vm *vm)
{
	const struct rv_boot_plan *p = vm->plan;
	uint8_t *var = image_ptr(vm, p->x86_return_thunk_var, 8);
	uint8_t *ret = rv_mem_ptr(vm, rv_gpa_of(vm->gate->ready_ret_gpa), 5);
	uint64_t thunk;

	if (!p->x86_return_thunk_var || !p->x86_return_thunk_fn || !var || !ret)
		return;
	memcpy(&thunk, var, 8);
	if (thunk == run_va(p, p->x86_return_thunk_fn) || thunk < run_va(p, p->text) ||
	    thunk >= run_va(p, p->etext))
		return;
	ret[0] = 0xe9;
	set_rel32(ret, vm->gate->va + (vm->gate->ready_ret_gpa - vm->gate->gpa), thunk);
}

/*
 * Boot-time patching is over. Only now is the kernel's patching function led through
 * the gate: until here its thousands of patches (8700 lock prefixes alone, on one
 * vcpu) would each have cost an exit for nothing.
 */
int rv_arch_gate_arm(struct rv_vm *vm, struct rv_err *err)
{
	fix_returns(vm);
	return redirect(vm, "text_poke_memcpy", vm->gate->poke_link_va, err);
}

/* text_poke_memcpy(dst, src, len) is about to copy; return address on the stack. */
static bool on_poke(struct rv_vm *vm, struct rv_vcpu *v, struct kvm_regs *r)
{
	uint8_t bytes[POKE_MAX];
	uint64_t ret, gpa, last, va = 0;
	uint32_t len = (uint32_t)r->rdx, first;
	const struct rv_boot_plan *p = vm->plan;

	if (!r->rdx || r->rdx > POKE_MAX)
		return false;
	if (!rv_x86_read_virt(vm, v, r->rsp, &ret, 8) ||
	    ret - vm->gate->poke_ret_va >= vm->gate->poke_ret_len)
		return false;
	if (!rv_x86_translate(v, r->rdi, &gpa, NULL) ||
	    !rv_x86_translate(v, r->rdi + len - 1, &last, NULL) ||
	    !rv_x86_read_virt(vm, v, r->rsi, bytes, len))
		return false;
	/* __text_poke maps two neighbouring pages when the bytes cross one. */
	first = (uint32_t)(PAGE - (gpa & (PAGE - 1)));
	if (first < len && last != gpa + len - 1)
		return false;
	if (gpa >= p->phys_base && gpa - p->phys_base < p->info.mem_size)
		va = run_va(p, p->info.link_base + (gpa - p->phys_base));
	if (!rv_seal_poke(vm, v, rv_gpa_of(gpa), bytes, len, rv_gva_of(va)))
		return false;
	r->rip = ret;
	r->rsp += 8;
	return true;
}

static void bad_bell(struct rv_vm *vm, struct rv_vcpu *v, uint64_t rip, uint16_t port)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_BAD_DOORBELL};
	struct kvm_sregs s;
	uint8_t cpl;

	if (ioctl(v->fd, KVM_GET_SREGS, &s))
		return;
	cpl = s.ss.dpl & 3;
	ev.vcpu = (int32_t)v->index;
	ev.pc = rip;
	ev.pc_exact = 1;
	ev.cpl = cpl;
	ev.gpa = ~0ull;
	ev.value = port;
	snprintf(ev.engine, sizeof(ev.engine), "gate");
	snprintf(ev.object, sizeof(ev.object), "doorbell");
	snprintf(ev.detail, sizeof(ev.detail), "port 0x%x written from outside the gate", port);
	rv_seal_name(vm, v, &ev);
	if (rv_vm_event(vm, &ev) == RV_ACT_FAULT)
		(void)rv_x86_refuse(vm, v, cpl);
}

bool rv_x86_doorbell(struct rv_vm *vm, struct rv_vcpu *v, uint16_t port)
{
	const struct rv_gate *g = vm->gate;
	struct kvm_regs r;
	bool ours = false;

	if (!g || (port != RV_BELL_READY && port != RV_BELL_POKE))
		return false;
	if (ioctl(v->fd, KVM_GET_REGS, &r))
		return false;
	for (uint32_t i = 0; i < g->nbells; i++)
		ours |= g->bells[i].bell == port && g->bells[i].va == r.rip;
	if (!ours) {
		bad_bell(vm, v, r.rip, port);
		return true;
	}
	vm->bells++;
	if (port == RV_BELL_READY) {
		rv_seal_ready(vm, v);
	} else if (on_poke(vm, v, &r) && ioctl(v->fd, KVM_SET_REGS, &r)) {
		rv_vm_end(vm, RV_END_FAILED, "vcpu %u: set registers after a poke", v->index);
	}
	return true;
}
