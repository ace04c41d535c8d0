/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_image.c: `ravelin image FILE`: what a kernel file is and which protections it
 * can carry. Exit status 0: it was read; 1: it was not; 2: usage.
 */
#include "cmd.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ravelin/image.h>
#include <ravelin/kallsyms.h>

enum { EXIT_READ = 0, EXIT_BAD = 1, EXIT_USAGE = 2 };

static const char *const formats[] = {"unknown", "bzImage", "elf", "arm64-image"};
static const char *const payloads[] = {"none", "gzip", "xz", "lz4", "zstd"};
static const char *const arches[] = {"unknown", "x86_64", "arm64"};

static int usage(FILE *out, int status)
{
	fputs("usage: ravelin image [--json | --symbols] [--time] FILE\n"
	      "\n"
	      "Reads a kernel (bzImage, vmlinux, arm64 Image) as `ravelin run` would, without\n"
	      "running it, and tells which protections it can carry. What it says comes from the\n"
	      "file alone: the kernel's own symbol table and the instructions at each place.\n"
	      "\n"
	      "  --json      everything, as one JSON object; addresses are strings in hex\n"
	      "  --symbols   the symbol table: address, type, name (like /proc/kallsyms)\n"
	      "  --time      add how long unpacking and reading took\n"
	      "  --help      this text\n"
	      "\n"
	      "In the output:\n"
	      "  protections  what can be armed for this kernel, where, or why not\n"
	      "  sites        the instructions that would be redirected, at link addresses\n"
	      "  tables       the places that the kernel itself patches, so what may change\n"
	      "  ranges       text, rodata and the function that patches go through\n"
	      "  padding      unused bytes in .text, room for the monitor's code\n"
	      "\n"
	      "Exit status: 0 the file was read, 1 it was not, 2 usage.\n"
	      "\n"
	      "  ravelin image /boot/vmlinuz-$(uname -r)\n"
	      "  ravelin image --symbols vmlinux | grep -w modprobe_path\n"
	      "  ravelin image --json vmlinuz | jq '.protections.seal'\n",
	      out);
	return status;
}

/* --- JSON ----------------------------------------------------------------------- */

static json_t *hex(uint64_t v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "0x%" PRIx64, v);
	return json_string(buf);
}

static json_t *bytes(const uint8_t *p, size_t n)
{
	char buf[64] = "";
	size_t i;

	for (i = 0; i < n && i < 31; i++)
		snprintf(buf + 2 * i, 3, "%02x", p[i]);
	return json_string(buf);
}

/* Text from a file of unknown origin: what is not UTF-8 would make jansson refuse. */
static json_t *text(const char *s)
{
	json_t *j = json_string(s);

	return j ? j : json_string("(not UTF-8)");
}

static json_t *json_relocs(const struct rv_image_info *i)
{
	json_t *j = json_pack("{s:b}", "present", i->has_relocs);

	if (i->arch == RV_ARCH_ARM64) {
		json_object_set_new(j, "relative", json_integer(i->relocs[2]));
		return j;
	}
	json_object_set_new(j, "abs32", json_integer(i->relocs[0]));
	json_object_set_new(j, "inverse32", json_integer(i->relocs[1]));
	json_object_set_new(j, "abs64", json_integer(i->relocs[2]));
	return j;
}

static json_t *json_symbols(const struct rv_image *img)
{
	const struct rv_kallsyms *k = rv_image_kallsyms(img);

	if (!k)
		return json_pack("{s:i,s:o}", "count", 0, "reason",
				 text(rv_image_info(img)->symbols_reason));
	return json_pack("{s:I,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "count", (json_int_t)k->lay.num_syms,
			 "encoding", rv_kallsyms_encoding_name(k->lay.encoding), "names",
			 hex(k->lay.names), "markers", hex(k->lay.markers), "token_table",
			 hex(k->lay.token_table), "token_index", hex(k->lay.token_index), "offsets",
			 hex(k->lay.offsets), "relative_base", hex(k->lay.relative_base));
}

static json_t *json_btf(const struct rv_image *img)
{
	const struct rv_image_info *i = rv_image_info(img);
	uint64_t va, size;

	if (!rv_image_btf(img, &va, &size))
		return json_pack("{s:b,s:o}", "found", 0, "reason", text(i->btf_reason));
	return json_pack("{s:b,s:o,s:I,s:I}", "found", 1, "va", hex(va), "size", (json_int_t)size,
			 "types", (json_int_t)i->btf_types);
}

static json_t *json_padding(const struct rv_padding *p)
{
	json_t *j = json_pack("{s:b,s:o,s:I,s:o}", "found", p->found, "va", hex(p->va), "len",
			      (json_int_t)p->len, "reason", text(p->reason));

	if (p->has_orc)
		json_object_set_new(j, "orc",
				    json_pack("{s:o,s:o,s:o}", "va", hex(p->orc_va), "old",
					      bytes(p->orc_old, 6), "new", bytes(p->orc_new, 6)));
	return j;
}

