// Whether it was the machine that ran out of memory, or the container: what the system counts.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/worker/worker_memory.hpp"

namespace attest::worker {
namespace {

/// The number behind `oom_kill` in a file of lines "KEY NUMBER".
std::optional<std::uint64_t> counted_in(const std::string& path) {
    std::ifstream file(path);
    for (std::string key; file >> key; std::getline(file, key)) {
        std::uint64_t count = 0;
        if (key == "oom_kill" && file >> count) return count;
    }
    return std::nullopt;
}

/// Where the group's own count may stand, cgroup v1 before v2: /proc names the group, but in a
/// container as the machine sees it, whose own it is that is mounted. Hierarchies are mounted where
/// systemd and containers mount them.
std::vector<std::string> files_of_group() {
    const std::string mounts = "/sys/fs/cgroup";
    std::vector<std::string> first, second;
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {  // cgroups(7): NUMBER:CONTROLLERS:PATH
        std::istringstream fields(line);
        std::string number, controllers, path;
        std::getline(std::getline(fields, number, ':'), controllers, ':');
        std::getline(fields, path);
        if (("," + controllers + ",").find(",memory,") != std::string::npos)
            first = {mounts + "/memory" + path + "/memory.oom_control",
                     mounts + "/memory/memory.oom_control"};
        if (number == "0") second = {mounts + path + "/memory.events", mounts + "/memory.events"};
    }
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

}  // namespace

std::optional<std::uint64_t> kills_for_memory() {
    for (const std::string& path : files_of_group())
        if (const auto count = counted_in(path)) return count;
    return counted_in("/proc/vmstat");
}

}  // namespace attest::worker
