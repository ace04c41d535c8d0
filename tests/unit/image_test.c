/* SPDX-License-Identifier: Apache-2.0 */
/* image_test.c: containers, packers, relocations, sites and padding of made-up kernels. */
#include "fake_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <disasm.h>

/* 32-bit list, inverse, 64-bit, as they lie in the file: each with a 0 in front. */
static const int32_t three_lists[] = {0, (int32_t)0x81000108, 0, (int32_t)0x81000104,
				      0, (int32_t)0x81000100};
static const int32_t two_lists[] = {0, (int32_t)0x81000108, 0, (int32_t)0x81000100};

#define SMALL 0x3000

static uint8_t *small_flat(void)
{
	uint8_t *p = calloc(1, SMALL);
	uint32_t i, v = 0x81001234;
	uint64_t w = FAKE_BASE + 0x1234;

	for (i = 0; i < SMALL; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
	memcpy(p + 0x100, &v, 4);
	memcpy(p + 0x104, &v, 4);
	memcpy(p + 0x108, &w, 8);
	return p;
}

static struct rv_image *open_ok(const struct fake_buf *b)
{
	struct rv_image *img = NULL;
	struct rv_err err;

	if (rv_image_parse(b->p, b->len, &img, &err))
		fail_msg("%s: %s at 0x%llx", err.where, err.what, (unsigned long long)err.addr);
	return img;
}

static void expect_error(const uint8_t *p, size_t len, int code, const char *word)
{
	struct rv_image *img = NULL;
	struct rv_err err;

	assert_int_equal(rv_image_parse(p, len, &img, &err), code);
	if (!strstr(err.what, word))
		fail_msg("expected \"%s\" in \"%s\"", word, err.what);
}

static void loads_everywhere(void **state)
{
	static const enum rv_payload all[] = {RV_PAYLOAD_GZIP, RV_PAYLOAD_XZ, RV_PAYLOAD_LZ4,
					      RV_PAYLOAD_ZSTD};
	uint8_t *flat = small_flat(), *dst = malloc(SMALL + 0x2000);
	struct rv_err err;

	(void)state;
	for (size_t split = 0x1000; split < SMALL; split += 0x1000) {
		struct fake_buf elf = fake_elf(flat, SMALL, split, three_lists, 6);

		for (size_t i = 0; i < 4; i++) {
			struct fake_buf bz = fake_bzimage(&elf, all[i]);
			struct rv_image *img = open_ok(&bz);
			const struct rv_image_info *info = rv_image_info(img);

			assert_int_equal(info->format, RV_IMAGE_BZIMAGE);
			assert_int_equal(info->payload, all[i]);
			assert_int_equal(info->boot_protocol, 0x20f);
			assert_int_equal(info->cmdline_size, 2047);
			assert_int_equal(info->flat_size, SMALL);
			assert_int_equal(info->mem_size, SMALL + 0x2000);
			assert_true(info->link_base == FAKE_BASE && info->has_relocs);
			memset(dst, 0xee, SMALL + 0x2000);
			assert_int_equal(rv_image_load(img, dst, SMALL + 0x1fff, &err), RV_EINVAL);
			assert_int_equal(rv_image_load(img, dst, SMALL + 0x2000, &err), 0);
			assert_memory_equal(dst, flat, SMALL);
			assert_int_equal(dst[SMALL], 0);
			assert_int_equal(dst[SMALL + 0x1fff], 0);
			rv_image_close(img);
			free(bz.p);
		}
		free(elf.p);
	}
	free(flat);
	free(dst);
}

static void relocates(void **state)
{
	uint8_t *flat = small_flat(), *dst = malloc(SMALL + 0x2000);
	struct rv_err err;
	uint32_t v;
	uint64_t w;

	(void)state;
	for (int lists = 2; lists <= 3; lists++) {
		struct fake_buf elf =
			fake_elf(flat, SMALL, 0x1000, lists == 3 ? three_lists : two_lists,
				 lists == 3 ? 6 : 4);
		struct rv_image *img = open_ok(&elf);

		assert_int_equal(rv_image_info(img)->relocs[0], 1);
		assert_int_equal(rv_image_info(img)->relocs[1], lists == 3);
		assert_int_equal(rv_image_info(img)->relocs[2], 1);
		assert_int_equal(rv_image_load(img, dst, SMALL + 0x2000, &err), 0);
		assert_int_equal(rv_image_relocate(img, dst, SMALL + 0x2000, 0x1000, &err),
				 RV_EINVAL);
		assert_int_equal(rv_image_relocate(img, dst, 16, 0x200000, &err), RV_EINVAL);
		assert_int_equal(rv_image_relocate(img, dst, SMALL + 0x2000, 0x12000000, &err), 0);
		memcpy(&v, dst + 0x100, 4);
		assert_int_equal(v, 0x81001234 + 0x12000000);
		memcpy(&v, dst + 0x104, 4);
		assert_int_equal(v, lists == 3 ? 0x81001234 - 0x12000000 : 0x81001234);
		memcpy(&w, dst + 0x108, 8);
		assert_true(w == FAKE_BASE + 0x1234 + 0x12000000);
		rv_image_close(img);
		free(elf.p);
	}
	free(flat);
	free(dst);
}

static void bad_relocs(void **state)
{
	static const int32_t outside[] = {0, 0, (int32_t)0x81000100, 0, (int32_t)0x91000000};
	static const int32_t four[] = {0, 0, 0, 0, 0, 0};
	static const int32_t open_end[] = {5, 0, (int32_t)0x81000100};
	/* 64-bit, four bytes before the end of what is loaded */
	static const int32_t edge[] = {0, (int32_t)(0x81000000 + SMALL - 4), 0, 0};
	uint8_t *flat = small_flat();
	struct fake_buf e;

	(void)state;
	e = fake_elf(flat, SMALL, 0x1000, outside, 5);
	expect_error(e.p, e.len, RV_EBADDATA, "outside the image");
	free(e.p);
	e = fake_elf(flat, SMALL, 0x1000, four, 6);
	expect_error(e.p, e.len, RV_EBADDATA, "left over");
	free(e.p);
	e = fake_elf(flat, SMALL, 0x1000, open_end, 3);
	expect_error(e.p, e.len, RV_EBADDATA, "begin with a 0");
	free(e.p);
	e = fake_elf(flat, SMALL, 0x1000, edge, 4);
	expect_error(e.p, e.len, RV_EBADDATA, "outside the image");
	expect_error(e.p, e.len - 1, RV_EBADDATA, "4 bytes each");
	free(e.p);
	/* A bare vmlinux has none, and says so when asked to move. */
	e = fake_elf(flat, SMALL, 0x1000, NULL, 0);
	{
		struct rv_image *img = open_ok(&e);
		struct rv_err err;

		assert_false(rv_image_info(img)->has_relocs);
		assert_int_equal(rv_image_relocate(img, flat, SMALL, 0x200000, &err),
				 RV_EUNSUPPORTED);
		rv_image_close(img);
	}
	free(e.p);
	free(flat);
}

static void bad_headers(void **state)
{
	uint8_t *flat = small_flat();
	struct fake_buf elf = fake_elf(flat, SMALL, 0x1000, three_lists, 6);
	struct fake_buf bz = fake_bzimage(&elf, RV_PAYLOAD_ZSTD);
	uint32_t big = 600u << 20, ratio = 100u << 20;

	(void)state;
	expect_error((const uint8_t *)"hello", 5, RV_EUNSUPPORTED, "not a kernel");
	bz.p[0x206] = 0x0b; /* protocol 2.11 */
	expect_error(bz.p, bz.len, RV_EUNSUPPORTED, "2.12");
	bz.p[0x206] = 0x0f;
	bz.p[0x236] = 0;
	expect_error(bz.p, bz.len, RV_EUNSUPPORTED, "64-bit");
	bz.p[0x236] = 0x7f;
	bz.p[0x201] = 4;
	expect_error(bz.p, bz.len, RV_EBADDATA, "setup header");
	bz.p[0x201] = 0x6a;
	bz.p[0x24b] = 0x7f;
	expect_error(bz.p, bz.len, RV_EBADDATA, "inside the file");
	bz.p[0x24b] = 0;
	memcpy(bz.p + bz.len - 4, &big, 4);
	expect_error(bz.p, bz.len, RV_EBADDATA, "at most");
	memcpy(bz.p + bz.len - 4, &ratio, 4);
	expect_error(bz.p, bz.len, RV_EBADDATA, "no kernel packs");
	memset(bz.p + bz.len - 4, 0, 4);
	expect_error(bz.p, bz.len, RV_EBADDATA, "size is 0");
	memcpy(bz.p + 0x400, "BZh9", 4);
	expect_error(bz.p, bz.len, RV_EUNSUPPORTED, "bzip2");
	memcpy(bz.p + 0x400, "????", 4);
	expect_error(bz.p, bz.len, RV_EBADDATA, "no known packer");
	elf.p[4] = 1;
	expect_error(elf.p, elf.len, RV_EUNSUPPORTED, "64-bit little endian");
	elf.p[4] = 2;
	elf.p[64 + 16 + 7] = 0; /* top byte of the first segment's address */
	expect_error(elf.p, elf.len, RV_EUNSUPPORTED, "not a kernel");
	elf.p[64 + 16 + 7] = 0xff;
	elf.p[18] = 8;
	expect_error(elf.p, elf.len, RV_EUNSUPPORTED, "machine 8");
	free(bz.p);
	free(elf.p);
	free(flat);
}

/* Whatever is cut off or damaged: an answer, and the sanitizers are content. */
static void truncated_and_flipped(void **state)
{
	static const enum rv_payload all[] = {RV_PAYLOAD_NONE, RV_PAYLOAD_GZIP, RV_PAYLOAD_XZ,
					      RV_PAYLOAD_LZ4, RV_PAYLOAD_ZSTD};
	uint8_t *flat = small_flat();
	struct fake_buf elf = fake_elf(flat, SMALL, 0x1000, three_lists, 6);
	uint32_t x = 77;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct fake_buf b = i ? fake_bzimage(&elf, all[i]) : elf;
		struct rv_image *img;
		struct rv_err err;

		for (size_t cut = 1; cut < b.len; cut += i ? 1 + cut / 256 : 17) {
			uint8_t *m = malloc(cut);

			memcpy(m, b.p, cut);
			if (rv_image_parse(m, cut, &img, &err) == 0)
				rv_image_close(img);
			else
				assert_true(err.what[0] && err.code < 0);
			free(m);
		}
		for (int n = 0; n < 300; n++) {
			size_t at;
			uint8_t old;

			x = x * 1664525 + 1013904223;
			at = (n & 1 ? x >> 8 : (x >> 8) % 0x600) % b.len;
			old = b.p[at];
			b.p[at] ^= (uint8_t)(1u << (x >> 29));
			if (rv_image_parse(b.p, b.len, &img, &err) == 0)
				rv_image_close(img);
			b.p[at] = old;
		}
		if (i)
			free(b.p);
	}
	free(elf.p);
	free(flat);
}

