/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c: an event as one JSON line, chained to the line before.
 *
 * Members stand in a fixed order and absent ones are left out, so equal events
 * give equal bytes. The digest is taken over the bytes of the line before
 * ,"digest": and those include the digest of the line before ("prev").
 */
#include "record.h"

#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void rv_hex_sha256(const void *data, size_t len, char *out)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, data);
	sha256_digest(&ctx, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++) {
		out[2 * i] = hex[digest[i] >> 4];
		out[2 * i + 1] = hex[digest[i] & 15];
	}
	out[RV_DIGEST_HEX] = '\0';
}

void rv_chain_init(struct rv_chain *c)
{
	c->seq = 0;
	memset(c->prev, '0', RV_DIGEST_HEX);
	c->prev[RV_DIGEST_HEX] = '\0';
}

const char *rv_text_clean(const char *src, size_t size, char *buf, size_t len)
{
	size_t n = strnlen(src, size), o = 0;

	for (size_t i = 0; i < n && o + 5 <= len; i++) {
		unsigned char c = (unsigned char)src[i];

		if (c >= 0x20 && c < 0x7f)
			buf[o++] = (char)c;
		else
			o += (size_t)snprintf(buf + o, len - o, "\\x%02x", c);
	}
	buf[o] = '\0';
	return buf;
}

/* A line under construction; never overflows, see RV_RECORD_MAX. */
struct line {
	char *buf;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) put(struct line *l, const char *fmt, ...)
{
	size_t room = RV_RECORD_MAX - l->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len += (size_t)n < room ? (size_t)n : room - 1;
}

/*
 * A string member. Guest bytes that are not printable ASCII appear as the four
 * characters \xNN even after JSON is undone, so no terminal can be driven by them.
 */
