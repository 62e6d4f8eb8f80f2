// A specification of other numbers: what a mask adds, fewer channels, another scale, equal scores.

#include <utility>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

Specification with_mask_values(const Specification& s,
                               const std::function<double(double)>& value_of) {
    Specification out = s;
    const Tensor& mask = s.inputs[Role::mask];
    out.inputs.put(Role::mask,
                   remake(ElementType::f64, mask.shape(),
                          [&](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
                              return value_of(mask.at(a, b, c, d));
                          }));
    out.problem.mask.tensor.kind = MaskKind::additive;
    return out;
}

Specification with_channels(const Specification& s, std::int64_t to, std::int64_t from) {
    Specification out = s;
    const Tensor& q = s.inputs[Role::q];
    out.inputs.put(Role::q,
                   remake(q.type(), q.shape(),
                          [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
                              return c >= from && c < to ? q.at(b, h, t, c) : 0.0;
                          }));
    return out;
}

Specification without_sink(const Specification& s) {
    Specification out = s;
    out.problem.sink = false;
    out.inputs.erase(Role::sinks);
    return out;
}

Specification with_scale(const Specification& s, double scale) {
    Specification out = s;
    out.problem.scale = scale;
    return out;
}

Specification with_numbers_of_heads(const Specification& s, Role role,
                                    const std::function<double(std::int64_t)>& number_of) {
    Specification out = s;
    Tensor numbers(ElementType::f64, s.inputs[role].shape());
    for (std::int64_t h = 0; h < numbers.size(); ++h) numbers.set(h, number_of(h));
    out.inputs.put(role, std::move(numbers));
    return out;
}

bound::Expected output_of(const Problem& problem, const ElementOf& element) {
    bound::Expected out;
    out.output_shape = {problem.batch, problem.heads_q, problem.len_q, value_dim(problem)};
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t i = 0; i < problem.len_q; ++i)
                for (std::int64_t c = 0; c < value_dim(problem); ++c)
                    out.output.push_back(element(b, h, i, c));
    return out;
}

Deviation formula_deviation(
    std::string id, std::string says,
    std::function<std::optional<bound::Expected>(const Specification&, const bound::Expected&)>
        formula) {
    return {.id = std::move(id), .says = std::move(says), .formula = std::move(formula)};
}

std::optional<Specification> uniform(const Specification& s, const Rules& rules) {
    if (s.problem.sink) return std::nullopt;
    Specification out = with_rules(s, rules);
    for (const Role role : {Role::q, Role::k}) {
        const Tensor& from = s.inputs[role];
        out.inputs.put(role, Tensor(from.type(), from.shape()));
    }
    const double minus_infinity = -infinite;
    out = with_mask_values(
        out, [minus_infinity](double x) { return x == minus_infinity ? minus_infinity : 0.0; });
    out.problem.alibi = false;
    out.problem.rope = {};
    out.problem.softcap = 0;
    return out;
}

}  // namespace attest::diagnosis
