/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c: what is the same on every architecture when a write has met a protection. */
#include "enforce/fault.h"
#include "enforce/seal.h"

#include <stdio.h>

/* Retries of faults that no region explains, before they are evidence of something. */
#define SPURIOUS_MAX 1000u
/* And of one instruction in a row, before it is judged as one whose stores are not known. */
#define STUCK_MAX 16u

void rv_hit_add(struct rv_hit hit[RV_HITS_MAX], uint32_t *n, const struct rv_guard *reg,
		uint64_t va, uint64_t gpa, uint64_t len)
{
	for (uint32_t i = 0; i < *n; i++)
		if (hit[i].reg.id == reg->id)
			return;
	if (*n < RV_HITS_MAX)
		hit[(*n)++] = (struct rv_hit){*reg, va, gpa, (uint32_t)len};
}

void rv_hit_unknown(struct rv_hit *out)
{
	*out = (struct rv_hit){.gpa = ~0ull};
	out->reg.kind = RV_OBJ_TEXT;
	out->reg.id = UINT32_MAX;
	snprintf(out->reg.object, sizeof(out->reg.object), "%s", RV_OBJECT_UNKNOWN);
}

int rv_fault_open_page(struct rv_vm *vm, uint64_t gpa, struct rv_err *err)
{
	struct rv_guard reg;

	if (!rv_memprot_overlaps(vm->prot, rv_gpa_of(gpa), 1, &reg) ||
	    rv_seal_would(vm, &reg) != RV_ACT_RECORD)
		return 0;
	return rv_memprot_open(vm->prot, rv_gpa_of(gpa), 1, err);
}

int rv_fault_open_recorded(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_guard reg;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < RV_MEMPROT_MAX; i++)
		if (rv_memprot_get(vm->prot, i, &reg) && rv_seal_would(vm, &reg) == RV_ACT_RECORD)
			rc = rv_memprot_open(vm->prot, reg.gpa, reg.len, err);
	return rc;
}

int rv_fault_shut(struct rv_vm *vm, struct rv_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < vm->mem.nram; i++) {
		const struct rv_ram *r = &vm->mem.ram[i];
		int one = rv_memprot_shut(vm->prot, r->gpa, r->len, rc ? NULL : err);

		rc = rc ? rc : one;
	}
	return rc;
}

bool rv_fault_stuck(struct rv_vcpu *v, uint64_t pc)
{
	bool again = v->stuck_pc == pc && v->exits == v->stuck_exits + 1;

	v->stuck_pc = pc;
	v->stuck_exits = v->exits;
	v->stuck_count = again ? v->stuck_count + 1 : 1;
	return v->stuck_count >= STUCK_MAX;
}

static void post(struct rv_vm *vm, struct rv_vcpu *v, struct rv_event *ev, uint64_t pc,
		 const char *insn)
{
	ev->version = RV_EVENT_VERSION;
	ev->kind = RV_EV_GUEST_BAD;
	ev->vcpu = (int32_t)v->index;
	ev->pc = pc;
	ev->pc_exact = 1;
	snprintf(ev->engine, sizeof(ev->engine), "seal");
	snprintf(ev->insn, sizeof(ev->insn), "%s", insn);
	rv_seal_name(vm, v, ev);
	(void)rv_vm_event(vm, ev);
}

void rv_fault_unexplained(struct rv_vm *vm, struct rv_vcpu *v, uint64_t pc, const char *insn)
{
	uint64_t n = atomic_fetch_add(&vm->spurious, 1) + 1;
	struct rv_event ev = {.gpa = ~0ull, .value = n};

	if (n % SPURIOUS_MAX)
		return;
	snprintf(ev.object, sizeof(ev.object), "vcpu %u", v->index);
	snprintf(ev.detail, sizeof(ev.detail),
		 "%llu memory faults that the instruction does not explain", (unsigned long long)n);
	post(vm, v, &ev, pc, insn);
}

void rv_fault_beyond(struct rv_vm *vm, struct rv_vcpu *v, const struct rv_hit *h, uint64_t pc,
		     const char *insn)
{
	struct rv_event ev = {.gpa = h->gpa};

	snprintf(ev.object, sizeof(ev.object), "%s", h->reg.object);
	snprintf(ev.detail, sizeof(ev.detail),
		 "refused after all: it reaches memory that the policy does not let be written");
	post(vm, v, &ev, pc, insn);
}
