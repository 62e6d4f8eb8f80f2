#include "properties/search/glob.hpp"

#include <algorithm>

namespace attest::search {

/// Greedy with one point of return: the last star. Linear in both lengths times the stars.
bool matches(std::string_view pattern, std::string_view text) noexcept {
    std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view text) noexcept {
    return std::any_of(patterns.begin(), patterns.end(),
                       [text](const std::string& pattern) { return matches(pattern, text); });
}

bool selected(const std::vector<std::string>& patterns, std::string_view text) noexcept {
    return patterns.empty() || matches_any(patterns, text);
}

}  // namespace attest::search
