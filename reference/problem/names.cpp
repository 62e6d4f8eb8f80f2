#include "reference/problem/names.hpp"

#include <array>

#include "reference/problem/case.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 4> precisions = {"f64", "f32", "f16", "bf16"};
constexpr std::array<std::string_view, value_kind_count> kinds = {
    "normal",     "logit50",   "logit1e3",  "logit1e4", "negative_logits", "cancel_v",
    "ties",       "one_hot",   "tiny",      "wide",     "const_v",         "ascending",
    "descending", "small_int", "qk_cancel", "flat",     "uniform"};
constexpr std::array<std::string_view, fill_count> fills = {
    "drawn", "zeros",   "ones",   "index",          "alternating",
    "steep", "one_hot", "sparse", "explicit_values"};
constexpr std::array<std::string_view, 3> mask_kinds = {"none", "boolean", "additive"};
constexpr std::array<std::string_view, 3> mask_words = {"none", "bool", "additive"};
constexpr std::array<std::string_view, mask_pattern_count> patterns = {
    "iid",         "left_pad",       "right_pad",    "one_key",   "leading_tiles",
    "inner_tiles", "trailing_tiles", "prefix_lm",    "documents", "band",
    "dilated",     "blocks",         "checkerboard", "tree",      "empty_rows"};
constexpr std::array<std::string_view, 3> slopes = {"geometric", "published", "random"};
constexpr std::array<std::string_view, 4> orders = {"bhtd", "bthd", "tbhd", "bhdt"};
constexpr std::array<std::string_view, 3> styles = {"none", "interleaved", "half"};

}  // namespace

std::span<const std::string_view> precision_names() noexcept {
    return precisions;
}
std::span<const std::string_view> value_kind_names() noexcept {
    return kinds;
}
std::span<const std::string_view> fill_names() noexcept {
    return fills;
}
std::span<const std::string_view> named_fills() noexcept {
    return fill_names().first(fills.size() - 1);
}
std::span<const std::string_view> mask_kind_names() noexcept {
    return mask_kinds;
}
std::span<const std::string_view> mask_kind_words() noexcept {
    return mask_words;
}
std::span<const std::string_view> mask_pattern_names() noexcept {
    return patterns;
}
std::span<const std::string_view> alibi_slopes_names() noexcept {
    return slopes;
}
std::span<const std::string_view> axis_order_names() noexcept {
    return orders;
}
std::span<const std::string_view> rope_style_names() noexcept {
    return styles;
}

std::string_view name(ValueKind kind) noexcept {
    return kinds[static_cast<std::size_t>(kind)];
}

std::string_view name(MaskPattern pattern) noexcept {
    return patterns[static_cast<std::size_t>(pattern)];
}

std::string_view name(Fill fill) noexcept {
    return fills[static_cast<std::size_t>(fill)];
}

}  // namespace attest
