#pragma once

#include <stdint.h>

/* The control interface in C, for ctypes and other languages: see control.h. Functions return -1 for a device that is
 * not there. Bytes are unsigned 64-bit. */
#ifdef __cplusplus
extern "C" {
#endif

#define PLIMSOLL_CONTROL_VERSION 3

int plimsoll_control_version(void);
int plimsoll_device_count(void);

/* out: capacity, used, peak, used by segments, context, NCCL, handles, peak by segments, context, NCCL, handles,
 * allocations, frees, refusals. */
#define PLIMSOLL_MEMORY_FIELDS 14
int plimsoll_memory(int device, uint64_t out[PLIMSOLL_MEMORY_FIELDS]);
int plimsoll_reset_peak(int device);

/* The last request that was not given, for want of memory. out: bytes asked for, the reason (0 segments, 1 context,
 * 2 NCCL, 3 handles), and what was taken then by segments, context, NCCL, handles. Returns -1 where there was none. */
#define PLIMSOLL_REFUSAL_FIELDS 6
int plimsoll_refusal(int device, uint64_t out[PLIMSOLL_REFUSAL_FIELDS]);

/* out: pinned, pinned peak, managed. */
void plimsoll_host_memory(uint64_t out[3]);
/* out: launches, read-backs. */
void plimsoll_work(uint64_t out[2]);

/* Called on the thread that copies from the device to the host, before the zeros are written. One at a time; null ends
 * it. */
typedef void (*plimsoll_read_back_listener)(int device, uint64_t bytes);
void plimsoll_on_read_back(plimsoll_read_back_listener listener);

/* What the calling thread's next copy from the device to the host gives in place of zeros, if it is of that size: see
 * control.h. A size of 0 takes it back. */
void plimsoll_answer_next_read_back(const void* bytes, uint64_t size);

/* From now on what happens on streams goes to a new file, one line each:
 *   KIND DEVICE STREAM MARK BYTES NAME
 * launch, call, gemm, copy, read_back, fill, collective, synchronize; `record`: the stream came to MARK; `wait`: it
 * waits for MARK. A collective's line goes on with
 *   COMMUNICATOR RANK RANKS PEER
 * which group (communicators are counted from 1 as they are made), this rank's place in it, its size, and the root or
 * the other side of a transfer, -1 where there is none. The file before it is closed; null ends the log. Returns -1
 * where the file cannot be made. */
int plimsoll_log_work(const char* path);

/* The functions that were called and are not pretended, one a line, into text; returns the length needed, as snprintf
 * does. */
int plimsoll_unpretended(char* text, int capacity);

/* The profile as JSON; as plimsoll_unpretended. */
int plimsoll_profile(char* text, int capacity);

#ifdef __cplusplus
}
#endif
