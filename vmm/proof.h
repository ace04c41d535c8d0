/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h: proofs by a guest of a few instructions in kernel mode: how fast it runs,
 * and what becomes of a write into a protected page. They need nothing but a KVM
 * descriptor and share no code with the real machine, so that they still answer
 * where that one cannot be built.
 */
#ifndef RV_VMM_PROOF_H
#define RV_VMM_PROOF_H

#include <ravelin/error.h>

#include <linux/kvm.h>

/* How fast kernel-mode code runs: a loop timed in a guest and on the host. */
struct rv_ring_speed {
	double guest_mips; /* million instructions per second */
	double host_mips;
	uint64_t instructions;
	uint64_t guest_ns;
};

/*
 * Below this a KVM does not run kernel mode on the processor: emulation was measured
 * at 1.6, a whole host under emulation still above 200.
 */
#define RV_RING_SLOW_MIPS 20.0

int rv_proof_speed(int kvm_fd, struct rv_ring_speed *out, struct rv_err *err) RV_MUST_CHECK;

/* What becomes of a guest's write into a page whose host mapping is read-only. */
enum rv_write_form {
	RV_WRITE_UNKNOWN = 0,
	RV_WRITE_FAULT,	     /* KVM_RUN ends with EFAULT, the address is not told */
	RV_WRITE_FAULT_ADDR, /* the same as KVM_EXIT_MEMORY_FAULT, with the address */
	RV_WRITE_MMIO,	     /* KVM emulated the instruction: KVM_EXIT_MMIO */
	RV_WRITE_LANDED,     /* the protection does not hold */
	RV_WRITE_HANGS,	     /* the vcpu never comes back */
	RV_WRITE_OTHER,	     /* another exit */
};

struct rv_write_proof {
	enum rv_write_form form;
	uint32_t exit_reason;
	bool pc_exact;	/* pc on the instruction, not past it */
	bool completes; /* after the protection is lifted the same write lands */
};

int rv_proof_write(int kvm_fd, struct rv_write_proof *out, struct rv_err *err) RV_MUST_CHECK;

const char *rv_write_form_name(enum rv_write_form form); /* one word */
const char *rv_write_form_text(enum rv_write_form form); /* half a sentence */

/* --- between proof.c and arch/<arch>/ringspeed.c --------------------------------- */

/* One slot at guest physical 0, used by every architecture alike. */
#define RV_TINY_RAM    0x10000u
#define RV_TINY_CODE   0x4000u
#define RV_TINY_TARGET 0x8000u /* a page of its own, also where the host has 16 KiB pages */
#define RV_TINY_BYTE   0x41u

struct rv_tiny {
	int vm, vcpu, mem;
	uint8_t *guest; /* mapping given to KVM */
	uint8_t *mon;	/* the second mapping */
	struct kvm_run *run;
	size_t run_size;
};

enum rv_tiny_program {
	RV_TINY_LOOP,  /* arg turns of two instructions, then end */
	RV_TINY_WRITE, /* store RV_TINY_BYTE and zeros, 8 bytes, to RV_TINY_TARGET, then end */
};

/* Type argument of KVM_CREATE_VM. */
unsigned long rv_arch_tiny_type(int kvm_fd);
/* Processor state: 64-bit kernel mode. */
int rv_arch_tiny_init(struct rv_tiny *t, int kvm_fd, struct rv_err *err) RV_MUST_CHECK;
/* Put the program at RV_TINY_CODE and the program counter on it. */
int rv_arch_tiny_start(struct rv_tiny *t, enum rv_tiny_program program, uint64_t arg,
		       struct rv_err *err) RV_MUST_CHECK;
/* Is the exit at hand the program's end? */
bool rv_arch_tiny_ended(const struct rv_tiny *t);
int rv_arch_tiny_pc(const struct rv_tiny *t, uint64_t *pc_out);
/* The loop of RV_TINY_LOOP on the host itself. */
void rv_arch_tiny_host_loop(uint32_t turns);

#endif
