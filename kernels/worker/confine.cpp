#include <asm/sockios.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "kernels/worker/confinement.hpp"
#include "kernels/worker/discipline.hpp"
#include "kernels/worker/frames.hpp"
#include "kernels/worker/protocol_process.hpp"

namespace attest::worker {
namespace {

void write_file(const char* path, const std::string& text) {
    const int file = ::open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t wrote = ::write(file, text.data(), text.size());
    ::close(file);
}

/// In a user namespace, where this process is nobody until it says who it was.
void keep_identity(uid_t user, gid_t group) {
    if (::getuid() == user && ::getgid() == group) return;
    const auto itself = [](auto id) {
        return std::to_string(id) + " " + std::to_string(id) + " 1";
    };
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", itself(user));
    write_file("/proc/self/gid_map", itself(group));
}

bool mount_proc() {
    return ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

/// Terminals of its own alone, which are none: what a person types or reads passes by those
/// outside.
void mount_terminals() {
    ::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666");
}

/// Files in memory of its own alone, so that they end with it and count as its memory. What
/// somebody has laid there stays where it is, and with it everything.
void mount_shared_memory() {
    std::error_code failure;
    if (std::filesystem::is_empty("/dev/shm", failure) && !failure)
        ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, nullptr);
}

bool make_read_only(const std::string& folder) {
    struct statvfs system {};
    if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::statvfs(folder.c_str(), &system) != 0)
        return false;
    // A user namespace may not lift what the mount forbids already.
    constexpr unsigned long kept = ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME;
    const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | (system.f_flag & kept);
    if (::mount(nullptr, folder.c_str(), nullptr, flags, nullptr) != 0) return false;
    // Where this process already stands inside, it stands below the new mount.
    std::error_code failure;
    const auto here = std::filesystem::current_path(failure);
    if (!failure) std::filesystem::current_path(here, failure);
    return true;
}
static_assert(int{ST_NOSUID} == int{MS_NOSUID} && int{ST_NODEV} == int{MS_NODEV} &&
              int{ST_NOEXEC} == int{MS_NOEXEC} && int{ST_NOATIME} == int{MS_NOATIME});

/// The settings of the system, which root writes without any capability.
bool make_settings_read_only() {
    bool done = true;
    for (const char* name :
         {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"})
        done = (::access(name, F_OK) != 0 || make_read_only(name)) && done;
    return done;
}

/// The first process of a namespace: gathers what ends, and ends with its child.
[[noreturn]] void look_after(pid_t child) {
    ::close(protocol::memory_fd);
    for (;;) {
        int status = 0;
        const pid_t ended = ::waitpid(-1, &status, 0);
        if (ended < 0 && errno == EINTR) continue;
        if (ended >= 0 && ended != child) continue;
        protocol::EndReport report;
        if (WIFSIGNALED(status)) report.signal = WTERMSIG(status);
        if (WIFEXITED(status)) report.code = WEXITSTATUS(status);
        [[maybe_unused]] const ssize_t wrote = ::write(protocol::end_fd, &report, sizeof report);
        ::_exit(0);
    }
}

bool give_up_rights() {
    for (int right = 0; ::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) == 0; ++right) {
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    return ::syscall(SYS_capset, &header, none) == 0 &&
           ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/// Landlock's rights to change files, by the version that knows them (its number follows).
constexpr std::uint64_t change_1 = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                   LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t change_2 = 1ull << 13;  // to rename across folders
constexpr std::uint64_t change_3 = 1ull << 14;  // to truncate

void allow_changes_below(int rules, const std::string& path, std::uint64_t changes) {
    const int file = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (file < 0) return;  // there is none to write in
    landlock_path_beneath_attr rule{changes, file};
    ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    ::close(file);
}

/// Accelerators, and what everybody may write: not disks, which are root's, and not terminals.
void allow_devices(int rules, std::uint64_t changes) {
    constexpr std::string_view accelerators[] = {
        "nvidia", "nvhost", "nvmap",  "nvgpu", "dri",     "kfd",       "accel",
        "dxg",    "apex",   "neuron", "hl",    "davinci", "infiniband"};
    constexpr unsigned terminals = 5;  // the number of /dev/tty, /dev/console and /dev/ptmx
    std::error_code failure;
    for (const auto& device : std::filesystem::directory_iterator("/dev", failure)) {
        const std::string name = device.path().filename();
        struct stat status {};
        if (::stat(device.path().c_str(), &status) != 0) continue;
        const bool everybodys = S_ISCHR(status.st_mode) && (status.st_mode & S_IWOTH) != 0 &&
                                major(status.st_rdev) != terminals;
        if (everybodys || std::ranges::any_of(accelerators, [&](std::string_view accelerator) {
                return name.starts_with(accelerator);
            }))
            allow_changes_below(rules, device.path(), changes);
    }
}

bool limit_writes(bool settings_are_read_only) {
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return false;
    const std::uint64_t changes =
        change_1 | (version >= 2 ? change_2 : 0) | (version >= 3 ? change_3 : 0);
    const landlock_ruleset_attr handled{changes};
    const int rules =
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
    if (rules < 0) return false;
    for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm"})
        allow_changes_below(rules, folder, changes);
    allow_changes_below(rules, settings_are_read_only ? "/proc" : "/proc/self", changes);
    allow_devices(rules, LANDLOCK_ACCESS_FS_WRITE_FILE | (version >= 3 ? change_3 : 0));
    for (const char* variable : {"TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR",
                                 "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR",
                                 "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR", "TORCH_EXTENSIONS_DIR"})
        if (const char* folder = std::getenv(variable)) allow_changes_below(rules, folder, changes);
    if (const char* home = std::getenv("HOME"))
        for (const char* cache : {"/.cache", "/.triton", "/.nv"})
            allow_changes_below(rules, home + std::string(cache), changes);
    const bool done = ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    ::close(rules);
    return done;
}

/// Refuses, with EPERM, what reaches beyond this process. alone: in a namespace of its own, where
/// no signal reaches another's process.
bool limit_system_calls(bool alone) {
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == nullptr) return false;
    bool done = true;
    const auto answer = [&](int error, const char* name, auto... condition) {
        const int call = seccomp_syscall_resolve_name(name);
        if (call == __NR_SCMP_ERROR) return;  // this machine has none
        done = done && seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)),
                                        call, sizeof...(condition), condition...) == 0;
    };
    const auto refuse = [&](auto... what) { answer(EPERM, what...); };
    for (const char* name :
         {"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_open",
          "pidfd_getfd", "pidfd_send_signal", "kcmp", "socket", "io_uring_setup", "bpf", "setns",
          "unshare", "keyctl", "add_key", "request_key"})
        refuse(name);
    // What lasts when its maker has ended, belongs to everybody of this user, and is no process's
    // memory. Libraries take POSIX's, which are files.
    for (const char* name : {"shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl",
                             "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"})
        refuse(name);
    refuse("prlimit64", SCMP_A0(SCMP_CMP_NE, 0));
    for (const scmp_datum_t space : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
                                     CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP})
        refuse("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, space, space));
    // What it is asked for cannot be seen here. Every library asks the older one then.
    answer(ENOSYS, "clone3");
    if (!alone) {
        // Also by way of a file whose news are told to another process.
        for (const int command : {F_SETOWN, F_SETOWN_EX, F_SETSIG})
            refuse("fcntl", SCMP_A1_32(SCMP_CMP_EQ, static_cast<std::uint32_t>(command)));
        for (const std::uint32_t request : {std::uint32_t{FIOSETOWN}, std::uint32_t{SIOCSPGRP}})
            refuse("ioctl", SCMP_A1_32(SCMP_CMP_EQ, request));
        refuse("tkill");
        const auto itself = static_cast<scmp_datum_t>(::getpid());
        for (const char* name : {"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"})
            refuse(name, SCMP_A0_32(SCMP_CMP_NE, static_cast<std::uint32_t>(itself)));
    }
    done = done && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return done;
}

}  // namespace

void confine(const std::string& results, uid_t user, gid_t group) {
    Barriers barriers;
    const bool first = ::getpid() == 1;
    bool settings_are_read_only = false;
    if (first) {
        keep_identity(user, group);
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        barriers.add(Barrier::processes);
        if (mount_proc()) {
            barriers.add(Barrier::proc);
            settings_are_read_only = make_settings_read_only();
        }
        mount_terminals();
        mount_shared_memory();
        if (!results.empty() && make_read_only(results)) barriers.add(Barrier::results);
        const pid_t child = ::fork();
        if (child > 0) look_after(child);
        if (child < 0) ::_exit(0);
        die_with_parent();
    }
    // What the kernel could write there would be believed.
    ::close(protocol::end_fd);
    if (give_up_rights()) barriers.add(Barrier::rights);
    if (limit_writes(settings_are_read_only)) barriers.add(Barrier::files);
    if (limit_system_calls(first)) barriers.add(Barrier::system_calls);
    protocol::ConfinedFrame frame;
    frame.header.kind = protocol::FrameKind::confined;
    frame.barriers = barriers.bits();
    send(frame);
}

}  // namespace attest::worker
