#include "stand_in_cuda.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "attest_kernel.h"

enum {
    invalid = 1,
    out_of_memory = 2,
    illegal_address = 700,
    not_supported = 801,
    works_max = 64,
    granule = 1 << 21
};

static int lost = 0;
static struct {
    void (*code)(const device_args*);
    device_args args;
    const void* stream;
} works[works_max]; /* in the order they were launched */
static int works_count = 0;
static sigjmp_buf before_the_fault;

static void on_fault(int signal) {
    (void)signal;
    siglongjmp(before_the_fault, 1);
}

static void run(int n) {
    struct sigaction ours, theirs;
    memset(&ours, 0, sizeof ours);
    ours.sa_handler = on_fault;
    sigaction(SIGSEGV, &ours, &theirs);
    if (sigsetjmp(before_the_fault, 1) == 0)
        works[n].code(&works[n].args);
    else
        lost = illegal_address;
    sigaction(SIGSEGV, &theirs, NULL);
}

void device_launch(void (*code)(const device_args*), device_args args, const void* stream) {
    if (works_count == works_max) abort();
    works[works_count].code = code;
    works[works_count].args = args;
    works[works_count++].stream = stream;
}

ATTEST_EXPORT int cudaStreamSynchronize(void* stream) {
    int kept = 0;
    for (int n = 0; n < works_count; ++n) {
        if (works[n].stream != stream)
            works[kept++] = works[n];
        else if (!lost)
            run(n);
    }
    works_count = kept;
    return lost;
}
ATTEST_EXPORT int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
    (void)kind;
    if (cudaStreamSynchronize(NULL) == 0) memcpy(to, from, bytes);
    return lost;
}
static int last_error = 0;
static int is_too_much(size_t bytes) {
    const char* all = getenv("CUDA_STAND_IN_MEMORY");
    return all != NULL && bytes > strtoull(all, NULL, 10);
}
ATTEST_EXPORT int cudaGetLastError(void) {
    const int error = last_error;
    last_error = 0;
    return error;
}
ATTEST_EXPORT int cudaMalloc(void** p, size_t bytes) {
    if (is_too_much(bytes)) return last_error = out_of_memory;
    if (posix_memalign(p, 256, bytes) != 0) abort(); /* aligned as the manual promises */
    return lost;
}
ATTEST_EXPORT int cudaFree(void* p) {
    free(p);
    return lost;
}
ATTEST_EXPORT int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
    static char all[8];
    static int count = 0;
    *stream = &all[count++ % 8];
    return flags == 1 ? lost : not_supported; /* one that waits for the default stream */
}
ATTEST_EXPORT int cudaGetDeviceCount(int* count) {
    *count = getenv("CUDA_STAND_IN_NO_DEVICE") != NULL ? 0 : 1;
    return 0;
}
ATTEST_EXPORT const char* cudaGetErrorString(int code) {
    return code == illegal_address ? "an illegal memory access was encountered" : "no error";
}

/* The driver. A handle is the number of bytes. */
ATTEST_EXPORT int cuMemGetAllocationGranularity(size_t* bytes, const void* allocation, int option) {
    (void)allocation, (void)option;
    *bytes = granule;
    return getenv("CUDA_STAND_IN_GUARDS") != NULL ? 0 : not_supported;
}
ATTEST_EXPORT int cuMemAddressReserve(uint64_t* begin, size_t bytes, size_t alignment,
                                      uint64_t wanted, unsigned long long flags) {
    (void)alignment, (void)wanted, (void)flags;
    void* p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *begin = (uint64_t)(uintptr_t)p;
    return p == MAP_FAILED ? out_of_memory : lost;
}
ATTEST_EXPORT int cuMemAddressFree(uint64_t begin, size_t bytes) {
    munmap((void*)(uintptr_t)begin, bytes);
    return lost;
}
ATTEST_EXPORT int cuMemCreate(uint64_t* handle, size_t bytes, const void* allocation,
                              unsigned long long flags) {
    (void)allocation, (void)flags;
    *handle = bytes;
    return bytes % granule != 0 ? invalid : is_too_much(bytes) ? out_of_memory : lost;
}
ATTEST_EXPORT int cuMemRelease(uint64_t handle) {
    (void)handle;
    return lost;
}
ATTEST_EXPORT int cuMemMap(uint64_t begin, size_t bytes, size_t offset, uint64_t handle,
                           unsigned long long flags) {
    (void)begin, (void)flags;
    return offset == 0 && handle == bytes ? lost : invalid;
}
ATTEST_EXPORT int cuMemUnmap(uint64_t begin, size_t bytes) {
    mprotect((void*)(uintptr_t)begin, bytes, PROT_NONE);
    return lost;
}
ATTEST_EXPORT int cuMemSetAccess(uint64_t begin, size_t bytes, const void* access, size_t count) {
    (void)access;
    return count == 1 && mprotect((void*)(uintptr_t)begin, bytes, PROT_READ | PROT_WRITE) == 0
               ? lost
               : invalid;
}
