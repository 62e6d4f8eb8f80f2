#pragma once
// Where a kernel died, as its author wrote it: a C++ name without its mangling, and file and line
// where the library has debug information and the machine has addr2line (binutils).

#include <map>
#include <string>

#include "kernels/worker/session.hpp"

namespace attest::worker {

class CrashSites {
public:
    /// "libmine.so+0x1a40 (flash<float>(float const*), flash.cpp:12)" of what a worker said of
    /// the library at `path`: "libmine.so+0x1a40 (_Z5flashIfEvPKT_)". As it was where there is
    /// nothing to add.
    std::string told(const std::string& location, const std::string& path,
                     const SessionOptions& options);

private:
    std::map<std::string, std::string> known_;
};

}  // namespace attest::worker
