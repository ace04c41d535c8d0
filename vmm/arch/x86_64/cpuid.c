/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpuid.c: what each vcpu says it is. Starts from what KVM supports; only identity
 * and topology are rewritten: one package, one thread per core.
 */
#include "x86.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define MAX_ENTRIES 256u

int rv_x86_cpuid_init(struct rv_vm *vm, struct rv_err *err)
{
	size_t size = sizeof(struct kvm_cpuid2) + MAX_ENTRIES * sizeof(struct kvm_cpuid_entry2);

	vm->arch->cpuid = calloc(1, size);
	if (!vm->arch->cpuid)
		return rv_err_set(err, RV_ENOMEM, "cpuid", "allocate the table");
	vm->arch->cpuid->nent = MAX_ENTRIES;
	if (ioctl(vm->kvm, KVM_GET_SUPPORTED_CPUID, vm->arch->cpuid))
		return rv_err_os(err, "cpuid", "ask KVM for the supported features");
	return 0;
}

/* Bits needed to number n things. */
static uint32_t width(uint32_t n)
{
	uint32_t w = 0;

	while ((1u << w) < n)
		w++;
	return w;
}

static void topology(struct kvm_cpuid_entry2 *e, uint32_t id, uint32_t n)
{
	/* SDM vol. 2, CPUID 0Bh: level 0 is SMT (1 thread), level 1 is core. */
	e->edx = id;
	e->ecx = e->index | (e->index == 0 ? 0x100u : e->index == 1 ? 0x200u : 0u);
	e->eax = e->index == 1 ? width(n) : 0;
	e->ebx = e->index == 0 ? 1 : e->index == 1 ? n : 0;
}

static void fix(struct kvm_cpuid_entry2 *e, uint32_t id, uint32_t n, bool tsc_deadline)
{
	switch (e->function) {
	case 1:
		e->ebx = (e->ebx & 0x0000ffff) | (n & 0xff) << 16 | id << 24;
		e->edx = n > 1 ? e->edx | 1u << 28 : e->edx & ~(1u << 28); /* HTT */
		e->ecx &= ~(1u << 5);					   /* VMX, see below */
		e->ecx |= 1u << 31;					   /* hypervisor */
		e->ecx |= 1u << 21;					   /* x2APIC */
		if (tsc_deadline)
			e->ecx |= 1u << 24;
		break;
	case 4: /* cores in the package, sharing of each cache: own, except level 3 */
		e->eax &= 0x00003fff;
		if (e->eax & 0x1f)
			e->eax |= (n - 1) << 26 | (((e->eax >> 5 & 7) == 3) ? (n - 1) << 14 : 0);
		break;
	case 0xb:
	case 0x1f: topology(e, id, n); break;
	/* No machines in the machine: what KVM does for a nested guest is the largest part of
	 * it that a guest can reach, and nothing here needs it. */
	case 0x80000001: e->ecx &= ~(1u << 2); break; /* SVM */
	case 0x8000000a: e->eax = e->ebx = e->ecx = e->edx = 0; break;
	case 0x80000008: e->ecx = (e->ecx & ~0xf0ffu) | (n - 1) | width(n) << 12; break;
	case 0x8000001d:
		e->eax &= ~(0xfffu << 14);
		if ((e->eax >> 5 & 7) == 3)
			e->eax |= (n - 1) << 14;
		break;
	case 0x8000001e: /* APM vol. 3, E.4.17: one thread per core, one node */
		e->eax = id;
		e->ebx = id;
		e->ecx = 0;
		break;
	}
}

int rv_x86_cpuid_set(struct rv_vm *vm, struct rv_vcpu *v, struct rv_err *err)
{
	const struct kvm_cpuid2 *sup = vm->arch->cpuid;
	size_t size = sizeof(*sup) + MAX_ENTRIES * sizeof(sup->entries[0]);
	bool tsc_deadline =
		ioctl(vm->kvm, KVM_CHECK_EXTENSION, KVM_CAP_TSC_DEADLINE_TIMER) > 0;
	struct kvm_cpuid2 *c = malloc(size);
	bool have_b = false;
	int rc;

	if (!c)
		return rv_err_set(err, RV_ENOMEM, "cpuid", "allocate the table");
	memcpy(c, sup, size);
	for (uint32_t i = 0; i < c->nent; i++) {
		have_b |= c->entries[i].function == 0xb && c->entries[i].index == 1;
		fix(&c->entries[i], v->index, vm->opt->cpus, tsc_deadline);
	}
	/* KVM lists leaf 0Bh only as far as the host has it. */
	for (uint32_t k = 0; k < 2 && !have_b && c->nent < MAX_ENTRIES; k++) {
		struct kvm_cpuid_entry2 *e = NULL;

		for (uint32_t i = 0; i < c->nent; i++)
			if (c->entries[i].function == 0xb && c->entries[i].index == k)
				e = &c->entries[i];
		if (!e)
			e = &c->entries[c->nent++];
		memset(e, 0, sizeof(*e));
		e->function = 0xb;
		e->index = k;
		e->flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
		topology(e, v->index, vm->opt->cpus);
	}
	rc = ioctl(v->fd, KVM_SET_CPUID2, c);
	free(c);
	if (rc)
		return rv_err_os(err, "cpuid", "set the identity of vcpu %u", v->index);
	return 0;
}
