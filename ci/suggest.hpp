#pragma once
// The nearest name to one that does not exist, for names held as strings.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/text.hpp"

namespace attest::ci {

/// "; did you mean NAME?" for the nearest name within two edits, else nothing.
inline std::string suggestion(std::string_view typed, const std::vector<std::string>& names) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    return attest::suggestion(typed, std::span<const std::string_view>(known));
}

}  // namespace attest::ci
