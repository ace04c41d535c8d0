/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.c: a vmlinux ELF file becomes one flat buffer, laid out by physical address.
 *
 * By p_paddr, not p_vaddr: the x86 per-CPU segment is linked at virtual address 0
 * (until v6.14) and still lies in its physical place. The segments are moved inside
 * the buffer that holds the file, because a second 50 MiB buffer would cost more
 * than everything else that is done here.
 */
#include "parts.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* Virtual and physical size that x86 maps for the kernel image (KERNEL_IMAGE_SIZE). */
#define SPAN_MAX (1ull << 30)

/* Kernels are linked at the top: x86 in the last 2 GiB, arm64 in the upper half. */
#define LINK_LOW_X86   0xffffffff80000000ull
#define LINK_LOW_ARM64 0xff80000000000000ull

/* Room between segments, beyond the bytes that are in the file. */
#define GAPS_MAX (64ull << 20)

struct segment {
	uint64_t off, dst, filesz, memsz;
};

struct layout {
	struct segment seg[RV_SEGMENTS_MAX];
	uint32_t count;
	uint64_t flat_size, mem_size;
	uint64_t file_end; /* of everything that the headers name */
};

bool rv_elf_is(const uint8_t *file, size_t len)
{
	return len >= sizeof(Elf64_Ehdr) && memcmp(file, ELFMAG, SELFMAG) == 0;
}

static int header_check(struct rv_image *img, const Elf64_Ehdr *eh, struct rv_err *err)
{
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return rv_err_at(err, RV_EUNSUPPORTED, EI_CLASS, "elf",
				 "class %u, data %u: expected 64-bit little endian",
				 eh->e_ident[EI_CLASS], eh->e_ident[EI_DATA]);
	if (eh->e_machine == EM_X86_64)
		img->info.arch = RV_ARCH_X86_64;
	else if (eh->e_machine == EM_AARCH64)
		img->info.arch = RV_ARCH_ARM64;
	else
		return rv_err_at(err, RV_EUNSUPPORTED, offsetof(Elf64_Ehdr, e_machine), "elf",
				 "machine %u, expected x86-64 (62) or AArch64 (183)",
				 eh->e_machine);
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return rv_err_at(err, RV_EUNSUPPORTED, offsetof(Elf64_Ehdr, e_type), "elf",
				 "type %u, expected an executable (a vmlinux)", eh->e_type);
	if (eh->e_phentsize != sizeof(Elf64_Phdr))
		return rv_err_at(err, RV_EBADDATA, offsetof(Elf64_Ehdr, e_phentsize), "elf",
				 "program headers of %u bytes, expected %zu", eh->e_phentsize,
				 sizeof(Elf64_Phdr));
	img->info.entry = eh->e_entry;
	return 0;
}

static int segment_add(struct rv_image *img, struct layout *l, const Elf64_Phdr *ph, size_t len,
		       uint64_t at, struct rv_err *err)
{
	struct segment *s, *prev = l->count ? &l->seg[l->count - 1] : NULL;

	if (l->count == RV_SEGMENTS_MAX)
		return rv_err_at(err, RV_EBADDATA, at, "elf", "more than %d segments",
				 RV_SEGMENTS_MAX);
	if (ph->p_offset > len || ph->p_filesz > len - ph->p_offset)
		return rv_err_at(err, RV_EBADDATA, at, "elf",
				 "a segment of 0x%llx bytes at 0x%llx, expected it inside 0x%zx",
				 (unsigned long long)ph->p_filesz, (unsigned long long)ph->p_offset,
				 len);
	if (ph->p_filesz > ph->p_memsz)
		return rv_err_at(err, RV_EBADDATA, at, "elf",
				 "a segment has more bytes in the file than in memory");
	s = &l->seg[l->count];
	if (!prev) {
		img->info.link_base = ph->p_vaddr;
		img->info.phys_base = ph->p_paddr;
	}
	if (ph->p_paddr < img->info.phys_base || ph->p_memsz > SPAN_MAX ||
	    ph->p_paddr - img->info.phys_base > SPAN_MAX - ph->p_memsz)
		return rv_err_at(
			err, RV_EBADDATA, at, "elf",
			"a segment at 0x%llx, expected within 1 GiB above the first, 0x%llx",
			(unsigned long long)ph->p_paddr, (unsigned long long)img->info.phys_base);
	s->off = ph->p_offset;
	s->dst = ph->p_paddr - img->info.phys_base;
	s->filesz = ph->p_filesz;
	s->memsz = ph->p_memsz;
	if (prev && s->dst < prev->dst + prev->memsz)
		return rv_err_at(err, RV_EBADDATA, at, "elf",
				 "segments overlap or are not in order of address");
	l->count++;
	if (s->filesz)
		l->flat_size = s->dst + s->filesz;
	l->mem_size = s->dst + s->memsz;
	return 0;
}

static int segments_read(struct rv_image *img, struct layout *l, const uint8_t *file, size_t len,
			 struct rv_err *err)
{
	Elf64_Ehdr eh;
	uint32_t i;
	int rc;

