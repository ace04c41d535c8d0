/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c: YAML text -> policy, with every problem reported where it stands.
 *
 * Driven by libyaml's events, never by a tree: anchors, aliases and tags are
 * refused, nesting is bounded by MAX_DEPTH, so that no file can be larger in memory
 * than on disk. Values are collected first and applied on the profile afterwards,
 * since "profile" may stand anywhere.
 */
#include "schema.h"

#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* The deepest key has three parts; the rest is room for a clear message. */
#define MAX_DEPTH 8u
/* A file of nonsense need not fill the terminal. */
#define MAX_PROBLEMS 50u

struct slot {
	bool set;
	uint32_t value;
	char text[RV_SCHEMA_TEXT];
	struct rv_schema_origin at;
};

struct parse {
	yaml_parser_t yaml;
	const char *name;
	rv_policy_report *report;
	void *arg;
	struct rv_err *err;
	uint32_t problems;
	bool broken; /* not YAML: no more events will come */
	struct slot slots[RV_SCHEMA_MAX_KEYS];
};

static void __attribute__((format(printf, 3, 4)))
problem(struct parse *p, yaml_mark_t at, const char *fmt, ...)
{
	char text[320], line[512];
	va_list ap;

	p->problems++;
	if (p->problems > MAX_PROBLEMS + 1)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->problems > MAX_PROBLEMS)
		snprintf(text, sizeof(text), "expected fewer problems; the rest is not shown");
	snprintf(line, sizeof(line), "%s:%zu:%zu: %s", p->name, at.line + 1, at.column + 1, text);
	if (p->problems == 1)
		rv_err_set(p->err, RV_EINVAL, "policy", "%s", line);
	if (p->report)
		p->report(p->arg, line);
}

/* A text of the file in a message: printable, and not long. */
static const char *shown(const yaml_event_t *ev, char *buf, size_t len)
{
	const unsigned char *s = ev->data.scalar.value;
	size_t n = ev->data.scalar.length, i, o = 0;

	for (i = 0; i < n && o + 5 < len && i < 40; i++) {
		if (s[i] >= 0x20 && s[i] < 0x7f)
			buf[o++] = (char)s[i];
		else
			o += (size_t)snprintf(buf + o, len - o, "\\x%02x", s[i]);
	}
	snprintf(buf + o, len - o, "%s", i < n ? "..." : "");
	return buf;
}

/* Next event; false when the text is not YAML, which has then been reported. */
static bool next(struct parse *p, yaml_event_t *ev)
{
	yaml_mark_t at;

	if (yaml_parser_parse(&p->yaml, ev))
		return true;
	memset(ev, 0, sizeof(*ev));
	p->broken = true;
	at = p->yaml.problem_mark;
	if (p->yaml.error == YAML_READER_ERROR)
		at = p->yaml.mark;
	problem(p, at, "expected YAML: %s", p->yaml.problem ? p->yaml.problem : "out of memory");
	return false;
}

/* Step over the node that ev begins. Iterative: depth costs a counter only. */
static bool skip(struct parse *p, yaml_event_t *ev)
{
	uint32_t depth = 0;

	for (;;) {
		if (ev->type == YAML_MAPPING_START_EVENT || ev->type == YAML_SEQUENCE_START_EVENT)
			depth++;
		else if (ev->type == YAML_MAPPING_END_EVENT || ev->type == YAML_SEQUENCE_END_EVENT)
			depth--;
		yaml_event_delete(ev);
		if (!depth)
			return true;
		if (!next(p, ev))
			return false;
	}
}

static const char *form(const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_ALIAS_EVENT: return "an alias";
	case YAML_SEQUENCE_START_EVENT: return "a list";
	case YAML_MAPPING_START_EVENT: return "a mapping";
	default: return "a plain value";
	}
}

/* Anchors and tags have no use here, and are how small files become large. */
static bool is_decorated(struct parse *p, const yaml_event_t *ev)
{
	const unsigned char *anchor = NULL, *tag = NULL;

	if (ev->type == YAML_SCALAR_EVENT) {
		anchor = ev->data.scalar.anchor;
		tag = ev->data.scalar.tag;
	} else if (ev->type == YAML_MAPPING_START_EVENT) {
		anchor = ev->data.mapping_start.anchor;
		tag = ev->data.mapping_start.tag;
	} else if (ev->type == YAML_SEQUENCE_START_EVENT) {
		anchor = ev->data.sequence_start.anchor;
		tag = ev->data.sequence_start.tag;
	}
	if (anchor || tag)
		problem(p, ev->start_mark, "expected no %s", anchor ? "anchors" : "tags");
	return anchor || tag;
}

static void take_value(struct parse *p, uint32_t index, const yaml_event_t *ev)
{
	const struct rv_schema_key *key = rv_schema_at(index);
	struct slot *slot = &p->slots[index];
	const char *text = (const char *)ev->data.scalar.value, *near;
	char expected[160], found[64];

	if (strlen(text) == ev->data.scalar.length && rv_schema_value(key, text, &slot->value)) {
		if (key->type == RV_SCHEMA_STRING)
			snprintf(slot->text, sizeof(slot->text), "%s", text);
		return;
	}
	near = rv_schema_nearest_word(key, text);
	problem(p, ev->start_mark, "expected %s for %s, found '%s'%s%s%s",
		rv_schema_expected(key, expected, sizeof(expected)), key->key,
		shown(ev, found, sizeof(found)), near ? "; did you mean '" : "", near ? near : "",
		near ? "'?" : "");
}

