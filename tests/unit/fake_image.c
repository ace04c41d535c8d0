/* SPDX-License-Identifier: Apache-2.0 */
/* fake_image.c: builds kernel images, the smallest that a reader must accept. */
#include "fake_image.h"

#include <assert.h>
#include <elf.h>
#include <lz4.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define TOKENS 256

static void put(uint8_t *mem, size_t len, size_t at, const void *src, size_t n)
{
	assert(at <= len && n <= len - at);
	memcpy(mem + at, src, n);
}

static size_t up(size_t v, size_t a)
{
	return (v + a - 1) / a * a;
}

/* Token text: printable characters are themselves, 1 is "sym_", the rest is never used. */
static void token_text(unsigned int t, char out[8])
{
	if (t >= ' ' && t < 0x7f)
		snprintf(out, 8, "%c", (char)t);
	else if (t == 1)
		snprintf(out, 8, "sym_");
	else
		snprintf(out, 8, "u%02x", t & 0xff);
}

static size_t put_tokens(uint8_t *mem, size_t len, size_t at, uint32_t align,
			 struct rv_kallsyms_layout *l)
{
	uint16_t idx[TOKENS];
	size_t p = at;
	unsigned int t;

	l->token_table = at;
	for (t = 0; t < TOKENS; t++) {
		char text[8];

		token_text(t, text);
		idx[t] = (uint16_t)(p - at);
		put(mem, len, p, text, strlen(text) + 1);
		p += strlen(text) + 1;
	}
	p = up(p, align);
	l->token_index = p;
	put(mem, len, p, idx, sizeof(idx));
	return p + sizeof(idx);
}

/* type + name as tokens; "sym_" is one token; a length of two bytes where needed. */
static size_t put_name(uint8_t *mem, size_t len, size_t at, const struct fake_sym *s)
{
	uint8_t tok[RV_KSYM_NAME_LEN], head[2];
	size_t n = 0, hn = 1;
	const char *p = s->name;

	tok[n++] = (uint8_t)s->type;
	if (strncmp(p, "sym_", 4) == 0) {
		tok[n++] = 1;
		p += 4;
	}
	for (; *p; p++)
		tok[n++] = (uint8_t)*p;
	head[0] = (uint8_t)n;
	if (n > 127) {
		head[0] = (uint8_t)(n & 0x7f) | 0x80;
		head[1] = (uint8_t)(n >> 7);
		hn = 2;
	}
	put(mem, len, at, head, hn);
	put(mem, len, at + hn, tok, n);
	return at + hn + n;
}

static size_t put_addresses(uint8_t *mem, size_t len, size_t at, uint64_t link_base,
			    const struct fake_sym *s, uint32_t n, const struct fake_ksym_opts *o,
			    struct rv_kallsyms_layout *l)
{
	uint64_t base = 0;
	uint32_t i;

	for (i = 0; i < n && !base; i++)
		base = s[i].va >= link_base ? s[i].va : 0;
	l->offsets = at;
	for (i = 0; i < n; i++) {
		uint32_t v = 0;

		switch (o->encoding) {
		case RV_KSYM_ABSOLUTE:
			put(mem, len, at, &s[i].va, 8);
			at += 8;
			continue;
		case RV_KSYM_RELATIVE: v = (uint32_t)(s[i].va - base); break;
		case RV_KSYM_ABSOLUTE_PERCPU:
			v = s[i].va < link_base ? (uint32_t)s[i].va
						: (uint32_t)-1 - (uint32_t)(s[i].va - base);
			break;
		case RV_KSYM_PREL32: v = (uint32_t)(s[i].va - link_base - at); break;
		}
		put(mem, len, at, &v, 4);
		at += 4;
	}
	if (o->encoding == RV_KSYM_RELATIVE || o->encoding == RV_KSYM_ABSOLUTE_PERCPU) {
		at = up(at, 8);
		put(mem, len, at, &base, 8);
		l->relative_base = base;
		at += 8;
	}
	return at;
}

