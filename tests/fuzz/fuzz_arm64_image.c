/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_arm64_image.c: arm64 Image: header, .rela.dyn, the scans for tables. */
#include "image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	one(data, size);
	if (size < 64)
		return 0;
	copy = malloc(size);
	if (copy) {
		memcpy(copy, data, size);
		memcpy(copy + 0x38, "ARMd", 4);
		one(copy, size);
	}
	free(copy);
	return 0;
}
