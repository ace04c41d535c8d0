/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms.c: reads a kallsyms table in place: by index, by name, by address.
 *
 * The bytes may belong to a running guest, so nothing that was checked once is
 * trusted later: each access is checked against the view's length, each loop is
 * bounded by num_syms, by 256 tokens or by RV_KSYM_NAME_LEN.
 */
#include "kallsyms_table.h"

#include <stdio.h>
#include <string.h>

/*
 * The tokens, taken in once per call that expands many names. Nearly all have at most
 * 16 bytes; copying 16 always is several times faster than copying their length.
 */
#define TOKEN_FAST 16

struct tokens {
	const uint8_t *long_at[KSYM_TOKENS]; /* of tokens that are longer */
	uint16_t len[KSYM_TOKENS];
	uint8_t text[KSYM_TOKENS][TOKEN_FAST];
};

/* A token longer than this makes no name that fits. */
#define TOKEN_MAX RV_KSYM_NAME_LEN

/* Room for the longest name with its type and its NUL, and for a last copy of 16. */
#define NAME_BUF (RV_KSYM_NAME_LEN + 1 + TOKEN_FAST)

static int damaged(struct rv_err *err, uint64_t off, const char *what)
{
	return rv_err_at(err, RV_EBADDATA, off, "kallsyms", "%s", what);
}

static int tokens_load(const struct rv_kallsyms *k, struct tokens *t, struct rv_err *err)
{
	uint16_t idx[KSYM_TOKENS];
	size_t i;

	if (!rv_get(k->mem, k->len, k->lay.token_index, idx, sizeof(idx)))
		return damaged(err, k->lay.token_index, "the token index lies outside the image");
	for (i = 0; i < KSYM_TOKENS; i++) {
		uint64_t at = k->lay.token_table + idx[i];
		const uint8_t *nul;
		size_t room;

		if (at >= k->len)
			return damaged(err, at, "a token lies outside the image");
		room = k->len - (size_t)at;
		if (room > TOKEN_MAX)
			room = TOKEN_MAX;
		nul = memchr(k->mem + at, 0, room);
		if (!nul)
			return damaged(err, at, "a token has no end");
		t->len[i] = (uint16_t)(nul - (k->mem + at));
		t->long_at[i] = k->mem + at;
		memset(t->text[i], 0, TOKEN_FAST);
		memcpy(t->text[i], k->mem + at, t->len[i] < TOKEN_FAST ? t->len[i] : TOKEN_FAST);
	}
	return 0;
}

/* Where the name at off keeps its tokens, and how many; false where it does not fit. */
static bool name_span(const struct rv_kallsyms *k, uint64_t off, const uint8_t **tok,
		      uint32_t *n_out, uint64_t *next)
{
	uint64_t end = k->lay.names + k->lay.names_len;
	uint32_t head;

	if (end > k->len)
		end = k->len;
	if (off >= end || !ksym_len_at(k->mem, (size_t)end, off, n_out, &head) || *n_out == 0 ||
	    *n_out > end - off - head)
		return false;
	*tok = k->mem + off + head;
	*next = off + head + *n_out;
	return true;
}

/* Expand the name at *off, step *off to the next; buf holds type, then the name. */
static int name_next(const struct rv_kallsyms *k, const struct tokens *t, uint64_t *off,
		     char buf[NAME_BUF], uint32_t *len_out, struct rv_err *err)
{
	const uint8_t *tok;
	uint32_t n, i, used = 0;
	uint64_t next;

	if (!name_span(k, *off, &tok, &n, &next))
		return damaged(err, *off, "a name runs past the end of the names");
	for (i = 0; i < n; i++) {
		uint8_t c = tok[i];
		uint32_t len = t->len[c];

		if (used + len > RV_KSYM_NAME_LEN)
			return damaged(err, *off, "a name is longer than any kernel allows");
		if (len <= TOKEN_FAST)
			memcpy(buf + used, t->text[c], TOKEN_FAST);
		else
			memcpy(buf + used, t->long_at[c], len);
		used += len;
	}
	if (used == 0)
		return damaged(err, *off, "a name expands to nothing");
	buf[used] = 0;
	*len_out = used;
	*off = next;
	return 0;
}

