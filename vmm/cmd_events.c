/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_events.c: `ravelin events`: read, follow, verify and repair a journal. Every
 * line is checked before it is shown; the exit status is 1 when one is not good.
 */
#include "cmd.h"
#include "../policy/record.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_GOOD = 0, EXIT_BROKEN = 1, EXIT_USAGE = 2 };

#define NO_KIND UINT32_MAX
/* While following: often enough for a person, rarely enough for a battery. */
#define POLL_NS 200000000l

struct view {
	const char *path;
	bool verify, follow, json, repair, colour;
	uint32_t kind; /* NO_KIND: all */
	uint64_t since;
	bool stopped; /* the last line that was seen is the machine's stop */
};

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static const char *colour_of(const struct rv_record *rec)
{
	const char *verb = rv_event_verb(rec->ev.kind, rec->verdict.action);

	if (!strcmp(verb, "BLOCK"))
		return "\033[1;31m";
	if (!strcmp(verb, "DETECT") || !strcmp(verb, "FAIL"))
		return "\033[1;33m";
	if (!strcmp(verb, "DEGRADE") || !strcmp(verb, "LOST") || !strcmp(verb, "DISARM"))
		return "\033[33m";
	if (!strcmp(verb, "ARM") || !strcmp(verb, "PLACE"))
		return "\033[32m";
	return "\033[2m";
}

static void print_record(const struct view *v, const struct rv_record *rec)
{
	time_t sec = (time_t)(rec->ev.wall_ns / 1000000000u);
	char text[1024], when[32];
	struct tm tm;

	gmtime_r(&sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	rv_event_format(&rec->ev, &rec->verdict, text, sizeof(text));
	printf("%8llu  %s.%03u  %s%s%s%s%s%s\n", (unsigned long long)rec->seq, when,
	       (unsigned)(rec->ev.wall_ns / 1000000u % 1000u), rec->vm, rec->vm[0] ? ": " : "",
	       v->colour ? colour_of(rec) : "", text, v->colour ? "\033[0m" : "",
	       rec->ev.pc && !rec->ev.pc_exact && rec->ev.kind == RV_EV_WRITE
		       ? " [pc is past the instruction]"
		       : "");
}

static int show_line(void *arg, const char *line, size_t len, const struct rv_chain *at)
{
	struct view *v = arg;
	struct rv_record rec;
	struct rv_err err;

	if (v->verify) {
		v->stopped = !rv_record_parse(line, len, &rec, &err) && rec.ev.kind == RV_EV_STOP;
		return 0;
	}
	if (at->seq <= v->since)
		return 0;
	/* The line has been checked, so that this cannot fail; no need to trust that. */
	if (rv_record_parse(line, len, &rec, &err))
		return RV_EBADDATA;
	if (v->kind != NO_KIND && rec.ev.kind != v->kind)
		return 0;
	if (v->json)
		printf("%.*s\n", (int)len, line);
	else
		print_record(v, &rec);
	return 0;
}

static int complain(const struct rv_err *err)
{
	char buf[320];

	fflush(stdout);
	fprintf(stderr, "ravelin: %s\n", rv_err_str(err, buf, sizeof(buf)));
	return EXIT_BROKEN;
}

/* Lines that are added after end; until a signal, or a line that is not good. */
static int follow(const struct view *v, int fd, const struct rv_journal_end *start)
{
	const struct timespec nap = {0, POLL_NS};
	struct rv_chain chain = start->chain;
	char buf[2 * RV_RECORD_MAX];
	off_t at = (off_t)start->good_bytes;
	size_t len = 0;
	struct rv_err err;

	while (!stopped) {
		ssize_t n = pread(fd, buf + len, sizeof(buf) - len, at + (off_t)len);
		char *nl;

		if (n < 0 && errno != EINTR) {
			rv_err_os(&err, "journal", "%s: read", v->path);
			return complain(&err);
		}
		len += n > 0 ? (size_t)n : 0;
		while ((nl = memchr(buf, '\n', len)) != NULL) {
			size_t line = (size_t)(nl - buf);

			if (rv_chain_check(&chain, buf, line, &err)) {
				fprintf(stderr, "ravelin: %s: line %llu:\n", v->path,
					(unsigned long long)chain.seq + 1);
				return complain(&err);
			}
			(void)show_line((void *)v, buf, line, &chain);
			at += (off_t)line + 1;
			len -= line + 1;
			memmove(buf, nl + 1, len);
		}
		fflush(stdout);
		if (len >= RV_RECORD_MAX) {
			rv_err_set(&err, RV_EBADDATA, "journal", "%s: line %llu is too long",
				   v->path, (unsigned long long)chain.seq + 1);
			return complain(&err);
		}
		if (n <= 0)
			nanosleep(&nap, NULL);
	}
	return EXIT_GOOD;
}

static int repair(const struct view *v)
{
	struct rv_err err;
	uint64_t moved;

	if (rv_journal_repair(v->path, &moved, &err))
		return complain(&err);
	printf("%s: moved %llu bytes of a torn last line to %s.torn\n", v->path,
	       (unsigned long long)moved, v->path);
	return EXIT_GOOD;
}

/* The chain shows what was changed or taken out, but not what was cut off at the end. */
static void print_verdict(const struct view *v, const struct rv_journal_end *end)
{
	printf("%s: %llu lines, sequence and chain unbroken, last digest %s\n", v->path,
	       (unsigned long long)end->chain.seq, end->chain.prev);
	if (!end->chain.seq)
		printf("%s: empty: a journal begins with the machine's start\n", v->path);
	else if (!v->stopped)
		printf("%s: the last line is no stop: the machine still runs, or the end is "
		       "missing\n",
		       v->path);
}

static int show(struct view *v)
{
	struct rv_journal_end end;
	int fd, rc, status = EXIT_GOOD;
	struct rv_err err;
	struct stat st;

	fd = open(v->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		rv_err_os(&err, "journal", "%s: open", v->path);
		return complain(&err);
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		rv_err_set(&err, RV_EINVAL, "journal", "%s: expected a regular file", v->path);
		close(fd);
		return complain(&err);
	}
	rc = rv_journal_walk(fd, v->path, &end, show_line, v, &err);
	/* While a monitor writes, half a line at the end is no damage yet. */
	if (rc == RV_EBADDATA && end.torn && v->follow)
		rc = 0;
	if (rc)
		status = complain(&err);
	else if (v->verify)
		print_verdict(v, &end);
	if (!rc && v->follow)
		status = follow(v, fd, &end);
	close(fd);
	return status;
}

static int usage(FILE *f, int status)
{
	fprintf(f,
		"usage: ravelin events FILE [--verify] [--follow] [--kind KIND] [--since SEQ] [--json]\n"
		"       ravelin events FILE --repair\n"
		"Shows a journal. Each line is checked: format, sequence, chain of digests.\n"
		"  --verify     check only, say how many lines and the last digest\n"
		"  --follow     go on with lines as they are written\n"
		"  --kind KIND  only events of this kind (write, patch, arm, ...)\n"
		"  --since SEQ  only events with a larger sequence number\n"
		"  --json       the lines as they are in the file\n"
		"  --repair     move a torn last line to FILE.torn\n"
		"Exit status: 0 the journal is good, 1 it is broken, 2 usage.\n");
	return status;
}

static bool number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && *text >= '0' && *text <= '9' && !*end;
}

