#include "kernels/worker/crash_site.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "kernels/worker/process.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

/// Large libraries have much to read, and what it says is no more than a comfort.
constexpr std::chrono::milliseconds patience{3'000};
constexpr std::size_t name_max = 120;

std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && plain ? printable(plain.get(), name_max) : name;
}

/// "flash.cpp:12", or nothing. It reads a file that somebody else made, and so is held in as the
/// kernel is.
std::string line_of(const std::string& path, const std::string& offset,
                    const SessionOptions& options) {
    WorkerProcess addr2line({"program", "addr2line", "-e", path, offset}, -1, options);
    addr2line.end(patience);
    std::string line = addr2line.take_printed();
    line = line.substr(0, line.find_first_of(" \n"));
    line.erase(0, line.find_last_of('/') + 1);
    const std::size_t colon = line.rfind(':');
    const bool told = colon != std::string::npos && colon > 0 && line[0] != '?' &&
                      line.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                      line.substr(colon + 1) != "0";
    return told && colon + 1 < line.size() ? printable(line, name_max) : "";
}

}  // namespace

std::string CrashSites::told(const std::string& location, const std::string& path,
                             const SessionOptions& options) {
    const std::size_t plus = location.find("+0x");
    if (plus == std::string::npos) return location;
    const auto [at, is_new] = known_.try_emplace(location, location);
    if (!is_new) return at->second;
    const std::size_t offset_end = std::min(location.find(' ', plus), location.size());
    std::string text = location.substr(0, offset_end), inside;
    if (offset_end + 2 < location.size() && location.back() == ')')
        inside = demangled(location.substr(offset_end + 2, location.size() - offset_end - 3));
    if (std::filesystem::path(path).filename() == location.substr(0, plus)) {
        const std::string line =
            line_of(path, location.substr(plus + 1, offset_end - plus - 1), options);
        if (!line.empty()) inside += (inside.empty() ? "" : ", ") + line;
    }
    if (!inside.empty()) text += " (" + inside + ")";
    return at->second = text;
}

}  // namespace attest::worker
