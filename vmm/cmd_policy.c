/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_policy.c: `ravelin policy`: check, explain, show, compare policies, and judge
 * an old journal by another policy. Exit status: 0 good or equal, 1 problems or
 * differences, 2 usage.
 */
#include "cmd.h"
#include "policy_page.h"
#include "../policy/record.h"
#include "../policy/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_USAGE = 2 };

static int usage(FILE *f, int status)
{
	fprintf(f, "usage: ravelin policy check FILE...\n"
		   "       ravelin policy explain [KEY | --man]\n"
		   "       ravelin policy show PROFILE|FILE [--yaml]\n"
		   "       ravelin policy diff A B\n"
		   "       ravelin policy replay PROFILE|FILE JOURNAL\n"
		   "PROFILE is observe, balanced or strict.\n"
		   "Exit status: 0 good or equal, 1 problems or differences, 2 usage.\n");
	return status;
}

static void print_problem(void *arg, const char *line)
{
	uint32_t *n = arg;

	(*n)++;
	fprintf(stderr, "%s\n", line);
}

static int complain(const struct rv_err *err)
{
	char buf[320];

	fprintf(stderr, "ravelin: %s\n", rv_err_str(err, buf, sizeof(buf)));
	return EXIT_DIFFERENT;
}

/* A built-in profile by its name, else a file; problems go to stderr. */
static int get_policy(const char *name, struct rv_policy *out, struct rv_schema_origin *origins)
{
	uint32_t problems = 0;
	struct rv_err err;

	memset(origins, 0, RV_SCHEMA_MAX_KEYS * sizeof(*origins));
	if (!rv_policy_profile(name, out, &err))
		return 0;
	if (!rv_policy_load_origins(name, out, origins, print_problem, &problems, &err))
		return 0;
	/* Problems were shown one by one; what is not a problem of the text was not. */
	return problems ? EXIT_DIFFERENT : complain(&err);
}

static int check(int argc, char **argv)
{
	struct rv_schema_origin origins[RV_SCHEMA_MAX_KEYS];
	struct rv_policy p;
	int status = EXIT_SAME;
	char profile[64];

	if (argc < 2)
		return usage(stderr, EXIT_USAGE);
	for (int i = 1; i < argc; i++) {
		struct rv_err err;
		uint32_t problems = 0;

		/* A file only: "check strict" in a folder with a file of that name means it. */
		if (rv_policy_load_origins(argv[i], &p, origins, print_problem, &problems, &err)) {
			if (!problems)
				complain(&err);
			status = EXIT_DIFFERENT;
			continue;
		}
		printf("%s: good, profile %s\n", argv[i],
		       rv_policy_profile_text(&p, profile, sizeof(profile)));
	}
	return status;
}

static int explain(int argc, char **argv)
{
	char near[RV_SCHEMA_TEXT];
	const char *hint;
	bool found = false;

	if (argc > 2)
		return usage(stderr, EXIT_USAGE);
	if (argc == 2 && !strcmp(argv[1], "--man")) {
		rv_policy_page_man(stdout);
		return EXIT_SAME;
	}
	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		const struct rv_schema_key *key = rv_schema_at(i);
		size_t n = argc == 2 ? strlen(argv[1]) : 0;

		/* A section explains all of its keys. */
		if (argc == 2 && strcmp(key->key, argv[1]) &&
		    (strncmp(key->key, argv[1], n) || key->key[n] != '.'))
			continue;
		found = true;
		rv_policy_page_key(stdout, key);
	}
	if (found)
		return EXIT_SAME;
	hint = rv_schema_nearest(argv[1], near, sizeof(near));
	fprintf(stderr, "ravelin: no key %s%s%s%s\n", argv[1], hint ? "; did you mean '" : "",
		hint ? hint : "", hint ? "'?" : "");
	return EXIT_DIFFERENT;
}

