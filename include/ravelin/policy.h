/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h: one YAML file per VM, read once, checked whole, then constant.
 *
 * rv_policy_decide() is a pure function: no I/O, no clock, no allocation, so
 * that an old journal can be judged again by another policy.
 */
#ifndef RAVELIN_POLICY_H
#define RAVELIN_POLICY_H

#include <ravelin/error.h>
#include <ravelin/event.h>
#include <ravelin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rv_profile {
	RV_PROFILE_CUSTOM = 0, /* a key was changed by hand */
	RV_PROFILE_OBSERVE,    /* everything is watched, nothing is stopped */
	RV_PROFILE_BALANCED,
	RV_PROFILE_STRICT,
};

enum rv_placement_mode {
	RV_PLACE_OFF = 0, /* the kernel stays at its link address */
	RV_PLACE_RANDOM,  /* drawn by the monitor; refuse the start where impossible */
	RV_PLACE_IF_ABLE, /* drawn where the image allows it, else degrade with an event */
};

struct rv_policy {
	uint32_t profile;  /* enum rv_profile */
	uint32_t based_on; /* the profile that the keys started from, also when custom */
	char name[64];	   /* of the VM; "" when the file does not say */
	/* placement */
	uint32_t placement_base; /* enum rv_placement_mode */
	/* seal: is the object watched, and what is done on a write */
	bool seal_text, seal_rodata, seal_gate;
	uint32_t seal_text_act, seal_rodata_act, seal_gate_act; /* enum rv_action */
	bool seal_require;	   /* refuse the start when the seal cannot be armed */
	uint32_t seal_deadline; /* seconds in which the guest must have come to it; 0: none */
	uint32_t device_write_act; /* a device of ours aims at sealed memory: DENY, PAUSE, KILL */
	/* watchdog */
	uint32_t watchdog_seconds; /* 0: off */
	uint32_t watchdog_act;	   /* RECORD, PAUSE, KILL */
	/* journal */
	bool journal_patches;	   /* an event for each legitimate patch */
	uint32_t journal_queue;	   /* events, 16..65536 */
	uint32_t journal_coalesce; /* verbatim events per kind and second before counting */
	uint32_t internal_act;	   /* an engine failed by itself: RECORD, PAUSE, KILL */
	uint8_t digest[32]; /* SHA-256 of the file's bytes; of the profile's name when built in */
};

/* Built-in profile by name ("observe", "balanced", "strict"). RV_EINVAL otherwise. */
int rv_policy_profile(const char *name, struct rv_policy *out, struct rv_err *err) RV_MUST_CHECK;

/* Called once for each problem of a file, in order: "file:line:column: expected ...". */
typedef void rv_policy_report(void *arg, const char *line);

/*
 * Read a file. Must be a regular file, owned by root or the caller's user, not
 * writable by group or others. All problems are reported through report (may be
 * NULL) before RV_EINVAL; err holds the first.
 */
int rv_policy_load(const char *path, struct rv_policy *out, rv_policy_report *report, void *arg,
		   struct rv_err *err) RV_MUST_CHECK;

/* The same from memory; name stands for the file name in messages. */
int rv_policy_parse(const char *name, const char *text, size_t len, struct rv_policy *out,
		    rv_policy_report *report, void *arg, struct rv_err *err) RV_MUST_CHECK;

/* What to do about ev. Total: an unknown kind is answered by internal_act. */
void rv_policy_decide(const struct rv_policy *p, const struct rv_event *ev, struct rv_verdict *out);

/* Name of a profile, never NULL. */
const char *rv_profile_name(uint32_t profile);

#ifdef __cplusplus
}
#endif
#endif
