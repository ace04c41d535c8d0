/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h: append-only JSON Lines with sequence numbers and a chained digest.
 *
 * rv_journal_post() may be called from any thread and never blocks: the queue is
 * bounded, what does not fit is counted, and the count is itself an event. One
 * writer thread owns the file. Each line holds "seq", "prev" (digest of the line
 * before) and "digest" (SHA-256 over prev and the rest of the line), so a removed,
 * changed or reordered line is seen by rv_journal_verify().
 */
#ifndef RAVELIN_JOURNAL_H
#define RAVELIN_JOURNAL_H

#include <ravelin/error.h>
#include <ravelin/event.h>
#include <ravelin/policy.h>
#include <ravelin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rv_journal;

/*
 * Start a journal for VM vm_name. path NULL: events are only counted. An existing
 * file is continued (its chain is verified first; a broken one is RV_EBADDATA and
 * is left as it is). queue = most events waiting.
 */
int rv_journal_open(const char *path, const char *vm_name, uint32_t queue, uint32_t coalesce,
		    struct rv_journal **out, struct rv_err *err) RV_MUST_CHECK;

/*
 * Queue an event with its verdict (NULL: a mere record). Times of the event are
 * filled in when zero. Returns the sequence number it will have, 0 when dropped or
 * coalesced.
 */
uint64_t rv_journal_post(struct rv_journal *j, const struct rv_event *ev,
			 const struct rv_verdict *verdict);

/* Also hand every line that is written to fn, from the writer thread. */
void rv_journal_tap(struct rv_journal *j, void (*fn)(void *arg, const char *line), void *arg);

/* Events of this kind since open, dropped ones included. */
uint64_t rv_journal_count(struct rv_journal *j, uint32_t kind);

/* Events that did not fit into the queue since open. */
uint64_t rv_journal_lost(struct rv_journal *j);

/* Write everything that waits, then fsync. */
int rv_journal_flush(struct rv_journal *j, struct rv_err *err) RV_MUST_CHECK;

void rv_journal_close(struct rv_journal *j);

/* Check a file: every line parses, sequence without gap, chain unbroken. On
 * failure err names the line; *lines_out = good lines before it. */
int rv_journal_verify(const char *path, uint64_t *lines_out, struct rv_err *err) RV_MUST_CHECK;

/*
 * One line for people, without newline: "BLOCK write of 8 bytes by f+0x1c [mov ..] to
 * text vfs_read+0x0 (0x..): fault (seal.text.act)". Printable ASCII, always
 * terminated; verdict may be NULL. 512 bytes show almost every event whole. Returns buf.
 */
const char *rv_event_format(const struct rv_event *ev, const struct rv_verdict *verdict, char *buf,
			    size_t len);

#ifdef __cplusplus
}
#endif
#endif
