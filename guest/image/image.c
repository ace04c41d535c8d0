/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: opens a kernel image of any format, runs the finders, answers questions. */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BANNER	    "Linux version "
#define BANNERS_MAX 16 /* an image has one or two */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const uint8_t *rv_image_bytes(const struct rv_image *img, uint64_t va, uint64_t len)
{
	uint64_t off = va - img->info.link_base;

	if (off > img->info.flat_size || len > img->info.flat_size - off)
		return NULL;
	return img->flat + off;
}

const struct section *rv_image_section(const struct rv_image *img, const char *name)
{
	uint32_t i;

	for (i = 0; i < img->section_count; i++)
		if (strcmp(img->sections[i].name, name) == 0)
			return &img->sections[i];
	return NULL;
}

/* The last slot is reused if a file here adds more than there are: a bug, not a crash. */
#define ADD(array, count, max) (&(array)[(count) < (max) ? (count)++ : (max)-1])

struct rv_site *rv_site_add(struct rv_image *img, const char *name)
{
	struct rv_site *s = ADD(img->sites, img->site_count, RV_SITES_MAX);

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", name);
	return s;
}

struct rv_table *rv_table_add(struct rv_image *img, const char *name)
{
	struct rv_table *t = ADD(img->tables, img->table_count, RV_TABLES_MAX);

	memset(t, 0, sizeof(*t));
	snprintf(t->name, sizeof(t->name), "%s", name);
	return t;
}

const struct rv_table *rv_table_get(const struct rv_image *img, const char *name)
{
	size_t i;

	for (i = 0; i < img->table_count; i++)
		if (strcmp(img->tables[i].name, name) == 0)
			return &img->tables[i];
	return NULL;
}

/* Up to the line end; numbered is true where it has "#1": the build's number. */
static size_t banner_len(const struct rv_image *img, const uint8_t *p, bool *numbered)
{
	size_t room = img->info.flat_size - (size_t)(p - img->flat), n = 0;

	*numbered = false;
	if (room > sizeof(img->info.banner) - 1)
		room = sizeof(img->info.banner) - 1;
	for (; n < room && p[n] >= ' ' && p[n] < 0x7f; n++)
		if (n && p[n - 1] == '#' && p[n] >= '0' && p[n] <= '9')
			*numbered = true;
	return n;
}

/*
 * "Linux version 6.1.0-... (...) #1 SMP ..." without the line end. By symbol, or the
 * first with a number: the one without is a weak stand-in for the first link.
 */
static void banner_find(struct rv_image *img, const struct rv_symbol_want *w)
{
	const uint8_t *p = NULL, *end = img->flat + img->info.flat_size, *at = img->flat;
	size_t n = 0;
	bool numbered = false;
	int i;

	if (w->count)
		p = rv_image_bytes(img, w->va, sizeof(BANNER));
	if (p && memcmp(p, BANNER, sizeof(BANNER) - 1) == 0) {
		n = banner_len(img, p, &numbered);
		numbered = true;
	}
	for (i = 0; i < BANNERS_MAX && !numbered; i++) {
		at = memmem(at, (size_t)(end - at), BANNER, sizeof(BANNER) - 1);
		if (!at)
			break;
		p = at++;
		n = banner_len(img, p, &numbered);
	}
	if (!p || !n)
		return;
	memcpy(img->info.banner, p, n);
	img->info.banner[n] = 0;
}

/* kallsyms, if there is one: a kernel without it opens all the same. */
static void symbols_find(struct rv_image *img)
{
	struct rv_err err;
	struct rv_kallsyms *k = &img->ksyms;

	k->mem = img->flat;
	k->len = img->info.flat_size;
	k->link_base = img->info.link_base;
	if (rv_kallsyms_find(k->mem, k->len, k->link_base, img->info.arch, &k->lay, &err) == 0)
		img->has_ksyms = true;
	else
		snprintf(img->info.symbols_reason, sizeof(img->info.symbols_reason), "%.110s",
			 err.what);
}

