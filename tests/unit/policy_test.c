/* SPDX-License-Identifier: Apache-2.0 */
/* policy_test.c: policy files: messages with their places, trust, profiles, hostile text. */
/* unit-sources: vmm/policy_page.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../policy/schema.h"
#include "../../vmm/policy_page.h"

struct lines {
	char text[8192];
	uint32_t n;
};

static void collect(void *arg, const char *line)
{
	struct lines *l = arg;
	size_t len = strlen(l->text);

	l->n++;
	snprintf(l->text + len, sizeof(l->text) - len, "%s\n", line);
}

static int parse(const char *text, struct rv_policy *p, struct lines *l)
{
	memset(l, 0, sizeof(*l));
	return rv_policy_parse("f", text, strlen(text), p, collect, l, NULL);
}

/* One bad file, and exactly what is said about it. */
struct bad {
	const char *text, *said;
};

static const struct bad bads[] = {
	{"", "f:1:1: expected a policy, found an empty file\n"},
	{"# nothing\n", "f:2:1: expected a policy, found an empty file\n"},
	{"strict\n", "f:1:1: expected a mapping of policy keys, found a plain value\n"},
	{"- a\n", "f:1:1: expected a mapping of policy keys, found a list\n"},
	{"profile: stritc\n",
	 "f:1:10: expected one of observe, balanced, strict for profile, found "
	 "'stritc'; did you mean 'strict'?\n"},
	{"profile: custom\n",
	 "f:1:10: expected one of observe, balanced, strict for profile, found 'custom'\n"},
	{"seal:\n  txt: {act: deny}\n",
	 "f:2:3: expected a known key, found 'seal.txt'; did you mean 'seal.text'?\n"},
	{"seal: {text: {atc: deny}}\n",
	 "f:1:15: expected a known key, found 'seal.text.atc'; did you mean 'seal.text.act'?\n"},
	{"queue: 7\n",
	 "f:1:1: expected a known key, found 'queue'; did you mean 'journal.queue'?\n"},
	{"zzzzzz: 1\n",
	 "f:1:1: expected a known key, found 'zzzzzz'; `ravelin policy explain` lists them\n"},
	{"seal.text.act: deny\n",
	 "f:1:1: expected nested mappings, found 'seal.text.act' as one key\n"},
	{"journal: {queue: 15}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found '15'\n"},
	{"journal: {queue: 65537}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found '65537'\n"},
	{"journal: {queue: -1}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found '-1'\n"},
	{"journal: {queue: 0x40}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found '0x40'\n"},
	{"journal: {queue: 99999999999999999999}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found "
	 "'99999999999999999999'\n"},
	{"journal: {queue: ''}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found ''\n"},
	{"journal: {queue: [4096]}\n",
	 "f:1:18: expected a whole number from 16 to 65536 for journal.queue, found a list\n"},
	{"journal: 3\n", "f:1:10: expected a mapping for journal, found a plain value\n"},
	{"journal:\n", "f:1:9: expected a mapping for journal, found a plain value\n"},
	{"seal: {require: onn}\n",
	 "f:1:17: expected on or off for seal.require, found 'onn'; did you mean 'on'?\n"},
	{"device-write: {act: record}\n",
	 "f:1:21: expected one of deny, pause, kill for device-write.act, found 'record'\n"},
	{"name: a b\n",
	 "f:1:7: expected 1 to 63 letters, digits, '.', '_' or '-' for name, found 'a "
	 "b'\n"},
	{"name: \"a\\e[1m\"\n",
	 "f:1:7: expected 1 to 63 letters, digits, '.', '_' or '-' for name, "
	 "found 'a\\x1b[1m'\n"},
	{"name: a\nname: b\n",
	 "f:2:1: expected each key once, and name stands in line 1 already\n"},
	{"seal: {require: on}\nseal: {require: on}\n",
	 "f:2:1: expected each key once, and seal stands in line 1 already\n"
	 "f:2:8: expected each key once, and seal.require stands in line 1 already\n"},
	{"name: &x a\n", "f:1:7: expected no anchors\n"},
	{"name: !!str a\n", "f:1:7: expected no tags\n"},
	{"name: a\n---\nname: b\n", "f:2:1: expected one document, found another\n"},
	{"[a]: b\n", "f:1:1: expected a key, found a list\n"},
	{"name: *x\n",
	 "f:1:7: expected 1 to 63 letters, digits, '.', '_' or '-' for name, found an "
	 "alias\n"},
	{"seal:\n\ttext: {}\n",
	 "f:2:1: expected YAML: found character that cannot start any token\n"},
	{"name: \"a\n", "f:2:1: expected YAML: found unexpected end of stream\n"},
	/* All problems of a file, in order. */
	{"profile: x\nseal: {text: {watch: 2, act: stop}}\nfoo: bar\n",
	 "f:1:10: expected one of observe, balanced, strict for profile, found 'x'\n"
	 "f:2:22: expected on or off for seal.text.watch, found '2'\n"
	 "f:2:30: expected one of record, deny, fault, pause, kill for seal.text.act, found 'stop'\n"
	 "f:3:1: expected a known key, found 'foo'; `ravelin policy explain` lists them\n"},
};

