/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c: `ravelin doctor`: can this host run and harden guests, how fast,
 * and what is lost. Exit status 0: all of it; 1: with the losses listed; 2: not at all.
 */
#include "cmd.h"
#include "caps.h"
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DEVICE "/dev/kvm"

enum health { HEALTH_OK = 0, HEALTH_LOSSES = 1, HEALTH_CANNOT = 2 };

struct report {
	enum health health;
	int fd;
	char device[400]; /* how opening went */
	bool caps_known, speed_known, write_known;
	struct rv_caps caps;
	struct rv_ring_speed speed;
	struct rv_write_proof proof;
	char caps_why[320], speed_text[320], write_text[320];
};

static void worsen(struct report *r, enum health h)
{
	if (h > r->health)
		r->health = h;
}

static void why_missing(char *buf, size_t len)
{
	int virt = rv_arch_cpu_virt();

	snprintf(buf, len, "%s does not exist: %s%s%s", DEVICE,
		 virt == 0
			 ? "the processor offers no virtualisation (switched off in the firmware, "
			   "or this is a virtual machine without nesting); "
			 : "",
		 virt == 0 ? "then also load " : "load the kernel module ", rv_arch_kvm_module());
	if (!access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK)) {
		size_t n = strlen(buf);

		snprintf(buf + n, len - n, "; in a container, start it with --device %s", DEVICE);
	}
}

static void why_refused(char *buf, size_t len)
{
	const struct group *g = NULL;
	struct stat st;

	if (!stat(DEVICE, &st))
		g = getgrgid(st.st_gid);
	if (g && st.st_gid && (st.st_mode & 0060) == 0060)
		snprintf(
			buf, len,
			"%s: permission denied: it belongs to group %s; `usermod -aG %s USER` and a "
			"new login help",
			DEVICE, g->gr_name, g->gr_name);
	else
		snprintf(buf, len,
			 "%s: permission denied: its mode gives it to root only; `chgrp kvm %s; "
			 "chmod 660 %s` as root helps",
			 DEVICE, DEVICE, DEVICE);
}

static void open_device(struct report *r)
{
	int saved;

	r->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (r->fd >= 0) {
		snprintf(r->device, sizeof(r->device), "opened");
		return;
	}
	saved = errno;
	worsen(r, HEALTH_CANNOT);
	switch (saved) {
	case ENOENT: why_missing(r->device, sizeof(r->device)); break;
	case EACCES: why_refused(r->device, sizeof(r->device)); break;
	case EPERM:
		snprintf(
			r->device, sizeof(r->device),
			"%s: not permitted: a device policy of the container or service forbids it "
			"(--device %s, or DeviceAllow=%s rw)",
			DEVICE, DEVICE, DEVICE);
		break;
	case ENODEV:
	case ENXIO:
		snprintf(r->device, sizeof(r->device),
			 "%s: nothing behind it: the module %s is not loaded, or found no "
			 "virtualisation in the processor",
			 DEVICE, rv_arch_kvm_module());
		break;
	case EBUSY:
		snprintf(r->device, sizeof(r->device),
			 "%s: busy: another hypervisor holds the processor's virtualisation",
			 DEVICE);
		break;
	default: snprintf(r->device, sizeof(r->device), "%s: %s", DEVICE, strerror(saved)); break;
	}
}

static void check_caps(struct report *r)
{
	struct rv_err err;
	int rc = rv_caps_probe(r->fd, &r->caps, &err);

	if (rc) {
		rv_err_str(&err, r->caps_why, sizeof(r->caps_why));
		worsen(r, HEALTH_CANNOT);
		return;
	}
	r->caps_known = true;
	if (r->caps.missing_required)
		worsen(r, HEALTH_CANNOT);
	if (r->caps.missing_optional)
		worsen(r, HEALTH_LOSSES);
}

static void check_speed(struct report *r)
{
	const struct rv_ring_speed *s = &r->speed;
	struct rv_err err;
	char buf[280];

	if (rv_proof_speed(r->fd, &r->speed, &err)) {
		snprintf(r->speed_text, sizeof(r->speed_text), "not measured: %s",
			 rv_err_str(&err, buf, sizeof(buf)));
		worsen(r, HEALTH_LOSSES);
		return;
	}
	r->speed_known = true;
	if (s->guest_mips >= RV_RING_SLOW_MIPS) {
		snprintf(
			r->speed_text, sizeof(r->speed_text),
			"%.0f million instructions per second in a guest's kernel mode, %.0f on the "
			"host",
			s->guest_mips, s->host_mips);
		return;
	}
	snprintf(r->speed_text, sizeof(r->speed_text),
		 "kernel mode runs at %.1f MIPS: this KVM emulates it; a Linux guest will be about "
		 "%.0f times slower than the host",
		 s->guest_mips, s->guest_mips > 0 ? s->host_mips / s->guest_mips : 0);
	worsen(r, HEALTH_LOSSES);
}

static void check_write(struct report *r)
{
	const struct rv_write_proof *p = &r->proof;
	struct rv_err err;
	char buf[280];

	if (rv_proof_write(r->fd, &r->proof, &err)) {
		snprintf(r->write_text, sizeof(r->write_text), "not proven: %s",
			 rv_err_str(&err, buf, sizeof(buf)));
		worsen(r, HEALTH_LOSSES);
		return;
	}
	r->write_known = true;
	snprintf(r->write_text, sizeof(r->write_text), "%s; pc %s the instruction%s",
		 rv_write_form_text(p->form), p->pc_exact ? "on" : "past",
		 p->completes ? "" : "; the write did not land after the protection was lifted");
	if (p->form != RV_WRITE_FAULT && p->form != RV_WRITE_FAULT_ADDR && p->form != RV_WRITE_MMIO)
		worsen(r, HEALTH_CANNOT);
	else if (!p->completes)
		worsen(r, HEALTH_LOSSES);
}

