#include "ci/interrupt.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

namespace attest::ci {

namespace {

// A signal handler may touch little else than these.
std::atomic<int> interrupted{0};
static_assert(std::atomic<int>::is_always_lock_free);
char message[128];
std::size_t message_size = 0;

extern "C" void count_signal(int) {
    const int saved = errno;
    if (interrupted.fetch_add(1) == 0) [[maybe_unused]]
        const ssize_t n = ::write(STDERR_FILENO, message, message_size);
    errno = saved;
}

using Handler = void (*)(int);
constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};
std::array<Handler, signals.size()> before{};

}  // namespace

InterruptGuard::InterruptGuard(int running_cases) {
    interrupted = 0;
    const std::string text = "\n^C  finishing " + std::to_string(running_cases) + " running case" +
                             (running_cases == 1 ? "" : "s") + "; once more to stop at once\n";
    message_size = std::min(text.size(), sizeof message);
    std::memcpy(message, text.data(), message_size);
    for (std::size_t n = 0; n < signals.size(); ++n) {
        before[n] = std::signal(signals[n], count_signal);
        // nohup asks that a terminal which goes away does not matter.
        if (signals[n] == SIGHUP && before[n] == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
    }
}

InterruptGuard::~InterruptGuard() {
    for (std::size_t n = 0; n < signals.size(); ++n) std::signal(signals[n], before[n]);
}

const std::atomic<int>& InterruptGuard::count() const noexcept {
    return interrupted;
}
void InterruptGuard::stop() noexcept {
    interrupted = 2;
}

}  // namespace attest::ci
