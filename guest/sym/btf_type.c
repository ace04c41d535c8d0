/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btf_type.c: answers from a kernel's BTF, read in place. See btf_type.h.
 *
 * Each record is copied to the stack and the copy is judged; nothing that was
 * read once is read again to be trusted.
 */
#include "sym/btf_type.h"

#include "base/cursor.h"

#include <string.h>

#define BTF_MAGIC   0xeb9fu
#define BTF_VERSION 1u
#define BTF_HDR_LEN 24u

/* 111,388 types in the largest stock kernel looked at (6.12 arm64), 4.9 MB. */
#define MAX_TYPES (4u << 20)
#define MAX_LEN	  (128u << 20)
/* Longest run of typedefs and qualifiers seen in kernels is 6. */
#define MAX_CHAIN 32u
/* Unnamed members inside unnamed members: 5 deep in struct page. */
#define MAX_DEPTH 16u
/* Members looked at for one path; task_struct with all that is unnamed has 300. */
#define MAX_MEMBERS 65536u
/* Longest name compared; C names in kernels stay below 128. */
#define MAX_NAME 256u

/* One type record as read: header words, and where the rest is. */
struct rec {
	uint32_t name, info, word; /* word: size or type */
	uint64_t rest;		   /* offset in the type section of what follows */
};

static uint32_t rec_kind(const struct rec *r)
{
	return r->info >> 24 & 31;
}

static uint32_t rec_vlen(const struct rec *r)
{
	return r->info & 0xffff;
}

/* Bit 31: offsets of members hold bit field sizes; enumerators are signed. */
static bool rec_flag(const struct rec *r)
{
	return r->info >> 31;
}

static int bad(struct rv_err *err, uint64_t off, const char *why)
{
	return rv_err_at(err, RV_EBADDATA, off, "btf", "%s", why);
}

/* Bytes after the three header words; false for a kind that is not known. */
static bool rest_len(const struct rec *r, uint64_t *out)
{
	uint64_t n = rec_vlen(r);

	switch (rec_kind(r)) {
	case RV_BTF_PTR:
	case RV_BTF_FWD:
	case RV_BTF_TYPEDEF:
	case RV_BTF_VOLATILE:
	case RV_BTF_CONST:
	case RV_BTF_RESTRICT:
	case RV_BTF_FUNC:
	case RV_BTF_FLOAT:
	case RV_BTF_TYPE_TAG: *out = 0; return true;
	case RV_BTF_INT:
	case RV_BTF_VAR:
	case RV_BTF_DECL_TAG: *out = 4; return true;
	case RV_BTF_ARRAY: *out = 12; return true;
	case RV_BTF_ENUM:
	case RV_BTF_FUNC_PROTO: *out = n * 8; return true;
	case RV_BTF_STRUCT:
	case RV_BTF_UNION:
	case RV_BTF_DATASEC:
	case RV_BTF_ENUM64: *out = n * 12; return true;
	default: return false;
	}
}

/* Read the record at *off and move *off to the next one. */
static bool rec_next(const struct rv_btf_types *b, uint64_t *off, struct rec *r)
{
	uint32_t w[3];
	uint64_t rest;

	if (!rv_get(b->types, b->types_len, *off, w, sizeof(w)))
		return false;
	*r = (struct rec){w[0], w[1], w[2], *off + sizeof(w)};
	if (!rest_len(r, &rest) || rest > b->types_len - r->rest)
		return false;
	*off = r->rest + rest;
	return true;
}

/* Does the string at an offset equal n bytes of name? */
static bool name_is(const struct rv_btf_types *b, uint32_t str, const char *name, size_t n)
{
	char buf[MAX_NAME];

	if (n >= sizeof(buf) || !rv_get(b->strs, b->strs_len, str, buf, n + 1))
		return false;
	return !memcmp(buf, name, n) && buf[n] == '\0';
}

static int types_count(struct rv_btf_types *b, struct rv_err *err)
{
	uint64_t off = 0;
	uint32_t id = 0;
	struct rec r;

	while (off < b->types_len) {
		uint64_t at = off;

		if (id == MAX_TYPES)
			return rv_err_at(err, RV_EBUDGET, at, "btf", "more than %u types",
					 MAX_TYPES);
		if (!rec_next(b, &off, &r))
			return bad(err, at, "a type of unknown kind, or cut off");
		id++;
		if (id % RV_BTF_INDEX_STEP == 0 && id / RV_BTF_INDEX_STEP < RV_BTF_INDEX_LEN)
			b->index[id / RV_BTF_INDEX_STEP] = (uint32_t)at;
	}
	b->count = id;
	return RV_OK;
}