static json_t *json_sites(const struct rv_image *img)
{
	const struct rv_site *s;
	size_t n = rv_image_sites(img, &s), i;
	json_t *all = json_object();

	for (i = 0; i < n; i++, s++) {
		json_t *j = json_pack("{s:b}", "found", s->found);

		if (s->found) {
			json_object_set_new(j, "va", hex(s->va));
			json_object_set_new(j, "target", hex(s->target));
			json_object_set_new(j, "bytes", bytes(s->bytes, s->len));
			json_object_set_new(j, "symbol", text(s->symbol));
			json_object_set_new(j, "offset", json_integer(s->symbol_off));
			json_object_set_new(j, "how", text(s->how));
		}
		json_object_set_new(j, "reason", text(s->reason));
		json_object_set_new(all, s->name, j);
	}
	return all;
}

static json_t *json_tables(const struct rv_image *img)
{
	const struct rv_table *t;
	size_t n = rv_image_tables(img, &t), i;
	json_t *all = json_object();

	for (i = 0; i < n; i++, t++)
		json_object_set_new(all, t->name,
				    json_pack("{s:b,s:o,s:I,s:I,s:I,s:o,s:o}", "found", t->found,
					      "va", hex(t->va), "size", (json_int_t)t->size,
					      "count", (json_int_t)t->count, "entry_size",
					      (json_int_t)t->entry_size, "how", text(t->how),
					      "reason", text(t->reason)));
	return all;
}

static json_t *json_ranges(const struct rv_image *img)
{
	const struct rv_range *r;
	size_t n = rv_image_ranges(img, &r), i;
	json_t *all = json_object();

	for (i = 0; i < n; i++, r++)
		json_object_set_new(all, r->name,
				    json_pack("{s:b,s:o,s:I,s:o,s:o}", "found", r->found, "va",
					      hex(r->va), "size", (json_int_t)r->size, "how",
					      text(r->how), "reason", text(r->reason)));
	return all;
}

static json_t *json_protections(const struct rv_image *img)
{
	const struct rv_protection *p;
	size_t n = rv_image_protections(img, &p), i;
	json_t *all = json_object();

	for (i = 0; i < n; i++, p++)
		json_object_set_new(all, p->name,
				    json_pack("{s:b,s:o,s:o}", "supported", p->supported, "site",
					      text(p->site), "reason", text(p->reason)));
	return all;
}

static int print_json(const struct rv_image *img)
{
	const struct rv_image_info *i = rv_image_info(img);
	json_t *j =
		json_pack("{s:s,s:s,s:s,s:o}", "format", formats[i->format], "payload",
			  payloads[i->payload], "arch", arches[i->arch], "banner", text(i->banner));
	int rc;

	json_object_set_new(j, "link_base", hex(i->link_base));
	json_object_set_new(j, "flat_size", json_integer((json_int_t)i->flat_size));
	json_object_set_new(j, "mem_size", json_integer((json_int_t)i->mem_size));
	json_object_set_new(j, "entry", hex(i->entry));
	json_object_set_new(j, "phys_base", hex(i->phys_base));
	if (i->format == RV_IMAGE_BZIMAGE) {
		json_object_set_new(j, "boot_protocol", hex(i->boot_protocol));
		json_object_set_new(j, "init_size", json_integer(i->init_size));
		json_object_set_new(j, "cmdline_size", json_integer(i->cmdline_size));
	}
	json_object_set_new(j, "relocs", json_relocs(i));
	json_object_set_new(j, "symbols", json_symbols(img));
	json_object_set_new(j, "btf", json_btf(img));
	json_object_set_new(j, "padding", json_padding(rv_image_padding(img)));
	json_object_set_new(j, "ranges", json_ranges(img));
	json_object_set_new(j, "sites", json_sites(img));
	json_object_set_new(j, "tables", json_tables(img));
	json_object_set_new(j, "protections", json_protections(img));
	json_object_set_new(j, "unpack_ms", json_real((double)i->unpack_ns / 1e6));
	json_object_set_new(j, "read_ms", json_real((double)i->read_ns / 1e6));
	rc = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(j);
	return rc ? EXIT_BAD : EXIT_READ;
}

/* --- for people ------------------------------------------------------------------- */

