#include "kernels/worker/worker_memory.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace attest::worker {
namespace {

/// Of one process or of several, in bytes.
struct Held {
    std::uint64_t anonymous = 0, shared = 0;
};

/// The lines "KEY: n kB" of a file of /proc.
Held read_held(const std::string& path, std::string_view anonymous, std::string_view shared) {
    constexpr std::uint64_t kibibyte = 1024;  // proc(5)
    std::ifstream file(path);
    Held held;
    for (std::string key; file >> key; std::getline(file, key)) {
        if (key == anonymous) file >> held.anonymous;
        if (key == shared) file >> held.shared;
    }
    return {held.anonymous * kibibyte, held.shared * kibibyte};
}

/// The names in a folder of /proc, which may go while it is read.
std::vector<std::string> names_in(const std::string& path) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
    std::vector<std::string> names;
    while (const dirent* one = folder ? ::readdir(folder.get()) : nullptr)
        if (one->d_name[0] != '.') names.emplace_back(one->d_name);
    return names;
}

/// No more than one looks at: a kernel may start processes without end.
constexpr std::size_t processes_max = 256;

/// Those that `process` started, and those they started.
void add_descendants(pid_t process, std::vector<pid_t>& found) {
    const std::string tasks = fmt::format("/proc/{}/task/", process);
    for (const std::string& task : names_in(tasks)) {
        std::ifstream file(tasks + task + "/children");
        for (pid_t child = 0; found.size() < processes_max && file >> child;) {
            found.push_back(child);
            add_descendants(child, found);
        }
    }
}

/// Memory files that a process has open and that need not be mapped, by their numbers.
void add_memory_files(pid_t process, const struct stat& tensors, std::set<ino_t>& known,
                      std::uint64_t& bytes) {
    constexpr std::uint64_t block_bytes = 512;  // stat(2)
    const std::string folder = fmt::format("/proc/{}/fd/", process);
    for (const std::string& name : names_in(folder)) {
        struct stat file {};
        if (::stat((folder + name).c_str(), &file) != 0 || file.st_dev != tensors.st_dev ||
            file.st_ino == tensors.st_ino || !known.insert(file.st_ino).second)
            continue;
        bytes += static_cast<std::uint64_t>(file.st_blocks) * block_bytes;
    }
}

/// In a folder for them that is the process's own.
std::uint64_t files_in_shared_memory(pid_t process) {
    constexpr const char* folder = "/dev/shm";
    const std::string its = fmt::format("/proc/{}/root{}", process, folder);
    struct stat mine {
    }, theirs{};
    struct statvfs system {};
    if (::stat(folder, &mine) != 0 || ::stat(its.c_str(), &theirs) != 0 ||
        mine.st_dev == theirs.st_dev || ::statvfs(its.c_str(), &system) != 0)
        return 0;
    return (system.f_blocks - system.f_bfree) * system.f_frsize;
}

}  // namespace

std::uint64_t resident_memory(pid_t process, pid_t parent, int memory_fd, std::uint64_t enough) {
    constexpr std::uint64_t block_bytes = 512;
    struct stat tensors {};
    const bool known = ::fstat(memory_fd, &tensors) == 0;
    const std::uint64_t ours =
        known ? static_cast<std::uint64_t>(tensors.st_blocks) * block_bytes : 0;
    const auto beyond = [&](std::uint64_t shared) {
        return known && shared > ours ? shared - ours : 0;
    };

    std::vector<pid_t> processes;
    if (parent == process) processes.push_back(process);
    add_descendants(parent, processes);
    Held all;
    std::uint64_t in_files = files_in_shared_memory(process);
    std::set<ino_t> files;
    for (const pid_t one : processes) {
        const Held held = read_held(fmt::format("/proc/{}/status", one), "RssAnon:", "RssShmem:");
        all.anonymous += held.anonymous;
        all.shared += beyond(held.shared);
        if (known) add_memory_files(one, tensors, files, in_files);
    }
    // Pages of such a file that are mapped stand in both.
    std::uint64_t sum = all.anonymous + std::max(all.shared, in_files);
    if (sum <= enough || processes.size() == 1) return sum;

    // A child shares its parent's pages until either writes.
    Held parts;
    for (const pid_t one : processes) {
        const Held held =
            read_held(fmt::format("/proc/{}/smaps_rollup", one), "Pss_Anon:", "Pss_Shmem:");
        parts.anonymous += held.anonymous;
        parts.shared += held.shared;
    }
    return parts.anonymous + std::max(beyond(parts.shared), in_files);
}

}  // namespace attest::worker