static size_t put_names(uint8_t *mem, size_t len, size_t at, const struct fake_sym *s, uint32_t n,
			const struct fake_ksym_opts *o, struct rv_kallsyms_layout *l)
{
	uint64_t markers[64];
	uint32_t i;

	assert(n <= 64 * 256);
	put(mem, len, at, &n, 4);
	at = up(at + 4, o->align);
	l->names = at;
	for (i = 0; i < n; i++) {
		if (i % 256 == 0)
			markers[i / 256] = at - l->names;
		at = put_name(mem, len, at, &s[i]);
	}
	l->names_len = at - l->names;
	at = up(at, o->align);
	l->markers = at;
	for (i = 0; i < (n + 255) / 256; i++, at += o->marker_size)
		put(mem, len, at, &markers[i], o->marker_size);
	return up(at, o->align);
}

size_t fake_kallsyms(uint8_t *mem, size_t len, size_t at, uint64_t link_base,
		     const struct fake_sym *syms, uint32_t n, const struct fake_ksym_opts *o,
		     struct rv_kallsyms_layout *expect)
{
	struct rv_kallsyms_layout l = {0};
	size_t p = up(at, o->align);

	l.encoding = o->encoding;
	l.num_syms = n;
	l.marker_size = o->marker_size;
	if (o->old_order)
		p = up(put_addresses(mem, len, p, link_base, syms, n, o, &l), o->align);
	p = put_names(mem, len, p, syms, n, o, &l);
	if (o->old_order && o->seqs)
		p = up(p + 3ul * n, o->align);
	p = up(put_tokens(mem, len, p, o->align, &l), o->align);
	if (!o->old_order) {
		p = put_addresses(mem, len, p, link_base, syms, n, o, &l);
		if (o->seqs)
			p += 3ul * n;
	}
	*expect = l;
	return p;
}

uint32_t fake_syms_fill(struct fake_sym *syms, uint32_t have, uint32_t n, uint64_t va,
			char (*names)[16])
{
	uint32_t i;

	for (i = have; i < n; i++) {
		snprintf(names[i], 16, "sym_%04u", i);
		syms[i].name = names[i];
		syms[i].type = 't';
		syms[i].va = va + 16ull * (i - have);
	}
	return n;
}

/* --- containers --------------------------------------------------------------------- */

struct fake_buf fake_elf(const uint8_t *flat, size_t len, size_t split, const int32_t *relocs,
			 size_t relocs_n)
{
	size_t off = 0x1000, gap = 0x800; /* the second segment is moved when it is loaded */
	size_t shoff = up(off + len + gap, 64), total = shoff + 64 + 4 * relocs_n;
	struct fake_buf b = {calloc(1, total), total};
	Elf64_Ehdr eh = {.e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_entry = 0x1000000,
			 .e_phoff = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 2,
			 .e_shoff = shoff,
			 .e_shentsize = 64,
			 .e_shnum = 1};
	Elf64_Phdr ph[2] = {
		{PT_LOAD, PF_R | PF_X, off, FAKE_BASE, 0x1000000, split, split, 0x1000},
		{PT_LOAD, PF_R | PF_W, off + split + gap, FAKE_BASE + split, 0x1000000 + split,
		 len - split, len - split + 0x2000, 0x1000},
	};

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(b.p, &eh, sizeof(eh));
	memcpy(b.p + sizeof(eh), ph, sizeof(ph));
	memcpy(b.p + off, flat, split);
	memcpy(b.p + off + split + gap, flat + split, len - split);
	if (relocs_n)
		memcpy(b.p + shoff + 64, relocs, 4 * relocs_n);
	return b;
}

