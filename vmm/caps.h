/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps.h: what this host's KVM can do, who needs it, and what is lost without it.
 * One table: the start-up check, `ravelin doctor` and the documents come from it.
 */
#ifndef RV_VMM_CAPS_H
#define RV_VMM_CAPS_H

#include <ravelin/error.h>

#define RV_KVM_API  12
#define RV_CAPS_MAX 64

/* Younger than some of the kernel headers that we build with. */
#ifndef KVM_CAP_MEMORY_FAULT_INFO
#define KVM_CAP_MEMORY_FAULT_INFO 232
#endif
#ifndef KVM_EXIT_MEMORY_FAULT
#define KVM_EXIT_MEMORY_FAULT 39
#endif

enum rv_cap_need {
	RV_CAP_REQUIRED, /* no VM without it */
	RV_CAP_WANTED,	 /* without it something is lost */
	RV_CAP_FASTER,	 /* without it all the same is done, slower */
	RV_CAP_UNUSED,	 /* nothing uses it yet; told for the record, and never a loss */
};

struct rv_cap {
	const char *name;	  /* "KVM_CAP_IRQFD", or of what probe looks at */
	uint32_t number;	  /* KVM_CAP_*; not used where probe is set */
	int (*probe)(int kvm_fd); /* like KVM_CHECK_EXTENSION: the value, 0: absent */
	int least;		  /* values below are as good as absent; 0 means 1 */
	enum rv_cap_need need;
	const char *user; /* who needs it */
	const char *lost; /* what is lost without it: half a sentence */
};

/* Rows of the architecture, in vmm/arch/; ends with name NULL. */
extern const struct rv_cap rv_arch_caps[];

struct rv_cap_state {
	const struct rv_cap *cap;
	int value;
	bool present;
};

struct rv_caps {
	int api;
	struct rv_cap_state state[RV_CAPS_MAX];
	uint32_t n;
	uint32_t missing_required, missing_optional;
};

/*
 * Ask KVM for each row. RV_EUNSUPPORTED when its API version is not ours; missing
 * capabilities are no failure here.
 */
int rv_caps_probe(int kvm_fd, struct rv_caps *out, struct rv_err *err) RV_MUST_CHECK;

/* RV_EUNSUPPORTED naming the first required capability that is missing. */
int rv_caps_require(const struct rv_caps *caps, struct rv_err *err) RV_MUST_CHECK;

/* Value of KVM_CAP_number as probed, 0 when absent or in no row. */
int rv_caps_value(const struct rv_caps *caps, uint32_t number);

/* --- proofs by tiny guests, in vmm/arch/<arch>/ringspeed.c ------------------- */

/* How fast kernel-mode code runs: a loop timed in a guest and on the host. */
struct rv_ring_speed {
	double guest_mips; /* million instructions per second */
	double host_mips;
	uint64_t instructions;
	uint64_t guest_ns;
};
int rv_arch_ring_speed(int kvm_fd, struct rv_ring_speed *out, struct rv_err *err) RV_MUST_CHECK;

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
int rv_arch_write_proof(int kvm_fd, struct rv_write_proof *out, struct rv_err *err) RV_MUST_CHECK;
const char *rv_write_form_text(enum rv_write_form form);

/* Does the processor say that it has virtualisation? 1, 0, or -1: not known. */
int rv_arch_cpu_virt(void);
/* "kvm_intel or kvm_amd": which kernel module brings /dev/kvm. */
const char *rv_arch_kvm_module(void);

/* Below this a KVM is not running kernel mode on the processor: the slowest host
 * with hardware support that was measured is two orders above it, emulators one
 * below. */
#define RV_RING_SLOW_MIPS 20.0

#endif