static void check_site(const struct rv_image *img, const char *name, uint32_t off, uint32_t target)
{
	const struct rv_site *s = rv_image_site(img, name);

	assert_non_null(s);
	if (!s->found)
		fail_msg("%s: %s", name, s->reason);
	assert_int_equal(s->va - rv_image_info(img)->link_base, off);
	if (target)
		assert_int_equal(s->target - rv_image_info(img)->link_base, target);
}

static void x86_sites(void **state)
{
	static const int32_t none[] = {0, 0, 0};

	(void)state;
	if (!rv_insn_ready(NULL))
		skip();
	for (int type = 0; type <= 2; type += 2) {
		struct fake_buf flat = fake_x86_kernel(type);
		struct fake_buf elf = fake_elf(flat.p, flat.len, 0x202000, none, 3);
		struct rv_image *img = open_ok(&elf);
		const struct rv_padding *pad = rv_image_padding(img);
		const struct rv_protection *p;
		size_t n = rv_image_protections(img, &p);

		assert_string_equal(rv_image_info(img)->banner, "Linux version 9.9.9-fake #1");
		check_site(img, "mark_rodata_ro", 0x110, 0x200);
		check_site(img, "text_poke_memcpy", 0x305, 0x400);
		check_site(img, "text_poke_memcpy_call", 0x520, 0xc00);
		check_site(img, "syscall64", 0x200030, 0x800);
		check_site(img, "syscall32_fast", 0x200070, 0x900);
		check_site(img, "sysenter32", 0x2000b0, 0xa00);
		check_site(img, "int80", 0x2000f0, 0x200100);
		check_site(img, "module_alloc", 0x630, 0x700);
		check_site(img, "fortify_panic", 0xb00, 0);
		assert_false(rv_image_site(img, "module_alloc_fallback")->found);
		assert_null(rv_image_site(img, "no such site"));
		/* From the terminator on, and not the run behind the entry code. */
		assert_true(pad->found && pad->has_orc);
		assert_int_equal(pad->va - FAKE_BASE, 0x4004);
		assert_int_equal(pad->len, 0x200000 - 0x4004);
		assert_int_equal(pad->orc_va - FAKE_BASE, 0x203040 + 60);
		assert_memory_equal(pad->orc_new, "\x10\x00\xf0\xff\x14", 5);
		assert_int_equal(pad->orc_new[5], type);
		for (size_t i = 0; i < n; i++)
			if (!p[i].supported)
				fail_msg("%s: %s", p[i].name, p[i].reason);
		rv_image_close(img);
		free(elf.p);
		free(flat.p);
	}
}

