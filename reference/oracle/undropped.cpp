#include "reference/oracle/undropped.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "reference/problem/errors.hpp"

namespace attest::oracle {

const Tensor& keep_of(const Problem& p, const TensorSet& inputs) {
    if (!inputs.has(Role::dropout_keep) ||
        inputs[Role::dropout_keep].shape() != shape_of(p, Role::dropout_keep))
        throw BadInput("dropout " + std::to_string(p.dropout.p) + ": not defined here",
                       {"which weights are dropped is the kernel's own choice; hand over "
                        "dropout_keep, or ask for dropout 0"});
    return inputs[Role::dropout_keep];
}

// Products with f in double cost two units.
bound::ExpectedElement times_factor(const Problem& p, bound::ExpectedElement e) {
    const double f = 1 / (1 - p.dropout.p);
    e.value *= f;
    e.error = f * e.error + 0x1p-51 * std::abs(e.value);
    e.bound *= f * (1 + 0x1p-50);
    return e;
}

Undropped::Undropped(const Problem& problem, const TensorSet& inputs)
    : was_(problem), problem_(problem), inputs_(inputs), keep_(keep_of(problem, inputs)) {
    problem_.dim_v = group_size(problem) * problem.len_q * value_dim(problem);
    problem_.layout_v = problem_.layout_o = {};
    spread_values();
    if (inputs.has(Role::d_o)) spread_output_gradient();
    if (inputs.has(Role::d_lse)) divide_lse_gradient();
    inputs_.erase(Role::dropout_keep);
}

std::int64_t Undropped::channel(std::int64_t h, std::int64_t i, std::int64_t c) const {
    return (h % group_size(was_) * was_.len_q + i) * value_dim(was_) + c;
}

bound::Expected Undropped::folded(bound::Expected wide) const {
    if (wide.output.empty()) return wide;
    std::vector<bound::ExpectedElement> output;
    output.reserve(
        static_cast<std::size_t>(was_.batch * was_.heads_q * was_.len_q * value_dim(was_)));
    each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        const std::int64_t row = (b * was_.heads_q + h) * was_.len_q + i;
        const std::int64_t at = row * problem_.dim_v + channel(h, i, c);
        output.push_back(times_factor(was_, wide.output[static_cast<std::size_t>(at)]));
    });
    wide.output = std::move(output);
    wide.output_shape[3] = value_dim(was_);
    return wide;
}

void Undropped::spread_values() {
    const Tensor& v = inputs_[Role::v];
    Tensor wide(v.type(), {was_.batch, was_.heads_kv, was_.len_kv, problem_.dim_v});
    each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        const std::int64_t kv = h / group_size(was_);
        for (std::int64_t j = 0; j < was_.len_kv; ++j)
            if (keeps(b, h, i, j))
                wide.set_bits(wide.flat(b, kv, j, channel(h, i, c)), v.bits(v.flat(b, kv, j, c)));
    });
    inputs_.put(Role::v, std::move(wide));
}

void Undropped::spread_output_gradient() {
    const Tensor d_o = inputs_[Role::d_o];
    Tensor wide(d_o.type(), {was_.batch, was_.heads_q, was_.len_q, problem_.dim_v});
    each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        wide.set_bits(wide.flat(b, h, i, channel(h, i, c)), d_o.bits(d_o.flat(b, h, i, c)));
    });
    inputs_.put(Role::d_o, std::move(wide));
}

/// dS = P (f dP' - f D' + dLSE) is f times P (dP' - D' + dLSE / f).
void Undropped::divide_lse_gradient() {
    const Tensor d_lse = inputs_[Role::d_lse];
    Tensor divided(ElementType::f64, d_lse.shape());
    for (std::int64_t at = 0; at < d_lse.size(); ++at)
        divided.set(at, d_lse.get(at) * (1 - was_.dropout.p));
    inputs_.put(Role::d_lse, std::move(divided));
}

}  // namespace attest::oracle
