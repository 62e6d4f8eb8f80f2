#pragma once
// A step whose result is rounded to a narrower format than declared: to one format, or to that of
// the inputs, be they of one or of two. The same step in two formats is one defect.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

/// What a step is rounded to: one format; that of the inputs, where queries, keys and values are of
/// one and it is narrow; that of the queries, of keys and values, or of the output, where it is
/// narrow.
enum class RoundsTo : std::uint8_t { inputs, queries, values, output, bf16, f16 };

/// What says less where the inputs are of one format stands behind what says so.
inline constexpr RoundsTo narrow_or_own[] = {RoundsTo::inputs,  RoundsTo::bf16,   RoundsTo::f16,
                                             RoundsTo::queries, RoundsTo::values, RoundsTo::output};

/// The format in this problem; none: nothing is rounded.
std::optional<Precision> format_in(RoundsTo narrow, const Problem& problem);
std::string words_of(Precision format);
std::string id_of(RoundsTo narrow);
std::string words_of(RoundsTo narrow);

/// x known to within a part of its own size and of 1, as a kernel in f32 knows it at best after a
/// few operations, rounded; none where it could round either way.
std::optional<double> rounded_surely(double x, double size, Precision format);

/// The nearer to 0 of the two members of the format that x lies between; x where it is one.
double cut_off(double x, Precision format);

/// A deviation that changes weights as this does, given the format; where the inputs are of no
/// narrow one, that of the inputs changes nothing.
using ChangeIn = std::function<std::optional<WeightChange>(Precision, const Specification&,
                                                           const oracle::RowDetail&, KeyExtent)>;
Deviation rounded_step(std::string id, std::string says, RoundsTo narrow, ChangeIn change);

/// Weights rounded (rounded_weight_deviations.cpp), by the maximum of all keys where nothing tells
/// another; their sum (rounded_sum_deviations.cpp), and the log-sum-exp
/// (rounded_parameter_deviations.cpp).
std::vector<Deviation> rounded_weights(RoundsTo narrow);
std::vector<Deviation> rounded_sums();
std::vector<Deviation> rounded_log_sums();

}  // namespace attest::diagnosis
