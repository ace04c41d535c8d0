/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.h: kernel text and read-only data stay what they were once the guest has
 * made them read-only itself.
 */
#ifndef RV_VMM_SEAL_H
#define RV_VMM_SEAL_H

#include "vm.h"
#include "enforce/memprot.h"

/* A write that was caught, in the terms that every architecture shares. */
struct rv_write {
	rv_gva target;
	rv_gpa gpa;
	uint32_t len;
	rv_gva pc;
	bool pc_exact;
	uint8_t cpl;
	uint8_t bytes[64]; /* new bytes where they are known */
	uint8_t nbytes;
	char insn[96];
};

/* Plant the gate and make everything ready; the guest's own mark_rodata_ro arms it. */
int rv_seal_prepare(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
void rv_seal_destroy(struct rv_vm *vm);

/* Fill the names of an event on v from the guest's own tables. */
void rv_seal_name(struct rv_vm *vm, struct rv_vcpu *v, struct rv_event *ev);

/* The guest has finished its read-only set-up (doorbell READY, from the gate). */
void rv_seal_ready(struct rv_vm *vm, struct rv_vcpu *v);

/*
 * Judge a write to region reg and journal it. The symbols come from the guest's
 * own tables. Returns what the architecture must do with the instruction.
 */
enum rv_action rv_seal_write(struct rv_vm *vm, struct rv_vcpu *v, const struct rv_guard *reg,
			     const struct rv_write *w);

/* What the policy would answer to a write into that region; posts nothing. */
enum rv_action rv_seal_would(struct rv_vm *vm, const struct rv_guard *reg);

/*
 * An authorised poke (doorbell POKE): write len bytes at gpa through the monitor's
 * mapping where all of it is sealed text. false: not ours, the guest does it itself.
 */
bool rv_seal_poke(struct rv_vm *vm, struct rv_vcpu *v, rv_gpa gpa, const void *bytes, uint32_t len,
		  rv_gva target);

/* Lowest address of the kernel stack of the task that runs on v; 0: not known. */
uint64_t rv_seal_task_stack(struct rv_vm *vm, struct rv_vcpu *v);

/* Run-time address that the kernel itself has for a place in its image; 0: outside. */
uint64_t rv_seal_image_va(struct rv_vm *vm, uint64_t gpa);

#endif
