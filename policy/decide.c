/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.c: (policy, event) -> verdict. Pure and total: no I/O, no clock, no
 * allocation, an answer for every event, so that old journals can be judged again.
 */
#include <ravelin/policy.h>

#include <stdio.h>
#include <string.h>

static void answer(struct rv_verdict *out, uint32_t action, const char *rule, const char *reason)
{
	/* A policy that was not made by the parser may hold anything: fail closed. */
	out->action = action < RV_ACT_COUNT ? action : RV_ACT_KILL;
	snprintf(out->rule, sizeof(out->rule), "%s", rule);
	snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

/* Guest-free strings, but fixed arrays all the same: they need not be terminated. */
static bool has(const char *field, size_t size, const char *word)
{
	return memmem(field, strnlen(field, size), word, strlen(word)) != NULL;
}

enum place { PLACE_TEXT, PLACE_RODATA, PLACE_GATE };

/* Sealed objects by name; what is not data and not the gate counts as code. */
static enum place place_of(const struct rv_event *ev)
{
	if (has(ev->object, sizeof(ev->object), "gate"))
		return PLACE_GATE;
	if (has(ev->object, sizeof(ev->object), "rodata") ||
	    has(ev->object, sizeof(ev->object), "ro_after_init"))
		return PLACE_RODATA;
	return PLACE_TEXT;
}

static void decide_write(const struct rv_policy *p, const struct rv_event *ev,
			 struct rv_verdict *out)
{
	static const char *const watch[] = {"seal.text.watch", "seal.rodata.watch",
					    "seal.gate.watch"};
	static const char *const act[] = {"seal.text.act", "seal.rodata.act", "seal.gate.act"};
	static const char *const why[] = {"write into kernel code that is no known patch",
					  "write into read-only kernel data",
					  "write into the monitor's pages"};
	const bool on[] = {p->seal_text, p->seal_rodata, p->seal_gate};
	const uint32_t action[] = {p->seal_text_act, p->seal_rodata_act, p->seal_gate_act};
	enum place at = place_of(ev);

	/* A write whose place is not known may have been meant for any of the three: the
	 * hardest answer that is asked for holds, or a seal could be passed by hiding. */
	if (has(ev->object, sizeof(ev->object), RV_OBJECT_UNKNOWN))
		for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++)
			if (on[i] && (!on[at] || action[i] > action[at]))
				at = (enum place)i;
	if (on[at])
		answer(out, action[at], act[at], why[at]);
	else
		answer(out, RV_ACT_RECORD, watch[at], "not watched by this policy");
}

static void decide_doorbell(const struct rv_policy *p, struct rv_verdict *out)
{
	if (p->seal_gate)
		answer(out, p->seal_gate_act, "seal.gate.act",
		       "doorbell rung from outside the gate");
	else
		answer(out, RV_ACT_RECORD, "seal.gate.watch", "not watched by this policy");
}

static void decide_degrade(const struct rv_policy *p, const struct rv_event *ev,
			   struct rv_verdict *out)
{
	if (has(ev->engine, sizeof(ev->engine), "placement")) {
		if (p->placement_base == RV_PLACE_RANDOM)
			answer(out, RV_ACT_KILL, "placement.base", "a random base is required");
		else
			answer(out, RV_ACT_RECORD, "placement.base", "a random base is optional");
		return;
	}
	if (has(ev->engine, sizeof(ev->engine), "seal")) {
		const bool on[] = {p->seal_text, p->seal_rodata, p->seal_gate};

		if (p->seal_require && on[place_of(ev)])
			answer(out, RV_ACT_KILL, "seal.require", "a required seal is not armed");
		else
			answer(out, RV_ACT_RECORD, "seal.require", "this seal is optional");
		return;
	}
	answer(out, RV_ACT_RECORD, "builtin", "optional protection");
}

void rv_policy_decide(const struct rv_policy *p, const struct rv_event *ev, struct rv_verdict *out)
{
	memset(out, 0, sizeof(*out));
	switch (ev->kind) {
	case RV_EV_WRITE: decide_write(p, ev, out); return;
	case RV_EV_BAD_DOORBELL: decide_doorbell(p, out); return;
	case RV_EV_DEGRADE: decide_degrade(p, ev, out); return;
	case RV_EV_DEVICE_WRITE:
		answer(out, p->device_write_act, "device-write.act",
		       "device told to write into sealed memory");
		return;
	case RV_EV_STALL:
		answer(out, p->watchdog_seconds ? p->watchdog_act : (uint32_t)RV_ACT_RECORD,
		       p->watchdog_seconds ? "watchdog.act" : "watchdog.seconds",
		       "no progress inside KVM");
		return;
	case RV_EV_INTERNAL:
		answer(out, p->internal_act, "internal.act", "a part of the monitor failed");
		return;
	case RV_EV_PATCH: answer(out, RV_ACT_RECORD, "builtin", "legitimate patch"); return;
	case RV_EV_GUEST_BAD: answer(out, RV_ACT_RECORD, "builtin", "evidence"); return;
	case RV_EV_START:
	case RV_EV_STOP:
	case RV_EV_PLACEMENT:
	case RV_EV_ARM:
	case RV_EV_DISARM:
	case RV_EV_LOST:
	case RV_EV_COALESCED:
	case RV_EV_LIFECYCLE: answer(out, RV_ACT_RECORD, "builtin", "for the record"); return;
	}
	answer(out, p->internal_act, "internal.act", "unknown kind of event");
}
