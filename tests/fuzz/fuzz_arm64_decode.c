/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_arm64_decode.c: any words in any registers. The input is registers, then words. */
/* fuzz-sources: vmm/arch/arm64/decode.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arm64/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;
	uint32_t w;

	if (size < sizeof(r))
		return 0;
	memcpy(&r, data, sizeof(r));
	for (size_t at = sizeof(r); at + sizeof(w) <= size; at += sizeof(w)) {
		memcpy(&w, data + at, sizeof(w));
		rv_arm64_decode(w, &r, &in);
		if (in.value_len > sizeof(in.value) || !in.why)
			abort();
		if (in.kind == RV_ARM64_STORE && (!in.len || !in.unit || in.value_len > in.len))
			abort();
		/* One page, or said not to be. */
		if (in.kind == RV_ARM64_STORE && !in.crosses_page &&
		    in.va / RV_ARM64_PAGE != (in.va + in.len - 1) / RV_ARM64_PAGE)
			abort();
	}
	return 0;
}
