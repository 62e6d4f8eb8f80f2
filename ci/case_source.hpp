#pragma once
// What CASE means on the command line: a stored id, a file, a fixture's name, or a line.

#include <string>
#include <vector>

#include "ci/options.hpp"
#include "kernels/interface/kernel_spec.hpp"
#include "properties/law/property.hpp"
#include "properties/search/confirmation.hpp"
#include "properties/search/store.hpp"

namespace attest::ci {

struct NamedCase {
    Case tried;
    std::string law;                          ///< empty: not known
    std::string kernel;                       ///< as typed when it was stored; empty: not known
    std::vector<search::EarlierCase> before;  ///< what has to run before it
};

/// BadInput where nothing is so called, or several stored cases begin so.
NamedCase find_case(const std::string& text, const std::string& out_directory);

/// The law of this id. BadInput with the nearest, after the option that named it.
const law::Property& law_named(const std::string& id, const std::string& option = "--law ");

/// The failures stored here, each with its kernel as it was typed where the run beside them tells.
/// What could not be read goes into `unread`.
std::vector<search::StoredFailure> stored_failures(const std::string& directory,
                                                   std::vector<std::string>& unread);

/// The kernel to run: --kernel, or the one the case was stored with. BadInput where neither is.
kernel::KernelSpec kernel_for(const NamedCase& named, const CommandOptions& options);

/// A file is not to decide by itself which program runs: where the kernel it names is not built in,
/// a person on a terminal is asked; else, and where the answer is no, BadInput with the remedy.
void allow_kernel(const kernel::KernelSpec& named, const std::string& command,
                  const std::string& remedy);

}  // namespace attest::ci
