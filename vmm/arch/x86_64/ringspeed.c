/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringspeed.c: the tiny guest of proof.h in 64-bit ring 0.
 *
 * Beside the shared places: 0x1000 PML4, 0x2000 PDPT, 0x3000 PD with one 2 MiB
 * page, identity. The end is an OUT.
 */
#include "../../proof.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define PML4	      0x1000u
#define PDPT	      0x2000u
#define PD	      0x3000u
#define CPUID_ENTRIES 256

/* 1: dec ecx; jnz 1b; out 0x10, al */
static const uint8_t loop_code[] = {0xff, 0xc9, 0x75, 0xfc, 0xe6, 0x10};
/* mov [rbx], rax; out 0x10, al */
static const uint8_t write_code[] = {0x48, 0x89, 0x03, 0xe6, 0x10};

unsigned long rv_arch_tiny_type(int kvm_fd)
{
	(void)kvm_fd;
	return 0;
}

/* EFER.LME is refused to a processor whose CPUID lacks 64-bit mode. */
static int set_cpuid(struct rv_tiny *t, int kvm_fd, struct rv_err *err)
{
	size_t size = sizeof(struct kvm_cpuid2) + CPUID_ENTRIES * sizeof(struct kvm_cpuid_entry2);
	struct kvm_cpuid2 *cpuid = calloc(1, size);
	int rc = 0;

	if (!cpuid)
		return rv_err_set(err, RV_ENOMEM, "proof", "out of memory");
	cpuid->nent = CPUID_ENTRIES;
	if (ioctl(kvm_fd, KVM_GET_SUPPORTED_CPUID, cpuid) < 0)
		rc = rv_err_os(err, "proof", "KVM_GET_SUPPORTED_CPUID");
	else if (ioctl(t->vcpu, KVM_SET_CPUID2, cpuid) < 0)
		rc = rv_err_os(err, "proof", "KVM_SET_CPUID2");
	free(cpuid);
	return rc;
}

static void put_tables(struct rv_tiny *t)
{
	const uint64_t entries[][2] = {
		{PML4, PDPT | 3}, {PDPT, PD | 3}, {PD, 0x83 /* present, writable, 2 MiB */}};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		memcpy(t->mon + entries[i][0], &entries[i][1], sizeof(entries[i][1]));
}

int rv_arch_tiny_init(struct rv_tiny *t, int kvm_fd, struct rv_err *err)
{
	const struct kvm_segment code = {.limit = 0xffffffff,
					 .selector = 8,
					 .type = 11,
					 .present = 1,
					 .s = 1,
					 .l = 1,
					 .g = 1};
	const struct kvm_segment data = {.limit = 0xffffffff,
					 .selector = 16,
					 .type = 3,
					 .present = 1,
					 .db = 1,
					 .s = 1,
					 .g = 1};
	const struct kvm_segment tss = {.limit = 0x67, .selector = 24, .type = 11, .present = 1};
	struct kvm_sregs s;
	int rc;

	rc = set_cpuid(t, kvm_fd, err);
	if (rc)
		return rc;
	put_tables(t);
	if (ioctl(t->vcpu, KVM_GET_SREGS, &s) < 0)
		return rv_err_os(err, "proof", "KVM_GET_SREGS");
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.tr = tss;
	s.cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	s.cr3 = PML4;
	s.cr4 = 0x20;	/* PAE */
	s.efer = 0x500; /* LMA, LME */
	if (ioctl(t->vcpu, KVM_SET_SREGS, &s) < 0)
		return rv_err_os(err, "proof", "KVM_SET_SREGS: 64-bit mode");
	return 0;
}

int rv_arch_tiny_start(struct rv_tiny *t, enum rv_tiny_program program, uint64_t arg,
		       struct rv_err *err)
{
	struct kvm_regs r = {.rip = RV_TINY_CODE,
			     .rflags = 2,
			     .rax = RV_TINY_BYTE,
			     .rbx = RV_TINY_TARGET,
			     .rcx = arg};

	if (program == RV_TINY_LOOP)
		memcpy(t->mon + RV_TINY_CODE, loop_code, sizeof(loop_code));
	else
		memcpy(t->mon + RV_TINY_CODE, write_code, sizeof(write_code));
	if (ioctl(t->vcpu, KVM_SET_REGS, &r) < 0)
		return rv_err_os(err, "proof", "KVM_SET_REGS");
	return 0;
}

bool rv_arch_tiny_ended(const struct rv_tiny *t)
{
	return t->run->exit_reason == KVM_EXIT_IO;
}

int rv_arch_tiny_pc(const struct rv_tiny *t, uint64_t *pc_out)
{
	struct kvm_regs r;

	if (ioctl(t->vcpu, KVM_GET_REGS, &r) < 0)
		return rv_err_os(NULL, "proof", "KVM_GET_REGS");
	*pc_out = r.rip;
	return 0;
}

void rv_arch_tiny_host_loop(uint32_t turns)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}
