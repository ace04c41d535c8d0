/* SPDX-License-Identifier: Apache-2.0 */
/* end_guest.c: the ways a guest ends, or does not. Argument: end=. */
#include "lib.h"

static void triple_fault(void)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) none = {0, 0};

	asm volatile("lidt %0; ud2" ::"m"(none));
}

void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs)
{
	(void)bp, (void)entry, (void)cs;
	print("READY\n");
	if (arg_is("end", "poweroff"))
		power_off();
	if (arg_is("end", "reset"))
		outb(PM_RESET, 1);
	if (arg_is("end", "kbd"))
		outb(KBD, 0xfe);
	if (arg_is("end", "triple"))
		triple_fault();
	if (arg_is("end", "spin"))
		asm volatile("cli; 1: jmp 1b");
	if (arg_is("end", "idle"))
		asm volatile("cli; 1: hlt; jmp 1b");
	if (arg_is("end", "busy")) /* makes progress, without an exit */
		asm volatile("cli; 1: inc %%rax; jmp 1b" ::: "rax");
	/* Whoever comes here asked for something that did not happen. */
	print("STILL HERE\n");
	asm volatile("cli; 1: hlt; jmp 1b");
}
