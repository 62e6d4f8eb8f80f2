#pragma once
// How a person reads a number: the only place that formats one for a screen or a page. Digits say
// how much is known; a bound is rounded up, so that no printed error seems to exceed a printed
// bound that it meets; nothing depends on a locale.

#include <cstdint>
#include <string>
#include <utility>

namespace attest::ci {

/// error/bound in 3 significant digits: "0.887", "641", "1.0e6"; "<0.001" below; never "1.00":
/// below 1 prints "0.999" at most, above 1 at least "1.01". "inf" and "nan" as words.
std::string ratio_text(double ratio);

/// A value in the fewest of 4 significant digits.
std::string value_text(double value);
/// Two values with as many digits as it takes to tell them apart, at least what value_text gives.
std::pair<std::string, std::string> value_texts(double expected, double observed);
/// C99 hex float, lower case, no trailing zeros: "0x1.62e43p-1"; "inf", "-inf", "nan".
std::string hex_text(double value);
/// 2 significant digits, rounded up.
std::string bound_text(double bound);

/// "16 791 525", in groups of three; "3.1e9" above 10^9.
std::string count_text(std::int64_t count);
/// "16 791", "16.8 million", "3.1e9".
std::string large_count_text(std::int64_t count);
/// "31 ms", "6.9 s", "14 min", "2.5 h".
std::string time_text(double seconds);
/// "1.9 %".
std::string share_text(double share);
/// "1 law", "2 laws".
std::string counted(std::int64_t count, const std::string& noun);

}  // namespace attest::ci