int rv_btf_types_init(struct rv_btf_types *b, const void *btf, size_t len, struct rv_err *err)
{
	struct rv_cursor c = rv_cursor_of(btf, len);
	uint32_t hdr_len, type_off, type_len, str_off, str_len;
	uint8_t version, flags;
	uint16_t magic;

	memset(b, 0, sizeof(*b));
	if (!rv_cursor_u16(&c, &magic) || magic != BTF_MAGIC)
		return bad(err, 0, "no BTF magic number");
	if (!rv_cursor_u8(&c, &version) || !rv_cursor_u8(&c, &flags) ||
	    !rv_cursor_u32(&c, &hdr_len) || !rv_cursor_u32(&c, &type_off) ||
	    !rv_cursor_u32(&c, &type_len) || !rv_cursor_u32(&c, &str_off) ||
	    !rv_cursor_u32(&c, &str_len))
		return bad(err, c.pos, "the header is cut off");
	if (version != BTF_VERSION)
		return rv_err_set(err, RV_EUNSUPPORTED, "btf", "BTF version %u, expected %u",
				  version, BTF_VERSION);
	if (hdr_len < BTF_HDR_LEN || len > MAX_LEN || hdr_len > len)
		return bad(err, 4, "header length or table size out of range");
	len -= hdr_len;
	if (type_off > len || type_len > len - type_off)
		return bad(err, 8, "the type section lies outside the table");
	if (str_off > len || str_len > len - str_off)
		return bad(err, 16, "the string section lies outside the table");
	b->types = (const uint8_t *)btf + hdr_len + type_off;
	b->types_len = type_len;
	b->strs = (const uint8_t *)btf + hdr_len + str_off;
	b->strs_len = str_len;
	return types_count(b, err);
}

/* The record of a type id: from the index, then on by at most a step (or to the
 * end of the table for ids beyond the index). */
static int rec_of(const struct rv_btf_types *b, uint32_t id, struct rec *r, struct rv_err *err)
{
	uint32_t slot = id / RV_BTF_INDEX_STEP, at;
	uint64_t off = 0;

	if (id == 0 || id > b->count)
		return rv_err_at(err, RV_EBADDATA, id, "btf", "type id out of range, %u types",
				 b->count);
	if (slot >= RV_BTF_INDEX_LEN)
		slot = RV_BTF_INDEX_LEN - 1;
	if (slot)
		off = b->index[slot];
	at = slot ? slot * RV_BTF_INDEX_STEP : 1;
	for (;; at++) {
		uint64_t from = off;

		if (!rec_next(b, &off, r))
			return bad(err, from, "the type table changed or is cut off");
		if (at == id)
			return RV_OK;
	}
}

static bool kind_wanted(uint32_t kind, enum rv_btf_kind wanted)
{
	if (wanted == RV_BTF_ENUM)
		return kind == RV_BTF_ENUM || kind == RV_BTF_ENUM64;
	return kind == RV_BTF_STRUCT || kind == RV_BTF_UNION;
}

int rv_btf_type_find_all(const struct rv_btf_types *b, enum rv_btf_kind kind,
			 const char *const *names, size_t n, uint32_t *ids, struct rv_err *err)
{
	uint64_t off = 0;
	size_t left = n;
	struct rec r;

	memset(ids, 0, n * sizeof(*ids));
	for (uint32_t id = 1; id <= b->count && left; id++) {
		uint64_t at = off;

		if (!rec_next(b, &off, &r))
			return bad(err, at, "the type table changed or is cut off");
		if (!r.name || !kind_wanted(rec_kind(&r), kind))
			continue;
		for (size_t i = 0; i < n; i++) {
			/* The first of that name: later ones are file-local namesakes. */
			if (ids[i] || !name_is(b, r.name, names[i], strlen(names[i])))
				continue;
			ids[i] = id;
			left--;
		}
	}
	return RV_OK;
}

int rv_btf_type_find(const struct rv_btf_types *b, const char *name, uint32_t *id_out,
		     struct rv_err *err)
{
	int rc = rv_btf_type_find_all(b, RV_BTF_STRUCT, &name, 1, id_out, err);

	if (!rc && !*id_out)
		return rv_err_set(err, RV_ENOSYM, "btf", "no struct or union %s", name);
	return rc;
}

