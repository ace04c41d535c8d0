/* SPDX-License-Identifier: Apache-2.0 */
/* policy_page.h: the policy schema as text: for a terminal, as a manual page, as YAML. */
#ifndef RV_VMM_POLICY_PAGE_H
#define RV_VMM_POLICY_PAGE_H

#include "../policy/schema.h"

#include <stdio.h>

/* One key with its type, its values per profile and its help. */
void rv_policy_page_key(FILE *f, const struct rv_schema_key *key);

/* The whole of ravelin-policy(5), in mdoc. */
void rv_policy_page_man(FILE *f);

/* A policy as a file that reads back to the same policy, each key with a comment. */
void rv_policy_page_yaml(FILE *f, const struct rv_policy *p);

#endif
