#pragma once
// What a kernel's process is made of: the files that it executes.

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "kernels/interface/kernel_spec.hpp"
#include "properties/search/session_kernel.hpp"

namespace attest::ci {

/// Name and SHA-256. Of several files of one name the later ones have a mark behind theirs.
using FileDigests = std::map<std::string, std::string>;

/// Of each file that the process has mapped to be executed: its program, the libraries. Of a Python
/// kernel, its module's source too; of no process (0), that alone.
FileDigests process_files(int process_id, const kernel::KernelSpec& kernel);

/// The same of a kernel that is loaded here, in a process of its own, and has answered a call: some
/// libraries are loaded by the first one. With what its manifest lists as its sources.
FileDigests kernel_files(const kernel::KernelSpec& spec, const worker::SessionOptions& options);

/// What the processes of a run are made of beyond `known`: looked at as each is about to end, since
/// some libraries are loaded, and some modules imported, by later calls.
class LaterFiles {
public:
    explicit LaterFiles(FileDigests known) : known_(std::move(known)) {}
    void look(worker::Session& session) noexcept;
    FileDigests found();

private:
    std::mutex mutex_;
    FileDigests known_, found_;
    std::set<std::string> paths_;
};

}  // namespace attest::ci
