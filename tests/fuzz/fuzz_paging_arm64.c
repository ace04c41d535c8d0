/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_paging_arm64.c: hostile arm64 page tables. The input is registers, then guest RAM. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "paging/paging.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RAM_MAX (256u << 10) /* four tables of the largest granule */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_paging_regs regs = {.arch = RV_ARCH_ARM64};
	static uint8_t ram[RAM_MAX];
	struct rv_region region = {0, RAM_MAX, ram};
	struct rv_source_mapped m;
	struct rv_translation t;
	struct rv_view v;
	uint64_t w[10];
	uint8_t buf[256];

	if (size < sizeof(w))
		return 0;
	memcpy(w, data, sizeof(w));
	data += sizeof(w);
	size -= sizeof(w);
	memset(ram, 0, sizeof(ram));
	memcpy(ram, data, size < RAM_MAX ? size : RAM_MAX);
	regs.pa_bits = (uint32_t)w[0];
	regs.enc_mask = w[1];
	regs.arm64.ttbr0 = w[2];
	regs.arm64.ttbr1 = w[3];
	regs.arm64.tcr = w[4];
	regs.arm64.sctlr = w[5] | 1;
	regs.arm64.tcr2 = w[6];
	regs.arm64.pir = w[7];
	regs.arm64.pire0 = w[8];
	if (rv_source_mapped_init(&m, &region, 1, NULL))
		abort();
	if (rv_view_init(&v, &m.base, &regs, 200, NULL))
		abort();
	if (!rv_view_translate(&v, rv_gva_of(w[9]), &t, NULL)) {
		/* A page is aligned, and no walk is longer than the architecture's. */
		if ((t.gpa.v ^ w[9]) & 0xfff || !t.nsteps || t.nsteps > RV_PAGING_MAX_LEVELS ||
		    t.gpa.v >> 52)
			abort();
	}
	(void)!rv_view_read(&v, rv_gva_of(w[9]), buf, sizeof(buf), NULL);
	return 0;
}
