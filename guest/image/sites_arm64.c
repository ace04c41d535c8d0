/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
void rv_sites_find_arm64(struct rv_image *img, const struct rv_symbol_want *w)
{
	(void)img;
	(void)w;
}
void rv_tables_scan(struct rv_image *img)
{
	(void)img;
}
