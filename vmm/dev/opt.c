/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.c: device options of the form "first,key=value,flag". A comma cannot be quoted.
 */
#include "opt.h"

#include <string.h>

static const char *next_of(const char *p)
{
	p = strchr(p, ',');
	return p ? p + 1 : NULL;
}

static bool copy(char *out, size_t len, const char *p, size_t n)
{
	if (n >= len)
		return false;
	memcpy(out, p, n);
	out[n] = '\0';
	return true;
}

bool rv_opt_first(const char *option, char *out, size_t len)
{
	size_t n = strcspn(option, ",");

	return n && copy(out, len, option, n);
}

bool rv_opt_get(const char *option, const char *key, char *out, size_t len)
{
	size_t klen = strlen(key);

	for (const char *p = option; p; p = next_of(p)) {
		size_t n = strcspn(p, ",");

		if (strncmp(p, key, klen))
			continue;
		if (n == klen)
			return copy(out, len, "", 0);
		if (p[klen] == '=')
			return copy(out, len, p + klen + 1, n - klen - 1);
	}
	return false;
}

static bool known(const char *p, size_t n, const char *const *keys)
{
	for (; *keys; keys++)
		if (strlen(*keys) == n && !strncmp(p, *keys, n))
			return true;
	return false;
}

int rv_opt_check(const char *option, bool has_first, const char *const *keys, const char *who,
		 struct rv_err *err)
{
	const char *p = has_first ? next_of(option) : option;

	for (; p; p = next_of(p)) {
		size_t n = strcspn(p, ",=");

		if (!known(p, n, keys))
			return rv_err_set(err, RV_EINVAL, who,
					  "unknown option \"%.*s\" in \"%.80s\"",
					  (int)(n < 40 ? n : 40), p, option);
	}
	return RV_OK;
}
