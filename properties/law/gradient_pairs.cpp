#include "properties/law/gradient_pairs.hpp"

namespace attest::law {

namespace {

/// Bits of two gradients; what is not a number in either is no promise of a law's.
bool compare_bits(const Tensor& first, std::int64_t at, const Tensor& second, std::int64_t other,
                  const ElementPlace& place, const std::string& change, Tally& tally) {
    return tally.fact(same_element(first, at, second, other), first.get(at), second.get(other),
                      place, [&] { return "a gradient gets other bits " + change; });
}

}  // namespace

bool repeats_gradients(const Numerics& numerics) noexcept {
    return numerics.deterministic && numerics.deterministic_backward;
}

Judgement same_gradients(const GradientRun& first, const GradientRun& second, bool bits,
                         const std::string& change, const GradientMatch& match) {
    Tally tally(first.problem());
    for (const Role role : gradient_roles) {
        if (!first.has(role) || !second.has(role)) continue;
        for (std::int64_t at = 0; at < first[role].size() && !tally.violated(); ++at) {
            const std::optional<std::int64_t> other = match ? match(role, at) : at;
            if (!other) continue;
            const ElementPlace place = gradient_at(first.problem(), role, at);
            if (bits)
                compare_bits(first[role], at, second[role], *other, place, change, tally);
            else
                tally.same(first.truth(role, at), second.truth(role, *other), place, [&] {
                    return "the " + element_name(first.problem(), place) + " is another one " +
                           change;
                });
        }
    }
    return tally.judgement("no gradient is promised to be the same");
}

Judgement same_again(const GradientRun& first, const TensorSet& again, bool bits,
                     const std::string& change) {
    Tally tally(first.problem());
    for (const Role role : gradient_roles) {
        if (!first.has(role) || !again.has(role)) continue;
        for (std::int64_t at = 0; at < first[role].size() && !tally.violated(); ++at) {
            const ElementPlace place = gradient_at(first.problem(), role, at);
            if (bits)
                compare_bits(first[role], at, again[role], at, place, change, tally);
            else
                tally.element(again[role].get(at), first.expected(role, at),
                              gradient_format(first.problem(), role), place, [&] {
                                  return "the " + element_name(first.problem(), place) +
                                         " leaves its bound " + change;
                              });
        }
    }
    return tally.judgement("there is no gradient");
}

// LSE / log(2) in base 2, and so its derivative.
Interval lse_gradient(const TensorSet& inputs, const Dialect& dialect, const Row& row) {
    if (!inputs.has(Role::d_lse)) return {};
    const double given = inputs[Role::d_lse].at(row.batch, row.head, row.query, 0);
    if (dialect.lse_base == LseBase::e) return Interval::exactly(given);
    return Interval::exactly(given) / log(Interval::exactly(2));
}

Interval inner_product(const GradientRun& call, Role of, Role gradient, std::int64_t batch,
                       std::int64_t head) {
    const Tensor& x = call.inputs()[of];
    const Shape& s = x.shape();
    Interval sum;
    const std::int64_t first = x.flat(batch, head, 0, 0), count = s[2] * s[3];
    for (std::int64_t at = first; at < first + count; ++at) {
        // What is exactly 0 may stand beside anything: an input past a length, or one that is NaN.
        if (call.expected(gradient, at).bound == 0 && call.expected(gradient, at).value == 0)
            continue;
        sum = sum + given(x, at) * call.truth(gradient, at);
    }
    return sum;
}

}  // namespace attest::law
