/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_elf.c: vmlinux: program headers, sections, relocation lists. */
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
		memcpy(copy,
		       "\x7f"
		       "ELF\x02\x01",
		       6);
		one(copy, size);
	}
	free(copy);
	return 0;
}
