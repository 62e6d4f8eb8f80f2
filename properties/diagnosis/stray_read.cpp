#include "properties/diagnosis/stray_read.hpp"

#include <cstdint>

#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

namespace {

bool dies_of(search::Kernel& kernel, const Problem& problem, const TensorSet& inputs) {
    for (const std::uint64_t placement : {0, 1}) {
        kernel.begin_case(placement);
        const worker::CallResult result = kernel.forward(problem, inputs);
        if (result.outcome == worker::Outcome::crash && result.fault &&
            result.fault->stray == worker::Fault::Access::read)
            return true;
    }
    return false;
}

bool dies_of_case(search::Kernel& kernel, Case like) {
    if (!kernel.supports(like.problem, nullptr)) return false;
    // Where four pages lie, one seed of four lays the one in question last: none of 16 in 1 of 100.
    const std::uint64_t seeds = like.problem.cache.page_size > 0 ? 16 : 1;
    for (std::uint64_t n = 0; n < seeds; ++n, ++like.values.seed)
        if (dies_of(kernel, like.problem, make_inputs(like))) return true;
    return false;
}

// Tensors of whole 64 bytes end at their guards: of 32 channels in 16 bits. What is read next to
// them follows from no value.
Case of_whole_lines(const Case& like) {
    constexpr std::int64_t channels = 32;
    const auto whole = [](std::int64_t n) { return (n + channels - 1) / channels * channels; };
    Case c{like.problem, {}};
    if (c.problem.dim_v > 0) c.problem.dim_v = whole(c.problem.dim_v);
    c.problem.dim_qk = whole(c.problem.dim_qk);
    return c;
}

}  // namespace

bool dies_of_stray_read(search::Kernel& kernel, const search::Counterexample& counterexample,
                        const std::vector<Evidence>& wrong) {
    for (const Evidence& e : wrong)
        if (dies_of(kernel, e.asked.problem, e.asked.inputs)) return true;
    const Case& smallest = counterexample.smallest;
    return dies_of_case(kernel, smallest) || dies_of_case(kernel, of_whole_lines(smallest)) ||
           dies_of_case(kernel, counterexample.found.tried);
}

}  // namespace attest::diagnosis