static struct rv_image *patched(size_t at, const void *bytes, size_t n, struct fake_buf *keep)
{
	static const int32_t none[] = {0, 0, 0};
	struct fake_buf flat = fake_x86_kernel(2), elf;
	struct rv_image *img;

	memcpy(flat.p + at, bytes, n);
	elf = fake_elf(flat.p, flat.len, 0x202000, none, 3);
	img = open_ok(&elf);
	free(flat.p);
	*keep = elf;
	return img;
}

/* Not there, there twice, or in the middle of something: never a site. */
static void x86_sites_refused(void **state)
{
	/* mov eax, imm32 whose immediate begins with what was the call */
	static const uint8_t nops[5] = {0x90, 0x90, 0x90, 0x90, 0x90}, mov[] = {0xb8};
	static const uint8_t twice[] = {0xe8, 0xcb, 0, 0, 0}, one[6] = {1, 2, 3, 4, 5, 6};
	const struct rv_site *s;
	struct rv_image *img;
	struct fake_buf b;

	(void)state;
	if (!rv_insn_ready(NULL))
		skip();
	img = patched(0x110, nops, 5, &b);
	s = rv_image_site(img, "mark_rodata_ro");
	assert_false(s->found);
	assert_non_null(strstr(s->reason, "no direct call"));
	rv_image_close(img);
	free(b.p);
	img = patched(0x130, twice, 5, &b); /* another call of 0x200 */
	s = rv_image_site(img, "mark_rodata_ro");
	assert_false(s->found);
	assert_non_null(strstr(s->reason, "2 times"));
	rv_image_close(img);
	free(b.p);
	img = patched(0x10f, mov, 1, &b);
	s = rv_image_site(img, "mark_rodata_ro");
	assert_false(s->found);
	assert_non_null(strstr(s->reason, "inside another instruction"));
	rv_image_close(img);
	free(b.p);
	/* The terminator is no terminator: the padding stays, the unwind fix does not. */
	img = patched(0x203040 + 60, one, 6, &b);
	assert_true(rv_image_padding(img)->found);
	assert_false(rv_image_padding(img)->has_orc);
	assert_non_null(strstr(rv_image_padding(img)->reason, "terminator"));
	rv_image_close(img);
	free(b.p);
}

