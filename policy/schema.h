/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h: the one table of policy keys. Internal to policy/; vmm/cmd_policy.c
 * uses it to explain, show and compare policies.
 */
#ifndef RAVELIN_POLICY_SCHEMA_H
#define RAVELIN_POLICY_SCHEMA_H

#include <ravelin/policy.h>

enum rv_schema_type {
	RV_SCHEMA_BOOL,	  /* on or off */
	RV_SCHEMA_UINT,	  /* decimal, min..max */
	RV_SCHEMA_CHOICE, /* one of a few words */
	RV_SCHEMA_STRING, /* letters, digits, '.', '_', '-'; max = longest length */
};

#define RV_SCHEMA_MAX_CHOICES 6
#define RV_SCHEMA_MAX_KEYS    32
#define RV_SCHEMA_TEXT	      64 /* a value as text, with its terminator */

struct rv_schema_choice {
	const char *word;
	uint32_t value;
};

struct rv_schema_key {
	const char *key; /* dotted: "seal.text.act" */
	enum rv_schema_type type;
	size_t offset; /* of the member in struct rv_policy */
	uint32_t min, max;
	struct rv_schema_choice choices[RV_SCHEMA_MAX_CHOICES]; /* ends with word NULL */
	uint32_t observe, balanced, strict;			/* the value in each profile */
	const char *unit;					/* "seconds", or NULL */
	const char *help;					/* whole sentences */
};

/* Where a value came from; line 0: from the profile. */
struct rv_schema_origin {
	uint32_t line, column;
};

uint32_t rv_schema_count(void);
const struct rv_schema_key *rv_schema_at(uint32_t index);
const struct rv_schema_key *rv_schema_find(const char *key);

/* Is key a proper prefix of a key ("seal", "seal.text")? */
bool rv_schema_is_section(const char *key);

/* Key or section nearest to a misspelt one; NULL when nothing is near. The
 * result points into static storage of the schema or into buf. */
const char *rv_schema_nearest(const char *key, char *buf, size_t len);

/* Of the choices (or on/off), the word nearest to text; NULL when none is near. */
const char *rv_schema_nearest_word(const struct rv_schema_key *key, const char *text);

/* "on or off", "a whole number from 16 to 65536", "one of record, deny, fault". */
const char *rv_schema_expected(const struct rv_schema_key *key, char *buf, size_t len);

/* Parse a value's text; false when it is not one that the key takes. Strings
 * are checked only, value_out stays 0. */
bool rv_schema_value(const struct rv_schema_key *key, const char *text, uint32_t *value_out);

/* Value of the key in a policy, as number (strings: 0) and as text. */
uint32_t rv_schema_get(const struct rv_schema_key *key, const struct rv_policy *p);
void rv_schema_set(const struct rv_schema_key *key, struct rv_policy *p, uint32_t value);
const char *rv_schema_text(const struct rv_schema_key *key, const struct rv_policy *p, char *buf,
			   size_t len);

/* Value of the key in a built-in profile. */
uint32_t rv_schema_default(const struct rv_schema_key *key, uint32_t profile);

/* rv_policy_parse() and rv_policy_load() that also tell origins[RV_SCHEMA_MAX_KEYS]
 * (may be NULL), indexed like rv_schema_at(). */
int rv_policy_parse_origins(const char *name, const char *text, size_t len, struct rv_policy *out,
			    struct rv_schema_origin *origins, rv_policy_report *report, void *arg,
			    struct rv_err *err) RV_MUST_CHECK;
int rv_policy_load_origins(const char *path, struct rv_policy *out,
			   struct rv_schema_origin *origins, rv_policy_report *report, void *arg,
			   struct rv_err *err) RV_MUST_CHECK;

/* Largest policy file, bytes. A full one with comments takes 2 KiB. */
#define RV_POLICY_MAX_BYTES 65536u

/* "balanced", or "custom (based on balanced)". */
const char *rv_policy_profile_text(const struct rv_policy *p, char *buf, size_t len);

/* Edit distance of two short words; long ones give a large number. */
uint32_t rv_schema_distance(const char *a, const char *b);

#endif
