#include "kernels/cpu/gradient_store.hpp"

#include <algorithm>

namespace attest::cpu {
namespace {

/// value(flat) to every element of a tensor.
template <typename Value>
void store_each(const Operand& to, Value value) noexcept {
    if (!to) return;
    std::int64_t flat = 0;
    for (std::int64_t a = 0; a < to.shape[0]; ++a)
        for (std::int64_t b = 0; b < to.shape[1]; ++b)
            for (std::int64_t c = 0; c < to.shape[2]; ++c)
                for (std::int64_t d = 0; d < to.shape[3]; ++d, ++flat) {
                    const auto one = value(flat);
                    store_row(to.at(a, b, c, d), to.format, 1, 1, &one);
                }
}

}  // namespace

void write_zeros(const Call& call) noexcept {
    for (const Operand* gradient : {&call.d_q, &call.d_k, &call.d_v})
        store_each(*gradient, [](std::int64_t) { return 0.0f; });
}

template <typename Real>
void SharedSums<Real>::clear(const attest_problem& p) noexcept {
    std::fill_n(mask, mask_sums(p), Real{0});
    std::fill_n(sinks, p.heads_q, Real{0});
    std::fill_n(slopes, p.heads_q, Real{0});
}

template <typename Real>
void SharedSums<Real>::store(const Call& call) const noexcept {
    store_each(call.d_mask, [this](std::int64_t flat) { return mask[flat]; });
    store_each(call.d_sinks, [this](std::int64_t flat) { return sinks[flat]; });
    store_each(call.d_slopes, [this](std::int64_t flat) { return slopes[flat]; });
}

template struct SharedSums<float>;
template struct SharedSums<double>;

}  // namespace attest::cpu
