/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64.h: internal contract of the arm64 half, and its guest physical map.
 *
 *	0x0000_0000_0000  +-------------------------------+
 *	                  | nothing                       |
 *	       0x0800_0000| GICv3 distributor (KVM)       |
 *	       0x0900_0000| serial port, ns16550a         |
 *	       0x0901_0000| clock, pl031                  |
 *	       0x0a00_0000| virtio-mmio slots, 4 KiB each |
 *	       0x1000_0000| GICv3 redistributors (KVM),   |
 *	                  | 128 KiB for each of 64 vcpus  |
 *	       0x1080_0000+-------------------------------+
 *	                  | nothing                       |
 *	       0x4000_0000+-------------------------------+
 *	                  | RAM                           |
 *	       0x4000_0000|   device tree                 |
 *	       0x4020_0000|   kernel, initrd, ...         |
 *	                  +-------------------------------+
 *
 * All that is not RAM lies below it, so RAM is one piece however large. The device
 * tree is in RAM because the kernel wipes the seeds in it.
 */
#ifndef RV_VMM_ARM64_H
#define RV_VMM_ARM64_H

#include "vm.h"

#include "linux/linux.h"

#include <stdatomic.h>

#define ARM64_GICD	    0x08000000ull
#define ARM64_GICD_LEN	    0x10000ull
#define ARM64_UART	    0x09000000ull
#define ARM64_UART_LEN	    8u
#define ARM64_RTC	    0x09010000ull
#define ARM64_RTC_LEN	    0x1000u
#define ARM64_VIRTIO	    0x0a000000ull
#define ARM64_VIRTIO_STRIDE 0x1000ull
#define ARM64_GICR	    0x10000000ull
#define ARM64_GICR_EACH	    0x20000ull /* two frames of 64 KiB (GICv3, 12.10) */
#define ARM64_GICR_LEN	    (RV_MAX_VCPUS * ARM64_GICR_EACH)
#define ARM64_RAM	    0x40000000ull
#define ARM64_FDT	    ARM64_RAM
#define ARM64_FDT_MAX	    0x200000ull /* booting.rst: at most 2 MiB, within one 2 MiB block */
#define ARM64_KERNEL_MIN    (ARM64_FDT + ARM64_FDT_MAX)

/* Shared peripheral interrupts, counted from 0 as the device tree does. */
#define ARM64_SPI_UART	 1u
#define ARM64_SPI_VIRTIO 16u /* and one more for each slot */
#define ARM64_SPI_END	 (ARM64_SPI_VIRTIO + RV_VIRTIO_MAX)
#define ARM64_INTID_SPI	 32u /* interrupt number of SPI 0 */
/* All interrupt numbers that exist: KVM takes multiples of 32, at least 64. */
#define ARM64_NR_IRQS ((ARM64_INTID_SPI + ARM64_SPI_END + 31u) / 32u * 32u)

/* The line of SPI n as KVM_IRQ_LINE wants it, which is what device models call a GSI. */
#define ARM64_GSI(n)                                                              \
	(KVM_ARM_IRQ_TYPE_SPI << KVM_ARM_IRQ_TYPE_SHIFT | (ARM64_INTID_SPI + (n)) \
								  << KVM_ARM_IRQ_NUM_SHIFT)
#define ARM64_GSI_SPI(gsi) (((gsi)&KVM_ARM_IRQ_NUM_MASK) - ARM64_INTID_SPI)

#define RV_ARM64_POKERS 2u

struct rv_arch_vm {
	int gic;	/* device descriptor, -1 before it exists */
	bool ptrauth;	/* vcpus have pointer authentication */
	bool ext_dabt;	/* KVM can raise an external abort */
	uint64_t mmfr0; /* ID_AA64MMFR0_EL1 of every vcpu */
	uint64_t hole; /* gpa of the doorbell's page, 0 where there is none */
	/* copy_to_kernel_nofault, and the return addresses of the calls of it that patch
	 * text; run-time addresses, from the gate's installation on. */
	uint64_t poke_fn, poke_len;
	uint64_t poker[RV_ARM64_POKERS];
	uint32_t npokers;
	/* Guest RAM as the walker of page tables wants it. */
	struct rv_source_mapped source;
	struct rv_region regions[2];
};

/* --- registers (regs.c) ---------------------------------------------------- */

#define ARM64_CORE(member) \
	(KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | KVM_REG_ARM_CORE_REG(member))
#define ARM64_X(n)     ARM64_CORE(regs.regs[0]) + 2 * (n) /* core registers count 32-bit words */
#define ARM64_PC       ARM64_CORE(regs.pc)
#define ARM64_PSTATE   ARM64_CORE(regs.pstate)
#define ARM64_SP_EL0   ARM64_CORE(regs.sp)
#define ARM64_SP_EL1   ARM64_CORE(sp_el1)
#define ARM64_ELR_EL1  ARM64_CORE(elr_el1)
#define ARM64_SPSR_EL1 ARM64_CORE(spsr[0]) /* KVM_SPSR_EL1 */

