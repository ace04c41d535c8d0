/* SPDX-License-Identifier: Apache-2.0 */
/* place.h: uniform draws, and the windows of memory that something may be placed in. */
#ifndef RV_VMM_PLACE_H
#define RV_VMM_PLACE_H

#include <ravelin/types.h>

/* Uniform draw from [0, n), n > 0, from the host's CSPRNG. */
uint64_t rv_random_below(uint64_t n);

/* log2(n), n > 0, to better than 1e-6: the entropy of a uniform draw from n. */
double rv_log2(uint64_t n);

#define RV_WINDOWS_MAX 8

/* Runs of aligned starts that all are possible; disjoint. */
struct rv_windows {
	struct {
		uint64_t first, slots;
	} w[RV_WINDOWS_MAX];
	uint32_t n;
};

/*
 * Add every start in [lo, hi) from which need bytes fit without touching the taken
 * range. align is a power of two. Addresses do not wrap.
 */
void rv_windows_add(struct rv_windows *ws, uint64_t lo, uint64_t hi, uint64_t taken,
		    uint64_t taken_len, uint64_t need, uint64_t align);
uint64_t rv_windows_total(const struct rv_windows *ws);
bool rv_windows_has(const struct rv_windows *ws, uint64_t addr, uint64_t align);
/* One of all the starts, each equally likely; the total must not be 0. */
uint64_t rv_windows_draw(const struct rv_windows *ws, uint64_t align);

#endif
