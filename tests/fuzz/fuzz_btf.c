/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_btf.c: hostile BTF. Every question for every type. */
#include <stdint.h>
#include <stdlib.h>

#include "sym/btf_type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"module", "a", "outer"};
	static const char *const paths[] = {"mem", "a", "a.b", "in.b"};
	struct rv_btf_types b;
	uint32_t ids[3], off, n;
	uint64_t bytes;
	int64_t v;

	if (rv_btf_types_init(&b, data, size, NULL))
		return 0;
	if (!rv_btf_type_find_all(&b, RV_BTF_STRUCT, names, 3, ids, NULL))
		for (int i = 0; i < 3; i++)
			if (ids[i] > b.count)
				abort();
	for (uint32_t id = 0; id <= b.count && id < 64; id++) {
		for (int i = 0; i < 4; i++)
			(void)!rv_btf_type_offset(&b, id, paths[i], &off, NULL);
		(void)!rv_btf_type_size(&b, id, &bytes, NULL);
		(void)!rv_btf_type_array(&b, id, &off, &n, NULL);
		(void)!rv_btf_type_target(&b, id, &off, NULL);
		(void)!rv_btf_type_enumerator(&b, id, "a", &v, NULL);
	}
	return 0;
}
