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

static char* volatile kept; /* what nobody reads is not written */

FORWARD(allocate_without_end) {
    for (;;) {
        kept = malloc(16 << 20);
        if (kept == NULL) break;
        memset(kept, 1, 16 << 20);
    }
    return DONE;
}

/* Each of the children holds some. */
FORWARD(let_children_hold_memory) {
    for (int i = 0; i < 4; ++i) {
        if (fork() != 0) continue;
        kept = malloc(128 << 20);
        if (kept != NULL) memset(kept, 1, 128 << 20);
        for (;;) pause();
    }
    usleep(500000);
    return DONE;
}

/* Children share what their parent has. */
FORWARD(share_memory_with_children) {
    static char* block;
    static int children;
    const size_t bytes = 100 << 20;
    if (block == NULL) memset(block = malloc(bytes), 1, bytes);
    for (; children < 4; ++children)
        if (fork() == 0)
            for (;;) pause();
    usleep(100000);
    return DONE;
}

FORWARD(fill_a_file_in_memory) {
    static char block[1 << 20];
    const int file = memfd_create("file", 0);
    for (int i = 0; i < 512; ++i)
        if (write(file, block, sizeof block) < 0) return 1;
    usleep(200000);
    return DONE;
}

FORWARD(fill_the_folder_of_shared_memory) {
    static char block[1 << 20];
    const int file = open("/dev/shm/attest_schemes", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 512; ++i)
        if (write(file, block, sizeof block) < 0) return 1;
    close(file);
    usleep(200000);
    unlink("/dev/shm/attest_schemes");
    return DONE;
}

static const kernel kernels[] = {
    KERNEL(limit_its_own_time),
    KERNEL(handle_faults_and_give_back),
    KERNEL(set_an_alarm_for_later),
    KERNEL(unmap_its_output),
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
    KERNEL(allocate_without_end),
    KERNEL(let_children_hold_memory),
    KERNEL(share_memory_with_children),
    KERNEL(fill_a_file_in_memory),
    KERNEL(fill_the_folder_of_shared_memory),
};

TROUBLE(kernels)
