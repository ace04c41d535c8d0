/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c: the one table of policy keys: type, range, value per profile, help.
 * The parser, its messages, `ravelin policy explain` and the reference page
 * ravelin-policy(5) all come from it; a new key is a new row.
 */
#include "schema.h"

#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(struct rv_policy, member)

#define WORD_RECORD                     \
	{                               \
		"record", RV_ACT_RECORD \
	}
#define WORD_DENY                   \
	{                           \
		"deny", RV_ACT_DENY \
	}
#define WORD_FAULT                    \
	{                             \
		"fault", RV_ACT_FAULT \
	}
#define WORD_PAUSE                    \
	{                             \
		"pause", RV_ACT_PAUSE \
	}
#define WORD_KILL                   \
	{                           \
		"kill", RV_ACT_KILL \
	}
#define ANY_ACTION                                                         \
	{                                                                  \
		WORD_RECORD, WORD_DENY, WORD_FAULT, WORD_PAUSE, WORD_KILL, \
		{                                                          \
			NULL, 0                                            \
		}                                                          \
	}

static const struct rv_schema_key keys[] = {
	{
		/* The first row; rv_policy_profile() relies on it. */
		.key = "profile",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(profile),
		.choices = {{"observe", RV_PROFILE_OBSERVE},
			    {"balanced", RV_PROFILE_BALANCED},
			    {"strict", RV_PROFILE_STRICT},
			    {NULL, 0}},
		.observe = RV_PROFILE_OBSERVE,
		.balanced = RV_PROFILE_BALANCED,
		.strict = RV_PROFILE_STRICT,
		.help = "The set of values that every key starts from; balanced when absent. A key "
			"that is then given another value makes the profile read custom.",
	},
	{
		.key = "name",
		.type = RV_SCHEMA_STRING,
		.offset = AT(name),
		.max = 63,
		.help = "Name of the virtual machine, as it appears in the journal. The option "
			"--name of ravelin run goes before it.",
	},
	{
		.key = "placement.base",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(placement_base),
		.choices = {{"off", RV_PLACE_OFF},
			    {"random", RV_PLACE_RANDOM},
			    {"if-able", RV_PLACE_IF_ABLE},
			    {NULL, 0}},
		.observe = RV_PLACE_IF_ABLE,
		.balanced = RV_PLACE_IF_ABLE,
		.strict = RV_PLACE_RANDOM,
		.help = "Where the kernel image goes. random: the monitor draws the physical and the "
			"virtual base, and refuses the start where the image does not allow it. "
			"if-able: drawn where the image allows it, else the start goes on with a "
			"degrade event. off: the kernel stays at its link address.",
	},
	{
		.key = "seal.text.watch",
		.type = RV_SCHEMA_BOOL,
		.offset = AT(seal_text),
		.observe = 1,
		.balanced = 1,
		.strict = 1,
		.help = "Write-protect the kernel's code. Patches that the kernel itself makes "
			"(jump labels, ftrace, kprobes, static calls) go on working.",
	},
	{
		.key = "seal.text.act",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(seal_text_act),
		.choices = ANY_ACTION,
		.observe = RV_ACT_RECORD,
		.balanced = RV_ACT_FAULT,
		.strict = RV_ACT_FAULT,
		.help = "What is done on a write into the kernel's code that is no legitimate patch. "
			"record: the write lands. deny: it does not, the guest goes on after it. "
			"fault: the guest gets a page fault at that instruction, so its own report "
			"names the culprit. pause: all processors stop. kill: the machine ends.",
	},
	{
		.key = "seal.rodata.watch",
		.type = RV_SCHEMA_BOOL,
		.offset = AT(seal_rodata),
		.observe = 1,
		.balanced = 1,
		.strict = 1,
		.help = "Write-protect the kernel's read-only data and what it made read-only after "
			"initialisation.",
	},
	{
		.key = "seal.rodata.act",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(seal_rodata_act),
		.choices = ANY_ACTION,
		.observe = RV_ACT_RECORD,
		.balanced = RV_ACT_FAULT,
		.strict = RV_ACT_FAULT,
		.help = "What is done on a write into read-only data; the actions are those of "
			"seal.text.act.",
	},
	{
		.key = "seal.gate.watch",
		.type = RV_SCHEMA_BOOL,
		.offset = AT(seal_gate),
		.observe = 1,
		.balanced = 1,
		.strict = 1,
		.help = "Write-protect the monitor's own pages inside the guest.",
	},
	{
		.key = "seal.gate.act",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(seal_gate_act),
		.choices = ANY_ACTION,
		.observe = RV_ACT_RECORD,
		.balanced = RV_ACT_FAULT,
		.strict = RV_ACT_FAULT,
		.help = "What is done on a write into the monitor's pages inside the guest, and when "
			"its doorbell is rung from elsewhere; the actions are those of "
			"seal.text.act.",
	},
	{
		.key = "seal.require",
		.type = RV_SCHEMA_BOOL,
		.offset = AT(seal_require),
		.observe = 0,
		.balanced = 1,
		.strict = 1,
		.help = "Refuse the start, or end the machine, when a seal that is watched cannot be "
			"armed. When off, the machine runs without it and a degrade event says so.",
	},
	{
		.key = "seal.deadline",
		.type = RV_SCHEMA_UINT,
		.offset = AT(seal_deadline),
		.min = 0,
		.max = 86400,
		.observe = 300,
		.balanced = 300,
		.strict = 300,
		.unit = "seconds",
		.help = "How long after its start the guest may take to make its text and data "
			"read-only, which is when the seals are armed. A guest that has not by then "
			"counts as one whose seal cannot be armed: see seal.require. 0: no limit.",
	},
	{
		.key = "device-write.act",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(device_write_act),
		.choices = {WORD_DENY, WORD_PAUSE, WORD_KILL, {NULL, 0}},
		.observe = RV_ACT_DENY,
		.balanced = RV_ACT_DENY,
		.strict = RV_ACT_KILL,
		.help = "What is done when a device of the machine is told to write into sealed "
			"memory. No healthy guest asks for it, so that the least answer is deny, in "
			"every profile: the request fails.",
	},
	{
		.key = "watchdog.seconds",
		.type = RV_SCHEMA_UINT,
		.offset = AT(watchdog_seconds),
		.min = 0,
		.max = 3600,
		.observe = 20,
		.balanced = 20,
		.strict = 20,
		.unit = "seconds",
		.help = "How long a processor of the guest may stay inside the host's KVM without "
			"any progress; 0 turns the watchdog off.",
	},
	{
		.key = "watchdog.act",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(watchdog_act),
		.choices = {WORD_RECORD, WORD_PAUSE, WORD_KILL, {NULL, 0}},
		.observe = RV_ACT_RECORD,
		.balanced = RV_ACT_RECORD,
		.strict = RV_ACT_PAUSE,
		.help = "What is done with a machine whose processor makes no progress. An overloaded "
			"host can cause that too, so balanced only records it.",
	},
	{
		.key = "journal.patches",
		.type = RV_SCHEMA_BOOL,
		.offset = AT(journal_patches),
		.observe = 1,
		.balanced = 0,
		.strict = 1,
		.help = "Journal each legitimate patch of the kernel's code as well.",
	},
	{
		.key = "journal.queue",
		.type = RV_SCHEMA_UINT,
		.offset = AT(journal_queue),
		.min = 16,
		.max = 65536,
		.observe = 4096,
		.balanced = 4096,
		.strict = 16384,
		.unit = "events",
		.help = "Most events that wait to be written. What does not fit is counted, and the "
			"count is an event. An event takes about 1.2 KiB of memory while it waits.",
	},
	{
		.key = "journal.coalesce",
		.type = RV_SCHEMA_UINT,
		.offset = AT(journal_coalesce),
		.min = 1,
		.max = 65536,
		.observe = 32,
		.balanced = 32,
		.strict = 32,
		.unit = "events per second",
		.help = "Events of the same kind, object and instruction that are written in full in "
			"each second; the rest of that second is counted in one event.",
	},
	{
		.key = "internal.act",
		.type = RV_SCHEMA_CHOICE,
		.offset = AT(internal_act),
		.choices = {WORD_RECORD, WORD_PAUSE, WORD_KILL, {NULL, 0}},
		.observe = RV_ACT_RECORD,
		.balanced = RV_ACT_KILL,
		.strict = RV_ACT_KILL,
		.help = "What is done when a part of the monitor fails by itself, so that its "
			"protection can no longer be vouched for.",
	},
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(NKEYS <= RV_SCHEMA_MAX_KEYS, "raise RV_SCHEMA_MAX_KEYS");

uint32_t rv_schema_count(void)
{
	return NKEYS;
}

const struct rv_schema_key *rv_schema_at(uint32_t index)
{
	return index < NKEYS ? &keys[index] : NULL;
}

const struct rv_schema_key *rv_schema_find(const char *key)
{
	for (size_t i = 0; i < NKEYS; i++) {
		if (!strcmp(keys[i].key, key))
			return &keys[i];
	}
	return NULL;
}

bool rv_schema_is_section(const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; len && i < NKEYS; i++) {
		if (!strncmp(keys[i].key, key, len) && keys[i].key[len] == '.')
			return true;
	}
	return false;
}

