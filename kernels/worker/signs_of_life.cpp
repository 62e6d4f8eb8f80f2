#include "kernels/worker/signs_of_life.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace attest::worker {
namespace {

/// A kernel may start programs that start programs; what lies deeper is not looked at, nor is more
/// than so many.
constexpr int generations_max = 4;

/// One thread waits for a disk or a file server: that comes to an end by itself.
constexpr std::uint64_t waits_for_disk = std::numeric_limits<std::uint64_t>::max();

struct Stat {
    char state = 0;
    std::uint64_t faults = 0, threads = 0;
};

/// /proc/PID/stat behind the name, which may hold anything: the fields 3 (state), 10 and 12 (page
/// faults) and 20 (threads) of proc(5).
bool read_stat(const std::string& path, Stat& stat) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line)) return false;
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return false;
    std::istringstream fields(line.substr(name_end + 1));
    std::string word;
    for (int field = 3; field <= 20 && fields >> word; ++field) {
        if (field == 3) stat.state = word[0];
        if (field == 10 || field == 12) stat.faults += std::stoull(word);
        if (field == 20) stat.threads = std::stoull(word);
    }
    return true;
}

/// Calls of read() and its like. Not what it writes: a loop that prints gets nowhere either.
std::uint64_t reads_of(const std::string& folder) {
    std::ifstream file(folder + "/io");
    std::string key;
    std::uint64_t value = 0;
    while (file >> key >> value)
        if (key == "syscr:") return value;
    return 0;
}

/// Added to `sum`, with its descendants. False where the process cannot be looked at.
bool add(pid_t process, int generation, std::uint64_t& sum) {
    const std::string folder = "/proc/" + std::to_string(process);
    Stat all;
    if (!read_stat(folder + "/stat", all)) return false;
    sum += all.faults + all.threads + reads_of(folder) + static_cast<std::uint64_t>(process);
    std::error_code gone;
    for (std::filesystem::directory_iterator it(folder + "/task", gone), end; !gone && it != end;
         it.increment(gone)) {
        Stat thread;
        if (read_stat(it->path() / "stat", thread) && thread.state == 'D') sum = waits_for_disk;
        std::ifstream children(it->path() / "children");
        pid_t child = 0;
        while (sum != waits_for_disk && generation < generations_max && children >> child)
            add(child, generation + 1, sum);
        if (sum == waits_for_disk) break;
    }
    return true;
}

}  // namespace

std::uint64_t SignsOfLife::count() const {
    std::uint64_t sum = 0;
    return add(process_, 0, sum) ? sum : 0;
}

bool SignsOfLife::seen() {
    const std::uint64_t now = count();
    const bool any = now == 0 || now == waits_for_disk || now != before_;
    before_ = now;
    return any;
}

}  // namespace attest::worker
