#pragma once
// How a kernel's answer to one case departs from the reference, step by step: which keys are read,
// the score, the maximum, the sum, the weight, the output.

#include <optional>
#include <string>
#include <vector>

#include "properties/search/kernel.hpp"
#include "reference/bound/expected.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/case.hpp"

namespace attest::ci {

/// Elements outside their bound: those of o, or of the log-sum-exp where every o agrees.
struct Divergence {
    bool lse = false;
    std::vector<std::int64_t> elements;  ///< flat indices
    std::int64_t of = 0;                 ///< elements compared
    double worst_ratio = 0;
    bound::Expected truth;
};
Divergence find_divergence(const kernel::Manifest& manifest, const Problem& problem,
                           const TensorSet& inputs, const TensorSet& observed);

/// One head as the reference and the kernel have it.
struct HeadView {
    Problem problem;
    std::int64_t batch = 0, head = 0, query = 0, channel = 0;  ///< of the first diverging element
    std::int64_t key = 0;  ///< the first key whose weight differs, as far as digits show
    std::vector<oracle::RowDetail> rows;       ///< [len_q]
    std::vector<std::vector<double>> weights;  ///< [len_q][len_kv] observed; empty: not readable
    std::vector<std::vector<double>> flat;     ///< the same with Q = 0: which keys are read at all
    double output = 0;                         ///< observed, of the first diverging element
    std::optional<double> lse;                 ///< observed, of its row, in natural units
    const oracle::RowDetail& row(std::int64_t i) const { return rows[static_cast<std::size_t>(i)]; }
    bool visible(std::int64_t i, std::int64_t j) const;
    double weight(std::int64_t i, std::int64_t j) const {
        return weights[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
};
HeadView view_head(search::Kernel& kernel, const Case& tried, const TensorSet& inputs,
                   const TensorSet& observed, const Divergence& divergence);

struct Step {
    std::string name, expected, observed, note;
    bool differs = false;
};
std::vector<Step> steps_of(const HeadView& view, const Divergence& divergence);

}  // namespace attest::ci