/* The value of a key that the schema knows. */
static bool leaf(struct parse *p, uint32_t index, yaml_mark_t at, yaml_event_t *ev)
{
	const struct rv_schema_key *key = rv_schema_at(index);
	struct slot *slot = &p->slots[index];
	char expected[160];

	if (slot->set)
		problem(p, at, "expected each key once, and %s stands in line %u already", key->key,
			slot->at.line);
	if (ev->type != YAML_SCALAR_EVENT) {
		problem(p, ev->start_mark, "expected %s for %s, found %s",
			rv_schema_expected(key, expected, sizeof(expected)), key->key, form(ev));
	} else if (!is_decorated(p, ev) && !slot->set) {
		slot->set = true;
		slot->at.line = (uint32_t)ev->start_mark.line + 1;
		slot->at.column = (uint32_t)ev->start_mark.column + 1;
		take_value(p, index, ev);
	}
	return skip(p, ev);
}

/* One open mapping: its dotted name and the sections seen in it. */
struct level {
	char path[RV_SCHEMA_TEXT];
	struct {
		char name[RV_SCHEMA_TEXT];
		size_t line;
	} seen[RV_SCHEMA_MAX_KEYS];
	uint32_t nseen;
};

static void note_section(struct parse *p, struct level *lv, const char *name, yaml_mark_t at)
{
	for (uint32_t i = 0; i < lv->nseen; i++) {
		if (!strcmp(lv->seen[i].name, name)) {
			problem(p, at, "expected each key once, and %s stands in line %zu already",
				name, lv->seen[i].line + 1);
			return;
		}
	}
	if (lv->nseen < RV_SCHEMA_MAX_KEYS) {
		snprintf(lv->seen[lv->nseen].name, sizeof(lv->seen[0].name), "%.63s", name);
		lv->seen[lv->nseen++].line = at.line;
	}
}

static void unknown_key(struct parse *p, const char *full, const char *printable, yaml_mark_t at)
{
	char buf[RV_SCHEMA_TEXT];
	const char *near = rv_schema_nearest(full, buf, sizeof(buf));

	if (rv_schema_find(full) || rv_schema_is_section(full)) {
		problem(p, at, "expected nested mappings, found '%s' as one key", printable);
		return;
	}
	problem(p, at, "expected a known key, found '%s'%s%s%s", printable,
		near ? "; did you mean '" : "; `ravelin policy explain` lists them",
		near ? near : "", near ? "'?" : "");
}

static bool mapping(struct parse *p, const char *path, uint32_t depth);

/* A key that opens a section: its value is a mapping. */
static bool section(struct parse *p, struct level *lv, const char *full, yaml_mark_t at,
		    yaml_event_t *ev, uint32_t depth)
{
	note_section(p, lv, full, at);
	if (ev->type != YAML_MAPPING_START_EVENT || depth >= MAX_DEPTH) {
		problem(p, ev->start_mark, "expected a mapping for %s, found %s", full, form(ev));
		return skip(p, ev);
	}
	(void)is_decorated(p, ev);
	yaml_event_delete(ev);
	return mapping(p, full, depth + 1);
}

/* One "key: value" pair; ev holds the key. */
static bool pair(struct parse *p, struct level *lv, yaml_event_t *ev, uint32_t depth)
{
	char full[2 * RV_SCHEMA_TEXT], printable[2 * RV_SCHEMA_TEXT], found[64];
	yaml_mark_t at = ev->start_mark;
	bool good = true;

	snprintf(full, sizeof(full), "?");
	if (ev->type != YAML_SCALAR_EVENT) {
		problem(p, at, "expected a key, found %s", form(ev));
		good = false;
	} else if (is_decorated(p, ev)) {
		good = false;
	} else {
		shown(ev, found, sizeof(found));
		snprintf(printable, sizeof(printable), "%s%s%s", lv->path, lv->path[0] ? "." : "",
			 found);
		snprintf(full, sizeof(full), "%s%s%.60s", lv->path, lv->path[0] ? "." : "",
			 (const char *)ev->data.scalar.value);
		/* A dot inside a key must not reach into another section. */
		if (strchr((const char *)ev->data.scalar.value, '.') ||
		    strlen((const char *)ev->data.scalar.value) != ev->data.scalar.length ||
		    (!rv_schema_find(full) && !rv_schema_is_section(full))) {
			unknown_key(p, full, printable, at);
			good = false;
		}
	}
	if (!skip(p, ev) || !next(p, ev))
		return false;
	if (!good)
		return skip(p, ev);
	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		if (!strcmp(rv_schema_at(i)->key, full))
			return leaf(p, i, at, ev);
	}
	return section(p, lv, full, at, ev, depth);
}

