/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: queue, writer thread and file of a journal.
 *
 * One lock guards the queue, the counters and the flood table; it is held for
 * copies only, never across I/O, so rv_journal_post() waits for no disk. Numbers are
 * given out under the lock in the order of the queue, so the file has no gaps
 * whatever is dropped. The writer keeps a line that the disk refused and tries it
 * again; meanwhile the queue fills, and what does not fit is counted.
 */
#include "flood.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000ull
/* Room that post leaves free, so that the writer's own events (lost, coalesced) fit. */
#define RESERVE	  4u
#define MIN_QUEUE 16u
#define MAX_QUEUE 65536u

struct entry {
	struct rv_event ev;
	struct rv_verdict verdict;
	bool judged;
};

struct rv_journal {
	pthread_mutex_t lock;
	pthread_cond_t work; /* something to write, or to stop for */
	pthread_cond_t done; /* written_seq or failed moved */
	pthread_t writer;
	struct entry *ring;
	uint32_t size, head, used;
	uint64_t next_seq;    /* of the next event that is queued */
	uint64_t written_seq; /* of the last line that is in the file */
	uint64_t lost;	      /* not told yet */
	uint64_t lost_total, lost_told_ns;
	uint64_t counts[RV_EV_COUNT + 1];
	struct rv_flood flood;
	bool stop;
	int failed; /* errno of the write that is being retried, else 0 */
	void (*tap)(void *arg, const char *line);
	void *tap_arg;

	/* The writer's own; no lock. */
	int fd; /* -1: counted only */
	off_t good;
	struct rv_chain chain;
	char vm[64];
	char path[256];
};

static uint64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

/* With the lock held and room in the ring. */
static uint64_t enqueue(struct rv_journal *j, const struct rv_event *ev,
			const struct rv_verdict *verdict)
{
	struct entry *e = &j->ring[(j->head + j->used) % j->size];

	e->ev = *ev;
	e->judged = verdict != NULL;
	if (verdict)
		e->verdict = *verdict;
	if (!e->ev.mono_ns)
		e->ev.mono_ns = now_ns(CLOCK_MONOTONIC);
	if (!e->ev.wall_ns)
		e->ev.wall_ns = now_ns(CLOCK_REALTIME);
	j->used++;
	return j->next_seq++;
}

uint64_t rv_journal_post(struct rv_journal *j, const struct rv_event *ev,
			 const struct rv_verdict *verdict)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), seq = 0;
	struct rv_flood_slot *slot;

	pthread_mutex_lock(&j->lock);
	j->counts[ev->kind < RV_EV_COUNT ? ev->kind : RV_EV_COUNT]++;
	if (rv_flood_pass(&j->flood, ev, verdict, now, &slot)) {
		if (j->used + RESERVE < j->size) {
			seq = enqueue(j, ev, verdict);
			if (slot)
				slot->last_seq = seq;
		} else {
			j->lost++;
			j->lost_total++;
		}
	}
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
	return seq;
}

/* The writer's own events. With the lock held; leaves one place free. */
static void queue_own(struct rv_journal *j)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct rv_event ev;

	/* Not at each free place: under a steady flood that would be all that fits. */
	if (j->lost && j->used + 1 < j->size &&
	    (j->stop || j->used <= j->size / 2 || now - j->lost_told_ns >= NS_PER_SECOND)) {
		memset(&ev, 0, sizeof(ev));
		ev.version = RV_EVENT_VERSION;
		ev.kind = RV_EV_LOST;
		ev.vcpu = -1;
		ev.gpa = UINT64_MAX;
		ev.value = j->lost;
		snprintf(ev.engine, sizeof(ev.engine), "journal");
		j->counts[RV_EV_LOST]++;
		j->lost = 0;
		j->lost_told_ns = now;
		enqueue(j, &ev, NULL);
	}
	while (j->used + 1 < j->size && rv_flood_take(&j->flood, now, j->stop, &ev)) {
		j->counts[RV_EV_COALESCED]++;
		enqueue(j, &ev, NULL);
	}
}

