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

/* Does the processor say that it has virtualisation? 1, 0, or -1: not known. */
int rv_arch_cpu_virt(void);
/* "kvm_intel or kvm_amd": which kernel module brings /dev/kvm. */
const char *rv_arch_kvm_module(void);

#endif
