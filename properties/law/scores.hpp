#pragma once
// Scores computed by a law itself, in double with a proven error: sigma q_i.k_j with the soft cap,
// for problems whose scores are no more than that (no positions, no additive mask). Which of two
// scores is larger is then known for certain, or known to be uncertain.

#include <vector>

#include "properties/law/compare.hpp"
#include "properties/law/interval.hpp"

namespace attest::law {

class Scores {
public:
    Scores(const Problem& problem, const TensorSet& inputs);

    /// q_i.k_j as summed in double: exact for whole numbers times a power of two.
    double sum(const Row& row, std::int64_t key) const noexcept { return products(row, key).sum; }
    Interval dot(const Row& row, std::int64_t key) const noexcept;    ///< q_i.k_j
    Interval score(const Row& row, std::int64_t key) const noexcept;  ///< natural units

private:
    struct Products {
        double sum = 0, magnitude = 0;  ///< of q_c k_c, and of |q_c k_c|
    };
    Products products(const Row& row, std::int64_t key) const noexcept;

    std::int64_t heads_q_, heads_kv_, len_q_, len_kv_, dim_;
    double scale_, softcap_;
    std::vector<double> q_,
        k_;  ///< [batch, heads_q, len_q, dim_qk], [batch, heads_kv, len_kv, dim_qk]
};

}  // namespace attest::law