/* Follow typedefs and qualifiers to the type itself; *r is its record. */
static int resolve(const struct rv_btf_types *b, uint32_t *id, struct rec *r, struct rv_err *err)
{
	for (uint32_t i = 0; i < MAX_CHAIN; i++) {
		int rc;

		if (*id == 0) {
			memset(r, 0, sizeof(*r));
			return RV_OK;
		}
		rc = rec_of(b, *id, r, err);
		if (rc)
			return rc;
		switch (rec_kind(r)) {
		case RV_BTF_TYPEDEF:
		case RV_BTF_VOLATILE:
		case RV_BTF_CONST:
		case RV_BTF_RESTRICT:
		case RV_BTF_TYPE_TAG: *id = r->word; break;
		default: return RV_OK;
		}
	}
	return rv_err_at(err, RV_EBADDATA, *id, "btf", "a chain of typedefs does not end");
}

int rv_btf_type_resolve(const struct rv_btf_types *b, uint32_t id, uint32_t *id_out,
			enum rv_btf_kind *kind_out, struct rv_err *err)
{
	struct rec r;
	int rc = resolve(b, &id, &r, err);

	if (rc)
		return rc;
	*id_out = id;
	if (kind_out)
		*kind_out = (enum rv_btf_kind)rec_kind(&r);
	return RV_OK;
}

/* A search for one name through unnamed members, without recursion. */
struct frame {
	struct rec r;
	uint32_t next; /* member to look at */
	uint64_t base; /* bit offset of this structure in the outermost */
};

static bool member_of(const struct rv_btf_types *b, const struct frame *f, uint32_t *name,
		      struct rv_btf_member *m)
{
	uint32_t w[3];

	if (!rv_get(b->types, b->types_len, f->r.rest + (uint64_t)f->next * 12, w, sizeof(w)))
		return false;
	*name = w[0];
	m->type = w[1];
	m->bit_off = f->base + (rec_flag(&f->r) ? w[2] & 0xffffff : w[2]);
	m->bit_size = rec_flag(&f->r) ? w[2] >> 24 : 0;
	return true;
}

static bool is_struct(const struct rec *r)
{
	return rec_kind(r) == RV_BTF_STRUCT || rec_kind(r) == RV_BTF_UNION;
}

static int search(const struct rv_btf_types *b, const struct rec *top, uint64_t base,
		  const char *name, size_t len, uint32_t *budget, struct rv_btf_member *out,
		  struct rv_err *err)
{
	struct frame stack[MAX_DEPTH];
	uint32_t depth = 1;

	stack[0] = (struct frame){*top, 0, base};
	while (depth) {
		struct frame *f = &stack[depth - 1];
		struct rv_btf_member m;
		uint32_t str, id;
		struct rec r;
		int rc;

		if (f->next >= rec_vlen(&f->r)) {
			depth--;
			continue;
		}
		if (!(*budget)--)
			return rv_err_set(err, RV_EBUDGET, "btf", "more than %u members looked at",
					  MAX_MEMBERS);
		if (!member_of(b, f, &str, &m))
			return bad(err, f->r.rest, "members are cut off");
		f->next++;
		if (str) {
			if (name_is(b, str, name, len)) {
				*out = m;
				return RV_OK;
			}
			continue;
		}
		id = m.type;
		rc = resolve(b, &id, &r, err);
		if (rc)
			return rc;
		if (!is_struct(&r))
			continue; /* an unnamed bit field */
		if (depth == MAX_DEPTH)
			return bad(err, r.rest, "unnamed members nested too deep");
		stack[depth++] = (struct frame){r, 0, m.bit_off};
	}
	return rv_err_set(err, RV_ENOSYM, "btf", "no member %.*s", (int)(len < 100 ? len : 100),
			  name);
}

int rv_btf_type_member(const struct rv_btf_types *b, uint32_t id, const char *path,
		       struct rv_btf_member *out, struct rv_err *err)
{
	uint32_t budget = MAX_MEMBERS;
	uint64_t base = 0;

	/* A path has no more steps than characters. */
	for (const char *p = path;; p++) {
		size_t len = strcspn(p, ".");
		struct rec r;
		int rc = resolve(b, &id, &r, err);

		if (rc)
			return rc;
		if (!is_struct(&r))
			return rv_err_at(err, RV_EINVAL, id, "btf",
					 "the type before %.100s is no structure", p);
		rc = search(b, &r, base, p, len, &budget, out, err);
		if (rc)
			return rc;
		base = out->bit_off;
		id = out->type;
		p += len;
		if (!*p)
			return RV_OK;
	}
}

int rv_btf_type_offset(const struct rv_btf_types *b, uint32_t id, const char *path, uint32_t *out,
		       struct rv_err *err)
{
	struct rv_btf_member m;
	int rc = rv_btf_type_member(b, id, path, &m, err);

