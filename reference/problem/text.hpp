#pragma once
// Numbers as text that round-trips, and the carets and suggestions of error messages. No locale, no
// streams: the same bytes everywhere.

#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// The shortest decimal that reads back as the same double; "inf", "-inf", "nan".
std::string decimal(double value);
/// Reads what decimal() writes and any other plain decimal; "inf" and "-inf" too, never NaN.
std::optional<double> parse_decimal(std::string_view text);

/// C99 hex float, lower case, no trailing zeros, subnormals with a leading 1: "0x1.8p+1". Not
/// finite: "inf", "-inf", "nan".
std::string hex_real(double value);
/// Reads exactly the texts hex_real() writes, NaN excepted: one number, one text.
std::optional<double> parse_hex_real(std::string_view text);

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
    Integer value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string joined(std::span<const std::string_view> words, std::string_view separator);

/// "; did you mean WORD?" for the nearest known word within two edits, else nothing.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// Text from outside made fit for one line of a terminal: control characters become '?', and what
/// is longer than `longest` is cut.
std::string printable(std::string_view text, std::size_t longest = 60);

/// A line and a caret line under [begin, end), both after `margin` (the caret's is blanked up to a
/// trailing bar). Long lines are cut to a window around the place.
std::vector<std::string> pointed(std::string_view line, std::size_t begin, std::size_t end,
                                 std::string_view margin = "");

}  // namespace attest