static void text_find(struct rv_image *img, const struct rv_symbol_want *w)
{
	if (!w[N_STEXT].count || !w[N_ETEXT].count || w[N_ETEXT].va <= w[N_STEXT].va ||
	    !rv_image_bytes(img, w[N_STEXT].va, w[N_ETEXT].va - w[N_STEXT].va))
		return;
	img->text_va = w[N_STEXT].va;
	img->text_len = w[N_ETEXT].va - w[N_STEXT].va;
}

static int understand(struct rv_image *img, struct rv_err *err)
{
	struct rv_symbol_want w[N_COUNT];
	int rc;

	symbols_find(img);
	rc = rv_names_resolve(img, w, err);
	if (rc)
		return rc;
	banner_find(img, &w[N_BANNER]);
	text_find(img, w);
	rv_btf_find(img, w);
	rv_tables_find(img, w);
	rv_ranges_find(img, w);
	rv_padding_find(img, w);
	if (img->info.arch == RV_ARCH_X86_64)
		rv_sites_find_x86(img, w);
	else
		rv_sites_find_arm64(img, w);
	rv_protections_find(img);
	return 0;
}

static int parse(struct rv_image *img, uint8_t **buf, size_t len, struct rv_err *err)
{
	bool done = false;
	int rc;

	if (rv_elf_is(*buf, len))
		return rv_elf_parse(img, buf, len, err);
	if (rv_bzimage_is(*buf, len))
		return rv_bzimage_parse(img, *buf, len, err);
	if (rv_arm64_is(*buf, len))
		return rv_arm64_parse(img, buf, len, err);
	rc = rv_arm64_wrapped_parse(img, *buf, len, &done, err);
	if (rc || done)
		return rc;
	return rv_err_at(err, RV_EUNSUPPORTED, 0, "image",
			 "not a kernel: expected a bzImage, an ELF file or an arm64 Image");
}

/* Takes over buf, whatever comes of it. */
static int open_buf(uint8_t *buf, size_t len, uint64_t t0, struct rv_image **out,
		    struct rv_err *err)
{
	struct rv_image *img = calloc(1, sizeof(*img));
	int rc;

	if (!img) {
		free(buf);
		return rv_err_set(err, RV_ENOMEM, "image", "no memory for an image");
	}
	rc = parse(img, &buf, len, err);
	free(buf);
	if (!rc && img->info.arch == RV_ARCH_ARM64) {
		rc = rv_rela_find(img, err);
		/* Without relocations everything that needs addresses is left out. */
		if (rc == RV_ENOSYM)
			rc = 0;
	}
	if (!rc)
		rc = understand(img, err);
	if (rc) {
		rv_image_close(img);
		return rc;
	}
	img->info.read_ns = now_ns() - t0 - img->info.unpack_ns;
	*out = img;
	return 0;
}

int rv_image_parse(const void *buf, size_t len, struct rv_image **out, struct rv_err *err)
{
	uint64_t t0 = now_ns();
	uint8_t *copy;

	if (!buf || len == 0 || len > RV_IMAGE_MAX)
		return rv_err_set(err, RV_EBADDATA, "image", "%zu bytes, expected 1 to %llu", len,
				  (unsigned long long)RV_IMAGE_MAX);
	copy = rv_unpack_buf(len);
	if (!copy)
		return rv_err_set(err, RV_ENOMEM, "image", "no memory for %zu bytes", len);
	memcpy(copy, buf, len);
	return open_buf(copy, len, t0, out, err);
}