static size_t pack(enum rv_payload how, const struct fake_buf *in, uint8_t *out, size_t room)
{
	uint32_t magic = 0x184c2102, n;
	z_stream z = {0};
	size_t pos = 0;

	switch (how) {
	case RV_PAYLOAD_GZIP:
		deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
		z.next_in = in->p;
		z.avail_in = (uInt)in->len;
		z.next_out = out;
		z.avail_out = (uInt)room;
		deflate(&z, Z_FINISH);
		pos = z.total_out;
		deflateEnd(&z);
		return pos;
	case RV_PAYLOAD_XZ:
		lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, in->p, in->len, out, &pos, room);
		return pos;
	case RV_PAYLOAD_LZ4:
		memcpy(out, &magic, 4);
		n = (uint32_t)LZ4_compress_default((char *)in->p, (char *)out + 8, (int)in->len,
						   (int)room - 8);
		memcpy(out + 4, &n, 4);
		return 8 + n;
	case RV_PAYLOAD_ZSTD: return ZSTD_compress(out, room, in->p, in->len, 3);
	default: memcpy(out, in->p, in->len); return in->len;
	}
}

struct fake_buf fake_bzimage(const struct fake_buf *elf, enum rv_payload how)
{
	size_t start = 0x400, room = elf->len + elf->len / 2 + 4096, n;
	struct fake_buf b = {calloc(1, start + room), 0};
	uint32_t size = (uint32_t)elf->len, v;

	n = pack(how, elf, b.p + start, room - 4);
	if (how != RV_PAYLOAD_GZIP) {
		memcpy(b.p + start + n, &size, 4);
		n += 4;
	}
	b.len = start + n;
	b.p[0x1f1] = 1; /* one setup sector: code starts at 0x400 */
	memcpy(b.p + 0x1fe, "\x55\xaa\xeb\x6a", 4);
	memcpy(b.p + 0x202, "HdrS\x0f\x02", 6);
	b.p[0x236] = 0x7f;
	v = 2047;
	memcpy(b.p + 0x238, &v, 4);
	v = (uint32_t)n;
	memcpy(b.p + 0x24c, &v, 4);
	v = 0x1000000;
	memcpy(b.p + 0x258, &v, 4);
	return b;
}

/* --- a whole x86 kernel --------------------------------------------------------------- */

#define X86_FLAT 0x220000u

static void rel(uint8_t *flat, uint32_t at, uint8_t op, uint32_t to)
{
	int32_t d = (int32_t)(to - (at + 5));

	flat[at] = op;
	memcpy(flat + at + 1, &d, 4);
}

static void self_rel(uint8_t *flat, uint32_t at, uint32_t to)
{
	int32_t d = (int32_t)(to - at);

	memcpy(flat + at, &d, 4);
}

/* Eleven entries: ten functions with frame pointers, then the terminator before the padding. */
static void put_orc(uint8_t *flat, uint32_t ip, uint32_t orc, uint8_t type)
{
	uint32_t i;

	for (i = 0; i < 10; i++) {
		const uint8_t e[6] = {0x10, 0, 0xf0, 0xff, 0x14, type};

		self_rel(flat, ip + 4 * i, 0x100 * i);
		memcpy(flat + orc + 6 * i, e, 6);
	}
	self_rel(flat, ip + 40, 0x4004);
	self_rel(flat, ip + 44, 0x200000);
	memset(flat + orc + 60, 0, 6);
	memset(flat + orc + 66, 1, 6);
}

