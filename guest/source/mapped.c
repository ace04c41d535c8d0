/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.c: a memory source over guest RAM that this process has mapped. */
#include "source/source.h"

#include <string.h>

/* A PC has three or four pieces of RAM, a memory-hotplug guest some dozens. */
#define MAX_REGIONS 256u

/* Both bounds are tested: an address in a hole belongs to no region. */
static const struct rv_region *region_of(const struct rv_source_mapped *m, uint64_t gpa)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct rv_region *r = &m->regions[i];

		if (gpa >= r->gpa && gpa - r->gpa < r->len)
			return r;
	}
	return NULL;
}

static int mapped_read(struct rv_source *src, rv_gpa gpa, void *dst, size_t len)
{
	const struct rv_source_mapped *m = src->opaque;
	uint8_t *to = dst;
	uint64_t at = gpa.v;

	if (len && at + (len - 1) < at)
		return RV_ENOTMAPPED;
	while (len) {
		const struct rv_region *r = region_of(m, at);
		uint64_t n;

		if (!r)
			return RV_ENOTMAPPED;
		n = r->len - (at - r->gpa);
		if (n > len)
			n = len;
		memcpy(to, r->ptr + (at - r->gpa), (size_t)n);
		to += n;
		at += n;
		len -= (size_t)n;
	}
	return RV_OK;
}

static bool overlap(const struct rv_region *a, const struct rv_region *b)
{
	return a->gpa <= b->gpa + (b->len - 1) && b->gpa <= a->gpa + (a->len - 1);
}

int rv_source_mapped_init(struct rv_source_mapped *m, const struct rv_region *regions, size_t count,
			  struct rv_err *err)
{
	memset(m, 0, sizeof(*m));
	if (count > MAX_REGIONS || (count && !regions))
		return rv_err_set(err, RV_EINVAL, "source", "%zu regions, at most %u", count,
				  MAX_REGIONS);
	for (size_t i = 0; i < count; i++) {
		const struct rv_region *r = &regions[i];

		if (!r->ptr || !r->len || r->gpa + (r->len - 1) < r->gpa)
			return rv_err_at(err, RV_EINVAL, r->gpa, "source",
					 "region %zu is empty or wraps", i);
		for (size_t j = 0; j < i; j++)
			if (overlap(r, &regions[j]))
				return rv_err_at(err, RV_EINVAL, r->gpa, "source",
						 "regions %zu and %zu overlap", j, i);
	}
	m->base.read_phys = mapped_read;
	m->base.opaque = m;
	m->regions = regions;
	m->count = count;
	return RV_OK;
}
