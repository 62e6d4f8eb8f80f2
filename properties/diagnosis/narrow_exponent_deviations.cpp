// Kernels of f64 tensors that keep a number of the softmax in f32: its scale, log2(e), what is
// exponentiated.

#include <cmath>
#include <numbers>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// Weights exp(x) with another x than S - max for each key.
Deviation of_exponents(std::string id, std::string says, double (*exponent)(double x)) {
    return weight_deviation(std::move(id), std::move(says),
                            [exponent](const Specification& s, const oracle::RowDetail& row,
                                       const RowKeys&) -> std::optional<WeightChange> {
                                if (s.problem.format_q != Precision::f64) return WeightChange{};
                                std::vector<double> change(row.scores.size(), 0.0);
                                for (std::size_t j = 0; j < change.size(); ++j) {
                                    const double x = row.scores[j] - row.max;
                                    if (std::isfinite(x)) change[j] = exponent(x) - x;
                                }
                                return WeightChange{std::move(change), {}};
                            });
}

}  // namespace

std::vector<Deviation> exponents_narrowed() {
    return {
        of_exponents("exponent_log2e_f32",
                     "weights 2^x of x = (S - max) log2(e) with log2(e) rounded to f32",
                     [](double x) {
                         const double rounded = static_cast<float>(std::numbers::log2e);
                         return x * (rounded / std::numbers::log2e);
                     }),
        of_exponents("exponent_f32", "weights exp(S - max) of S - max rounded to f32",
                     [](double x) { return static_cast<double>(static_cast<float>(x)); }),
        {.id = "scale_f32",
         .says = "a scale rounded to f32",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             const double scale = effective_scale(s.problem);
             const double rounded = static_cast<float>(scale);
             if (s.problem.format_q != Precision::f64 || rounded == scale) return std::nullopt;
             return with_scale(s, rounded);
         }},
    };
}

}  // namespace attest::diagnosis
