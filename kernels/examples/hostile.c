/* Kernels that make trouble for the process they run in and for its judge, by index, as
 * misbehaving.c has those that make trouble for their tensors. HOSTILE_FILE in the environment
 * names a file by whose size a kernel knows how often it was loaded. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trouble.h"

static size_t one_tebibyte(void* s, const attest_problem* p) {
    (void)s, (void)p;
    return (size_t)1 << 40;
}

static size_t four_exbibytes(void* s, const attest_problem* p) {
    (void)s, (void)p;
    return (size_t)1 << 62;
}

static size_t all_there_is(void* s, const attest_problem* p) {
    (void)s, (void)p;
    return SIZE_MAX;
}

/* Descriptor 4 is the memory that the judge has mapped. */
static int shrink_memory(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s;
    if (ftruncate(4, 0) != 0) return fill(c, 0);
    snprintf(error, cap, "the memory is gone");
    return 1;
}

static int grow_memory(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c, ftruncate(4, (off_t)1 << 42) == 0 ? 1 : 0);
}

/* As JAX, CUDA, OpenVINO and sanitizers do: addresses, not memory. */
static int reserve_addresses(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s;
    const size_t bytes = (size_t)1 << 44;
    void* room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        snprintf(error, cap, "no addresses");
        return 1;
    }
    munmap(room, bytes);
    return fill(c, 0);
}

/* Each call is over long before anybody looks. */
static int leak(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    static char* volatile lost;
    lost = malloc(4 << 20);
    memset(lost, 1, 4 << 20);
    return fill(c, 0);
}

/* The same with memory that another process could share. */
static int leak_shared(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    void* lost = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lost != MAP_FAILED) memset(lost, 1, 4 << 20);
    return fill(c, 0);
}

static int kill_itself(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    kill(getpid(), SIGKILL);
    return 0;
}

static void* write_wild(void* nothing) {
    (void)nothing;
    usleep(30000);
    volatile uintptr_t address = 8;
    *(volatile int*)address = 1;
    return NULL;
}

static int leave_a_thread_that_crashes(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    pthread_t thread;
    pthread_create(&thread, NULL, write_wild, NULL);
    pthread_detach(thread);
    return fill(c, 0);
}

static int hang_in_supports(void* s, const attest_problem* p, char* reason, size_t cap) {
    (void)s, (void)p, (void)reason, (void)cap;
    pause();
    return 1;
}

/* How often this kernel was loaded, this time included. */
static long loads(void) {
    const char* path = getenv("HOSTILE_FILE");
    const int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, ".", 1) != 1) return 0;
    const long bytes = (long)lseek(file, 0, SEEK_END);
    close(file);
    return bytes;
}

static int fail(char* error, size_t cap) {
    snprintf(error, cap, "the device is taken");
    return 9;
}

static int fail_at_load_2(void** s, char* error, size_t cap) {
    (void)s;
    return loads() == 2 ? fail(error, cap) : 0;
}

static int fail_from_load_2(void** s, char* error, size_t cap) {
    (void)s;
    return loads() >= 2 ? fail(error, cap) : 0;
}

static int die_once(void** s, char* error, size_t cap) {
    (void)error, (void)cap;
    static int only;
    *s = loads() == 1 ? &only : NULL;
    return 0;
}

static int be_killed_once(void* s, const attest_call* c, char* error, size_t cap) {
    return s != NULL ? kill_itself(s, c, error, cap) : fill(c, 0);
}

/* In every element, on how many processors it may run. */
static int count_processors(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    return fill(c, (float)CPU_COUNT(&mine));
}

/* One slope too many, as a loop over heads rounded up to a pair reads it. */
static int read_past_slopes(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const DLTensor* slopes = c->tensor[ATTEST_ROLE_ALIBI_SLOPES];
    return fill(c, ((volatile float*)slopes->data)[slopes->shape[0]] != 0);
}

static int exit_with_7(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    exit(7);
}

static int die_of_term(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    kill(getpid(), SIGTERM);
    return fill(c, 0);
}

static const kernel kernels[] = {
    {"one_tebibyte", answer, one_tebibyte, NULL, yes},
    {"four_exbibytes", answer, four_exbibytes, NULL, yes},
    {"all_there_is", answer, all_there_is, NULL, yes},
    {"shrink_memory", shrink_memory, NULL, NULL, yes},
    {"grow_memory", grow_memory, NULL, NULL, yes},
    {"reserve_addresses", reserve_addresses, NULL, NULL, yes},
    {"leak", leak, NULL, NULL, yes},
    {"leak_shared", leak_shared, NULL, NULL, yes},
    {"kill_itself", kill_itself, NULL, NULL, yes},
    {"be_killed_once", be_killed_once, NULL, die_once, yes},
    {"leave_a_thread_that_crashes", leave_a_thread_that_crashes, NULL, NULL, yes},
    {"hang_in_supports", answer, NULL, NULL, hang_in_supports},
    {"fail_at_load_2", kill_itself, NULL, fail_at_load_2, yes},
    {"fail_from_load_2", kill_itself, NULL, fail_from_load_2, yes},
    {"count_processors", count_processors, NULL, NULL, yes},
    {"read_past_slopes", read_past_slopes, NULL, NULL, yes},
    {"exit_with_7", exit_with_7, NULL, NULL, yes},
    {"die_of_term", die_of_term, NULL, NULL, yes},
};

TROUBLE(kernels)
