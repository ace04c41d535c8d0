/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64.c: the arm64 Image (Documentation/arch/arm64/booting.rst), raw, gzip-wrapped
 * or inside an EFI zboot (include/linux/pe.h and drivers/firmware/efi/libstub/zboot-header.S).
 */
#include "parts.h"

#include <stdlib.h>

#define IMAGE_MAGIC	0x644d5241u /* "ARMd" */
#define IMAGE_MAGIC_OFF 0x38
#define TEXT_OFFSET_OFF 0x08
#define IMAGE_SIZE_OFF	0x10
#define FLAGS_OFF	0x18
#define HEADER_SIZE	0x40
#define FLAG_BIG_ENDIAN 1u
#define IMAGE_SIZE_MAX	(1ull << 30)

/* zboot: "MZ", 2 bytes, "zimg", u32 offset, u32 size of the payload, 8 reserved, packer name. */
#define ZBOOT_MAGIC_OFF	  4
#define ZBOOT_PAYLOAD_OFF 8
#define ZBOOT_COMP_OFF	  24

bool rv_arm64_is(const uint8_t *file, size_t len)
{
	uint32_t magic = 0;

	return rv_get(file, len, IMAGE_MAGIC_OFF, &magic, sizeof(magic)) && magic == IMAGE_MAGIC &&
	       len >= HEADER_SIZE;
}

int rv_arm64_parse(struct rv_image *img, uint8_t **buf, size_t len, struct rv_err *err)
{
	uint64_t text_offset, size, flags;

	memcpy(&text_offset, *buf + TEXT_OFFSET_OFF, 8);
	memcpy(&size, *buf + IMAGE_SIZE_OFF, 8);
	memcpy(&flags, *buf + FLAGS_OFF, 8);
	if (flags & FLAG_BIG_ENDIAN)
		return rv_err_at(err, RV_EUNSUPPORTED, FLAGS_OFF, "arm64", "a big-endian kernel");
	if (size == 0)
		return rv_err_at(err, RV_EUNSUPPORTED, IMAGE_SIZE_OFF, "arm64",
				 "image_size is 0: a kernel before v3.17");
	if (size > IMAGE_SIZE_MAX)
		return rv_err_at(err, RV_EBADDATA, IMAGE_SIZE_OFF, "arm64",
				 "image_size 0x%llx, expected at most 1 GiB",
				 (unsigned long long)size);
	if (text_offset >= (2u << 20))
		return rv_err_at(err, RV_EBADDATA, TEXT_OFFSET_OFF, "arm64",
				 "text_offset 0x%llx, expected less than 2 MiB",
				 (unsigned long long)text_offset);
	img->info.format = RV_IMAGE_ARM64;
	img->info.arch = RV_ARCH_ARM64;
	img->info.text_offset = text_offset;
	img->info.arm64_flags = flags;
	/*
	 * A signed file has its signature behind the image; of a damaged one less is
	 * there than image_size, which is bss and fine.
	 */
	img->info.flat_size = len < size ? len : size;
	img->info.mem_size = size;
	img->flat = img->buf = *buf;
	*buf = NULL;
	return 0;
}

static int unpack_parse(struct rv_image *img, const uint8_t *src, uint64_t len, uint64_t off,
			enum rv_payload how, struct rv_err *err)
{
	uint32_t size;
	uint8_t *buf;
	int rc;

	if (len < 8)
		return rv_err_at(err, RV_EBADDATA, off, "arm64", "a payload of %llu bytes",
				 (unsigned long long)len);
	memcpy(&size, src + len - 4, 4);
	rc = rv_unpack_size_check(len, size, off + len - 4, err);
	if (rc)
		return rc;
	buf = rv_unpack_buf(size);
	if (!buf)
		return rv_err_set(err, RV_ENOMEM, "arm64", "no memory for %u bytes", size);
	img->info.payload = how;
	if (how != RV_PAYLOAD_GZIP)
		len -= 4;
	rc = rv_unpack(how, src, len, off, buf, size, err);
	if (!rc && !rv_arm64_is(buf, size))
		rc = rv_err_at(err, RV_EUNSUPPORTED, off, "arm64",
			       "unpacks to something that is no arm64 Image");
	if (!rc)
		rc = rv_arm64_parse(img, &buf, size, err);
	free(buf);
	return rc;
}

int rv_arm64_wrapped_parse(struct rv_image *img, const uint8_t *file, size_t len, bool *done,
			   struct rv_err *err)
{
	uint32_t where[2];

	*done = true;
	if (rv_unpack_detect(file, len) == RV_PAYLOAD_GZIP)
		return unpack_parse(img, file, len, 0, RV_PAYLOAD_GZIP, err);
	if (len > ZBOOT_COMP_OFF + 8 && memcmp(file, "MZ", 2) == 0 &&
	    memcmp(file + ZBOOT_MAGIC_OFF, "zimg", 4) == 0) {
		enum rv_payload how;

		memcpy(where, file + ZBOOT_PAYLOAD_OFF, sizeof(where));
		if (where[0] > len || where[1] > len - where[0])
			return rv_err_at(err, RV_EBADDATA, ZBOOT_PAYLOAD_OFF, "arm64",
					 "the zboot payload lies outside the file");
		how = rv_unpack_detect(file + where[0], where[1]);
		if (how == RV_PAYLOAD_NONE)
			return rv_err_at(
				err, RV_EUNSUPPORTED, where[0], "arm64",
				"zboot packed with \"%.8s\", expected gzip, xz, lz4 or zstd",
				(const char *)file + ZBOOT_COMP_OFF);
		return unpack_parse(img, file + where[0], where[1], where[0], how, err);
	}
	*done = false;
	return 0;
}
