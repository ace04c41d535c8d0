/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kaslr.c: which virtual base the kernel will choose from a seed, and the seed for a base
 * that we have drawn.
 *
 * An arm64 kernel relocates itself. kaslr_early_init() (arch/arm64/kernel/pi/
 * kaslr_early.c) turns /chosen/kaslr-seed into an offset, of which the multiple of 2 MiB
 * counts. There are two ways, told apart by the constants and instructions in that
 * function, never by a version:
 *
 *   v6.0 to v6.8	BIT(VA_BITS_MIN - 3) + (seed & GENMASK(VA_BITS_MIN - 3, 0))
 *   v6.9 on		range / 2 + (range * seed >> 64), range half the distance from
 *			KIMAGE_VADDR to VMALLOC_END (3567fa63cb56 "arm64: kaslr: Adjust
 *			randomization range dynamically")
 *
 * VMALLOC_END of a kernel for 52-bit addresses (v6.9 on: LPA2) depends on whether the
 * processor has them: ID_AA64MMFR0_EL1.TGRAN4. Sizes below are for 4 KiB pages and a
 * struct page of 64 bytes; a kernel built otherwise has other constants in its code.
 */
#include "arm64.h"
#include "place.h"

#include <ravelin/kallsyms.h>

#include <string.h>

#define MIB2	   (2ull << 20)
#define MASK_FIRST (1ull << 45)
#define MASK_BITS  46u
#define FUNC_MAX   4096u /* bytes; it has some 250 */
#define CONST_MAX  64u
#define SHIFT_MAX  12u /* a range that is shifted into place: by 6, less what was halved */
#define SEED_TRIES 64u

/* VMALLOC_END - KIMAGE_VADDR (arch/arm64/include/asm/{memory,pgtable}.h, v6.9 on):
 * 2^47 - 2 GiB (modules) - 1 GiB - vmemmap - 8 MiB; vmemmap of a 52-bit linear map, of
 * which all is used or only the part for 48 bits. */
#define TOTAL_ROOM ((1ull << 47) - (2ull << 30) - (1ull << 30) - (8ull << 20))
#define TOTAL_52   (TOTAL_ROOM - (((1ull << 52) - (1ull << 47)) >> 12) * 64)
#define TOTAL_48   (TOTAL_ROOM - (((1ull << 48) - (1ull << 47)) >> 12) * 64)

struct code {
	bool and46; /* and xd, xn, #2^46-1 */
	bool umulh;
	uint64_t c[CONST_MAX]; /* made by movz, movn and movk */
	uint32_t n;
};

/* Arm ARM, C6.2: AND (immediate), MOVZ, MOVN, MOVK, UMULH; 64-bit forms. */
static void scan(const uint8_t *p, size_t len, struct code *out)
{
	uint64_t reg[32] = {0};

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t w, rd, hw;
		uint64_t imm;

		memcpy(&w, p + i, sizeof(w));
		rd = w & 31;
		hw = w >> 21 & 3;
		imm = (uint64_t)(w >> 5 & 0xffff) << 16 * hw;
		out->and46 |= (w & 0xfffffc00u) == 0x9240b400u;
		out->umulh |= (w & 0xffe0fc00u) == 0x9bc07c00u;
		switch (w & 0xff800000u) {
		case 0xd2800000u: reg[rd] = imm; break;
		case 0x92800000u: reg[rd] = ~imm; break;
		case 0xf2800000u: reg[rd] = (reg[rd] & ~(0xffffull << 16 * hw)) | imm; break;
		default: continue;
		}
		if (out->n < CONST_MAX)
			out->c[out->n++] = reg[rd];
	}
}

static bool has_const(const struct code *c, uint64_t v)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->c[i] == v)
			return true;
	return false;
}

/* Is v there, perhaps with zeros cut off that a shift puts back? */
static bool has_shifted(const struct code *c, uint64_t v)
{
	for (uint32_t s = 0; s <= SHIFT_MAX && (v >> s) << s == v; s++)
		if (has_const(c, v >> s))
			return true;
	return false;
}

int rv_arm64_kaslr_find(const struct rv_image *img, uint64_t mmfr0, struct rv_arm64_kaslr *out,
			struct rv_err *err)
{
	const struct rv_kallsyms *k = rv_image_kallsyms(img);
	bool lpa2 = (mmfr0 >> 28 & 15) == 1; /* TGRAN4: 4 KiB granule with 52-bit addresses */
	struct rv_symbol s;
	struct code c;
	uint64_t off;

	if (!k || rv_kallsyms_lookup(k, "__pi_kaslr_early_init", &s, NULL))
		return rv_err_set(err, RV_EUNSUPPORTED, "kaslr",
				  "no symbol __pi_kaslr_early_init: not known how this kernel "
				  "would use a seed");
	off = s.va - k->link_base;
	if (off >= k->len || s.size > k->len - off || s.size > FUNC_MAX)
		return rv_err_at(err, RV_EBADDATA, s.va, "kaslr",
				 "__pi_kaslr_early_init lies outside the image");
	scan(k->mem + off, s.size, &c);
	out->total = 0;
	if (c.and46 && !c.umulh && has_const(&c, MASK_FIRST))
		return 0;
	if (c.umulh && has_shifted(&c, TOTAL_52))
		out->total = lpa2 ? TOTAL_52 : TOTAL_48;
	else if (c.umulh && has_shifted(&c, TOTAL_48 / 2))
		out->total = TOTAL_48;
	else
		return rv_err_at(err, RV_EUNSUPPORTED, s.va, "kaslr",
				 "__pi_kaslr_early_init uses the seed in a way that is not known");
	return 0;
}

void rv_arm64_kaslr_slots(const struct rv_arm64_kaslr *k, uint64_t *first, uint64_t *slots)
{
	uint64_t range = k->total / 2;

	if (!k->total) {
		*first = MASK_FIRST;
		*slots = (1ull << MASK_BITS) / MIB2;
		return;
	}
	/* Only bases all of whose 2 MiB a seed can lead to: so all are equally likely. */
	*first = (range / 2 + MIB2 - 1) & ~(MIB2 - 1);
	*slots = (range / 2 + range - *first) / MIB2;
}

uint64_t rv_arm64_kaslr_delta(const struct rv_arm64_kaslr *k, uint64_t seed)
{
	uint64_t range = k->total / 2, off;

	if (!k->total)
		off = MASK_FIRST + (seed & ((1ull << MASK_BITS) - 1));
	else
		off = range / 2 + (uint64_t)((unsigned __int128)range * seed >> 64);
	return off & ~(MIB2 - 1);
}

bool rv_arm64_kaslr_seed(const struct rv_arm64_kaslr *k, uint64_t delta, uint64_t *seed)
{
	uint64_t range = k->total / 2;

	if (k->total && !range)
		return false;
	for (uint32_t i = 0; i < SEED_TRIES; i++) {
		uint64_t off = delta + rv_random_below(MIB2), s;

		if (!k->total) {
			s = (off - MASK_FIRST) | rv_random_below(1u << (64 - MASK_BITS))
							 << MASK_BITS;
		} else {
			uint64_t each = UINT64_MAX / range, t = off - range / 2;

			/* The first seed of those that give t, and any of the others. */
			if (off < range / 2 || t >= range)
				return false;
			s = (uint64_t)((((unsigned __int128)t << 64) + range - 1) / range) +
			    rv_random_below(each);
		}
		if (s && rv_arm64_kaslr_delta(k, s) == delta) {
			*seed = s;
			return true;
		}
	}
	return false;
}
