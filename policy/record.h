/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h: one journal line: event -> text, text -> event, and the chain of
 * digests. Internal to policy/; vmm/cmd_events.c and vmm/cmd_policy.c read with it.
 */
#ifndef RAVELIN_POLICY_RECORD_H
#define RAVELIN_POLICY_RECORD_H

#include <ravelin/error.h>
#include <ravelin/event.h>
#include <ravelin/journal.h>

#include <stdio.h>

/*
 * Version of the line's members and verbs. Raise it when a member changes its
 * meaning or goes; a new member alone does not need it.
 */
#define RV_RECORD_VERSION 1u

#define RV_DIGEST_HEX 64u
/* Longest line: 864 bytes of strings, each byte at worst five in JSON, plus the rest. */
#define RV_RECORD_MAX 8192u

/* Where a chain stands: after how many lines, and the digest of the last. */
struct rv_chain {
	uint64_t seq;
	char prev[RV_DIGEST_HEX + 1];
};

/* A line that was read back. */
struct rv_record {
	uint64_t seq;
	char vm[64];
	struct rv_event ev;
	struct rv_verdict verdict;
};

void rv_chain_init(struct rv_chain *c);

/*
 * Write the line for ev as number c->seq + 1 to buf (RV_RECORD_MAX bytes, with
 * newline and terminator), advance c, return its length.
 */
size_t rv_record_line(struct rv_chain *c, const char *vm, const struct rv_event *ev,
		      const struct rv_verdict *verdict, char *buf);

/*
 * Is line (len bytes, its newline left off) the next one after c? Advances c, or
 * returns RV_EBADDATA with the reason.
 */
int rv_chain_check(struct rv_chain *c, const char *line, size_t len,
		   struct rv_err *err) RV_MUST_CHECK;

/* Read a line back. Members that it does not have get their "none" value. */
int rv_record_parse(const char *line, size_t len, struct rv_record *out,
		    struct rv_err *err) RV_MUST_CHECK;

/*
 * Read a journal's lines one by one, checked. Called with the line's text without
 * newline; a result other than 0 ends the walk and is returned.
 */
typedef int rv_journal_line(void *arg, const char *line, size_t len, const struct rv_chain *at);

/* What is wrong at the end of a journal that rv_journal_walk() refused. */
struct rv_journal_end {
	uint64_t good_bytes; /* end of the last good line */
	uint64_t total_bytes;
	bool torn; /* only the last line is bad, and it has no newline */
	struct rv_chain chain;
};

int rv_journal_walk(int fd, const char *path, struct rv_journal_end *end, rv_journal_line *fn,
		    void *arg, struct rv_err *err) RV_MUST_CHECK;

/* Move a torn last line to PATH.torn (appended). RV_EINVAL when there is none. */
int rv_journal_repair(const char *path, uint64_t *moved_out, struct rv_err *err) RV_MUST_CHECK;

/* SHA-256 in lower-case hex; out has RV_DIGEST_HEX + 1 bytes. */
void rv_hex_sha256(const void *data, size_t len, char *out);

/* Copy src (at most size bytes, maybe unterminated) as printable ASCII; other bytes as \xNN. */
const char *rv_text_clean(const char *src, size_t size, char *buf, size_t len);

/* Names back to numbers. */
bool rv_event_kind_find(const char *name, uint32_t *out);
bool rv_action_find(const char *name, uint32_t *out);

/* DETECT, BLOCK, ALLOW, ARM, ...: the first word of a line, by kind and action. */
const char *rv_event_verb(uint32_t kind, uint32_t action);

#endif