static bool take_option(struct view *v, int c)
{
	switch (c) {
	case 'v': v->verify = true; return true;
	case 'f': v->follow = true; return true;
	case 'j': v->json = true; return true;
	case 'r': v->repair = true; return true;
	case 's':
		if (number(optarg, &v->since))
			return true;
		fprintf(stderr, "ravelin: --since %s: expected a sequence number\n", optarg);
		return false;
	case 'k':
		if (rv_event_kind_find(optarg, &v->kind))
			return true;
		fprintf(stderr, "ravelin: --kind %s: expected one of", optarg);
		for (uint32_t i = 1; i < RV_EV_COUNT; i++)
			fprintf(stderr, " %s", rv_event_kind_name(i));
		fprintf(stderr, "\n");
		return false;
	}
	return false;
}

int rv_cmd_events(int argc, char **argv)
{
	static const struct option options[] = {
		{"verify", no_argument, NULL, 'v'},	{"follow", no_argument, NULL, 'f'},
		{"json", no_argument, NULL, 'j'},	{"repair", no_argument, NULL, 'r'},
		{"kind", required_argument, NULL, 'k'}, {"since", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},	{NULL, 0, NULL, 0}};
	struct sigaction sa = {.sa_handler = on_stop};
	struct view v = {.kind = NO_KIND};
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			return usage(stdout, EXIT_GOOD);
		if (c == '?' || !take_option(&v, c))
			return c == '?' ? usage(stderr, EXIT_USAGE) : EXIT_USAGE;
	}
	if (optind + 1 != argc || (v.repair && (v.verify || v.follow)) || (v.verify && v.follow))
		return usage(stderr, EXIT_USAGE);
	v.path = argv[optind];
	v.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	if (v.repair)
		return repair(&v);
	if (v.follow) {
		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
	}
	return show(&v);
}
