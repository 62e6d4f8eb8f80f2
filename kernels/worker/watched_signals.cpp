#include "kernels/worker/watched_signals.hpp"

#include <atomic>
#include <csignal>

// What the functions below stand before, under the C library's other name.
extern "C" int __sigaction(int number, const struct sigaction* action, struct sigaction* before);

namespace attest::worker {
namespace {

std::atomic<bool> taken{false};

void note(int number) {
    if (number == SIGSEGV || number == SIGBUS) taken = true;
}

sighandler_t set_handler(int number, sighandler_t handler, int flags) {
    struct sigaction action {
    }, before{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    note(number);
    return ::__sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

}  // namespace

bool watched_signals_were_taken() {
    return taken.exchange(false);
}

}  // namespace attest::worker

extern "C" {

int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
    if (action != nullptr) attest::worker::note(number);
    return ::__sigaction(number, action, before);
}

sighandler_t signal(int number, sighandler_t handler) {
    return attest::worker::set_handler(number, handler, SA_RESTART);
}

/// signal() where strict ISO C is asked for.
sighandler_t __sysv_signal(int number, sighandler_t handler) {
    return attest::worker::set_handler(number, handler,
                                       static_cast<int>(SA_RESETHAND | SA_NODEFER));
}
}