static void test_messages(void **state)
{
	struct lines l;
	struct rv_policy p;

	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		assert_int_equal(parse(bads[i].text, &p, &l), RV_EINVAL);
		assert_string_equal(l.text, bads[i].said);
	}
}

static void test_first_problem_in_err(void **state)
{
	const char *text = "a: 1\nb: 2\n";
	struct rv_policy p;
	struct rv_err err;

	(void)state;
	assert_int_equal(rv_policy_parse("f", text, strlen(text), &p, NULL, NULL, &err), RV_EINVAL);
	assert_int_equal(err.code, RV_EINVAL);
	assert_non_null(strstr(err.what, "f:1:1: expected a known key, found 'a'"));
}

static const char good[] = "profile: strict\n"
			   "name: web1\n"
			   "placement:\n  base: if-able\n"
			   "seal:\n"
			   "  text: {watch: on, act: deny}\n"
			   "  gate: {act: kill}\n"
			   "  require: false\n"
			   "watchdog: {seconds: 0}\n"
			   "journal: {patches: off, queue: 16, coalesce: 65536}\n";

static void test_values(void **state)
{
	struct rv_schema_origin origins[RV_SCHEMA_MAX_KEYS];
	struct rv_policy p;
	struct lines l;
	char buf[64];

	(void)state;
	assert_int_equal(parse(good, &p, &l), 0);
	assert_int_equal(l.n, 0);
	assert_int_equal(p.profile, RV_PROFILE_CUSTOM);
	assert_int_equal(p.based_on, RV_PROFILE_STRICT);
	assert_string_equal(rv_policy_profile_text(&p, buf, sizeof(buf)),
			    "custom (based on strict)");
	assert_string_equal(p.name, "web1");
	assert_int_equal(p.placement_base, RV_PLACE_IF_ABLE);
	assert_true(p.seal_text && p.seal_rodata && p.seal_gate);
	assert_false(p.seal_require);
	assert_int_equal(p.seal_text_act, RV_ACT_DENY);
	assert_int_equal(p.seal_rodata_act, RV_ACT_FAULT);
	assert_int_equal(p.seal_gate_act, RV_ACT_KILL);
	assert_int_equal(p.watchdog_seconds, 0);
	assert_int_equal(p.watchdog_act, RV_ACT_PAUSE);
	assert_int_equal(p.journal_queue, 16);
	assert_int_equal(p.journal_coalesce, 65536);
	assert_int_equal(p.internal_act, RV_ACT_KILL);
	assert_int_equal(
		rv_policy_parse_origins("f", good, strlen(good), &p, origins, NULL, NULL, NULL), 0);
	assert_int_equal(origins[1].line, 2);
	assert_int_equal(origins[1].column, 7);
}