#define ARM64_MPIDR    ARM64_SYS_REG(3, 0, 0, 0, 5)
#define ARM64_ID_MMFR0 ARM64_SYS_REG(3, 0, 0, 7, 0)
#define ARM64_SCTLR    ARM64_SYS_REG(3, 0, 1, 0, 0)
#define ARM64_TTBR0    ARM64_SYS_REG(3, 0, 2, 0, 0)
#define ARM64_TTBR1    ARM64_SYS_REG(3, 0, 2, 0, 1)
#define ARM64_TCR      ARM64_SYS_REG(3, 0, 2, 0, 2)
#define ARM64_TCR2     ARM64_SYS_REG(3, 0, 2, 0, 3)
#define ARM64_PIRE0    ARM64_SYS_REG(3, 0, 10, 2, 2)
#define ARM64_PIR      ARM64_SYS_REG(3, 0, 10, 2, 3)
#define ARM64_ESR_EL1  ARM64_SYS_REG(3, 0, 5, 2, 0)
#define ARM64_FAR_EL1  ARM64_SYS_REG(3, 0, 6, 0, 0)
#define ARM64_VBAR_EL1 ARM64_SYS_REG(3, 0, 12, 0, 0)

/* PSTATE as SPSR has it (Arm ARM, C5.2.19). */
#define ARM64_PSTATE_SP	   1ull	   /* the exception level's own stack pointer */
#define ARM64_PSTATE_EL	   0xcull  /* 0: user mode */
#define ARM64_PSTATE_32	   0x10ull /* AArch32 */
#define ARM64_PSTATE_DAIF  0x3c0ull
#define ARM64_PSTATE_PAN   (1ull << 22)
#define ARM64_PSTATE_DIT   (1ull << 24)
#define ARM64_PSTATE_FLAGS (15ull << 28)

/* One register of a vcpu that is out of KVM_RUN. fd is the vcpu's descriptor. RV_EOS
 * with errno set by the kernel. */
int rv_arm64_get(int fd, uint64_t id, uint64_t *out) RV_MUST_CHECK;
int rv_arm64_set(int fd, uint64_t id, uint64_t value) RV_MUST_CHECK;

/* How v translates addresses. */
int rv_arm64_paging(struct rv_vcpu *v, struct rv_paging_regs *out) RV_MUST_CHECK;
/* vm->arch->source, once RAM is mapped. */
int rv_arm64_view_init(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

/* --- doorbell and writes (gate.c, write.c) ------------------------------------- */

/* Raise a synchronous external abort at the instruction; false: KVM cannot. */
bool rv_arm64_bus_error(struct rv_vm *vm, struct rv_vcpu *v);

/* KVM_EXIT_ARM_NISV for a store to gpa: judge it if that is the hole; false: it is not. */
bool rv_arm64_hole_store(struct rv_vm *vm, struct rv_vcpu *v, uint64_t gpa);

/* KVM_EXIT_MMIO read in the hole: answer it. Always true. */
bool rv_arm64_doorbell(struct rv_vm *vm, struct rv_vcpu *v);

/* --- the machine (vm.c, rtc.c, fdt.c) --------------------------------------- */

int rv_arm64_rtc_create(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;

/* Write the device tree to ARM64_FDT. seed: kaslr-seed, 0 for none. */
int rv_arm64_fdt_build(struct rv_vm *vm, uint64_t seed, struct rv_err *err) RV_MUST_CHECK;

/* --- where the kernel goes (kaslr.c) ------------------------------------------ */

/*
 * The kernel moves itself to a virtual base that follows from the seed alone. How, is
 * read from its code. total 0: (seed & (2^46 - 1)) + 2^45; else the bytes between
 * KIMAGE_VADDR and VMALLOC_END, half of which are used, from a quarter on.
 */
struct rv_arm64_kaslr {
	uint64_t total;
};

/* RV_EUNSUPPORTED with the reason where the code is not one that we know. */
int rv_arm64_kaslr_find(const struct rv_image *img, uint64_t mmfr0, struct rv_arm64_kaslr *out,
			struct rv_err *err) RV_MUST_CHECK;
/* The bases that a seed can lead to: first + n * 2 MiB above the link address, n < slots. */
void rv_arm64_kaslr_slots(const struct rv_arm64_kaslr *k, uint64_t *first, uint64_t *slots);
/* What the kernel makes of a seed, as an offset from its link address. */
uint64_t rv_arm64_kaslr_delta(const struct rv_arm64_kaslr *k, uint64_t seed);
/* A seed, drawn from all that lead to delta; never 0. false: none was found. */
bool rv_arm64_kaslr_seed(const struct rv_arm64_kaslr *k, uint64_t delta, uint64_t *seed);

#endif