/* Is the name at *off (without its type) want? Steps on; stops at the first difference. */
static int name_is(const struct rv_kallsyms *k, const struct tokens *t, uint64_t *off,
		   const char *want, size_t want_len, bool *same, struct rv_err *err)
{
	const uint8_t *tok;
	uint32_t n, i;
	size_t pos = 0, skip = 1; /* the first character is the type */
	uint64_t next;

	if (!name_span(k, *off, &tok, &n, &next))
		return damaged(err, *off, "a name runs past the end of the names");
	*off = next;
	*same = false;
	for (i = 0; i < n; i++) {
		uint8_t c = tok[i];
		const uint8_t *text = t->len[c] <= TOKEN_FAST ? t->text[c] : t->long_at[c];
		size_t len = t->len[c];

		if (skip && len) {
			text++;
			len--;
			skip = 0;
		}
		if (len > want_len - pos || memcmp(text, want + pos, len))
			return 0;
		pos += len;
	}
	*same = pos == want_len;
	return 0;
}

/* The offset of the nth name: from its marker, then by lengths (at most 255). */
static int name_seek(const struct rv_kallsyms *k, uint32_t n, uint64_t *off_out, struct rv_err *err)
{
	uint64_t at = k->lay.markers + (uint64_t)(n / KSYM_MARKER_STEP) * k->lay.marker_size;
	uint64_t end = k->lay.names + k->lay.names_len, marker = 0, off;
	uint32_t i, len, head;

	if (!rv_get(k->mem, k->len, at, &marker, k->lay.marker_size == 8 ? 8 : 4))
		return damaged(err, at, "a marker lies outside the image");
	if (marker > k->lay.names_len)
		return damaged(err, at, "a marker points past the end of the names");
	off = k->lay.names + marker;
	for (i = 0; i < n % KSYM_MARKER_STEP; i++) {
		if (off >= end || !ksym_len_at(k->mem, k->len, off, &len, &head))
			return damaged(err, off, "a name lies outside the names");
		off += head + len;
	}
	*off_out = off;
	return 0;
}

/* The nth address as it is returned, slide included. */
static int addr_at(const struct rv_kallsyms *k, uint32_t n, uint64_t *va, bool *absolute,
		   struct rv_err *err)
{
	uint64_t at = k->lay.offsets + (uint64_t)n * (k->lay.encoding == RV_KSYM_ABSOLUTE ? 8 : 4);
	uint64_t v64;
	int32_t s;

	*absolute = false;
	if (k->lay.encoding == RV_KSYM_ABSOLUTE) {
		if (!rv_get(k->mem, k->len, at, &v64, sizeof(v64)))
			return damaged(err, at, "an address lies outside the image");
		*absolute = v64 < k->link_base;
		*va = v64 + (*absolute ? 0 : k->slide);
		return 0;
	}
	if (!rv_get(k->mem, k->len, at, &s, sizeof(s)))
		return damaged(err, at, "an offset lies outside the image");
	switch (k->lay.encoding) {
	case RV_KSYM_RELATIVE: *va = k->lay.relative_base + (uint32_t)s + k->slide; return 0;
	case RV_KSYM_ABSOLUTE_PERCPU:
		*absolute = s >= 0;
		*va = s >= 0 ? (uint64_t)s
			     : k->lay.relative_base + (uint64_t)(-1 - (int64_t)s) + k->slide;
		return 0;
	case RV_KSYM_PREL32: *va = k->link_base + at + (uint64_t)(int64_t)s + k->slide; return 0;
	default:
		return rv_err_set(err, RV_EINVAL, "kallsyms", "no such encoding: %u",
				  k->lay.encoding);
	}
}

