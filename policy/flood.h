/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flood.h: which events are written in full and which are only counted. Internal
 * to policy/journal.c; no lock of its own.
 */
#ifndef RAVELIN_POLICY_FLOOD_H
#define RAVELIN_POLICY_FLOOD_H

#include <ravelin/event.h>

/* Twice what one guest was seen to use at once: tens of patching sites and kinds. */
#define RV_FLOOD_SLOTS 128u

struct rv_flood_slot {
	uint64_t second; /* CLOCK_MONOTONIC; 0: free */
	uint64_t pc;
	uint64_t last_seq; /* of the last event written in full */
	uint64_t counted;  /* events held back since */
	uint32_t kind, written;
	char object[32];
	char engine[16];
};

struct rv_flood {
	uint32_t limit;
	struct rv_flood_slot slots[RV_FLOOD_SLOTS];
	struct rv_flood_slot kinds[RV_EV_COUNT + 1];
};

void rv_flood_init(struct rv_flood *f, uint32_t limit);

/*
 * Judge ev at this time. True: write it, and tell *slot_out->last_seq its number
 * (NULL: not subject to counting). False: it has been counted.
 */
bool rv_flood_pass(struct rv_flood *f, const struct rv_event *ev, const struct rv_verdict *verdict,
		   uint64_t now_ns, struct rv_flood_slot **slot_out);

/*
 * Take one count whose second is over (force: or not over) as an event. False:
 * there is none.
 */
bool rv_flood_take(struct rv_flood *f, uint64_t now_ns, bool force, struct rv_event *out);

/* Is any count waiting? */
bool rv_flood_waits(const struct rv_flood *f);

#endif
