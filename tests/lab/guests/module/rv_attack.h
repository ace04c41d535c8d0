/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rv_attack.h: what the parts of the attack module share.
 *
 * A writer is one function that holds one kind of store, so that the oops of a
 * refused store names both the module and the kind. An alias is a way to reach
 * memory that the kernel mapped read-only.
 */
#ifndef RV_ATTACK_H
#define RV_ATTACK_H

#include <linux/types.h>

#define RV_MAX_LEN 512 /* of one store: fxsave */

enum {
	RV_F_ALIGN16 = 1 << 0, /* needs a destination aligned to 16 */
	RV_F_CROSS = 1 << 1,   /* goes to the next page boundary, minus half its length */
	RV_F_IRQOFF = 1 << 2,  /* must not be interrupted */
	RV_F_FIXUP = 1 << 3,   /* the kernel catches the fault: no oops to expect */
};

struct rv_writer {
	const char *name;
	unsigned int len;
	unsigned int flags;
	void (*fn)(void *dst);
	bool (*usable)(void); /* NULL: always */
};

/* 64 bytes that no kernel text or table begins with. */
extern u8 rv_pattern[64];
/* User memory for the writers that copy from it. */
extern const char __user *rv_user_src;

extern const struct rv_writer rv_arch_writers[]; /* ends with a NULL name */

/*
 * Make addr writable where it is mapped, on this CPU. Called with interrupts
 * off; rv_arch_close() undoes it and is safe to call twice, also from an oops.
 */
int rv_arch_open_wp(void);
int rv_arch_open_pte(unsigned long addr);
void rv_arch_close(void);

/* Where control goes from the system call entry, for the target "gate"; 0: not known. */
unsigned long rv_arch_gate(unsigned long entry, unsigned long lo, unsigned long hi);
extern const char *const rv_arch_entry_symbol;
/* A function that nobody calls meanwhile, and a row of sys_call_table that leads nowhere. */
extern const char *const rv_arch_text_symbol;
extern const unsigned int rv_arch_table_row;

unsigned long rv_lookup(const char *name);

#endif
