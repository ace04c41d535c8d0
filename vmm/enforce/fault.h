/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h: what is the same on every architecture when a write has met a protection.
 *
 * Which bytes an instruction reaches, and how it is let happen or refused, is the
 * architecture's; what it reached, what may be opened for it and what the journal says of a
 * fault that makes no sense is here. Called by the vcpu's own thread, out of KVM_RUN.
 */
#ifndef RV_VMM_FAULT_H
#define RV_VMM_FAULT_H

#include "enforce/memprot.h"
#include "vm.h"

#define RV_HITS_MAX 4 /* regions that one instruction may meet: two stores of two pages */

/* A region that a store reaches, with its first byte there. */
struct rv_hit {
	struct rv_guard reg;
	uint64_t va, gpa; /* gpa ~0: not known */
	uint32_t len;
};

/* Note a region once; *n is the number of hits. One too many is left out. */
void rv_hit_add(struct rv_hit hit[RV_HITS_MAX], uint32_t *n, const struct rv_guard *reg,
		uint64_t va, uint64_t gpa, uint64_t len);
/* A fault that is real, and whose place is not known: judged as a write into text. */
void rv_hit_unknown(struct rv_hit *out);

/*
 * Open the page of gpa for one instruction, with every other vcpu parked, if the policy
 * records writes there; else it stays shut. The guest can change its page tables after the
 * write was judged: what is opened is asked for again, by the address that holds now.
 */
int rv_fault_open_page(struct rv_vm *vm, uint64_t gpa, struct rv_err *err) RV_MUST_CHECK;
/* The same for everything that is guarded: the instruction's stores are not known. */
int rv_fault_open_recorded(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
/* Shut all that is guarded. */
int rv_fault_shut(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

/* The same instruction again and again, and no exit of another kind since: the CPU itself
 * may write, where a guarded page holds page tables (accessed and dirty bits). */
bool rv_fault_stuck(struct rv_vcpu *v, uint64_t pc);
/* A fault that no region explains: another vcpu changed the page tables or the code in
 * between. The instruction is tried again; every thousandth time is an event. */
void rv_fault_unexplained(struct rv_vm *vm, struct rv_vcpu *v, uint64_t pc, const char *insn);
/* Let happen, the instruction would have reached more than what was judged. */
void rv_fault_beyond(struct rv_vm *vm, struct rv_vcpu *v, const struct rv_hit *h, uint64_t pc,
		     const char *insn);

#endif
