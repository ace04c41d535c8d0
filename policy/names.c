/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: the words for event kinds, actions, verbs and profiles. The words are a stable
 * interface. */
#include <ravelin/event.h>
#include <ravelin/policy.h>

#include "record.h"

#include <string.h>

static const char *const kinds[RV_EV_COUNT] = {
	[RV_EV_NONE] = "none",
	[RV_EV_START] = "start",
	[RV_EV_STOP] = "stop",
	[RV_EV_PLACEMENT] = "placement",
	[RV_EV_ARM] = "arm",
	[RV_EV_DISARM] = "disarm",
	[RV_EV_DEGRADE] = "degrade",
	[RV_EV_WRITE] = "write",
	[RV_EV_PATCH] = "patch",
	[RV_EV_DEVICE_WRITE] = "device-write",
	[RV_EV_BAD_DOORBELL] = "bad-doorbell",
	[RV_EV_STALL] = "stall",
	[RV_EV_GUEST_BAD] = "guest-bad",
	[RV_EV_LOST] = "lost",
	[RV_EV_COALESCED] = "coalesced",
	[RV_EV_INTERNAL] = "internal",
	[RV_EV_LIFECYCLE] = "lifecycle",
};

static const char *const actions[RV_ACT_COUNT] = {
	[RV_ACT_RECORD] = "record", [RV_ACT_DENY] = "deny", [RV_ACT_FAULT] = "fault",
	[RV_ACT_PAUSE] = "pause",   [RV_ACT_KILL] = "kill",
};

const char *rv_event_kind_name(uint32_t kind)
{
	return kind < RV_EV_COUNT ? kinds[kind] : "unknown";
}

const char *rv_action_name(uint32_t action)
{
	return action < RV_ACT_COUNT ? actions[action] : "unknown";
}

const char *rv_profile_name(uint32_t profile)
{
	switch (profile) {
	case RV_PROFILE_OBSERVE: return "observe";
	case RV_PROFILE_BALANCED: return "balanced";
	case RV_PROFILE_STRICT: return "strict";
	}
	return "custom";
}

bool rv_event_kind_find(const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < RV_EV_COUNT; i++) {
		if (!strcmp(kinds[i], name)) {
			*out = i;
			return true;
		}
	}
	return false;
}

bool rv_action_find(const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < RV_ACT_COUNT; i++) {
		if (!strcmp(actions[i], name)) {
			*out = i;
			return true;
		}
	}
	return false;
}

const char *rv_event_verb(uint32_t kind, uint32_t action)
{
	switch (kind) {
	case RV_EV_START: return "START";
	case RV_EV_STOP: return "STOP";
	case RV_EV_PLACEMENT: return "PLACE";
	case RV_EV_ARM: return "ARM";
	case RV_EV_DISARM: return "DISARM";
	case RV_EV_DEGRADE: return "DEGRADE";
	case RV_EV_PATCH: return "ALLOW";
	case RV_EV_LOST: return "LOST";
	case RV_EV_COALESCED: return "REPEAT";
	case RV_EV_INTERNAL: return "FAIL";
	case RV_EV_LIFECYCLE: return "GUEST";
	case RV_EV_WRITE:
	case RV_EV_DEVICE_WRITE:
	case RV_EV_BAD_DOORBELL: return action == RV_ACT_RECORD ? "DETECT" : "BLOCK";
	}
	return "DETECT";
}