static void print_facts(const struct rv_image *img)
{
	const struct rv_image_info *i = rv_image_info(img);
	const struct rv_kallsyms *k = rv_image_kallsyms(img);
	const struct rv_padding *p = rv_image_padding(img);
	uint64_t va, size;

	printf("banner       %s\n", i->banner[0] ? i->banner : "(none found)");
	printf("format       %s, %s, payload %s\n", formats[i->format], arches[i->arch],
	       payloads[i->payload]);
	printf("addresses    link base 0x%" PRIx64 ", %.1f MiB in the file, %.1f MiB in memory\n",
	       i->link_base, (double)i->flat_size / 1048576, (double)i->mem_size / 1048576);
	if (!i->has_relocs)
		printf("relocations  none\n");
	else if (i->arch == RV_ARCH_ARM64)
		printf("relocations  %u\n", i->relocs[2]);
	else
		printf("relocations  %u of 32 bits, %u inverse, %u of 64 bits\n", i->relocs[0],
		       i->relocs[1], i->relocs[2]);
	if (k)
		printf("symbols      %u, %s\n", k->lay.num_syms,
		       rv_kallsyms_encoding_name(k->lay.encoding));
	else
		printf("symbols      none: %s\n", i->symbols_reason);
	if (rv_image_btf(img, &va, &size))
		printf("BTF          %u types, %.1f MiB at 0x%" PRIx64 "\n", i->btf_types,
		       (double)size / 1048576, va);
	else
		printf("BTF          none: %s\n", i->btf_reason);
	if (p->found)
		printf("padding      %.1f KiB at 0x%" PRIx64 "\n", (double)p->len / 1024, p->va);
	else
		printf("padding      none: %s\n", p->reason);
}

static void print_places(const struct rv_image *img)
{
	const struct rv_site *s;
	const struct rv_table *t;
	size_t n = rv_image_sites(img, &s), i;

	printf("\nsites\n");
	for (i = 0; i < n; i++, s++) {
		if (s->found)
			printf("  %-22s 0x%016" PRIx64 "  %s+0x%x\n", s->name, s->va, s->symbol,
			       s->symbol_off);
		else
			printf("  %-22s -                   %s\n", s->name, s->reason);
	}
	n = rv_image_tables(img, &t);
	printf("\ntables\n");
	for (i = 0; i < n; i++, t++) {
		if (t->found)
			printf("  %-22s 0x%016" PRIx64 "  %u entries of %u bytes\n", t->name, t->va,
			       t->count, t->entry_size);
		else
			printf("  %-22s -                   %s\n", t->name, t->reason);
	}
}

static int print_human(const struct rv_image *img, bool with_time)
{
	const struct rv_image_info *i = rv_image_info(img);
	const struct rv_protection *p;
	size_t n = rv_image_protections(img, &p), k;

	print_facts(img);
	printf("\nprotections\n");
	for (k = 0; k < n; k++, p++)
		printf("  %-22s %-4s %s\n", p->name, p->supported ? "yes" : "no",
		       p->supported ? p->site : p->reason);
	print_places(img);
	if (with_time)
		printf("\ntime         unpack %.1f ms, read %.1f ms\n", (double)i->unpack_ns / 1e6,
		       (double)i->read_ns / 1e6);
	return EXIT_READ;
}

static int print_symbol(const struct rv_symbol *s, void *arg)
{
	(void)arg;
	return printf("%016" PRIx64 " %c %s\n", s->va, s->type, s->name) < 0 ? RV_EOS : 0;
}

static int print_symbols(const struct rv_image *img, const char *file)
{
	const struct rv_kallsyms *k = rv_image_kallsyms(img);

	if (!k) {
		fprintf(stderr, "ravelin: %s: no symbols: %s\n", file,
			rv_image_info(img)->symbols_reason);
		return EXIT_BAD;
	}
	if (rv_kallsyms_each(k, print_symbol, NULL)) {
		fprintf(stderr, "ravelin: %s: the symbol table is damaged\n", file);
		return EXIT_BAD;
	}
	return EXIT_READ;
}

int rv_cmd_image(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"symbols", no_argument, NULL, 's'},
		{"time", no_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool json = false, symbols = false, with_time = false;
	struct rv_image *img;
	struct rv_err err;
	char why[300];
	int c, rc;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j': json = true; break;
		case 's': symbols = true; break;
		case 't': with_time = true; break;
		case 'h': return usage(stdout, EXIT_READ);
		default: return usage(stderr, EXIT_USAGE);
		}
	}
	if (optind != argc - 1 || (json && symbols))
		return usage(stderr, EXIT_USAGE);
	if (rv_image_open(argv[optind], &img, &err)) {
		fprintf(stderr, "ravelin: %s: %s\n", argv[optind],
			rv_err_str(&err, why, sizeof(why)));
		return EXIT_BAD;
	}
	if (symbols)
		rc = print_symbols(img, argv[optind]);
	else if (json)
		rc = print_json(img);
	else
		rc = print_human(img, with_time);
	rv_image_close(img);
	return rc;
}
