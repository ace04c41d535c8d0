/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_bzimage.c: bzImage: setup header, packers, and the ELF inside. */
#include "image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	one(data, size);
	if (size < 0x240)
		return 0;
	copy = malloc(size);
	if (copy) {
		memcpy(copy, data, size);
		/* Straight to the setup header: without the magics nothing else is reached. */
		memcpy(copy + 0x1fe, "\x55\xaa", 2);
		memcpy(copy + 0x202, "HdrS", 4);
		one(copy, size);
	}
	free(copy);
	return 0;
}
