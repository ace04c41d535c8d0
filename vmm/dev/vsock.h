/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vsock.h: connections between vsock ports of a guest and unix sockets of the host,
 * as packets in and packets out; knows no virtqueue. Used by virtio_vsock.c.
 *
 * Everything here runs in the I/O thread with *lock held; descriptors' events take it.
 */
#ifndef RV_VMM_DEV_VSOCK_H
#define RV_VMM_DEV_VSOCK_H

#include "dev.h"

#include <linux/virtio_vsock.h>
#include <pthread.h>

#define RV_VSOCK_BUF (64u << 10) /* what we promise to take per connection; largest packet too */

struct rv_vsock;

/* wake(arg): packets for the guest may be waiting. */
int rv_vsock_create(struct rv_vm *vm, const char *who, uint64_t cid, const char *path,
		    pthread_mutex_t *lock, void (*wake)(void *arg), void *arg,
		    struct rv_vsock **out, struct rv_err *err) RV_MUST_CHECK;
void rv_vsock_destroy(struct rv_vsock *s);

/* The guest's driver has gone, or come back: every connection ends. */
void rv_vsock_reset(struct rv_vsock *s, bool live);

/* May another packet of the guest be taken? No while answers pile up that it does not fetch. */
bool rv_vsock_ready(const struct rv_vsock *s);

/* A packet of the guest; payload has h->len bytes, at most RV_VSOCK_BUF. */
void rv_vsock_take(struct rv_vsock *s, const struct virtio_vsock_hdr *h, const void *payload);

/* The next packet for the guest, with up to room bytes of payload; false: none. */
bool rv_vsock_give(struct rv_vsock *s, struct virtio_vsock_hdr *h, void *payload, uint32_t room);

#endif
