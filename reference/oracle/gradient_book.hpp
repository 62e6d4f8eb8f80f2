#pragma once
// Keeps, for every element of every gradient, the reference's own error and the kernel's bound as
// rows are added; the values themselves are summed by the arithmetic that computes them.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/backward_bound.hpp"
#include "reference/bound/expected.hpp"
#include "reference/oracle/own_error.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::oracle {

/// Error and bound of one gradient's elements.
struct GradientErrors {
    std::vector<double> own, bound;
    std::vector<double> of_heads;  ///< sizes of the terms, where heads of a group are rounded apart
    std::vector<std::uint8_t> touched;  ///< an element no row adds to is exactly 0
    void resize(std::int64_t size) {
        own.assign(static_cast<std::size_t>(size), 0.0);
        bound.assign(own.size(), 0.0);
        touched.assign(own.size(), 0);
    }
    void add(std::size_t at, double own_part, double bound_part) {
        own[at] += own_part;
        bound[at] += bound_part;
        touched[at] = 1;
    }
    void disclaim(std::size_t first, std::size_t count);
    /// Adds what the rounding of heads costs; `under`: what all of them lose below the smallest
    /// number. Nothing where they are not rounded apart.
    void round_heads(double unit, double under, double most);
    /// With what every touched element has besides: `own_once`, `bound_once`.
    std::vector<bound::ExpectedElement> expect(const std::vector<double>& values, double own_once,
                                               double bound_once) const;
};

/// One row, as the book reads it.
struct GradientEntry {
    std::int64_t b = 0, h = 0, i = 0, position = 0;
    std::span<const std::int64_t> visible;
    std::span<const double> distance;  ///< as RowInputs has it
    bound::RowFacts row{};
    bound::BackwardFacts back{};
    OwnError own{};
    double own_output = 0;               ///< sum_c |dO_c| times the reference's own error of O_c
    const double* d_output = nullptr;    // [dim_v]
    const double* query_size = nullptr;  // [dim_qk]
    const double* key_size = nullptr;    // [len_kv, dim_qk] of the row's key head
};

class GradientBook {
public:
    /// `frequency`: of each channel under RoPE, else empty.
    GradientBook(const Prepared& call, const bound::KernelModel& model,
                 const ArithmeticError& arithmetic, std::vector<double> frequency);

    void add(const GradientEntry& entry);
    /// The row, and every key it might see, is not judged.
    void disclaim(std::int64_t b, std::int64_t h, std::int64_t i,
                  std::span<const std::int64_t> keys);

    GradientErrors d_q, d_k, d_v, d_mask, d_sinks, d_slopes;
    /// Once all rows are added.
    void round_heads();
    /// Underflow's share of each sum.
    double own_once() const;
    double bound_once() const;

private:
    bool rounds_heads() const noexcept { return model_.ugh > 0; }
    void add_mask(const GradientEntry& entry);
    void add_slope(const GradientEntry& entry);
    void add_common(const GradientEntry& entry, std::size_t q_at);

    const Prepared& call_;
    const Problem& p_;
    bound::KernelModel model_;
    ArithmeticError arithmetic_;
    std::vector<double> frequency_;
    bound::BackwardRow row_;
    double mask_terms_ = 0;    ///< how many pairs an element of a mask's gradient adds up at most
    std::vector<double> own_;  ///< of dX_ij
    std::vector<double> mean_, slope_, mean_size_, slope_size_;  // [dim_qk], of add_common
};

}  // namespace attest::oracle
