/* SPDX-License-Identifier: Apache-2.0 */
/* image_target.h: open an image from memory and do with it what the monitor does. */
#ifndef RV_FUZZ_IMAGE_TARGET_H
#define RV_FUZZ_IMAGE_TARGET_H

#include <ravelin/image.h>
#include <ravelin/kallsyms.h>

#include <stdlib.h>
#include <string.h>

/* The largest copy to load and move; images that claim more are only opened. */
#define LOAD_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct rv_image *img)
{
	const struct rv_image_info *i = rv_image_info(img);
	const struct rv_kallsyms *k = rv_image_kallsyms(img);
	struct rv_symbol s;
	struct rv_err err;
	uint64_t off;
	void *dst;

	if (k)
		(void)!rv_kallsyms_nearest(k, i->link_base + 64, &s, &off, &err);
	if (i->mem_size == 0 || i->mem_size > LOAD_MAX)
		return;
	dst = malloc(i->mem_size);
	if (dst && rv_image_load(img, dst, i->mem_size, &err) == 0 && i->has_relocs)
		(void)!rv_image_relocate(img, dst, i->mem_size, 0x200000, &err);
	free(dst);
}

static void one(const uint8_t *data, size_t size)
{
	struct rv_image *img;
	struct rv_err err;

	if (rv_image_parse(data, size, &img, &err) == 0) {
		use(img);
		rv_image_close(img);
	}
}

#endif
