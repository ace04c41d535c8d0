/* SPDX-License-Identifier: Apache-2.0 */
/* recread.c: a journal line back into an event and a verdict. Input is not trusted. */
#include "record.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *str_of(const json_t *obj, const char *name)
{
	return json_string_value(json_object_get(obj, name));
}

static void get_string(const json_t *obj, const char *name, char *out, size_t size)
{
	const char *s = str_of(obj, name);

	/* Cleaned again: the file may not be one that we wrote. */
	if (s)
		rv_text_clean(s, strlen(s), out, size);
}

static uint64_t get_addr(const json_t *obj, const char *name, uint64_t none)
{
	const char *s = str_of(obj, name);

	if (!s || strncmp(s, "0x", 2) || !s[2] || strlen(s) > 18 ||
	    strspn(s + 2, "0123456789abcdef") != strlen(s + 2))
		return none;
	return strtoull(s + 2, NULL, 16);
}

static uint64_t get_number(const json_t *obj, const char *name, uint64_t none)
{
	const json_t *v = json_object_get(obj, name);
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v))
		return get_addr(obj, name, none);
	return n >= 0 ? (uint64_t)n : none;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t get_bytes(const json_t *obj, const char *name, uint8_t *out, size_t size)
{
	const char *s = str_of(obj, name);
	size_t n = 0;

	while (s && n < size && s[0] && nibble(s[0]) >= 0 && nibble(s[1]) >= 0) {
		out[n++] = (uint8_t)(nibble(s[0]) << 4 | nibble(s[1]));
		s += 2;
	}
	return n;
}

/* "2026-01-02T03:04:05.000000006Z" only; 0 when it is anything else. */
static uint64_t get_time(const json_t *obj)
{
	const char *s = str_of(obj, "time"), *end;
	struct tm tm = {0};
	uint64_t ns = 0;
	time_t sec;

	if (!s || strlen(s) != 30)
		return 0;
	end = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!end || *end != '.' || s[29] != 'Z' || end != s + 19)
		return 0;
	for (int i = 20; i < 29; i++) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		ns = ns * 10 + (uint64_t)(s[i] - '0');
	}
	sec = timegm(&tm);
	return sec < 0 ? 0 : (uint64_t)sec * 1000000000u + ns;
}

static int get_kind(const json_t *obj, struct rv_record *out, struct rv_err *err)
{
	const char *kind = str_of(obj, "kind"), *action = str_of(obj, "action");

	if (!kind || !action)
		return rv_err_set(err, RV_EBADDATA, "journal", "has no kind or no action");
	if (!strcmp(kind, "unknown"))
		out->ev.kind = (uint32_t)get_number(obj, "kind_number", RV_EV_COUNT);
	else if (!rv_event_kind_find(kind, &out->ev.kind))
		return rv_err_set(err, RV_EBADDATA, "journal", "has a kind that is not known");
	/* An action out of range was posted: the journal keeps that, so reading must too. */
	if (!strcmp(action, "unknown"))
		out->verdict.action = RV_ACT_COUNT;
	else if (!rv_action_find(action, &out->verdict.action))
		return rv_err_set(err, RV_EBADDATA, "journal", "has an action that is not known");
	return 0;
}

static void get_event(const json_t *obj, struct rv_event *ev)
{
	ev->version = RV_EVENT_VERSION;
	ev->mono_ns = get_number(obj, "mono_ns", 0);
	ev->wall_ns = get_time(obj);
	ev->vcpu = (int32_t)get_number(obj, "vcpu", (uint64_t)-1);
	ev->size = (uint32_t)get_number(obj, "size", 0);
	ev->pc = get_addr(obj, "pc", 0);
	ev->caller = get_addr(obj, "caller", 0);
	ev->target = get_addr(obj, "target", 0);
	ev->gpa = get_addr(obj, "gpa", UINT64_MAX);
	ev->value = get_number(obj, "value", 0);
	ev->ref = get_number(obj, "ref", 0);
	ev->nold = (uint8_t)get_bytes(obj, "old", ev->old_bytes, sizeof(ev->old_bytes));
	ev->nnew = (uint8_t)get_bytes(obj, "new", ev->new_bytes, sizeof(ev->new_bytes));
	ev->pc_exact = json_is_true(json_object_get(obj, "pc_exact"));
	ev->cpl = (uint8_t)get_number(obj, "cpl", 0);
	get_string(obj, "engine", ev->engine, sizeof(ev->engine));
	get_string(obj, "object", ev->object, sizeof(ev->object));
	get_string(obj, "insn", ev->insn, sizeof(ev->insn));
	get_string(obj, "pc_symbol", ev->pc_symbol, sizeof(ev->pc_symbol));
	get_string(obj, "caller_symbol", ev->caller_symbol, sizeof(ev->caller_symbol));
	get_string(obj, "target_symbol", ev->target_symbol, sizeof(ev->target_symbol));
	get_string(obj, "comm", ev->comm, sizeof(ev->comm));
	get_string(obj, "detail", ev->detail, sizeof(ev->detail));
}

int rv_record_parse(const char *line, size_t len, struct rv_record *out, struct rv_err *err)
{
	json_error_t jerr;
	json_t *obj;
	int rc;

	memset(out, 0, sizeof(*out));
	obj = json_loadb(line, len, JSON_REJECT_DUPLICATES, &jerr);
	if (!obj)
		return rv_err_set(err, RV_EBADDATA, "journal", "is not JSON: %.80s at byte %d",
				  jerr.text, jerr.position);
	rc = json_is_object(obj) ? get_kind(obj, out, err)
				 : rv_err_set(err, RV_EBADDATA, "journal", "is no JSON object");
	if (!rc) {
		out->seq = get_number(obj, "seq", 0);
		get_string(obj, "vm", out->vm, sizeof(out->vm));
		get_string(obj, "rule", out->verdict.rule, sizeof(out->verdict.rule));
		get_string(obj, "reason", out->verdict.reason, sizeof(out->verdict.reason));
		get_event(obj, &out->ev);
	}
	json_decref(obj);
	return rc;
}
