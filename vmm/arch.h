/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arch.h: the complete list of what depends on the machine while a guest runs. Neutral
 * code calls these and asks no further. (What doctor asks of the machine is in caps.h
 * and proof.h.)
 */
#ifndef RV_VMM_ARCH_H
#define RV_VMM_ARCH_H

#include "vm.h"

/* What the loader may choose from; bytes. */
struct rv_arch_place {
	uint64_t virt_align, phys_align;
	/* bases link_base + virt_first + n * virt_align, n < virt_slots */
	uint64_t virt_first, virt_slots;
	uint64_t phys_min;    /* lowest gpa of flat offset 0 */
	bool self_relocating; /* the kernel applies its relocations itself */
	char why[128];	      /* why its virtual base cannot be chosen; "" when it can */
};

/* What is added to the command line that the operator gave (may be NULL): "" or words
 * with a space in front. */
const char *rv_arch_append(const char *given);

/* Type argument of KVM_CREATE_VM for a VM with so many bytes of RAM. */
unsigned long rv_arch_vm_type(int kvm_fd, uint64_t memory);

/* The guest physical map: how RAM of this size is cut around the MMIO hole. */
uint32_t rv_arch_ram_layout(uint64_t size, struct rv_ram out[2]);
/* MMIO base and interrupt line of virtio slot i. */
void rv_arch_virtio_slot(uint32_t i, struct rv_virtio_slot *out);

/* Before vcpus exist: interrupt controller, timers, MSR filters. Owns vm->arch. */
int rv_arch_vm_init(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
void rv_arch_vm_deinit(struct rv_vm *vm);
/* Platform devices: console port, power management, reset. */
int rv_arch_devices(struct rv_vm *vm, struct rv_chardev *console, struct rv_err *err) RV_MUST_CHECK;
/* After KVM_CREATE_VCPU: CPU identity. The memory layout does not matter yet. */
int rv_arch_vcpu_init(struct rv_vm *vm, struct rv_vcpu *vcpu, struct rv_err *err) RV_MUST_CHECK;

/* Loader process: is the image one we can start, what may be chosen (*out is zeroed
 * before), where it enters. */
int rv_arch_image_check(const struct rv_image *img, struct rv_err *err) RV_MUST_CHECK;
void rv_arch_image_place(struct rv_vm *vm, const struct rv_image *img, struct rv_arch_place *out);
/* Highest address an initrd may end at. */
uint64_t rv_arch_initrd_max(const struct rv_image_info *info);

/* Boot parameters, firmware tables, first register state; the plan is complete. */
int rv_arch_boot_setup(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

/* An exit that the neutral loop does not know. true: handled, go on. */
bool rv_arch_exit(struct rv_vm *vm, struct rv_vcpu *vcpu);
/* KVM_RUN failed with EFAULT: a write to protected memory, or worse. true: go on. */
bool rv_arch_fault(struct rv_vm *vm, struct rv_vcpu *vcpu);
/* KVM_EXIT_MMIO that lands in RAM: a write is the emulated form of the same, a read
 * comes from a page that KVM was not given. */
bool rv_arch_mmio_ram(struct rv_vm *vm, struct rv_vcpu *vcpu);

/* For the watchdog, with the vcpu out of KVM_RUN: a digest of what moves when it
 * makes progress, its pc, and whether it waits for an interrupt. */
int rv_arch_vcpu_pulse(struct rv_vcpu *vcpu, uint64_t *digest, uint64_t *pc, bool *halted);

/* What the guest view needs of a vcpu that is out of KVM_RUN: how addresses are
 * translated, where the stack is, and the kernel's per-CPU base (rv_task_current()). */
struct rv_paging_regs;
struct rv_unwind_regs;
int rv_arch_vcpu_view(struct rv_vcpu *vcpu, struct rv_paging_regs *paging,
		      struct rv_unwind_regs *unwind, uint64_t *percpu) RV_MUST_CHECK;

/* Plant the gate in the loaded image; arm what must be armed before the first
 * instruction. RV_EUNSUPPORTED with the reason where the kernel has no room. */
int rv_arch_gate_install(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

/* Everything that waits until the guest's boot-time patching is over: redirect the
 * kernel's patching function, settle our returns. Every vcpu is parked. */
int rv_arch_gate_arm(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

#endif
