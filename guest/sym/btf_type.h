/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btf_type.h: answers from a kernel's BTF: where a member is, how large a type is.
 *
 * The table is used in place and stays in guest memory: no copy, no allocation.
 * (libbpf's parser would copy some 5 MB per guest, takes the bytes as settled
 * once it has looked at them, and brings libelf with it. Here the bytes may
 * change under the reader at any time.) So every access is bounds-checked when
 * it happens, every scan is bounded, and a chain of types that never ends is
 * cut off: the worst that a hostile table gets is a wrong offset or RV_EBADDATA.
 *
 * Format: Documentation/bpf/btf.rst of the kernel.
 */
#ifndef RV_GUEST_BTF_TYPE_H
#define RV_GUEST_BTF_TYPE_H

#include <ravelin/error.h>
#include <ravelin/types.h>

/* Every 256th type's place is remembered: 131072 types (a 6.12 kernel has
 * 107,004); what lies beyond is found by scanning on from the last one. */
#define RV_BTF_INDEX_STEP 256u
#define RV_BTF_INDEX_LEN  512u

/* A view of one table. Copyable; the bytes are borrowed. */
struct rv_btf_types {
	const uint8_t *types; /* type section */
	size_t types_len;
	const uint8_t *strs; /* string section */
	size_t strs_len;
	uint32_t count; /* ids are 1 .. count; 0 is void */
	uint32_t index[RV_BTF_INDEX_LEN];
};

/* Kinds, from include/uapi/linux/btf.h. */
enum rv_btf_kind {
	RV_BTF_VOID = 0,
	RV_BTF_INT = 1,
	RV_BTF_PTR = 2,
	RV_BTF_ARRAY = 3,
	RV_BTF_STRUCT = 4,
	RV_BTF_UNION = 5,
	RV_BTF_ENUM = 6,
	RV_BTF_FWD = 7,
	RV_BTF_TYPEDEF = 8,
	RV_BTF_VOLATILE = 9,
	RV_BTF_CONST = 10,
	RV_BTF_RESTRICT = 11,
	RV_BTF_FUNC = 12,
	RV_BTF_FUNC_PROTO = 13,
	RV_BTF_VAR = 14,
	RV_BTF_DATASEC = 15,
	RV_BTF_FLOAT = 16,
	RV_BTF_DECL_TAG = 17,
	RV_BTF_TYPE_TAG = 18,
	RV_BTF_ENUM64 = 19,
};

struct rv_btf_member {
	uint64_t bit_off;  /* from the start of the outermost structure asked about */
	uint32_t bit_size; /* of a bit field; 0 for everything else */
	uint32_t type;	   /* id, not resolved through typedefs */
};

/* Check the header, count the types, fill the index: one pass over the table.
 * RV_EBADDATA with the offset for damage; RV_EUNSUPPORTED for a later version. */
int rv_btf_types_init(struct rv_btf_types *b, const void *btf, size_t len,
		      struct rv_err *err) RV_MUST_CHECK;

/* The struct or union of that name. RV_ENOSYM, RV_EBADDATA. */
int rv_btf_type_find(const struct rv_btf_types *b, const char *name, uint32_t *id_out,
		     struct rv_err *err) RV_MUST_CHECK;

/*
 * The same for n names in one pass: ids[i] is 0 for a name that is not there.
 * kind is one of RV_BTF_STRUCT (finds unions too) and RV_BTF_ENUM (and ENUM64).
 */
int rv_btf_type_find_all(const struct rv_btf_types *b, enum rv_btf_kind kind,
			 const char *const *names, size_t n, uint32_t *ids,
			 struct rv_err *err) RV_MUST_CHECK;

/*
 * Member by name, or by path ("core_layout.base"); unnamed members are searched
 * as C does. A path goes through typedefs and qualifiers, never through pointers
 * or arrays. RV_ENOSYM, RV_EBADDATA, RV_EINVAL when id is no structure.
 */
int rv_btf_type_member(const struct rv_btf_types *b, uint32_t id, const char *path,
		       struct rv_btf_member *out, struct rv_err *err) RV_MUST_CHECK;

/* Byte offset of a member that is no bit field (RV_EUNSUPPORTED when it is). */
int rv_btf_type_offset(const struct rv_btf_types *b, uint32_t id, const char *path, uint32_t *out,
		       struct rv_err *err) RV_MUST_CHECK;

/* Bytes that an object of the type takes. RV_EUNSUPPORTED for void and functions. */
int rv_btf_type_size(const struct rv_btf_types *b, uint32_t id, uint64_t *out,
		     struct rv_err *err) RV_MUST_CHECK;

/* Element type and count of an array. RV_EINVAL when id is none. */
int rv_btf_type_array(const struct rv_btf_types *b, uint32_t id, uint32_t *elem_out,
		      uint32_t *count_out, struct rv_err *err) RV_MUST_CHECK;

/* Strip typedefs, qualifiers and tags; kind_out may be NULL. */
int rv_btf_type_resolve(const struct rv_btf_types *b, uint32_t id, uint32_t *id_out,
			enum rv_btf_kind *kind_out, struct rv_err *err) RV_MUST_CHECK;

/* What a pointer type (or a member of pointer type) points to. RV_EINVAL when none. */
int rv_btf_type_target(const struct rv_btf_types *b, uint32_t id, uint32_t *id_out,
		       struct rv_err *err) RV_MUST_CHECK;

/* Value of an enumerator, sign-extended from the width of its enum. RV_ENOSYM, RV_EINVAL. */
int rv_btf_type_enumerator(const struct rv_btf_types *b, uint32_t id, const char *name,
			   int64_t *out, struct rv_err *err) RV_MUST_CHECK;

#endif
