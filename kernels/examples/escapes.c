/* Kernels that try to get out of their process, or to hide what they do in it, by index. Each
 * answers 0 where it could not, and 1, or a bit each, for what it could. HOSTILE_FILE in the
 * environment names a file or folder to get at, HOSTILE_HOST the process of the judge. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trouble.h"

static pid_t host(void) {
    const char* id = getenv("HOSTILE_HOST");
    return id == NULL ? 0 : (pid_t)atoi(id);
}

static int signal_the_host(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const int signalled = kill(host(), 0) == 0;
    const long handle = syscall(SYS_pidfd_open, host(), 0);
    return fill(c, (float)(signalled | (handle >= 0) << 1));
}

static int trace_the_host(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c, ptrace(PTRACE_SEIZE, host(), NULL, NULL) == 0 ||
                       ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0);
}

static int read_the_host(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    char path[64], buffer[8];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)host());
    const int file = open(path, O_RDONLY);
    struct iovec here = {buffer, sizeof buffer}, there = {NULL, sizeof buffer};
    const int reached = process_vm_readv(getppid(), &here, 1, &there, 1, 0) > 0 || errno == EFAULT;
    return fill(c, (float)((file >= 0) | reached << 1));
}

static int limit_the_host(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const struct rlimit none = {0, 0};
    return fill(c, prlimit(host(), RLIMIT_CORE, &none, NULL) == 0 ||
                       prlimit(getppid(), RLIMIT_CORE, &none, NULL) == 0);
}

static int open_a_socket(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c, socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
}

static int gain_rights(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) _exit(0);
    return fill(c, child > 0 || unshare(CLONE_NEWUSER) == 0 || chroot("/") == 0);
}

static int write_into_the_folder(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    char path[512];
    snprintf(path, sizeof path, "%s/verdict", getenv("HOSTILE_FILE"));
    const int opened = open(path, O_WRONLY) >= 0, removed = unlink(path) == 0;
    snprintf(path, sizeof path, "%s/new", getenv("HOSTILE_FILE"));
    const int made = open(path, O_WRONLY | O_CREAT, 0600) >= 0;
    return fill(c, (float)(opened | removed << 1 | made << 2));
}

static int opens(const char* path) {
    const int file = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
    if (file >= 0) close(file);
    return file >= 0;
}

/* What root owns needs no capability to be written: the system's settings, its disks. */
static int change_the_system(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const int settings = opens("/proc/sys/kernel/core_pattern") | opens("/proc/sysrq-trigger");
    int disk = 0;
    DIR* devices = opendir("/dev");
    for (struct dirent* one; devices != NULL && (one = readdir(devices)) != NULL;) {
        char path[300];
        struct stat status;
        snprintf(path, sizeof path, "/dev/%s", one->d_name);
        if (stat(path, &status) == 0 && S_ISBLK(status.st_mode)) disk |= opens(path);
    }
    if (devices != NULL) closedir(devices);
    const int sys = opens("/sys/kernel/mm/transparent_hugepage/enabled");
    return fill(c, (float)(settings | disk << 1 | sys << 2));
}

/* What a person reads there is the verdict; what is pushed into its input is typed by nobody. */
static int write_on_the_terminal(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const char* const paths[] = {"/dev/tty", getenv("HOSTILE_FILE")};
    int wrote = 0, typed = 0;
    for (int i = 0; i < 2; ++i) {
        const int out = open(paths[i], O_WRONLY | O_NOCTTY | O_NONBLOCK);
        wrote |= out >= 0 && write(out, "● HOLDS\n", 10) > 0;
        const int in = open(paths[i], O_RDONLY | O_NOCTTY | O_NONBLOCK);
        typed |= in >= 0 && ioctl(in, TIOCSTI, "x") == 0;
        close(out);
        close(in);
    }
    return fill(c, (float)(wrote | typed << 1));
}

static int leave_children(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const int file = open(getenv("HOSTILE_FILE"), O_RDONLY | O_CREAT, 0600);
    flock(file, LOCK_SH);
    for (int i = 0; i < 5; ++i) {
        if (fork() != 0) continue;
        setsid();
        signal(SIGTERM, SIG_IGN);
        for (;;) pause();
    }
    return fill(c, 0);
}

