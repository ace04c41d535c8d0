/* SPDX-License-Identifier: Apache-2.0 */
/* himem_guest.c: RAM above 4 GiB, and the hole below it. Argument: mem= in MiB, > 3072. */
#include "lib.h"

#define GIB  (1ul << 30)
#define HOLE (3 * GIB)
#define TOP  (4 * GIB)

/* Page directories for the gigabytes above the identity map that we were given. */
static uint64_t pd[8][512] __attribute__((aligned(4096)));

static void map(uint64_t first, uint64_t last)
{
	uint64_t cr3, *pml4, *pdpt;

	asm volatile("mov %%cr3, %0" : "=r"(cr3));
	pml4 = (uint64_t *)cr3;
	pdpt = (uint64_t *)(pml4[0] & ~0xfffull);
	for (uint64_t g = first; g <= last && g - first < 8; g++) {
		uint64_t phys = (uint64_t)pd[g - first] - 0xffffffff80000000ull;

		for (uint64_t i = 0; i < 512; i++)
			pd[g - first][i] = g << 30 | i << 21 | 0x83;
		pdpt[g] = phys | 3;
	}
	asm volatile("mov %0, %%cr3" ::"r"(cr3) : "memory");
}

void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs)
{
	const struct e820 *e = (const struct e820 *)(bp + BP_E820);
	uint64_t mem = arg("mem", 0) << 20, end = TOP + mem - HOLE, found = 0;
	uint64_t at[6] = {TOP,		TOP + 0x1000, TOP + (mem - HOLE) / 2, end - 0x200000,
			  end - 0x1000, end - 8};
	uint64_t low[3] = {HOLE - 8, HOLE - 0x200000, 0x2000000};
	bool ok = true;

	(void)entry, (void)cs;
	for (uint32_t i = 0; i < bp[BP_E820_N]; i++)
		if (e[i].addr == TOP && e[i].type == 1)
			found = e[i].size;
	report("e820-high", found == mem - HOLE, "0x%lx, expected 0x%lx", found, mem - HOLE);
	map(4, end >> 30);
	for (uint32_t i = 0; i < 6; i++)
		write64(at[i], 0xabcd000000000000ull | at[i]);
	for (uint32_t i = 0; i < 3; i++)
		write64(low[i], 0x1234000000000000ull | low[i]);
	/* All written before the first is read back: two names of one place would show. */
	for (uint32_t i = 0; i < 6; i++)
		if (read64(at[i]) != (0xabcd000000000000ull | at[i])) {
			print("# 0x%lx reads 0x%lx\n", at[i], read64(at[i]));
			ok = false;
		}
	report("high-ram", ok, "wrong bytes");
	ok = true;
	for (uint32_t i = 0; i < 3; i++)
		ok &= read64(low[i]) == (0x1234000000000000ull | low[i]);
	report("low-ram-beside-it", ok, "wrong bytes");
	report("hole", read64(HOLE) == ~0ull && read64(TOP - 8) != 0x1234, "0x%lx", read64(HOLE));
	report("hole-edge", read64(HOLE - 4) >> 32 == 0xffffffff, "0x%lx", read64(HOLE - 4));
	report("behind-the-end", read64(end) == ~0ull, "0x%lx", read64(end));
	write64(end, 0);
	report("behind-the-end-write", read64(end) == ~0ull, "0x%lx", read64(end));
	finish();
}
