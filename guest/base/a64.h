/* SPDX-License-Identifier: Apache-2.0 */
/* a64.h: the two facts about arm64 code that its readers share: calls, and signed pointers. */
#ifndef RV_GUEST_A64_H
#define RV_GUEST_A64_H

#include <stdbool.h>
#include <stdint.h>

#define RV_A64_BL      0x94000000u /* Arm ARM, C6.2, BL: imm26 counts words and is signed */
#define RV_A64_BL_MASK 0xfc000000u

/* Where the call at va leads; false: the word is no BL. */
static inline bool rv_a64_bl_target(uint32_t word, uint64_t va, uint64_t *target)
{
	if ((word & RV_A64_BL_MASK) != RV_A64_BL)
		return false;
	*target = va + (uint64_t)((int64_t)((uint64_t)word << 38) >> 36);
	return true;
}

/*
 * A return address without its signature, which fills the bits above the address (Arm ARM,
 * D8, "Pointer authentication"); bit 55 says which half it belongs to. tcr: TCR_EL1.
 */
static inline uint64_t rv_a64_strip_pac(uint64_t va, uint64_t tcr)
{
	uint32_t bits = 64 - (uint32_t)(tcr >> 16 & 63); /* T1SZ */

	if (bits > 55)
		return va;
	return va & (1ull << 55) ? va | ~0ull << bits : va & ~(~0ull << bits);
}

#endif
