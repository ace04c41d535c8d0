// SPDX-License-Identifier: GPL-2.0
/*
 * rv_attack_x86.c: one function for each kind of store that x86_64 has, and the
 * ways to get around a read-only mapping from ring 0.
 *
 * The stores are written in assembly, so that the instruction is the one that the
 * name says, and each is alone in its function.
 */
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/objtool.h>
#include <asm/cpufeature.h>
#include <asm/pgtable.h>
#include <asm/processor-flags.h>

#include "rv_attack.h"

#define RV_NEW 0x5a6978878796a5b4ULL

static noinline void rv_attack_mov8(void *dst)
{
	asm volatile("movb %b1, (%0)" : : "r"(dst), "q"(RV_NEW) : "memory");
}

static noinline void rv_attack_mov16(void *dst)
{
	asm volatile("movw %w1, (%0)" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_mov32(void *dst)
{
	asm volatile("movl %k1, (%0)" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_mov64(void *dst)
{
	asm volatile("movq %1, (%0)" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_page_crossing(void *dst)
{
	asm volatile("movq %1, (%0)" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_movnti(void *dst)
{
	asm volatile("movnti %1, (%0)" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_movbe(void *dst)
{
	asm volatile("movbe %1, (%0)" : : "r"(dst), "r"(RV_NEW) : "memory");
}

static bool has_movbe(void)
{
	return boot_cpu_has(X86_FEATURE_MOVBE);
}

static noinline void rv_attack_movimm(void *dst)
{
	asm volatile("movl $0xcc90cc90, 3(%0)" : : "r"(dst) : "memory");
}

static noinline void rv_attack_rep_movsb(void *dst)
{
	const void *src = rv_pattern;
	unsigned long n = 16;

	asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

static noinline void rv_attack_rep_movsq(void *dst)
{
	const void *src = rv_pattern;
	unsigned long n = 2;

	asm volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

static noinline void rv_attack_rep_stosq(void *dst)
{
	unsigned long n = 2;

	asm volatile("rep stosq" : "+D"(dst), "+c"(n) : "a"(RV_NEW) : "memory");
}

static noinline void rv_attack_stosb(void *dst)
{
	asm volatile("stosb" : "+D"(dst) : "a"(RV_NEW) : "memory");
}

static noinline void rv_attack_xchg(void *dst)
{
	u64 val = RV_NEW;

	asm volatile("xchgq %1, (%0)" : : "r"(dst), "r"(val) : "memory");
}

static noinline void rv_attack_xadd(void *dst)
{
	u64 val = 0x0101010101010101ULL;

	asm volatile("lock xaddq %1, (%0)" : "+r"(dst), "+r"(val) : : "memory");
}

static noinline void rv_attack_lock_or(void *dst)
{
	/* ~old is or-ed in, so that at least one bit changes */
	u64 val = ~*(u64 *)dst;

	asm volatile("lock orq %1, (%0)" : : "r"(dst), "r"(val) : "memory");
}

static noinline void rv_attack_lock_btc(void *dst)
{
	asm volatile("lock btcq %1, (%0)" : : "r"(dst), "r"(13UL) : "memory");
}

static noinline void rv_attack_not(void *dst)
{
	asm volatile("notq (%0)" : : "r"(dst) : "memory");
}

static noinline void rv_attack_setcc(void *dst)
{
	/* writes 0 or 1: choose the one that is not there */
	asm volatile("testb %b1, %b1\n\tsetz (%0)" : : "r"(dst), "q"(*(u8 *)dst == 1) : "memory");
}

static noinline void rv_attack_lock_cmpxchg(void *dst)
{
	u64 old = *(u64 *)dst;

	asm volatile("lock cmpxchgq %2, (%1)" : "+a"(old) : "r"(dst), "r"(RV_NEW) : "memory");
}

static noinline void rv_attack_lock_cmpxchg16b(void *dst)
{
	u64 *p = dst, lo = p[0], hi = p[1];

	asm volatile("lock cmpxchg16b (%2)"
		     : "+a"(lo), "+d"(hi)
		     : "r"(dst), "b"(RV_NEW), "c"(~RV_NEW)
		     : "memory");
}

static bool has_cx16(void)
{
	return boot_cpu_has(X86_FEATURE_CX16);
}

/*
 * Vector stores. The register is saved and put back around the store with
 * interrupts off, instead of kernel_fpu_begin(): a store that is refused must
 * not leave the CPU marked as being inside a section of that kind.
 */
static noinline void rv_attack_sse(void *dst)
{
	u8 keep[16];

	asm volatile("movdqu %%xmm0, (%2)\n\t"
		     "movdqu (%1), %%xmm0\n\t"
		     "movdqu %%xmm0, (%0)\n\t"
		     "movdqu (%2), %%xmm0"
		     :
		     : "r"(dst), "r"(rv_pattern), "r"(keep)
		     : "memory");
}

static noinline void rv_attack_movntdq(void *dst)
{
	u8 keep[16];

	asm volatile("movdqu %%xmm0, (%2)\n\t"
		     "movdqu (%1), %%xmm0\n\t"
		     "movntdq %%xmm0, (%0)\n\t"
		     "movdqu (%2), %%xmm0"
		     :
		     : "r"(dst), "r"(rv_pattern), "r"(keep)
		     : "memory");
}

static noinline void rv_attack_avx(void *dst)
{
	u8 keep[32];

	asm volatile("vmovdqu %%ymm0, (%2)\n\t"
		     "vmovdqu (%1), %%ymm0\n\t"
		     "vmovdqu %%ymm0, (%0)\n\t"
		     "vmovdqu (%2), %%ymm0"
		     :
		     : "r"(dst), "r"(rv_pattern), "r"(keep)
		     : "memory");
}

static bool has_avx(void)
{
	return boot_cpu_has(X86_FEATURE_AVX);
}

static noinline void rv_attack_fxsave(void *dst)
{
	asm volatile("fxsave64 (%0)" : : "r"(dst) : "memory");
}

static noinline void rv_attack_sidt(void *dst)
{
	asm volatile("sidt (%0)" : : "r"(dst) : "memory");
}

static noinline void rv_attack_sgdt(void *dst)
{
	asm volatile("sgdt (%0)" : : "r"(dst) : "memory");
}

/*
 * The stack pointer itself aims at the target. No exception can be taken
 * meanwhile, not even the one that refuses the store: on real hardware, too, a
 * read-only page here ends in a double fault.
 */
static noinline void rv_attack_push(void *dst)
{
	unsigned long sp;

	asm volatile("movq %%rsp, %0\n\t"
		     "leaq 8(%1), %%rsp\n\t"
		     "pushq %2\n\t"
		     "movq %0, %%rsp"
		     : "=&r"(sp)
		     : "r"(dst), "r"(RV_NEW)
		     : "memory");
}

static noinline void rv_attack_call(void *dst)
{
	unsigned long sp;

	asm volatile("movq %%rsp, %0\n\t"
		     "leaq 8(%1), %%rsp\n\t"
		     "call 1f\n"
		     "1:\tmovq %0, %%rsp"
		     : "=&r"(sp)
		     : "r"(dst)
		     : "memory");
}

/* Nobody shall ask objtool what the stack looks like in there. */
STACK_FRAME_NON_STANDARD(rv_attack_push);
STACK_FRAME_NON_STANDARD(rv_attack_call);

const struct rv_writer rv_arch_writers[] = {
	{"mov8", 1, 0, rv_attack_mov8, NULL},
	{"mov16", 2, 0, rv_attack_mov16, NULL},
	{"mov32", 4, 0, rv_attack_mov32, NULL},
	{"mov64", 8, 0, rv_attack_mov64, NULL},
	{"movimm", 7, 0, rv_attack_movimm, NULL},
	{"movnti", 8, 0, rv_attack_movnti, NULL},
	{"movbe", 8, 0, rv_attack_movbe, has_movbe},
	{"page_crossing", 8, RV_F_CROSS, rv_attack_page_crossing, NULL},
	{"rep_movsb", 16, 0, rv_attack_rep_movsb, NULL},
	{"rep_movsq", 16, 0, rv_attack_rep_movsq, NULL},
	{"rep_stosq", 16, 0, rv_attack_rep_stosq, NULL},
	{"stosb", 1, 0, rv_attack_stosb, NULL},
	{"xchg", 8, 0, rv_attack_xchg, NULL},
	{"xadd", 8, 0, rv_attack_xadd, NULL},
	{"lock_or", 8, 0, rv_attack_lock_or, NULL},
	{"lock_btc", 8, 0, rv_attack_lock_btc, NULL},
	{"not", 8, 0, rv_attack_not, NULL},
	{"setcc", 1, 0, rv_attack_setcc, NULL},
	{"lock_cmpxchg", 8, 0, rv_attack_lock_cmpxchg, NULL},
	{"lock_cmpxchg16b", 16, RV_F_ALIGN16, rv_attack_lock_cmpxchg16b, has_cx16},
	{"sse", 16, RV_F_IRQOFF, rv_attack_sse, NULL},
	{"movntdq", 16, RV_F_IRQOFF | RV_F_ALIGN16, rv_attack_movntdq, NULL},
	{"avx", 32, RV_F_IRQOFF, rv_attack_avx, has_avx},
	{"fxsave", 512, RV_F_IRQOFF | RV_F_ALIGN16, rv_attack_fxsave, NULL},
	{"sidt", 10, 0, rv_attack_sidt, NULL},
	{"sgdt", 10, 0, rv_attack_sgdt, NULL},
	{"push", 8, RV_F_IRQOFF, rv_attack_push, NULL},
	{"call", 8, RV_F_IRQOFF, rv_attack_call, NULL},
	{NULL, 0, 0, NULL, NULL},
};

/* --- ways in -------------------------------------------------------------------- */

static bool wp_open;
static pte_t *pte_open;
static unsigned long pte_addr;

/* The kernel's own write_cr0() pins WP; the instruction does not. */
static void set_cr0(unsigned long v)
{
	asm volatile("mov %0, %%cr0" : : "r"(v) : "memory");
}

static unsigned long get_cr0(void)
{
	unsigned long v;

	asm volatile("mov %%cr0, %0" : "=r"(v) : : "memory");
	return v;
}

static void flush_one(unsigned long addr)
{
	asm volatile("invlpg (%0)" : : "r"(addr) : "memory");
}

int rv_arch_open_wp(void)
{
	set_cr0(get_cr0() & ~X86_CR0_WP);
	wp_open = true;
	return 0;
}

int rv_arch_open_pte(unsigned long addr)
{
	unsigned int level;
	pte_t *pte = lookup_address(addr, &level);

	if (!pte || !(pte_val(*pte) & _PAGE_PRESENT))
		return -ENOENT;
	if (pte_val(*pte) & _PAGE_RW)
		return 0;
	pte_addr = addr;
	pte_open = pte;
	WRITE_ONCE(*(u64 *)pte, *(u64 *)pte | _PAGE_RW);
	flush_one(addr);
	flush_one(addr + PAGE_SIZE);
	return 0;
}

void rv_arch_close(void)
{
	if (wp_open) {
		wp_open = false;
		set_cr0(get_cr0() | X86_CR0_WP);
	}
	if (pte_open) {
		WRITE_ONCE(*(u64 *)pte_open, *(u64 *)pte_open & ~(u64)_PAGE_RW);
		flush_one(pte_addr);
		flush_one(pte_addr + PAGE_SIZE);
		pte_open = NULL;
	}
}

const char *const rv_arch_entry_symbol = "entry_SYSCALL_64";
const char *const rv_arch_text_symbol = "__do_sys_swapoff";
const unsigned int rv_arch_table_row = 156; /* _sysctl: gone, but its row is there */

/* A stub is reached by one "call rel32" of the entry code into the padding. */
unsigned long rv_arch_gate(unsigned long entry, unsigned long lo, unsigned long hi)
{
	const u8 *p = (const u8 *)entry;
	unsigned long to;
	int i;

	for (i = 0; i < 0x180; i++) {
		if (p[i] != 0xe8)
			continue;
		to = entry + i + 5 + *(const s32 *)(p + i + 1);
		if (to >= lo && to < hi)
			return to;
	}
	/* no stub there: perhaps another one; a page that is not all padding */
	for (to = PAGE_ALIGN(lo); to < hi; to += 16)
		if (*(const u8 *)to != 0xcc)
			return to;
	return 0;
}