static void arm64_image(void **state)
{
	struct fake_buf k = fake_arm64_kernel();
	struct rv_image *img = open_ok(&k);
	const struct rv_image_info *i = rv_image_info(img);
	uint8_t *dst = malloc(i->mem_size);
	const struct rv_protection *p;
	struct rv_err err;
	uint64_t v;

	(void)state;
	assert_int_equal(i->format, RV_IMAGE_ARM64);
	assert_true(i->link_base == FAKE_ARM64_BASE);
	assert_int_equal(i->relocs[2], 300);
	assert_non_null(rv_image_kallsyms(img));
	check_site(img, "mark_rodata_ro", 0x1110, 0x1200);
	check_site(img, "syscall64", 0x1310, 0x1400);
	check_site(img, "insn_write", 0x1500, 0);
	check_site(img, "insn_write_nofault", 0x1510, 0x1600);
	check_site(img, "module_alloc", 0x1710, 0x1800);
	check_site(img, "module_alloc_fallback", 0x1720, 0x1800);
	assert_int_equal(rv_image_padding(img)->va - FAKE_ARM64_BASE, 0x2000);
	assert_int_equal(rv_image_padding(img)->len, 0x4000);
	for (size_t n = rv_image_protections(img, &p); n; n--, p++)
		if (!p->supported)
			fail_msg("%s: %s", p->name, p->reason);
	/* Loaded as the file has it; moved when asked. */
	assert_int_equal(rv_image_load(img, dst, i->mem_size, &err), 0);
	assert_memory_equal(dst, k.p, k.len);
	assert_int_equal(rv_image_relocate(img, dst, i->mem_size, 0x200000, &err), 0);
	memcpy(&v, dst + 0xa008, 8);
	assert_true(v == FAKE_ARM64_BASE + 0x1004 + 0x200000);
	rv_image_close(img);
	free(dst);
	free(k.p);
}

