/* SPDX-License-Identifier: Apache-2.0 */
/* fake_source.c: a small guest for unit tests: RAM, x86-64 page tables, BTF. */
#include "fake_source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void fake_init(struct fake *f, uint32_t levels)
{
	int rc;

	memset(f, 0, sizeof(*f));
	f->ram = calloc(1, FAKE_RAM);
	f->high = calloc(1, FAKE_HIGH_LEN);
	assert(f->ram && f->high);
	f->regions[0] = (struct rv_region){0, FAKE_RAM, f->ram};
	f->regions[1] = (struct rv_region){FAKE_HIGH, FAKE_HIGH_LEN, f->high};
	rc = rv_source_mapped_init(&f->src, f->regions, 2, NULL);
	assert(!rc);
	f->levels = levels;
	f->next = FAKE_ROOT + 4096;
	f->regs.arch = RV_ARCH_X86_64;
	f->regs.pa_bits = 40;
	f->regs.x86.cr3 = FAKE_ROOT;
	f->regs.x86.cr4 = 1 << 5 | (levels == 5 ? 1 << 12 : 0);
	f->regs.x86.efer = 1 << 8 | 1 << 10 | 1 << 11;
}

void fake_deinit(struct fake *f)
{
	free(f->ram);
	free(f->high);
}

void fake_put(struct fake *f, uint64_t gpa, const void *p, size_t n)
{
	assert(gpa < FAKE_RAM && n <= FAKE_RAM - gpa);
	memcpy(f->ram + gpa, p, n);
}

void fake_put_u32(struct fake *f, uint64_t gpa, uint32_t v)
{
	fake_put(f, gpa, &v, sizeof(v));
}

void fake_put_u64(struct fake *f, uint64_t gpa, uint64_t v)
{
	fake_put(f, gpa, &v, sizeof(v));
}

uint64_t *fake_entry(struct fake *f, uint64_t va, uint32_t level)
{
	uint64_t table = FAKE_ROOT;

	for (uint32_t l = f->levels;; l--) {
		uint64_t *e = (uint64_t *)(f->ram + table) + ((va >> (12 + 9 * (l - 1))) & 511);

		if (l == level)
			return e;
		if (!(*e & 1))
			return NULL;
		table = *e & 0xffffffffff000ull;
	}
}

void fake_map(struct fake *f, uint64_t va, uint64_t gpa, uint32_t leaf_level, uint64_t flags)
{
	for (uint32_t l = f->levels; l > leaf_level; l--) {
		uint64_t *e = fake_entry(f, va, l);

		if (!(*e & 1)) {
			*e = f->next | FAKE_RW | FAKE_USER;
			f->next += 4096;
			assert(f->next < FAKE_RAM / 2);
		}
	}
	*fake_entry(f, va, leaf_level) = gpa | flags | (leaf_level > 1 ? FAKE_PS : 0);
}

/* --- a BTF writer --------------------------------------------------------- */

void fake_btf_init(struct fake_btf *b)
{
	memset(b, 0, sizeof(*b));
	b->strs_len = 1; /* offset 0 is "" */
}

uint32_t fake_btf_str(struct fake_btf *b, const char *s)
{
	uint32_t off = (uint32_t)b->strs_len;

	if (!s || !*s)
		return 0;
	assert(b->strs_len + strlen(s) + 1 <= sizeof(b->strs));
	memcpy(b->strs + off, s, strlen(s) + 1);
	b->strs_len += strlen(s) + 1;
	return off;
}

void fake_btf_u32(struct fake_btf *b, uint32_t v)
{
	assert(b->types_len + 4 <= sizeof(b->types));
	memcpy(b->types + b->types_len, &v, 4);
	b->types_len += 4;
}

uint32_t fake_btf_type(struct fake_btf *b, const char *name, uint32_t kind, uint32_t vlen,
		       uint32_t size_or_type)
{
	fake_btf_u32(b, fake_btf_str(b, name));
	fake_btf_u32(b, (kind & 31) << 24 | vlen | (kind & 0x80000000u));
	fake_btf_u32(b, size_or_type);
	return ++b->count;
}

uint32_t fake_btf_int(struct fake_btf *b, const char *name, uint32_t size)
{
	uint32_t id = fake_btf_type(b, name, 1, 0, size);

	fake_btf_u32(b, size * 8);
	return id;
}

uint32_t fake_btf_array(struct fake_btf *b, uint32_t elem, uint32_t index, uint32_t n)
{
	uint32_t id = fake_btf_type(b, NULL, 3, 0, 0);

	fake_btf_u32(b, elem);
	fake_btf_u32(b, index);
	fake_btf_u32(b, n);
	return id;
}

void fake_btf_member(struct fake_btf *b, const char *name, uint32_t type, uint32_t bit_off)
{
	fake_btf_u32(b, fake_btf_str(b, name));
	fake_btf_u32(b, type);
	fake_btf_u32(b, bit_off);
}

void fake_btf_enumerator(struct fake_btf *b, const char *name, int32_t value)
{
	fake_btf_u32(b, fake_btf_str(b, name));
	fake_btf_u32(b, (uint32_t)value);
}

size_t fake_btf_emit(const struct fake_btf *b, uint8_t *out, size_t max)
{
	uint32_t hdr[6] = {
		0x0001eb9f,	      24, 0, (uint32_t)b->types_len, (uint32_t)b->types_len,
		(uint32_t)b->strs_len};
	size_t n = sizeof(hdr) + b->types_len + b->strs_len;

	assert(n <= max);
	memcpy(out, hdr, sizeof(hdr));
	memcpy(out + sizeof(hdr), b->types, b->types_len);
	memcpy(out + sizeof(hdr) + b->types_len, b->strs, b->strs_len);
	return n;
}
