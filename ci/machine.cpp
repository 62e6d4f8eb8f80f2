#include "ci/machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace attest::ci {

namespace {

// The text after the first line's separator, of the first line that begins with `key`.
std::string line_value(const char* path, const std::string& key, char separator) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key)) continue;
        std::string value = line.substr(std::min(line.size(), line.find(separator) + 1));
        std::erase(value, '"');
        const std::size_t begin = value.find_first_not_of(" \t");
        return begin == std::string::npos ? "" : value.substr(begin);
    }
    return "unknown";
}

std::string isa() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return "avx512";
    if (__builtin_cpu_supports("avx2")) return "avx2";
    if (__builtin_cpu_supports("sse4.2")) return "sse4.2";
    return "x86-64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "unknown";
#endif
}

std::string compiler() {
#if defined(__clang__)
    return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
    return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

// "NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023": the first word of
// digits with a point between them.
std::string version_in(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;)
        if (word.find_first_not_of("0123456789.") == word.npos && word.find('.') != word.npos)
            return word;
    return "unknown";
}

}  // namespace

std::string gpu_in(const std::string& folder) {
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator(folder + "/gpus", none))
        return line_value((each.path() / "information").c_str(), "Model:", ':') + ", driver " +
               version_in(line_value((folder + "/version").c_str(), "NVRM version", ':'));
    return "";
}

Machine this_machine() {
    return {.cpu = line_value("/proc/cpuinfo", "model name", ':'),
            .isa = isa(),
            .os = line_value("/etc/os-release", "PRETTY_NAME", '='),
            .compiler = compiler(),
            .cores = std::max(1u, std::thread::hardware_concurrency()),
            .memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::int64_t>(sysconf(_SC_PAGESIZE)),
            .gpu = gpu_in("/proc/driver/nvidia")};
}

std::string time_now() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace attest::ci
