#pragma once
// Texts that tests compare byte for byte. ATTEST_UPDATE_GOLDEN=1 writes them anew: then read the
// difference before it is committed.

#include <string>

namespace attest::ci {

/// ci/golden in the source tree.
std::string golden_directory();
std::string repository_directory();

std::string read_golden(const std::string& name);

/// Empty where the text is the golden one; else a sentence with the first line that differs.
std::string golden_difference(const std::string& name, const std::string& text);

}  // namespace attest::ci