	if (rc)
		return rc;
	if (m.bit_size || m.bit_off % 8)
		return rv_err_set(err, RV_EUNSUPPORTED, "btf", "%.100s is a bit field", path);
	if (m.bit_off / 8 > UINT32_MAX - 1)
		return rv_err_set(err, RV_EBADDATA, "btf", "offset of %.100s out of range", path);
	*out = (uint32_t)(m.bit_off / 8);
	return RV_OK;
}

static bool array_of(const struct rv_btf_types *b, const struct rec *r, uint32_t *elem,
		     uint32_t *count)
{
	uint32_t w[3];

	if (!rv_get(b->types, b->types_len, r->rest, w, sizeof(w)))
		return false;
	*elem = w[0];
	*count = w[2];
	return true;
}

int rv_btf_type_size(const struct rv_btf_types *b, uint32_t id, uint64_t *out, struct rv_err *err)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < MAX_CHAIN; i++) {
		uint32_t count;
		struct rec r;
		int rc = resolve(b, &id, &r, err);

		if (rc)
			return rc;
		switch (rec_kind(&r)) {
		case RV_BTF_ARRAY:
			if (!array_of(b, &r, &id, &count))
				return bad(err, r.rest, "an array is cut off");
			if (__builtin_mul_overflow(n, (uint64_t)count, &n))
				return bad(err, r.rest, "an array is larger than memory");
			continue;
		case RV_BTF_PTR: r.word = 8; break; /* both architectures are 64-bit */
		case RV_BTF_INT:
		case RV_BTF_FLOAT:
		case RV_BTF_STRUCT:
		case RV_BTF_UNION:
		case RV_BTF_ENUM:
		case RV_BTF_ENUM64: break;
		default:
			return rv_err_at(err, RV_EUNSUPPORTED, id, "btf",
					 "types of kind %u have no size", rec_kind(&r));
		}
		if (__builtin_mul_overflow(n, (uint64_t)r.word, out))
			return bad(err, r.rest, "an array is larger than memory");
		return RV_OK;
	}
	return rv_err_at(err, RV_EBADDATA, id, "btf", "arrays of arrays do not end");
}

int rv_btf_type_array(const struct rv_btf_types *b, uint32_t id, uint32_t *elem_out,
		      uint32_t *count_out, struct rv_err *err)
{
	struct rec r;
	int rc = resolve(b, &id, &r, err);

	if (rc)
		return rc;
	if (rec_kind(&r) != RV_BTF_ARRAY)
		return rv_err_at(err, RV_EINVAL, id, "btf", "the type is no array");
	if (!array_of(b, &r, elem_out, count_out))
		return bad(err, r.rest, "an array is cut off");
	return RV_OK;
}

int rv_btf_type_target(const struct rv_btf_types *b, uint32_t id, uint32_t *id_out,
		       struct rv_err *err)
{
	struct rec r;
	int rc = resolve(b, &id, &r, err);

	if (rc)
		return rc;
	if (rec_kind(&r) != RV_BTF_PTR)
		return rv_err_at(err, RV_EINVAL, id, "btf", "the type is no pointer");
	*id_out = r.word;
	return RV_OK;
}

int rv_btf_type_enumerator(const struct rv_btf_types *b, uint32_t id, const char *name,
			   int64_t *out, struct rv_err *err)
{
	size_t len = strlen(name), step;
	uint32_t w[3] = {0, 0, 0};
	struct rec r;
	int rc = resolve(b, &id, &r, err);

	if (rc)
		return rc;
	if (rec_kind(&r) != RV_BTF_ENUM && rec_kind(&r) != RV_BTF_ENUM64)
		return rv_err_at(err, RV_EINVAL, id, "btf", "the type is no enum");
	step = rec_kind(&r) == RV_BTF_ENUM ? 8 : 12;
	for (uint32_t i = 0; i < rec_vlen(&r); i++) {
		if (!rv_get(b->types, b->types_len, r.rest + (uint64_t)i * step, w, step))
			return bad(err, r.rest, "enumerators are cut off");
		if (!name_is(b, w[0], name, len))
			continue;
		if (step == 12)
			*out = (int64_t)((uint64_t)w[2] << 32 | w[1]);
		else
			/* Unsigned since v6.0 unless the flag says so; before, the flag
			 * was never set and -1 is what such a value means to us. */
			*out = (int32_t)w[1];
		return RV_OK;
	}
	return rv_err_set(err, RV_ENOSYM, "btf", "no enumerator %.100s", name);
}
