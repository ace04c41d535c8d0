/* SPDX-License-Identifier: Apache-2.0 */
/* disasm.c: a thin wrapper around capstone, loaded on first use, one handle per thread. */
#include "disasm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of capstone that are used, in the types of its own header. */
struct lib {
	__typeof__(&cs_open) open;
	__typeof__(&cs_close) close;
	__typeof__(&cs_option) option;
	__typeof__(&cs_malloc) malloc;
	__typeof__(&cs_free) free;
	__typeof__(&cs_disasm_iter) iter;
	__typeof__(&cs_version) version;
};

enum { MODE_X86, MODE_ARM64, MODES };

/* What one thread holds; freed by the key's destructor. */
struct handles {
	csh h[MODES];
	cs_insn *insn[MODES];
};

static struct lib lib;
static char load_why[160] = "not loaded";
static bool load_ok;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void handles_free(void *arg)
{
	struct handles *t = arg;
	int i;

	for (i = 0; i < MODES; i++) {
		if (t->insn[i])
			lib.free(t->insn[i], 1);
		if (t->h[i])
			lib.close(&t->h[i]);
	}
	free(t);
}

static bool lib_bind(void *so)
{
	struct {
		const char *name;
		void *slot;
	} want[] = {
		{"cs_open", &lib.open},	      {"cs_close", &lib.close},
		{"cs_option", &lib.option},   {"cs_malloc", &lib.malloc},
		{"cs_free", &lib.free},	      {"cs_disasm_iter", &lib.iter},
		{"cs_version", &lib.version},
	};
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		void *p = dlsym(so, want[i].name);

		if (!p) {
			snprintf(load_why, sizeof(load_why), "capstone has no %s", want[i].name);
			return false;
		}
		memcpy(want[i].slot, &p, sizeof(p));
	}
	return true;
}

/*
 * cs_insn and cs_detail changed their layout between major versions 4 and 5, so
 * a library of another major than our header must not be used, even if it loads.
 */
static void lib_load(void)
{
	static const char *const names[] = {"libcapstone.so.4", "libcapstone.so.5"};
	size_t i;

	snprintf(load_why, sizeof(load_why), "libcapstone.so.%d is not installed", CS_API_MAJOR);
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !load_ok; i++) {
		void *so = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		int major = 0;

		if (!so)
			continue;
		if (lib_bind(so)) {
			int minor = 0; /* not NULL: capstone 4 then fills neither */

			lib.version(&major, &minor);
			load_ok = major == CS_API_MAJOR;
			if (!load_ok)
				snprintf(load_why, sizeof(load_why),
					 "%s is major version %d, this program was built for %d",
					 names[i], major, CS_API_MAJOR);
		}
		if (!load_ok)
			dlclose(so);
	}
	if (load_ok && pthread_key_create(&key, handles_free)) {
		load_ok = false;
		snprintf(load_why, sizeof(load_why), "no thread-specific data left");
	}
}

bool rv_insn_ready(struct rv_err *err)
{
	pthread_once(&once, lib_load);
	if (!load_ok)
		rv_err_set(err, RV_EUNSUPPORTED, "disasm", "%s", load_why);
	return load_ok;
}

static struct handles *handles_get(void)
{
	struct handles *t = pthread_getspecific(key);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (t && pthread_setspecific(key, t)) {
		free(t);
		t = NULL;
	}
	return t;
}

static int mode_open(struct handles *t, int m, struct rv_err *err)
{
	cs_arch arch = m == MODE_X86 ? CS_ARCH_X86 : CS_ARCH_ARM64;
	cs_mode mode = m == MODE_X86 ? CS_MODE_64 : CS_MODE_LITTLE_ENDIAN;

	if (t->insn[m])
		return 0;
	if (!t->h[m] && lib.open(arch, mode, &t->h[m]) != CS_ERR_OK) {
		t->h[m] = 0;
		return rv_err_set(err, RV_EUNSUPPORTED, "disasm",
				  "this capstone was built without %s",
				  m == MODE_X86 ? "x86" : "arm64");
	}
	lib.option(t->h[m], CS_OPT_DETAIL, CS_OPT_ON);
	t->insn[m] = lib.malloc(t->h[m]);
	if (!t->insn[m])
		return rv_err_set(err, RV_ENOMEM, "disasm", "no memory for an instruction");
	return 0;
}

int rv_insn_decode(enum rv_arch arch, const void *bytes, size_t len, uint64_t va,
		   struct rv_insn *out, struct rv_err *err)
{
	const uint8_t *code = bytes;
	struct handles *t;
	uint64_t at = va;
	int m, rc;

	if (arch != RV_ARCH_X86_64 && arch != RV_ARCH_ARM64)
		return rv_err_set(err, RV_EUNSUPPORTED, "disasm", "no such architecture: %d", arch);
	if (!rv_insn_ready(err))
		return RV_EUNSUPPORTED;
	t = handles_get();
	if (!t)
		return rv_err_set(err, RV_ENOMEM, "disasm", "no memory for a decoder");
	m = arch == RV_ARCH_X86_64 ? MODE_X86 : MODE_ARM64;
	rc = mode_open(t, m, err);
	if (rc)
		return rc;
	if (len > RV_INSN_MAX + 1)
		len = RV_INSN_MAX + 1;
	if (!lib.iter(t->h[m], &code, &len, &at, t->insn[m]))
		return rv_err_at(err, RV_EBADDATA, va, "disasm", "not a whole instruction");
	out->va = va;
	out->cs = t->insn[m];
	out->len = (uint8_t)out->cs->size;
	snprintf(out->text, sizeof(out->text), "%s%s%.90s", out->cs->mnemonic,
		 out->cs->op_str[0] ? " " : "", out->cs->op_str);
	return 0;
}
