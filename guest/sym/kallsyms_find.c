/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms_find.c: finds a kallsyms table in a flat image by its own structure.
 *
 * The token tables are the anchor: the single-character tokens '0' to '9' are
 * always there, one after the other, and the index of all 256 tokens must agree
 * with their text. From there backwards lie the markers and the names, which
 * must agree with each other; the addresses lie before the names (until v6.3) or
 * behind the tokens (since v6.4, commit 404bad70fcf7 "scripts/kallsyms: change
 * the output order"), and must ascend. Nothing is taken from a version number.
 */
#include "kallsyms_table.h"

#include <string.h>

/*
 * Steps (words and bytes) that the search for the names may take in all; the true table is walked
 * twice (4 MiB in the largest kernel seen), wrong candidates end within a few bytes.
 */
#define WALK_BUDGET (128u << 20)

/* Hits of "0" "1" ... "9" that are looked at: real kernels have one or two. */
#define ANCHORS_MAX 64

/* A link address this far below the image can still be a base (arm64: _text - 64K). */
#define BASE_SLACK (16u << 20)

/* Symbols reach past the file's bytes into bss: 1 GiB is the x86 kernel mapping's size. */
#define SPAN_SLACK (1ull << 30)

struct finder {
	const uint8_t *mem;
	size_t len;
	uint64_t link_base;
	uint64_t budget;
	struct rv_kallsyms_layout lay;
};

static uint64_t align_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

/* The tokens '0'..255 follow one another from digits on: where do they end? */
static bool tokens_end(const struct finder *f, uint64_t digits, uint64_t *end_out)
{
	uint64_t at = digits;
	unsigned int t;

	for (t = '0'; t < KSYM_TOKENS; t++) {
		size_t room = f->len - (size_t)at;
		const uint8_t *nul = memchr(f->mem + at, 0, room < 512 ? room : 512);

		if (!nul)
			return false;
		at = (uint64_t)(nul - f->mem) + 1;
	}
	*end_out = at;
	return true;
}

/* Do the 256 entries of the index at idx_off name the starts of 256 tokens? */
static bool index_valid(const struct finder *f, uint64_t idx_off, uint64_t digits,
			uint64_t *table_out)
{
	uint16_t idx[KSYM_TOKENS];
	uint64_t table, at;
	unsigned int t;

	if (!rv_get(f->mem, f->len, idx_off, idx, sizeof(idx)))
		return false;
	if (idx[0] != 0 || idx['0'] == 0 || idx['0'] > digits)
		return false;
	table = at = digits - idx['0'];
	for (t = 0; t < KSYM_TOKENS; t++) {
		const uint8_t *nul;

		if (table + idx[t] != at)
			return false;
		nul = memchr(f->mem + at, 0, f->len - (size_t)at < 512 ? f->len - (size_t)at : 512);
		if (!nul)
			return false;
		at = (uint64_t)(nul - f->mem) + 1;
	}
	*table_out = table;
	return true;
}

static bool tokens_find(struct finder *f, uint64_t from, uint64_t *next_out)
{
	static const char digits[20] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
	const uint8_t *hit;
	uint64_t end, at, i;

	if (from >= f->len)
		return false;
	hit = memmem(f->mem + from, f->len - (size_t)from, digits, sizeof(digits));
	if (!hit)
		return false;
	at = (uint64_t)(hit - f->mem);
	*next_out = at + 1;
	f->lay.token_index = 0;
	if (!tokens_end(f, at, &end))
		return true;
	/* The index starts at the next multiple of 2, 4 or 8. */
	for (i = align_up(end, 2); i <= end + 8; i += 2) {
		if (index_valid(f, i, at, &f->lay.token_table)) {
			f->lay.token_index = i;
			break;
		}
	}
	return true;
}

/* Walk n names from off; stop at limit. False where they do not fit. */
static bool names_walk(struct finder *f, uint64_t off, uint32_t n, uint64_t limit,
		       uint64_t *end_out)
{
	uint64_t at = off;
	uint32_t i, len, head;

	for (i = 0; i < n; i++) {
		if (at >= limit || !ksym_len_at(f->mem, (size_t)limit, at, &len, &head) || !len)
			break;
		at += head + len;
	}
	f->budget -= at - off < f->budget ? at - off : f->budget;
	*end_out = at;
	return i == n && at <= limit;
}

/* Walk again, and compare each marker with the place of its name. */
static bool markers_agree(struct finder *f, uint64_t names, uint32_t n, uint64_t markers,
			  uint32_t size, uint64_t limit)
{
	uint64_t at = names, m;
	uint32_t i, len, head;

	for (i = 0; i < n; i++) {
		if (i % KSYM_MARKER_STEP == 0) {
			m = 0;
			if (!rv_get(f->mem, (size_t)limit, markers, &m, size) || m != at - names)
				return false;
			markers += size;
		}
		if (!ksym_len_at(f->mem, (size_t)limit, at, &len, &head))
			return false;
		at += head + len;
	}
	f->budget -= at - names < f->budget ? at - names : f->budget;
	return true;
}

static bool names_accept(struct finder *f, uint64_t names, uint32_t n)
{
	static const uint32_t sizes[] = {4, 8};
	static const uint32_t aligns[] = {8, 4};
	uint64_t end, limit = f->lay.token_table;
	size_t a, s;

	if (!names_walk(f, names, n, limit, &end))
		return false;
	for (a = 0; a < 2; a++) {
		for (s = 0; s < 2; s++) {
			uint64_t markers = align_up(end, aligns[a]);

			if (!markers_agree(f, names, n, markers, sizes[s], limit))
				continue;
			f->lay.num_syms = n;
			f->lay.names = names;
			f->lay.names_len = end - names;
			f->lay.markers = markers;
			f->lay.marker_size = sizes[s];
			return true;
		}
	}
	return false;
}

/*
 * From the tokens downwards, a number that could be the count of symbols, with
 * that many names behind it. The names start 8 bytes on, or 4 since v7.0.
 * *count_off is where the number lies.
 */
static int names_find(struct finder *f, uint64_t *count_off, struct rv_err *err)
{
	uint64_t p, table = f->lay.token_table;

	for (p = (table & ~3ull); p >= 4 && f->budget;) {
		uint32_t w[2];
		uint64_t room;

		p -= 4;
		f->budget--;
		if (!rv_get(f->mem, f->len, p, w, sizeof(w)))
			continue;
		if (w[0] < KSYM_MIN_SYMS || w[0] > KSYM_MAX_SYMS)
			continue;
		/* A name takes 2 bytes or more; with markers and sequence, below 64 on average. */
		room = table - p;
		if (2ull * w[0] > room || room > 64ull * w[0] + 65536)
			continue;
		*count_off = p;
		if (w[1] == 0 && p % 8 == 0 && names_accept(f, p + 8, w[0]))
			return 0;
		if (names_accept(f, p + 4, w[0]))
			return 0;
	}
	if (!f->budget)
		return rv_err_at(err, RV_EBUDGET, table, "kallsyms",
				 "gave up the search for the names before these tokens");
	return rv_err_at(err, RV_EBADDATA, table, "kallsyms",
			 "token tables, but no names and markers before them that agree");
}

static bool base_plausible(const struct finder *f, uint64_t base)
{
	return base >= f->link_base - BASE_SLACK && base < f->link_base + f->len;
}

static bool last_plausible(const struct finder *f, uint64_t va)
{
	return va >= f->link_base && va - f->link_base < f->len + SPAN_SLACK;
}

/* u32 from the base, ascending; or first ascending absolute, then base - 1 - v. */
static bool accept_relative(struct finder *f, uint64_t offsets, uint64_t base_off)
{
	uint32_t i, n = f->lay.num_syms, first = 0, prev = 0;
	uint64_t base;
	bool percpu = false, plain = true, split = true;

	if (!rv_get(f->mem, f->len, base_off, &base, sizeof(base)) || !base_plausible(f, base) ||
	    offsets > f->len || 4ull * n > f->len - offsets)
		return false;
	for (i = 0; i < n && (plain || split); i++) {
		uint32_t v;

		memcpy(&v, f->mem + offsets + 4ull * i, sizeof(v));
		if (i == 0)
			first = v;
		else if (v < prev)
			plain = false;
		if ((int32_t)v < 0) {
			if (percpu && v > prev)
				split = false;
			percpu = true;
		} else if (percpu || (i && v < prev)) {
			split = false;
		}
		prev = v;
	}
	split = split && percpu && last_plausible(f, base + ~prev);
	plain = plain && prev > first && last_plausible(f, base + prev);
	if (!split && !plain)
		return false;
	f->lay.encoding = plain ? RV_KSYM_RELATIVE : RV_KSYM_ABSOLUTE_PERCPU;
	f->lay.offsets = offsets;
	f->lay.relative_base = base;
	return true;
}

static bool accept_prel32(struct finder *f, uint64_t offsets)
{
	uint32_t i, n = f->lay.num_syms;
	int64_t prev = 0, first = 0;

	if (offsets > f->len || 4ull * n > f->len - offsets)
		return false;
	for (i = 0; i < n; i++) {
		int64_t at = (int64_t)(offsets + 4ull * i);
		int32_t s;

		memcpy(&s, f->mem + at, sizeof(s));
		if (i == 0)
			first = at + s;
		else if (at + s < prev)
			return false;
		prev = at + s;
	}
	/*
	 * Zeros would pass as "each entry means itself". A table of a kernel starts at
	 * its first symbol, which is text or per-CPU and lies before the table.
	 */
	if (first >= (int64_t)offsets || first < -(int64_t)BASE_SLACK || prev <= first)
		return false;
	if (!last_plausible(f, f->link_base + (uint64_t)prev))
		return false;
	f->lay.encoding = RV_KSYM_PREL32;
	f->lay.offsets = offsets;
	f->lay.relative_base = 0;
	return true;
}

static bool accept_absolute(struct finder *f, uint64_t addrs)
{
	uint32_t i, n = f->lay.num_syms, inside = 0;
	uint64_t v = 0, prev = 0;

	if (addrs > f->len || 8ull * n > f->len - addrs)
		return false;
	for (i = 0; i < n; i++) {
		memcpy(&v, f->mem + addrs + 8ull * i, sizeof(v));
		if (v < prev)
			return false;
		inside += v >= f->link_base && v > prev;
		prev = v;
	}
	if (inside < 2 || !last_plausible(f, v))
		return false;
	f->lay.encoding = RV_KSYM_ABSOLUTE;
	f->lay.offsets = addrs;
	f->lay.relative_base = 0;
	return true;
}

static int addresses_find(struct finder *f, uint64_t count_off, struct rv_err *err)
{
	uint64_t after = f->lay.token_index + 2 * KSYM_TOKENS;
	uint64_t n = f->lay.num_syms;
	uint64_t b8 = align_up(after, 8), b4 = align_up(after, 4);

	if (accept_relative(f, b8, align_up(b8 + 4 * n, 8)) || accept_prel32(f, b4) ||
	    accept_absolute(f, b8))
		return 0;
	if (count_off >= 8 + 4 * n &&
	    accept_relative(f, (count_off - 8 - 4 * n) & ~7ull, count_off - 8))
		return 0;
	if (count_off >= 8 * n && accept_absolute(f, count_off - 8 * n))
		return 0;
	return rv_err_at(err, RV_EBADDATA, count_off, "kallsyms",
			 "%u names, but no addresses in any known encoding before or behind them",
			 f->lay.num_syms);
}

int rv_kallsyms_find(const void *flat, size_t len, uint64_t link_base, enum rv_arch arch,
		     struct rv_kallsyms_layout *out, struct rv_err *err)
{
	struct finder f = {.mem = flat, .len = len, .link_base = link_base, .budget = WALK_BUDGET};
	uint64_t from = 0, count_off = 0;
	bool seen = false;
	int i, rc = 0;

	if (!flat || !out || (arch != RV_ARCH_X86_64 && arch != RV_ARCH_ARM64))
		return rv_err_set(err, RV_EINVAL, "kallsyms", "no image or no such architecture");
	for (i = 0; i < ANCHORS_MAX && tokens_find(&f, from, &from); i++) {
		if (!f.lay.token_index)
			continue;
		seen = true;
		rc = names_find(&f, &count_off, err);
		if (!rc)
			rc = addresses_find(&f, count_off, err);
		if (!rc) {
			*out = f.lay;
			return 0;
		}
		if (rc == RV_EBUDGET)
			return rc;
	}
	if (seen)
		return rc;
	return rv_err_set(err, RV_ENOSYM, "kallsyms",
			  "no token table: built without CONFIG_KALLSYMS, or not a kernel");
}
