/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: reading guest virtual memory through a walker, within a budget. */
#include "paging/paging.h"

#include <string.h>

static const struct rv_paging_ops *ops_of(enum rv_arch arch)
{
	switch (arch) {
	case RV_ARCH_X86_64: return &rv_paging_x86_64;
	case RV_ARCH_ARM64: return &rv_paging_arm64;
	default: return NULL;
	}
}

int rv_view_init(struct rv_view *v, struct rv_source *src, const struct rv_paging_regs *regs,
		 uint32_t budget, struct rv_err *err)
{
	memset(v, 0, sizeof(*v));
	v->src = src;
	v->regs = *regs;
	v->budget = budget;
	v->ops = ops_of(regs->arch);
	if (!v->ops)
		return rv_err_set(err, RV_EUNSUPPORTED, "paging",
				  "no page table walker for architecture %d", regs->arch);
	return RV_OK;
}

int rv_view_read_phys(struct rv_view *v, rv_gpa gpa, void *dst, size_t len, struct rv_err *err)
{
	int rc;

	if (!v->budget)
		return rv_err_at(err, RV_EBUDGET, gpa.v, "paging", "read budget is used up");
	v->budget--;
	rc = v->src->read_phys(v->src, gpa, dst, len);
	if (rc)
		return rv_err_at(err, rc, gpa.v, "paging", "guest physical memory, %zu bytes: %s",
				 len, rv_status_name(rc));
	return RV_OK;
}

int rv_view_translate(struct rv_view *v, rv_gva gva, struct rv_translation *out, struct rv_err *err)
{
	memset(out, 0, sizeof(*out));
	return v->ops->translate(v, gva, out, err);
}

/* Fill the cache with the page of va. */
static int cache_page(struct rv_view *v, uint64_t va, struct rv_err *err)
{
	struct rv_translation t;
	int rc;

	if (v->cached && va >= v->cache_va && va - v->cache_va < v->cache_size)
		return RV_OK;
	rc = rv_view_translate(v, rv_gva_of(va), &t, err);
	if (rc)
		return rc;
	v->cache_va = va & ~(t.page_size - 1);
	v->cache_gpa = t.gpa.v & ~(t.page_size - 1);
	v->cache_size = t.page_size;
	v->cached = true;
	return RV_OK;
}

int rv_view_read(struct rv_view *v, rv_gva gva, void *dst, size_t len, struct rv_err *err)
{
	uint8_t *to = dst;
	uint64_t va = gva.v;

	if (len && va + (len - 1) < va)
		return rv_err_at(err, RV_ENOTMAPPED, va, "paging",
				 "%zu bytes run past the top of the address space", len);
	while (len) {
		uint64_t n;
		int rc = cache_page(v, va, err);

		if (rc)
			return rc;
		n = v->cache_size - (va - v->cache_va);
		if (n > len)
			n = len;
		rc = rv_view_read_phys(v, rv_gpa_of(v->cache_gpa + (va - v->cache_va)), to,
				       (size_t)n, err);
		if (rc)
			return rc;
		to += n;
		va += n;
		len -= (size_t)n;
	}
	return RV_OK;
}

int rv_view_read_u32(struct rv_view *v, rv_gva gva, uint32_t *out, struct rv_err *err)
{
	*out = 0;
	return rv_view_read(v, gva, out, sizeof(*out), err);
}

int rv_view_read_u64(struct rv_view *v, rv_gva gva, uint64_t *out, struct rv_err *err)
{
	*out = 0;
	return rv_view_read(v, gva, out, sizeof(*out), err);
}

int rv_view_read_name(struct rv_view *v, rv_gva gva, char *dst, size_t len, struct rv_err *err)
{
	size_t at = 0;

	if (!len)
		return RV_OK;
	dst[0] = '\0';
	/* In pieces that do not cross 64 bytes, so that a string which ends just
	 * before a hole is read whole. */
	while (at < len - 1) {
		size_t n = 64 - (size_t)((gva.v + at) & 63);
		char *end;
		int rc;

		if (n > len - 1 - at)
			n = len - 1 - at;
		rc = rv_view_read(v, rv_gva_of(gva.v + at), dst + at, n, at ? NULL : err);
		if (rc) {
			dst[at] = '\0';
			return at ? RV_OK : rc;
		}
		end = memchr(dst + at, '\0', n);
		for (size_t i = at; i < at + n && dst + i != end; i++)
			if (dst[i] < 0x20 || dst[i] > 0x7e)
				dst[i] = '?';
		if (end)
			return RV_OK;
		at += n;
	}
	dst[at] = '\0';
	return RV_OK;
}
