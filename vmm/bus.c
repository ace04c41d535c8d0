/* SPDX-License-Identifier: Apache-2.0 */
/* bus.c: port and MMIO ranges, and who answers there. */
#include "vm.h"

#include <string.h>

static int bus_add(struct rv_bus *bus, const char *what, uint64_t base, uint64_t len,
		   const struct rv_bus_ops *ops, void *dev, struct rv_err *err)
{
	uint32_t i;

	if (!len || base + len < base)
		return rv_err_at(err, RV_EINVAL, base, "bus", "empty or wrapping %s range", what);
	if (bus->n == RV_MAX_BUS)
		return rv_err_set(err, RV_EBUDGET, "bus", "more than %d %s ranges", RV_MAX_BUS,
				  what);
	for (i = 0; i < bus->n && bus->r[i].base < base; i++)
		;
	if ((i > 0 && bus->r[i - 1].base + bus->r[i - 1].len > base) ||
	    (i < bus->n && base + len > bus->r[i].base))
		return rv_err_at(err, RV_EINVAL, base, "bus", "%s range is taken", what);
	memmove(&bus->r[i + 1], &bus->r[i], (bus->n - i) * sizeof(bus->r[0]));
	bus->r[i] = (struct rv_bus_range){base, len, ops, dev};
	bus->n++;
	return 0;
}

int rv_bus_add_mmio(struct rv_vm *vm, rv_gpa base, uint64_t len, const struct rv_bus_ops *ops,
		    void *dev, struct rv_err *err)
{
	return bus_add(&vm->mmio, "MMIO", base.v, len, ops, dev, err);
}

int rv_bus_add_pio(struct rv_vm *vm, uint16_t base, uint16_t len, const struct rv_bus_ops *ops,
		   void *dev, struct rv_err *err)
{
	return bus_add(&vm->pio, "port", base, len, ops, dev, err);
}

static const struct rv_bus_range *find(const struct rv_bus *bus, uint64_t addr, uint8_t len)
{
	uint32_t lo = 0, hi = bus->n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		const struct rv_bus_range *r = &bus->r[mid];

		if (addr < r->base)
			hi = mid;
		else if (addr - r->base >= r->len)
			lo = mid + 1;
		else
			return len <= r->len - (addr - r->base) ? r : NULL;
	}
	return NULL;
}

void rv_bus_read(const struct rv_bus *bus, uint64_t addr, uint8_t len, void *data)
{
	const struct rv_bus_range *r = find(bus, addr, len);

	memset(data, 0xff, len);
	if (r && r->ops->read)
		r->ops->read(r->dev, addr - r->base, len, data);
}

void rv_bus_write(const struct rv_bus *bus, uint64_t addr, uint8_t len, const void *data)
{
	const struct rv_bus_range *r = find(bus, addr, len);

	if (r && r->ops->write)
		r->ops->write(r->dev, addr - r->base, len, data);
}
