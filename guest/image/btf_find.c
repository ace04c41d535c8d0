/* SPDX-License-Identifier: Apache-2.0 */
/* btf_find.c: where the kernel keeps the BTF of itself: by symbol, section or search. */
#include "parts.h"

#include <stdio.h>

#include <sym/btf_type.h>

/* Candidates that the search looks into; the magic and header are 8 bytes, so 1 is usual. */
#define CANDIDATES_MAX 256

static bool take(struct rv_image *img, uint64_t va)
{
	uint64_t off = va - img->info.link_base;
	const uint8_t *start = img->flat + off, *types, *strs;
	struct rv_btf_types b;
	struct rv_err err;

	if (off >= img->info.flat_size)
		return false;
	if (rv_btf_types_init(&b, start, img->info.flat_size - off, &err)) {
		snprintf(img->info.btf_reason, sizeof(img->info.btf_reason), "%.110s", err.what);
		return false;
	}
	types = b.types + b.types_len;
	strs = b.strs + b.strs_len;
	img->btf_va = va;
	img->info.btf_reason[0] = 0;
	img->btf_size = (uint64_t)((strs > types ? strs : types) - start);
	img->info.btf_types = b.count;
	return true;
}

/* By its first bytes: magic, version 1, flags 0, header length 24. */
static void search(struct rv_image *img)
{
	static const uint8_t head[] = {0x9f, 0xeb, 1, 0, 24, 0, 0, 0};
	uint64_t from = 0;
	int i;

	for (i = 0; i < CANDIDATES_MAX; i++) {
		const uint8_t *p =
			memmem(img->flat + from, img->info.flat_size - from, head, sizeof(head));

		if (!p)
			break;
		from = (uint64_t)(p - img->flat);
		if (take(img, img->info.link_base + from))
			return;
		from++;
	}
}

void rv_btf_find(struct rv_image *img, const struct rv_symbol_want *w)
{
	const struct section *s = rv_image_section(img, ".BTF");

	snprintf(img->info.btf_reason, sizeof(img->info.btf_reason),
		 "built without CONFIG_DEBUG_INFO_BTF");
	if (w[N_BTF_START].count)
		take(img, w[N_BTF_START].va);
	else if (s)
		take(img, s->va);
	else
		search(img);
}
