#include "kernels/cpu/gradient_store.hpp"

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
void store_mask(const Call& call, const Real* sums) noexcept {
    store_each(call.d_mask, [sums](std::int64_t flat) { return sums[flat]; });
}
template void store_mask<float>(const Call&, const float*) noexcept;
template void store_mask<double>(const Call&, const double*) noexcept;

template <typename Real>
void store_heads(const Operand& to, const Real* sums) noexcept {
    store_each(to, [sums](std::int64_t flat) { return sums[flat]; });
}
template void store_heads<float>(const Operand&, const float*) noexcept;
template void store_heads<double>(const Operand&, const double*) noexcept;

}  // namespace attest::cpu
