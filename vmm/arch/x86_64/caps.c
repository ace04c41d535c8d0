/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c: KVM capabilities that only x86_64 has, and hints about its hosts. */
#include "../../caps.h"

#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Most leaves that KVM was seen to tell: 60; it says E2BIG when there are more. */
#define CPUID_ENTRIES 256

/* Does KVM offer 64-bit mode to guests? CPUID 0x80000001, EDX bit 29. */
static int probe_long_mode(int kvm_fd)
{
	size_t size = sizeof(struct kvm_cpuid2) + CPUID_ENTRIES * sizeof(struct kvm_cpuid_entry2);
	struct kvm_cpuid2 *cpuid = calloc(1, size);
	int found = 0;

	if (!cpuid)
		return 0;
	cpuid->nent = CPUID_ENTRIES;
	if (!ioctl(kvm_fd, KVM_GET_SUPPORTED_CPUID, cpuid)) {
		for (uint32_t i = 0; i < cpuid->nent && i < CPUID_ENTRIES; i++) {
			if (cpuid->entries[i].function == 0x80000001)
				found = cpuid->entries[i].edx >> 29 & 1;
		}
	}
	free(cpuid);
	return found;
}

static int probe_blockirq(int kvm_fd)
{
	int flags = ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG2);

	return flags > 0 && flags & KVM_GUESTDBG_BLOCKIRQ;
}

const struct rv_cap rv_arch_caps[] = {
	{"64-bit mode", 0, probe_long_mode, 1, RV_CAP_REQUIRED, "64-bit guests",
	 "no Linux kernel can start"},
	{"KVM_CAP_EXT_CPUID", KVM_CAP_EXT_CPUID, NULL, 1, RV_CAP_REQUIRED, "processor identity",
	 "no machine can be built"},
	{"KVM_CAP_SET_TSS_ADDR", KVM_CAP_SET_TSS_ADDR, NULL, 1, RV_CAP_REQUIRED,
	 "start of processors", "no machine can be built on Intel hosts"},
	{"KVM_CAP_PIT2", KVM_CAP_PIT2, NULL, 1, RV_CAP_REQUIRED, "timer that kernels calibrate by",
	 "kernels hang while they measure their clock"},
	{"KVM_CAP_MP_STATE", KVM_CAP_MP_STATE, NULL, 1, RV_CAP_REQUIRED,
	 "watchdog: is a processor idle",
	 "an idle processor could not be told from one that hangs"},
	{"KVM_CAP_EXCEPTION_PAYLOAD", KVM_CAP_EXCEPTION_PAYLOAD, NULL, 1, RV_CAP_REQUIRED,
	 "faults given to the guest, with their address", "a write cannot be refused by a fault"},
	{"KVM_GUESTDBG_BLOCKIRQ", 0, probe_blockirq, 1, RV_CAP_WANTED,
	 "seal: stepping without interrupts in between",
	 "a step may end in an interrupt handler and be repeated"},
	{"KVM_CAP_X86_USER_SPACE_MSR", KVM_CAP_X86_USER_SPACE_MSR, NULL, 1, RV_CAP_UNUSED,
	 "pins: writes of model-specific registers",
	 "a changed system-call entry is seen by sampling only"},
	{"KVM_CAP_X86_MSR_FILTER", KVM_CAP_X86_MSR_FILTER, NULL, 1, RV_CAP_UNUSED,
	 "pins: writes of model-specific registers",
	 "a changed system-call entry is seen by sampling only"},
	{"KVM_CAP_EXIT_ON_EMULATION_FAILURE", KVM_CAP_EXIT_ON_EMULATION_FAILURE, NULL, 1,
	 RV_CAP_WANTED, "seal: instructions that KVM cannot emulate",
	 "the bytes of such an instruction are read back from guest memory"},
	{"KVM_CAP_TSC_DEADLINE_TIMER", KVM_CAP_TSC_DEADLINE_TIMER, NULL, 1, RV_CAP_FASTER,
	 "guest timer", "the guest uses a coarser timer"},
	{"KVM_CAP_GET_TSC_KHZ", KVM_CAP_GET_TSC_KHZ, NULL, 1, RV_CAP_UNUSED, "guest clock",
	 "the guest measures its clock by itself: a slower start"},
	{"KVM_CAP_TSC_CONTROL", KVM_CAP_TSC_CONTROL, NULL, 1, RV_CAP_UNUSED,
	 "snapshots on other hosts", "a restored machine may see another clock rate"},
	{"KVM_CAP_ADJUST_CLOCK", KVM_CAP_ADJUST_CLOCK, NULL, 1, RV_CAP_UNUSED,
	 "pause and snapshots", "the guest's clock jumps after a pause"},
	{"KVM_CAP_KVMCLOCK_CTRL", KVM_CAP_KVMCLOCK_CTRL, NULL, 1, RV_CAP_UNUSED, "pause",
	 "the guest reports a soft lockup after a long pause"},
	{"KVM_CAP_XSAVE", KVM_CAP_XSAVE, NULL, 1, RV_CAP_UNUSED,
	 "completion of vector writes; core dumps",
	 "vector writes next to guarded objects are refused; dumps lack vector registers"},
	{NULL, 0, NULL, 0, RV_CAP_UNUSED, NULL, NULL},
};

int rv_arch_cpu_virt(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL;
	size_t size = 0;
	int found = -1;

	if (!f)
		return -1;
	while (found < 1 && getline(&line, &size, f) > 0) {
		if (!strncmp(line, "flags", 5))
			found = strstr(line, " vmx") || strstr(line, " svm");
	}
	free(line);
	fclose(f);
	return found;
}

const char *rv_arch_kvm_module(void)
{
	return "kvm_intel or kvm_amd";
}
