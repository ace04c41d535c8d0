/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.c: what the finders of both architectures share. How a call looks is in
 * sites_x86_64.c and sites_arm64.c; which calls there must be, and how many, is the
 * kernel's source and the same.
 */
#include "parts.h"

#include <stdio.h>

void rv_site_missing(const struct rv_image *img, struct rv_site *s,
		     const struct rv_symbol_want *need)
{
	if (!img->has_ksyms)
		snprintf(s->reason, sizeof(s->reason), "no symbols: %.90s",
			 img->info.symbols_reason);
	else
		snprintf(s->reason, sizeof(s->reason), "no symbol %.60s", need->name);
}

void rv_site_put(const struct rv_image *img, struct rv_site *s, uint64_t va, uint8_t len,
		 uint64_t target, const char *how, const char *name)
{
	const uint8_t *p = rv_image_bytes(img, va, len);
	struct rv_symbol sym;
	uint64_t off;

	if (!p || len > sizeof(s->bytes) ||
	    rv_kallsyms_nearest(&img->ksyms, va, &sym, &off, NULL)) {
		snprintf(s->reason, sizeof(s->reason), "0x%llx lies outside the image",
			 (unsigned long long)va);
		return;
	}
	s->found = true;
	s->va = va;
	s->target = target;
	s->len = len;
	memcpy(s->bytes, p, len);
	snprintf(s->symbol, sizeof(s->symbol), "%.63s", sym.name);
	s->symbol_off = (uint32_t)off;
	snprintf(s->how, sizeof(s->how), "%.30s%.48s", how, name);
	s->reason[0] = 0;
}

void rv_hits_add(struct rv_hits *h, uint64_t va, uint8_t len, uint64_t target)
{
	if (h->n < RV_HITS_MAX) {
		h->va[h->n] = va;
		h->target[h->n] = target;
		h->len[h->n] = len;
	}
	h->n++;
}

bool rv_hits_ok(struct rv_site *s, const struct rv_hits *h, uint32_t min, uint32_t max,
		const char *holder, const char *target)
{
	if (h->n >= min && h->n <= max)
		return true;
	if (h->n == 0)
		snprintf(s->reason, sizeof(s->reason), "%.40s has no direct call of %.40s", holder,
			 target);
	else
		snprintf(s->reason, sizeof(s->reason),
			 "%.38s refers to %.38s %u times, expected %u", holder, target, h->n, max);
	return false;
}

void rv_site_module_alloc(struct rv_image *img, const struct rv_symbol_want *w, rv_calls_fn calls)
{
	static const enum name_id holders[] = {N_EXECMEM_VMALLOC, N_EXECMEM_ALLOC, N_MODULE_ALLOC};
	struct rv_site *s = rv_site_add(img, "module_alloc");
	struct rv_site *f = rv_site_add(img, "module_alloc_fallback");
	const struct rv_symbol_want *to = &w[N_VMALLOC_RANGE_NP];
	size_t i;

	if (!to->count)
		to = &w[N_VMALLOC_RANGE];
	rv_site_missing(img, s, to->count ? &w[N_MODULE_ALLOC] : to);
	for (i = 0; i < 3 && to->count && !s->found; i++) {
		const struct rv_symbol_want *from = &w[holders[i]];
		struct rv_hits h = {0};

		if (!from->count)
			continue;
		if (!calls(img, s, from, to->va, &h))
			break;
		if (!rv_hits_ok(s, &h, 1, 2, from->name, to->name))
			continue;
		/* The second tries another range where the first one failed, and follows it. */
		rv_site_put(img, s, h.va[0], h.len[0], to->va, "the first call of ", to->name);
		if (h.n == 2)
			rv_site_put(img, f, h.va[1], h.len[1], to->va, "the second call of ",
				    to->name);
	}
	if (!f->found)
		snprintf(f->reason, sizeof(f->reason), "%s",
			 s->found ? "this kernel has one range only" : "no module_alloc");
}