static int show(int argc, char **argv)
{
	struct rv_schema_origin origins[RV_SCHEMA_MAX_KEYS];
	char text[RV_SCHEMA_TEXT], profile[64], from[64];
	struct rv_policy p;
	bool yaml = argc == 3 && !strcmp(argv[2], "--yaml");

	if (argc != 2 && !yaml)
		return usage(stderr, EXIT_USAGE);
	if (get_policy(argv[1], &p, origins))
		return EXIT_DIFFERENT;
	if (yaml) {
		rv_policy_page_yaml(stdout, &p);
		return EXIT_SAME;
	}
	printf("profile %s\n", rv_policy_profile_text(&p, profile, sizeof(profile)));
	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		const struct rv_schema_key *key = rv_schema_at(i);

		if (!strcmp(key->key, "profile"))
			continue;
		snprintf(from, sizeof(from), "profile %s", rv_profile_name(p.based_on));
		if (origins[i].line)
			snprintf(from, sizeof(from), "line %u", origins[i].line);
		rv_schema_text(key, &p, text, sizeof(text));
		printf("  %-20s %-12s %s\n", key->key, text[0] ? text : "-",
		       key->type == RV_SCHEMA_STRING && !origins[i].line ? "not given" : from);
	}
	return EXIT_SAME;
}

static int diff(int argc, char **argv)
{
	struct rv_schema_origin origins[RV_SCHEMA_MAX_KEYS];
	char ta[RV_SCHEMA_TEXT], tb[RV_SCHEMA_TEXT];
	struct rv_policy a, b;
	int status = EXIT_SAME;

	if (argc != 3)
		return usage(stderr, EXIT_USAGE);
	if (get_policy(argv[1], &a, origins) || get_policy(argv[2], &b, origins))
		return EXIT_USAGE;
	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		const struct rv_schema_key *key = rv_schema_at(i);

		rv_schema_text(key, &a, ta, sizeof(ta));
		rv_schema_text(key, &b, tb, sizeof(tb));
		if (!strcmp(key->key, "profile")) {
			rv_policy_profile_text(&a, ta, sizeof(ta));
			rv_policy_profile_text(&b, tb, sizeof(tb));
		}
		if (!strcmp(ta, tb))
			continue;
		printf("%-20s %s -> %s\n", key->key, ta[0] ? ta : "-", tb[0] ? tb : "-");
		/* Another name of the profile alone makes no difference in what is done. */
		if (strcmp(key->key, "profile"))
			status = EXIT_DIFFERENT;
	}
	return status;
}

struct replay {
	struct rv_policy policy;
	uint64_t judged, different;
};

static int replay_line(void *arg, const char *line, size_t len, const struct rv_chain *at)
{
	struct replay *r = arg;
	struct rv_record rec;
	struct rv_verdict v;
	struct rv_err err;
	char text[1024];

	(void)at;
	if (rv_record_parse(line, len, &rec, &err))
		return RV_EBADDATA;
	rv_policy_decide(&r->policy, &rec.ev, &v);
	r->judged++;
	if (v.action == rec.verdict.action)
		return 0;
	r->different++;
	rv_event_format(&rec.ev, NULL, text, sizeof(text));
	printf("%llu: %s -> %s (%s: %s): %s\n", (unsigned long long)rec.seq,
	       rv_action_name(rec.verdict.action), rv_action_name(v.action), v.rule, v.reason,
	       text);
	return 0;
}

static int replay(int argc, char **argv)
{
	struct rv_schema_origin origins[RV_SCHEMA_MAX_KEYS];
	struct replay r = {.judged = 0};
	struct rv_journal_end end;
	struct rv_err err;
	int fd, rc;

	if (argc != 3)
		return usage(stderr, EXIT_USAGE);
	if (get_policy(argv[1], &r.policy, origins))
		return EXIT_USAGE;
	fd = open(argv[2], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		rv_err_os(&err, "journal", "%s: open", argv[2]);
		complain(&err);
		return EXIT_USAGE;
	}
	rc = rv_journal_walk(fd, argv[2], &end, replay_line, &r, &err);
	close(fd);
	printf("%llu events judged, %llu verdicts differ\n", (unsigned long long)r.judged,
	       (unsigned long long)r.different);
	if (rc) {
		complain(&err);
		return EXIT_USAGE;
	}
	return r.different ? EXIT_DIFFERENT : EXIT_SAME;
}

int rv_cmd_policy(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {
		{"check", check}, {"explain", explain}, {"show", show},
		{"diff", diff},	  {"replay", replay},
	};

	if (argc >= 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return usage(stdout, EXIT_SAME);
	for (size_t i = 0; argc >= 2 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	}
	return usage(stderr, EXIT_USAGE);
}
