/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h: bounds-checked reading of any format, little endian.
 *
 * A read that does not fit leaves the cursor where it is and returns false;
 * the check always comes before the access. Used by every parser in guest/.
 */
#ifndef RV_GUEST_CURSOR_H
#define RV_GUEST_CURSOR_H

#include <ravelin/types.h>

#include <string.h>

struct rv_cursor {
	const uint8_t *base;
	size_t len;
	size_t pos;
};

static inline struct rv_cursor rv_cursor_of(const void *base, size_t len)
{
	struct rv_cursor c = {(const uint8_t *)base, len, 0};
	return c;
}

static inline size_t rv_cursor_left(const struct rv_cursor *c)
{
	return c->len - c->pos;
}

static inline bool rv_cursor_seek(struct rv_cursor *c, uint64_t pos)
{
	if (pos > c->len)
		return false;
	c->pos = (size_t)pos;
	return true;
}

static inline bool rv_cursor_skip(struct rv_cursor *c, uint64_t n)
{
	if (n > rv_cursor_left(c))
		return false;
	c->pos += (size_t)n;
	return true;
}

static inline bool rv_cursor_copy(struct rv_cursor *c, void *dst, size_t n)
{
	if (n > rv_cursor_left(c))
		return false;
	memcpy(dst, c->base + c->pos, n);
	c->pos += n;
	return true;
}

/* The targets are all little endian, and so are the hosts we build for. */
#define RV_CURSOR_GET(bits)                                                             \
	static inline bool rv_cursor_u##bits(struct rv_cursor *c, uint##bits##_t *out) \
	{                                                                               \
		return rv_cursor_copy(c, out, sizeof(*out));                            \
	}
RV_CURSOR_GET(8)
RV_CURSOR_GET(16)
RV_CURSOR_GET(32)
RV_CURSOR_GET(64)
#undef RV_CURSOR_GET

/* One-off reads at an offset; false and nothing written where it does not fit. */
static inline bool rv_get(const void *base, size_t len, uint64_t off, void *dst, size_t n)
{
	if (off > len || n > len - (size_t)off)
		return false;
	memcpy(dst, (const uint8_t *)base + (size_t)off, n);
	return true;
}

#endif
