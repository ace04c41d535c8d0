/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c: the kernel's payload formats, straight into one buffer of known size.
 *
 * The size is known beforehand: the kernel's build appends it to the payload
 * (scripts/Makefile.lib, size_append), and gzip ends with it anyway.
 */
#include "parts.h"

#include <lz4.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#define HUGE_PAGE (2u << 20)

/* A block of the LZ4 legacy format expands to at most 8 MiB (LZ4 frame format, "Legacy frame"). */
#define LZ4_BLOCK (8u << 20)
#define LZ4_MAGIC 0x184c2102u

/*
 * Memory that an xz stream may ask of the decoder: the kernel's xz_wrap.sh uses a
 * 32 MiB dictionary (128 MiB since v6.12); a single-call decoder needs it once more.
 */
#define XZ_MEMORY (256ull << 20)

/* Kernels pack 3 to 7 times. Small files are allowed any ratio up to this size. */
#define RATIO_MAX  64
#define RATIO_FREE (4u << 20)

uint8_t *rv_unpack_buf(size_t len)
{
	void *p;

	if (len == 0 || len > RV_IMAGE_MAX)
		return NULL;
	/* A kernel is 14,000 small pages, each a fault; as huge pages it is 28. */
	if (posix_memalign(&p, len >= HUGE_PAGE ? HUGE_PAGE : 4096, len))
		return NULL;
	if (len >= HUGE_PAGE)
		(void)madvise(p, len, MADV_HUGEPAGE);
	return p;
}

