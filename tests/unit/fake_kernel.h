/* SPDX-License-Identifier: Apache-2.0 */
/* fake_kernel.h: a kernel image with symbols, types, modules and a task, for unit tests. */
#ifndef RV_TEST_FAKE_KERNEL_H
#define RV_TEST_FAKE_KERNEL_H

#include "fake_source.h"
#include "linux/linux.h"

/* The image: link-time va FK_LINK, running at FK_BASE, in RAM at FK_GPA. */
#define FK_LINK	 0xffffffff81000000ull
#define FK_SLIDE 0x12000000ull
#define FK_BASE	 (FK_LINK + FK_SLIDE)
#define FK_GPA	 0x200000ull
#define FK_SIZE	 0x80000ull

/* Offsets in the image. */
#define FK_VFS_READ    0x1000u
#define FK_KSYS_READ   0x1100u
#define FK_ENTRY       0x1200u
#define FK_TEXT_END    0x1300u
#define FK_RODATA      0x7000u
#define FK_MODULES     0x8000u
#define FK_PAGE_OFFSET 0x8100u
#define FK_INIT_TASK   0x9000u
#define FK_PERCPU      0xa000u /* CPU 0's area; GS base points here */
#define FK_ORC_IP      0xb000u
#define FK_ORC	       0xc000u
#define FK_ORC_MAX     256u
#define FK_BTF	       0x20000u
#define FK_KALLSYMS    0x40000u
#define FK_CURRENT     0x20u /* per-CPU offset */

#define FK_DIRECT 0xffff888000000000ull

/* Modules: struct and memory of module n in one page each, at FK_MOD_VA + n * 0x10000. */
#define FK_MOD_VA     0xffffffffc0000000ull
#define FK_MOD_GPA    0x300000ull
#define FK_MOD_STEP   0x10000ull
#define FK_MOD_STRUCT 0x3000ull /* struct module inside */
#define FK_MOD_KS     0x4000ull /* struct mod_kallsyms */
#define FK_MOD_SYMTAB 0x4100ull
#define FK_MOD_STRTAB 0x5000ull
#define FK_MOD_ORC_IP 0x6000ull
#define FK_MOD_ORC    0x6100ull

/* Offsets of the made-up structures. */
#define FK_M_STATE    0u
#define FK_M_LIST     8u
#define FK_M_NAME     24u
#define FK_M_KALLSYMS 80u
#define FK_M_MEM      88u
#define FK_M_INIT     112u
#define FK_M_ARCH     200u
#define FK_M_SIZE     224u

enum fk_flavour {
	FK_OLD = 1, /* core_layout, current_task, 2-bit ORC types */
	FK_NEW,	    /* mem[7], pcpu_hot, 3-bit ORC types */
	FK_NOTYPES, /* no BTF */
};

struct fake_kernel {
	struct fake f;
	enum fk_flavour flavour;
	struct rv_kallsyms syms;
	struct rv_kernel_params params;
	struct rv_kernel k;
	uint32_t nmods;
};

void fk_init(struct fake_kernel *fk, enum fk_flavour flavour);
void fk_deinit(struct fake_kernel *fk);

/* Append a live module with text, data and two symbols: NAME_fn at +0x100 and
 * NAME_var at +0x1010. */
void fk_add_module(struct fake_kernel *fk, const char *name);
uint64_t fk_mod_gpa(uint32_t n, uint64_t off);
uint64_t fk_mod_va(uint32_t n, uint64_t off);
uint64_t fk_img_gpa(uint64_t off);
uint64_t fk_img_va(uint64_t off);

#endif
