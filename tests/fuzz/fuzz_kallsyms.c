/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_kallsyms.c: the search over any bytes, and the reader over a found table whose
 * bytes change afterwards, as a running guest's may. The input's first 8 bytes say
 * where it changes.
 */
#include <ravelin/kallsyms.h>

#include <stdlib.h>
#include <string.h>

#define BASE 0xffffffff81000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int nothing(const struct rv_symbol *s, void *arg)
{
	(void)s;
	return ++*(int *)arg == 2000;
}

static void read_it(const struct rv_kallsyms *k)
{
	struct rv_symbol_want w[] = {{.name = "sym_0001", .stem = true}, {.name = "k*"}};
	struct rv_symbol s;
	struct rv_err err;
	uint64_t off;
	int n = 0;

	(void)!rv_kallsyms_lookup(k, "kernel_init", &s, &err);
	(void)!rv_kallsyms_at(k, k->lay.num_syms / 2, &s, &err);
	(void)!rv_kallsyms_nearest(k, BASE + 0x123, &s, &off, &err);
	(void)!rv_kallsyms_resolve(k, w, 2, &err);
	(void)rv_kallsyms_each(k, nothing, &n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_kallsyms k = {.link_base = BASE};
	struct rv_err err;
	uint8_t *mem;
	uint32_t at, with;

	if (size < 16)
		return 0;
	memcpy(&at, data, 4);
	memcpy(&with, data + 4, 4);
	data += 8;
	size -= 8;
	mem = malloc(size);
	if (!mem)
		return 0;
	memcpy(mem, data, size);
	k.mem = mem;
	k.len = size;
	if (rv_kallsyms_find(mem, size, BASE, RV_ARCH_X86_64, &k.lay, &err) == 0) {
		read_it(&k);
		memcpy(mem + at % (size - 4), &with, 4);
		read_it(&k);
	} else {
		/* A layout made from the input: what another process might hand over. */
		k.lay = (struct rv_kallsyms_layout){
			.encoding = at % 5,
			.num_syms = with % 4096,
			.names = at % size,
			.names_len = with % size,
			.markers = (at >> 8) % size,
			.token_table = (with >> 4) % size,
			.token_index = (with >> 8) % size,
			.offsets = (at >> 4) % size,
			.marker_size = 4,
		};
		read_it(&k);
	}
	free(mem);
	return 0;
}