static void test_profile_names(void **state)
{
	struct rv_policy p;
	struct lines l;

	(void)state;
	/* Anywhere in the file; and a key that says what the profile says changes nothing. */
	assert_int_equal(parse("seal: {require: off}\nprofile: observe\n", &p, &l), 0);
	assert_int_equal(p.profile, RV_PROFILE_OBSERVE);
	assert_int_equal(parse("seal: {require: off}\n", &p, &l), 0);
	assert_int_equal(p.profile, RV_PROFILE_CUSTOM);
	assert_int_equal(p.based_on, RV_PROFILE_BALANCED);
	assert_int_equal(parse("name: x\n", &p, &l), 0);
	assert_int_equal(p.profile, RV_PROFILE_BALANCED);
	assert_int_equal(rv_policy_profile("custom", &p, NULL), RV_EINVAL);
	assert_int_equal(rv_policy_profile("", &p, NULL), RV_EINVAL);
}

/* The digest is the file's: pinned with `printf 'name: x\n' | sha256sum`. */
static void test_digest(void **state)
{
	static const uint8_t head[4] = {0xa2, 0xa7, 0x9e, 0xa3};
	struct rv_policy p;
	struct lines l;

	(void)state;
	assert_int_equal(parse("name: x\n", &p, &l), 0);
	assert_memory_equal(p.digest, head, sizeof(head));
}

static void test_bounds(void **state)
{
	char *text = calloc(1, RV_POLICY_MAX_BYTES + 2);
	struct rv_policy p;
	struct lines l;

	(void)state;
	memset(text, '[', 4000);
	assert_int_equal(parse(text, &p, &l), RV_EINVAL);
	for (int i = 0; i < 4000; i += 4)
		memcpy(text + i, "{a: ", 4);
	assert_int_equal(parse(text, &p, &l), RV_EINVAL);
	/* Many problems are not many lines. */
	for (int i = 0; i < 4000; i += 8)
		memcpy(text + i,
		       (char[]){'k', 'k', (char)('a' + i / 640), (char)('a' + i / 26 % 26),
				(char)('a' + i % 26), 'k', ':', '\n'},
		       8);
	assert_int_equal(parse(text, &p, &l), RV_EINVAL);
	assert_int_equal(l.n, 51);
	memset(text, '#', RV_POLICY_MAX_BYTES + 1);
	assert_int_equal(parse(text, &p, &l), RV_EINVAL);
	assert_string_equal(l.text, "f:1:1: expected at most 65536 bytes, found 65537\n");
	assert_int_equal(rv_policy_parse("f", "name: a\0b", 9, &p, NULL, NULL, NULL), RV_EINVAL);
	free(text);
}

/* A text cut or changed anywhere gives a policy or a message, never neither. */
static void test_damage(void **state)
{
	struct rv_policy p;
	struct lines l;
	char text[sizeof(good)];
	int rc;

	(void)state;
	for (size_t n = 0; n < sizeof(good); n++) {
		memset(&l, 0, sizeof(l));
		rc = rv_policy_parse("f", good, n, &p, collect, &l, NULL);
		assert_true(rc ? l.n > 0 : l.n == 0);
	}
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		for (int bit = 0; bit < 8; bit++) {
			memcpy(text, good, sizeof(good));
			text[i] ^= (char)(1 << bit);
			memset(&l, 0, sizeof(l));
			rc = rv_policy_parse("f", text, sizeof(good) - 1, &p, collect, &l, NULL);
			assert_true(rc ? l.n > 0 : l.n == 0);
		}
	}
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_trust(void **state)
{
	char dir[] = "/tmp/rv-policy-XXXXXX", path[64], expected[256];
	struct lines l = {.n = 0};
	struct rv_policy p;
	struct rv_err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/p.yaml", dir);
	write_file(path, good, 0644);
	assert_int_equal(rv_policy_load(path, &p, collect, &l, &err), 0);
	chmod(path, 0664);
	assert_int_equal(rv_policy_load(path, &p, collect, &l, &err), RV_EINVAL);
	snprintf(
		expected, sizeof(expected),
		"%s: expected no write permission for group or others, found mode 0664; chmod go-w "
		"helps\n",
		path);
	assert_string_equal(l.text, expected);
	chmod(path, 0646);
	assert_int_equal(rv_policy_load(path, &p, NULL, NULL, &err), RV_EINVAL);
	if (geteuid() == 0) {
		chmod(path, 0644);
		assert_int_equal(chown(path, 12345, 0), 0);
		memset(&l, 0, sizeof(l));
		assert_int_equal(rv_policy_load(path, &p, collect, &l, &err), RV_EINVAL);
		assert_non_null(strstr(l.text, "expected owner root or user 0, found user 12345"));
	}
	unlink(path);
	assert_int_equal(rv_policy_load(path, &p, NULL, NULL, &err), RV_EOS);
	assert_int_equal(rv_policy_load(dir, &p, NULL, NULL, &err), RV_EINVAL);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(rv_policy_load(path, &p, NULL, NULL, &err), RV_EINVAL);
	unlink(path);
	rmdir(dir);
}

