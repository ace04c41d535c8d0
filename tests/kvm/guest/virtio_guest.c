/* SPDX-License-Identifier: Apache-2.0 */
/* virtio_guest.c: the registers of the virtio slots, used rightly and wrongly.
 * Arguments: virtio= devices, rng= slot of the entropy device. */
#include "lib.h"

#define SLOT(i)	     (0xd0000000ull + (uint64_t)(i)*0x1000)
#define MAGIC	     0x000
#define VERSION	     0x004
#define DEVICE_ID    0x008
#define FEATURES     0x010
#define FEATURES_SEL 0x014
#define DRV_FEATURES 0x020
#define DRV_SEL	     0x024
#define Q_SEL	     0x030
#define Q_MAX	     0x034
#define Q_NUM	     0x038
#define Q_READY	     0x044
#define Q_NOTIFY     0x050
#define ISR	     0x060
#define ISR_ACK	     0x064
#define STATUS	     0x070
#define Q_DESC	     0x080
#define Q_AVAIL	     0x090
#define Q_USED	     0x0a0

static struct {
	struct {
		uint64_t addr;
		uint32_t len;
		uint16_t flags, next;
	} desc[8];
	uint16_t avail_flags, avail_idx, avail_ring[8], used_event;
	uint8_t pad[64];
	struct {
		uint16_t flags;
		volatile uint16_t idx;
		struct {
			uint32_t id, len;
		} ring[8];
		uint16_t avail_event;
	} used __attribute__((aligned(16)));
} ring __attribute__((aligned(4096)));
static uint8_t data[256] __attribute__((aligned(64)));

static uint64_t phys(const volatile void *p)
{
	return (uint64_t)p - 0xffffffff80000000ull;
}

static uint32_t rd(uint32_t slot, uint32_t reg)
{
	return read32(SLOT(slot) + reg);
}

static void wr(uint32_t slot, uint32_t reg, uint32_t v)
{
	write32(SLOT(slot) + reg, v);
}

static void check_identity(uint32_t n)
{
	uint32_t good = 0, ids = 0;

	for (uint32_t i = 0; i < n; i++) {
		good += rd(i, MAGIC) == 0x74726976 && rd(i, VERSION) == 2 && rd(i, STATUS) == 0 &&
			rd(i, Q_MAX) > 0;
		ids += rd(i, DEVICE_ID) >= 1 && rd(i, DEVICE_ID) <= 42;
		print("# slot %u: device %u\n", i, rd(i, DEVICE_ID));
	}
	report("identity", good == n && n, "%u of %u", good, n);
	report("device-ids", ids == n, "%u of %u", ids, n);
	report("empty-slot", rd(n, MAGIC) == 0xffffffff && rd(15, MAGIC) == 0xffffffff, "0x%x",
	       rd(n, MAGIC));
}

static void check_sizes(void)
{
	uint64_t s = SLOT(0);

	report("odd-reads", read8(s) == 0 && read16(s) == 0 && read64(s) == 0 && read32(s + 2) == 0,
	       "0x%x 0x%x 0x%lx 0x%x", read8(s), read16(s), read64(s), read32(s + 2));
	write8(s + STATUS, 1);
	write16(s + STATUS, 1);
	write64(s + STATUS, 1);
	write32(s + STATUS + 1, 1);
	report("odd-writes", rd(0, STATUS) == 0, "status 0x%x", rd(0, STATUS));
	(void)read64(s + 0xffc);
	write64(s + 0xffc, ~0ull); /* into the next slot */
	(void)read32(s + 0xffe);
	write32(s + 0xffe, ~0u);
	(void)read64(s + 0x100 + 0xefc);
	write8(s + 0x100, 0x5a); /* config space of a device that has nothing to write there */
	report("slot-edge", rd(0, MAGIC) == 0x74726976 && rd(0, STATUS) == 0, "0x%x",
	       rd(0, STATUS));
}

static void check_early_notify(uint32_t n)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t q = 0; q < 300; q += 7)
			wr(i, Q_NOTIFY, q);
		wr(i, Q_NOTIFY, 0xffffffff);
		write16(SLOT(i) + Q_NOTIFY, 0);
		write64(SLOT(i) + Q_NOTIFY, 0);
		good += rd(i, STATUS) == 0 && rd(i, ISR) == 0;
	}
	report("notify-before-ready", good == n, "%u of %u", good, n);
}

