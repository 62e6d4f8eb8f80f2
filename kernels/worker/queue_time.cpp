#include "kernels/worker/queue_time.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace attest::worker {

/// schedstat's second number: nanoseconds on a run queue, as the scheduler counts them.
std::map<pid_t, std::chrono::nanoseconds> QueueTime::of_threads() const {
    std::map<pid_t, std::chrono::nanoseconds> threads;
    std::error_code gone;
    const std::string folder = "/proc/" + std::to_string(process_) + "/task";
    for (std::filesystem::directory_iterator it(folder, gone), end; !gone && it != end;
         it.increment(gone)) {
        std::ifstream file(it->path() / "schedstat");
        long long ran = 0, waited = 0;
        if (file >> ran >> waited)
            threads[std::atoi(it->path().filename().c_str())] = std::chrono::nanoseconds(waited);
    }
    return threads;
}

std::chrono::nanoseconds QueueTime::waited() const {
    std::chrono::nanoseconds longest{0};
    for (const auto& [thread, now] : of_threads()) {
        const auto before = before_.find(thread);
        longest = std::max(longest, before == before_.end() ? now : now - before->second);
    }
    return longest;
}

}  // namespace attest::worker
