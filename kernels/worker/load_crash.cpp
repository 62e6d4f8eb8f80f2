#include "kernels/worker/load_crash.hpp"

#include <fmt/format.h>

#include <tuple>

#include "kernels/worker/printed.hpp"

namespace attest::worker {
namespace {

std::string load_phase(const kernel::KernelSpec& spec, const WorkerDeath& death) {
    if (!death.last_words) return "while it was loaded";
    switch (death.last_words->phase) {
        case protocol::Phase::get_kernel:
            return fmt::format("inside attest_get_kernel({}, {})", ATTEST_ABI_VERSION, spec.index);
        case protocol::Phase::create:
            return "inside create()";
        default:
            return "while it was loaded";
    }
}

}  // namespace

std::string source_of(const kernel::KernelSpec& spec) {
    return spec.interface == kernel::KernelInterface::python ? "python" : spec.text;
}

LoadCrash load_crash(const kernel::KernelSpec& spec, const WorkerDeath& death, bool same) {
    std::vector<std::string> details;
    if (!death.location.empty()) details.push_back("at " + death.location);
    const std::string word = telling_line(death.printed);
    if (!word.empty()) details.push_back("it had printed: " + word);
    const bool hung = death.killed_by_host;
    const bool silent = death.event == WorkerProcess::Event::silence;
    details.push_back(
        hung ? "no law was checked"
        : same
            ? fmt::format("no law was checked; {} attempts, the same each time", load_attempts)
            : fmt::format("no law was checked; {} attempts, each time another way", load_attempts));
    const std::string source = source_of(spec);
    if (hung) {
        const std::string_view how =
            silent ? "showed no sign of life for" : "was not loaded within";
        const auto limit = silent ? load_silence : load_time_min;
        return LoadCrash(fmt::format("{}: it {} {} s{}", source, how, limit.count() / 1000,
                                     silent ? " while it was loaded" : ""),
                         std::move(details));
    }
    return LoadCrash(
        fmt::format("{}: its process {} {}", source, describe_end(death), load_phase(spec, death)),
        std::move(details));
}

bool same_end(const WorkerDeath& a, const WorkerDeath& b) {
    const auto end = [](const WorkerDeath& r) {
        const int signal = r.last_words ? static_cast<int>(r.last_words->signal) : r.status.signal;
        return std::tuple(signal, signal == 0 ? r.status.code : 0, r.location);
    };
    return end(a) == end(b);
}

}  // namespace attest::worker