struct fake_buf fake_x86_kernel(int orc_type)
{
	static const struct {
		uint32_t off;
		const char *name;
	} at[] = {
		{0x0, "_stext"},
		{0x100, "kernel_init"},
		{0x200, "mark_rodata_ro"},
		{0x300, "text_poke_memcpy"},
		{0x400, "memcpy"},
		{0x500, "__text_poke"},
		{0x600, "module_alloc"},
		{0x700, "__vmalloc_node_range"},
		{0x800, "do_syscall_64"},
		{0x900, "do_fast_syscall_32"},
		{0xa00, "do_SYSENTER_32"},
		{0xb00, "fortify_panic"},
		{0xc00, "__x86_indirect_thunk_rax"},
		{0x3ff0, "last_function"},
		{0x200000, "__entry_text_start"},
		{0x200010, "entry_SYSCALL_64"},
		{0x200020, "entry_SYSCALL_64_after_hwframe"},
		{0x200060, "entry_SYSCALL_compat"},
		{0x2000a0, "entry_SYSENTER_compat"},
		{0x2000e0, "asm_int80_emulation"},
		{0x200100, "int80_emulation"},
		{0x200200, "__entry_text_end"},
		{0x201000, "_etext"},
		{0x202000, "__start_rodata"},
		{0x203000, "__start_orc_unwind_ip"},
		{0x203030, "__stop_orc_unwind_ip"},
		{0x203040, "__start_orc_unwind"},
		{0x203088, "__stop_orc_unwind"},
		{0x203100, "__start___jump_table"},
		{0x203120, "__stop___jump_table"},
		{0x204000, "linux_banner"},
		{0x204800, "__end_rodata"},
	};
	static const char banner[] = "Linux version 9.9.9-fake #1\n";
	struct fake_buf b = {calloc(1, X86_FLAT), X86_FLAT};
	uint32_t n = sizeof(at) / sizeof(at[0]), i;
	struct fake_ksym_opts o = {RV_KSYM_RELATIVE, 4, 8, false, true};
	static struct fake_sym syms[400];
	static char names[400][16];
	struct rv_kallsyms_layout l;

	memset(b.p, 0x90, 0x201000);
	memset(b.p + 0x4000, 0xcc, 0x1fc000);
	memset(b.p + 0x200200, 0xcc, 0xe00);
	rel(b.p, 0x110, 0xe8, 0x200);	 /* kernel_init -> mark_rodata_ro */
	rel(b.p, 0x305, 0xe9, 0x400);	 /* text_poke_memcpy -> memcpy */
	rel(b.p, 0x520, 0xe8, 0xc00);	 /* __text_poke -> thunk */
	rel(b.p, 0x630, 0xe8, 0x700);	 /* module_alloc -> __vmalloc_node_range */
	rel(b.p, 0x200030, 0xe8, 0x800); /* entry -> do_syscall_64 */
	rel(b.p, 0x200070, 0xe8, 0x900);
	rel(b.p, 0x2000b0, 0xe8, 0xa00);
	rel(b.p, 0x2000f0, 0xe8, 0x200100);
	put_orc(b.p, 0x203000, 0x203040, (uint8_t)orc_type);
	for (i = 0; i < 2; i++) {
		self_rel(b.p, 0x203100 + 16 * i, 0x110);
		self_rel(b.p, 0x203104 + 16 * i, 0x120);
	}
	memcpy(b.p + 0x204000, banner, sizeof(banner));
	for (i = 0; i < n; i++)
		syms[i] = (struct fake_sym){at[i].name, 'T', FAKE_BASE + at[i].off};
	n = fake_syms_fill(syms, n, 300, FAKE_BASE + 0x205000, names);
	fake_kallsyms(b.p, b.len, 0x210000, FAKE_BASE, syms, n, &o, &l);
	return b;
}

/* --- an arm64 Image --------------------------------------------------------------------- */

#define ARM64_FLAT 0xd000u
#define ARM64_RELA 0xb000u

static void bl(uint8_t *flat, uint32_t at, uint32_t to)
{
	uint32_t w = 0x94000000u | ((to - at) >> 2 & 0x3ffffff);

	memcpy(flat + at, &w, 4);
}

static void adrp_add(uint8_t *flat, uint32_t at, uint32_t rd, uint32_t to)
{
	uint32_t pages = (to >> 12) - (at >> 12);
	uint32_t w[2] = {0x90000000u | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | rd,
			 0x91000000u | (to & 0xfff) << 10 | rd << 5 | rd};

	memcpy(flat + at, w, sizeof(w));
}

