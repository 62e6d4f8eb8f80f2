#include "properties/law/reading.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/kernel_model.hpp"

#include "reference/problem/errors.hpp"

namespace attest::law {

std::int64_t flat(const Problem& problem, const Row& row) noexcept {
    return (row.batch * problem.heads_q + row.head) * problem.len_q + row.query;
}

double output(const Run& call, const Row& row, std::int64_t channel) {
    return call.output().get(flat(call.problem(), row) * value_dim(call.problem()) + channel);
}

const bound::ExpectedElement& element(const PlannedCall& call, const Row& row,
                                      std::int64_t channel) {
    return call.expected_output(flat(call.problem(), row) * value_dim(call.problem()) + channel);
}

bool blind(const PlannedCall& call, const Row& row) {
    const auto& lens = call.problem().mask.lens_q;
    if (!lens.empty() && row.query >= lens[static_cast<std::size_t>(row.batch)]) return true;
    return call.expected().row_empty[static_cast<std::size_t>(flat(call.problem(), row))] != 0;
}

bool may_overflow(const Run& call, const bound::ExpectedElement& expected) {
    if (expected.bound != infinite) return false;
    const bound::KernelModel m = bound::resolve(call.problem(), call.trial().numerics());
    double most = std::min({m.max_finite, m.score_max, m.query_max, m.bias_max, m.fed_max});
    if (m.centred_keys || m.centred_values) most = std::min(most, m.centred_max);
    constexpr double log2e = 1.45;  // and a little more
    const MaskTensor& mask = call.problem().mask.tensor;
    const bool lowest =
        mask.kind == MaskKind::additive && log2e * std::abs(mask.floor) > m.max_finite;
    return lowest || most <= traits(Precision::f16).max_finite;
}

namespace {

Interval truth_behind(double observed, const Run& call, const bound::ExpectedElement& expected,
                      Precision format) {
    if (std::isnan(observed) && may_overflow(call, expected)) return {-infinite, infinite};
    return truth_of(observed, expected.bound, format);
}

}  // namespace

Interval truth(const Run& call, const Row& row, std::int64_t channel) {
    return truth_behind(output(call, row, channel), call, element(call, row, channel),
                        call.output_format());
}

Interval lse_truth(const Run& call, const Row& row) {
    const std::int64_t at = flat(call.problem(), row);
    const Interval own =
        truth_behind(call.lse().get(at), call, call.expected_lse(at), call.lse_format());
    if (call.trial().dialect().lse_base == LseBase::e) return own;
    return own * log(Interval::exactly(2));
}

bool coarse_exp(const Numerics& numerics) noexcept {
    constexpr double of_libraries = 2;  // ulp
    return numerics.exp_ulp > of_libraries;
}

Tensor tensor_of(const Problem& problem, Role role, const ElementRule& value) {
    const auto shape = shape_of(problem, role);
    require(shape.has_value(), "a law makes only tensors that its problem has");
    Tensor tensor(type_of(problem, role), *shape);
    std::int64_t next = 0;
    for (std::int64_t b = 0; b < (*shape)[0]; ++b)
        for (std::int64_t h = 0; h < (*shape)[1]; ++h)
            for (std::int64_t t = 0; t < (*shape)[2]; ++t)
                for (std::int64_t c = 0; c < (*shape)[3]; ++c)
                    tensor.set(next++, value(b, h, t, c));
    return tensor;
}

double on_grid(const Given& given, std::uint64_t stream, std::uint64_t index, std::int64_t most,
               double over) {
    return static_cast<double>(given.random_below(stream, index, 2 * most + 1) - most) / over;
}

Tensor grid_tensor(const Given& given, const Problem& problem, Role role, std::uint64_t stream,
                   std::int64_t most, double step) {
    std::uint64_t index = 0;
    return tensor_of(problem, role, [&](auto, auto, auto, auto) {
        return on_grid(given, stream, index++, most, 1) * step;
    });
}

Problem plain(Problem problem, std::int64_t len_q, std::int64_t len_kv) {
    problem.len_q = len_q;
    problem.len_kv = len_kv;
    problem.mask = {};
    problem.softcap = 0;
    problem.sink = problem.alibi = false;
    problem.rope = {};
    problem.dropout = {};
    problem.cache = {};
    return canonical(std::move(problem));
}

}  // namespace attest::law
