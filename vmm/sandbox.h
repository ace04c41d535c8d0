/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h: what a process or thread of the monitor may still ask of the host kernel. */
#ifndef RV_VMM_SANDBOX_H
#define RV_VMM_SANDBOX_H

#include <ravelin/error.h>

/* The loader: may read what it has open, allocate memory, and end. For good. */
int rv_sandbox_loader(struct rv_err *err) RV_MUST_CHECK;

#endif
