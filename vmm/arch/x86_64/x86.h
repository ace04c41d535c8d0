/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86.h: internal contract of the x86_64 half, and its guest physical map.
 *
 *	0x0000_0000_0000  +-------------------------------+
 *	                  | RAM                           |
 *	       0x0000_6000|   GDT                         |
 *	       0x0000_7000|   boot_params (zero page)     |
 *	       0x0000_8000|   setup_data (random seed)    |
 *	       0x0000_9000|   identity page tables        |
 *	       0x0002_0000|   command line                |
 *	       0x0009_fc00+-------------------------------+
 *	                  | reserved (e820)               |
 *	       0x000e_0000|   ACPI tables                 |
 *	       0x0010_0000+-------------------------------+
 *	                  | RAM: kernel, initrd, ...      |
 *	 at most 3 GiB    +-------------------------------+
 *	                  | nothing                       |
 *	       0xd000_0000| virtio-mmio slots, 4 KiB each |
 *	       0xfec0_0000| IOAPIC (KVM)                  |
 *	       0xfee0_0000| local APIC (KVM)              |
 *	       0xfffb_c000| KVM's identity map and TSS    |
 *	     0x1_0000_0000+-------------------------------+
 *	                  | RAM above 4 GiB               |
 *	                  +-------------------------------+
 */
#ifndef RV_VMM_X86_H
#define RV_VMM_X86_H

#include "vm.h"

#include <stdatomic.h>

#define X86_GDT		  0x6000ull
#define X86_BOOT_PARAMS	  0x7000ull
#define X86_SETUP_DATA	  0x8000ull
#define X86_PAGE_TABLES	  0x9000ull
#define X86_PAGE_TABLES_N 12u /* pages: PML4, PDPT, ten page directories */
#define X86_CMDLINE	  0x20000ull
#define X86_CMDLINE_MAX	  4096u
#define X86_LOW_RAM_END	  0x9fc00ull
#define X86_ACPI	  0xe0000ull
#define X86_ACPI_LEN	  0x10000ull
#define X86_HIGH_RAM	  0x100000ull
#define X86_HOLE	  0xc0000000ull
#define X86_VIRTIO	  0xd0000000ull
#define X86_VIRTIO_STRIDE 0x1000ull
#define X86_IOAPIC	  0xfec00000ull
#define X86_LAPIC	  0xfee00000ull
#define X86_IDENTITY	  0xfffbc000ull
#define X86_TSS		  0xfffbd000ull
#define X86_4G		  0x100000000ull

/* Power management ports, in the FADT. */
#define X86_PM_BASE    0x600u
#define X86_PM1_EVT    0x600u /* status, enable: 2 + 2 bytes */
#define X86_PM1_CNT    0x604u
#define X86_PM_TIMER   0x608u
#define X86_PM_RESET   0x60cu
#define X86_PM_LEN     16u
#define X86_SCI_IRQ    9u
#define X86_SLP_TYP_S5 5u
#define X86_COM1       0x3f8u
#define X86_COM1_IRQ   4u

struct rv_arch_vm {
	bool msr_filter;
	bool guestdbg_blockirq;
	struct kvm_cpuid2 *cpuid; /* what KVM supports, as it says */
	struct rv_pm {
		uint16_t sts, en, cnt;
		struct rv_vm *vm;
	} pm;
};

int rv_x86_cpuid_init(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
int rv_x86_cpuid_set(struct rv_vm *vm, struct rv_vcpu *v, struct rv_err *err) RV_MUST_CHECK;
int rv_x86_acpi_build(struct rv_vm *vm, uint64_t *rsdp, struct rv_err *err) RV_MUST_CHECK;
int rv_x86_pm_create(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

/* --- what a faulting instruction does (decode.c) -------------------------- */

#define X86_INSN_MAX 15

/* A store of one instruction: where, and how much. */
struct rv_x86_store {
	uint64_t va;
	uint32_t len;
};
struct rv_x86_insn {
	uint8_t len;
	char text[96];
	bool rep;
	bool pushes_flags; /* pushf: a single step would leave its own TF in the image */
	struct rv_x86_store store[3];
	uint32_t nstores;
	/* What the first store writes, where the instruction alone says it: mov, movnti, movbe,
	 * stos, xchg, push and call of a register or an immediate. 0 bytes: not known. */
	uint8_t data[8];
	uint8_t ndata;
};

/*
 * Decode the instruction at regs->rip from n bytes; the stores are effective linear
 * addresses under regs and sregs. RV_EUNSUPPORTED: it is an instruction, and its
 * stores are not known; len and text are filled. RV_EBADDATA: not an instruction.
 */
int rv_x86_decode(const uint8_t *bytes, size_t n, const struct kvm_regs *regs,
		  const struct kvm_sregs *sregs, struct rv_x86_insn *out,
		  struct rv_err *err) RV_MUST_CHECK;

/* Doorbells (gate.c). true: it was one and has been answered. */
bool rv_x86_doorbell(struct rv_vm *vm, struct rv_vcpu *v, uint16_t port);

/* Raise a general protection fault in the guest; false: that failed and the VM ends. */
bool rv_x86_refuse(struct rv_vm *vm, struct rv_vcpu *v, uint8_t cpl);

/* Guest memory as the vcpu sees it (KVM_TRANSLATE); false: not mapped. */
bool rv_x86_translate(struct rv_vcpu *v, uint64_t va, uint64_t *gpa, bool *writeable);
bool rv_x86_read_virt(struct rv_vm *vm, struct rv_vcpu *v, uint64_t va, void *dst, size_t len);

#endif
