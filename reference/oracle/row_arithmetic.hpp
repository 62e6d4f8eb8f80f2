#pragma once
// What one arithmetic does: it computes single rows. Everything around that (which keys are seen,
// claims about non-finite rows, bounds) is the same for all and lives in row_runner.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/bound/kernel_model.hpp"
#include "reference/oracle/own_error.hpp"
#include "reference/oracle/prepared.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::oracle {

/// One row to compute. At least one key is visible, or there is a sink.
struct RowQuery {
    std::int64_t b = 0, h = 0, i = 0;
    KeyRange range;
    std::span<const std::int64_t> visible;  ///< keys, ascending
    std::span<const double> mask;           ///< additive, one a visible key; empty: none
    std::span<const double> distance;       ///< |i + off - j|, one a visible key; empty: no ALiBi
    double slope = 0;
    const double* sink = nullptr;

    /// Whether the keys visible are a range, with none left out.
    bool dense() const {
        return visible.empty() ||
               visible.back() - visible.front() + 1 == static_cast<std::int64_t>(visible.size());
    }
};

/// The row, rounded to double. The sink, where there is one, is the last entry of the first three.
struct RowValues {
    std::vector<double> score, weight;  ///< S_j; exp(S_j - LSE)
    std::vector<double> magnitude;      ///< |scale| sum |q_c k_jc| or a little more; 0 for the sink
    std::vector<double> turn;           ///< see ScoreError::angle; empty without RoPE
    double max = 0, sum = 0, lse = 0, lse_two = 0;
    double q_max = 0, k_max = 0;
    std::vector<double> output;  // [dim_v]
};

/// How many rows are computed together. Rows of a block share each key and value that is loaded;
/// with more of them their own numbers would no longer fit the cache.
constexpr std::size_t block_rows = 8;

class RowArithmetic {
public:
    virtual ~RowArithmetic() = default;
    virtual ArithmeticError error() const = 0;
    /// Rows whose queries share a sequence and a head of keys, at most `block_rows`.
    virtual void compute(std::span<const RowQuery> queries, std::span<RowValues> rows) = 0;
};

/// The definition, written once as a template, in three arithmetics.
std::unique_ptr<RowArithmetic> definition_in_double(const Prepared& call);
std::unique_ptr<RowArithmetic> definition_in_double_double(const Prepared& call);
std::unique_ptr<RowArithmetic> definition_in_exact(const Prepared& call);

/// The same, vectorised over keys and columns, in double and in double-double.
std::unique_ptr<RowArithmetic> lanes_in_double(const Prepared& call);
std::unique_ptr<RowArithmetic> lanes_in_double_double(const Prepared& call);

/// sum_c x_c y_c of two arrays that are not negative.
double magnitude(const double* x, const double* y, std::int64_t n);

}  // namespace attest::oracle
