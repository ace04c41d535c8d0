/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_journal.c: three uses of the input: as a line to read, as a line to check
 * against the chain, and as an event whose own line must check and read back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../policy/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_text(const char *text, size_t size)
{
	struct rv_record rec;
	struct rv_chain c;
	struct rv_err err;
	char human[512];

	if (!rv_record_parse(text, size, &rec, &err)) {
		rv_event_format(&rec.ev, &rec.verdict, human, sizeof(human));
		for (const char *p = human; *p; p++) {
			if (*p < 0x20 || *p > 0x7e)
				abort();
		}
	}
	rv_chain_init(&c);
	if (rv_chain_check(&c, text, size, &err) && c.seq)
		abort();
}

static void as_event(const uint8_t *data, size_t size)
{
	char line[RV_RECORD_MAX], vm[64] = {0};
	struct rv_chain c, d;
	struct rv_verdict v;
	struct rv_record rec;
	struct rv_event ev;
	struct rv_err err;
	size_t len;

	memset(&ev, 0, sizeof(ev));
	memset(&v, 0, sizeof(v));
	memcpy(&ev, data, size < sizeof(ev) ? size : sizeof(ev));
	if (size > sizeof(ev))
		memcpy(&v, data + sizeof(ev),
		       size - sizeof(ev) < sizeof(v) ? size - sizeof(ev) : sizeof(v));
	if (size)
		memcpy(vm, data, size < 64 ? size : 64);
	rv_chain_init(&c);
	d = c;
	len = rv_record_line(&c, vm, &ev, size & 1 ? &v : NULL, line);
	if (line[len - 1] != '\n' || strlen(line) != len)
		abort();
	if (rv_chain_check(&d, line, len - 1, &err) || memcmp(&c, &d, sizeof(c)))
		abort();
	if (rv_record_parse(line, len - 1, &rec, &err) || rec.ev.pc != ev.pc)
		abort();
	/* And with one bit changed it does not. */
	rv_chain_init(&d);
	if (size) {
		line[data[0] * 31u % (len - 1)] ^= (char)(1 << (size % 8));
		if (!rv_chain_check(&d, line, len - 1, &err))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	as_text(copy, size);
	free(copy);
	as_event(data, size);
	return 0;
}
