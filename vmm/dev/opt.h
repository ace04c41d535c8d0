/* SPDX-License-Identifier: Apache-2.0 */
/* opt.h: device options of the form "first,key=value,flag". */
#ifndef RV_VMM_DEV_OPT_H
#define RV_VMM_DEV_OPT_H

#include <ravelin/error.h>

/* Copies the first element; false when it is empty or does not fit. */
bool rv_opt_first(const char *option, char *out, size_t len);

/* Copies the value of key ("" for a bare flag); false when absent or too long. */
bool rv_opt_get(const char *option, const char *key, char *out, size_t len);

/* Refuses keys that are not in the NULL-terminated list. */
int rv_opt_check(const char *option, bool has_first, const char *const *keys, const char *who,
		 struct rv_err *err) RV_MUST_CHECK;

#endif
