#include "properties/law/scores.hpp"

#include <cmath>

namespace attest::law {

Scores::Scores(const Problem& problem, const TensorSet& inputs)
    : heads_q_(problem.heads_q),
      heads_kv_(problem.heads_kv),
      len_q_(problem.len_q),
      len_kv_(problem.len_kv),
      dim_(problem.dim_qk),
      scale_(effective_scale(problem)),
      softcap_(problem.softcap),
      q_(inputs[Role::q].to_doubles()),
      k_(inputs[Role::k].to_doubles()) {}

Scores::Products Scores::products(const Row& row, std::int64_t key) const noexcept {
    const std::int64_t group = heads_q_ / heads_kv_;
    const double* q = &q_[static_cast<std::size_t>(
        ((row.batch * heads_q_ + row.head) * len_q_ + row.query) * dim_)];
    const double* k = &k_[static_cast<std::size_t>(
        ((row.batch * heads_kv_ + row.head / group) * len_kv_ + key) * dim_)];
    Products products;
    for (std::int64_t c = 0; c < dim_; ++c) {
        products.sum += q[c] * k[c];
        products.magnitude += std::abs(q[c] * k[c]);
    }
    return products;
}

// A sum of d products, each passing at most d roundings of 2^-53, is within gamma(d) sum |q_c k_c|
// (reference/bound/rounding.hpp); gamma(d) < (d + 1) 2^-53 for every d here. The magnitude itself
// is known to the same relative error, which one more unit covers; a product below the normal
// numbers loses at most 2^-1074.
Interval Scores::dot(const Row& row, std::int64_t key) const noexcept {
    const Products p = products(row, key);
    const double d = static_cast<double>(dim_);
    return Interval::around(p.sum, (d + 2) * 0x1p-53 * p.magnitude + d * 0x1p-1074);
}

// tanh of the library is within a few ulp; eight of them, 2^-50 relative, are allowed for. It is
// monotone, so the ends of an interval are the ends of its image.
Interval Scores::score(const Row& row, std::int64_t key) const noexcept {
    const Interval scaled = Interval::exactly(scale_) * dot(row, key);
    if (!(softcap_ > 0)) return scaled;
    const Interval cap = Interval::exactly(softcap_);
    const Interval inner = scaled / cap;
    const double lo = std::tanh(inner.lo), hi = std::tanh(inner.hi);
    return cap * Interval{lo - std::abs(lo) * 0x1p-50, hi + std::abs(hi) * 0x1p-50};
}

}  // namespace attest::law