/* The first index >= from whose address is > va (or >= va with equal); num_syms if none. */
static int addr_bound(const struct rv_kallsyms *k, uint32_t from, uint64_t va, bool equal,
		      uint32_t *out, struct rv_err *err)
{
	uint32_t lo = from, hi = k->lay.num_syms;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		uint64_t a;
		bool absolute;
		int rc = addr_at(k, mid, &a, &absolute, err);

		if (rc)
			return rc;
		/* Absolute symbols are the lowest numbers and come first. */
		if (absolute ? false : (equal ? a >= va : a > va))
			hi = mid;
		else
			lo = mid + 1;
	}
	*out = lo;
	return 0;
}

/* The distance from symbol n, at va, to the next different address. */
static int size_at(const struct rv_kallsyms *k, uint32_t n, uint64_t va, bool absolute,
		   uint64_t *size_out, struct rv_err *err)
{
	uint32_t next = n + 1, i;
	uint64_t a = va;
	bool abs = absolute;
	int rc = 0;

	*size_out = 0;
	/* Aliases are few: look at the neighbours before searching. */
	for (i = 0; i < 8 && next < k->lay.num_syms && a == va; i++, next++) {
		rc = addr_at(k, next, &a, &abs, err);
		if (rc)
			return rc;
	}
	if (a == va && next < k->lay.num_syms && !absolute) {
		rc = addr_bound(k, next, va, false, &next, err);
		if (rc || next >= k->lay.num_syms)
			return rc;
		rc = addr_at(k, next, &a, &abs, err);
		if (rc)
			return rc;
	}
	if (abs == absolute && a > va)
		*size_out = a - va;
	return 0;
}

static int view_check(const struct rv_kallsyms *k, struct rv_err *err)
{
	if (!k || !k->mem || k->lay.num_syms > KSYM_MAX_SYMS || k->lay.names_len > k->len ||
	    k->lay.names > k->len || k->lay.markers > k->len || k->lay.offsets > k->len ||
	    k->lay.token_table > k->len || k->lay.token_index > k->len)
		return rv_err_set(err, RV_EINVAL, "kallsyms",
				  "the layout does not fit the memory it is used on");
	return 0;
}

int rv_kallsyms_at(const struct rv_kallsyms *k, uint32_t n, struct rv_symbol *out,
		   struct rv_err *err)
{
	char buf[NAME_BUF];
	struct tokens t;
	uint64_t off;
	uint32_t len;
	bool absolute;
	int rc = view_check(k, err);

	if (rc)
		return rc;
	if (n >= k->lay.num_syms)
		return rv_err_set(err, RV_EINVAL, "kallsyms", "no symbol %u, there are %u", n,
				  k->lay.num_syms);
	rc = tokens_load(k, &t, err);
	if (!rc)
		rc = name_seek(k, n, &off, err);
	if (!rc)
		rc = name_next(k, &t, &off, buf, &len, err);
	if (!rc)
		rc = addr_at(k, n, &out->va, &absolute, err);
	if (!rc)
		rc = size_at(k, n, out->va, absolute, &out->size, err);
	if (rc)
		return rc;
	out->type = buf[0];
	memcpy(out->name, buf + 1, len);
	return 0;
}