static void check_order(uint32_t slot)
{
	wr(slot, STATUS, 0);
	wr(slot, STATUS, 4); /* DRIVER_OK out of nowhere */
	report("driver-ok-too-early", !(rd(slot, STATUS) & 4), "0x%x", rd(slot, STATUS));
	wr(slot, STATUS, 0);
	wr(slot, STATUS, 3);
	wr(slot, DRV_SEL, 0);
	wr(slot, DRV_FEATURES, 0);
	wr(slot, STATUS, 11); /* FEATURES_OK without VERSION_1 */
	report("features-without-version-1", !(rd(slot, STATUS) & 8), "0x%x", rd(slot, STATUS));
	wr(slot, STATUS, 0);
	wr(slot, STATUS, 3);
	wr(slot, DRV_SEL, 0);
	wr(slot, DRV_FEATURES, 0xffffffff);
	wr(slot, DRV_SEL, 1);
	wr(slot, DRV_FEATURES, 0xffffffff);
	wr(slot, STATUS, 11);
	report("features-not-offered", !(rd(slot, STATUS) & 8), "0x%x", rd(slot, STATUS));
	wr(slot, STATUS, 0);
	wr(slot, Q_SEL, 0xffff);
	report("queue-not-there", rd(slot, Q_MAX) == 0 && rd(slot, Q_READY) == 0, "%u",
	       rd(slot, Q_MAX));
	wr(slot, Q_SEL, 0);
}

/* Up to and without DRIVER_OK; the ring of queue 0 at desc, avail, used. */
static bool set_up(uint32_t slot, uint64_t desc, uint64_t avail, uint64_t used, uint32_t num)
{
	wr(slot, STATUS, 0);
	wr(slot, STATUS, 1);
	wr(slot, STATUS, 3);
	wr(slot, DRV_SEL, 0);
	wr(slot, DRV_FEATURES, 0);
	wr(slot, DRV_SEL, 1);
	wr(slot, DRV_FEATURES, 1);
	wr(slot, STATUS, 11);
	if (!(rd(slot, STATUS) & 8))
		return false;
	wr(slot, Q_SEL, 0);
	wr(slot, Q_NUM, num);
	wr(slot, Q_DESC, (uint32_t)desc);
	wr(slot, Q_DESC + 4, (uint32_t)(desc >> 32));
	wr(slot, Q_AVAIL, (uint32_t)avail);
	wr(slot, Q_AVAIL + 4, (uint32_t)(avail >> 32));
	wr(slot, Q_USED, (uint32_t)used);
	wr(slot, Q_USED + 4, (uint32_t)(used >> 32));
	wr(slot, Q_READY, 1);
	return true;
}

static void ask(uint32_t slot, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
	ring.desc[0].addr = addr;
	ring.desc[0].len = len;
	ring.desc[0].flags = flags;
	ring.desc[0].next = next;
	ring.avail_ring[ring.avail_idx & 7] = 0;
	asm volatile("" ::: "memory");
	ring.avail_idx++;
	asm volatile("mfence" ::: "memory");
	wr(slot, Q_NOTIFY, 0);
}

/* The positive control: 64 random bytes through a well-formed queue. */
static void check_rng(uint32_t slot, const char *name)
{
	uint8_t any = 0;
	bool up;

	memset(&ring, 0, sizeof(ring));
	memset(data, 0, sizeof(data));
	up = set_up(slot, phys(ring.desc), phys(&ring.avail_flags), phys(&ring.used), 8);
	wr(slot, STATUS, 15);
	ask(slot, phys(data), 64, 2, 0);
	for (uint32_t i = 0; i < 5000 && !ring.used.idx; i++)
		delay_us(1000);
	for (uint32_t i = 0; i < 64; i++)
		any |= data[i];
	report(name, up && ring.used.idx == 1 && ring.used.ring[0].len == 64 && any && !data[64],
	       "status 0x%x, index %u, length %u", rd(slot, STATUS), ring.used.idx,
	       ring.used.ring[0].len);
	wr(slot, ISR_ACK, rd(slot, ISR));
	report("interrupt-acknowledged", rd(slot, ISR) == 0, "0x%x", rd(slot, ISR));
}

