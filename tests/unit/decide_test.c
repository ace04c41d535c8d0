/* SPDX-License-Identifier: Apache-2.0 */
/* decide_test.c: (policy, event) -> verdict, as one table; and the answer for everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ravelin/policy.h>

struct row {
	uint32_t kind;
	const char *engine, *object;
	/* action in observe, balanced, strict */
	uint32_t observe, balanced, strict;
	const char *rule; /* the same in all three */
};

#define REC RV_ACT_RECORD

static const struct row rows[] = {
	{RV_EV_WRITE, "seal", "text", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.text.act"},
	{RV_EV_WRITE, "seal", "module text", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.text.act"},
	{RV_EV_WRITE, "seal", "page tables", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.text.act"},
	{RV_EV_WRITE, "seal", "", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.text.act"},
	{RV_EV_WRITE, "seal", "rodata", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.rodata.act"},
	{RV_EV_WRITE, "seal", "ro_after_init", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.rodata.act"},
	{RV_EV_WRITE, "seal", "gate", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.gate.act"},
	{RV_EV_BAD_DOORBELL, "gate", "gate", REC, RV_ACT_FAULT, RV_ACT_FAULT, "seal.gate.act"},
	{RV_EV_DEVICE_WRITE, "dma", "text", RV_ACT_DENY, RV_ACT_DENY, RV_ACT_KILL,
	 "device-write.act"},
	{RV_EV_STALL, "watchdog", "", REC, REC, RV_ACT_PAUSE, "watchdog.act"},
	{RV_EV_INTERNAL, "seal", "", REC, RV_ACT_KILL, RV_ACT_KILL, "internal.act"},
	{RV_EV_DEGRADE, "seal", "text", REC, RV_ACT_KILL, RV_ACT_KILL, "seal.require"},
	{RV_EV_DEGRADE, "placement", "kernel base", REC, REC, RV_ACT_KILL, "placement.base"},
	{RV_EV_DEGRADE, "kstack", "", REC, REC, REC, "builtin"},
	{RV_EV_START, "", "", REC, REC, REC, "builtin"},
	{RV_EV_STOP, "", "", REC, REC, REC, "builtin"},
	{RV_EV_PLACEMENT, "placement", "kernel base", REC, REC, REC, "builtin"},
	{RV_EV_ARM, "seal", "text", REC, REC, REC, "builtin"},
	{RV_EV_DISARM, "seal", "text", REC, REC, REC, "builtin"},
	{RV_EV_PATCH, "seal", "text", REC, REC, REC, "builtin"},
	{RV_EV_GUEST_BAD, "", "", REC, REC, REC, "builtin"},
	{RV_EV_LOST, "journal", "", REC, REC, REC, "builtin"},
	{RV_EV_COALESCED, "seal", "text", REC, REC, REC, "builtin"},
	{RV_EV_LIFECYCLE, "", "", REC, REC, REC, "builtin"},
	/* Unknown kinds are the monitor's own failure to understand. */
	{RV_EV_NONE, "", "", REC, RV_ACT_KILL, RV_ACT_KILL, "internal.act"},
	{RV_EV_COUNT, "", "", REC, RV_ACT_KILL, RV_ACT_KILL, "internal.act"},
	{0xffffffff, "", "", REC, RV_ACT_KILL, RV_ACT_KILL, "internal.act"},
};

static void fill(struct rv_event *ev, uint32_t kind, const char *engine, const char *object)
{
	memset(ev, 0, sizeof(*ev));
	ev->version = RV_EVENT_VERSION;
	ev->kind = kind;
	snprintf(ev->engine, sizeof(ev->engine), "%s", engine);
	snprintf(ev->object, sizeof(ev->object), "%s", object);
}

static void test_table(void **state)
{
	static const char *const names[] = {"observe", "balanced", "strict"};
	struct rv_policy p;
	struct rv_verdict v;
	struct rv_event ev;

	(void)state;
	for (size_t n = 0; n < 3; n++) {
		assert_int_equal(rv_policy_profile(names[n], &p, NULL), 0);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const uint32_t want[] = {rows[i].observe, rows[i].balanced, rows[i].strict};

			fill(&ev, rows[i].kind, rows[i].engine, rows[i].object);
			memset(&v, 0xff, sizeof(v));
			rv_policy_decide(&p, &ev, &v);
			assert_int_equal(v.action, want[n]);
			assert_string_equal(v.rule, rows[i].rule);
			assert_true(v.reason[0] && memchr(v.reason, 0, sizeof(v.reason)));
		}
	}
}

static void decide(const char *yaml, uint32_t kind, const char *object, struct rv_verdict *v)
{
	struct rv_policy p;
	struct rv_event ev;

	assert_int_equal(rv_policy_parse("f", yaml, strlen(yaml), &p, NULL, NULL, NULL), 0);
	fill(&ev, kind, kind == RV_EV_DEGRADE ? "seal" : "", object);
	rv_policy_decide(&p, &ev, v);
}

static void test_single_keys(void **state)
{
	struct rv_verdict v;

	(void)state;
	decide("seal: {text: {act: kill}}", RV_EV_WRITE, "text", &v);
	assert_int_equal(v.action, RV_ACT_KILL);
	decide("seal: {text: {act: kill}}", RV_EV_WRITE, "rodata", &v);
	assert_int_equal(v.action, RV_ACT_FAULT);
	decide("seal: {rodata: {act: deny}}", RV_EV_WRITE, "module rodata", &v);
	assert_int_equal(v.action, RV_ACT_DENY);
	decide("seal: {text: {watch: off, act: kill}}", RV_EV_WRITE, "text", &v);
	assert_int_equal(v.action, RV_ACT_RECORD);
	assert_string_equal(v.rule, "seal.text.watch");
	/* Not known where: the hardest answer of those that are watched. */
	decide("seal: {text: {watch: off}}", RV_EV_WRITE, RV_OBJECT_UNKNOWN, &v);
	assert_int_equal(v.action, RV_ACT_FAULT);
	assert_string_equal(v.rule, "seal.rodata.act");
	decide("seal: {text: {act: record}, gate: {act: kill}}", RV_EV_WRITE, RV_OBJECT_UNKNOWN, &v);
	assert_int_equal(v.action, RV_ACT_KILL);
	assert_string_equal(v.rule, "seal.gate.act");
	decide("seal: {text: {watch: off}, rodata: {watch: off}, gate: {watch: off}}", RV_EV_WRITE,
	       RV_OBJECT_UNKNOWN, &v);
	assert_int_equal(v.action, RV_ACT_RECORD);
	decide("seal: {gate: {watch: off}}", RV_EV_BAD_DOORBELL, "gate", &v);
	assert_int_equal(v.action, RV_ACT_RECORD);
	decide("seal: {rodata: {watch: off}}", RV_EV_DEGRADE, "rodata", &v);
	assert_int_equal(v.action, RV_ACT_RECORD);
	decide("seal: {require: off}", RV_EV_DEGRADE, "text", &v);
	assert_int_equal(v.action, RV_ACT_RECORD);
	decide("watchdog: {seconds: 0, act: kill}", RV_EV_STALL, "", &v);
	assert_int_equal(v.action, RV_ACT_RECORD);
	decide("watchdog: {act: kill}", RV_EV_STALL, "", &v);
	assert_int_equal(v.action, RV_ACT_KILL);
	decide("device-write: {act: pause}", RV_EV_DEVICE_WRITE, "text", &v);
	assert_int_equal(v.action, RV_ACT_PAUSE);
	decide("internal: {act: pause}", 77, "", &v);
	assert_int_equal(v.action, RV_ACT_PAUSE);
}

/* Nothing in an event or a policy makes it read wild or answer out of range. */
static void test_hostile(void **state)
{
	struct rv_policy p;
	struct rv_verdict v;
	struct rv_event ev;

	(void)state;
	memset(&p, 0xee, sizeof(p));
	p.seal_text = p.seal_rodata = p.seal_gate = p.seal_require = p.journal_patches = true;
	memset(&ev, 'x', sizeof(ev));
	for (uint32_t kind = 0; kind < 2 * RV_EV_COUNT; kind++) {
		ev.kind = kind;
		rv_policy_decide(&p, &ev, &v);
		assert_true(v.action == RV_ACT_KILL || v.action == RV_ACT_RECORD);
	}
	ev.kind = RV_EV_WRITE;
	rv_policy_decide(&p, &ev, &v);
	assert_int_equal(v.action, RV_ACT_KILL);
}

static void test_names(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= RV_EV_COUNT; i++)
		assert_true(rv_event_kind_name(i)[0]);
	assert_string_equal(rv_event_kind_name(RV_EV_DEVICE_WRITE), "device-write");
	assert_string_equal(rv_event_kind_name(0xffffffff), "unknown");
	assert_string_equal(rv_action_name(RV_ACT_FAULT), "fault");
	assert_string_equal(rv_action_name(RV_ACT_COUNT), "unknown");
	assert_string_equal(rv_profile_name(RV_PROFILE_CUSTOM), "custom");
	assert_string_equal(rv_profile_name(99), "custom");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_single_keys),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
