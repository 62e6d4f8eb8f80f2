#pragma once
// The built-in kernels as the host knows them: names and one line each. The kernels themselves are
// linked into the worker alone, so the worker is asked, once.

#include <string>
#include <vector>

namespace attest {

struct BuiltinEntry {
    std::string id, summary;
};

/// What `attest_worker --list` prints, in its order; asked once and kept. Throws InternalError
/// where the worker cannot be run.
const std::vector<BuiltinEntry>& builtin_catalogue();

}  // namespace attest
