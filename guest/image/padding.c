/* SPDX-License-Identifier: Apache-2.0 */
/*
 * padding.c: the largest run of unused bytes inside .text, and what unwinds there.
 *
 * x86: .entry.text is aligned to 2 MiB so that page-table isolation can clone it
 * (arch/x86/kernel/vmlinux.lds.S, pti_clone_entry_text()), which leaves up to 2 MiB of
 * int3 before it. The run behind the entry code lies in the 2 MiB that are cloned
 * and would be mapped while user code runs, so it is not used. arm64: zeros.
 */
#include "parts.h"

#include <stdio.h>

#define PMD	 (2ull << 20)
#define STRIDE	 256  /* look at every 256th byte first: shorter runs are of no use */
#define RUN_MIN	 4096 /* one page of code is the least that the gate needs */
#define PAGE	 4096ull
#define ORC_SIZE 6

/* An entry as a function with a frame pointer has it after "mov rbp, rsp": CFA is
 * rbp + 16, the caller's rbp is at CFA - 16. Byte 5 is the type and differs. */
static const uint8_t orc_rbp_frame[5] = {0x10, 0x00, 0xf0, 0xff, 0x14};

struct run {
	uint64_t va, len;
};

static void run_take(struct run *best, uint64_t start, uint64_t end, uint64_t skip_from,
		     uint64_t skip_to)
{
	/* Cut the excluded range out of [start, end): at most two parts are left. */
	uint64_t a_end = end < skip_from ? end : skip_from;
	uint64_t b_start = start > skip_to ? start : skip_to;

	if (start < a_end && a_end - start > best->len)
		*best = (struct run){start, a_end - start};
	if (b_start < end && end - b_start > best->len)
		*best = (struct run){b_start, end - b_start};
}

/* The longest run of fill in text, outside [skip_from, skip_to). */
static struct run run_find(const struct rv_image *img, uint8_t fill, uint64_t skip_from,
			   uint64_t skip_to)
{
	const uint8_t *t = rv_image_bytes(img, img->text_va, img->text_len);
	struct run best = {0, 0};
	uint64_t i = 0;

	while (t && i < img->text_len) {
		uint64_t a, b;

		if (t[i] != fill) {
			i += STRIDE;
			continue;
		}
		for (a = i; a > 0 && t[a - 1] == fill; a--)
			;
		for (b = i + 1; b < img->text_len && t[b] == fill; b++)
			;
		run_take(&best, img->text_va + a, img->text_va + b, skip_from, skip_to);
		i = b + STRIDE;
	}
	return best;
}

static uint64_t orc_ip(const struct rv_image *img, const struct rv_table *ip, uint32_t n)
{
	uint64_t va = ip->va + 4ull * n;
	int32_t rel;

	memcpy(&rel, rv_image_bytes(img, va, 4), sizeof(rel));
	return va + (uint64_t)(int64_t)rel;
}

/*
 * The type byte of an ordinary call frame in this kernel. The numbers changed between
 * 6.1 and 6.12 (ORC_TYPE_* in arch/x86/include/asm/orc_types.h): CALL was 0 and is 2.
 * Rather than ask for a version,
 * look at the entries that this very kernel has for functions with a frame pointer.
 */
static bool orc_call_type(const uint8_t *orc, uint32_t count, uint8_t *type_out)
{
	uint32_t seen[256] = {0}, total = 0, i, best = 0;

	for (i = 0; i < count; i++) {
		const uint8_t *e = orc + (uint64_t)i * ORC_SIZE;

		if (memcmp(e, orc_rbp_frame, sizeof(orc_rbp_frame)))
			continue;
		seen[e[5]]++;
		total++;
	}
	for (i = 0; i < 256; i++)
		if (seen[i] > seen[best])
			best = i;
	*type_out = (uint8_t)best;
	/* Anything else with the same registers is rare (signal frames): 9 of 10 must agree. */
	return total >= 8 && seen[best] >= total - total / 10;
}