static const char *health_text(enum health h)
{
	switch (h) {
	case HEALTH_OK: return "this host runs guests with every protection";
	case HEALTH_LOSSES: return "this host runs guests, with the losses above";
	case HEALTH_CANNOT: break;
	}
	return "this host cannot run protected guests";
}

static void print_row(const char *mark, const char *name, const char *text)
{
	printf("%-5s %-34s %s\n", mark, name, text);
}

static const char *cap_mark(const struct rv_cap_state *s)
{
	switch (s->cap->need) {
	case RV_CAP_REQUIRED: return s->present ? "ok" : "FAIL";
	case RV_CAP_FASTER: return s->present ? "ok" : "slow";
	case RV_CAP_WANTED: return s->present ? "ok" : "lost";
	case RV_CAP_UNUSED: break;
	}
	return s->present ? "(ok)" : "(no)";
}

static void print_human(const struct report *r)
{
	struct utsname u = {0};

	uname(&u);
	printf("ravelin %s on Linux %s, %s\n\n", RV_VERSION, u.release, u.machine);
	print_row(r->fd >= 0 ? "ok" : "FAIL", DEVICE, r->device);
	for (uint32_t i = 0; r->caps_known && i < r->caps.n; i++) {
		const struct rv_cap_state *s = &r->caps.state[i];
		char text[320], value[32] = "";

		if (s->value > 1)
			snprintf(value, sizeof(value), " [%d]", s->value);
		snprintf(text, sizeof(text), "%s%s%s%s", s->cap->user, value,
			 s->present ? "" : "; without it: ", s->present ? "" : s->cap->lost);
		print_row(cap_mark(s), s->cap->name, text);
	}
	if (r->fd >= 0 && !r->caps_known)
		print_row("FAIL", "capabilities", r->caps_why);
	if (r->fd >= 0) {
		bool fast = r->speed_known && r->speed.guest_mips >= RV_RING_SLOW_MIPS;
		bool holds = r->write_known && r->proof.form >= RV_WRITE_FAULT &&
			     r->proof.form <= RV_WRITE_MMIO;

		print_row(fast ? "ok" : "lost", "kernel-mode speed", r->speed_text);
		print_row(holds		   ? "ok"
			  : r->write_known ? "FAIL"
					   : "lost",
			  "write protection", r->write_text);
	}
	printf("\n%s%s\n", r->caps_known ? "In brackets: not used by this version.\n" : "",
	       health_text(r->health));
}

static json_t *caps_json(const struct report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; r->caps_known && i < r->caps.n; i++) {
		const struct rv_cap_state *s = &r->caps.state[i];

		json_array_append_new(list, json_pack("{s:s, s:b, s:i, s:b, s:b, s:s, s:s}", "name",
						      s->cap->name, "present", s->present, "value",
						      s->value, "required",
						      s->cap->need == RV_CAP_REQUIRED, "used",
						      s->cap->need != RV_CAP_UNUSED, "needed_by",
						      s->cap->user, "lost", s->cap->lost));
	}
	return list;
}

static void print_json(const struct report *r)
{
	json_t *o = json_pack("{s:i, s:s, s:s, s:i, s:b, s:s}", "v", 1, "version", RV_VERSION,
			      "verdict", health_text(r->health), "status", (int)r->health,
			      "device_open", r->fd >= 0, "device", r->device);

	json_object_set_new(o, "capabilities", caps_json(r));
	if (r->caps_known)
		json_object_set_new(o, "api", json_integer(r->caps.api));
	if (r->fd >= 0) {
		json_object_set_new(o, "speed_text", json_string(r->speed_text));
		json_object_set_new(o, "write_protection_text", json_string(r->write_text));
	}
	if (r->speed_known)
		json_object_set_new(o, "kernel_mode",
				    json_pack("{s:f, s:f, s:b}", "guest_mips", r->speed.guest_mips,
					      "host_mips", r->speed.host_mips, "emulated",
					      r->speed.guest_mips < RV_RING_SLOW_MIPS));
	if (r->write_known)
		json_object_set_new(o, "write_protection",
				    json_pack("{s:s, s:b, s:b, s:i}", "form",
					      rv_write_form_name(r->proof.form), "pc_exact",
					      r->proof.pc_exact, "completes", r->proof.completes,
					      "exit_reason", (int)r->proof.exit_reason));
	json_dumpf(o, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(o);
}

static int usage(FILE *f, int status)
{
	fprintf(f, "usage: ravelin doctor [--json]\n"
		   "Tells whether this host can run and harden guests, and what is lost.\n"
		   "Exit status: 0 everything, 1 with losses, 2 cannot run.\n");
	return status;
}

int rv_cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	struct report r = {.fd = -1};
	bool json = false;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			return usage(stdout, 0);
		if (c != 'j')
			return usage(stderr, HEALTH_CANNOT);
		json = true;
	}
	if (optind < argc)
		return usage(stderr, HEALTH_CANNOT);
	open_device(&r);
	if (r.fd >= 0) {
		check_caps(&r);
		check_speed(&r);
		check_write(&r);
	}
	if (json)
		print_json(&r);
	else
		print_human(&r);
	if (r.fd >= 0)
		close(r.fd);
	return r.health;
}
