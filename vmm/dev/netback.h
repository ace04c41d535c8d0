/* SPDX-License-Identifier: Apache-2.0 */
/* netback.h: where Ethernet frames go to and come from; used by virtio_net.c. */
#ifndef RV_VMM_DEV_NETBACK_H
#define RV_VMM_DEV_NETBACK_H

#include <ravelin/error.h>

#include <sys/types.h>

#define RV_NET_FRAME_MAX  9216u	 /* to the outside */
#define RV_NET_STREAM_MAX 65550u /* largest frame that a stream's peer may send */
#define RV_NET_MTU	  1500u

struct rv_netback {
	int fd; /* -1: gone */
	bool stream;
	pid_t child;
	/* stream: bytes received, and the unsent tail of one frame */
	uint8_t *in;
	uint32_t in_len, in_pos;
	uint8_t *out;
	uint32_t out_len, out_pos;
};

/* "tap:IFNAME", "unix:PATH" or "user" (a passt of our own). */
int rv_netback_open(struct rv_netback *n, const char *kind, struct rv_err *err) RV_MUST_CHECK;
void rv_netback_close(struct rv_netback *n);

/*
 * One frame in: RV_OK with *frame valid until the next call; RV_ENOTMAPPED when there is
 * none now; anything else: the other side is gone or talks nonsense.
 */
int rv_netback_recv(struct rv_netback *n, const uint8_t **frame, uint32_t *len) RV_MUST_CHECK;

/* Room for headers lies before the frame: the caller fills from this pointer on. */
uint8_t *rv_netback_frame(struct rv_netback *n);
/* Send what was filled in. RV_EBUSY: a tail is left, wait for EPOLLOUT and flush. */
int rv_netback_send(struct rv_netback *n, uint32_t len) RV_MUST_CHECK;
int rv_netback_flush(struct rv_netback *n) RV_MUST_CHECK;

#endif
