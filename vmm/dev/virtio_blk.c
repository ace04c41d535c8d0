/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio_blk.c: a disk in a raw file or on a block device (VIRTIO 1.2, 5.2).
 *
 * Option: path[,ro][,serial=S].
 *
 * Each disk has one thread, which sleeps in read() on the doorbell's eventfd. Disk I/O
 * can take seconds; neither a vcpu thread nor the I/O thread, which carries console and
 * network, may wait for it, and one thread with plain pread() needs less of the host's
 * kernel interface than asynchronous I/O does.
 *
 * Data goes through a bounce buffer. The copy costs less than the disk, and it buys two
 * promises: the protection map is consulted at the moment of copying, not seconds before;
 * and a driver reset never waits, since after one (the generation differs) nothing is
 * copied to the guest any more.
 *
 * A request is judged as a whole before a byte moves. Two VMs cannot share a disk that
 * one of them writes: the file carries an open-file-description lock, which also holds
 * against other monitors that lock their images.
 *
 * Limits: one queue; no O_DIRECT (the host's page cache is used; FLUSH is fdatasync);
 * no resize while running; a tail of less than 512 bytes is not seen by the guest.
 */
#include "dev.h"
#include "opt.h"
#include "virtio_mmio.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ids.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHO		  "disk"
#define SECTOR		  512u
#define BOUNCE		  (128u << 10)
#define REQUEST_MAX	  (64u << 20)
#define SEG_MAX		  126u /* with header and status, half of a queue of 256 */
#define RANGES_MAX	  8u
#define RANGE_SECTORS_MAX (1u << 16) /* 32 MiB: bounds a WRITE_ZEROES that must write */

struct blk {
	struct rv_virtio v;
	int fd;
	bool ro;
	uint64_t capacity; /* bytes */
	char serial[VIRTIO_BLK_ID_BYTES];
	struct virtio_blk_config config;
	pthread_t thread;
	bool started;
	atomic_bool stop;
	struct rv_vq_chain chain;
	uint8_t *bounce;
};

/* A request, copied out of the chain. */
struct request {
	uint32_t type;
	uint64_t sector;
	uint32_t in_len;  /* writable, without the status byte */
	uint32_t out_len; /* readable, without the header */
	uint32_t generation;
	bool write_through;
	struct rv_vq_cur in, out;
	uint32_t written; /* to guest memory */
};

/* --- guest memory, under the lock and only for the driver that asked --------------- */

static int move(struct blk *b, struct request *r, bool to_guest, void *buf, uint32_t len)
{
	struct rv_virtq *q = &b->v.q[0].vq;
	int rc = RV_ESTALE;

	pthread_mutex_lock(&b->v.lock);
	if (b->v.generation == r->generation && rv_virtio_live(&b->v))
		rc = to_guest ? rv_vq_cur_write(q, &r->in, buf, len)
			      : rv_vq_cur_read(q, &r->out, buf, len);
	pthread_mutex_unlock(&b->v.lock);
	if (!rc && to_guest)
		r->written += len;
	return rc;
}

/* --- the host's file ------------------------------------------------------------------ */

static bool file_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = pread(b->fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* 0: somebody truncated the file */
			return false;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

static bool file_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
	const uint8_t *p = buf;

	while (len) {
		ssize_t n = pwrite(b->fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

static bool file_sync(struct blk *b)
{
	return b->ro || fdatasync(b->fd) == 0;
}

/* --- requests ---------------------------------------------------------------------------- */

static bool range_ok(const struct blk *b, uint64_t sector, uint64_t len)
{
	uint64_t sectors = b->capacity / SECTOR;

	return len % SECTOR == 0 && sector <= sectors && len / SECTOR <= sectors - sector;
}

static uint8_t do_rw(struct blk *b, struct request *r, bool write)
{
	uint32_t left = write ? r->out_len : r->in_len, n;
	uint64_t off = r->sector * SECTOR;

	if (left > REQUEST_MAX || !range_ok(b, r->sector, left) || (write && b->ro))
		return VIRTIO_BLK_S_IOERR;
	for (; left; left -= n, off += n) {
		n = left < BOUNCE ? left : BOUNCE;
		if (atomic_load(&b->stop))
			return VIRTIO_BLK_S_IOERR;
		if (write) {
			if (move(b, r, false, b->bounce, n) || !file_write(b, b->bounce, n, off))
				return VIRTIO_BLK_S_IOERR;
		} else {
			if (!file_read(b, b->bounce, n, off) || move(b, r, true, b->bounce, n))
				return VIRTIO_BLK_S_IOERR;
		}
	}
	/* 5.2.6.2: a driver that cannot flush may take completion for stability. */
	if (write && r->write_through && !file_sync(b))
		return VIRTIO_BLK_S_IOERR;
	return VIRTIO_BLK_S_OK;
}

static uint8_t do_id(struct blk *b, struct request *r)
{
	uint32_t n = r->in_len < sizeof(b->serial) ? r->in_len : sizeof(b->serial);

	return move(b, r, true, b->serial, n) ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK;
}

static bool zero_by_writing(struct blk *b, uint64_t off, uint64_t len)
{
	memset(b->bounce, 0, BOUNCE);
	while (len && !atomic_load(&b->stop)) {
		size_t n = len < BOUNCE ? (size_t)len : BOUNCE;

		if (!file_write(b, b->bounce, n, off))
			return false;
		off += n;
		len -= n;
	}
	return !len;
}

static bool do_range(struct blk *b, bool zero, bool unmap, uint64_t off, uint64_t len)
{
	int mode = FALLOC_FL_KEEP_SIZE |
		   (zero && !unmap ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);

	if (!len || fallocate(b->fd, mode, (off_t)off, (off_t)len) == 0)
		return true;
	/* A discard is a hint; zeroes are a promise. */
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return false;
	return !zero || zero_by_writing(b, off, len);
}

/* DISCARD and WRITE_ZEROES: all ranges are judged before the first is carried out. */
static uint8_t do_ranges(struct blk *b, struct request *r)
{
	struct virtio_blk_discard_write_zeroes seg[RANGES_MAX];
	bool zero = r->type == VIRTIO_BLK_T_WRITE_ZEROES;
	uint32_t n = r->out_len / sizeof(seg[0]);

	if (b->ro || !n || n > RANGES_MAX || r->out_len % sizeof(seg[0]))
		return VIRTIO_BLK_S_IOERR;
	if (move(b, r, false, seg, r->out_len))
		return VIRTIO_BLK_S_IOERR;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t flags = le32toh(seg[i].flags), count = le32toh(seg[i].num_sectors);

		if (flags & ~(zero ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0u))
			return VIRTIO_BLK_S_UNSUPP;
		if (count > RANGE_SECTORS_MAX ||
		    !range_ok(b, le64toh(seg[i].sector), (uint64_t)count * SECTOR))
			return VIRTIO_BLK_S_IOERR;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!do_range(b, zero, le32toh(seg[i].flags) & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
			      le64toh(seg[i].sector) * SECTOR,
			      (uint64_t)le32toh(seg[i].num_sectors) * SECTOR))
			return VIRTIO_BLK_S_IOERR;
	if (r->write_through && !file_sync(b))
		return VIRTIO_BLK_S_IOERR;
	return VIRTIO_BLK_S_OK;
}

static uint8_t do_request(struct blk *b, struct request *r)
{
	switch (r->type) {
	case VIRTIO_BLK_T_IN: return do_rw(b, r, false);
	case VIRTIO_BLK_T_OUT: return do_rw(b, r, true);
	case VIRTIO_BLK_T_FLUSH: return file_sync(b) ? VIRTIO_BLK_S_OK : VIRTIO_BLK_S_IOERR;
	case VIRTIO_BLK_T_GET_ID: return do_id(b, r);
	case VIRTIO_BLK_T_DISCARD:
	case VIRTIO_BLK_T_WRITE_ZEROES: return do_ranges(b, r);
	default: return VIRTIO_BLK_S_UNSUPP;
	}
}

/* --- the disk's thread --------------------------------------------------------------------- */

/* Next request; called with the lock held. A chain without header or status is evidence. */
static bool request_next(struct blk *b, struct request *r)
{
	struct virtio_blk_outhdr hdr;
	bool got;

	do {
		if (rv_virtio_pop(&b->v, 0, &b->chain, &got))
			return false;
	} while (!got && rv_virtio_await(&b->v, 0));
	if (!got)
		return false;
	memset(r, 0, sizeof(*r));
	rv_vq_cur_init(&r->out, &b->chain, false);
	rv_vq_cur_init(&r->in, &b->chain, true);
	if (!b->chain.wlen || rv_vq_cur_read(&b->v.q[0].vq, &r->out, &hdr, sizeof(hdr))) {
		rv_virtio_fail(&b->v, "request without header or status");
		return false;
	}
	r->type = le32toh(hdr.type);
	r->sector = le64toh(hdr.sector);
	r->out_len = b->chain.rlen - (uint32_t)sizeof(hdr);
	r->in_len = b->chain.wlen - 1;
	r->generation = b->v.generation;
	r->write_through = !rv_virtio_has(&b->v, 1ull << VIRTIO_BLK_F_FLUSH);
	return true;
}

/* Lock held: the status byte is the last writable one, wherever it lies (5.2.6). */
static void request_end(struct blk *b, struct request *r, uint8_t status)
{
	struct rv_virtq *q = &b->v.q[0].vq;
	struct rv_vq_cur cur;

	if (b->v.generation != r->generation || !rv_virtio_live(&b->v))
		return;
	rv_vq_cur_init(&cur, &b->chain, true);
	if (rv_vq_cur_skip(&cur, r->in_len) || rv_vq_cur_write(q, &cur, &status, 1)) {
		rv_virtio_fail(&b->v, "cannot write the status of a request");
		return;
	}
	if (!rv_virtio_push(&b->v, 0, b->chain.head, r->written + 1))
		rv_virtio_signal(&b->v, 0);
}

static void serve(struct blk *b)
{
	struct request r;

	pthread_mutex_lock(&b->v.lock);
	while (!atomic_load(&b->stop) && request_next(b, &r)) {
		uint8_t status;

		pthread_mutex_unlock(&b->v.lock);
		status = do_request(b, &r);
		pthread_mutex_lock(&b->v.lock);
		request_end(b, &r, status);
	}
	pthread_mutex_unlock(&b->v.lock);
}

static void *worker(void *arg)
{
	struct blk *b = arg;
	uint64_t count;

	while (!atomic_load(&b->stop)) {
		if (read(b->v.q[0].kick_fd, &count, sizeof(count)) < 0 && errno != EINTR)
			break;
		serve(b);
	}
	return NULL;
}

/* --- creation -------------------------------------------------------------------------------- */

static int disk_open(struct blk *b, const char *path, struct rv_err *err)
{
	struct flock lock = {.l_type = b->ro ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};
	struct stat st;
	off_t size;

	/* O_NONBLOCK: a FIFO must not hang the start; it means nothing to files and disks. */
	b->fd = open(path, (b->ro ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (b->fd < 0 || fstat(b->fd, &st) < 0)
		return rv_err_os(err, WHO, "open %s", path);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return rv_err_set(err, RV_EINVAL, WHO, "%s: expected a file or a block device",
				  path);
	if (fcntl(b->fd, F_OFD_SETLK, &lock) < 0) {
		if (errno == EAGAIN || errno == EACCES)
			return rv_err_set(err, RV_EBUSY, WHO, "%s is in use by another process",
					  path);
		return rv_err_os(err, WHO, "lock %s", path);
	}
	size = lseek(b->fd, 0, SEEK_END);
	if (size < 0)
		return rv_err_os(err, WHO, "size of %s", path);
	b->capacity = (uint64_t)size / SECTOR * SECTOR;
	if (!b->capacity)
		return rv_err_set(err, RV_EINVAL, WHO, "%s: smaller than one sector", path);
	return RV_OK;
}

static void config_fill(struct blk *b)
{
	struct virtio_blk_config *c = &b->config;

	c->capacity = htole64(b->capacity / SECTOR);
	c->seg_max = htole32(SEG_MAX);
	c->blk_size = htole32(SECTOR);
	b->v.features = 1ull << VIRTIO_BLK_F_SEG_MAX | 1ull << VIRTIO_BLK_F_BLK_SIZE |
			1ull << VIRTIO_BLK_F_FLUSH;
	if (b->ro) {
		b->v.features |= 1ull << VIRTIO_BLK_F_RO;
		return;
	}
	b->v.features |= 1ull << VIRTIO_BLK_F_DISCARD | 1ull << VIRTIO_BLK_F_WRITE_ZEROES;
	c->max_discard_sectors = c->max_write_zeroes_sectors = htole32(RANGE_SECTORS_MAX);
	c->max_discard_seg = c->max_write_zeroes_seg = htole32(RANGES_MAX);
	c->discard_sector_alignment = htole32(1);
	c->write_zeroes_may_unmap = 1;
}

static void blk_destroy(void *dev)
{
	struct blk *b = dev;

	if (b->started) {
		atomic_store(&b->stop, true);
		rv_virtio_poke(&b->v, 0);
		pthread_join(b->thread, NULL);
	}
	rv_virtio_detach(&b->v);
	if (b->fd >= 0)
		close(b->fd);
	free(b->bounce);
	free(b);
}

static int worker_start(struct blk *b, struct rv_err *err)
{
	sigset_t all, old;
	int rc;

	/* Signals are the main thread's business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&b->thread, NULL, worker, b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		errno = rc;
		return rv_err_os(err, WHO, "start the disk's thread");
	}
	b->started = true;
	pthread_setname_np(b->thread, "rv-blk");
	return RV_OK;
}

static const struct rv_virtio_ops blk_ops = {0};

static int blk_setup(struct blk *b, const char *option, struct rv_err *err)
{
	static const char *const keys[] = {"ro", "serial", NULL};
	char path[4096], serial[VIRTIO_BLK_ID_BYTES + 1] = "", flag[1];
	int rc;

	if (!rv_opt_first(option, path, sizeof(path)))
		return rv_err_set(err, RV_EINVAL, WHO, "expected path[,ro][,serial=S]");
	rc = rv_opt_check(option, true, keys, WHO, err);
	if (rc)
		return rc;
	b->ro = rv_opt_get(option, "ro", flag, sizeof(flag));
	rv_opt_get(option, "serial", serial, sizeof(serial));
	memcpy(b->serial, serial, sizeof(b->serial));
	b->bounce = malloc(BOUNCE);
	if (!b->bounce)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	rc = disk_open(b, path, err);
	if (rc)
		return rc;
	config_fill(b);
	b->v.ops = &blk_ops;
	b->v.device_id = VIRTIO_ID_BLOCK;
	b->v.nqueues = 1;
	b->v.queue_max = RV_VIRTQ_MAX;
	b->v.config = &b->config;
	b->v.config_len = sizeof(b->config);
	return RV_OK;
}

int rv_virtio_blk_create(struct rv_vm *vm, const char *option, struct rv_err *err)
{
	struct blk *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return rv_err_set(err, RV_ENOMEM, WHO, "no memory");
	b->fd = -1;
	rv_virtio_init(&b->v, vm);
	rc = blk_setup(b, option, err);
	if (!rc)
		rc = rv_virtio_attach(&b->v, "virtio-blk", err);
	if (!rc)
		rc = worker_start(b, err);
	if (rc) {
		blk_destroy(b);
		return rc;
	}
	return rv_vm_add_device(vm, b, blk_destroy, err);
}
