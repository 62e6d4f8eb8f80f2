/* Kernels that end, or go on, in ways that are easily called by a wrong name, by index. What they
 * answer is zeros. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trouble.h"

FORWARD(limit_its_own_time) {
    const struct rlimit second = {1, 1};
    setrlimit(RLIMIT_CPU, &second);
    for (volatile int on = 1; on;) {
    }
    return DONE;
}

static sigjmp_buf before_the_fault;
static void jump_back(int number) {
    (void)number;
    siglongjmp(before_the_fault, 1);
}

/* What the judge finds after the call is its own. */
FORWARD(handle_faults_and_give_back) {
    const DLTensor* k = c->tensor[ATTEST_ROLE_K];
    struct sigaction before, mine = {0};
    mine.sa_handler = jump_back;
    sigaction(SIGSEGV, &mine, &before);
    if (sigsetjmp(before_the_fault, 1) == 0) (void)((volatile float*)k->data)[count(k) + 1024];
    sigaction(SIGSEGV, &before, NULL);
    return DONE;
}

FORWARD(set_an_alarm_for_later) {
    const struct itimerval soon = {{0, 0}, {0, 30000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    return DONE;
}

static void* pages_of(const attest_call* c, int role, size_t* bytes) {
    const uintptr_t page = 4096, begin = (uintptr_t)c->tensor[role]->data & ~(page - 1);
    *bytes = page;
    return (void*)begin;
}

FORWARD(unmap_its_output) {
    DONE;
    size_t bytes;
    void* pages = pages_of(c, ATTEST_ROLE_O, &bytes);
    return munmap(pages, bytes);
}

/* All of it, from where this call stands. */
static uintptr_t its_stack(size_t* bytes) {
    const uintptr_t page = 4096, begin = (uintptr_t)__builtin_frame_address(0) & ~(page - 1);
    unsigned char there;
    for (*bytes = page; mincore((void*)(begin + *bytes), page, &there) == 0;) *bytes += page;
    return begin;
}

FORWARD(unmap_its_stack) {
    size_t bytes;
    void* stack = (void*)its_stack(&bytes);
    munmap(stack, bytes);
    return DONE;
}

FORWARD(protect_its_stack) {
    size_t bytes;
    void* stack = (void*)its_stack(&bytes);
    mprotect(stack, 4096, PROT_READ);
    return DONE;
}

static volatile char last;
__attribute__((noinline)) static void fill_the_stack(int depth) {
    volatile char much[16384];
    much[depth % 16384] = 1;
    if (depth >= 0) fill_the_stack(depth + 1);
    last = much[0];
}

/* It ends where the kernel said so itself. */
FORWARD(shorten_its_stack) {
    const struct rlimit little = {1 << 20, 64 << 20};
    setrlimit(RLIMIT_STACK, &little);
    fill_the_stack(0);
    return DONE;
}

FORWARD(change_an_input_it_may_not) {
    size_t bytes;
    void* pages = pages_of(c, ATTEST_ROLE_K, &bytes);
    mprotect(pages, bytes, PROT_READ | PROT_WRITE);
    first(c, ATTEST_ROLE_K)[0] += 1;
    return DONE;
}

FORWARD(change_an_input_by_a_file) {
    const float other = first(c, ATTEST_ROLE_K)[0] + 1;
    const int memory = open("/proc/self/mem", O_RDWR);
    if (pwrite(memory, &other, sizeof other, (off_t)(uintptr_t)first(c, ATTEST_ROLE_K)) < 0)
        first(c, ATTEST_ROLE_O)[0] = 1;
    close(memory);
    return DONE;
}

static float* late;
static void* write_late(void* nothing) {
    usleep(5000);
    for (int i = 0; i < 500; ++i, usleep(100)) *(volatile float*)late = 7;
    return nothing;
}
FORWARD(write_after_it_returned) {
    pthread_t thread;
    static int runs;
    late = first(c, ATTEST_ROLE_O);
    if (!runs) pthread_create(&thread, NULL, write_late, NULL);
    runs = 1;
    return DONE;
}

FORWARD(change_its_circumstances) {
    fesetround(FE_UPWARD);
    setlocale(LC_ALL, "de_DE.UTF-8");
    umask(0777);
    if (chdir("/") != 0 || setenv("PATH", "", 1) != 0) return 1;
    prctl(PR_SET_PDEATHSIG, 0);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "init");
    close(0), close(1), close(2);
    clearenv();
    return DONE;
}

static int* volatile nowhere = (int*)8;
static void crash(void) {
    *nowhere = 1;
}

FORWARD(take_the_stack_of_signals_away) {
    const stack_t none = {NULL, SS_DISABLE, 0};
    sigaltstack(&none, NULL);
    crash();
    return DONE;
}

FORWARD(block_all_signals_and_crash) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    crash();
    return DONE;
}

FORWARD(abort_at_its_end) {
    (void)c, (void)s, (void)error, (void)cap;
    atexit(abort);
    exit(0);
}

FORWARD(be_traced) {
    const long traced = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    DONE;
    return fill(c, traced == 0);
}

FORWARD(return_twice) { /* the child serves the judge too */
    if (fork() < 0) return 1;
    return DONE;
}

FORWARD(leave_many_children) {
    for (int i = 0; i < 50; ++i)
        if (fork() == 0)
            for (;;) pause();
    return DONE;
}

FORWARD(end_by_a_childs_hand) {
    const pid_t child = vfork();
    if (child == 0) _exit(5);
    waitpid(child, NULL, 0);
    if (fork() == 0) {
        kill(getppid(), SIGTERM);
        _exit(0);
    }
    for (;;) pause();
    return DONE;
}

static void* call_exit(void* nothing) {
    exit(4);
    return nothing;
}
static void* call_abort(void* nothing) {
    abort();
    return nothing;
}
static int by_thread(void* (*body)(void*)) {
    pthread_t thread;
    pthread_create(&thread, NULL, body, NULL);
    for (;;) pause();
    return 0;
}
FORWARD(exit_in_a_thread) {
    by_thread(call_exit);
    return DONE;
}
FORWARD(abort_in_a_thread) {
    by_thread(call_abort);
    return DONE;
}

FORWARD(wait_for_input) {
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    return DONE;
}

static const kernel kernels[] = {
    KERNEL(limit_its_own_time),
    KERNEL(handle_faults_and_give_back),
    KERNEL(set_an_alarm_for_later),
    KERNEL(unmap_its_output),
    KERNEL(unmap_its_stack),
    KERNEL(protect_its_stack),
    KERNEL(shorten_its_stack),
    KERNEL(change_an_input_it_may_not),
    KERNEL(change_an_input_by_a_file),
    KERNEL(write_after_it_returned),
    KERNEL(change_its_circumstances),
    KERNEL(take_the_stack_of_signals_away),
    KERNEL(block_all_signals_and_crash),
    KERNEL(abort_at_its_end),
    KERNEL(be_traced),
    KERNEL(return_twice),
    KERNEL(leave_many_children),
    KERNEL(end_by_a_childs_hand),
    KERNEL(exit_in_a_thread),
    KERNEL(abort_in_a_thread),
    KERNEL(wait_for_input),
};

TROUBLE(kernels)
