#pragma once
// The words of a manifest and what they stand for; the default first (README.md, "The manifest").

#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/interface/manifest.hpp"
#include "reference/problem/errors.hpp"

namespace attest::kernel::manifest_words {

template <typename Value>
struct Choice {
    std::string_view word;
    Value value;
};

inline constexpr Choice<CausalAlignment> causal_words[] = {
    {"bottom_right", CausalAlignment::bottom_right}, {"top_left", CausalAlignment::top_left}};
inline constexpr Choice<EmptyRow> empty_row_words[] = {{"zeros", EmptyRow::zeros},
                                                       {"nan", EmptyRow::nan},
                                                       {"refuse", EmptyRow::refuse},
                                                       {"mean", EmptyRow::mean}};
inline constexpr Choice<SoftcapPlace> softcap_words[] = {{"before_bias", SoftcapPlace::before_bias},
                                                         {"after_bias", SoftcapPlace::after_bias}};
inline constexpr Choice<WindowEnds> window_words[] = {{"inclusive", WindowEnds::inclusive},
                                                      {"exclusive", WindowEnds::exclusive}};
inline constexpr Choice<LseBase> lse_base_words[] = {{"e", LseBase::e}, {"2", LseBase::two}};
inline constexpr Choice<Nonfinite> nonfinite_words[] = {{"propagate", Nonfinite::propagate},
                                                        {"unspecified", Nonfinite::unspecified}};
inline constexpr Choice<EmptyLse> empty_lse_words[] = {{"-inf", EmptyLse::minus_infinity},
                                                       {"inf", EmptyLse::infinity}};
inline constexpr Choice<Memory> memory_words[] = {{"host", Memory::host}, {"cuda", Memory::cuda}};
inline constexpr Choice<Role> gradient_words[] = {
    {"q", Role::d_q},       {"k", Role::d_k},         {"v", Role::d_v},
    {"mask", Role::d_mask}, {"sinks", Role::d_sinks}, {"slopes", Role::d_slopes}};
inline constexpr Choice<SumWeights> sum_words[] = {{"unrounded", SumWeights::unrounded},
                                                   {"rounded", SumWeights::rounded}};
inline constexpr Choice<NumberFormat> number_words[] = {{"same", NumberFormat::same},
                                                        {"f64", NumberFormat::f64},
                                                        {"f32", NumberFormat::f32},
                                                        {"f16", NumberFormat::f16},
                                                        {"bf16", NumberFormat::bf16}};
inline constexpr Choice<NumberFormat> accumulate_words[] = {{"f32", NumberFormat::f32},
                                                            {"f64", NumberFormat::f64},
                                                            {"f16", NumberFormat::f16},
                                                            {"bf16", NumberFormat::bf16}};
inline constexpr Choice<Operands> operand_words[] = {{"tf32", Operands::tf32},
                                                     {"bf16", Operands::bf16},
                                                     {"f16", Operands::f16},
                                                     {"f32", Operands::f32}};
/// Steps that a kernel may round by themselves.
struct RoundedStep {
    std::string_view key;
    NumberFormat Numerics::*format;
};
inline constexpr RoundedStep steps[] = {{"scores", &Numerics::scores},
                                        {"query", &Numerics::query},
                                        {"rotation", &Numerics::rotation},
                                        {"bias", &Numerics::bias},
                                        {"partials", &Numerics::partials},
                                        {"gradient_heads", &Numerics::gradient_heads}};
inline constexpr Choice<Precision> format_words[] = {{"f64", Precision::f64},
                                                     {"f32", Precision::f32},
                                                     {"f16", Precision::f16},
                                                     {"bf16", Precision::bf16}};

inline constexpr Choice<Queries> queries_words[] = {
    {"any", Queries::any}, {"at_most_keys", Queries::at_most_keys}, {"as_keys", Queries::as_keys}};
inline constexpr Choice<Padding> padding_words[] = {{"any", Padding::any},
                                                    {"right", Padding::right}};
inline constexpr Choice<LseAsked> lse_words[] = {{"any", LseAsked::any},
                                                 {"always", LseAsked::always},
                                                 {"always_with_cache", LseAsked::always_with_cache},
                                                 {"with_cache", LseAsked::with_cache},
                                                 {"without_cache", LseAsked::without_cache}};
inline constexpr Choice<LseOrder> lse_order_words[] = {{"output", LseOrder::output},
                                                       {"bht", LseOrder::bht}};
inline constexpr Choice<MaskShared> mask_axis_words[] = {{"batch", &MaskTensor::shared_batch},
                                                         {"heads", &MaskTensor::shared_heads},
                                                         {"queries", &MaskTensor::shared_queries},
                                                         {"keys", &MaskTensor::shared_keys}};
inline constexpr Choice<RopeStyle> rope_words[] = {{"interleaved", RopeStyle::interleaved},
                                                   {"half", RopeStyle::half}};
inline constexpr Choice<AxisOrder> order_words[] = {{"bhtd", AxisOrder::bhtd},
                                                    {"bthd", AxisOrder::bthd},
                                                    {"tbhd", AxisOrder::tbhd},
                                                    {"bhdt", AxisOrder::bhdt}};

template <typename Value, std::size_t n>
std::string word_of(const Choice<Value> (&choices)[n], Value value) {
    for (const auto& choice : choices) {
        if (choice.value == value) return std::string(choice.word);
    }
    throw InternalError("every enumerator of a manifest has a word");
}

}  // namespace attest::kernel::manifest_words
