#pragma once
// Globs on law ids: `*` stands for any text, `?` for one character.

#include <string>
#include <string_view>
#include <vector>

namespace attest::search {

bool matches(std::string_view pattern, std::string_view text) noexcept;
bool matches_any(const std::vector<std::string>& patterns, std::string_view text) noexcept;
/// As --match: where there is no pattern everything is selected.
bool selected(const std::vector<std::string>& patterns, std::string_view text) noexcept;

}  // namespace attest::search