/* Read, not mapped: a file that shrinks while it is mapped would kill the reader. */
static int file_read(int fd, uint8_t **buf_out, size_t *len_out, struct rv_err *err)
{
	struct stat st;
	uint8_t *buf;
	size_t len, got = 0;

	if (fstat(fd, &st))
		return rv_err_os(err, "image", "fstat");
	if (!S_ISREG(st.st_mode))
		return rv_err_set(err, RV_EINVAL, "image", "not a regular file");
	if (st.st_size <= 0 || (uint64_t)st.st_size > RV_IMAGE_MAX)
		return rv_err_set(err, RV_EBADDATA, "image", "%lld bytes, expected 1 to %llu",
				  (long long)st.st_size, (unsigned long long)RV_IMAGE_MAX);
	len = (size_t)st.st_size;
	buf = rv_unpack_buf(len);
	if (!buf)
		return rv_err_set(err, RV_ENOMEM, "image", "no memory for %zu bytes", len);
	while (got < len) {
		ssize_t n = read(fd, buf + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int rc = n < 0 ? rv_err_os(err, "image", "read")
				       : rv_err_at(err, RV_EBADDATA, got, "image",
						   "the file ends here, expected %zu bytes", len);

			free(buf);
			return rc;
		}
		got += (size_t)n;
	}
	*buf_out = buf;
	*len_out = len;
	return 0;
}

int rv_image_open_fd(int fd, struct rv_image **out, struct rv_err *err)
{
	uint64_t t0 = now_ns();
	uint8_t *buf = NULL;
	size_t len = 0;
	int rc = file_read(fd, &buf, &len, err);

	return rc ? rc : open_buf(buf, len, t0, out, err);
}

int rv_image_open(const char *path, struct rv_image **out, struct rv_err *err)
{
	int fd, rc;

	/* O_NONBLOCK: a FIFO must not hold us up before fstat() can refuse it. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_err_os(err, "image", "open");
	rc = rv_image_open_fd(fd, out, err);
	close(fd);
	return rc;
}

void rv_image_close(struct rv_image *img)
{
	if (!img)
		return;
	free(img->buf);
	free(img->reloc_store);
	free(img);
}

const struct rv_image_info *rv_image_info(const struct rv_image *img)
{
	return &img->info;
}

int rv_image_load(const struct rv_image *img, void *dst, size_t dst_len, struct rv_err *err)
{
	const struct rv_image_info *i = &img->info;

	if (!dst || dst_len < i->mem_size)
		return rv_err_set(err, RV_EINVAL, "image",
				  "%zu bytes to load into, expected %llu or more", dst_len,
				  (unsigned long long)i->mem_size);
	memcpy(dst, img->flat, i->flat_size);
	memset((uint8_t *)dst + i->flat_size, 0, i->mem_size - i->flat_size);
	if (i->arch == RV_ARCH_ARM64 && i->has_relocs)
		rv_rela_strip(img, dst);
	return 0;
}

size_t rv_image_sites(const struct rv_image *img, const struct rv_site **out)
{
	*out = img->sites;
	return img->site_count;
}

size_t rv_image_tables(const struct rv_image *img, const struct rv_table **out)
{
	*out = img->tables;
	return img->table_count;
}

size_t rv_image_protections(const struct rv_image *img, const struct rv_protection **out)
{
	*out = img->protections;
	return img->protection_count;
}

const struct rv_site *rv_image_site(const struct rv_image *img, const char *name)
{
	size_t i;

	for (i = 0; i < img->site_count; i++)
		if (strcmp(img->sites[i].name, name) == 0)
			return &img->sites[i];
	return NULL;
}

size_t rv_image_ranges(const struct rv_image *img, const struct rv_range **out)
{
	*out = img->ranges;
	return img->range_count;
}

const struct rv_range *rv_image_range(const struct rv_image *img, const char *name)
{
	size_t i;

	for (i = 0; i < img->range_count; i++)
		if (strcmp(img->ranges[i].name, name) == 0)
			return &img->ranges[i];
	return NULL;
}

const struct rv_padding *rv_image_padding(const struct rv_image *img)
{
	return &img->padding;
}

const struct rv_kallsyms *rv_image_kallsyms(const struct rv_image *img)
{
	return img->has_ksyms ? &img->ksyms : NULL;
}

bool rv_image_btf(const struct rv_image *img, uint64_t *va, uint64_t *size)
{
	if (!img->btf_size)
		return false;
	*va = img->btf_va;
	*size = img->btf_size;
	return true;
}
