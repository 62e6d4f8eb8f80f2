#pragma once
// Dialect: where implementations legitimately differ. Numerics: what a kernel claims of its
// arithmetic. Both are declared by each kernel in its manifest, printed in its certificate, and
// read by the oracle and the bounds. What is not declared takes the default written first, or the
// least it could mean (kernels/interface/README.md, "The manifest").

#include <cstdint>
#include <string>

#include "reference/problem/operands.hpp"
#include "reference/problem/precision.hpp"

namespace attest {

enum class CausalAlignment : std::uint8_t { bottom_right, top_left };
/// `mean`: of all the sequence's values, as where a finite number stands for -inf.
enum class EmptyRow : std::uint8_t { zeros, nan, refuse, mean };
enum class SoftcapPlace : std::uint8_t { before_bias, after_bias };
enum class WindowEnds : std::uint8_t { inclusive, exclusive };
enum class LseBase : std::uint8_t { e, two };
enum class Nonfinite : std::uint8_t { propagate, unspecified };
/// The log-sum-exp of a query that sees no key: log 0, or what FlashAttention 2 gives.
enum class EmptyLse : std::uint8_t { minus_infinity, infinity };

struct Dialect {
    CausalAlignment causal = CausalAlignment::bottom_right;
    EmptyRow empty_row = EmptyRow::zeros;
    SoftcapPlace softcap = SoftcapPlace::before_bias;
    WindowEnds window_ends = WindowEnds::inclusive;
    LseBase lse_base = LseBase::e;
    Nonfinite nonfinite = Nonfinite::propagate;
    EmptyLse empty_lse = EmptyLse::minus_infinity;
    double lse_of_no_key() const noexcept {
        return empty_lse == EmptyLse::infinity ? infinite : -infinite;
    }
    bool operator==(const Dialect&) const = default;
};

/// `same` stands for the format of the inputs (q); it is resolved against a problem by the bounds.
/// `unrounded`, for a step of its own: no coarser than what is accumulated in.
enum class NumberFormat : std::uint8_t { same, f64, f32, f16, bf16, unrounded };
/// The format itself: of `same` that one, of `unrounded` the widest.
constexpr Precision resolved(NumberFormat format, Precision same) noexcept {
    switch (format) {
        case NumberFormat::same:
            return same;
        case NumberFormat::f32:
            return Precision::f32;
        case NumberFormat::f16:
            return Precision::f16;
        case NumberFormat::bf16:
            return Precision::bf16;
        default:
            return Precision::f64;
    }
}

enum class SumWeights : std::uint8_t { unrounded, rounded };

struct Numerics {
    NumberFormat accumulate =
        NumberFormat::f32;                      ///< scores, softmax, both sums; f64 for f64 inputs
    NumberFormat weights = NumberFormat::same;  ///< P as fed to the second product
    NumberFormat output = NumberFormat::same;
    double exp_ulp = 2.0;        ///< error of one exp call in ulps of `accumulate`
    std::int64_t tile = 0;       ///< keys a tile; 0: undeclared
    std::int64_t sum_chunk = 0;  ///< keys that are summed by themselves before their sum is added
                                 ///< to the rest, in both sums over keys; 0: undeclared
    SumWeights sum_weights = SumWeights::unrounded;
    bool deterministic = false;
    bool batch_invariant = false;
    bool concurrent = false;  ///< calls of several threads at once do not disturb each other
    /// P as fed to the product that gives dV, dS as fed to those that give dQ and dK; same: as
    /// `weights`.
    NumberFormat gradient_weights = NumberFormat::same;
    NumberFormat gradient_scores = NumberFormat::same;
    /// dK and dV of each query head, before those of a group are added up.
    NumberFormat gradient_heads = NumberFormat::unrounded;
    /// P = exp(S - L) and dX = P (dP - D) cap' of the O and L handed over are rounded once each, to
    /// the two formats above, and nothing else on the way is coarser than `accumulate`.
    bool gradient_structure = false;
    bool deterministic_backward = false;              ///< atomic sums are not
    bool flush_subnormals = false;                    ///< FTZ/DAZ arithmetic
    NumberFormat scores = NumberFormat::unrounded;    ///< each step of a score is rounded to it
    NumberFormat query = NumberFormat::unrounded;     ///< q is, before the product
    NumberFormat rotation = NumberFormat::unrounded;  ///< cos, sin and the turn are
    NumberFormat bias = NumberFormat::unrounded;      ///< additive mask, slopes and sinks are
    Operands operands = Operands::unrounded;          ///< of the products of matrices
    /// The output of a part of the keys before parts are merged.
    NumberFormat partials = NumberFormat::unrounded;
    double epsilon = 0;           ///< added to the sum of the weights, the largest of which is 1
    bool centred_keys = false;    ///< the keys' mean is taken off before they are rounded
    bool centred_values = false;  ///< the values' mean is, and added to the output
    bool matrix_unit = false;     ///< the two products are summed by a unit that adds several
                                  ///< products at a time and truncates, as tensor cores do
    bool operator==(const Numerics&) const = default;
};

/// Whether a step is coarser than the bounds of gradients know of.
constexpr bool gradients_unjudged(const Numerics& n) noexcept {
    const auto is_half = [](NumberFormat f) {
        return f == NumberFormat::f16 || f == NumberFormat::bf16;
    };
    bool coarse = is_half(n.accumulate) || n.epsilon > 0 || n.centred_keys || n.centred_values;
    for (const NumberFormat step : {n.scores, n.query, n.rotation, n.bias})
        coarse = coarse || step != NumberFormat::unrounded;
    return coarse;
}

/// Whether some step is coarser than the f32 that errors on average were derived for.
constexpr bool has_coarse_steps(const Numerics& n) noexcept {
    return gradients_unjudged(n) || n.operands != Operands::unrounded ||
           n.partials != NumberFormat::unrounded;
}

/// What follows for gradients.
inline constexpr const char* coarse_gradients =
    "gradients are not judged beside sums in f16 or bf16, a step of a score rounded apart, an "
    "epsilon or centring";

}  // namespace attest
