/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bzimage.c: the x86 boot protocol header and the payload behind it.
 * Fields and offsets: Documentation/arch/x86/boot.rst.
 */
#include "parts.h"

#include <stdlib.h>
#include <time.h>

#define SETUP_HDR      0x1f1 /* setup_sects, the first field */
#define BOOT_FLAG      0x1fe
#define HDR_JUMP       0x201 /* low byte: the header ends at 0x202 + this */
#define HDR_MAGIC      0x202
#define HDR_VERSION    0x206
#define INITRD_MAX     0x22c
#define RELOCATABLE    0x234
#define XLOADFLAGS     0x236
#define CMDLINE_SIZE   0x238
#define PAYLOAD_OFFSET 0x248
#define PAYLOAD_LENGTH 0x24c
#define PREF_ADDRESS   0x258
#define INIT_SIZE      0x260
#define HDR_MIN_END    0x264 /* the last field that we read, 2.12 */

/* 2.12 (v3.8) brought xloadflags, which says whether there is a 64-bit entry. */
#define PROTOCOL_MIN  0x020c
#define XLF_KERNEL_64 1u

bool rv_bzimage_is(const uint8_t *file, size_t len)
{
	return len > HDR_MAGIC + 4 && memcmp(file + HDR_MAGIC, "HdrS", 4) == 0 &&
	       file[BOOT_FLAG] == 0x55 && file[BOOT_FLAG + 1] == 0xaa;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int header_parse(struct rv_image_info *info, const uint8_t *file, size_t len,
			struct rv_err *err)
{
	uint32_t end;

	if (len < HDR_MIN_END)
		return rv_err_at(err, RV_EBADDATA, len, "bzimage",
				 "the file ends inside the setup header, expected 0x%x bytes",
				 HDR_MIN_END);
	memcpy(&info->boot_protocol, file + HDR_VERSION, 2);
	if (info->boot_protocol < PROTOCOL_MIN)
		return rv_err_at(err, RV_EUNSUPPORTED, HDR_VERSION, "bzimage",
				 "boot protocol %u.%u, expected 2.12 or later",
				 info->boot_protocol >> 8, info->boot_protocol & 0xff);
	end = HDR_MAGIC + file[HDR_JUMP];
	if (end < HDR_MIN_END || end > len)
		return rv_err_at(
			err, RV_EBADDATA, HDR_JUMP, "bzimage",
			"the setup header ends at 0x%x, expected 0x%x or more inside the file", end,
			HDR_MIN_END);
	info->setup_hdr_len = end - SETUP_HDR;
	if (info->setup_hdr_len > sizeof(info->setup_hdr))
		info->setup_hdr_len = sizeof(info->setup_hdr);
	memcpy(info->setup_hdr, file + SETUP_HDR, info->setup_hdr_len);
	memcpy(&info->xloadflags, file + XLOADFLAGS, 2);
	if (!(info->xloadflags & XLF_KERNEL_64))
		return rv_err_at(err, RV_EUNSUPPORTED, XLOADFLAGS, "bzimage",
				 "no 64-bit entry point (xloadflags 0x%x): a 32-bit kernel",
				 info->xloadflags);
	memcpy(&info->init_size, file + INIT_SIZE, 4);
	memcpy(&info->pref_address, file + PREF_ADDRESS, 8);
	memcpy(&info->cmdline_size, file + CMDLINE_SIZE, 4);
	memcpy(&info->initrd_addr_max, file + INITRD_MAX, 4);
	return 0;
}

/* Where the payload lies: behind the setup sectors, as the header says. */
static int payload_find(const uint8_t *file, size_t len, uint64_t *off_out, uint64_t *len_out,
			struct rv_err *err)
{
	uint32_t sects = file[SETUP_HDR] ? file[SETUP_HDR] : 4;
	uint32_t rel, size;
	uint64_t off;

	memcpy(&rel, file + PAYLOAD_OFFSET, 4);
	memcpy(&size, file + PAYLOAD_LENGTH, 4);
	off = (uint64_t)(sects + 1) * 512 + rel;
	if (off >= len || size > len - off)
		return rv_err_at(
			err, RV_EBADDATA, PAYLOAD_OFFSET, "bzimage",
			"the payload is 0x%llx..0x%llx, expected it inside the file's 0x%zx",
			(unsigned long long)off, (unsigned long long)off + size, len);
	if (size < 8)
		return rv_err_at(err, RV_EBADDATA, PAYLOAD_LENGTH, "bzimage",
				 "a payload of %u bytes", size);
	*off_out = off;
	*len_out = size;
	return 0;
}

int rv_bzimage_parse(struct rv_image *img, const uint8_t *file, size_t len, struct rv_err *err)
{
	uint64_t off = 0, packed = 0, t;
	uint32_t unpacked;
	uint8_t *buf;
	int rc;

	img->info.format = RV_IMAGE_BZIMAGE;
	rc = header_parse(&img->info, file, len, err);
	if (!rc)
		rc = payload_find(file, len, &off, &packed, err);
	if (rc)
		return rc;
	img->info.payload = rv_unpack_detect(file + off, packed);
	if (img->info.payload == RV_PAYLOAD_NONE) {
		const char *name = rv_unpack_foreign(file + off, packed);

		return rv_err_at(err, name ? RV_EUNSUPPORTED : RV_EBADDATA, off, "bzimage",
				 "the payload is %s, expected gzip, xz, lz4 or zstd",
				 name ? name : "of no known packer");
	}
	memcpy(&unpacked, file + off + packed - 4, 4);
	rc = rv_unpack_size_check(packed, unpacked, off + packed - 4, err);
	if (rc)
		return rc;
	buf = rv_unpack_buf(unpacked);
	if (!buf)
		return rv_err_set(err, RV_ENOMEM, "bzimage", "no memory for %u bytes", unpacked);
	/* gzip's own trailer is the size; the others have it behind their data. */
	if (img->info.payload != RV_PAYLOAD_GZIP)
		packed -= 4;
	t = now_ns();
	rc = rv_unpack(img->info.payload, file + off, packed, off, buf, unpacked, err);
	img->info.unpack_ns = now_ns() - t;
	if (!rc && !rv_elf_is(buf, unpacked))
		rc = rv_err_at(err, RV_EBADDATA, off, "bzimage",
			       "the payload unpacks to something that is no ELF file");
	if (!rc)
		rc = rv_elf_parse(img, &buf, unpacked, err);
	free(buf);
	return rc;
}
