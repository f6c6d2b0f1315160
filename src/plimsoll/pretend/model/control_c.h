#pragma once

#include <stdint.h>

/* The control interface in C, for ctypes and other languages: see control.h. Functions return -1 for an unknown device.
 * Bytes are unsigned 64-bit. */
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

/* The last request that was refused for lack of memory. out: requested bytes, the reason (0 segments, 1 context, 2
 * NCCL, 3 handles), and the bytes used at that time by segments, context, NCCL, handles. Returns -1 if no request was
 * refused. */
#define PLIMSOLL_REFUSAL_FIELDS 6
int plimsoll_refusal(int device, uint64_t out[PLIMSOLL_REFUSAL_FIELDS]);

/* out: pinned, pinned peak, managed. */
void plimsoll_host_memory(uint64_t out[3]);
/* out: launches, read-backs. */
void plimsoll_work(uint64_t out[2]);

/* Called on the thread that copies from the device to the host, before the zeros are written. Only one listener; null
 * removes it. */
typedef void (*plimsoll_read_back_listener)(int device, uint64_t bytes);
void plimsoll_on_read_back(plimsoll_read_back_listener listener);

/* Sets the bytes of the calling thread's next copy from the device to the host: see control.h. A size of 0 removes
 * them. */
void plimsoll_answer_next_read_back(const void* bytes, uint64_t size);

/* Writes all further events of streams to a new file, one line each:
 *   KIND DEVICE STREAM MARK BYTES NAME
 * launch, call, gemm, copy, read_back, fill, collective, synchronize; `record`: the stream reached MARK; `wait`: it
 * waits for MARK. The line of a collective continues with
 *   COMMUNICATOR RANK RANKS PEER
 * the group (numbered from 1 in the order of creation), the rank in it, its size, and the root or the other side of a
 * transfer (-1: none). Closes the previous file; null ends the log. Returns -1 if the file cannot be created. */
int plimsoll_log_work(const char* path);

/* Writes the unimplemented functions that were called, one a line, to text; returns the required length, as snprintf
 * does. */
int plimsoll_unpretended(char* text, int capacity);

/* Writes the profile as JSON, like plimsoll_unpretended. */
int plimsoll_profile(char* text, int capacity);

#ifdef __cplusplus
}
#endif