static int see_the_environment(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c,
                (float)((getenv("HOSTILE_TOKEN") != NULL) | (getenv("PYTHON_TOKEN") != NULL) << 1));
}

static sigjmp_buf before_the_fault;

static void jump_back(int number) {
    (void)number;
    siglongjmp(before_the_fault, 1);
}

/* Reads past its tensor and goes on as if nothing had been. */
static int handle_faults(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const DLTensor* k = c->tensor[ATTEST_ROLE_K];
    signal(SIGSEGV, jump_back);
    if (sigsetjmp(before_the_fault, 1) == 0) (void)((volatile float*)k->data)[count(k) + 1024];
    return fill(c, 0);
}

static int handle_faults_once(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    static int done;
    if (!done) signal(SIGSEGV, jump_back);
    done = 1;
    return fill(c, 1);
}

static int speaks_of(const char* text, size_t bytes, const char* name) {
    return memmem(text, bytes, name, strlen(name)) != NULL;
}
static int file_speaks_of(const char* path, const char* name) {
    char text[65536];
    const int file = open(path, O_RDONLY);
    const ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text);
    close(file);
    return bytes > 0 && speaks_of(text, (size_t)bytes, name);
}
static int link_speaks_of(const char* path, const char* name) {
    char text[4096];
    const ssize_t bytes = readlink(path, text, sizeof text);
    return bytes > 0 && speaks_of(text, (size_t)bytes, name);
}

/* A kernel that is right for its judge alone has to know who asks. */
static int know_the_judge(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const int program = link_speaks_of("/proc/self/exe", "attest");
    const int name = file_speaks_of("/proc/self/comm", "attest");
    const int command = file_speaks_of("/proc/self/cmdline", "attest");
    const int variable = file_speaks_of("/proc/self/environ", "ATTEST_");
    const int parent = file_speaks_of("/proc/1/comm", "attest");
    const int memory = link_speaks_of("/proc/self/fd/4", "attest");
    return fill(
        c, (float)(program | name << 1 | command << 2 | variable << 3 | parent << 4 | memory << 5));
}

static int signal_everybody(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    if (getppid() == 1) kill(-1, SIGKILL); /* in a namespace of its own alone */
    return fill(c, 0);
}

static int stop(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    raise(SIGSTOP);
    return fill(c, 0);
}

static int set_an_alarm(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const struct itimerval soon = {{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    usleep(200000);
    return fill(c, 0);
}

static int become_another_program(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    execl("/bin/true", "true", (char*)NULL);
    return fill(c, 0);
}

static int take_back_limits(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    setrlimit(RLIMIT_FSIZE, &none);
    setrlimit(RLIMIT_NPROC, &none);
    return fill(c, 0);
}

static int seal_the_memory(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c, fcntl(4, F_ADD_SEALS, F_SEAL_GROW) == 0);
}

static const kernel kernels[] = {
    {"signal_the_host", signal_the_host, NULL, NULL, yes},
    {"trace_the_host", trace_the_host, NULL, NULL, yes},
    {"read_the_host", read_the_host, NULL, NULL, yes},
    {"limit_the_host", limit_the_host, NULL, NULL, yes},
    {"open_a_socket", open_a_socket, NULL, NULL, yes},
    {"gain_rights", gain_rights, NULL, NULL, yes},
    {"write_into_the_folder", write_into_the_folder, NULL, NULL, yes},
    {"change_the_system", change_the_system, NULL, NULL, yes},
    {"write_on_the_terminal", write_on_the_terminal, NULL, NULL, yes},
    {"leave_children_in_sessions_of_their_own", leave_children, NULL, NULL, yes},
    {"see_the_environment", see_the_environment, NULL, NULL, yes},
    {"know_the_judge", know_the_judge, NULL, NULL, yes},
    {"signal_everybody", signal_everybody, NULL, NULL, yes},
    {"stop", stop, NULL, NULL, yes},
    {"set_an_alarm", set_an_alarm, NULL, NULL, yes},
    {"become_another_program", become_another_program, NULL, NULL, yes},
    {"take_back_limits", take_back_limits, NULL, NULL, yes},
    {"seal_the_memory", seal_the_memory, NULL, NULL, yes},
    {"handle_faults", handle_faults, NULL, NULL, yes},
    {"handle_faults_once", handle_faults_once, NULL, NULL, yes},
};

TROUBLE(kernels)