#define MAX_WORD 48u

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Insert, leave out, change, or swap two neighbours: each counts as one slip. */
uint32_t rv_schema_distance(const char *a, const char *b)
{
	uint32_t rows[3][MAX_WORD + 1] = {{0}};
	uint32_t *before = rows[0], *last = rows[1], *row = rows[2], *spare;
	size_t la = strlen(a), lb = strlen(b);

	if (la > MAX_WORD || lb > MAX_WORD)
		return UINT32_MAX;
	for (size_t j = 0; j <= lb; j++)
		last[j] = (uint32_t)j;
	for (size_t i = 1; i <= la; i++) {
		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= lb; j++) {
			row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]),
				       least(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[lb];
}

/* Far enough for a slip of the fingers or a forgotten section, near enough to be of help. */
static uint32_t reach(const char *text)
{
	size_t len = strlen(text);

	return len <= 3 ? 1 : len <= 6 ? 2 : (uint32_t)len / 3;
}

static const char *last_part(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

static void consider(const char *key, const char *candidate, uint32_t *best, const char *base,
		     char *buf, size_t len)
{
	uint32_t d = rv_schema_distance(base, candidate);

	if (d < *best && d <= reach(base)) {
		*best = d;
		snprintf(buf, len, "%s", key);
	}
}

const char *rv_schema_nearest(const char *key, char *buf, size_t len)
{
	uint32_t best = UINT32_MAX;
	char section[RV_SCHEMA_TEXT];

	for (size_t i = 0; i < NKEYS; i++) {
		consider(keys[i].key, keys[i].key, &best, key, buf, len);
		for (const char *p = keys[i].key; (p = strchr(p, '.')) != NULL; p++) {
			snprintf(section, sizeof(section), "%.*s", (int)(p - keys[i].key),
				 keys[i].key);
			consider(section, section, &best, key, buf, len);
		}
	}
	if (best != UINT32_MAX)
		return buf;
	/* The right word in the wrong place: "text" for "seal.text", "queue" for "journal.queue".
	 */
	for (size_t i = 0; i < NKEYS; i++) {
		if (!strcmp(last_part(key), last_part(keys[i].key))) {
			snprintf(buf, len, "%s", keys[i].key);
			return buf;
		}
	}
	return NULL;
}

const char *rv_schema_nearest_word(const struct rv_schema_key *key, const char *text)
{
	static const char *const onoff[] = {"on", "off", NULL};
	const char *found = NULL, *word;
	uint32_t best = UINT32_MAX, d;

	for (size_t i = 0;; i++) {
		word = key->type == RV_SCHEMA_BOOL ? onoff[i] : key->choices[i].word;
		if (!word)
			break;
		d = rv_schema_distance(text, word);
		if (d < best && d <= reach(text)) {
			best = d;
			found = word;
		}
	}
	return found;
}

const char *rv_schema_expected(const struct rv_schema_key *key, char *buf, size_t len)
{
	size_t n;

	switch (key->type) {
	case RV_SCHEMA_BOOL: snprintf(buf, len, "on or off"); break;
	case RV_SCHEMA_UINT:
		snprintf(buf, len, "a whole number from %u to %u", key->min, key->max);
		break;
	case RV_SCHEMA_STRING:
		snprintf(buf, len, "1 to %u letters, digits, '.', '_' or '-'", key->max);
		break;
	case RV_SCHEMA_CHOICE:
		snprintf(buf, len, "one of ");
		for (size_t i = 0; key->choices[i].word; i++) {
			n = strlen(buf);
			snprintf(buf + n, len - n, "%s%s", i ? ", " : "", key->choices[i].word);
		}
		break;
	}
	return buf;
}

static bool value_bool(const char *text, uint32_t *out)
{
	static const char *const yes[] = {"on", "true", "yes"}, *const no[] = {"off", "false",
									       "no"};

	for (size_t i = 0; i < 3; i++) {
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*out = !strcmp(text, yes[i]);
			return true;
		}
	}
	return false;
}