	memcpy(&eh, file, sizeof(eh));
	rc = header_check(img, &eh, err);
	for (i = 0; i < eh.e_phnum && !rc; i++) {
		uint64_t at = eh.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		if (eh.e_phoff > len || !rv_get(file, len, at, &ph, sizeof(ph)))
			return rv_err_at(err, RV_EBADDATA, at, "elf",
					 "program header %u lies outside the file", i);
		if (ph.p_type != PT_LOAD || ph.p_memsz == 0)
			continue;
		rc = segment_add(img, l, &ph, len, at, err);
		if (ph.p_offset + ph.p_filesz > l->file_end)
			l->file_end = ph.p_offset + ph.p_filesz;
	}
	if (rc)
		return rc;
	if (!l->flat_size)
		return rv_err_at(err, RV_EBADDATA, eh.e_phoff, "elf", "no segment to load");
	if (l->flat_size > len + GAPS_MAX)
		return rv_err_at(err, RV_EBADDATA, eh.e_phoff, "elf",
				 "%llu bytes to load from a file of %zu: too much empty space",
				 (unsigned long long)l->flat_size, len);
	return 0;
}

/* Section headers are only a help: names and places. What is wrong is left out. */
static void sections_read(struct rv_image *img, struct layout *l, const uint8_t *file, size_t len)
{
	Elf64_Shdr sh, str;
	Elf64_Ehdr eh;
	uint32_t i;

	memcpy(&eh, file, sizeof(eh));
	if (eh.e_shentsize != sizeof(sh) || eh.e_shoff > len ||
	    (uint64_t)eh.e_shnum * sizeof(sh) > len - eh.e_shoff || eh.e_shstrndx >= eh.e_shnum)
		return;
	if (eh.e_shoff + eh.e_shnum * sizeof(sh) > l->file_end)
		l->file_end = eh.e_shoff + eh.e_shnum * sizeof(sh);
	memcpy(&str, file + eh.e_shoff + eh.e_shstrndx * sizeof(str), sizeof(str));
	for (i = 0; i < eh.e_shnum; i++) {
		struct section *s = &img->sections[img->section_count];
		uint64_t name;

		memcpy(&sh, file + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type != SHT_NOBITS && sh.sh_offset <= len &&
		    sh.sh_size <= len - sh.sh_offset && sh.sh_offset + sh.sh_size > l->file_end)
			l->file_end = sh.sh_offset + sh.sh_size;
		name = str.sh_offset + sh.sh_name;
		if (!(sh.sh_flags & SHF_ALLOC) || !sh.sh_addr || sh.sh_type == SHT_NOBITS ||
		    img->section_count == RV_SECTIONS_MAX || str.sh_offset > len || name >= len)
			continue;
		snprintf(s->name, sizeof(s->name), "%.*s", (int)(len - name < 27 ? len - name : 27),
			 (const char *)file + name);
		s->va = sh.sh_addr;
		s->size = sh.sh_size;
		img->section_count++;
	}
}

/*
 * Can the segments slide down inside the file's buffer? Flat offset 0 stays where
 * the first segment is, so usually the two largest do not move at all.
 */
static bool in_place(const struct layout *l)
{
	uint64_t base = l->seg[0].off;
	uint32_t i;

	for (i = 0; i < l->count; i++) {
		const struct segment *s = &l->seg[i];

		if (s->dst + base > s->off)
			return false;
		if (i && s->off < l->seg[i - 1].off + l->seg[i - 1].filesz)
			return false;
	}
	return true;
}

static int flatten(struct rv_image *img, const struct layout *l, uint8_t **buf, struct rv_err *err)
{
	bool inside = in_place(l);
	uint8_t *file = *buf, *dst;
	uint64_t end = 0;
	uint32_t i;

	if (inside) {
		dst = file + l->seg[0].off;
		img->buf = file;
		*buf = NULL;
	} else {
		dst = rv_unpack_buf(l->flat_size);
		if (!dst)
			return rv_err_set(err, RV_ENOMEM, "elf", "no memory for %llu bytes",
					  (unsigned long long)l->flat_size);
		img->buf = dst;
	}
	img->flat = dst;
	/* In order of address: the gap that is zeroed ends before the next segment's bytes. */
	for (i = 0; i < l->count; i++) {
		const struct segment *s = &l->seg[i];

		if (!s->filesz)
			continue;
		memset(dst + end, 0, s->dst - end);
		if (dst + s->dst != file + s->off)
			memmove(dst + s->dst, file + s->off, s->filesz);
		end = s->dst + s->filesz;
	}
	return 0;
}

int rv_elf_parse(struct rv_image *img, uint8_t **buf, size_t len, struct rv_err *err)
{
	struct layout l = {0};
	int rc;

	if (!img->info.format)
		img->info.format = RV_IMAGE_ELF;
	rc = segments_read(img, &l, *buf, len, err);
	if (rc)
		return rc;
	if (img->info.link_base <
	    (img->info.arch == RV_ARCH_X86_64 ? LINK_LOW_X86 : LINK_LOW_ARM64))
		return rv_err_at(err, RV_EUNSUPPORTED, 0, "elf",
				 "linked at 0x%llx: a program, not a kernel",
				 (unsigned long long)img->info.link_base);
	sections_read(img, &l, *buf, len);
	img->info.flat_size = l.flat_size;
	img->info.mem_size = l.mem_size;
	if (img->info.arch == RV_ARCH_X86_64) {
		rc = rv_relocs_parse(img, *buf + l.file_end, len - l.file_end, l.file_end, err);
		if (rc)
			return rc;
	}
	return flatten(img, &l, buf, err);
}