/* A built-in profile, written as a file and read back, is the same policy. */
static void test_page_reads_back(void **state)
{
	static const char *const names[] = {"observe", "balanced", "strict"};
	struct rv_policy p, q;
	struct lines l;
	char *text;
	size_t len;
	FILE *f;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(rv_policy_profile(names[i], &p, NULL), 0);
		f = open_memstream(&text, &len);
		rv_policy_page_yaml(f, &p);
		fclose(f);
		assert_int_equal(parse(text, &q, &l), 0);
		memset(p.digest, 0, sizeof(p.digest));
		memset(q.digest, 0, sizeof(q.digest));
		assert_memory_equal(&p, &q, sizeof(p));
		free(text);
	}
}

/* The file's contents, or NULL. The tests run in the root of the tree. */
static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	if (!f || !fread(text, 1, 65535, f)) {
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

static void test_shipped_profiles(void **state)
{
	static const char *const names[] = {"observe", "balanced", "strict"};
	struct rv_policy p, q;
	struct lines l;
	char path[64], *text;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "configs/profiles/%s.yaml", names[i]);
		text = slurp(path);
		assert_non_null(text);
		assert_int_equal(parse(text, &q, &l), 0);
		assert_int_equal(rv_policy_profile(names[i], &p, NULL), 0);
		memset(p.digest, 0, sizeof(p.digest));
		memset(q.digest, 0, sizeof(q.digest));
		assert_memory_equal(&p, &q, sizeof(p));
		free(text);
	}
	text = slurp("configs/examples/web-vm.yaml");
	assert_non_null(text);
	assert_int_equal(parse(text, &q, &l), 0);
	free(text);
}

static void test_shipped_page(void **state)
{
	char *page = slurp("docs/man/ravelin-policy.5"), *text;
	size_t len;
	FILE *f;

	(void)state;
	assert_non_null(page);
	f = open_memstream(&text, &len);
	rv_policy_page_man(f);
	fclose(f);
	assert_string_equal(page, text);
	free(text);
	free(page);
}

static void test_schema(void **state)
{
	char buf[64];
	uint32_t v;

	(void)state;
	for (uint32_t i = 0; i < rv_schema_count(); i++) {
		const struct rv_schema_key *k = rv_schema_at(i);

		/* Keys of one section stand together: the pages depend on it. */
		assert_ptr_equal(rv_schema_find(k->key), k);
		assert_true(strlen(k->help) > 20 && k->help[strlen(k->help) - 1] == '.');
		assert_false(rv_schema_is_section(k->key));
	}
	assert_null(rv_schema_at(rv_schema_count()));
	assert_true(rv_schema_is_section("seal"));
	assert_true(rv_schema_is_section("seal.text"));
	assert_false(rv_schema_is_section("sea"));
	assert_false(rv_schema_is_section(""));
	assert_int_equal(rv_schema_distance("", "abc"), 3);
	assert_int_equal(rv_schema_distance("kitten", "sitting"), 3);
	assert_int_equal(rv_schema_distance("atc", "act"), 1);
	assert_null(rv_schema_nearest("", buf, sizeof(buf)));
	assert_true(rv_schema_value(rv_schema_find("seal.require"), "yes", &v) && v == 1);
	assert_false(rv_schema_value(rv_schema_find("journal.queue"), "0016", &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),	cmocka_unit_test(test_first_problem_in_err),
		cmocka_unit_test(test_values),		cmocka_unit_test(test_profile_names),
		cmocka_unit_test(test_digest),		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_damage),		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_page_reads_back), cmocka_unit_test(test_shipped_profiles),
		cmocka_unit_test(test_shipped_page),	cmocka_unit_test(test_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
