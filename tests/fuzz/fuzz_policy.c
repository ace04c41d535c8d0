/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_policy.c: policy text; what parses must decide about any event and read back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../policy/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_line(void *arg, const char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < 0x20 || (unsigned char)*line > 0x7e)
			abort();
	}
	++*(uint32_t *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char near[RV_SCHEMA_TEXT], text[RV_SCHEMA_TEXT];
	struct rv_policy p;
	struct rv_verdict v;
	struct rv_event ev;
	uint32_t problems = 0, value;
	struct rv_err err;
	int rc;

	rc = rv_policy_parse("fuzz", (const char *)data, size, &p, on_line, &problems, &err);
	/* Refused with a reason, or accepted without one. */
	if ((rc != 0) != (problems != 0))
		abort();
	memset(&ev, 0, sizeof(ev));
	memcpy(&ev, data, size < sizeof(ev) ? size : sizeof(ev));
	if (!rc) {
		rv_policy_decide(&p, &ev, &v);
		if (v.action >= RV_ACT_COUNT)
			abort();
		for (uint32_t i = 0; i < rv_schema_count(); i++) {
			const struct rv_schema_key *key = rv_schema_at(i);

			rv_schema_text(key, &p, text, sizeof(text));
			/* A custom policy's profile has no text that a file may hold. */
			if (text[0] && strcmp(key->key, "profile") &&
			    !rv_schema_value(key, text, &value))
				abort();
		}
	}
	snprintf(text, sizeof(text), "%.*s", (int)(size < 63 ? size : 63), (const char *)data);
	(void)rv_schema_nearest(text, near, sizeof(near));
	return 0;
}