/* The pairs of a mapping whose start has been read. */
static bool mapping(struct parse *p, const char *path, uint32_t depth)
{
	struct level lv = {.nseen = 0};
	yaml_event_t ev;

	snprintf(lv.path, sizeof(lv.path), "%s", path);
	for (;;) {
		if (!next(p, &ev))
			return false;
		if (ev.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&ev);
			return true;
		}
		if (!pair(p, &lv, &ev, depth))
			return false;
	}
}

static void document(struct parse *p)
{
	yaml_event_t ev;
	bool seen = false;

	for (;;) {
		if (!next(p, &ev))
			return;
		switch (ev.type) {
		case YAML_STREAM_END_EVENT:
			if (!seen)
				problem(p, ev.start_mark, "expected a policy, found an empty file");
			yaml_event_delete(&ev);
			return;
		case YAML_DOCUMENT_START_EVENT:
			if (seen) {
				problem(p, ev.start_mark, "expected one document, found another");
				yaml_event_delete(&ev);
				return;
			}
			yaml_event_delete(&ev);
			break;
		case YAML_MAPPING_START_EVENT:
			(void)is_decorated(p, &ev);
			yaml_event_delete(&ev);
			if (!mapping(p, "", 0))
				return;
			seen = true;
			break;
		case YAML_SCALAR_EVENT:
		case YAML_SEQUENCE_START_EVENT:
		case YAML_ALIAS_EVENT:
			problem(p, ev.start_mark, "expected a mapping of policy keys, found %s",
				form(&ev));
			seen = true;
			if (!skip(p, &ev))
				return;
			break;
		default: yaml_event_delete(&ev); break;
		}
	}
}

static void apply(const struct parse *p, struct rv_policy *out)
{
	uint32_t base = RV_PROFILE_BALANCED;
	bool changed = false;

	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		if (rv_schema_at(i)->offset == offsetof(struct rv_policy, profile) &&
		    p->slots[i].set)
			base = p->slots[i].value;
	}
	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		const struct rv_schema_key *key = rv_schema_at(i);
		uint32_t usual = rv_schema_default(key, base);

		if (key->type == RV_SCHEMA_STRING) {
			snprintf((char *)out + key->offset, key->max + 1, "%s", p->slots[i].text);
			continue;
		}
		rv_schema_set(key, out, p->slots[i].set ? p->slots[i].value : usual);
		changed |= p->slots[i].set && p->slots[i].value != usual;
	}
	out->based_on = base;
	out->profile = changed ? (uint32_t)RV_PROFILE_CUSTOM : base;
}

static void sha256(const void *data, size_t len, uint8_t *out)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, data);
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, out);
}

int rv_policy_parse_origins(const char *name, const char *text, size_t len, struct rv_policy *out,
			    struct rv_schema_origin *origins, rv_policy_report *report, void *arg,
			    struct rv_err *err)
{
	struct parse p = {.name = name, .report = report, .arg = arg, .err = err};

	memset(out, 0, sizeof(*out));
	if (len > RV_POLICY_MAX_BYTES) {
		yaml_mark_t start = {0, 0, 0};

		problem(&p, start, "expected at most %u bytes, found %zu", RV_POLICY_MAX_BYTES,
			len);
		return RV_EINVAL;
	}
	if (!yaml_parser_initialize(&p.yaml))
		return rv_err_set(err, RV_ENOMEM, "policy", "out of memory");
	yaml_parser_set_encoding(&p.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, len);
	document(&p);
	yaml_parser_delete(&p.yaml);
	if (p.problems)
		return RV_EINVAL;
	apply(&p, out);
	sha256(text, len, out->digest);
	for (uint32_t i = 0; origins && i < rv_schema_count(); i++)
		origins[i] = p.slots[i].at;
	return 0;
}

int rv_policy_parse(const char *name, const char *text, size_t len, struct rv_policy *out,
		    rv_policy_report *report, void *arg, struct rv_err *err)
{
	return rv_policy_parse_origins(name, text, len, out, NULL, report, arg, err);
}

int rv_policy_profile(const char *name, struct rv_policy *out, struct rv_err *err)
{
	const struct rv_schema_key *profile = rv_schema_at(0);
	uint32_t base;
	char expected[160];

	memset(out, 0, sizeof(*out));
	if (!rv_schema_value(profile, name, &base))
		return rv_err_set(err, RV_EINVAL, "policy", "expected %s, found '%.40s'",
				  rv_schema_expected(profile, expected, sizeof(expected)), name);
	for (uint32_t i = 0; i < rv_schema_count(); i++)
		rv_schema_set(rv_schema_at(i), out, rv_schema_default(rv_schema_at(i), base));
	out->based_on = base;
	sha256(name, strlen(name), out->digest);
	return 0;
}

const char *rv_policy_profile_text(const struct rv_policy *p, char *buf, size_t len)
{
	if (p->profile == RV_PROFILE_CUSTOM)
		snprintf(buf, len, "custom (based on %s)", rv_profile_name(p->based_on));
	else
		snprintf(buf, len, "%s", rv_profile_name(p->profile));
	return buf;
}
