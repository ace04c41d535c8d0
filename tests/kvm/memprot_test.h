/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_test.h: what the parts of memprot_test share.
 *
 *	memprot_test.c		main: the order of the tests, and the count of their results
 *	memprot_guest.c		the VM and its guest: page tables, vectors, start and end
 *	memprot_seal.c		verdicts, which the tests choose
 *	memprot_insns.c		the store instructions, one row each
 *	memprot_stores.c	each row under each answer, one vcpu
 *	memprot_pages.c		what is no row: two regions at once, page tables
 *	memprot_storm.c		several vcpus, several that park them
 *	memprot_step.c		what comes between a recorded write and its one step
 */
#ifndef RV_TEST_MEMPROT_H
#define RV_TEST_MEMPROT_H

#include "vm.h"
#include "arch.h"
#include "arch/x86_64/x86.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MEMORY	 (64ull << 20)
#define HIGH	 0xffff888000000000ull /* alias of physical memory in the upper half */
#define REAL	 0x5000ull	       /* where a vcpu starts after an INIT */
#define PML4	 0x9000ull
#define PDPT	 0xa000ull
#define PD	 0xb000ull
#define PD2	 0x1a000ull
#define PT	 0x1b000ull
#define SPARE	 0x1c000ull
#define GDT	 0x6000ull
#define TSS	 0x6100ull
#define IDT	 0xc000ull
#define STUBS	 0xd000ull /* one OUT for each vector */
#define IST	 0xf000ull /* top of the stack for exceptions */
#define SOURCE	 0x10000ull
#define STACK	 0x14000ull /* top of each vcpu's stack: STACK + 0x1000 * index */
#define COUNTERS 0x20000ull /* one line for each vcpu */
#define CODE	 0x100000ull
#define WINDOW	 0x1ff000ull /* open, region one, region two, open: a page each */
#define TWIN	 0x3ff000ull /* the same and nothing protected */
#define WLEN	 0x4000u
#define P1	 0x1000u /* offsets in the window */
#define P2	 0x2000u
#define P3	 0x3000u
#define NVCPU	 4u

#define PORT_NEXT  0xe0u /* the instruction is behind */
#define PORT_FAULT 0xe1u /* + 0: page fault, + 1: general protection, + 2: anything else */
#define PORT_DATA  0xe8u
#define PORT_ALL   0xedu /* this vcpu is done; + 1: the VM is */
#define HANG	   60	 /* seconds without an end */

/* --- memprot_test.c ---------------------------------------------------------------------- */

extern bool mpt_verbose;
extern const char *mpt_only; /* name of the one row to run, or NULL */

/* Count one property; why NULL: it holds. */
void mpt_result(const char *name, const char *why);

/* --- memprot_guest.c --------------------------------------------------------------------- */

extern struct rv_vm mpt_vm;
/* What the vcpus have. */
extern struct mpt_cpu {
	bool avx, avx512, xsave, cx16;
} mpt_cpu;
extern _Atomic bool mpt_started;  /* the vcpus run, and what a start resets is reset */
extern _Atomic uint32_t mpt_done; /* vcpus that have said so at PORT_ALL */

/* The VM, its tables and its two protected pages; no vcpus yet. */
int mpt_build(struct rv_err *err) RV_MUST_CHECK;
/* Run n vcpus at rip until the VM ends; the threads are gone afterwards. NULL, or what
 * was wrong about the end. */
const char *mpt_run(uint32_t n, uint64_t rip, uint32_t seconds);

uint8_t *mpt_mem(uint64_t gpa, uint64_t len);
size_t mpt_unhex(const char *hex, uint8_t *out);
/* The pattern has both parities in every bit and no two equal bytes side by side. */
void mpt_fill(uint8_t *p);
/* NULL, or where a is not b. */
const char *mpt_differs(const uint8_t *a, const uint8_t *b, uint32_t from, uint32_t to);

/* --- memprot_seal.c ---------------------------------------------------------------------- */

extern struct mpt_seal {
	enum rv_action act[2]; /* of regions one and two */
	_Atomic uint32_t events, by_region[2];
	struct rv_write last;		  /* the first since events was 0 */
	void (*asked)(struct rv_vcpu *v); /* or NULL: called before the answer */
	pthread_mutex_t lock;
} mpt_seal;

/* --- memprot_insns.c --------------------------------------------------------------------- */

enum {
	F_STACK = 1, /* the stack pointer is the base, too */
	F_AVX = 2,   /* ymm0, ymm1 from the source */
	F_AVX512 = 4,
	F_MMIO = 8,	  /* KVM emulates it: the violation comes late, by physical address */
	F_XSAVE = 16,	  /* needs XSAVE only */
	F_REP = 32,	  /* elements before the protected page land in any case */
	F_SKIP_OPEN = 64, /* never lands anywhere protected: a control */
	F_MATCH = 128,	  /* rdx:rax is what lies there: the comparison succeeds */
	F_MATCH32 = 256,
	F_CX16 = 2048,
	F_LOOSE = 1024, /* TCG loses the flags of a locked operation across pages when stepped */
	F_FRAME = 512,	/* stores its own stack address, 24 below the base */
};

struct mpt_insn {
	const char *name, *hex;
	uint32_t off; /* of rbx and rdi (and rsp) in the window */
	uint32_t rcx;
	uint32_t flags;
	uint32_t one, two; /* events expected in each region when recorded */
};

extern const struct mpt_insn mpt_insns[];
extern const size_t mpt_ninsns;

/* --- the tests --------------------------------------------------------------------------- */

extern const struct rv_bus_ops mpt_row_ops; /* for PORT_NEXT up to PORT_DATA */

void mpt_stores(void);
void mpt_two_regions(void);
void mpt_page_table_bits(void);
void mpt_storm(const char *name, enum rv_action act);
void mpt_exception_in_step(void);
void mpt_remap_before_step(void);
void mpt_init_before_step(void);

#endif
