// SPDX-License-Identifier: GPL-2.0
/* rv_attack_arm64.c: one function for each kind of store that arm64 has. */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <asm/cpufeature.h>

#include "rv_attack.h"

#define RV_NEW 0x5a6978878796a5b4UL

static noinline void rv_attack_mov8(void *dst)
{
	asm volatile("strb %w1, [%0]" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_mov16(void *dst)
{
	asm volatile("strh %w1, [%0]" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_mov32(void *dst)
{
	asm volatile("str %w1, [%0]" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_mov64(void *dst)
{
	asm volatile("str %1, [%0]" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_page_crossing(void *dst)
{
	asm volatile("str %1, [%0]" : : "r"(dst), "r"(RV_NEW) : "memory");
}

/* With writeback no syndrome describes the access: it must be decoded. */
static noinline void rv_attack_writeback(void *dst)
{
	asm volatile("str %1, [%0], #8" : "+r"(dst) : "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_stp(void *dst)
{
	asm volatile("stp %1, %2, [%0]" : : "r"(dst), "r"(RV_NEW), "r"(~RV_NEW) : "memory");
}

static noinline void rv_attack_stnp(void *dst)
{
	asm volatile("stnp %1, %2, [%0]" : : "r"(dst), "r"(RV_NEW), "r"(~RV_NEW) : "memory");
}

static noinline void rv_attack_exclusive(void *dst)
{
	u64 old;
	u32 fail;
	int tries = 16;

	do {
		asm volatile("ldxr %0, [%2]\n\tstxr %w1, %3, [%2]"
			     : "=&r"(old), "=&r"(fail)
			     : "r"(dst), "r"(RV_NEW)
			     : "memory");
	} while (fail && --tries);
}

static noinline void rv_attack_swp(void *dst)
{
	u64 old;

	asm volatile(".arch_extension lse\n\tswp %1, %0, [%2]"
		     : "=r"(old)
		     : "r"(RV_NEW), "r"(dst)
		     : "memory");
}

static noinline void rv_attack_ldset(void *dst)
{
	u64 old, val = ~*(u64 *)dst;

	asm volatile(".arch_extension lse\n\tldset %1, %0, [%2]"
		     : "=r"(old)
		     : "r"(val), "r"(dst)
		     : "memory");
}

static bool has_lse(void)
{
	return cpus_have_cap(ARM64_HAS_LSE_ATOMICS);
}

/* Clears a whole block; the smallest usual size is 64. */
static noinline void rv_attack_dczva(void *dst)
{
	asm volatile("dc zva, %0" : : "r"(dst) : "memory");
}

const struct rv_writer rv_arch_writers[] = {
	{"mov8", 1, 0, rv_attack_mov8, NULL},
	{"mov16", 2, 0, rv_attack_mov16, NULL},
	{"mov32", 4, 0, rv_attack_mov32, NULL},
	{"mov64", 8, 0, rv_attack_mov64, NULL},
	{"page_crossing", 8, RV_F_CROSS, rv_attack_page_crossing, NULL},
	{"writeback", 8, 0, rv_attack_writeback, NULL},
	{"stp", 16, 0, rv_attack_stp, NULL},
	{"stnp", 16, 0, rv_attack_stnp, NULL},
	{"exclusive", 8, RV_F_ALIGN16, rv_attack_exclusive, NULL},
	{"swp", 8, RV_F_ALIGN16, rv_attack_swp, has_lse},
	{"ldset", 8, RV_F_ALIGN16, rv_attack_ldset, has_lse},
	{"dczva", 64, RV_F_ALIGN16, rv_attack_dczva, NULL},
	{NULL, 0, 0, NULL, NULL},
};

/* There is no bit that switches write protection off. */
int rv_arch_open_wp(void)
{
	return -EOPNOTSUPP;
}

int rv_arch_open_pte(unsigned long addr)
{
	return -EOPNOTSUPP;
}

void rv_arch_close(void)
{
}

const char *const rv_arch_entry_symbol = "vectors";
const char *const rv_arch_text_symbol = "__arm64_sys_swapoff";
const unsigned int rv_arch_table_row = 250; /* one of those kept for architectures */

/* The stub lies in the zeros before rodata; it rings by "ldr x17, [x16, #0x7a8]". */
unsigned long rv_arch_gate(unsigned long entry, unsigned long lo, unsigned long hi)
{
	unsigned long end = rv_lookup("_etext"), p;
	u32 insn;

	for (p = end; end && p > end - SZ_64K;) {
		p -= 4;
		/* One page there has no memory: nothing but a plain load is answered. */
		asm volatile("ldr %w0, [%1]" : "=r"(insn) : "r"(p));
		if (insn == 0xf943d611)
			return p & ~15ul;
	}
	return 0;
}
