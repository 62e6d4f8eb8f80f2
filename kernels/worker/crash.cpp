#include "kernels/worker/crash.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "kernels/worker/protocol_process.hpp"

namespace attest::worker {

Circumstances circumstances;

namespace {

constexpr std::size_t handler_stack_bytes = 64 * 1024;

struct MachineState {
    std::uint32_t access = 0;
    std::uint64_t stack_pointer = 0, instruction = 0;
};

MachineState machine_state([[maybe_unused]] const ucontext_t& context) {
    MachineState state;
#if defined(__x86_64__)
    const auto& registers = context.uc_mcontext.gregs;
    constexpr greg_t page_fault = 14;
    if (registers[REG_TRAPNO] == page_fault) {
        state.access = (registers[REG_ERR] & 2) != 0 ? 2 : 1;  // bit 1 of the error code: a write
    }
    state.stack_pointer = static_cast<std::uint64_t>(registers[REG_RSP]);
    state.instruction = static_cast<std::uint64_t>(registers[REG_RIP]);
#elif defined(__aarch64__)
    state.stack_pointer = context.uc_mcontext.sp;
    state.instruction = context.uc_mcontext.pc;
#endif
    return state;
}

/// The system's own libraries say nothing of who called them.
bool is_system(const char* file) {
    constexpr std::array<const char*, 6> own = {"libc.so", "libstdc++.so", "libgcc_s.so",
                                                "libm.so", "libpthread",   "ld-linux"};
    for (const char* name : own)
        if (std::strstr(file, name) != nullptr) return true;
    return false;
}

/// The innermost frame of somebody else's code above an instruction of the system's libraries.
struct Walk {
    std::uint64_t instruction = 0, found = 0;
    bool begun = false;
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* data) {
    auto& walk = *static_cast<Walk*>(data);
    const std::uint64_t at = _Unwind_GetIP(context);
    walk.begun = walk.begun || at == walk.instruction;
    Dl_info info{};
    if (!walk.begun || ::dladdr(reinterpret_cast<void*>(at), &info) == 0 ||
        info.dli_fname == nullptr || is_system(info.dli_fname))
        return _URC_NO_REASON;
    walk.found = at - 1;  // of the call, not of what comes behind it
    return _URC_END_OF_STACK;
}

std::uint64_t telling_instruction(std::uint64_t instruction) {
    Dl_info info{};
    const bool known = ::dladdr(reinterpret_cast<void*>(instruction), &info) != 0;
    if (!known || info.dli_fname == nullptr || !is_system(info.dli_fname)) return instruction;
    Walk walk{instruction};
    _Unwind_Backtrace(step, &walk);
    return walk.found != 0 ? walk.found : instruction;
}

void send_now(const void* frame, std::size_t size) {
    ::send(protocol::socket_fd, frame, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// "libbroken.so+0x1a40 (init_tables)". dladdr may take the loader's lock, so the fault itself has
/// been sent before.
void send_location(std::uint64_t instruction) {
    Dl_info info{};
    // An address from the machine, not a pointer this program ever had.
    if (::dladdr(reinterpret_cast<void*>(instruction), &info) == 0) return;
    if (info.dli_fname == nullptr) return;
    const char* slash = std::strrchr(info.dli_fname, '/');
    const char* file = slash == nullptr ? info.dli_fname : slash + 1;
    const auto offset = instruction - reinterpret_cast<std::uint64_t>(info.dli_fbase);
    struct {
        protocol::LocationFrame frame;
        std::array<char, 512> text{};
    } message;
    const bool named = info.dli_sname != nullptr;
    const int wrote =
        std::snprintf(message.text.data(), message.text.size(), "%s+0x%llx%s%s%s", file,
                      static_cast<unsigned long long>(offset), named ? " (" : "",
                      named ? info.dli_sname : "", named ? ")" : "");
    if (wrote <= 0) return;
    const std::size_t length = std::min(static_cast<std::size_t>(wrote), message.text.size() - 1);
    message.frame.header.kind = protocol::FrameKind::location;
    message.frame.header.size = static_cast<std::uint32_t>(sizeof message.frame + length);
    message.frame.text_bytes = static_cast<std::uint32_t>(length);
    send_now(&message, message.frame.header.size);
}

/// A stack that runs out is there from the last call to the first frame. One that was unmapped is
/// not, up to that frame, or the system would have grown it again; one that was protected is not
/// a hole.
bool stack_was_taken(const siginfo_t& info) {
    if (circumstances.stack_foot == 0 || info.si_signo != SIGSEGV) return false;
    // Whether memory can be written, by a call that harms nobody: it writes what signals are held.
    constexpr long mask_bytes = 8;
    auto* const foot = reinterpret_cast<void*>(circumstances.stack_foot);
    if (::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, foot, mask_bytes) != 0) return true;
    const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
    return info.si_code == SEGV_ACCERR &&
           circumstances.stack_foot - address < protocol::stack_bytes_max;
}

void on_signal(int signal, siginfo_t* info, void* context) {
    const MachineState machine = machine_state(*static_cast<const ucontext_t*>(context));
    protocol::FaultFrame fault;
    fault.header.kind = protocol::FrameKind::fault;
    fault.header.size = sizeof fault;
    fault.signal = static_cast<std::uint32_t>(signal);
    fault.code = info->si_code;
    fault.access = machine.access;
    fault.phase = circumstances.phase;
    // si_addr means something only where the kernel raised the signal for an access.
    if (info->si_code > 0) fault.address = reinterpret_cast<std::uint64_t>(info->si_addr);
    if (fault.address - circumstances.text_guard < circumstances.text_guard_bytes)
        fault.phase = protocol::Phase::text;
    fault.arena = circumstances.arena;
    fault.arena_bytes = circumstances.arena_bytes;
    fault.stack_pointer = machine.stack_pointer;
    fault.instruction = machine.instruction;
    fault.allocation_failed = circumstances.allocation_failed ? 1 : 0;
    fault.stack_taken = stack_was_taken(*info) ? 1 : 0;
    send_now(&fault, sizeof fault);
    // Who called stands on the stack.
    const bool walks = fault.stack_taken == 0;
    send_location(walks ? telling_instruction(machine.instruction) : machine.instruction);
    // Now for good: with the default action an access that faults again, and abort() after its
    // handler returns, both end the process; a signal that was sent is sent once more.
    std::signal(signal, SIG_DFL);
    if (info->si_code <= 0) ::raise(signal);
}

void on_failed_new() {
    circumstances.allocation_failed = true;
    throw std::bad_alloc();
}

}  // namespace

void install_crash_reports() {
    static std::array<std::byte, handler_stack_bytes> stack;
    stack_t alternate{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    ::sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
        ::sigaction(signal, &action, nullptr);
    }
    std::set_new_handler(on_failed_new);
}

bool crash_reports_stand() {
    for (const int signal : {SIGSEGV, SIGBUS}) {
        struct sigaction action {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_sigaction != on_signal)
            return false;
    }
    return true;
}

}  // namespace attest::worker