static int write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

/* One line into the file; on failure the file is cut back to the last whole line. */
static int store(struct rv_journal *j, const char *line, size_t len)
{
	int failed;

	if (j->fd < 0)
		return 0;
	failed = write_all(j->fd, line, len);
	if (failed) {
		if (ftruncate(j->fd, j->good) < 0)
			return failed;
		return failed;
	}
	j->good += (off_t)len;
	return 0;
}

/* Wait for work, at most until then. With the lock held. */
static void wait_until(struct rv_journal *j, uint64_t at)
{
	struct timespec ts = {.tv_sec = (time_t)(at / NS_PER_SECOND),
			      .tv_nsec = (long)(at % NS_PER_SECOND)};

	pthread_cond_timedwait(&j->work, &j->lock, &ts);
}

/* Wait for that long, whatever comes in, unless told to stop. With the lock held. */
static void rest(struct rv_journal *j, uint64_t ns)
{
	uint64_t at = now_ns(CLOCK_MONOTONIC) + ns;

	while (!j->stop && now_ns(CLOCK_MONOTONIC) < at)
		wait_until(j, at);
}

/*
 * Write one entry, retrying each second while the disk refuses it. False: told to
 * stop meanwhile. Called without the lock.
 */
static bool write_entry(struct rv_journal *j, const struct entry *e)
{
	char line[RV_RECORD_MAX];
	struct rv_chain chain = j->chain;
	size_t len = rv_record_line(&chain, j->vm, &e->ev, e->judged ? &e->verdict : NULL, line);
	void (*tap)(void *arg, const char *line);
	void *tap_arg;
	bool stop;
	int failed;

	for (;;) {
		failed = store(j, line, len);
		pthread_mutex_lock(&j->lock);
		j->failed = failed;
		stop = failed && j->stop;
		if (failed) {
			pthread_cond_broadcast(&j->done);
			rest(j, NS_PER_SECOND);
		} else {
			j->written_seq = chain.seq;
			pthread_cond_broadcast(&j->done);
		}
		tap = j->tap;
		tap_arg = j->tap_arg;
		pthread_mutex_unlock(&j->lock);
		if (!failed)
			break;
		if (stop)
			return false;
	}
	j->chain = chain;
	if (tap)
		tap(tap_arg, line);
	return true;
}

