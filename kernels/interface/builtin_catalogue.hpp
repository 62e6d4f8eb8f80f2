#pragma once
// The built-in kernels as the host knows them. The kernels themselves, planted bugs among them, are
// linked into plug-ins of the worker alone, so it is asked, once.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/interface/builtin.hpp"

namespace attest::kernel {

struct BuiltinEntry {
    std::string id, summary;
    std::int64_t cases = 0;  ///< as BuiltinKernel
};

/// What `attest_worker --list` prints, in its order; asked once and kept. Throws InternalError
/// where the worker cannot be run.
const std::vector<BuiltinEntry>& builtin_catalogue();

/// The planted bugs among them, by id.
std::span<const Mutant> museum();

/// One line of that list: id, summary, cases, and for a planted bug its story, between tabs.
std::string catalogue_line(const BuiltinKernel& kernel, std::string_view summary);

}  // namespace attest::kernel
