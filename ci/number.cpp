#include "ci/number.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reference/problem/text.hpp"

namespace attest::ci {

namespace {

std::string not_finite(double value) {
    if (std::isnan(value)) return "nan";
    return value > 0 ? "inf" : "-inf";
}

// "1.0e+06" to "1.0e6", "2.4e-05" to "2.4e-5".
std::string short_exponent(std::string text) {
    const std::size_t e = text.find('e');
    if (e == std::string::npos) return text;
    std::string sign = text[e + 1] == '-' ? "-" : "";
    std::size_t digit = e + 2;
    while (digit + 1 < text.size() && text[digit] == '0') ++digit;
    return text.substr(0, e) + "e" + sign + text.substr(digit);
}

std::string without_trailing_zeros(std::string text) {
    const std::size_t e = text.find('e');
    std::string mantissa = text.substr(0, e),
                exponent = e == std::string::npos ? "" : text.substr(e);
    if (mantissa.find('.') != std::string::npos) {
        while (mantissa.back() == '0') mantissa.pop_back();
        if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + exponent;
}

// `digits` significant digits, fixed between 10^-3 and 10^4 (at least as many digits as stand
// before the point), else with an exponent.
std::string significant(double value, int digits) {
    if (value == 0) return std::signbit(value) ? "-0" : "0";
    const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
    const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
    if (exponent < -4 || exponent >= std::max(digits, 5)) return short_exponent(scientific);
    return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent));
}

constexpr int digits_max = 17;  // tell any two doubles apart

}  // namespace

std::string ratio_text(double ratio) {
    if (!std::isfinite(ratio)) return not_finite(ratio);
    if (ratio == 0) return "0";
    if (ratio < 0.001) return "<0.001";
    if (ratio >= 0.9995 && ratio < 1) return "0.999";
    if (ratio >= 1 && ratio < 1.005) return ratio == 1 ? "0.999" : "1.01";
    if (ratio >= 999.5) return short_exponent(fmt::format("{:.1e}", ratio));
    return significant(ratio, 3);
}

std::string value_text(double value) {
    if (!std::isfinite(value)) return not_finite(value);
    return without_trailing_zeros(significant(value, 4));
}

std::pair<std::string, std::string> value_texts(double expected, double observed) {
    std::pair<std::string, std::string> texts{value_text(expected), value_text(observed)};
    if (!std::isfinite(expected) || !std::isfinite(observed)) return texts;
    for (int digits = 5; texts.first == texts.second && digits <= digits_max; ++digits)
        texts = {without_trailing_zeros(significant(expected, digits)),
                 without_trailing_zeros(significant(observed, digits))};
    return texts;
}

std::string hex_text(double value) {
    return hex_real(value);
}

std::string bound_text(double bound) {
    if (!std::isfinite(bound)) return not_finite(bound);
    if (bound == 0) return "0";
    // The printed digits read back must not be less than the bound.
    for (int step = 0;; ++step) {
        const double raised = step == 0 ? bound : bound + bound * 0.05;
        const std::string text = significant(raised, 2);
        if (parse_decimal(text).value_or(0) >= bound) return without_trailing_zeros(text);
        if (step > 0) return value_text(bound);
    }
}

std::string count_text(std::int64_t count) {
    if (count >= 1'000'000'000)
        return short_exponent(fmt::format("{:.1e}", static_cast<double>(count)));
    std::string digits = std::to_string(count), text;
    for (std::size_t n = 0; n < digits.size(); ++n) {
        if (n > 0 && (digits.size() - n) % 3 == 0) text += ' ';
        text += digits[n];
    }
    return text;
}

std::string large_count_text(std::int64_t count) {
    if (count < 1'000'000 || count >= 1'000'000'000) return count_text(count);
    return fmt::format("{:.1f} million", static_cast<double>(count) / 1e6);
}

std::string time_text(double seconds) {
    if (seconds < 0.00095) return fmt::format("{:.2g} ms", seconds * 1e3);
    if (seconds < 0.0095) return fmt::format("{:.1f} ms", seconds * 1e3);
    if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
    if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (seconds < 9.5 * 60 && whole % 60 != 0)
        return fmt::format("{} min {} s", whole / 60, whole % 60);
    if (seconds < 120 * 60) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.1f} h", seconds / 3600);
}

std::string share_text(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

std::string counted(std::int64_t count, const std::string& noun) {
    return count_text(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace attest::ci
