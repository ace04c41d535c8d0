/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c: where something may go, and which place it gets. Each possible start is
 * equally likely whichever window it lies in, so the entropy is log2 of their number:
 * the most that any scheme can give.
 */
#include "place.h"

#include <sys/random.h>

uint64_t rv_random_below(uint64_t n)
{
	/* Rejection: the last, incomplete run of n values would favour small ones. */
	uint64_t limit = UINT64_MAX - (UINT64_MAX % n + 1) % n;
	uint64_t v;

	do {
		/* Up to 256 bytes come whole or, before the host's pool is ready, not at all. */
		while (getrandom(&v, sizeof(v), 0) != sizeof(v))
			;
	} while (v > limit);
	return v % n;
}

double rv_log2(uint64_t n)
{
	/* libm would cost the monitor 330 KiB of memory for this one use. */
	int e = 63 - __builtin_clzll(n);
	double m = (double)n / (double)(1ull << e), bits = e;

	for (double digit = 0.5; digit > 1e-7; digit /= 2) {
		m *= m;
		if (m >= 2) {
			m /= 2;
			bits += digit;
		}
	}
	return bits;
}

static void add_run(struct rv_windows *ws, uint64_t lo, uint64_t hi, uint64_t need, uint64_t align)
{
	uint64_t first = (lo + align - 1) & ~(align - 1);

	if (first < lo || hi < first || hi - first < need || ws->n == RV_WINDOWS_MAX)
		return;
	ws->w[ws->n].first = first;
	ws->w[ws->n].slots = (hi - first - need) / align + 1;
	ws->n++;
}

void rv_windows_add(struct rv_windows *ws, uint64_t lo, uint64_t hi, uint64_t taken,
		    uint64_t taken_len, uint64_t need, uint64_t align)
{
	if (!taken_len || taken >= hi || taken + taken_len <= lo) {
		add_run(ws, lo, hi, need, align);
		return;
	}
	if (taken > lo)
		add_run(ws, lo, taken, need, align);
	if (taken + taken_len < hi)
		add_run(ws, taken + taken_len, hi, need, align);
}

uint64_t rv_windows_total(const struct rv_windows *ws)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < ws->n; i++)
		total += ws->w[i].slots;
	return total;
}

bool rv_windows_has(const struct rv_windows *ws, uint64_t addr, uint64_t align)
{
	for (uint32_t i = 0; i < ws->n; i++)
		if (addr >= ws->w[i].first && !(addr & (align - 1)) &&
		    (addr - ws->w[i].first) / align < ws->w[i].slots)
			return true;
	return false;
}

uint64_t rv_windows_draw(const struct rv_windows *ws, uint64_t align)
{
	uint64_t pick = rv_random_below(rv_windows_total(ws));
	uint32_t i = 0;

	while (pick >= ws->w[i].slots)
		pick -= ws->w[i++].slots;
	return ws->w[i].first + pick * align;
}
