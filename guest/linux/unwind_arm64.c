/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_arm64.c: who called, by frame records (arm64).
 *
 * The kernel is built with frame pointers: x29 points to a record of the caller's x29 and
 * the return address (AAPCS64, "The Frame Pointer"), and the chain ends in a record of
 * zeros (arch/arm64/kernel/stacktrace.c). A function without a record of its own shows
 * only in x30; that is believed where the instruction before it calls the very function
 * that ip is in. Return addresses may be signed in their upper bits.
 */
#include "base/a64.h"
#include "linux/linux.h"

/* The kernel's deepest stacks have some 60 frames; an IRQ on top adds 20. */
#define MAX_FRAMES 128u

/* Is lr behind a call of the function that holds ip? */
static bool is_caller(const struct rv_kernel *k, struct rv_view *v, uint64_t lr, uint64_t ip)
{
	struct rv_symbol fn;
	uint64_t off, target;
	uint32_t w;

	if (!k->cap[RV_KCAP_SYMBOLS].ok || !(lr >> 63) || lr & 3 ||
	    rv_view_read_u32(v, rv_gva_of(lr - 4), &w, NULL) ||
	    !rv_a64_bl_target(w, lr - 4, &target) ||
	    rv_kallsyms_nearest(&k->syms, ip, &fn, &off, NULL))
		return false;
	return target == fn.va;
}

size_t rv_unwind_records(const struct rv_kernel *k, const struct rv_unwind_regs *regs,
			 uint64_t *out, size_t max, bool *complete_out)
{
	uint64_t fp = regs->bp, lr = rv_a64_strip_pac(regs->lr, k->regs.arm64.tcr), record[2];
	struct rv_view v;
	size_t n = 0;

	if (complete_out)
		*complete_out = false;
	if (!(regs->ip >> 63) || rv_kernel_view(k, &v, NULL))
		return 0;
	if (n < max && is_caller(k, &v, lr, regs->ip))
		out[n++] = lr;
	for (uint32_t i = 0; i < MAX_FRAMES && n < max; i++) {
		if (!(fp >> 63) || fp & 7 ||
		    rv_view_read(&v, rv_gva_of(fp), record, sizeof(record), NULL))
			return n;
		if (!record[0] && !record[1]) {
			if (complete_out)
				*complete_out = true;
			return n;
		}
		record[1] = rv_a64_strip_pac(record[1], k->regs.arm64.tcr);
		if (!(record[1] >> 63))
			return n;
		/* The function's own record repeats what x30 has told already. */
		if (i || !n || record[1] != lr)
			out[n++] = record[1];
		fp = record[0];
	}
	return n;
}
