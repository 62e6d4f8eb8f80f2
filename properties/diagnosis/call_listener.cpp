#include "properties/diagnosis/call_listener.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::size_t calls_max = 8;  // of a law that makes many

}  // namespace

std::int64_t products(const Problem& p) noexcept {
    // The reference of f64 takes double-double, of others mostly double (attest bench oracle).
    const std::int64_t times = p.format_q == Precision::f64 ? 8 : 1;
    return times * score_count(p) * (p.dim_qk + value_dim(p));
}

worker::CallResult CallListener::keep(Kept& list, const Problem& problem, const TensorSet& inputs,
                                      worker::CallResult result) const {
    if (list.size() < calls_max && products(problem) <= products_max)
        list.emplace_back(Specification{problem, manifest().dialect, manifest().numerics, inputs},
                          result);
    return result;
}

CallListener listen(search::Kernel& kernel, const search::Counterexample& c) {
    CallListener listener(kernel);
    if (const law::Property* law = law::find_property(c.law))
        search::judge_both_ways(listener, *law, c.smallest, c.found.number,
                                search::FailureKind{c.outcome, c.fault.has_value()});
    return listener;
}

}  // namespace attest::diagnosis
