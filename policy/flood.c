/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flood.c: coalescing. The first `limit` events of one kind, object and
 * instruction are written in each second; then they are counted. A second bound per
 * kind holds against a guest that varies the instruction. What ends the machine or
 * stops it, and what the monitor says about itself, is never held back.
 */
#include "flood.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_SECOND 1000000000u
/* Sites that may each use their whole limit before the kind is bounded. */
#define KIND_FACTOR 16u

void rv_flood_init(struct rv_flood *f, uint32_t limit)
{
	memset(f, 0, sizeof(*f));
	f->limit = limit ? limit : 1;
}

static bool is_guest_made(uint32_t kind)
{
	switch (kind) {
	case RV_EV_NONE:
	case RV_EV_START:
	case RV_EV_STOP:
	case RV_EV_ARM:
	case RV_EV_DISARM:
	case RV_EV_DEGRADE:
	case RV_EV_LOST:
	case RV_EV_COALESCED: return false;
	}
	return true;
}

static bool is_same(const struct rv_flood_slot *s, const struct rv_event *ev)
{
	return s->second && s->kind == ev->kind && s->pc == ev->pc &&
	       !strncmp(s->object, ev->object, sizeof(s->object));
}

/* The slot of ev, or a free or finished one for it, or NULL when all are in use. */
static struct rv_flood_slot *slot_for(struct rv_flood *f, const struct rv_event *ev,
				      uint64_t second)
{
	struct rv_flood_slot *spare = NULL;

	for (uint32_t i = 0; i < RV_FLOOD_SLOTS; i++) {
		struct rv_flood_slot *s = &f->slots[i];

		if (is_same(s, ev))
			return s;
		/* A slot that still holds a count is not given away: counts are never lost. */
		if (!s->second || (s->second != second && !s->counted))
			spare = s;
	}
	if (spare)
		memset(spare, 0, sizeof(*spare));
	return spare;
}

static bool admit(struct rv_flood_slot *s, const struct rv_event *ev, uint64_t second,
		  uint64_t limit)
{
	/* While a count of an earlier second waits to be taken, the new second counts on. */
	if (s->second != second && !s->counted) {
		s->second = second;
		s->written = 0;
	}
	s->kind = ev->kind;
	if (s->written >= limit) {
		s->counted++;
		return false;
	}
	s->written++;
	return true;
}

bool rv_flood_pass(struct rv_flood *f, const struct rv_event *ev, const struct rv_verdict *verdict,
		   uint64_t now_ns, struct rv_flood_slot **slot_out)
{
	/* Second 0 means free; a machine that was up for less than a second is in 1. */
	uint64_t second = now_ns / NS_PER_SECOND + 1;
	struct rv_flood_slot *kind, *site;

	*slot_out = NULL;
	if (!is_guest_made(ev->kind))
		return true;
	if (verdict && verdict->action >= RV_ACT_PAUSE)
		return true;
	kind = &f->kinds[ev->kind < RV_EV_COUNT ? ev->kind : RV_EV_COUNT];
	site = ev->kind == RV_EV_PLACEMENT ? NULL : slot_for(f, ev, second);
	if (site) {
		if (!site->second) {
			site->pc = ev->pc;
			memcpy(site->object, ev->object, sizeof(site->object));
			memcpy(site->engine, ev->engine, sizeof(site->engine));
		}
		*slot_out = site;
		if (!admit(site, ev, second, f->limit))
			return false;
	}
	if (!admit(kind, ev, second, (uint64_t)f->limit * KIND_FACTOR))
		return false;
	if (!site)
		*slot_out = kind;
	return true;
}

static bool take_slot(struct rv_flood_slot *s, uint64_t second, bool force, struct rv_event *out)
{
	if (!s->counted || (!force && s->second == second))
		return false;
	memset(out, 0, sizeof(*out));
	out->version = RV_EVENT_VERSION;
	out->kind = RV_EV_COALESCED;
	out->vcpu = -1;
	out->gpa = UINT64_MAX;
	out->pc = s->pc;
	out->value = s->counted;
	out->ref = s->last_seq;
	memcpy(out->object, s->object, sizeof(out->object));
	memcpy(out->engine, s->engine, sizeof(out->engine));
	snprintf(out->detail, sizeof(out->detail), "%s", rv_event_kind_name(s->kind));
	s->counted = 0;
	return true;
}

bool rv_flood_take(struct rv_flood *f, uint64_t now_ns, bool force, struct rv_event *out)
{
	uint64_t second = now_ns / NS_PER_SECOND + 1;

	for (uint32_t i = 0; i < RV_FLOOD_SLOTS; i++) {
		if (take_slot(&f->slots[i], second, force, out))
			return true;
	}
	for (uint32_t i = 0; i <= RV_EV_COUNT; i++) {
		if (take_slot(&f->kinds[i], second, force, out))
			return true;
	}
	return false;
}

bool rv_flood_waits(const struct rv_flood *f)
{
	for (uint32_t i = 0; i < RV_FLOOD_SLOTS; i++) {
		if (f->slots[i].counted)
			return true;
	}
	for (uint32_t i = 0; i <= RV_EV_COUNT; i++) {
		if (f->kinds[i].counted)
			return true;
	}
	return false;
}