int rv_kallsyms_nearest(const struct rv_kallsyms *k, uint64_t va, struct rv_symbol *out,
			uint64_t *off_out, struct rv_err *err)
{
	uint32_t n, first;
	uint64_t a;
	bool absolute;
	int rc = view_check(k, err);

	if (!rc)
		rc = addr_bound(k, 0, va, false, &n, err);
	if (rc)
		return rc;
	if (n > 0)
		rc = addr_at(k, n - 1, &a, &absolute, err);
	if (rc)
		return rc;
	if (n == 0 || absolute)
		return rv_err_at(err, RV_ENOTMAPPED, va, "kallsyms", "below the first symbol");
	if (n == k->lay.num_syms && va != a && va - (k->link_base + k->slide) >= k->len)
		return rv_err_at(err, RV_ENOTMAPPED, va, "kallsyms", "beyond the last symbol");
	rc = addr_bound(k, 0, a, true, &first, err);
	/* A table that is not sorted (any more) may answer anything: stay inside. */
	if (!rc)
		rc = rv_kallsyms_at(k, first < n ? first : n - 1, out, err);
	if (rc)
		return rc;
	if (out->va > va)
		return damaged(err, k->lay.offsets, "the addresses are not in order");
	*off_out = va - out->va;
	return 0;
}

int rv_kallsyms_lookup(const struct rv_kallsyms *k, const char *name, struct rv_symbol *out,
		       struct rv_err *err)
{
	size_t want = strlen(name);
	struct tokens t;
	uint64_t off;
	uint32_t i;
	bool same;
	int rc = view_check(k, err);

	if (!rc)
		rc = tokens_load(k, &t, err);
	if (rc)
		return rc;
	off = k->lay.names;
	for (i = 0; i < k->lay.num_syms; i++) {
		rc = name_is(k, &t, &off, name, want, &same, err);
		if (rc)
			return rc;
		if (same)
			return rv_kallsyms_at(k, i, out, err);
	}
	return rv_err_set(err, RV_ENOSYM, "kallsyms", "no symbol \"%.100s\"", name);
}

int rv_kallsyms_each(const struct rv_kallsyms *k, int (*fn)(const struct rv_symbol *s, void *arg),
		     void *arg)
{
	char buf[NAME_BUF];
	struct rv_symbol s;
	struct tokens t;
	uint32_t i, len;
	uint64_t off;
	bool absolute;
	int rc = view_check(k, NULL);

	if (!rc)
		rc = tokens_load(k, &t, NULL);
	if (rc)
		return rc;
	off = k->lay.names;
	for (i = 0; i < k->lay.num_syms; i++) {
		rc = name_next(k, &t, &off, buf, &len, NULL);
		if (!rc)
			rc = addr_at(k, i, &s.va, &absolute, NULL);
		if (!rc)
			rc = size_at(k, i, s.va, absolute, &s.size, NULL);
		if (rc)
			return rc;
		s.type = buf[0];
		memcpy(s.name, buf + 1, len);
		rc = fn(&s, arg);
		if (rc)
			return rc;
	}
	return 0;
}

/* --- many names in one pass --------------------------------------------------- */

/* Wants by a cheap hash of length and ends of the name; chains by index. */
struct want_index {
	struct rv_symbol_want *w;
	size_t n;
	uint8_t head[256]; /* index + 1; 0 ends */
	uint8_t next[RV_SYMBOL_WANTS_MAX];
	uint8_t prefix[RV_SYMBOL_WANTS_MAX];
	uint16_t prefix_len[RV_SYMBOL_WANTS_MAX];
	size_t prefixes;
};

static uint8_t name_hash(const char *s, size_t len)
{
	return len ? (uint8_t)(len * 31 + (uint8_t)s[0] * 7 + (uint8_t)s[len - 1] * 13 +
			       (uint8_t)s[len / 2])
		   : 0;
}

static void want_index_build(struct want_index *x, struct rv_symbol_want *w, size_t n)
{
	size_t i;

	memset(x, 0, sizeof(*x));
	x->w = w;
	x->n = n;
	for (i = 0; i < n; i++) {
		size_t len = strlen(w[i].name);
		uint8_t h;

		w[i].count = 0;
		w[i].va = w[i].last = w[i].size = 0;
		w[i].type = 0;
		w[i].found[0] = 0;
		if (len && w[i].name[len - 1] == '*') {
			x->prefix_len[x->prefixes] = (uint16_t)(len - 1);
			x->prefix[x->prefixes++] = (uint8_t)i;
			continue;
		}
		h = name_hash(w[i].name, len);
		x->next[i] = x->head[h];
		x->head[h] = (uint8_t)(i + 1);
	}
}