/* As gcc compiles is_kernel_rodata(x0). */
static void is_rodata(uint8_t *flat, uint32_t at, uint32_t from, uint32_t to, bool far)
{
	uint32_t mov = 0xaa0203e0, lo[2] = {0xeb01001f, 0x540000c3},
		 hs[2] = {0xeb03001f, 0x54000042};

	adrp_add(flat, at, 1, from);
	memcpy(flat + at + 8, lo, sizeof(lo));
	adrp_add(flat, at + 16, 3, to);
	if (far)
		memcpy(flat + at + 24, &mov, 4);
	memcpy(flat + at + 24 + 4 * far, hs, sizeof(hs));
}

struct fake_buf fake_arm64_kernel(void)
{
	static const struct {
		uint32_t off;
		const char *name;
	} at[] = {
		{0x1000, "_stext"},
		{0x1100, "kernel_init"},
		{0x1200, "mark_rodata_ro"},
		{0x1300, "el0t_64_sync"},
		{0x1400, "el0t_64_sync_handler"},
		{0x1500, "__aarch64_insn_write"},
		{0x1600, "copy_to_kernel_nofault"},
		{0x1700, "module_alloc"},
		{0x1800, "__vmalloc_node_range"},
		{0x1900, "fortify_panic"},
		{0x1a00, "kfree_const"},
		{0x1b00, "kstrdup_const"},
		{0x1c00, "last_function"},
		{0x6000, "_etext"},
	};
	static const char seed[] = "kaslr-seed", banner[] = "Linux version 9.9.9-fake #1\n";
	struct fake_buf b = {calloc(1, ARM64_FLAT), ARM64_FLAT};
	uint32_t n = sizeof(at) / sizeof(at[0]), i, nop = 0xd503201f;
	struct fake_ksym_opts o = {RV_KSYM_RELATIVE, 4, 8, false, true};
	uint64_t size = ARM64_FLAT + 0x1000, flags = 0xa;
	static struct fake_sym syms[400];
	static char names[400][16];
	struct rv_kallsyms_layout l;

	memcpy(b.p, "MZ", 2);
	memcpy(b.p + 0x10, &size, 8);
	memcpy(b.p + 0x18, &flags, 8);
	memcpy(b.p + 0x38, "ARMd", 4);
	for (i = 0x1000; i < 0x2000; i += 4)
		memcpy(b.p + i, &nop, 4);
	bl(b.p, 0x1110, 0x1200);
	bl(b.p, 0x1310, 0x1400);
	bl(b.p, 0x1510, 0x1600);
	bl(b.p, 0x1710, 0x1800);
	bl(b.p, 0x1720, 0x1800);
	is_rodata(b.p, 0x1a08, 0x6000, 0xa000, false);
	is_rodata(b.p, 0x1b0c, 0x6000, 0xa000, true);
	memcpy(b.p + 0x6000, seed, sizeof(seed));
	memcpy(b.p + 0x6100, banner, sizeof(banner));
	for (i = 0; i < n; i++)
		syms[i] = (struct fake_sym){at[i].name, 'T', FAKE_ARM64_BASE + at[i].off};
	n = fake_syms_fill(syms, n, 300, FAKE_ARM64_BASE + 0x7000, names);
	fake_kallsyms(b.p, b.len, 0x7000, FAKE_ARM64_BASE, syms, n, &o, &l);
	for (i = 0; i < 300; i++) {
		Elf64_Rela r = {FAKE_ARM64_BASE + 0xa000 + 8ull * i, R_AARCH64_RELATIVE,
				(int64_t)(FAKE_ARM64_BASE + 0x1000 + 4ull * i)};

		/* The last one is the base of kallsyms, as the linker would have it. */
		if (i == 299) {
			r.r_offset = FAKE_ARM64_BASE + ((l.offsets + 4ull * n + 7) & ~7ull);
			r.r_addend = (int64_t)l.relative_base;
			memset(b.p + (r.r_offset - FAKE_ARM64_BASE), 0, 8);
		}
		memcpy(b.p + ARM64_RELA + i * sizeof(r), &r, sizeof(r));
	}
	return b;
}
