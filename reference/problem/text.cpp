#include "reference/problem/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "reference/problem/precision.hpp"

namespace attest {
namespace {

std::optional<std::string> not_finite(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    return std::nullopt;
}

std::optional<double> parse_infinity(std::string_view text) {
    if (text == "inf") return infinite;
    if (text == "-inf") return -infinite;
    return std::nullopt;
}

/// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t above = row[j + 1];
            row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
            diagonal = above;
        }
    }
    return row.back();
}

}  // namespace

std::string decimal(double value) {
    if (auto word = not_finite(value)) return *word;
    std::array<char, 64> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return std::string(buffer.data(), end);
}

std::optional<double> parse_decimal(std::string_view text) {
    if (auto value = parse_infinity(text)) return value;
    if (text.empty() || text.find_first_not_of("0123456789+-.eE") != text.npos) return std::nullopt;
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string hex_real(double value) {
    if (auto word = not_finite(value)) return *word;
    std::string sign = std::signbit(value) ? "-0x" : "0x";
    if (value == 0.0) return sign + "0p+0";
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    // 53 bits with the leading one first; the shift pushes that one out and leaves 52 fraction
    // bits.
    auto rest = static_cast<std::uint64_t>(std::ldexp(fraction, 53)) << 12;
    std::string digits = rest == 0 ? "1" : "1.";
    for (; rest != 0; rest <<= 4) digits += "0123456789abcdef"[rest >> 60];
    return fmt::format("{}{}p{:+}", sign, digits, exponent - 1);
}

std::optional<double> parse_hex_real(std::string_view text) {
    if (auto value = parse_infinity(text)) return value;
    std::string_view body = text;
    const bool negative = body.starts_with('-');
    if (negative) body.remove_prefix(1);
    const std::size_t power = body.find('p');
    if (!body.starts_with("0x") || power == body.npos || power > 20) return std::nullopt;
    std::string_view tail = body.substr(power + 1);
    if (tail.starts_with("+")) tail.remove_prefix(1);
    const auto exponent = parse_integer<int>(tail);
    if (!exponent || *exponent < -1100 || *exponent > 1100) return std::nullopt;
    std::string_view digits = body.substr(2, power - 2);
    double value = 0.0, unit = 1.0;
    for (const char c : digits) {
        if (c == '.') continue;
        int digit = 0;
        const auto [end, error] = std::from_chars(&c, &c + 1, digit, 16);
        if (error != std::errc{}) return std::nullopt;
        value += unit * digit;
        unit /= 16;
    }
    value = std::ldexp(negative ? -value : value, *exponent);
    // Whatever was lenient above, only the canonical text of the value passes.
    if (hex_real(value) != text) return std::nullopt;
    return value;
}

std::string joined(std::span<const std::string_view> words, std::string_view separator) {
    std::string text;
    for (const std::string_view word : words) {
        if (!text.empty()) text += separator;
        text += word;
    }
    return text;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
    constexpr std::size_t edits_max = 2;
    std::size_t nearest = std::min(edits_max + 1, word.size());
    std::string_view best;
    if (word.size() > 40) return "";
    for (const std::string_view candidate : known) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance >= nearest) continue;
        nearest = distance;
        best = candidate;
    }
    return best.empty() ? "" : "; did you mean " + std::string(best) + "?";
}

std::string printable(std::string_view text, std::size_t longest) {
    std::string out(text.substr(0, longest));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return text.size() > longest ? out + "..." : out;
}

std::vector<std::string> pointed(std::string_view line, std::size_t begin, std::size_t end,
                                 std::string_view margin) {
    constexpr std::size_t width = 60, before = 30;  // a line of 80, indented
    begin = std::min(begin, line.size());
    end = std::clamp(end, begin, line.size());
    const bool whole = line.size() <= width;
    const std::size_t start = whole || begin < before ? 0 : begin - before;
    const std::size_t stop = whole ? line.size() : std::min(line.size(), start + width);
    const std::string lead = start > 0 ? "..." : "", tail = stop < line.size() ? "..." : "";
    const std::string shown = lead + printable(line.substr(start, stop - start), width) + tail;
    std::string blank(margin.size(), ' ');
    if (const std::size_t bar = margin.find('|'); bar != margin.npos) blank[bar] = '|';
    const std::size_t carets = std::max<std::size_t>(1, std::min(end, stop) - begin);
    return {std::string(margin) + shown,
            blank + std::string(lead.size() + begin - start, ' ') + std::string(carets, '^')};
}

}  // namespace attest