static int want_hit(const struct rv_kallsyms *k, struct rv_symbol_want *w, uint32_t n,
		    const char *sym, size_t len, bool clone, struct rv_err *err)
{
	bool had_clone = w->count && strchr(w->found, '.') && !strchr(w->name, '.');
	uint64_t va;
	bool absolute;
	int rc;

	if (clone && (!w->stem || (w->count && !had_clone)))
		return 0;
	rc = addr_at(k, n, &va, &absolute, err);
	if (rc)
		return rc;
	if (had_clone && !clone)
		w->count = 0; /* the exact name beats what stood in for it */
	w->last = va;
	if (w->count++)
		return 0;
	w->va = va;
	w->type = sym[0];
	snprintf(w->found, sizeof(w->found), "%.*s", (int)(len > 63 ? 63 : len), sym + 1);
	return size_at(k, n, va, absolute, &w->size, err);
}

/* Length of the name without a compiler's clone suffix; len when it has none. */
static size_t stem_len(const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);

	if (!dot || dot == name)
		return len;
	if (strncmp(dot, ".constprop.", 11) == 0 || strncmp(dot, ".isra.", 6) == 0)
		return (size_t)(dot - name);
	return len;
}

static int want_match(const struct rv_kallsyms *k, struct want_index *x, uint32_t n,
		      const char *buf, size_t len, struct rv_err *err)
{
	size_t stem = stem_len(buf + 1, len), l = len, i;
	int rc = 0, pass;

	for (pass = 0; pass < (stem == len ? 1 : 2) && !rc; pass++, l = stem) {
		uint8_t at = x->head[name_hash(buf + 1, l)];

		for (; at && !rc; at = x->next[at - 1]) {
			struct rv_symbol_want *w = &x->w[at - 1];

			if (strncmp(w->name, buf + 1, l) == 0 && w->name[l] == 0)
				rc = want_hit(k, w, n, buf, len, pass == 1, err);
		}
	}
	for (i = 0; i < x->prefixes && !rc; i++) {
		struct rv_symbol_want *w = &x->w[x->prefix[i]];

		if (x->prefix_len[i] <= len && memcmp(w->name, buf + 1, x->prefix_len[i]) == 0)
			rc = want_hit(k, w, n, buf, len, false, err);
	}
	return rc;
}

int rv_kallsyms_resolve(const struct rv_kallsyms *k, struct rv_symbol_want *wants, size_t n,
			struct rv_err *err)
{
	char buf[NAME_BUF];
	struct want_index x;
	struct tokens t;
	uint32_t i, len;
	uint64_t off;
	int rc = view_check(k, err);

	if (!rc && n > RV_SYMBOL_WANTS_MAX)
		rc = rv_err_set(err, RV_EINVAL, "kallsyms", "%zu names at once, at most %d", n,
				RV_SYMBOL_WANTS_MAX);
	if (!rc)
		rc = tokens_load(k, &t, err);
	if (rc)
		return rc;
	want_index_build(&x, wants, n);
	off = k->lay.names;
	for (i = 0; i < k->lay.num_syms && !rc; i++) {
		rc = name_next(k, &t, &off, buf, &len, err);
		if (!rc)
			rc = want_match(k, &x, i, buf, len - 1, err);
	}
	return rc;
}

const char *rv_kallsyms_encoding_name(uint32_t encoding)
{
	switch (encoding) {
	case RV_KSYM_ABSOLUTE: return "absolute";
	case RV_KSYM_RELATIVE: return "relative";
	case RV_KSYM_ABSOLUTE_PERCPU: return "absolute-percpu";
	case RV_KSYM_PREL32: return "prel32";
	default: return "unknown";
	}
}
