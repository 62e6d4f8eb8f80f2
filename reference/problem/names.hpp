#pragma once
// How the enumerations are called in the line and in JSON; index by the enumerator.

#include <span>
#include <string_view>

namespace attest {

std::span<const std::string_view> precision_names() noexcept;
std::span<const std::string_view> value_kind_names() noexcept;
std::span<const std::string_view> fill_names() noexcept;
std::span<const std::string_view> named_fills() noexcept;  ///< without explicit_values
std::span<const std::string_view> mask_kind_names() noexcept;
std::span<const std::string_view> mask_kind_words() noexcept;  ///< the same in the line
std::span<const std::string_view> mask_pattern_names() noexcept;
std::span<const std::string_view> alibi_slopes_names() noexcept;
std::span<const std::string_view> axis_order_names() noexcept;
std::span<const std::string_view> rope_style_names() noexcept;

}  // namespace attest