/* The terminator that covers the run; trims the run where it begins before it. */
static void orc_fix(const struct rv_image *img, struct rv_padding *pad)
{
	const struct rv_table *ip = rv_table_get(img, "orc_ip"), *orc = rv_table_get(img, "orc");
	static const uint8_t none[ORC_SIZE];
	const uint8_t *entries;
	uint32_t lo = 0, hi, at;
	uint64_t start, end = pad->va + pad->len;
	uint8_t type;

	if (!ip || !orc || !ip->found || !orc->found) {
		snprintf(pad->reason, sizeof(pad->reason), "no ORC tables: %.90s",
			 orc ? orc->reason : "");
		return;
	}
	entries = rv_image_bytes(img, orc->va, orc->size);
	/* The last entry that begins before the run's last byte. */
	for (hi = ip->count; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (orc_ip(img, ip, mid) >= end)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo == 0) {
		snprintf(pad->reason, sizeof(pad->reason), "ORC: no entry before the padding");
		return;
	}
	at = lo - 1;
	start = orc_ip(img, ip, at);
	if (memcmp(entries + (uint64_t)at * ORC_SIZE, none, ORC_SIZE)) {
		snprintf(pad->reason, sizeof(pad->reason),
			 "ORC: the padding is covered by a function's entry, not by a terminator");
		return;
	}
	if (start >= end || end - start < RUN_MIN) {
		snprintf(pad->reason, sizeof(pad->reason),
			 "ORC: the terminator covers only the end of the padding");
		return;
	}
	if (!orc_call_type(entries, orc->count, &type)) {
		snprintf(pad->reason, sizeof(pad->reason),
			 "ORC: no agreement on the type of a call frame in %u entries", orc->count);
		return;
	}
	/* int3 behind the last function's return still belong to that function. */
	if (start > pad->va) {
		pad->len = end - start;
		pad->va = start;
	}
	pad->has_orc = true;
	pad->orc_va = orc->va + (uint64_t)at * ORC_SIZE;
	memcpy(pad->orc_old, none, ORC_SIZE);
	memcpy(pad->orc_new, orc_rbp_frame, sizeof(orc_rbp_frame));
	pad->orc_new[5] = type;
}

void rv_padding_find(struct rv_image *img, const struct rv_symbol_want *w)
{
	struct rv_padding *pad = &img->padding;
	bool x86 = img->info.arch == RV_ARCH_X86_64;
	uint64_t skip_from = 0, skip_to = 0;
	struct run r;

	memset(pad, 0, sizeof(*pad));
	if (!img->text_len) {
		snprintf(pad->reason, sizeof(pad->reason), "no symbols _stext and _etext: %.70s",
			 img->info.symbols_reason);
		return;
	}
	if (x86 && w[N_ENTRY_START].count && w[N_ENTRY_END].count) {
		skip_from = w[N_ENTRY_START].va & ~(PMD - 1);
		skip_to = (w[N_ENTRY_END].va + PMD - 1) & ~(PMD - 1);
	} else if (x86) {
		snprintf(
			pad->reason, sizeof(pad->reason),
			"no symbols __entry_text_start and __entry_text_end: what is cloned for user mode is "
			"not known");
		return;
	}
	r = run_find(img, x86 ? 0xcc : 0, skip_from, skip_to);
	if (r.len < (x86 ? RUN_MIN : 2 * RUN_MIN)) {
		snprintf(pad->reason, sizeof(pad->reason),
			 "the longest run of 0x%02x in .text has %llu bytes, expected %d or more",
			 x86 ? 0xcc : 0, (unsigned long long)r.len, x86 ? RUN_MIN : 2 * RUN_MIN);
		return;
	}
	pad->found = true;
	pad->va = r.va;
	pad->len = r.len;
	if (x86) {
		orc_fix(img, pad);
		return;
	}
	/* The first zeros may be literals of the function before: leave its page alone. */
	pad->va = (r.va + PAGE - 1) & ~(PAGE - 1);
	pad->len = (r.va + r.len - pad->va) & ~(PAGE - 1);
}