/* Rings and buffers that lead outside of RAM, into each other, or round in circles. */
static void check_hostile_rings(uint32_t slot)
{
	static const uint64_t bad[] = {
		0xd0000000ull, 0xfffffffffffff000ull, 0xfffffff0ull, 0x7ffffffffff0ull, 1,
		0xfee00000ull};
	uint32_t alive = 0;

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&ring, 0, sizeof(ring));
		set_up(slot, bad[i], phys(&ring.avail_flags), phys(&ring.used), 8);
		wr(slot, STATUS, 15);
		ask(slot, phys(data), 16, 2, 0);
		set_up(slot, phys(ring.desc), bad[i], phys(&ring.used), 8);
		wr(slot, STATUS, 15);
		ask(slot, phys(data), 16, 2, 0);
		set_up(slot, phys(ring.desc), phys(&ring.avail_flags), bad[i], 8);
		wr(slot, STATUS, 15);
		ask(slot, phys(data), 16, 2, 0);
		memset(&ring, 0, sizeof(ring));
		set_up(slot, phys(ring.desc), phys(&ring.avail_flags), phys(&ring.used), 8);
		wr(slot, STATUS, 15);
		ask(slot, bad[i], 0xffffffff, 2, 0);
		delay_us(2000);
		alive += rd(slot, MAGIC) == 0x74726976;
	}
	report("rings-outside-ram", alive == sizeof(bad) / sizeof(bad[0]), "%u", alive);
	memset(&ring, 0, sizeof(ring));
	set_up(slot, phys(ring.desc), phys(&ring.avail_flags), phys(&ring.used), 8);
	wr(slot, STATUS, 15);
	ask(slot, phys(data), 16, 3, 0); /* next is itself */
	delay_us(2000);
	set_up(slot, phys(ring.desc), phys(&ring.avail_flags), phys(&ring.used), 8);
	ring.avail_idx = 0x8000; /* far more than the ring holds */
	wr(slot, STATUS, 15);
	ask(slot, phys(data), 16, 2, 0);
	delay_us(2000);
	set_up(slot, phys(ring.desc), phys(&ring.avail_flags), phys(&ring.used),
	       7); /* no power of two */
	wr(slot, STATUS, 15);
	set_up(slot, phys(ring.desc), phys(&ring.avail_flags), phys(&ring.used), 0x80000000u);
	wr(slot, STATUS, 15);
	ask(slot, phys(data), 16, 2, 0);
	delay_us(2000);
	report("rings-in-circles", rd(slot, MAGIC) == 0x74726976, "0x%x", rd(slot, MAGIC));
	wr(slot, STATUS, 0);
	report("reset-cures", rd(slot, STATUS) == 0, "0x%x", rd(slot, STATUS));
}

static void check_noise(uint32_t n)
{
	uint32_t x = 2463534242u, good = 0;

	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t a;

		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		a = SLOT(x % n) + (x >> 8 & 0x1ff);
		switch (x >> 20 & 7) {
		case 0: write8(a, (uint8_t)x); break;
		case 1: write16(a, (uint16_t)x); break;
		case 2: write64(a, (uint64_t)x << 16 | x); break;
		case 3: (void)read64(a); break;
		case 4: (void)read8(a); break;
		default: write32(a & ~3ull, x); break;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		wr(i, STATUS, 0);
		good += rd(i, STATUS) == 0 && rd(i, MAGIC) == 0x74726976;
	}
	report("noise", good == n, "%u of %u", good, n);
}

void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs)
{
	uint32_t n = (uint32_t)arg("virtio", 1), rng = (uint32_t)arg("rng", 0);

	(void)bp, (void)entry, (void)cs;
	check_identity(n);
	check_sizes();
	check_early_notify(n);
	check_order(rng);
	check_rng(rng, "random-bytes");
	check_hostile_rings(rng);
	check_rng(rng, "random-bytes-after-hostile-rings");
	check_noise(n);
	check_rng(rng, "random-bytes-after-noise");
	finish();
}
