/* SPDX-License-Identifier: Apache-2.0 */
/* format.c: an event as one line for people. Printable ASCII only, whatever the guest put in. */
#include "record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *buf;
	size_t size, len;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len + 1 >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	if (n > 0) {
		t->len += (size_t)n;
		if (t->len >= t->size)
			t->len = t->size - 1;
	}
}

static void add_clean(struct text *t, const char *before, const char *field, size_t size,
		      const char *after)
{
	char clean[1024];

	if (strnlen(field, size))
		add(t, "%s%s%s", before, rv_text_clean(field, size, clean, sizeof(clean)), after);
}

#define ADD(t, before, field, after) add_clean(t, before, field, sizeof(field), after)

static void add_place(struct text *t, const char *before, uint64_t addr, const char *symbol,
		      size_t size)
{
	if (!addr)
		return;
	if (strnlen(symbol, size)) {
		add_clean(t, before, symbol, size, "");
		add(t, " (0x%llx)", (unsigned long long)addr);
	} else {
		add(t, "%s0x%llx", before, (unsigned long long)addr);
	}
}

static void add_access(struct text *t, const struct rv_event *ev)
{
	if (ev->size)
		add(t, " of %u bytes", ev->size);
	if (ev->pc && strnlen(ev->pc_symbol, sizeof(ev->pc_symbol)))
		ADD(t, " by ", ev->pc_symbol, "");
	else if (ev->pc)
		add(t, " by 0x%llx", (unsigned long long)ev->pc);
	if (ev->pc && ev->cpl)
		add(t, " (user mode)");
	ADD(t, " [", ev->insn, "]");
	ADD(t, " from ", ev->caller_symbol, "");
	ADD(t, " in task ", ev->comm, "");
	ADD(t, " to ", ev->object, "");
	add_place(t, strnlen(ev->object, sizeof(ev->object)) ? " " : " to ", ev->target,
		  ev->target_symbol, sizeof(ev->target_symbol));
	if (!ev->target && ev->gpa != UINT64_MAX)
		add(t, " at guest physical 0x%llx", (unsigned long long)ev->gpa);
}

static void add_other(struct text *t, const struct rv_event *ev)
{
	ADD(t, " ", ev->object, "");
	add_place(t, " at ", ev->target, ev->target_symbol, sizeof(ev->target_symbol));
	if (ev->size)
		add(t, ", %u bytes", ev->size);
	if (ev->vcpu >= 0)
		add(t, ", vcpu %d", ev->vcpu);
	if (ev->pc) {
		add(t, ", pc 0x%llx", (unsigned long long)ev->pc);
		ADD(t, " ", ev->pc_symbol, "");
	}
}

/* Kinds whose verb is the same word, or says as much. */
static bool says_kind(uint32_t kind)
{
	switch (kind) {
	case RV_EV_START:
	case RV_EV_STOP:
	case RV_EV_PLACEMENT:
	case RV_EV_ARM:
	case RV_EV_DISARM:
	case RV_EV_DEGRADE:
	case RV_EV_LOST:
	case RV_EV_COALESCED: return true;
	}
	return false;
}

/* Kinds that a policy key answers; for the others "record" goes without saying. */
static bool is_judged(uint32_t kind)
{
	return kind == RV_EV_WRITE || kind == RV_EV_DEVICE_WRITE || kind == RV_EV_BAD_DOORBELL ||
	       kind == RV_EV_STALL || kind == RV_EV_INTERNAL;
}

const char *rv_event_format(const struct rv_event *ev, const struct rv_verdict *verdict, char *buf,
			    size_t len)
{
	struct text t = {.buf = buf, .size = len};
	uint32_t action = verdict ? verdict->action : (uint32_t)RV_ACT_RECORD;

	if (!len)
		return buf;
	buf[0] = '\0';
	add(&t, "%s", rv_event_verb(ev->kind, action));
	if (!says_kind(ev->kind))
		add(&t, " %s", rv_event_kind_name(ev->kind));
	switch (ev->kind) {
	case RV_EV_WRITE:
	case RV_EV_PATCH:
	case RV_EV_DEVICE_WRITE:
	case RV_EV_BAD_DOORBELL: add_access(&t, ev); break;
	case RV_EV_LOST:
		add(&t, " %llu events, the queue was full", (unsigned long long)ev->value);
		break;
	case RV_EV_COALESCED:
		add(&t, " %llu more like event %llu", (unsigned long long)ev->value,
		    (unsigned long long)ev->ref);
		break;
	case RV_EV_PLACEMENT:
		add_other(&t, ev);
		add(&t, ", %llu bits", (unsigned long long)ev->value);
		break;
	default: add_other(&t, ev); break;
	}
	ADD(&t, ": ", ev->detail, "");
	if (action != RV_ACT_RECORD || is_judged(ev->kind)) {
		add(&t, ": %s", rv_action_name(action));
		if (verdict)
			ADD(&t, " (", verdict->rule, ")");
	}
	return buf;
}
