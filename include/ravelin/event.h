/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h: what happened in a guest (an event) and what is done about it (a
 * verdict). They are different types: an event never carries a decision.
 *
 * Plain data, fixed width, no pointers: it crosses threads and processes.
 * Bump RV_EVENT_VERSION when a member changes meaning, moves, or goes.
 */
#ifndef RAVELIN_EVENT_H
#define RAVELIN_EVENT_H

#include <ravelin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RV_EVENT_VERSION 1u

/* Object of a write into guarded memory whose place could not be found out. */
#define RV_OBJECT_UNKNOWN "sealed memory"

enum rv_event_kind {
	RV_EV_NONE = 0,
	RV_EV_START,	 /* the VM was built; detail: kernel, policy digest, version */
	RV_EV_STOP,	 /* and ended; detail says how */
	RV_EV_PLACEMENT, /* an address was drawn: object, target, bits of entropy in value */
	RV_EV_ARM,	 /* a protection is on: object, target, size */
	RV_EV_DISARM,
	RV_EV_DEGRADE,	    /* a protection that was asked for is not there; detail says why */
	RV_EV_WRITE,	    /* a write into sealed memory */
	RV_EV_PATCH,	    /* a legitimate text patch (journaled when policy asks) */
	RV_EV_DEVICE_WRITE, /* a device of ours was told to write into sealed memory */
	RV_EV_BAD_DOORBELL, /* a doorbell rung from outside the gate */
	RV_EV_STALL,	    /* a vcpu makes no progress */
	RV_EV_GUEST_BAD,    /* a guest structure contradicts itself */
	RV_EV_LOST,	    /* events were dropped; value is how many */
	RV_EV_COALESCED,    /* value more events like the one in ref */
	RV_EV_INTERNAL,	    /* an engine failed by itself */
	RV_EV_LIFECYCLE,    /* reboot, power-off, panic */
	RV_EV_COUNT
};
const char *rv_event_kind_name(uint32_t kind); /* "write", ...; never NULL */

enum rv_action {
	RV_ACT_RECORD = 0, /* write it down, let it happen */
	RV_ACT_DENY,	   /* the write does not land, the guest goes on after it */
	RV_ACT_FAULT,	   /* the guest gets an exception at that instruction */
	RV_ACT_PAUSE,	   /* all vcpus stop until a session resumes them */
	RV_ACT_KILL,	   /* the VM ends */
	RV_ACT_COUNT
};
const char *rv_action_name(uint32_t action);

struct rv_event {
	uint32_t version; /* RV_EVENT_VERSION */
	uint32_t kind;	  /* enum rv_event_kind */
	uint64_t mono_ns; /* CLOCK_MONOTONIC */
	uint64_t wall_ns; /* CLOCK_REALTIME */
	int32_t vcpu;	  /* -1: none */
	uint32_t size;	  /* of the access or object, bytes */
	uint64_t pc;	  /* guest virtual; 0: none */
	uint64_t caller;  /* return address of the function at pc; 0: not known */
	uint64_t target;  /* guest virtual; 0: none */
	uint64_t gpa;	  /* guest physical of target; ~0: none */
	uint64_t value;	  /* per kind */
	uint64_t ref;	  /* sequence number of another event; 0: none */
	uint8_t old_bytes[64], new_bytes[64];
	uint8_t nold, nnew; /* how many of them are known; 0: none */
	uint8_t pc_exact;   /* 0: pc is past the instruction */
	uint8_t cpl;	    /* privilege level of the writer; 0 = kernel */
	uint8_t pad[4];
	char engine[16];    /* "seal", "placement", "watchdog", "dma", ... */
	char object[32];    /* "text", "rodata", "kernel base", "gate", ... */
	char insn[96];	    /* the instruction, as text */
	char pc_symbol[96]; /* symbol+0xoff */
	char caller_symbol[96];
	char target_symbol[96];
	char comm[24]; /* guest task, where known */
	char detail[200];
};

struct rv_verdict {
	uint32_t action; /* enum rv_action */
	char rule[48];	 /* policy key that decided: "seal.text.act" */
	char reason[96];
};

#ifdef __cplusplus
}
#endif
#endif