static void check_range(const struct rv_image *img, const char *name, uint64_t from, uint64_t to)
{
	const struct rv_range *r = rv_image_range(img, name);
	uint64_t base = rv_image_info(img)->link_base;

	assert_non_null(r);
	if (!r->found)
		fail_msg("%s: %s", name, r->reason);
	assert_true(r->va - base == from && r->va + r->size - base == to);
	assert_true(r->how[0] && !r->reason[0]);
}

/* Rodata is not found in this image, for a reason that has these words in it. */
static void no_rodata(const struct fake_buf *k, const char *why)
{
	struct rv_image *img = open_ok(k);
	const struct rv_range *r = rv_image_range(img, "rodata");
	const struct rv_protection *p;

	assert_false(r->found);
	assert_true(!r->how[0] && !r->size);
	if (!strstr(r->reason, why))
		fail_msg("\"%s\", expected \"%s\"", r->reason, why);
	for (size_t n = rv_image_protections(img, &p); n; n--, p++)
		if (!strcmp(p->name, "seal"))
			assert_true(!p->supported && strstr(p->reason, "rodata: "));
	rv_image_close(img);
}

/* By symbols, and on arm64 by what two functions compare with. */
static void ranges(void **state)
{
	static const struct {
		uint32_t at, word;
		const char *why;
	} bad[] = {
		{0x1a24, 0x54000043, "no two bounds"}, /* two lower ones */
		{0x1a24, 0x14000002, "no two bounds"}, /* b, not b.hs */
		{0x1a20, 0xeb02001f, "no two bounds"}, /* cmp with another register */
		{0x1a1c, 0x91400063, "no two bounds"}, /* add of a page number */
		{0x1b1c, 0x90000023, "disagree"},      /* adrp to another page */
		{0x1a08, 0x90000001, "disagree"},      /* begins in text */
		{0x1b1c, 0xd503201f, "kstrdup_const"},
	};
	struct fake_buf k = fake_arm64_kernel(), x = fake_x86_kernel(2), e;
	struct rv_image *img = open_ok(&k);

	(void)state;
	check_range(img, "text", 0x1000, 0x6000);
	check_range(img, "rodata", 0x6000, 0xa000);
	assert_non_null(strstr(rv_image_range(img, "rodata")->how, "kfree_const"));
	check_range(img, "copy_to_kernel_nofault", 0x1600, 0x1700);
	assert_null(rv_image_range(img, "data"));
	rv_image_close(img);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t keep;

		memcpy(&keep, k.p + bad[i].at, 4);
		memcpy(k.p + bad[i].at, &bad[i].word, 4);
		no_rodata(&k, bad[i].why);
		memcpy(k.p + bad[i].at, &keep, 4);
	}
	/* Both agree on what cannot be: an end that is no page's, or before the start. */
	for (uint32_t n = 0; n < 2; n++) {
		uint32_t adrp = 0x90000003, add = 0x91004063;

		memcpy(k.p + (n ? 0x1a18 : 0x1a1c), n ? &adrp : &add, 4);
		memcpy(k.p + (n ? 0x1b1c : 0x1b20), n ? &adrp : &add, 4);
		no_rodata(&k, "is no rodata");
	}
	free(k.p);
	e = fake_elf(x.p, x.len, 0x203000, NULL, 0);
	img = open_ok(&e);
	check_range(img, "text", 0, 0x201000);
	check_range(img, "rodata", 0x202000, 0x204800);
	assert_string_equal(rv_image_range(img, "rodata")->how,
			    "symbols __start_rodata, __end_rodata");
	assert_false(rv_image_range(img, "copy_to_kernel_nofault")->found);
	rv_image_close(img);
	free(x.p);
	free(e.p);
}