static void put_string(struct line *l, const char *name, const char *s, size_t size)
{
	char clean[1024];

	if (!strnlen(s, size))
		return;
	rv_text_clean(s, size, clean, sizeof(clean));
	put(l, ",\"%s\":\"", name);
	for (const char *c = clean; *c; c++)
		put(l, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	put(l, "\"");
}

static void put_addr(struct line *l, const char *name, uint64_t v)
{
	put(l, ",\"%s\":\"0x%llx\"", name, (unsigned long long)v);
}

/* JSON readers take integers up to 2^63 - 1; what is larger goes as a hex string. */
static void put_number(struct line *l, const char *name, uint64_t v)
{
	if (v > INT64_MAX)
		put_addr(l, name, v);
	else
		put(l, ",\"%s\":%llu", name, (unsigned long long)v);
}

static void put_bytes(struct line *l, const char *name, const uint8_t *bytes, size_t n)
{
	put(l, ",\"%s\":\"", name);
	for (size_t i = 0; i < n; i++)
		put(l, "%02x", bytes[i]);
	put(l, "\"");
}

static void put_time(struct line *l, uint64_t wall_ns)
{
	time_t sec = (time_t)(wall_ns / 1000000000u);
	struct tm tm = {0};

	gmtime_r(&sec, &tm);
	put(l, ",\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%09uZ\"", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (unsigned)(wall_ns % 1000000000u));
}

/* Kinds whose cpl, size and bytes describe an access. */
static bool is_access(uint32_t kind)
{
	return kind == RV_EV_WRITE || kind == RV_EV_PATCH || kind == RV_EV_DEVICE_WRITE ||
	       kind == RV_EV_BAD_DOORBELL || kind >= RV_EV_COUNT;
}

static void put_where(struct line *l, const struct rv_event *ev)
{
	size_t nold = ev->nold <= sizeof(ev->old_bytes) ? ev->nold : sizeof(ev->old_bytes);
	size_t nnew = ev->nnew <= sizeof(ev->new_bytes) ? ev->nnew : sizeof(ev->new_bytes);

	if (ev->vcpu >= 0)
		put(l, ",\"vcpu\":%d", ev->vcpu);
	if (ev->pc) {
		put_addr(l, "pc", ev->pc);
		put_string(l, "pc_symbol", ev->pc_symbol, sizeof(ev->pc_symbol));
		put(l, ",\"pc_exact\":%s", ev->pc_exact ? "true" : "false");
	}
	if (ev->caller) {
		put_addr(l, "caller", ev->caller);
		put_string(l, "caller_symbol", ev->caller_symbol, sizeof(ev->caller_symbol));
	}
	if (ev->target) {
		put_addr(l, "target", ev->target);
		put_string(l, "target_symbol", ev->target_symbol, sizeof(ev->target_symbol));
	}
	/* A zeroed event has gpa 0: only an access may really mean address 0. */
	if (ev->gpa != UINT64_MAX && (ev->gpa || is_access(ev->kind)))
		put_addr(l, "gpa", ev->gpa);
	if (ev->size)
		put(l, ",\"size\":%u", ev->size);
	if (ev->value)
		put_number(l, "value", ev->value);
	if (ev->ref)
		put_number(l, "ref", ev->ref);
	if (nold)
		put_bytes(l, "old", ev->old_bytes, nold);
	if (nnew)
		put_bytes(l, "new", ev->new_bytes, nnew);
	put_string(l, "insn", ev->insn, sizeof(ev->insn));
	if (is_access(ev->kind) && ev->pc)
		put(l, ",\"cpl\":%u", ev->cpl);
	put_string(l, "comm", ev->comm, sizeof(ev->comm));
	put_string(l, "detail", ev->detail, sizeof(ev->detail));
}

size_t rv_record_line(struct rv_chain *c, const char *vm, const struct rv_event *ev,
		      const struct rv_verdict *verdict, char *buf)
{
	struct line l = {.buf = buf};
	uint32_t action = verdict ? verdict->action : (uint32_t)RV_ACT_RECORD;

	c->seq++;
	put(&l, "{\"v\":%u,\"seq\":%llu", RV_RECORD_VERSION, (unsigned long long)c->seq);
	put_time(&l, ev->wall_ns);
	put_number(&l, "mono_ns", ev->mono_ns);
	put_string(&l, "vm", vm, 64);
	put(&l, ",\"verb\":\"%s\"", rv_event_verb(ev->kind, action));
	put(&l, ",\"kind\":\"%s\"", rv_event_kind_name(ev->kind));
	if (ev->kind >= RV_EV_COUNT)
		put(&l, ",\"kind_number\":%u", ev->kind);
	put(&l, ",\"action\":\"%s\"", rv_action_name(action));
	if (verdict) {
		put_string(&l, "rule", verdict->rule, sizeof(verdict->rule));
		put_string(&l, "reason", verdict->reason, sizeof(verdict->reason));
	}
	put_string(&l, "engine", ev->engine, sizeof(ev->engine));
	put_string(&l, "object", ev->object, sizeof(ev->object));
	put_where(&l, ev);
	put(&l, ",\"prev\":\"%s\"", c->prev);
	rv_hex_sha256(l.buf, l.len, c->prev);
	put(&l, ",\"digest\":\"%s\"}\n", c->prev);
	return l.len;
}

#define PREV	   ",\"prev\":\""
#define DIGEST	   ",\"digest\":\""
#define DIGEST_LEN (sizeof(DIGEST) - 1 + RV_DIGEST_HEX + 2)
#define PREV_LEN   (sizeof(PREV) - 1 + RV_DIGEST_HEX + 1)

static int bad(struct rv_err *err, const char *what)
{
	return rv_err_set(err, RV_EBADDATA, "journal", "%s", what);
}

int rv_chain_check(struct rv_chain *c, const char *line, size_t len, struct rv_err *err)
{
	char head[64], digest[RV_DIGEST_HEX + 1];
	struct rv_record rec;
	size_t body;
	int n, rc;

	if (len >= RV_RECORD_MAX)
		return bad(err, "longer than any line of a journal");
	/* Lines are shown on terminals: nothing but what the writer would have written. */
	for (size_t i = 0; i < len; i++) {
		if (line[i] < 0x20 || line[i] > 0x7e)
			return bad(err, "holds bytes that are not printable ASCII");
	}
	n = snprintf(head, sizeof(head), "{\"v\":%u,", RV_RECORD_VERSION);
	if (len < (size_t)n || memcmp(line, head, (size_t)n))
		return bad(err, "is no journal line of version 1");
	n = snprintf(head, sizeof(head), "{\"v\":%u,\"seq\":%llu,", RV_RECORD_VERSION,
		     (unsigned long long)c->seq + 1);
	if (len < (size_t)n || memcmp(line, head, (size_t)n))
		return rv_err_set(
			err, RV_EBADDATA, "journal",
			"the sequence number is not %llu: lines are missing or out of order",
			(unsigned long long)c->seq + 1);
	if (len < (size_t)n + PREV_LEN + DIGEST_LEN || memcmp(line + len - 2, "\"}", 2) ||
	    memcmp(line + len - DIGEST_LEN, DIGEST, sizeof(DIGEST) - 1))
		return bad(err, "does not end with its digest");
	body = len - DIGEST_LEN;
	if (memcmp(line + body - PREV_LEN, PREV, sizeof(PREV) - 1) || line[body - 1] != '"')
		return bad(err, "has no digest of the line before");
	if (memcmp(line + body - 1 - RV_DIGEST_HEX, c->prev, RV_DIGEST_HEX))
		return bad(err, "does not follow the line before: the chain is broken");
	rv_hex_sha256(line, body, digest);
	if (memcmp(line + len - 2 - RV_DIGEST_HEX, digest, RV_DIGEST_HEX))
		return bad(err, "was changed: its digest does not match");
	rc = rv_record_parse(line, len, &rec, err);
	if (rc)
		return rc;
	c->seq++;
	memcpy(c->prev, digest, sizeof(digest));
	return 0;
}