enum rv_payload rv_unpack_detect(const uint8_t *src, size_t len)
{
	static const struct {
		enum rv_payload how;
		uint8_t n, magic[6];
	} known[] = {
		{RV_PAYLOAD_GZIP, 2, {0x1f, 0x8b}},
		{RV_PAYLOAD_XZ, 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
		{RV_PAYLOAD_LZ4, 4, {0x02, 0x21, 0x4c, 0x18}},
		{RV_PAYLOAD_ZSTD, 4, {0x28, 0xb5, 0x2f, 0xfd}},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (len >= known[i].n && memcmp(src, known[i].magic, known[i].n) == 0)
			return known[i].how;
	return RV_PAYLOAD_NONE;
}

const char *rv_unpack_foreign(const uint8_t *src, size_t len)
{
	if (len >= 3 && memcmp(src, "BZh", 3) == 0)
		return "bzip2";
	if (len >= 4 && memcmp(src, "\x89LZO", 4) == 0)
		return "lzo";
	if (len >= 3 && memcmp(src, "\x5d\0\0", 3) == 0)
		return "lzma";
	return NULL;
}

int rv_unpack_size_check(uint64_t packed, uint64_t unpacked, uint64_t at, struct rv_err *err)
{
	if (unpacked == 0)
		return rv_err_at(err, RV_EBADDATA, at, "unpack", "the unpacked size is 0");
	if (unpacked > RV_IMAGE_MAX)
		return rv_err_at(err, RV_EBADDATA, at, "unpack",
				 "unpacked size %llu, expected at most %llu",
				 (unsigned long long)unpacked, (unsigned long long)RV_IMAGE_MAX);
	if (unpacked > RATIO_FREE && unpacked / RATIO_MAX > packed)
		return rv_err_at(err, RV_EBADDATA, at, "unpack",
				 "%llu bytes claim to unpack to %llu: no kernel packs %d times",
				 (unsigned long long)packed, (unsigned long long)unpacked,
				 RATIO_MAX);
	return 0;
}

static int short_output(struct rv_err *err, uint64_t at, size_t got, size_t want)
{
	return rv_err_at(err, RV_EBADDATA, at, "unpack", "%zu bytes unpacked, expected %zu", got,
			 want);
}

static int unpack_gzip(const uint8_t *src, size_t len, uint64_t src_off, uint8_t *dst, size_t want,
		       struct rv_err *err)
{
	z_stream z = {0};
	int rc;

	/* 15 + 16: the largest window, and a gzip header (RFC 1952) expected. */
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return rv_err_set(err, RV_ENOMEM, "unpack", "no memory for zlib");
	z.next_in = (Bytef *)(uintptr_t)src;
	z.avail_in = (uInt)len;
	z.next_out = dst;
	z.avail_out = (uInt)want;
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (rc != Z_STREAM_END && z.avail_out)
		return rv_err_at(err, RV_EBADDATA, src_off + z.total_in, "unpack",
				 "damaged gzip data: %.80s", z.msg ? z.msg : "it ends early");
	if (rc != Z_STREAM_END)
		return rv_err_at(err, RV_EBADDATA, src_off + z.total_in, "unpack",
				 "gzip data goes on after %zu bytes, the size that was announced",
				 want);
	if (z.total_out != want)
		return short_output(err, src_off + z.total_in, z.total_out, want);
	return 0;
}

static int unpack_xz(const uint8_t *src, size_t len, uint64_t src_off, uint8_t *dst, size_t want,
		     struct rv_err *err)
{
	uint64_t mem = XZ_MEMORY;
	size_t in = 0, out = 0;
	lzma_ret rc = lzma_stream_buffer_decode(&mem, 0, NULL, src, &in, len, dst, &out, want);

	if (rc == LZMA_MEMLIMIT_ERROR)
		return rv_err_at(err, RV_EBADDATA, src_off, "unpack",
				 "xz data needs %llu bytes of memory, expected at most %llu",
				 (unsigned long long)mem, (unsigned long long)XZ_MEMORY);
	if (rc != LZMA_OK)
		return rv_err_at(err, RV_EBADDATA, src_off + in, "unpack",
				 "damaged xz data (liblzma code %d, expected %d)", (int)rc,
				 LZMA_OK);
	if (out != want)
		return short_output(err, src_off + in, out, want);
	return 0;
}

static int unpack_lz4(const uint8_t *src, size_t len, uint64_t src_off, uint8_t *dst, size_t want,
		      struct rv_err *err)
{
	size_t in = 4, out = 0;

	while (in < len && out < want) {
		size_t room = want - out < LZ4_BLOCK ? want - out : LZ4_BLOCK;
		uint32_t size;
		int n;

		if (!rv_get(src, len, in, &size, sizeof(size)))
			return rv_err_at(err, RV_EBADDATA, src_off + in, "unpack",
					 "lz4: the size of a block is cut off");
		in += sizeof(size);
		/* Frames may follow one another (lz4 -l of concatenated input). */
		if (size == LZ4_MAGIC)
			continue;
		if (size == 0 || size > len - in)
			return rv_err_at(err, RV_EBADDATA, src_off + in - 4, "unpack",
					 "lz4: a block of %u bytes, %zu are left", size, len - in);
		n = LZ4_decompress_safe((const char *)src + in, (char *)dst + out, (int)size,
					(int)room);
		if (n <= 0)
			return rv_err_at(err, RV_EBADDATA, src_off + in, "unpack",
					 "lz4: a damaged block");
		in += size;
		out += (size_t)n;
	}
	if (out != want)
		return short_output(err, src_off + in, out, want);
	if (in != len)
		return rv_err_at(err, RV_EBADDATA, src_off + in, "unpack",
				 "lz4: %zu bytes left over after %zu, the size that was announced",
				 len - in, want);
	return 0;
}

static int unpack_zstd(const uint8_t *src, size_t len, uint64_t src_off, uint8_t *dst, size_t want,
		       struct rv_err *err)
{
	size_t n = ZSTD_decompress(dst, want, src, len);

	if (ZSTD_isError(n))
		return rv_err_at(err, RV_EBADDATA, src_off, "unpack", "damaged zstd data: %.100s",
				 ZSTD_getErrorName(n));
	if (n != want)
		return short_output(err, src_off, n, want);
	return 0;
}

int rv_unpack(enum rv_payload how, const uint8_t *src, size_t len, uint64_t src_off, uint8_t *dst,
	      size_t dst_len, struct rv_err *err)
{
	switch (how) {
	case RV_PAYLOAD_GZIP: return unpack_gzip(src, len, src_off, dst, dst_len, err);
	case RV_PAYLOAD_XZ: return unpack_xz(src, len, src_off, dst, dst_len, err);
	case RV_PAYLOAD_LZ4: return unpack_lz4(src, len, src_off, dst, dst_len, err);
	case RV_PAYLOAD_ZSTD: return unpack_zstd(src, len, src_off, dst, dst_len, err);
	default: return rv_err_at(err, RV_EUNSUPPORTED, src_off, "unpack", "no packer of ours");
	}
}
