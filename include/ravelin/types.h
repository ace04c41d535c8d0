/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h: address types and the closed set of result codes.
 *
 * Guest physical and guest virtual addresses are one-member structs, so that
 * passing one for the other does not compile. They cost nothing: both ABIs
 * pass them in a register like a plain uint64_t.
 */
#ifndef RAVELIN_TYPES_H
#define RAVELIN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RV_MUST_CHECK __attribute__((warn_unused_result))
#define RV_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define RV_MUST_CHECK
#define RV_PRINTF(f, a)
#endif

/* A guest physical address, in bytes. */
struct rv_gpa {
	uint64_t v;
};
typedef struct rv_gpa rv_gpa;

/* A guest virtual address, in bytes. */
struct rv_gva {
	uint64_t v;
};
typedef struct rv_gva rv_gva;

static inline rv_gpa rv_gpa_of(uint64_t v)
{
	rv_gpa a = {v};
	return a;
}

static inline rv_gva rv_gva_of(uint64_t v)
{
	rv_gva a = {v};
	return a;
}

/* Processor architectures; what is looked at, not what we run on. */
enum rv_arch {
	RV_ARCH_UNKNOWN = 0,
	RV_ARCH_X86_64 = 1,
	RV_ARCH_ARM64 = 2,
};

/*
 * Result codes. Every fallible function returns 0 or one of these negative
 * values; results go through an out parameter, never through the return value.
 */
enum rv_status {
	RV_OK = 0,
	RV_ENOTMAPPED = -1,   /* no such address; a normal answer */
	RV_ESOURCE = -2,      /* the source of bytes cannot deliver them */
	RV_EBADDATA = -3,     /* bytes are there and inconsistent: evidence */
	RV_EBUDGET = -4,      /* a bound on work was reached before an answer */
	RV_ESTALE = -5,       /* what is looked at changed underneath */
	RV_ENOSYM = -6,       /* no such symbol, type or member */
	RV_EUNSUPPORTED = -7, /* well formed, and not something we can do */
	RV_EINVAL = -8,       /* the caller's argument is at fault */
	RV_ENOMEM = -9,
	RV_EOS = -10,	   /* a system call failed; errno is in rv_err */
	RV_EREFUSED = -11, /* policy says no */
	RV_EBUSY = -12,
};

#ifdef __cplusplus
}
#endif
#endif
