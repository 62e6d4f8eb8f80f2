// The two values of options with a syntax of their own.

#include "ci/options.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

double parse_duration(const std::string& option, const std::string& text) {
    const std::size_t unit = text.find_first_not_of("0123456789.");
    const std::string word = unit == std::string::npos ? "" : text.substr(unit);
    const double factor = word == "ms"  ? 1e-3
                          : word == "s" ? 1
                          : word == "m" ? 60
                          : word == "h" ? 3600
                                        : 0;
    const auto number = parse_decimal(std::string_view(text).substr(0, unit));
    constexpr double seconds_max = 1e9;  // thirty years, which every clock can count
    if (factor == 0 || !number || !(*number > 0) || !(*number * factor <= seconds_max))
        throw BadInput(option + " " + text + ": a number and a unit, such as 60s or 5m");
    return *number * factor;
}

void parse_shard(const std::string& text, std::int64_t& index, std::int64_t& count) {
    const std::size_t slash = text.find('/');
    const auto i = parse_integer<std::int64_t>(std::string_view(text).substr(0, slash));
    const auto n = slash == std::string::npos
                       ? std::nullopt
                       : parse_integer<std::int64_t>(std::string_view(text).substr(slash + 1));
    if (!i || !n || *n < 1 || *i < 0 || *i >= *n)
        throw BadInput("--shard " + text + ": i/n with 0 <= i < n, such as 0/4");
    index = *i;
    count = *n;
}

}  // namespace attest::ci
