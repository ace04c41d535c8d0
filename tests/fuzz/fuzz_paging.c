/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_paging.c: hostile page tables. The input is registers, then guest RAM. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "paging/paging.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Entries point anywhere, so they are squeezed into the little RAM there is. */
#define RAM_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_paging_regs regs = {.arch = RV_ARCH_X86_64};
	static uint8_t ram[RAM_MAX];
	struct rv_region region = {0, RAM_MAX, ram};
	struct rv_source_mapped m;
	struct rv_translation t;
	struct rv_view v;
	uint64_t w[6];
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
	regs.x86.cr3 = w[2] & (w[5] & 1 ? 0xf000 : ~0ull);
	regs.x86.cr4 = w[3] | 1 << 5;
	regs.x86.efer = w[4] | 1 << 10;
	if (rv_source_mapped_init(&m, &region, 1, NULL))
		abort();
	if (rv_view_init(&v, &m.base, &regs, 200, NULL))
		abort();
	if (!rv_view_translate(&v, rv_gva_of(w[5]), &t, NULL)) {
		/* A page is aligned, and no walk is longer than the architecture's. */
		if ((t.gpa.v ^ w[5]) & 0xfff || !t.nsteps || t.nsteps > RV_PAGING_MAX_LEVELS)
			abort();
	}
	(void)!rv_view_read(&v, rv_gva_of(w[5]), buf, sizeof(buf), NULL);
	if (!rv_view_read_name(&v, rv_gva_of(w[5]), (char *)buf, sizeof(buf), NULL) &&
	    !memchr(buf, 0, sizeof(buf)))
		abort();
	return 0;
}