static void arm64_damaged(void **state)
{
	struct fake_buf k = fake_arm64_kernel();
	struct rv_image *img;
	struct rv_err err;
	uint32_t x = 5;

	(void)state;
	k.p[0x18] = 0xb;
	expect_error(k.p, k.len, RV_EUNSUPPORTED, "big-endian");
	k.p[0x18] = 0xa;
	k.p[0xa006] = 1; /* a field that is neither 0 nor its addend */
	expect_error(k.p, k.len, RV_EBADDATA, "link addresses");
	k.p[0xa006] = 0;
	for (int n = 0; n < 600; n++) {
		size_t at;
		uint8_t old;

		x = x * 1664525 + 1013904223;
		at = (n & 1 ? 0xb000 + (x >> 8) % 0x1c20 : (x >> 8) % k.len) % k.len;
		old = k.p[at];
		k.p[at] ^= (uint8_t)(1u << (x >> 29));
		if (rv_image_parse(k.p, k.len, &img, &err) == 0)
			rv_image_close(img);
		k.p[at] = old;
	}
	for (size_t cut = 1; cut < k.len; cut += 487)
		if (rv_image_parse(k.p, cut, &img, &err) == 0)
			rv_image_close(img);
	free(k.p);
}

static void files(void **state)
{
	char path[] = "/tmp/rv-image-XXXXXX";
	int fd = mkstemp(path);
	struct rv_image *img;
	struct rv_err err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(rv_image_open(path, &img, &err), RV_EBADDATA); /* empty */
	assert_int_equal(rv_image_open("/nonexistent", &img, &err), RV_EOS);
	assert_int_equal(rv_image_open("/", &img, &err), RV_EINVAL);
	assert_int_equal(rv_image_open("/dev/zero", &img, &err), RV_EINVAL);
	close(fd);
	unlink(path);
	rv_image_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_everywhere),
		cmocka_unit_test(relocates),
		cmocka_unit_test(bad_relocs),
		cmocka_unit_test(bad_headers),
		cmocka_unit_test(truncated_and_flipped),
		cmocka_unit_test(x86_sites),
		cmocka_unit_test(x86_sites_refused),
		cmocka_unit_test(arm64_image),
		cmocka_unit_test(ranges),
		cmocka_unit_test(arm64_damaged),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