/* Decimal digits only: YAML's octal and sexagesimal forms have surprised people. */
static bool value_uint(const struct rv_schema_key *key, const char *text, uint32_t *out)
{
	uint64_t v = 0;
	size_t len = strlen(text);

	if (!len || len > 9 || (len > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	if (v < key->min || v > key->max)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool value_string(const struct rv_schema_key *key, const char *text)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(text);

	return len && len <= key->max && strspn(text, ok) == len;
}

bool rv_schema_value(const struct rv_schema_key *key, const char *text, uint32_t *value_out)
{
	*value_out = 0;
	switch (key->type) {
	case RV_SCHEMA_BOOL: return value_bool(text, value_out);
	case RV_SCHEMA_UINT: return value_uint(key, text, value_out);
	case RV_SCHEMA_STRING: return value_string(key, text);
	case RV_SCHEMA_CHOICE:
		for (size_t i = 0; key->choices[i].word; i++) {
			if (!strcmp(key->choices[i].word, text)) {
				*value_out = key->choices[i].value;
				return true;
			}
		}
		return false;
	}
	return false;
}

uint32_t rv_schema_get(const struct rv_schema_key *key, const struct rv_policy *p)
{
	const char *at = (const char *)p + key->offset;
	uint32_t v = 0;

	if (key->type == RV_SCHEMA_BOOL)
		return *(const bool *)at;
	if (key->type != RV_SCHEMA_STRING)
		memcpy(&v, at, sizeof(v));
	return v;
}

void rv_schema_set(const struct rv_schema_key *key, struct rv_policy *p, uint32_t value)
{
	char *at = (char *)p + key->offset;

	if (key->type == RV_SCHEMA_BOOL)
		*(bool *)at = value != 0;
	else if (key->type != RV_SCHEMA_STRING)
		memcpy(at, &value, sizeof(value));
}

const char *rv_schema_text(const struct rv_schema_key *key, const struct rv_policy *p, char *buf,
			   size_t len)
{
	uint32_t v = rv_schema_get(key, p);

	snprintf(buf, len, "?");
	switch (key->type) {
	case RV_SCHEMA_BOOL: snprintf(buf, len, "%s", v ? "on" : "off"); break;
	case RV_SCHEMA_UINT: snprintf(buf, len, "%u", v); break;
	case RV_SCHEMA_STRING: snprintf(buf, len, "%s", (const char *)p + key->offset); break;
	case RV_SCHEMA_CHOICE:
		for (size_t i = 0; key->choices[i].word; i++) {
			if (key->choices[i].value == v)
				snprintf(buf, len, "%s", key->choices[i].word);
		}
		break;
	}
	return buf;
}

uint32_t rv_schema_default(const struct rv_schema_key *key, uint32_t profile)
{
	switch (profile) {
	case RV_PROFILE_OBSERVE: return key->observe;
	case RV_PROFILE_STRICT: return key->strict;
	}
	return key->balanced;
}