static void *writer(void *arg)
{
	struct rv_journal *j = arg;
	struct entry e;

	pthread_mutex_lock(&j->lock);
	for (;;) {
		queue_own(j);
		if (!j->used && j->stop)
			break;
		if (!j->used) {
			/* Start at the ring's first places again: untouched ones cost no memory. */
			j->head = 0;
			if (rv_flood_waits(&j->flood))
				wait_until(j, now_ns(CLOCK_MONOTONIC) + NS_PER_SECOND / 4);
			else
				pthread_cond_wait(&j->work, &j->lock);
			continue;
		}
		e = j->ring[j->head];
		j->head = (j->head + 1) % j->size;
		j->used--;
		pthread_mutex_unlock(&j->lock);
		if (!write_entry(j, &e))
			return NULL;
		pthread_mutex_lock(&j->lock);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* Open or continue the file. Its chain is verified first; a bad one is not touched. */
static int open_file(struct rv_journal *j, const char *path, struct rv_err *err)
{
	struct rv_journal_end end;
	struct stat st;
	int rc;

	j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (j->fd < 0)
		return rv_err_os(err, "journal", "%s: open", path);
	if (fstat(j->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return rv_err_set(err, RV_EINVAL, "journal", "%s: expected a regular file", path);
	if (flock(j->fd, LOCK_EX | LOCK_NB) < 0)
		return rv_err_set(err, RV_EBUSY, "journal", "%s: another monitor is writing it",
				  path);
	rc = rv_journal_walk(j->fd, path, &end, NULL, NULL, err);
	if (rc)
		return rc;
	j->chain = end.chain;
	j->good = (off_t)end.good_bytes;
	j->next_seq = end.chain.seq + 1;
	j->written_seq = end.chain.seq;
	return 0;
}

static void init_sync(struct rv_journal *j)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&j->work, &attr);
	pthread_cond_init(&j->done, &attr);
	pthread_condattr_destroy(&attr);
}

static void destroy(struct rv_journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	pthread_cond_destroy(&j->work);
	pthread_cond_destroy(&j->done);
	pthread_mutex_destroy(&j->lock);
	free(j->ring);
	free(j);
}

/* The thread takes no signals: those of the monitor are meant for its other threads. */
static int start_writer(struct rv_journal *j, struct rv_err *err)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&j->writer, NULL, writer, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return 0;
	errno = rc;
	return rv_err_os(err, "journal", "start of the writer thread");
}

int rv_journal_open(const char *path, const char *vm_name, uint32_t queue, uint32_t coalesce,
		    struct rv_journal **out, struct rv_err *err)
{
	struct rv_journal *j;
	int rc = 0;

	*out = NULL;
	if (queue < MIN_QUEUE || queue > MAX_QUEUE)
		return rv_err_set(err, RV_EINVAL, "journal", "queue of %u: expected %u to %u",
				  queue, MIN_QUEUE, MAX_QUEUE);
	j = calloc(1, sizeof(*j));
	if (!j)
		return rv_err_set(err, RV_ENOMEM, "journal", "out of memory");
	j->fd = -1;
	j->next_seq = 1;
	j->size = queue + RESERVE;
	rv_chain_init(&j->chain);
	rv_flood_init(&j->flood, coalesce);
	snprintf(j->vm, sizeof(j->vm), "%s", vm_name ? vm_name : "");
	snprintf(j->path, sizeof(j->path), "%s", path ? path : "");
	init_sync(j);
	j->ring = calloc(j->size, sizeof(*j->ring));
	if (!j->ring)
		rc = rv_err_set(err, RV_ENOMEM, "journal", "out of memory");
	if (!rc && path)
		rc = open_file(j, path, err);
	if (!rc)
		rc = start_writer(j, err);
	if (rc) {
		destroy(j);
		return rc;
	}
	*out = j;
	return 0;
}

void rv_journal_tap(struct rv_journal *j, void (*fn)(void *arg, const char *line), void *arg)
{
	pthread_mutex_lock(&j->lock);
	j->tap = fn;
	j->tap_arg = arg;
	pthread_mutex_unlock(&j->lock);
}

uint64_t rv_journal_count(struct rv_journal *j, uint32_t kind)
{
	uint64_t n;

	pthread_mutex_lock(&j->lock);
	n = j->counts[kind < RV_EV_COUNT ? kind : RV_EV_COUNT];
	pthread_mutex_unlock(&j->lock);
	return n;
}

uint64_t rv_journal_lost(struct rv_journal *j)
{
	uint64_t n;

	pthread_mutex_lock(&j->lock);
	n = j->lost_total;
	pthread_mutex_unlock(&j->lock);
	return n;
}

int rv_journal_flush(struct rv_journal *j, struct rv_err *err)
{
	uint64_t target;
	int failed;

	pthread_mutex_lock(&j->lock);
	target = j->next_seq - 1;
	pthread_cond_signal(&j->work);
	while (j->written_seq < target && !j->failed)
		pthread_cond_wait(&j->done, &j->lock);
	failed = j->written_seq < target ? j->failed : 0;
	pthread_mutex_unlock(&j->lock);
	if (failed) {
		errno = failed;
		return rv_err_os(err, "journal", "%s: write", j->path);
	}
	if (j->fd >= 0 && fsync(j->fd) < 0)
		return rv_err_os(err, "journal", "%s: fsync", j->path);
	return 0;
}

void rv_journal_close(struct rv_journal *j)
{
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->writer, NULL);
	if (j->fd >= 0)
		(void)fsync(j->fd);
	destroy(j);
}
